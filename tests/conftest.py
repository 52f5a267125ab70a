"""What every test shares: no network, and folders of its own for cache and data unless some are given."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# before anything imports huggingface_hub or transformers
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side, and tiny models gain nothing from threads
# one cache for all test processes of a machine: the built-in model is converted once, not once per worker
os.environ.setdefault(
    "CLINOMETER_CACHE", str(Path(tempfile.gettempdir()) / f"clinometer-test-cache-{os.getuid()}")
)
# what the person who runs the tests has added to their own data folder must not change a finding
os.environ["CLINOMETER_DATA"] = str(Path(tempfile.gettempdir()) / f"clinometer-test-data-{os.getuid()}")
# published files that may not be packaged: tests that read them skip where they are not there
os.environ.setdefault("CLINOMETER_TEST_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
# dozens of tests start an interpreter: keep what it compiles, also where the environment says otherwise
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what is imported for good, a million objects of torch and transformers.

    Every training asks for a full collection in the end, which took most of its time here.
    """
    import hypothesis  # noqa: F401 -- it asks who refers to a generator, and what is frozen does not answer

    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Sync nothing in this process: that guards against a power cut, which no test can make.

    A process that is killed while it writes is another one, and syncs as always. `fstat` refuses closed files too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


# What takes longest begins first, so that neither of two workers is left alone with it in the end.
_FIRST = (
    "killed",
    "tests/test_docs.py",
    "tests/train/test_mitigation.py",
    "commands",
    "tests/training/test_shipped_models.py",
    "tests/report/test_browser.py",
    "llama",
    "tests/probes/test_counterexamples_verdicts.py",
    "tests/probes/test_counterexamples_findings.py",
    "tests/probes/test_stigma_run.py",
)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker run all tests of a file, so that what they share is made once; see `make tests`."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))

    def turn(item: pytest.Item) -> int:
        (group,) = item.get_closest_marker("xdist_group").args
        return _FIRST.index(group) if group in _FIRST else len(_FIRST)

    items.sort(key=turn)
