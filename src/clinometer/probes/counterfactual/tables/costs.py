"""What a change costs: perplexity, similarity and mentions against those of another model, paired."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clinometer.probes.counterfactual.measures import FEWEST_TEMPLATES
from clinometer.probes.counterfactual.tables.change import tuned_labels
from clinometer.probes.counterfactual.tables.guards import Counts, Reading, perplexity
from clinometer.probes.counterfactual.tunings import Tuned
from clinometer.probes.kit.numbers import Floats, Ints, Label, model_rng
from clinometer.stats import Interval, cluster_bootstrap
from clinometer.types import Finding

PERPLEXITY = "perplexity"
RATIO, DIFFERENCE = "after / before", "after − before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What guards one model's fairness: the counts behind S.S. and S.S.c, and the held-out text if it was read."""

    model: str
    counts: tuple[Counts, ...]
    reading: Reading | None


def cost_rows(tuned: Tuned, guarded: Sequence[Guarded], *, seed: int, draws: int) -> Iterator[Finding]:
    """Yield the ratio of perplexities and the differences of S.S. and S.S.c of one checkpoint."""
    new = guarded[tuned.model]
    for against, number in tuned.against.items():
        old = guarded[number]
        rng = model_rng(seed, f"{new.model}\0costs\0{against}")
        labels = {**tuned_labels(new.model, tuned), "against": against}
        if old.reading is not None and new.reading is not None:
            yield from _perplexities(labels, old.reading, new.reading, rng=rng, draws=draws)
        for before, after in zip(old.counts, new.counts, strict=True):
            yield _share(labels, before, after, rng=rng, draws=draws)


def _perplexities(
    labels: dict[str, Label], old: Reading, new: Reading, *, rng: np.random.Generator, draws: int
) -> Iterator[Finding]:
    both = np.concatenate([old.sums, new.sums], axis=1)
    counted = (both[:, 1] > 0) & (both[:, 3] > 0)
    for part, inside in new.parts.items():
        some = both[inside & counted]
        yield _row(
            {**labels, "guard": PERPLEXITY, "of": part, "by": "passages", "quantity": RATIO},
            _bootstrap(some, _log_ratio, None, rng=rng, draws=draws),
            before=perplexity(some[:, :2]),
            after=perplexity(some[:, 2:]),
            n=len(some),
            through=math.exp,  # resampled on the scale of logarithms, on which ratios are symmetric
        )


def _share(
    labels: dict[str, Label], before: Counts, after: Counts, *, rng: np.random.Generator, draws: int
) -> Finding:
    columns = np.stack([before.hits, before.texts, after.hits, after.texts], axis=-1)
    templates, values, _ = columns.shape
    of_template = np.repeat(np.arange(templates), values) if templates >= FEWEST_TEMPLATES else None
    found = _bootstrap(columns.reshape(-1, 4), _difference, of_template, rng=rng, draws=draws)
    return _row(
        {**labels, "guard": after.measure, "of": after.chosen.name, "by": after.by, "quantity": DIFFERENCE},
        found,
        before=before.share,
        after=after.share,
        n=int(before.texts.sum() + after.texts.sum()),
        through=float,
    )


def _bootstrap(
    columns: Floats,
    statistic: Callable[[Floats], Floats],
    clusters: Ints | None,
    *,
    rng: np.random.Generator,
    draws: int,
) -> Interval | None:
    """Resample rows of sums before and after together; nothing where one of them counts nothing."""
    if not (columns[:, [1, 3]].sum(axis=0) > 0).all():
        return None
    return cluster_bootstrap(columns, clusters, statistic=statistic, rng=rng, draws=draws)


def _row(
    labels: dict[str, Label],
    found: Interval | None,
    *,
    before: float,
    after: float,
    n: int,
    through: Callable[[float], float],
) -> Finding:
    labels = {**labels, "before": round(before, 4), "after": round(after, 4)}
    if found is None:
        return Finding(labels=labels, estimate=math.nan, n=n)
    return Finding(
        labels=labels,
        estimate=through(float(found.estimate)),
        low=through(float(found.low)),
        high=through(float(found.high)),
        p=float(found.p),
        n=n,
    )


def _log_ratio(means: Floats) -> Floats:
    """log PPL after − log PPL before."""
    ratio: Floats = means[:, 0] / means[:, 1] - means[:, 2] / means[:, 3]
    return ratio


def _difference(means: Floats) -> Floats:
    difference: Floats = means[:, 2] / means[:, 3] - means[:, 0] / means[:, 1]
    return difference
