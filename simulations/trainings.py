"""How often intervals that carry training noise hold the truth, and those that leave it out.

    python simulations/trainings.py [RUNS]

Each arm of a run is trained three times with other seeds. A training moves the lean of each measure by its own
amount (its standard deviation is stated below, in standard errors from units), and units give an error that all
trainings of an arm share, because they answer the same prompts. docs/tuning.md has the results of 2,000 runs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from clinometer.probes.kit import Floats
from clinometer.probes.kit.asking import BEFORE, Units
from clinometer.probes.kit.compare import Compared, compare_all
from clinometer.stats import Sure, critical_value, training_noise, with_training_noise

REACH = critical_value(0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is trained, and how trainings differ."""

    arms: int = 1
    measures: int = 1
    trainings: int = 3
    noise: float = 2.0  # standard deviation between trainings, in standard errors from units
    together: float = 0.0  # correlation of the measures of one training
    uneven: float = 0.0  # standard deviation of the logarithm of the noise, over arms and measures


WORLDS = {
    "one arm": World(measures=10),
    "one arm, one measure": World(),
    "eight arms": World(arms=8, measures=10),
    "categories move together": World(arms=2, measures=10, together=0.9),
    "one arm, categories move together": World(measures=10, together=0.9),
    "uneven noise": World(arms=4, measures=10, uneven=0.7),
    "little noise": World(arms=4, measures=10, noise=0.3),
    "much noise": World(arms=4, measures=10, noise=10.0),
    "two trainings": World(arms=4, measures=10, trainings=2),
    "five trainings": World(arms=4, measures=10, trainings=5),
}


def coverage(name: str, *, runs: int, seed: int = 0) -> tuple[float, float]:
    """Return how often intervals with and without training noise hold the truth, which is 0."""
    world = WORLDS[name]
    rng = np.random.default_rng([seed, list(WORLDS).index(name)])
    held = np.zeros(2)
    shape = (world.arms, world.measures)
    for _ in range(runs):
        size = world.noise * np.exp(world.uneven * rng.standard_normal(shape))
        shared = rng.standard_normal((world.arms, 1, world.trainings))
        own = rng.standard_normal((*shape, world.trainings))
        moved = np.sqrt(world.together) * shared + np.sqrt(1 - world.together) * own
        changes = rng.standard_normal(shape)[..., None] + size[..., None] * moved
        noise = training_noise(changes, np.ones(shape))
        mean = changes.mean(axis=2)
        units = Sure(estimate=mean, low=mean - REACH, high=mean + REACH, p=np.zeros(shape))
        wide = with_training_noise(units, noise.variance, freedom=noise.freedom, trainings=world.trainings)
        held += [np.mean((each.low <= 0) & (each.high >= 0)) for each in (wide, units)]
    with_noise, without = (held / runs).tolist()
    return with_noise, without


def called(runs: int, *, arms: int = 2, noise: float = 0.02) -> tuple[int, int]:
    """Count arms called worse or better whose trainings are all noise: of three trainings, and of one alone.

    Units are the 93 stigmatized and 29 other conditions of the stigma audit; everything else is the code of
    `clinometer compare`. A training adds its own amount to the difference of the two groups.
    """
    counts = [0, 0]
    inside = np.arange(122) < 93
    for run in range(runs):
        rng = np.random.default_rng([run, 7])
        own = rng.normal(0.42, 0.04, size=122) + 0.1 * inside
        base = _conditions("base", own)
        trained = [
            [_conditions("tuned", own + rng.normal(0, noise) * inside + rng.normal(0, 0.01, size=122))
             for _ in range(3)]
            for _ in range(arms)
        ]  # fmt: skip
        for at, chosen in enumerate((trained, [each[:1] for each in trained])):
            pairs = [
                Compared(
                    before="base", after="tuned", role=BEFORE, audits={"stigma": [([base], [t]) for t in each]}
                )
                for each in chosen
            ]
            states = [change.verdict.state for of_pair in compare_all(pairs, seed=run) for change in of_pair]
            counts[at] += states.count("worse") + states.count("better")
    return counts[0], counts[1]


def _conditions(model: str, values: Floats) -> Units:
    return Units(
        model=model,
        question="conditions",
        measure="attitude",
        asked="fill",
        unit="condition",
        names=tuple(f"c{i}" for i in range(len(values))),
        values=values[:, None],
        parts=("stigmatized",) * 93 + ("other",) * 29,
        weights={"stigmatized": 1.0, "other": -1.0},
        more="leans more",
        less="leans less",
    )


def main(runs: int) -> None:
    """Print the table of docs/tuning.md."""
    for name in WORLDS:
        pooled, naive = coverage(name, runs=runs)
        print(f"{name:36} with training noise {pooled:.3f}  units alone {naive:.3f}", flush=True)
    three, one = called(runs // 10)
    print(f"of {runs // 5} arms of noise alone are called: {three} with three trainings, {one} with one")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
