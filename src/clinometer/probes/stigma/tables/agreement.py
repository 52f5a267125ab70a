"""How far the user's ratings of words agree with ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clinometer.metrics.attitude import RATINGS
from clinometer.stats import cohens_kappa
from clinometer.types import Finding


def agreement_rows(given: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[Finding]:
    """Yield Cohen's kappa over the words that both lists rate: of all ratings, then of each against the rest."""
    shared = sorted(set(given) & set(ours))
    pairs = {"all four": ([given[word] for word in shared], [ours[word] for word in shared])}
    for rating in RATINGS:
        pairs[f"{rating} or not"] = (
            [str(given[word] == rating) for word in shared],
            [str(ours[word] == rating) for word in shared],
        )
    for name, (first, second) in pairs.items():
        kappa = cohens_kappa(first, second)
        yield Finding(
            labels={"ratings": name, "agreement": kappa.observed, "given": len(given), "ours": len(ours)},
            estimate=kappa.estimate,
            low=kappa.low,
            high=kappa.high,
            n=kappa.n,
        )
