"""Puts the findings of all models together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clinometer.data.attitude_words import load_attitudes
from clinometer.probes.kit.numbers import model_rng, with_q
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stigma.attitudes import MaskedView, masked_answers, masked_views
from clinometer.probes.stigma.captions import CAPTIONS
from clinometer.probes.stigma.chat import ChatView, chat_view
from clinometer.probes.stigma.classes import ALL_CLASSIFIERS, ClassifierView, classifier_view, negative_shares
from clinometer.probes.stigma.figures import FIGURES
from clinometer.probes.stigma.headlines import headlines
from clinometer.probes.stigma.notices import notices
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.tables.agreement import agreement_rows
from clinometer.probes.stigma.tables.categories import category_rows
from clinometer.probes.stigma.tables.change import change_rows
from clinometer.probes.stigma.tables.classifiers import class_rows, condition_share_rows, share_difference_rows
from clinometer.probes.stigma.tables.conditions import above_half_rows, condition_rows, distance_rows, excess_rows
from clinometer.probes.stigma.tables.correlation import correlation_rows, scatter_rows
from clinometer.probes.stigma.tables.coverage import coverage_rows, word_rows
from clinometer.probes.stigma.tables.levels import (
    attitude_difference_rows,
    attitude_level_rows,
    condition_template_rows,
    distance_difference_rows,
    distance_level_rows,
)
from clinometer.probes.stigma.tables.readings import reading_rows
from clinometer.probes.stigma.tables.templates import template_rows
from clinometer.types import Figure, Finding, Findings, FindingTable

Rows = dict[str, list[Finding]]


def summarise(probe: str, plans: Sequence[Plan], records: Records) -> Findings:
    """Conclude from the answers of all models; the options are the same for all."""
    options: Options = plans[0].options
    ratings = options.chosen_ratings()
    masked_plans = [plan for plan in plans if "fill" in plan.model.capabilities]
    others = [plan for plan in plans if plan not in masked_plans]
    answers = [masked_answers(plan, records, ratings) for plan in masked_plans]
    masked = masked_views(masked_plans, answers)
    classifiers = [classifier_view(plan, records) for plan in others if "classify" in plan.model.capabilities]
    chats = [chat_view(plan, records) for plan in others if "classify" not in plan.model.capabilities]

    rows: Rows = {caption.name: [] for caption in CAPTIONS}
    for view in masked:
        _add(rows, _masked_rows(view))
    for each in answers:
        view = next(view for view in masked if view.model == each.model)
        _add(rows, {"coverage": coverage_rows(view, each), "words": word_rows(each)})
    for classifier in classifiers:
        _add(rows, _classifier_rows(classifier))
    for chat in chats:
        _add(rows, _chat_rows(chat))
    if classifiers:
        rng = model_rng(plans[0].seed, ALL_CLASSIFIERS)
        rows["condition_classes"] = list(condition_share_rows(classifiers, rng=rng))
    rows["change"] = change_rows(masked_plans, masked)
    _add(rows, _joint_rows(masked, classifiers))
    if options.ratings_file:
        rows["ratings_agreement"] = list(agreement_rows(ratings, load_attitudes()))
    return Findings(
        probe=probe,
        tables=tuple(
            FindingTable(name=each.name, title=each.title, caption=each.text, rows=tuple(rows[each.name]))
            for each in CAPTIONS
            if rows[each.name]
        ),
        figures=tuple(figure for figure in FIGURES if _has_rows(figure, rows[figure.table])),
        notices=tuple(notices(plans, ratings, answers, masked, classifiers, chats, rows)),
        headlines=tuple(headlines(rows, masked, classifiers, chats)),
    )


def _masked_rows(view: MaskedView) -> dict[str, Iterable[Finding]]:
    return {
        "difference": with_q(attitude_difference_rows(view)),
        "levels": attitude_level_rows(view),
        "categories": category_rows(view),
        "conditions": condition_rows(view),
        "excess": excess_rows(view),
        "above_half": above_half_rows(view),
        "templates": template_rows(view),
        "condition_templates": condition_template_rows(view),
    }


def _classifier_rows(view: ClassifierView) -> dict[str, Iterable[Finding]]:
    return {"difference": with_q(share_difference_rows(view)), "classes": class_rows(view)}


def _chat_rows(view: ChatView) -> dict[str, Iterable[Finding]]:
    return {
        "difference": with_q(distance_difference_rows(view)),
        "distance_levels": distance_level_rows(view),
        "social_distance": distance_rows(view),
        "readings": reading_rows(view),
    }


def _joint_rows(masked: Sequence[MaskedView], classifiers: list[ClassifierView]) -> dict[str, Iterable[Finding]]:
    if not masked or not classifiers:
        return {}
    # the first view is that of all models; without one, of the model that the others were tuned from
    view = next((view for view in masked if not view.tuned), masked[0])
    attitude, shares, roster = view.overall, negative_shares(classifiers), view.roster
    return {
        "both_measures": scatter_rows(attitude, shares, roster),
        "correlation": correlation_rows(attitude, shares, roster),
    }


def _add(rows: Rows, more: dict[str, Iterable[Finding]]) -> None:
    for name, found in more.items():
        rows[name] += found


def _has_rows(figure: Figure, rows: Sequence[Finding]) -> bool:
    return any(all(row.labels[name] == value for name, value in figure.filters.items()) for row in rows)
