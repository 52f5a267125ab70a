"""A shift from request to report: a model tuned on growing shares of corpora, and how its stereotypes change."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field, replace
from pathlib import Path

from clinometer.data.corpora import corpus_name
from clinometer.engine import Progress, Silent
from clinometer.errors import InputError
from clinometer.train import Checkpoint, KeptBase, MaskedSettings, tune_masked
from clinometer.workflows.checkpoints import (
    CheckpointAudit,
    Seeds,
    Tuned,
    check_corpora,
    check_place,
    plan_audit,
    seeds_of,
    short_name,
    train_and_audit,
    with_seed,
)
from clinometer.workflows.pool import Execution

PROBE = "stereotypes"
LOCK = "shift.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftRequest:
    """A masked model to tune on shares of corpora, each corpus a series of its own."""

    model: str
    corpora: tuple[Path, ...]
    fractions: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    settings: MaskedSettings = field(default_factory=MaskedSettings)  # each has its own fraction and seed
    seeds: Seeds = None  # of the trainings of each corpus and share; the audit has that of the settings
    out: Path | None = None  # None: tuned/<model>-shift
    audit: CheckpointAudit | None = field(default_factory=CheckpointAudit)  # None: no audit
    execution: Execution = field(default_factory=Execution)

    @property
    def place(self) -> Path:
        """The folder that checkpoints and audit go to."""
        return self.out if self.out is not None else Path("tuned") / f"{short_name(self.model)}-shift"


def run_shift(request: ShiftRequest, *, progress: Progress | None = None) -> Tuned:
    """Tune a model on every share of every corpus and audit it; what is there already is not made again."""
    progress = progress or Silent()
    if not request.fractions:
        raise InputError("name at least one share of the corpus, such as --fraction 1")
    seeds = seeds_of(request.seeds, first=request.settings.seed, audit=request.audit)
    each = [
        replace(request.settings, fraction=share, seed=seed)
        for share in sorted(set(request.fractions))
        for seed in seeds
    ]
    names = [corpus_name(file) for file in request.corpora]
    for name, count in collections.Counter(names).items():
        if count > 1:
            raise InputError(f"{count} corpora are called {name!r}; give each file once, under a name of its own")
    check_corpora(request.corpora)
    stem = short_name(request.model)
    wanted = [
        (file, settings, request.place / with_seed(f"{stem}-{name}-{settings.fraction:g}", settings.seed, seeds))
        for file, name in zip(request.corpora, names, strict=True)
        for settings in each
    ]
    audit = plan_audit(
        request.audit,
        request.model,
        [folder for _, _, folder in wanted],
        probes=(PROBE,),
        seed=request.settings.seed,
        follows={},
    )
    check_place(request.place, lock=LOCK)

    def train() -> list[Checkpoint]:
        base = KeptBase(request.model)
        return [
            tune_masked(
                base,
                file,
                out=folder,
                settings=settings,
                device=request.execution.device,
                progress=progress,
            )
            for file, settings, folder in wanted
        ]

    return train_and_audit(
        request.place, train, lock=LOCK, audit=audit, execution=request.execution, progress=progress
    )
