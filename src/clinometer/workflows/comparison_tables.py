"""The tables of a comparison: what changed, where, what both were asked, and every model beside the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from clinometer.probes.kit.asking import Units
from clinometer.probes.kit.before_after import change_row
from clinometer.probes.kit.compare import Change, most_changed, places_of
from clinometer.types import ChangeVerdict, Finding, FindingTable


def standings_of(audit: str, units: Mapping[str, Sequence[Units]], *, seed: int) -> Iterator[Finding]:
    """Yield every model on each question of an audit that at least two were asked."""
    for question in dict.fromkeys(each.question for given in units.values() for each in given):
        of_question = {
            model: [each for each in given if each.question == question] for model, given in units.items()
        }
        # a question may be measured in several ways: what most models have is shown of all
        usual = Counter(
            tuple(each.same.items())
            for given in of_question.values()
            for each in given
            if each.names and not each.gate
        )
        asked = {
            model: max(given, key=lambda each: (not each.gate, usual[tuple(each.same.items())]))
            for model, given in of_question.items()
            if given
        }
        if len(asked) < 2:
            continue
        for place in places_of(audit, asked, seed=seed):
            labels: dict[str, str | int | float] = {
                "audit": audit,
                "measure": place.units.title,
                "model": place.model,
                "group": " ".join(place.letters),
                "asked": place.units.asked,
                "reason": place.units.gate,
            }
            yield Finding(
                labels=labels, estimate=place.lean, low=place.low, high=place.high, n=len(place.units.names)
            )


def tables_of_comparison(
    verdicts: Sequence[ChangeVerdict],
    changes: Sequence[Change],
    shared: Sequence[Finding],
    standings: Sequence[Finding],
    similar: Sequence[Finding],
) -> Iterator[FindingTable]:
    """Yield every table of a comparison, those without rows, too."""
    for name, title, rows in (
        ("changes", "What changed", tuple(map(change_row, verdicts))),
        ("units", "Where they differ most", tuple(row for change in changes for row in _unit_rows(change))),
        ("ranks", "Order of units, where only that compares", tuple(_rank_rows(changes))),
        ("shared", "What both were asked", tuple(shared)),
        ("similarity", "How alike models see groups (ρ)", tuple(similar)),
        ("standings", "Every model, and which cannot be told apart", tuple(standings)),
    ):
        yield FindingTable(name=name, title=title, caption=_CAPTIONS[name], rows=rows)


_CAPTIONS = {
    "changes": (
        "How much farther from even-handed the second model is (|lean after| − |lean before|), over the "
        "units that both were asked about. Intervals: 95 %, from paired differences and sums of the same "
        "units; with several trainings, what differs between them is in it. q: Benjamini–Hochberg over the "
        "measures of an audit of a pair. detectable: the smallest change that "
        "would be found four times in five. change: of the lean with its sign. n: shared units."
    ),
    "units": (
        "Words, groups, occupations, conditions or templates, those that differ most first: value after "
        "minus value before. Nothing is tested here."
    ),
    "ranks": "Spearman's ρ over shared units of two models that were asked in ways whose values do not compare.",
    "shared": (
        "How many units both models share (estimate), of how many each was asked about, with which "
        "templates and how."
    ),
    "similarity": (
        "Representational similarity of the groups' emotion profiles (stereotypes audit): 1 is the same "
        "relations between groups, 0 none in common. Over the groups that all of these models have; n: "
        "groups."
    ),
    "standings": (
        "The lean of every model. Models that share a letter cannot be told apart by paired tests (q over "
        "all pairs of a measure). Only models that were asked in comparable ways have letters of one kind."
    ),
}


def _rank_rows(changes: Sequence[Change]) -> Iterator[Finding]:
    for change in changes:
        if not math.isnan(change.match.ranks):
            names = ("audit", "measure", "before", "after")
            labels = {name: getattr(change.verdict, name) for name in names}
            yield Finding(labels=labels, estimate=change.match.ranks, n=len(change.match.names))


def _unit_rows(change: Change) -> Iterator[Finding]:
    verdict = change.verdict
    if not math.isnan(change.match.ranks):
        return
    for name, part, one, other in most_changed(change):
        labels: dict[str, str | int | float] = {
            "audit": verdict.audit,
            "measure": verdict.measure,
            "before": verdict.before,
            "after": verdict.after,
            "unit": name,
            "part": part,
            "value_before": one,
            "value_after": other,
        }
        yield Finding(labels=labels, estimate=other - one, n=1)
