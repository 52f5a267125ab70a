"""What tuning does to the emotions, the recall and the attributes of groups (the paper's Section 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from clinometer.probes.kit.numbers import Floats, Label, Numbers, with_q
from clinometer.probes.stereotypes.recall import RANKINGS, Gold
from clinometer.probes.stereotypes.similarity import Similarity
from clinometer.probes.stereotypes.tables.listing import listed
from clinometer.probes.stereotypes.tables.recall import FEWEST, gold_categories, share_by_groups
from clinometer.probes.stereotypes.tunings import Tuning
from clinometer.probes.stereotypes.view import View, attributes_by_group
from clinometer.stats import paired_share_interval, sign_flip_test
from clinometer.types import Finding

TOP = 15  # attributes of each template that are compared, as in the paper's Figure 7
CHANGE_KS = (1, 5, 10, 25, 50, 100, 200)
FLIPS = 9999


def shift_rows(views: Sequence[View], tunings: Sequence[Tuning], found: Sequence[Similarity]) -> Iterator[Finding]:
    """Yield Δρ, the similarity of a checkpoint with its base minus 1, by category."""
    for tuning in tunings:
        at = tuning.base, tuning.tuned
        for each in found:
            yield Finding(
                labels={**tuning.labels(views), "category": each.category},
                estimate=float(each.mean[at]) - 1,
                low=float(each.low[at]) - 1,
                high=float(each.high[at]) - 1,
                n=each.groups,
            )


def recall_change_rows(
    views: Sequence[View], tunings: Sequence[Tuning], gold: Gold, ranks: Sequence[Floats]
) -> list[Finding]:
    """Return the recall of each checkpoint minus that of its base, with the lists re-ranked."""
    rows: list[Finding] = []
    ks = [k for k in CHANGE_KS if k <= views[0].options.top_k]
    after = RANKINGS.index("after")
    for tuning in tunings:
        view = views[tuning.tuned]
        recalled = [
            (ranks[model][:, after, None] <= np.array(ks)).astype(np.float64)
            for model in (tuning.tuned, tuning.base)
        ]
        change = recalled[0] - recalled[1]
        of_tuning = []
        for category in gold_categories(gold):
            chosen = gold.members(category)
            values, groups = change[chosen], gold.group[chosen]
            alike = paired_share_interval((values > 0).sum(axis=0), (values < 0).sum(axis=0), len(values))
            numbers = _tested(view, share_by_groups(view, values, groups, alike=alike), values, groups)
            for i, k in enumerate(ks):
                labels: dict[str, Label] = {**tuning.labels(views), "category": category, "k": k}
                of_tuning.append(numbers.finding((i,), labels))
        rows += with_q(of_tuning)
    return rows


def _tested(
    view: View, numbers: Numbers, change: Floats, groups: np.ndarray[tuple[int, ...], np.dtype[np.str_]]
) -> Numbers:
    if len(np.unique(groups)) < FEWEST:
        return numbers
    p = sign_flip_test(change, clusters=groups, rng=view.rng, draws=FLIPS).p
    return Numbers(estimate=numbers.estimate, low=numbers.low, high=numbers.high, p=p, n=numbers.n)


def attribute_shift_rows(views: Sequence[View], tunings: Sequence[Tuning]) -> Iterator[Finding]:
    """Yield which attributes each group gained, lost and kept, and the share of the base's that it kept."""
    tops = {number: _top(views[number]) for tuning in tunings for number in (tuning.base, tuning.tuned)}
    for tuning in tunings:
        before, after = tops[tuning.base], tops[tuning.tuned]
        for g, group in enumerate(views[tuning.tuned].groups):
            old, new = before.get(g, []), after.get(g, [])
            kept = [word for word in old if word in set(new)]
            yield Finding(
                labels={
                    **tuning.labels(views),
                    "category": group.category,
                    "group": group.name,
                    "added": listed([word for word in new if word not in set(old)]),
                    "removed": listed([word for word in old if word not in set(new)]),
                    "kept": listed(kept),
                },
                estimate=len(kept) / len(old) if old else float("nan"),
                n=len(old),
            )


def _top(view: View) -> dict[int, list[str]]:
    """Return the distinct words among the first of each template of a group, the most typical first."""
    first = (
        attributes_by_group(view.answers.attributes, view.questions, view.groups)
        .filter(pl.col("after") <= TOP)
        .select("group", "word")
        .unique()
    )
    ordered = view.lists.join(first, on=["group", "word"], how="semi", maintain_order="left")
    return dict(ordered.group_by("group", maintain_order=True).agg("word").iter_rows())
