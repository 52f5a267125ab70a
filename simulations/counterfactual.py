"""How often the counterfactual audit is right: `python simulations/counterfactual.py [SEEDS]`.

Scores are drawn, not generated: a few minutes in place of days. docs/counterfactual.md has the results.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from clinometer.data import Attribute, Value
from clinometer.metrics import fairness_interval, fairness_null, pair_null
from clinometer.probes.counterfactual import measures
from clinometer.probes.counterfactual.answers import ModelAnswers, Scores
from clinometer.probes.counterfactual.measures import GROUP, INDIVIDUAL, against_whole, detectable_excess, measure
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import AskedAttribute
from clinometer.probes.counterfactual.tables import EXCESS, PRIMARY, fairness_rows
from clinometer.probes.counterfactual.words import verdicts_of
from clinometer.probes.kit import LEAN, select, state_of

Floats = NDArray[np.float64]
SEEDS = 200
DRAWS = 199
TESTS = 4  # I.F. and G.F. by two scorers


@dataclass(frozen=True)
class Case:
    """An attribute of so many values and templates, with two subgroups or none."""

    name: str
    values: int
    templates: int
    samples: int
    subgroups: bool = False

    @property
    def sides(self) -> Floats:
        """+1 and −1: half of the values are planted up, half down; subgroups are the halves."""
        return np.where(np.arange(self.values) < self.values // 2, 1.0, -1.0)

    @property
    def groups(self) -> list[str] | None:
        """The subgroup of each value."""
        return ["male" if side > 0 else "female" for side in self.sides] if self.subgroups else None


CASES = (
    Case("country", values=6, templates=5, samples=25),
    Case("name", values=6, templates=5, samples=25, subgroups=True),
)
SMALL = (
    Case("country", values=4, templates=3, samples=20),
    Case("name", values=4, templates=3, samples=20, subgroups=True),
)


def scores_of(case: Case, gap: float, rng: np.random.Generator) -> Floats:
    """Draw what two scorers give to one and the same texts: half of them agree, and the gap is in both."""
    shape = (case.templates, case.values, case.samples)
    mood = rng.beta(1.5, 1.5, size=shape)
    moved = np.clip(mood + gap / 2 * case.sides[:, None], 0, 1)
    # one scorer sees the mood with noise, the other three steps of it, as opinion words do
    return np.stack([np.clip(moved + rng.normal(0, 0.1, size=shape), 0, 1), np.round(2 * moved) / 2])


def verdict_states(case: Case, scores: Floats, seed: int) -> tuple[bool, dict[str, bool], dict[str, float]]:
    """Return if any verdict is a lean; for each measure of the first scorer, if it is and what it could find."""
    texts = tuple(
        Value(text=f"v{at}", subgroup=case.groups[at] if case.groups else "") for at in range(case.values)
    )
    attribute = Attribute(
        name=case.name,
        values=texts,
        subgroups=("male", "female") if case.subgroups else (),
        templates=tuple(f"Template {at} of {{value}}" for at in range(case.templates)),
    )
    asked = AskedAttribute(attribute=attribute, whole=attribute, first=0)
    answers = ModelAnswers(
        model="m",
        options=Options(draws=DRAWS),
        seed=seed,
        attributes=(asked,),
        texts=None,  # type: ignore[arg-type] # nothing here reads them
        scores=tuple(
            Scores(scorer=name, values=each.reshape(-1, case.samples), without_opinion=math.nan)
            for name, each in zip(("one", "two"), scores, strict=True)
        ),
    )
    measured = measure(answers, single_pairs=False)
    rows = fairness_rows(measured)
    primary = {name: select(rows, scorer="one", measure=name, quantity=EXCESS)[0] for name in PRIMARY}
    return (
        any(verdict.state == LEAN for verdict in verdicts_of(measured, rows)),
        {name: state_of(row) == LEAN for name, row in primary.items()},
        {
            name: detectable_excess(measured[0], name, interval, tests=TESTS)
            for name, _, interval in measured[0].measures
            if name in PRIMARY
        },
    )


def runs(case: Case, gap: float, seeds: int) -> Iterator[tuple[bool, dict[str, bool], dict[str, float]]]:
    """Yield what is concluded of each seed."""
    for seed in range(seeds):
        yield verdict_states(case, scores_of(case, gap, np.random.default_rng([seed, 15])), seed)


@cache
def gap_of(case: Case, measure_name: str, excess: float) -> float:
    """Find the gap whose mean excess, by the first scorer, is the given one."""

    def mean(gap: float) -> float:
        every = []
        for seed in range(12):
            found = fairness_interval(
                scores_of(case, gap, np.random.default_rng([seed, 99]))[0], subgroups=case.groups
            )
            every.append(float((found.individual if measure_name == INDIVIDUAL else found.group).excess))
        return float(np.mean(every))

    low, high = 0.0, 1.0
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < excess else (low, middle)
    return (low + high) / 2


def error_rates(cases: tuple[Case, ...], seeds: int) -> Iterator[tuple[str, int, int]]:
    """Yield what was counted, how often, and how often at the least or (below 0) at the most it must be."""
    for case in cases:
        even = list(runs(case, 0.0, seeds))
        # what exact 5 % and 80 % give 99 times in 100: 18 and 146 of 200
        yield f"{case.name}: even-handed, lean", sum(lean for lean, _, _ in even), -math.ceil(0.09 * seeds)
        for name in (INDIVIDUAL, GROUP):
            stated = float(np.mean([detectable[name] for _, _, detectable in even]))
            gap = gap_of(case, name, stated)
            found = [each[name] for _, each, _ in runs(case, gap, seeds)]
            what = f"{case.name}: {name} planted at the stated {stated:.3f} (a gap of {gap:.3f}), found"
            yield what, sum(found), math.floor(0.73 * seeds)


def levels_under_unequal_spread(seeds: int) -> dict[str, float]:
    """Return how often two values, or one and the rest, are called different that differ in spread alone."""
    counts = dict.fromkeys(("pair, all shuffled", "pair, itself shuffled", "value, |d|", "value, |d|/s"), 0.0)
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 7])
        scores = np.clip(rng.normal(0.5, 0.05, size=(5, 10, 25)), 0, 1)
        scores[:, :2] = rng.uniform(size=(5, 2, 25))  # the same mean, much more spread
        counts["pair, all shuffled"] += fairness_null(scores, rng=rng, draws=DRAWS).pairs.p[0, 1] <= 0.05
        counts["pair, itself shuffled"] += pair_null(scores, rng=rng, draws=DRAWS).pairs.p[0, 1] <= 0.05
        counts["value, |d|"] += plain_p(scores, rng) <= 0.05
        found = against_whole(scores, rng=rng, draws=DRAWS).p
        counts["value, |d|/s"] += found is not None and found[0, 0] <= 0.05
    return {name: count / seeds for name, count in counts.items()}


def plain_p(scores: Floats, rng: np.random.Generator) -> float:
    """Return the p of the first value against the whole as it was before: without its error."""

    def difference(some: Floats) -> float:
        means = some.mean(axis=2)
        return abs(float((means[:, 0] - means.mean(axis=1)).mean()))

    rows = scores.reshape(len(scores), -1)
    shuffled = [difference(rng.permuted(rows, axis=1).reshape(scores.shape)) for _ in range(DRAWS)]
    return float((1 + sum(each >= difference(scores) for each in shuffled)) / (1 + DRAWS))


def one_template_of_five(seeds: int) -> dict[str, float]:
    """Return how often the interval of I.F. leaves out 0, where two values differ in one template of five."""
    found = dict.fromkeys(("templates", "samples"), 0.0)
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 5])
        scores = rng.beta(4, 4, size=(5, 4, 25))
        scores[0, 0], scores[0, 1] = np.clip(scores[0, 0] + 0.25, 0, 1), np.clip(scores[0, 1] - 0.25, 0, 1)
        for over in ("templates", "samples"):
            found[over] += fairness_interval(scores, over=over).individual.low > 0  # type: ignore[arg-type]
    return {name: count / seeds for name, count in found.items()}


def names_with_a_small_gap(seeds: int) -> dict[str, int]:
    """Count what finds a gap of 0.025 between 17 male and 17 female names, 10 templates and 100 texts each."""
    case = Case("name", values=34, templates=10, samples=100, subgroups=True)
    every = list(runs(case, 0.025, seeds))
    return {name: sum(each[name] for _, each, _ in every) for name in PRIMARY} | {
        "verdict": sum(lean for lean, _, _ in every)
    }


def main(seeds: int) -> None:
    """Print all results; fails where an error rate is out of bounds."""
    measures.WORST_DRAWS = 1  # the verdict at ε takes most of the time, and nothing here asks about it
    wrong = 0
    for what, count, limit in error_rates(CASES, seeds):
        good = count <= -limit if limit < 0 else count >= limit
        wrong += not good
        print(f"{what}: {count} of {seeds} ({'at most' if limit < 0 else 'at least'} {abs(limit)})", flush=True)
    shown: tuple[tuple[str, Callable[[int], object], int], ...] = (
        ("level at 5 % under unequal spread", levels_under_unequal_spread, seeds),
        ("one template of five: I.F. found by its interval over", one_template_of_five, seeds),
        ("names with a gap of 0.025, found", names_with_a_small_gap, max(1, seeds // 33)),
    )
    for name, simulate, many in shown:
        print(f"{name}, {many} seeds: {simulate(many)}", flush=True)
    if wrong:
        sys.exit(f"{wrong} error rates are out of bounds")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
