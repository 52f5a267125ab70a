"""Runs on a Ray cluster of three nodes: the same bytes as here, whatever dies on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ray")

import clinometer
from clinometer.errors import PoisonedError, SpecError
from clinometer.models.fake import FakeModel
from clinometer.store import RunFolder
from clinometer.workflows import Execution, VerifyRequest, run_verify
from tests.ray_faults import (
    Numbers,
    audit,
    fakes,
    findings_of,
    on_ray,
    three_nodes,
)

# one cluster for all of them, in one test process; Ray warns of files that its own processes have open
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def problems(run, probe=None):
    return run_verify(VerifyRequest(run=run.folder, probes=(probe or Numbers(),))).problems


@pytest.fixture(scope="module")
def cluster():
    with three_nodes() as made:
        yield made


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The same audit in this process, the bytes to reach."""
    folder = tmp_path_factory.mktemp("local") / "run"
    audit(folder, Execution(batch_tokens=60))
    return findings_of(folder)


def test_workers_and_a_node_die_and_another_joins(cluster, local, tmp_path):
    """A smaller sister of benchmarks/ray_faults.py, which does fifty such things to one run."""
    ray, nodes = cluster
    execution, factory = on_ray(2)
    did, notes = [], []

    class Meddling:
        """Progress that does harm: after so many answers, something dies."""

        answered = 0

        def begin(self, label, *, total, done, unit="request"):
            pass

        def advance(self, count):
            before, self.answered = self.answered, self.answered + count
            for mark, harm in ((60, self.kill_worker), (200, self.kill_node)):
                if before < mark <= self.answered:
                    harm()
                    did.append(harm.__name__)

        def kill_worker(self):
            there = [hand for hand in factory.driver().hands() if hand.session]
            os.kill(there[0].arrived.process, signal.SIGKILL)

        def kill_node(self):
            ray.remove_node(nodes.pop(), allow_graceful=False)

        def end(self):
            pass

        def note(self, text):
            notes.append(text)
            if "went down" in text:  # Ray lets only the main thread start a node, and notes are shown there
                nodes.append(ray.add_node(num_cpus=1, wait=False))

    run = clinometer.audit(
        fakes(), probes=[Numbers()], folder=tmp_path / "run", execution=execution, progress=Meddling(),
        options={"numbers": {"questions": 240}},
    )  # fmt: skip
    assert did == ["kill_worker", "kill_node"]
    assert findings_of(run.path) == local
    assert problems(run) == ()
    assert any("it died; what it had is given to others" in note for note in notes)
    (session,) = run.folder.sessions
    assert (session["executor"], session["threads"]) == ("ray", 1)


class Poisoned(Numbers):
    """Has one question that kills whoever is asked."""

    def questions(self, stage, plan, records):
        for number, item in enumerate(super().questions(stage, plan, records)):
            if number == 33 and stage.name == "first" and plan.model.name == "fake-0":
                deadly = replace(item.request, text="KILL whoever is asked what [MASK] is now.")
                yield replace(item, request=deadly)
            else:
                yield item


def test_a_poisoned_batch_is_named_and_the_rest_completes(cluster, tmp_path):
    execution, _ = on_ray(2)
    with pytest.raises(PoisonedError, match=r"numbers · fake-0 · first: .*KILL whoever is asked") as error:
        clinometer.audit(
            fakes(), probes=[Poisoned()], folder=tmp_path / "run", execution=execution,
            options={"numbers": {"questions": 60}},
        )  # fmt: skip
    assert "three in a row" in str(error.value)
    run = RunFolder.open(tmp_path / "run")
    recorded = {(key.model, key.stage): len(run.done(key)) for key in run.stages()}
    assert recorded["fake-1", "then"] == 40, "the other model is asked to its end"
    assert 40 < recorded["fake-0", "first"] < 60, "all but one batch is recorded"
    # with a model that survives it, the run is completed, and nothing is asked twice
    here = Execution(batch_tokens=60)
    done = clinometer.resume(tmp_path / "run", models=fakes(calm=True), probes=[Poisoned()], execution=here)
    assert problems(done, Poisoned()) == ()


PROGRAM = """
import sys
from tests.ray_faults import audit, on_ray
import ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
audit(sys.argv[2], on_ray(2)[0])
"""


def test_a_driver_that_is_killed_is_resumed_by_another(cluster, local, tmp_path):
    place = tmp_path / "run"
    root = Path(__file__).parents[1]
    path = os.pathsep.join([str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    driver = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, cluster[0].address, str(place)],
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        until = time.monotonic() + 90
        while not list(place.glob("records/*/*/*/*.parquet")):
            assert driver.poll() is None, "the driver ended before it was killed"
            assert time.monotonic() < until
            time.sleep(0.02)
    finally:
        driver.kill()
        driver.wait()
    before = {path.name for path in place.glob("records/*/*/*/*.parquet")}
    execution, _ = on_ray(2)
    done = clinometer.resume(place, models=fakes(), probes=[Numbers()], execution=execution)
    assert findings_of(place) == local
    assert before, "what it had recorded is kept"
    assert problems(done) == ()


def test_a_model_that_cannot_travel_is_refused(cluster, tmp_path):
    import threading

    lock = threading.Lock()
    model = FakeModel(answer=lambda request: lock, name="stuck")
    execution, _ = on_ray(1)
    with pytest.raises(SpecError, match="stuck is in memory, and cannot be sent to workers elsewhere"):
        clinometer.audit(model, probes=[Numbers()], folder=tmp_path / "run", execution=execution)
