"""Attributes typical of a group, and how many of people's stereotypes are among them (stereotypes audit)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def typicality(post_logprob: ArrayLike, prior_logprob: ArrayLike) -> Floats:
    r"""Return how much more probable an attribute is for a group than for any group.

    .. math:: t = \log P_{post}(y \mid \text{Why are parents so y?})
                  - \log P_{prior}(y \mid \text{Why are [MASK] so y?})

    Equation 3 of the stereotypes paper (Section 4). Natural logarithms of any shapes that broadcast; NaN where
    either is missing, and where both are −inf.

    >>> typicality(np.log([0.2, 0.1]), np.log([0.1, 0.1])).round(3).tolist()
    [0.693, 0.0]
    """
    post, prior = np.asarray(post_logprob, dtype=np.float64), np.asarray(prior_logprob, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # −inf minus −inf: nothing is known
        return np.asarray(post - prior)


def gold_ranks(
    ranked: Mapping[str, Sequence[str]], gold: Mapping[str, Collection[str]]
) -> dict[str, dict[str, float]]:
    """Return at which place of its key's list each gold attribute stands, from 1 on; infinity where it does not.

    Attributes match exactly, in lower case. A key that is missing from `ranked` has an empty list.

    >>> gold_ranks({"nurses": ["Kind", "busy"]}, {"nurses": ["busy", "mean"]})
    {'nurses': {'busy': 2, 'mean': inf}}
    """
    found = {}
    for key, attributes in gold.items():
        places: dict[str, float] = {}
        for place, word in enumerate(ranked.get(key, ()), start=1):
            places.setdefault(word.strip().lower(), place)
        wanted = dict.fromkeys(attribute.strip().lower() for attribute in attributes)
        found[key] = {attribute: places.get(attribute, math.inf) for attribute in wanted}
    return found


def recall_at_k(
    ranked: Mapping[str, Sequence[str]], gold: Mapping[str, Collection[str]], ks: Iterable[int]
) -> dict[int, float]:
    r"""Return the share of all gold attributes that stand among the first k of their group's list, for each k.

    .. math:: R@k = \frac{\sum_g |gold_g \cap \mathrm{first}_k(ranked_g)|}{\sum_g |gold_g|}

    Section 4 of the stereotypes paper: a micro-average over attributes, exact match in lower case. Keys are groups
    (or prompts about them); one that is missing from `ranked` counts as not found, one that is missing from `gold`
    does not count. NaN where there is no gold attribute at all.

    >>> recall_at_k({"nurses": ["kind", "busy"]}, {"nurses": {"busy", "mean"}, "cooks": {"rude"}}, ks=[1, 2])
    {1: 0.0, 2: 0.3333333333333333}
    """
    wanted = list(ks)
    if any(k < 1 for k in wanted):
        raise ValueError(f"k is {min(wanted)}; expected at least 1")
    ranks = np.array([rank for places in gold_ranks(ranked, gold).values() for rank in places.values()])
    return {k: float((ranks <= k).mean()) if len(ranks) else math.nan for k in wanted}
