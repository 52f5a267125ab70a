"""The models of a run: loaded when they are needed, and kept while they fit together."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clinometer import __version__
from clinometer.engine import (
    Budget,
    ClusterSettings,
    ComputesElsewhere,
    Executor,
    ExecutorFactory,
    Limits,
    Progress,
    Worker,
    default_budget,
    get_executor,
    local_executor,
)
from clinometer.engine.provenance import use_threads
from clinometer.errors import ModelError, SpecError, StoppedError, nearest
from clinometer.models.endpoint.model import EndpointModel
from clinometer.models.endpoint.offer import METER
from clinometer.models.endpoint.sending import CONCURRENCY, Free, Pace, Patience
from clinometer.models.endpoint.written import question_id, save_questions
from clinometer.models.load import Providers, check_model, identity_of, inspect_model, load_model, weight_bytes
from clinometer.models.protocols import Call, CanSend, Model
from clinometer.models.providers.answers import AnswerFiles, AnswersModel
from clinometer.models.providers.gguf import GgufFiles
from clinometer.models.providers.openai import OpenAIEndpoints
from clinometer.models.providers.protocol import GivenModels
from clinometer.store import RunFolder
from clinometer.types import AuditSpec, ModelInfo, ModelSpec
from clinometer.workflows.plans import all_models, labels_of

# Loaded models are kept for later stages while their weights together are no larger than this: small ones all,
# large ones one at a time.
KEPT_BYTES = 4 * 2**30
QUESTIONS = "questions.jsonl"  # in the run folder: what only the owner of a model can answer
_SHOWN = 10  # lines of a file of answers that are named
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}

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
    executor: str | ExecutorFactory = "local"  # who runs the batches: a registered name, or your own
    concurrency: int = CONCURRENCY  # calls to an endpoint at a time, at most
    limits: Limits = field(default_factory=Limits)  # what may be spent on endpoints
    accept_missing: bool = False  # conclude without answers that a file of answers does not have
    patience: Patience = field(default_factory=Patience)  # how long is waited for one
    cluster: ClusterSettings = field(default_factory=ClusterSettings)  # of executor="ray"


class ModelPool:
    """Loads each model of a run when it is first needed.

    A model may run code of its own if the spec says so and `trusted` names it. None: the spec was made by this
    very call, and is believed.
    """

    def __init__(
        self,
        spec: AuditSpec,
        given: Mapping[str, Model],
        execution: Execution,
        *,
        trusted: Collection[str] | None = None,
        accept_code_change: bool = False,
    ) -> None:
        models = all_models(spec)
        self.labels = labels_of(models)  # those under audit first, then their assistants
        self._specs = dict(zip(self.labels, models, strict=True))
        self._providers = Providers(GivenModels(given))
        self._execution = execution
        self._given = given
        self._factory = get_executor(execution.executor, cluster=execution.cluster, release=__version__)
        # who computes on other machines: here a model only describes itself and measures requests
        self.elsewhere = self._factory if isinstance(self._factory, ComputesElsewhere) else None
        if self.elsewhere is not None:
            self._specs = {label: self.elsewhere.spec_of(model) for label, model in self._specs.items()}
        self._lock = threading.RLock()  # several stages may ask for their models at once
        self._threads = 0
        self.device = execution.device
        self.accepted: dict[str, str] = {}  # models whose code changed, and how; the user goes on knowingly
        self.accepts_code_change = accept_code_change
        self._trusted = trusted
        for name in trusted or ():
            known = {name for label, model in self._specs.items() for name in (label, model.name)}
            if name not in known:
                raise SpecError(f"{name!r} is not a model of this run; {nearest(name, known)}")
        self._loaded: dict[str, Model] = {}  # the longest unused first
        self._workers: dict[str, Worker] = {}
        self.budget = Budget(execution.limits)

    def check_sources(self) -> None:
        """Fail on a model that does not exist before the first one is loaded."""
        for spec in self._specs.values():
            check_model(spec, providers=self._providers)

    def look_at(self, label: str) -> Model:
        """Return a model that can describe itself and measure requests; without weights where not all fit."""
        if self.elsewhere is not None or self._all_fit:
            return self.get(label)
        with self._metered(self._specs[label]):
            return inspect_model(self._specs[label], device=self._execution.device, providers=self._providers)

    @functools.cached_property
    def _all_fit(self) -> bool:
        known = self._specs.values()
        return sum(weight_bytes(spec, providers=self._providers) for spec in known) <= KEPT_BYTES

    def holds(self, label: str) -> bool:
        """Tell whether a model is in memory."""
        return label in self._loaded

    def get(self, label: str) -> Model:
        """Return the model, loaded; those that were used longest ago are let go where it would get tight."""
        model = self._loaded.pop(label, None)
        if model is None:
            self._let_go(KEPT_BYTES)
            model = self._load(label)
            self._let_go(KEPT_BYTES - self._size(model.info))
        self._loaded[label] = model
        return model

    def worker(self, expected: ModelInfo) -> Worker:
        """Return the model ready for work; it must be the one with which the run began.

        When a run is resumed, what a model's files tell is compared before they are loaded: one that is not the
        model of the run stays shut.
        """
        with self._lock:
            return self._worker(expected)

    def _worker(self, expected: ModelInfo) -> Worker:
        label = expected.name
        if label not in self._workers:
            if self._trusted is not None and not self.holds(label):  # the run may come from a stranger
                self._require_trust(label)
                _require_same(expected, identity_of(self._specs[label], providers=self._providers))
            model = self.get(label)
            if self.accepts_code_change and expected.code != model.info.code:
                self.accepted[label] = f"{expected.code} → {model.info.code}"
            expected = replace(expected, code=model.info.code) if label in self.accepted else expected
            grows = ("weights", "tokenizer") if isinstance(model, AnswersModel) else ()  # stage by stage
            _require_same(expected, {name: getattr(model.info, name) for name in _MUST_STAY if name not in grows})
            if model.info.settings.keys() != expected.settings.keys():
                raise _changed("settings", label)
            default = self.elsewhere.batch_tokens if self.elsewhere else default_budget(self._execution.device)
            tokens = self._execution.batch_tokens or default
            executor = self._executor(label, model)
            pace = Pace(self._execution.concurrency)
            meter = self.budget.meter(self._specs[label].price) if isinstance(model, EndpointModel) else Free()
            self._workers[label] = Worker(
                model=model,
                executor=executor,
                batch_tokens=tokens,
                pace=pace,
                meter=meter,
                patience=self._execution.patience,
            )
        return self._workers[label]

    def finish_written(self, awaited: Mapping[str, Sequence[Call]], run: RunFolder, progress: Progress) -> None:
        """Say what is wrong with files of answers; where some are missing, write the questions and stop."""
        (run.path / QUESTIONS).unlink(missing_ok=True)  # those of an earlier time
        for label, model in self._loaded.items():
            if not isinstance(model, AnswersModel):
                continue
            answers = model.answers
            for wrong in answers.wrong[:_SHOWN]:
                progress.note(f"{model.file.name}: {wrong}")
            if len(answers.wrong) > _SHOWN:
                progress.note(f"{model.file.name}: {len(answers.wrong) - _SHOWN:,} more lines cannot be used")
            others = [] if awaited.get(label) else answers.not_among(_recorded_ids(run, label))
            if others:
                progress.note(f"{model.file.name}: {len(others):,} answers not asked for, such as {others[0]}")
            if calls := awaited.get(label):
                distinct = {question_id(call): call for call in calls}
                place = run.path / QUESTIONS
                save_questions(place, distinct.values(), form=answers.form)
                raise StoppedError(
                    f"{len(distinct):,} answers are missing in {model.file}; the questions are in {place}: add "
                    "their answers to the file"
                )

    def _executor(self, label: str, model: Model) -> Executor:
        spec, device = replace(self._specs[label], alias=label), self._execution.device
        if self.elsewhere is None:
            return self._factory(model, spec=self._specs[label], device=device)
        if isinstance(model, CanSend):  # it is elsewhere already
            return local_executor(model, spec=spec, device=device)
        made = self.elsewhere.carry if spec.name in self._given else self.elsewhere
        return made(model, spec=spec, device=device)

    def is_sent(self, label: str) -> bool:
        """Tell whether a model is asked call by call: its connections belong to one thread at a time."""
        return isinstance(self._providers.of(self._specs[label].name), (OpenAIEndpoints, GgufFiles, AnswerFiles))

    def keep_threads(self, threads: object) -> None:
        """Compute with as many threads as a run was begun with: their number moves the last bits on a CPU."""
        if isinstance(threads, int) and threads > 0:
            self._threads = threads
            if self.elsewhere is not None:
                self.elsewhere.keep_threads(threads)

    def close(self) -> None:
        """End what computes elsewhere."""
        if self.elsewhere is not None:
            self.elsewhere.close()

    def _require_trust(self, label: str) -> None:
        spec = self._specs[label]
        if not spec.trust_remote_code or {label, spec.name} & set(self._trusted or ()):
            return
        raise ModelError(
            f"the spec of this run wants to run code that comes with {label}, and a spec may come from anybody: "
            f"read that code, and if you trust it, say so yourself with --trust-remote-code {label}"
        )

    def _load(self, label: str) -> Model:
        try:
            return self._opened(label)
        except (RuntimeError, MemoryError):
            if not self._loaded:
                raise
        # most likely no room beside those that are kept: try once more alone
        self._loaded.clear()
        self._workers.clear()
        return self._opened(label)

    def _opened(self, label: str) -> Model:
        spec = self._specs[label]
        if self.elsewhere is not None:  # the weights stay where they are
            with self._metered(spec):
                model = inspect_model(spec, device="cpu", providers=self._providers)
        else:
            with self._metered(spec):
                model = load_model(spec, device=self._execution.device, providers=self._providers)
            if self._threads and self._execution.device in ("auto", "cpu"):
                use_threads(self._threads)
        if isinstance(model, AnswersModel):
            model.accepts_missing = self._execution.accept_missing
        return model

    @contextlib.contextmanager
    def _metered(self, spec: ModelSpec) -> Iterator[None]:
        """Let an endpoint that is opened within the block be tried only as far as the budget goes."""
        before = METER.set(functools.partial(self.budget.meter, spec.price))
        try:
            yield
        finally:
            METER.reset(before)

    def _let_go(self, room: int) -> None:
        """Drop models, the longest unused first, until the rest is no larger than the room."""
        while self._loaded and sum(self._size(model.info) for model in self._loaded.values()) > room:
            label = next(iter(self._loaded))
            del self._loaded[label]
            self._workers.pop(label, None)

    def _size(self, info: ModelInfo) -> int:
        """Return how much memory a model takes here."""
        return 0 if self.elsewhere is not None else _size(info)


def _recorded_ids(run: RunFolder, label: str) -> set[str]:
    """Return the ids of the recorded answers of a model; those of one request are joined by a bar."""
    found: set[str] = set()
    for key in run.stages():
        if key.model == label and "from_id" in run.column_names(key):
            for ids in run.table(key, columns=["from_id"])["from_id"].drop_nulls():
                found |= set(str(ids).split(" | "))
    return found


def _require_same(expected: ModelInfo, found: Mapping[str, Any]) -> None:
    """Raise ModelError for the first of these fields of a model that is not as in models.json.

    Of the settings only those are compared that were found: the others are not known before the model is loaded.
    """
    for name in _MUST_STAY:
        if name not in found:
            continue
        began_with = getattr(expected, name)
        if name == "settings":
            began_with = {key: began_with.get(key) for key in found[name]}
        if began_with != found[name]:
            raise _changed(name, expected.name)


def _changed(field: str, label: str) -> ModelError:
    knowingly = ", go on knowingly with --accept-code-change" if field == "code" else ""
    return ModelError(
        f"{_MUST_STAY[field]} of {label} changed since this run began; "
        f"put it back{knowingly}, or start a new run with `clinometer audit`"
    )


def _size(info: ModelInfo) -> int:
    return info.parameters * _BYTES.get(info.dtype.removeprefix("torch."), 4)
