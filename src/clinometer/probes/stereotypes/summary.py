"""Puts the findings of all models together."""

from __future__ import annotations

from collections.abc import Sequence

from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stereotypes.captions import CAPTIONS, figures_of
from clinometer.probes.stereotypes.headlines import headlines
from clinometer.probes.stereotypes.notices import notices
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.questions import questions
from clinometer.probes.stereotypes.recall import ranks_of_gold, read_gold
from clinometer.probes.stereotypes.similarity import compare_models
from clinometer.probes.stereotypes.tables.coverage import coverage_rows
from clinometer.probes.stereotypes.tables.emotions import category_rows, emotion_rows
from clinometer.probes.stereotypes.tables.negativity import negativity_rows
from clinometer.probes.stereotypes.tables.negativity_change import negativity_change_rows
from clinometer.probes.stereotypes.tables.ranking import prompt_ranking_rows, ranking_rows
from clinometer.probes.stereotypes.tables.recall import recall_rows
from clinometer.probes.stereotypes.tables.shift import attribute_shift_rows, recall_change_rows, shift_rows
from clinometer.probes.stereotypes.tables.similarity import similarity_rows
from clinometer.probes.stereotypes.tunings import tunings_of
from clinometer.probes.stereotypes.view import ALL, view_model
from clinometer.types import Finding, Findings, FindingTable


def summarise(probe: str, plans: Sequence[Plan], records: Records) -> Findings:
    """Conclude from the answers of all models; the options are the same for all.

    A table that has nothing to say is left out, with its figure: recall without human stereotypes, similarity of a
    single model, shifts without a tuned one.
    """
    options: Options = plans[0].options
    asked, groups, lexicon, gold = (
        questions(options),
        options.chosen_groups(),
        options.chosen_lexicon(),
        read_gold(options),
    )
    views = [view_model(plan, records, asked, groups, lexicon) for plan in plans]
    rows: dict[str, list[Finding]] = {
        "ranking": [row for view in views for row in ranking_rows(view)],
        "category_emotions": [row for view in views for row in category_rows(view)],
        "emotions": [row for view in views for row in emotion_rows(view)],
        "negativity": [row for view in views for row in negativity_rows(view)],
        "coverage": [row for view in views for row in coverage_rows(view)],
    }
    tunings = tunings_of([plan.model for plan in plans])
    if len(gold):
        ranks = [ranks_of_gold(view, gold) for view in views]
        rows["recall"] = [
            row for view, of_view in zip(views, ranks, strict=True) for row in recall_rows(view, gold, of_view)
        ]
        rows["prompt_ranking"] = [row for view in views for row in prompt_ranking_rows(view, gold)]
        rows["recall_change"] = recall_change_rows(views, tunings, gold, ranks)
    if len(views) > 1:
        categories = views[0].categories
        compared = [
            compare_models(views, each) for each in ((ALL, *categories) if len(categories) > 1 else categories)
        ]
        rows["similarity"] = similarity_rows([view.model for view in views], compared)
        rows["shift"] = list(shift_rows(views, tunings, compared))
    rows["negativity_change"] = negativity_change_rows(views, tunings)
    rows["attribute_shift"] = list(attribute_shift_rows(views, tunings))
    tables = tuple(
        FindingTable(name=each.name, title=each.title, caption=each.text, rows=tuple(rows[each.name]))
        for each in CAPTIONS
        if rows.get(each.name)
    )
    present = {table.name for table in tables}
    return Findings(
        probe=probe,
        tables=tables,
        figures=tuple(figure for figure in figures_of(tunings) if figure.table in present),
        notices=tuple(notices(views, gold)),
        headlines=tuple(headlines(views, rows)),
    )
