"""Runs the requests of a probe on a model. Only this room knows devices, workers and batch sizes."""

from clinometer.engine.batching import WINDOW, default_budget
from clinometer.engine.budget import Budget, Limits
from clinometer.engine.cache import AnswerCache
from clinometer.engine.cluster.settings import ClusterSettings
from clinometer.engine.executor import (
    Answered,
    Batch,
    ComputesElsewhere,
    Executor,
    ExecutorFactory,
    LocalExecutor,
    get_executor,
    local_executor,
)
from clinometer.engine.identity import KEY_VERSION, RequestIdentity
from clinometer.engine.progress import Progress, Silent
from clinometer.engine.stage import Checked, Worker, check_stage, run_stage

__all__ = [
    "KEY_VERSION",
    "WINDOW",
    "AnswerCache",
    "Answered",
    "Batch",
    "Budget",
    "Checked",
    "ClusterSettings",
    "ComputesElsewhere",
    "Executor",
    "ExecutorFactory",
    "Limits",
    "LocalExecutor",
    "Progress",
    "RequestIdentity",
    "Silent",
    "Worker",
    "check_stage",
    "default_budget",
    "get_executor",
    "local_executor",
    "run_stage",
]
