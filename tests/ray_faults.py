"""A run on a Ray cluster of three nodes on this machine, and what can be done to it while it goes on.

`benchmarks/ray_faults.py` does it fifty times in one run; the tests do it a few times.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import clinometer
from clinometer.engine import ClusterSettings
from clinometer.engine.cluster.executor import RayExecutors
from clinometer.probes.protocol import Stage
from clinometer.types import Fill, Finding, Findings, FindingTable, Item
from clinometer.workflows import Execution
from tests.ray_answers import Treacherous

WORDS = ("he", "she", "they")


@dataclass(frozen=True)
class Options:
    questions: int = 240


@dataclass(frozen=True)
class Numbers:
    """Asks many short questions in two stages; the second depends on the answers of the first."""

    name: str = "numbers"
    title: str = "Numbers"
    question: str = "Is anything lost?"
    paper: str = "none"
    sources: str = "none"
    capabilities: tuple[str, ...] = ("fill",)
    roles: tuple = ()
    options: type = Options
    user_data: dict = field(default_factory=dict)
    profiles: dict = field(default_factory=lambda: {"quick": {}, "standard": {}, "paper": {}})

    def check(self, options):
        pass

    def stages(self, plan):
        return (Stage(name="first", size=plan.options.questions), Stage(name="then", size=40))

    def questions(self, stage, plan, records):
        if stage.name == "first":
            texts = [f"Number {number} is [MASK]." for number in range(plan.options.questions)]
        else:
            first = records.table(model=plan.model.name, stage="first", columns=["got_logprobs"])["got_logprobs"]
            texts = [f"After {first[number][0]:.6f} comes [MASK]." for number in range(40)]
        for text in texts:
            yield Item(request=Fill(text=text, words=WORDS), tags={"text": text})

    def findings(self, plans, records):
        rows = []
        for plan in plans:
            for stage in self.stages(plan):
                table = records.table(model=plan.model.name, stage=stage.name)
                for word in range(3):
                    values = [each[word] for each in table["got_logprobs"]]
                    labels = {"model": plan.model.name, "stage": stage.name, "word": WORDS[word]}
                    rows.append(Finding(labels=labels, estimate=sum(values) / len(values), n=len(values)))
        table = FindingTable(name="means", title="Means", caption="Means.", rows=tuple(rows))
        return Findings(probe=self.name, tables=(table,), figures=())


def fakes(count=2, *, calm=False):
    return [Treacherous(f"fake-{number}", calm=calm) for number in range(count)]


def audit(folder, execution, *, questions=240, models=2):
    return clinometer.audit(
        fakes(models),
        probes=[Numbers()],
        folder=folder,
        options={"numbers": {"questions": questions}},
        execution=execution,
    )


def on_ray(workers=3, **settings):
    """The execution on the cluster that is connected, and the factory that made its workers."""
    factory = RayExecutors(ClusterSettings(workers=workers, **settings), release=clinometer.__version__)
    return Execution(executor=factory, batch_tokens=60), factory


def findings_of(folder: Path) -> dict[str, bytes]:
    root = folder / "findings"
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }


@contextlib.contextmanager
def three_nodes():
    """A head without workers, and nodes that can be taken away."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
        from ray.cluster_utils import Cluster

        quick = {
            "health_check_period_ms": 500,
            "health_check_failure_threshold": 2,
            "health_check_timeout_ms": 3000,
        }
        cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "_system_config": quick, "include_dashboard": False},
        )
        nodes = [cluster.add_node(num_cpus=1, wait=False) for _ in range(2)]
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR", namespace="tests")
        from clinometer.engine.cluster.connection import _hush

        _hush()
    try:
        yield cluster, nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


def audit_with_faults(folder, cluster, nodes, *, count, seed, questions, every=(0.2, 1.5)) -> list[str]:
    """Audit in a thread; meanwhile, here, kill workers and nodes and let nodes join. Return what was done.

    Ray lets only the main thread start a node.
    """
    execution, factory = on_ray(3)
    faults = Faults(cluster, nodes, factory, seed=seed)
    failed: list[BaseException] = []

    def work():
        try:
            audit(folder, execution, questions=questions)
        except BaseException as error:
            failed.append(error)

    running = threading.Thread(target=work)
    running.start()
    while running.is_alive() and len(faults.done) < count:
        time.sleep(faults.rng.uniform(*every))
        faults.one()
    running.join()
    if failed:
        raise failed[0]
    return faults.done


class Faults:
    """Does one of the things that go wrong in a cluster: mostly a worker dies, now and then a node; one joins."""

    def __init__(self, cluster, nodes, factory, *, seed):
        self.cluster, self.nodes, self.factory = cluster, nodes, factory
        self.rng = random.Random(seed)
        self.done: list[str] = []

    def one(self):
        kind = self.rng.choices(["worker", "node", "join"], [6, 1, 1])[0]
        if kind == "worker":
            driver = self.factory._driver
            hands = [hand for hand in driver.hands() if hand.session] if driver else []
            if hands:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.rng.choice(hands).arrived.process, signal.SIGKILL)
                    self.done.append("worker")
        elif kind == "node" and len(self.nodes) > 1:
            self.cluster.remove_node(self.nodes.pop(self.rng.randrange(len(self.nodes))), allow_graceful=False)
            self.done.append("node")
        elif kind == "join" and len(self.nodes) < 3:
            self.nodes.append(self.cluster.add_node(num_cpus=1, wait=False))
            self.done.append("join")
