"""Several stages at once, runs that end in a comparison, and what a resumed run keeps."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace

import pytest

import clinometer
from clinometer.cli.arguments import cluster_of
from clinometer.engine import ClusterSettings, Silent
from clinometer.errors import SpecError
from clinometer.models.fake import FakeModel
from clinometer.models.providers.protocol import models_by_name
from clinometer.types import AuditSpec, ModelSpec
from clinometer.workflows import AuditRequest, Execution, ResumeRequest, pool, run_audit, run_resume
from clinometer.workflows.side_by_side import SharedProgress, side_by_side
from tests.attacks.samples import Tiny, answer, fake, tiny_run, verify


def do(chains, work, **given):
    finished = []
    options = {"at_once": 2, "meanwhile": lambda: None, "stop": lambda: None} | given
    side_by_side(chains, work, finished=finished.append, **options)
    return finished


def test_so_many_at_once_and_all_of_them():
    now, most, lock = 0, 0, threading.Lock()

    def work(chain):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1

    assert sorted(do(range(6), work)) == list(range(6))
    assert most == 2


def test_an_error_stops_the_others():
    stopped = threading.Event()

    def work(chain):
        if chain == 0:
            raise ValueError("no")
        assert stopped.wait(10)

    with pytest.raises(ValueError, match="no"):
        do(range(3), work, stop=stopped.set)


def test_stages_report_apart_where_that_can_be_shown():
    class Shown(Silent):
        def __init__(self):
            self.stages, self.told = [], []

        def stage(self):
            self.stages.append(Silent())
            return self.stages[-1]

        def workers(self, lines):
            self.told.append(lines)

    class Cluster:
        def notes(self):
            return []

        def lines(self):
            return ["worker 1 (a): bert, 12.0/s"]

    shown = Shown()
    shared = SharedProgress(shown)
    shared.stage()
    shared.stage()
    shared.workers(Cluster())
    assert len(shown.stages) == 2
    assert shown.told == [["worker 1 (a): bert, 12.0/s"]]


# -- cohorts


def cohort(folder, *, is_one=True):
    models = [FakeModel(answer=answer, name=name) for name in ("one", "two")]
    spec = AuditSpec(probes=("tiny",), models=tuple(ModelSpec(name=model.info.name) for model in models))
    return run_audit(
        AuditRequest(spec=spec, folder=folder, models=models_by_name(models), probes=(Tiny(),), cohort=is_one)
    )


def test_a_cohort_ends_in_the_comparison_also_when_it_is_resumed(tmp_path):
    run = cohort(tmp_path / "run")
    page = run.path / "comparison.html"
    assert "two" in page.read_text()
    page.unlink()
    models = models_by_name([FakeModel(answer=answer, name=name) for name in ("one", "two")])
    run_resume(ResumeRequest(run=run.folder, models=models, probes=(Tiny(),)))
    assert page.is_file()
    found = verify(run.path)
    assert found.problems == ()
    assert not any("comparison" in note for note in found.notes)


def test_another_run_does_not(tmp_path):
    assert not (cohort(tmp_path / "run", is_one=False).path / "comparison.html").exists()


# -- threads


def test_a_resumed_run_computes_with_the_threads_that_it_was_begun_with(tmp_path, monkeypatch):
    run = tiny_run(tmp_path / "run")
    threads = run.folder.sessions[0]["threads"]
    kept = []
    monkeypatch.setattr(pool.ModelPool, "keep_threads", lambda self, given: kept.append(given))
    clinometer.resume(run.path, models=[fake()], probes=[Tiny()])
    assert kept == [threads]


def test_workers_get_the_threads_of_the_run_unless_the_user_says_otherwise():
    spec = AuditSpec(probes=(), models=(ModelSpec(name="bert"),))
    for settings, expected in ((ClusterSettings(), 3), (ClusterSettings(threads=2), 2)):
        made = pool.ModelPool(spec, {}, Execution(executor="ray", cluster=settings))
        made.keep_threads(3)
        made.keep_threads("1, 2")  # workers that differed: nothing to keep
        assert made.elsewhere.settings.threads_of_worker == expected


# -- the command line


def test_options_of_a_cluster_need_one():
    assert cluster_of("local", None, 0, None, False) == ClusterSettings()
    found = cluster_of("ray", "auto", 3, ["gpu=1"], True)
    assert found == ClusterSettings(address="auto", workers=3, resources={"gpu": 1.0}, logs=True)
    with pytest.raises(SpecError, match=r"--ray-address, --workers: only --executor ray has workers"):
        cluster_of("local", "auto", 3, None, False)


def test_without_ray_the_extra_is_named(monkeypatch):
    from clinometer.engine.cluster.connection import RayCluster

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SpecError, match=r'pip install "clinometer\[ray\]"'):
        RayCluster(ClusterSettings())


def test_workers_with_a_gpu_compute_in_bfloat16_wherever_the_driver_is():
    made = pool.ModelPool(
        AuditSpec(probes=(), models=(ModelSpec(name="bert"),)),
        {},
        Execution(executor="ray", cluster=ClusterSettings(resources={"gpu": 1})),
    )
    assert made.elsewhere.spec_of(ModelSpec(name="bert")).dtype == "bfloat16"
    assert made.elsewhere.spec_of(replace(ModelSpec(name="bert"), dtype="float32")).dtype == "float32"
    assert made.elsewhere.batch_tokens == 262_144
