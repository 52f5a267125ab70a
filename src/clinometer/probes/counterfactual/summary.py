"""Puts the findings of all models together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clinometer.probes.counterfactual.captions import CAPTIONS
from clinometer.probes.counterfactual.figures import figures
from clinometer.probes.counterfactual.headlines import headlines
from clinometer.probes.counterfactual.measures import measure
from clinometer.probes.counterfactual.mitigation_headlines import mitigation_headlines
from clinometer.probes.counterfactual.notices import (
    general_notices,
    human_notices,
    model_notices,
    pair_notices,
    tuning_notices,
)
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.tables.change import change_rows, compare, reduction_rows
from clinometer.probes.counterfactual.tables.costs import Guarded, cost_rows
from clinometer.probes.counterfactual.tables.distances import (
    fairness_rows,
    pair_rows,
    subgroup_rows,
    template_rows,
)
from clinometer.probes.counterfactual.tables.distributions import distribution_rows, scorer_rows
from clinometer.probes.counterfactual.tables.guards import (
    perplexity_rows,
    read_perplexity,
    relevance_counts,
    relevance_rows,
)
from clinometer.probes.counterfactual.tables.human import (
    agreement_rows,
    correlation_rows,
    human_fairness_rows,
)
from clinometer.probes.counterfactual.tables.mitigation import mitigation_rows, weight_rows
from clinometer.probes.counterfactual.tables.texts import text_rows, word_rows
from clinometer.probes.counterfactual.tables.values import value_rows, verdict_rows
from clinometer.probes.counterfactual.told import Told
from clinometer.probes.counterfactual.tunings import tuned_models
from clinometer.probes.counterfactual.view import view_model
from clinometer.probes.protocol import Plan, Records
from clinometer.types import Finding, Findings, FindingTable

Rows = dict[str, list[Finding]]


def summarise(probe: str, plans: Sequence[Plan], records: Records) -> Findings:
    """Conclude from the texts of all models; the options are the same for all."""
    options: Options = plans[0].options
    views = [view_model(plan, records) for plan in plans]
    rows: Rows = {caption.name: [] for caption in CAPTIONS}
    notices = list(general_notices(plans, views))
    lines: list[str] = []
    models = [plan.model for plan in plans]
    tuned = tuned_models(models)
    guarded: list[Guarded] = []
    told: list[Told] = []
    for number, (plan, view) in enumerate(zip(plans, views, strict=True)):
        is_checkpoint = any(checkpoint.model == number for checkpoint in tuned)
        measured = measure(view, single_pairs=not is_checkpoint)
        fairness = fairness_rows(measured)
        guards = Guarded(
            model=view.model, counts=relevance_counts(view), reading=read_perplexity(plan, view, records)
        )
        guarded.append(guards)
        _add(rows, fairness=fairness, scorers=scorer_rows(view), relevance=relevance_rows(view, guards.counts))
        for each in measured:
            _add(
                rows,
                values=value_rows(each),
                pairs=pair_rows(each),
                subgroups=subgroup_rows(each),
                templates=template_rows(each),
                verdict=verdict_rows(each, epsilon=options.epsilon),
                distributions=distribution_rows(each),
            )
        if guards.reading is not None:
            _add(rows, perplexity=perplexity_rows(plan, guards.reading))
        _add(rows, words=word_rows(view, measured), texts=text_rows(view, measured))
        _add(rows, human_correlation=correlation_rows(view), human_fairness=human_fairness_rows(view))
        notices += model_notices(view)
        if not is_checkpoint:  # of these is said what changed
            notices += pair_notices(measured)
            lines += headlines(view, measured, fairness)
    for checkpoint in tuned:
        compared = list(compare(checkpoint, views))
        costs = list(cost_rows(checkpoint, guarded, seed=plans[0].seed, draws=options.draws))
        changes = change_rows(compared)
        _add(rows, change=changes, reduction=reduction_rows(compared), costs=costs)
        about = checkpoint.shown_for(views[0].attributes)
        base = views[checkpoint.base].model
        told += [
            Told.of(checkpoint, chosen, compared, base=base, changes=changes, costs=costs) for chosen in about
        ]
    lines += mitigation_headlines(told)
    _add(rows, mitigation=mitigation_rows(models, tuned, views[0].attributes, rows))
    _add(rows, weights=weight_rows(models, tuned))
    notices += tuning_notices(models, tuned, rows["costs"], draws=options.draws)
    _add(rows, human_agreement=agreement_rows(options))
    notices += human_notices(options, views)
    present = frozenset(name for name, found in rows.items() if found)
    return Findings(
        probe=probe,
        tables=tuple(
            FindingTable(name=each.name, title=each.title, caption=each.text, rows=tuple(rows[each.name]))
            for each in CAPTIONS
            if each.name in present
        ),
        figures=figures(views[0].attributes, present, models=len(views), bases=len({each.base for each in tuned})),
        notices=tuple(notices),
        headlines=tuple(lines),
    )


def _add(rows: Rows, **more: Iterable[Finding]) -> None:
    for name, found in more.items():
        rows[name] += found
