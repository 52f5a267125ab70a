"""A mitigation from request to report: checkpoints, a control, and the audit of before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clinometer.data import Attribute, load_attribute, read_attribute
from clinometer.engine import Progress, Silent
from clinometer.errors import InputError, ModelError
from clinometer.models.load import capabilities_of
from clinometer.models.providers.local import built_as, resolve
from clinometer.train import (
    Checkpoint,
    CorpusSettings,
    LabellingSettings,
    Material,
    MitigationSettings,
    Variant,
    check_methods,
    mitigate_all,
    read_material,
    variants,
)
from clinometer.train.processes import join_processes, wait_for_all
from clinometer.types import ModelKind, ModelSpec
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

LOCK = "mitigate.lock"
HELD_OUT = "held-out.txt"  # beside the checkpoints: the text that perplexity is measured on
# what a mitigated model is measured with, before and after
PROBES: Mapping[str, tuple[str, ...]] = {
    "causal": ("counterfactual",),
    "masked": ("stereotypes", "stigma", "counterexamples"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MitigateRequest:
    """A causal or masked model to mitigate, once for each method and strength; strength 0 is the control.

    Without strengths, every method that has one gets 10.
    """

    model: str
    corpus: tuple[Path, ...]  # several files are one corpus
    attribute: str = "occupation"  # one of ours …
    attribute_file: Path | None = None  # … or your own instead
    methods: tuple[str, ...] = ("embedding",)
    strengths: tuple[float, ...] | None = None
    settings: MitigationSettings = field(default_factory=MitigationSettings)  # each has its own λ and seed
    seeds: Seeds = None  # of the trainings of each method and strength; all else has that of the settings
    corpus_settings: CorpusSettings = field(default_factory=CorpusSettings)
    out: Path | None = None  # None: tuned/<model>-<attribute>-mitigated
    audit: CheckpointAudit | None = field(default_factory=CheckpointAudit)  # None: no audit
    execution: Execution = field(default_factory=Execution)


def run_mitigation(request: MitigateRequest, *, progress: Progress | None = None) -> Tuned:
    """Train every method with every strength, and audit before and after; what is there already is not made again.

    Everything that can be checked without work is checked first. Of several processes that train together (as
    `accelerate launch` starts them), the first one alone writes and audits.
    """
    progress = progress or Silent()
    attribute, wanted, kind = _checked(request)
    stem = f"{short_name(request.model)}-{short_name(attribute.name)}"
    place = request.out if request.out is not None else Path("tuned") / f"{stem}-mitigated"
    audit = plan_audit(
        request.audit,
        request.model,
        [place / each.name for each in wanted],
        probes=PROBES[kind],
        seed=request.settings.seed,
        follows=_audit_options(request, kind, attribute, place),
        written_later=("text_file",),
    )
    check_corpora(request.corpus)
    check_place(place, lock=LOCK)
    join_processes()
    material = _read(request, attribute, progress)

    def train() -> tuple[Checkpoint, ...]:
        wait_for_all()  # until the first process has checked the audit
        return mitigate_all(
            request.model,
            material,
            wanted,
            out=place,
            labelling=_labelling(request),
            device=request.execution.device,
            progress=progress,
        )

    return train_and_audit(
        place,
        train,
        lock=LOCK,
        audit=audit,
        execution=request.execution,
        progress=progress,
        files={HELD_OUT: material.held_out_text.encode()},
    )


def _labelling(request: MitigateRequest) -> LabellingSettings:
    return request.corpus_settings.labelling or LabellingSettings(seed=request.settings.seed)


def _checked(request: MitigateRequest) -> tuple[Attribute, tuple[Variant, ...], ModelKind]:
    """Return what the request means; refuse what cannot be mitigated, before a file is read or written."""
    attribute = (
        read_attribute(str(request.attribute_file))
        if request.attribute_file is not None
        else load_attribute(request.attribute)
    )
    seeds = seeds_of(request.seeds, first=request.settings.seed, audit=request.audit)
    wanted = tuple(
        Variant(name=with_seed(each.name, seed, seeds), settings=replace(each.settings, seed=seed))
        for each in variants(
            request.methods,
            request.strengths,
            model=short_name(request.model),
            attribute=attribute.name,
            common=request.settings,
        )
        for seed in seeds
    )
    kind = built_as(resolve(ModelSpec(name=request.model)))
    if kind not in PROBES:
        raise InputError(
            f"{request.model!r} is a {kind} model; causal and masked models can be mitigated, such as"
            " builtin:causal"
        )
    if kind == "causal" and request.settings.hidden != MitigationSettings().hidden:
        raise InputError(
            f"--hidden {request.settings.hidden:g} is for masked models, and {request.model!r} is a causal one;"
            " leave it out"
        )
    methods = [each.settings.method for each in wanted]
    check_methods(methods, kind=kind, model=request.model, attribute=attribute.name)
    scorer = _labelling(request).scorer
    if "sentiment" in methods and "classify" not in capabilities_of(ModelSpec(name=scorer)):
        raise ModelError(f"{scorer!r} cannot judge sentiment; expected a classifier such as builtin:sentiment")
    return attribute, wanted, kind


def _audit_options(
    request: MitigateRequest, kind: ModelKind, attribute: Attribute, place: Path
) -> dict[str, dict[str, Any]]:
    """Return the options that follow from the mitigation: ask about what was trained, read what was not."""
    if kind != "causal":
        return {}
    asked: dict[str, Any] = {"attributes": [attribute.name]}
    if request.attribute_file is not None:
        asked = {"attributes": [], "attribute_file": str(request.attribute_file)}
    return {"counterfactual": {**asked, "text_file": str(place / HELD_OUT)}}


def _read(request: MitigateRequest, attribute: Attribute, progress: Progress) -> Material:
    progress.note(f"reading {', '.join(file.name for file in request.corpus)}")
    material = read_material(
        request.corpus,
        attribute,
        held_out=request.corpus_settings.held_out,
        at_most=request.corpus_settings.at_most,
        seed=request.settings.seed,
    )
    found = material.found
    read = "" if request.settings.unit == "sentence" else ", in windows of their documents"
    progress.note(
        f"{len(found.sentences):,} sentences to train on{read}; {sum(found.with_template.values()):,} were left"
        " out because a template of the evaluation appears in them"
    )
    return material
