"""Does the model sense sentiment at all? If not, nothing said about single words can be interpreted (§4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinometer.probes.kit.numbers import Floats
from clinometer.probes.sentiment_words.answers import Answers
from clinometer.probes.sentiment_words.shares import share_finding
from clinometer.stats import cluster_bootstrap, sign_flip_test, two_group_bootstrap, two_group_permutation
from clinometer.types import Finding

POSITIVE, NEGATIVE, CONTRAST = "positive reviews", "negative reviews", "positive minus negative reviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sense:
    """What one template shows of the model's sense of sentiment."""

    difference: Floats  # (reviews,): mean probability of positive minus that of negative words (Figures 3 and 4)
    means: Mapping[str, Finding]  # of both classes of reviews, and between them
    accuracy: Mapping[str, Finding]  # pair -> share of reviews that get their label

    @property
    def contrast_found(self) -> bool:
        """Whether positive reviews make positive words more probable than negative reviews do."""
        contrast = self.means[CONTRAST]
        return contrast.estimate > 0 and contrast.p < 0.05

    def interpretable(self, pair: str | None) -> bool:
        """Tell whether single words can be interpreted: there is a contrast, and labels are better than a coin."""
        return self.contrast_found and (pair is None or self.labels_found(pair))

    def labels_found(self, pair: str) -> bool:
        """Whether a pair of label words labels reviews better than a coin."""
        return self.accuracy[pair].low > 0.5


def sense_sentiment(answers: Answers, template: str, *, rng: np.random.Generator, draws: int) -> Sense:
    """Return whether the model's words and labels follow the reviews."""
    used = answers.words.used
    positive_words = len(used["positive"])
    probability = answers.probability[template]
    difference = probability[:, :positive_words].mean(axis=1) - probability[
        :, positive_words : positive_words + len(used["negative"])
    ].mean(axis=1)
    first, second = difference[answers.positive], difference[~answers.positive]
    means = {}
    for name, values in ((POSITIVE, first), (NEGATIVE, second)):
        interval = cluster_bootstrap(values, rng=rng, draws=draws)
        p = float(sign_flip_test(values, rng=rng).p)
        means[name] = Finding(
            labels={}, estimate=float(interval.estimate), low=float(interval.low), high=float(interval.high), p=p,
            n=len(values),
        )  # fmt: skip
    between = two_group_bootstrap(first, second, rng=rng, draws=draws)
    means[CONTRAST] = Finding(
        labels={},
        estimate=float(first.mean() - second.mean()),
        low=float(between.low),
        high=float(between.high),
        p=float(two_group_permutation(first, second, rng=rng).p),
        n=len(difference),
    )
    pairs = [pair.name for pair in answers.words.pairs]
    everything = np.ones(len(difference), dtype=np.bool_)
    return Sense(
        difference=difference,
        means=means,
        accuracy={pair: accuracy_finding(answers, template, pair, everything) for pair in pairs},
    )


def accuracy_finding(answers: Answers, template: str, pair: str, chosen: NDArray[np.bool_]) -> Finding:
    """Return the share of the chosen reviews to which the model gives their own label."""
    right = (answers.before[template, pair] == answers.positive) & chosen
    return share_finding(int(right.sum()), int(chosen.sum()), {})
