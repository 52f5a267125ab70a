"""Puts the findings of all models together."""

from __future__ import annotations

from collections.abc import Sequence

from clinometer.probes.counterexamples.captions import CAPTIONS, FIGURES
from clinometer.probes.counterexamples.headlines import headlines, mitigation_headlines
from clinometer.probes.counterexamples.model_findings import model_findings
from clinometer.probes.counterexamples.notices import general_notices, model_notices
from clinometer.probes.counterexamples.options import Options
from clinometer.probes.counterexamples.tables.mitigation import mitigation_rows
from clinometer.probes.kit.before_after import tuned_notices
from clinometer.probes.protocol import Plan, Records
from clinometer.types import Findings, FindingTable


def summarise(probe: str, plans: Sequence[Plan], records: Records) -> Findings:
    """Conclude from the answers of all models; the options are the same for all."""
    options: Options = plans[0].options
    verbalizer = options.chosen_verbalizer()
    found = [model_findings(plan, records, verbalizer) for plan in plans]
    mitigation = mitigation_rows(plans, [each.view for each in found])
    notices = list(general_notices(options, verbalizer, found))
    notices += tuned_notices([plan.model for plan in plans])
    for plan, each in zip(plans, found, strict=True):
        notices += model_notices(each, causal="fill" not in plan.model.capabilities)
    return Findings(
        probe=probe,
        tables=tuple(
            FindingTable(
                name=caption.name,
                title=caption.title,
                caption=caption.text,
                rows=tuple(
                    mitigation
                    if caption.name == "mitigation"
                    else (row for each in found for row in each.rows[caption.name])
                ),
            )
            for caption in CAPTIONS
        ),
        figures=FIGURES,
        notices=tuple(notices),
        headlines=(
            *mitigation_headlines(mitigation, k=max(options.ks)),
            *(line for each in found for line in headlines(each)),
        ),
    )
