"""What an audit will ask, before anything is asked: for `--dry-run` and for `clinometer questions`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clinometer.models.protocols import Model
from clinometer.probes.protocol import Plan, Probe, Stage
from clinometer.questions import items_of
from clinometer.types import AuditSpec, Item, ModelInfo
from clinometer.workflows.checks import NoRecords
from clinometer.workflows.plans import fits, probe_options


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStage:
    """A stage that the model under audit answers; `items` is None where it depends on earlier answers."""

    audit: str
    stage: Stage
    items: Iterator[Item] | None


def planned_stages(
    spec: AuditSpec, probes: Mapping[str, Probe], model: Model, info: ModelInfo
) -> Iterator[PlannedStage]:
    """Yield what will be asked of a model, audit by audit; later stages without their questions."""
    for name, probe in probes.items():
        if not fits(probe, info):
            continue
        plan = Plan(options=probe_options(probe, spec), seed=spec.seed, model=info)
        own = [stage for stage in probe.stages(plan) if not stage.by]
        for number, stage in enumerate(own):
            first = number == 0
            items = items_of(probe.questions(stage, plan, NoRecords())) if first else None
            yield PlannedStage(audit=name, stage=stage, items=items)


def unasked(spec: AuditSpec, probes: Mapping[str, Probe], infos: Sequence[ModelInfo]) -> list[str]:
    """Return the audits that can ask none of the models."""
    return [name for name, probe in probes.items() if not any(fits(probe, info) for info in infos)]
