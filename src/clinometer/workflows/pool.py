"""The models of a run, loaded when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clinometer.engine import LocalExecutor, Worker, default_budget
from clinometer.errors import ModelError
from clinometer.models.load import check_model, load_model
from clinometer.models.protocols import Model
from clinometer.types import AuditSpec, ModelInfo
from clinometer.workflows.plans import all_models, labels_of

_MUST_STAY = {
    "weights": "the weights",
    "tokenizer": "the tokenizer",
    "dtype": "the dtype",
    "code": "the adapter",
    "settings": "the configuration",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a run is computed. Nothing here may change a finding."""

    device: str = "auto"
    batch_tokens: int = 0  # padded tokens in one batch; 0 chooses by device
    cache: Path | None = None  # a folder of answers shared between runs


class ModelPool:
    """Loads the models of a run when they are first needed, and holds one at a time."""

    def __init__(self, spec: AuditSpec, loaded: Mapping[str, Model], execution: Execution) -> None:
        models = all_models(spec)
        self.labels = labels_of(models)  # those under audit first, then those beside them
        self._specs = dict(zip(self.labels, models, strict=True))
        self._given = loaded
        self._execution = execution
        self._current: tuple[str, Model] | None = None
        self._worker: tuple[str, Worker] | None = None

    def check_sources(self) -> None:
        """Fail on a model that does not exist before the first one is loaded."""
        for label, spec in self._specs.items():
            if label not in self._given:
                check_model(spec)

    def get(self, label: str) -> Model:
        """Return the loaded model; the one held before is let go."""
        if label in self._given:
            return self._given[label]
        if self._current is None or self._current[0] != label:
            self._current = self._worker = None  # before loading: two large models may not fit together
            self._current = (label, load_model(self._specs[label], device=self._execution.device))
        return self._current[1]

    def worker(self, expected: ModelInfo) -> Worker:
        """Return the model ready for work; it must be the one with which the run began."""
        model = self.get(expected.name)
        if self._worker is None or self._worker[0] != expected.name:
            for field, what in _MUST_STAY.items():
                if getattr(expected, field) != getattr(model.info, field):
                    raise ModelError(
                        f"{what} of {expected.name} changed since this run began; "
                        "put it back, or start a new run with `clinometer audit`"
                    )
            tokens = self._execution.batch_tokens or default_budget(self._execution.device)
            worker = Worker(model=model, executor=LocalExecutor(model), batch_tokens=tokens)
            self._worker = (expected.name, worker)
        return self._worker[1]
