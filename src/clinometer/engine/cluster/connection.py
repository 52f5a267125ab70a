"""Ray, as far as it is used here: actors, and telling a death from an error. Nothing else imports it."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, final

from clinometer.engine.cluster.files import FileServer
from clinometer.engine.cluster.hands import Hand
from clinometer.engine.cluster.settings import ClusterSettings
from clinometer.engine.cluster.worker import Origin, Worker
from clinometer.engine.executor import Batch
from clinometer.errors import SpecError, WorkerError, reason

_NODE_DIED = ("its node has died", "node died", "node was terminated", "Owner's node has crashed", "NODE_DIED")


@final
class RayCluster:
    """A connection to Ray. A cluster that was not there before is ended with it."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._ray = _import_ray()
        self._ours = not self._ray.is_initialized()  # a notebook, or a test, may be connected already
        if self._ours:
            self._connect()
        self._servers: dict[str, Any] = {}
        self._kind = self._ray.remote(Worker)

    def _connect(self) -> None:
        ray, settings = self._ray, self._settings
        elsewhere = {"address": settings.address} if settings.address else self._here()
        quiet: dict[str, Any] = {} if settings.logs else {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(**elsewhere, **quiet)
        except Exception as error:  # Ray raises anything where there is no cluster
            where = settings.address or "this machine"
            raise WorkerError(
                f"no Ray cluster at {where} ({reason(error)}); start one with `ray start --head`, or leave "
                "--ray-address out to use this machine. One that asks for a token wants RAY_AUTH_MODE=token here, "
                "too, and its ~/.ray/auth_token"
            ) from error
        if not settings.logs:
            _hush()

    def _here(self) -> dict[str, Any]:
        """Return how to start a cluster on this machine, with room for the workers that are wanted."""
        settings = self._settings
        wanted = max(1, settings.workers) * settings.cpus
        own = {
            name: value * max(1, settings.workers) for name, value in settings.actor_options()["resources"].items()
        }
        return {
            "address": "local",  # else Ray joins whatever cluster it finds on this machine
            "num_cpus": max(1, round(wanted)) if settings.workers else None,
            "resources": own or None,
            "include_dashboard": False,
        }

    def total(self) -> Mapping[str, float]:
        """Return what the nodes that are there have, all together."""
        found: dict[str, float] = self._ray.cluster_resources()
        return found

    def start(self) -> Any:
        """Ask Ray for a worker; it comes when there is room for it."""
        settings = self._settings
        # a worker that dies is replaced by the driver, which knows what it had
        made = self._kind.options(max_restarts=0, max_task_retries=0, **settings.actor_options())
        return made.remote(settings.threads_of_worker)

    def serve(self, folder: str) -> Any:
        """Return the actor that gives workers on other machines the files of a model on this one."""
        if folder in self._servers:
            return self._servers[folder]
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        made = self._ray.remote(FileServer).options(num_cpus=0, max_restarts=-1, scheduling_strategy=here)
        self._servers[folder] = made.remote(folder)
        return self._servers[folder]

    def hello(self, actor: Any) -> Any:
        """Ask a worker who it is."""
        return actor.hello.remote().future()

    def load(self, actor: Any, origin: Origin, drop: Sequence[str]) -> Any:
        """Let a worker load a model."""
        return actor.load.remote(origin, drop).future()

    def answer(self, actor: Any, key: str, batches: Sequence[Batch]) -> Any:
        """Let a worker answer batches."""
        return actor.answer.remote(key, batches).future()

    def end(self, actor: Any) -> None:
        """End a worker, whether it lives or not."""
        with contextlib.suppress(Exception):
            self._ray.kill(actor, no_restart=True)

    def is_death(self, error: BaseException) -> bool:
        """Tell whether a worker, or its node, is gone; otherwise it is there and refuses."""
        kinds = self._ray.exceptions
        return isinstance(error, kinds.RayError) and not isinstance(error, kinds.RayTaskError)

    def is_node_death(self, error: BaseException, hand: Hand) -> bool:
        """Tell whether a whole node is gone: then no batch is to blame."""
        if any(sign in str(error) for sign in _NODE_DIED):
            return True
        node = hand.arrived.node if hand.arrived else ""
        with contextlib.suppress(Exception):
            return any(each["NodeID"] == node and not each["Alive"] for each in self._ray.nodes())
        return False

    def cause(self, error: BaseException) -> BaseException:
        """Return what a worker raised, as it raised it."""
        cause = getattr(error, "cause", None)
        return cause if isinstance(cause, BaseException) else error

    def close(self) -> None:
        """End what was started here."""
        for server in self._servers.values():
            self.end(server)
        if self._ours:
            self._ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError as error:
        raise SpecError('the executor "ray" needs Ray: pip install "clinometer[ray]"') from error
    return ray


def _hush() -> None:
    """Keep Ray from printing about workers that died: the driver says so in its own words."""
    with contextlib.suppress(Exception):
        from ray._private import worker

        worker.print_to_stdstream = lambda *_, **__: None
