"""What would be asked of a model that only its owner can call, as a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from clinometer.errors import InputError, SpecError
from clinometer.models.endpoint.written import Format, question_id, save_questions
from clinometer.models.protocols import Call
from clinometer.models.providers.answers import unanswered
from clinometer.probes import PROBES
from clinometer.probes.protocol import Probe
from clinometer.spec import with_folders
from clinometer.types import AskedAs, AuditSpec
from clinometer.workflows.planned import planned_stages, unasked
from clinometer.workflows.plans import probe_options, probes_of, with_user_data


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsRequest:
    """Questions to be written: those that an audit asks first. `kind` is how the model can be asked."""

    spec: AuditSpec
    out: Path
    kind: AskedAs = ""
    form: Format = "plain"
    model: str = "MODEL"  # what the batch format says of whom it asks
    probes: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenQuestions:
    """How many questions were written, by audit, and which audits will ask more once these are answered."""

    counts: dict[str, int]
    later: tuple[str, ...]
    left_out: tuple[str, ...]  # audits that cannot ask such a model


def write_questions(request: QuestionsRequest) -> WrittenQuestions:
    """Write the first questions of every audit of a spec; the file must not exist."""
    if request.out.exists():
        raise InputError(f"{request.out} exists; name a new file for the questions")
    spec = with_folders(request.spec, base=Path.cwd())
    if not spec.probes:
        raise SpecError(f"the list of probes is empty; valid: {', '.join(sorted(PROBES))}")
    probes = probes_of(spec, given=request.probes)
    spec = with_user_data(spec, probes)
    for probe in probes.values():
        probe.check(probe_options(probe, spec))
    kind = request.kind or next((model.kind for model in spec.models), "")
    model = unanswered(kind)
    info = replace(model.info, name="model")
    calls: dict[str, Call] = {}
    counts: dict[str, int] = {}
    later: dict[str, None] = {}
    for stage in planned_stages(spec, probes, model, info):
        if stage.items is None:
            later[stage.audit] = None
            continue
        before = len(calls)
        for item in stage.items:
            calls |= {question_id(call): call for call in model.calls(item.request)}
        counts[stage.audit] = len(calls) - before
    save_questions(request.out, calls.values(), form=request.form, model=request.model)
    left_out = tuple(unasked(spec, probes, [info]))
    return WrittenQuestions(counts=counts, later=tuple(later), left_out=left_out)
