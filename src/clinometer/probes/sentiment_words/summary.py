"""Puts the findings of all models together."""

from __future__ import annotations

from collections.abc import Sequence

from clinometer.probes.protocol import Plan, Records
from clinometer.probes.sentiment_words.captions import CAPTIONS
from clinometer.probes.sentiment_words.figures import FIGURES, TUNING
from clinometer.probes.sentiment_words.headlines import headlines, tuning_headlines
from clinometer.probes.sentiment_words.model_findings import mark_interpretable, model_rows
from clinometer.probes.sentiment_words.notices import general_notices, model_notices
from clinometer.probes.sentiment_words.tables.methods import overlap_rows
from clinometer.probes.sentiment_words.tables.models import growth_rows, shared_rows
from clinometer.probes.sentiment_words.tables.words import ranked_rows
from clinometer.probes.sentiment_words.view import view_model
from clinometer.types import Findings, FindingTable, Notice


def summarise(probe: str, plans: Sequence[Plan], records: Records) -> Findings:
    """Conclude from the answers of all models; the options are the same for all."""
    options = plans[0].options
    views = {plan.model.name: view_model(plan, records) for plan in plans}
    every = list(views.values())
    found = {name: model_rows(view) for name, view in views.items()}
    rows = {name: [row for each in found.values() for row in each[name]] for name in next(iter(found.values()))}
    rows["ranked_words"] = ranked_rows(every)
    rows["overlap"] = list(overlap_rows(every))
    rows["shared_words"] = list(shared_rows(every))
    rows["tuning"] = growth_rows(every, seed=plans[0].seed)

    notices: list[Notice] = list(general_notices(options, plans[0].seed))
    for view in every:
        notices += model_notices(view)
    return Findings(
        probe=probe,
        tables=tuple(
            FindingTable(
                name=caption.name,
                title=caption.title,
                caption=caption.text,
                rows=tuple(mark_interpretable(rows[caption.name], views)),
            )
            for caption in CAPTIONS
        ),
        figures=(TUNING, *FIGURES) if rows["tuning"] else FIGURES,
        notices=tuple(notices),
        headlines=(
            *(line for name, view in views.items() for line in headlines(view, found[name])),
            *tuning_headlines(rows["tuning"], views),
        ),
    )
