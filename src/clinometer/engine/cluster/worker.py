"""The process that has the model. Ray starts it on some machine; it loads models and answers batches, in turn."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from clinometer.engine.cluster.files import fetch_from
from clinometer.engine.executor import Answered, Batch, LocalExecutor
from clinometer.engine.provenance import describe_session
from clinometer.models.load import load_model
from clinometer.models.protocols import Model
from clinometer.types import ModelInfo, ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a worker gets a model from: its spec, or the model itself where only this run has it in memory."""

    key: str  # one model, however often it is asked for
    spec: ModelSpec
    device: str
    release: str
    folder: str = ""  # where its files are on the driver's machine; "": every machine has them in a package
    server: Any = None  # the actor that gives out these files
    carried: bytes = b""  # the model, pickled
    size: int = 0  # bytes of weights in memory, about
    expected: ModelInfo | None = None  # who it must be


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a worker says when it has loaded a model."""

    info: ModelInfo
    session: dict[str, Any]  # versions, device and threads: what may move the last bits
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """What a worker says first."""

    process: int
    machine: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answers of some batches, and how long they took."""

    answered: tuple[Answered, ...]
    seconds: float


@final
class Worker:
    """Loads models, keeps those that it is not told to drop, and answers batches in the order they come."""

    def __init__(self, threads: int) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the cores belong to the workers
        self._threads = threads
        self._models: dict[str, LocalExecutor] = {}

    def hello(self) -> Arrived:
        """Say who is there."""
        ray = sys.modules.get("ray")  # in a test, a worker may be a thread
        node = ray.get_runtime_context().get_node_id() if ray is not None and ray.is_initialized() else ""
        return Arrived(process=os.getpid(), machine=platform.node(), node=node)

    def load(self, origin: Origin, drop: Sequence[str]) -> Ready:
        """Let go of some models, load another, and say who it is and what computes it."""
        began = time.perf_counter()
        for key in drop:
            self._models.pop(key, None)
        _give_memory_back()
        model = self._carried(origin.carried) if origin.carried else self._loaded(origin)
        self._use_threads()
        self._models[origin.key] = LocalExecutor(model)
        session = {**describe_session(release=origin.release, device=origin.device), "executor": "ray"}
        return Ready(info=model.info, session=session, seconds=time.perf_counter() - began)

    def answer(self, key: str, batches: Sequence[Batch]) -> Result:
        """Answer batches; a GPU gets the next ones before the first answers are read."""
        began = time.perf_counter()
        answered = tuple(self._models[key].run(batches))
        return Result(answered=answered, seconds=time.perf_counter() - began)

    def _loaded(self, origin: Origin) -> Model:
        spec = origin.spec
        if origin.folder:
            there = os.path.isdir(origin.folder)  # the driver's own machine, or a disk that all machines see
            spec = replace(spec, name=origin.folder if there else fetch_from(origin.server, origin.key))
        return load_model(spec, device=origin.device)

    def _carried(self, data: bytes) -> Model:
        from ray import cloudpickle  # its own driver packed it, a moment ago

        model: Model = cloudpickle.loads(data)
        return model

    def _use_threads(self) -> None:
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(self._threads)


def _give_memory_back() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
