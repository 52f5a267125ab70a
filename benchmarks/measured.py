"""What every benchmark shares: times taken in turns, the machine in words, results as lines and as JSON.

A result is a row: what was done, our figure, the figures of the usual tools on the same work in the same run, the
ratio, and what was to be reached. `--json FILE` writes the rows with the machine and the command; `tables.py`
makes the tables of docs/speed.md from such files.

Needs nothing but the standard library, so that it runs where torch and transformers are all there is.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import statistics
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if importlib.util.find_spec("polars") is None:
    # a machine that has torch and little else: batching and executor do without the store, which needs polars
    import clinometer

    bare = types.ModuleType("clinometer.engine")
    bare.__path__ = [str(Path(clinometer.__file__).parent / "engine")]
    sys.modules["clinometer.engine"] = bare


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement. `unit` ends in "/s" where more is better; seconds are better when fewer."""

    work: str
    unit: str
    ours: float
    others: Mapping[str, float] = field(default_factory=dict)  # the usual tools, by name
    targets: Mapping[str, bool] = field(default_factory=dict)  # what was to be reached, and whether it was
    notes: Sequence[str] = ()

    @property
    def ratio(self) -> float | None:
        """How many times better ours is than the best of the others."""
        if not self.others:
            return None
        rate = self.unit.endswith("/s")
        best = max(self.others.values()) if rate else min(self.others.values())
        return self.ours / best if rate else best / self.ours

    def lines(self) -> list[str]:
        """Say it on a terminal."""
        said = [f"{self.work}: {figure(self.ours)} {self.unit}"]
        said += [f"    {name}: {figure(value)} {self.unit}" for name, value in self.others.items()]
        said += [f"    {times(self.ratio)} the best of these"] if self.ratio is not None else []
        said += [
            f"    {target}: {'reached' if reached else 'NOT reached'}" for target, reached in self.targets.items()
        ]
        return [*said, *(f"    {note}" for note in self.notes)]


def figure(value: float) -> str:
    """Return a number with three digits or more.

    >>> [figure(value) for value in (1234567.8, 45.678, 0.012345)]
    ['1,234,568', '45.7', '0.0123']
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def times(ratio: float) -> str:
    """Return a ratio in words.

    >>> times(2.14), times(229.3)
    ('2.1 ×', '229 ×')
    """
    return f"{ratio:.0f} ×" if ratio >= 20 else f"{ratio:.1f} ×"


def drift(apart: Sequence[float], of: str = "log-probabilities", *, where: str = "") -> str:
    """Return how far bfloat16 lies from float32, given each difference.

    >>> drift([0.03, -0.04], where="on a CPU")
    'bfloat16 drift of log-probabilities from float32: 3.5e-02 root mean square, 4.0e-02 at most, on a CPU'
    """
    root = math.sqrt(sum(each**2 for each in apart) / len(apart))
    found = f"bfloat16 drift of {of} from float32: {root:.1e} root mean square, {max(map(abs, apart)):.1e} at most"
    return f"{found}, {where}" if where else found


def seconds_in_turns(
    runs: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 3,
    warm: bool = True,
    after: Callable[[], None] | None = None,
) -> dict[str, list[float]]:
    """Time each of them so often, in turn, so that what else the machine does slows all alike.

    Each runs once before that, and does not count: memory is taken, kernels are compiled. `after` waits for a GPU.
    """
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(-1 if warm else 0, repeats):
        names = list(runs) if turn % 2 == 0 else list(runs)[::-1]
        for name in names:
            start = time.perf_counter()
            runs[name]()
            if after is not None:
                after()
            if turn >= 0:
                taken[name].append(time.perf_counter() - start)
    return taken


def median_seconds(
    runs: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 3,
    warm: bool = True,
    after: Callable[[], None] | None = None,
) -> dict[str, float]:
    """Return the median of the turns of each."""
    taken = seconds_in_turns(runs, repeats=repeats, warm=warm, after=after)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def waiting(device: str) -> Callable[[], None] | None:
    """Return what waits until the device has finished; None where it always has."""
    if device == "cpu":
        return None
    import torch

    return torch.cuda.synchronize


def machine(device: str = "cpu") -> dict[str, Any]:
    """Describe the machine and the libraries that compute on it."""
    found: dict[str, Any] = {"processor": _processor(), "cores": len(os.sched_getaffinity(0))}
    found["memory_gib"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    found["load_before"] = round(_LOAD, 1)
    torch = sys.modules.get("torch")
    if torch is not None:
        found["threads"] = torch.get_num_threads()
        if device == "cuda":
            found["gpu"] = torch.cuda.get_device_name()
    found["python"] = platform.python_version()
    for package in ("torch", "transformers", "numpy"):
        if package in sys.modules:
            found[package] = importlib.metadata.version(package)
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


_LOAD = os.getloadavg()[0]  # before this benchmark itself loads the machine


def arguments(about: str | None) -> argparse.ArgumentParser:
    """Return a parser with what every benchmark takes."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the rows and the machine there")
    return parser


def tell(
    rows: Sequence[Row], *, to: Path | None, device: str = "cpu", where: dict[str, Any] | None = None
) -> None:
    """Print the rows, and write them as JSON; `where` is the machine, if it was another one."""
    for row in rows:
        print("\n".join(row.lines()), flush=True)
    if to is None:
        return
    given = [each for each in sys.argv[1:] if each != "--json" and Path(each) != to]
    found = {
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *given]),
        "machine": where or machine(device),
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
