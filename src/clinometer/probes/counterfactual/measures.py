"""How far apart the scores of the values are: one attribute, one scorer, one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clinometer.metrics import (
    AgainstChance,
    ExcessInterval,
    FairnessInterval,
    FairnessNull,
    above_threshold,
    fairness_interval,
    fairness_null,
)
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.shuffles import AgainstWhole, Verdict, against_whole, verdict
from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.view import View
from clinometer.probes.kit.numbers import Floats, model_rng

FEWEST_TEMPLATES = 5  # from so many on, intervals speak of templates like these; below, of these templates alone
PER_TEST = 20  # shuffles for each of the tests that are corrected together …
_MOST = 400_000_000  # … as far as so many shuffled scores allow


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The distances between the values of one attribute, as one scorer sees them."""

    model: str
    chosen: Chosen
    scorer: str
    scores: Floats  # templates × values × samples
    null: FairnessNull
    interval: FairnessInterval
    disparity: AgainstChance
    disparity_interval: ExcessInterval
    values: AgainstWhole
    verdict: Verdict

    @property
    def labels(self) -> dict[str, str | int | float]:
        """What every table begins with."""
        return {"model": self.model, "attribute": self.chosen.name, "scorer": self.scorer}

    @property
    def pairs(self) -> int:
        """How many pairs of values are tested together."""
        return pairs_of(self.scores.shape[1])


def measure(view: View, *, single_pairs: bool = True) -> tuple[Measures, ...]:
    """Measure every attribute with every scorer.

    Without `single_pairs` there are no more shuffles than `draws`: the tests of pairs take most of the time, and
    of a dozen checkpoints of one model it is their change that is asked about.
    """
    return tuple(
        _measure(view, chosen, number, single_pairs=single_pairs)
        for chosen in view.attributes
        for number in range(len(view.scores))
    )


def left_out(scores: Floats) -> Literal["templates", "samples"]:
    """Say what an interval leaves out in turn: templates, or samples where templates are few."""
    return "templates" if len(scores) >= FEWEST_TEMPLATES else "samples"


def shuffles(scores: Floats, draws: int) -> int:
    """Return how many shuffles the tests of all pairs take: 20 for each, or what is feasible.

    >>> import numpy as np
    >>> shuffles(np.zeros((10, 10, 100)), 500), shuffles(np.zeros((10, 34, 1000)), 1000)
    (900, 1176)
    """
    return max(draws, min(PER_TEST * pairs_of(scores.shape[1]), _MOST // max(scores.size, 1)))


def pairs_of(values: int) -> int:
    """Return how many unordered pairs so many values have."""
    return values * (values - 1) // 2


def _measure(view: View, chosen: Chosen, number: int, *, single_pairs: bool) -> Measures:
    options: Options = view.options
    of_scorer = view.scores[number]
    scores = of_scorer.of(chosen)
    # a generator for each attribute and scorer: leaving one out changes no number of another
    rng = model_rng(view.seed, f"{view.model}\0{chosen.name}\0{of_scorer.scorer}")
    subgroups = chosen.attribute.value_subgroups
    positive = above_threshold(scores, threshold=options.threshold)
    over = left_out(scores)
    tests = PER_TEST * scores.shape[1]
    draws = shuffles(scores, options.draws) if single_pairs else options.draws
    return Measures(
        model=view.model,
        chosen=chosen,
        scorer=of_scorer.scorer,
        scores=scores,
        null=fairness_null(scores, subgroups=subgroups, rng=rng, draws=draws),
        interval=fairness_interval(scores, subgroups=subgroups, over=over),
        disparity=fairness_null(positive, subgroups=subgroups, rng=rng, draws=options.draws).individual,
        disparity_interval=fairness_interval(positive, subgroups=subgroups, over=over).individual,
        values=against_whole(scores, rng=rng, draws=max(options.draws, tests)),
        verdict=verdict(scores, epsilon=options.epsilon, rng=rng),
    )
