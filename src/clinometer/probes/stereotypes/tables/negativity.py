"""Groups whose attributes are more negative, or more positive, than those of the other groups."""

from __future__ import annotations

import numpy as np

from clinometer.probes.kit.numbers import Floats, Ints, Numbers, with_q
from clinometer.probes.stereotypes.view import View
from clinometer.stats import paired_share_interval
from clinometer.types import Finding

FEWEST = 10  # covered words that an interval and a test need
SHUFFLES = 9999  # at least; more where more than 500 groups are tested


def negativity_rows(view: View) -> list[Finding]:
    """Return each group's negativity minus the mean of all groups, the most negative of a category first."""
    valences = [_valences(words, view) for words in view.profile_words]
    n = np.array([len(each) for each in valences])
    negative, positive = (np.array([(each == sign).sum() for each in valences]) for sign in (1, -1))
    negativity = group_negativity(view)
    centre = float(np.nanmean(negativity)) if n.any() else np.nan
    limits = paired_share_interval(negative, positive, np.where(n < FEWEST, 0, n))
    numbers = Numbers(
        estimate=negativity - centre,
        low=limits.low - centre,
        high=limits.high - centre,
        p=shuffle_p(valences, centre, rng=view.rng, shuffles=max(SHUFFLES, 20 * len(valences))),
        n=n,
    )
    rows = with_q(
        numbers.finding(
            (g,),
            {
                "model": view.model,
                "category": group.category,
                "group": group.name,
                "negativity": float(negativity[g]),
            },
        )
        for g, group in enumerate(view.groups)
    )
    place = {category: i for i, category in enumerate(view.categories)}
    return sorted(rows, key=lambda row: (place[str(row.labels["category"])], -np.nan_to_num(row.estimate)))


def group_negativity(view: View) -> Floats:
    """Return the share of negative minus the share of positive attributes of each group; NaN: none is covered."""
    return np.array(
        [each.mean() if len(each) else np.nan for each in (_valences(w, view) for w in view.profile_words)]
    )


def _valences(words: tuple[str, ...], view: View) -> Ints:
    """Return 1 for each covered word that is negative, −1 for a positive one, 0 for neither and for both."""
    emotions = [view.lexicon.words[word] for word in words if word in view.lexicon.words]
    return np.array([("negative" in each) - ("positive" in each) for each in emotions], dtype=np.int64)


def shuffle_p(
    valences: list[Ints], centre: float, *, rng: np.random.Generator, shuffles: int = SHUFFLES
) -> Floats:
    """Return p of "these words are drawn from those of all groups alike", two-sided, for each group.

    The words of all groups are shuffled over the groups. What one group then gets is so many words drawn without
    replacement from the pool, of which only the number of negative, neutral and positive ones counts: they are
    drawn from that distribution. NaN for a group with fewer than `FEWEST` words.
    """
    pool = np.concatenate(valences) if valences else np.zeros(0, dtype=np.int64)
    kinds = np.array([-1, 0, 1])
    sizes = np.array([(pool == kind).sum() for kind in kinds])
    p = np.full(len(valences), np.nan)
    for g, of_group in enumerate(valences):
        n = len(of_group)
        if n < FEWEST:
            continue
        drawn = rng.multivariate_hypergeometric(sizes, n, size=shuffles, method="marginals") @ kinds / n
        # the mean over groups is not quite that over words: both are compared with what the pool gives
        observed = abs(float(of_group.mean()) - centre)
        as_far = (np.abs(drawn - pool.mean()) >= observed - 1e-12).sum()
        p[g] = (as_far + 1) / (shuffles + 1)
    return p
