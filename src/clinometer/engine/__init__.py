"""Runs the requests of a probe on a model: the only home of device, worker and batch size."""

from clinometer.engine.batching import WINDOW, default_budget
from clinometer.engine.cache import AnswerCache
from clinometer.engine.executor import Answered, Batch, Executor, LocalExecutor
from clinometer.engine.identity import RequestIdentity
from clinometer.engine.progress import Progress, Silent
from clinometer.engine.stage import Worker, count_missing, run_stage

__all__ = [
    "WINDOW",
    "AnswerCache",
    "Answered",
    "Batch",
    "Executor",
    "LocalExecutor",
    "Progress",
    "RequestIdentity",
    "Silent",
    "Worker",
    "count_missing",
    "default_budget",
    "run_stage",
]
