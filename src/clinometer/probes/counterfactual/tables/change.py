"""What changed from before to after: I.F. and G.F. of a checkpoint against those of another model, paired."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clinometer.metrics import Change, PairedChange, Reduction, paired_change
from clinometer.probes.counterfactual.measures import left_out
from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.tables.distances import EXCESS, GROUP, INDIVIDUAL, MEASURED
from clinometer.probes.counterfactual.tunings import Tuned
from clinometer.probes.counterfactual.view import View
from clinometer.probes.kit.numbers import Label, with_q
from clinometer.types import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One checkpoint against one other model: one attribute, one scorer."""

    model: str
    tuned: Tuned
    against: str
    chosen: Chosen
    scorer: str
    change: PairedChange
    n: int  # texts of both

    @property
    def labels(self) -> dict[str, Label]:
        """What the tables of changes begin with."""
        return {
            **tuned_labels(self.model, self.tuned),
            "attribute": self.chosen.name,
            "scorer": self.scorer,
            "against": self.against,
        }


def tuned_labels(model: str, tuned: Tuned) -> dict[str, Label]:
    """Return what says of which checkpoint a row is."""
    return {"model": model, "method": tuned.method, "strength": tuned.strength}


def compare(tuned: Tuned, views: Sequence[View]) -> Iterator[Compared]:
    """Set a checkpoint against its base, and against its control if there is one."""
    view = views[tuned.model]
    for against, number in tuned.against.items():
        for chosen in view.attributes:
            for old, new in zip(views[number].scores, view.scores, strict=True):
                before, after = old.of(chosen), new.of(chosen)
                yield Compared(
                    model=view.model,
                    tuned=tuned,
                    against=against,
                    chosen=chosen,
                    scorer=new.scorer,
                    change=paired_change(
                        before, after, subgroups=chosen.attribute.value_subgroups, over=left_out(before)
                    ),
                    n=int((~np.isnan(before)).sum() + (~np.isnan(after)).sum()),
                )


def change_rows(compared: Sequence[Compared]) -> list[Finding]:
    """Return after − before of every measure of one checkpoint.

    q is over its excess rows against one model: whether something changed, and whether the method did that, are
    two questions, and what is found of one must not lower the bar of the other.
    """
    return [
        row
        for against in dict.fromkeys(each.against for each in compared)
        for row in with_q(row for each in compared if each.against == against for row in _changes(each))
    ]


def _changes(each: Compared) -> Iterator[Finding]:
    found = each.change
    for measure, whole, excess, reduction in (
        (INDIVIDUAL, found.individual, found.individual_excess, found.individual_reduction),
        (GROUP, found.group, found.group_excess, found.group_reduction),
    ):
        labels = {**each.labels, "measure": measure}
        yield _change({**labels, "quantity": MEASURED}, whole, reduced_by=math.nan, n=each.n)
        # the p-value of the excess alone is corrected: that of the measured value asks the same again
        yield _change(
            {**labels, "quantity": EXCESS}, excess, reduced_by=100 * reduction.share, n=each.n, p=excess.p
        )


def _change(labels: dict[str, Label], found: Change, *, reduced_by: float, n: int, p: float = math.nan) -> Finding:
    return Finding(
        labels={
            **labels,
            "before": round(found.before, 4),
            "after": round(found.after, 4),
            "reduced_by": round(reduced_by, 1),
        },
        estimate=found.change,
        low=found.low,
        high=found.high,
        p=p,
        n=n,
    )


def reduction_rows(compared: Sequence[Compared]) -> Iterator[Finding]:
    """Yield how much of the excess before is gone, in percent."""
    for each in compared:
        found = each.change
        for measure, excess, reduction in (
            (INDIVIDUAL, found.individual_excess, found.individual_reduction),
            (GROUP, found.group_excess, found.group_reduction),
        ):
            yield _reduction({**each.labels, "measure": measure}, excess, reduction, n=each.n)


def _reduction(labels: dict[str, Label], excess: Change, reduction: Reduction, *, n: int) -> Finding:
    return Finding(
        labels={**labels, "excess_before": round(excess.before, 4), "excess_after": round(excess.after, 4)},
        estimate=100 * reduction.share,
        low=100 * reduction.low,
        high=100 * reduction.high,
        n=n,
    )
