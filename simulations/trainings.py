"""How often intervals that carry training noise hold the truth, and those that leave it out.

    python simulations/trainings.py [RUNS]

Each arm of a run is trained three times with other seeds. A training moves the lean of each measure by its own
amount (its standard deviation is stated below, in standard errors from units), and units give an error that all
trainings of an arm share, because they answer the same prompts. One seed may move several arms alike; and each
training may be compared with the control of its seed. docs/tuning.md has the results of 2,000 runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clinometer.probes.kit import Floats
from clinometer.probes.kit.asking import BEFORE, Units
from clinometer.probes.kit.compare import Compared, compare_all
from clinometer.stats import Sure, critical_value, training_noise, with_training_noise
from clinometer.types import ChangeVerdict

REACH = critical_value(0.975)
PILOTS = 20  # runs without an effect, whose median detectable change is planted


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is trained, and how trainings differ."""

    arms: int = 1
    measures: int = 1
    trainings: int = 3
    noise: float = 2.0  # standard deviation between trainings, in standard errors from units
    together: float = 0.0  # correlation of the measures of one training
    uneven: float = 0.0  # standard deviation of the logarithm of the noise, over arms and measures
    alike: float = 0.0  # correlation of what a seed does to an arm and to the first, which is the control
    control: bool = False  # whether the other arms are compared with the first, or all with the model as given


WORLDS = {
    "one arm": World(measures=10),
    "one arm, one measure": World(),
    "eight arms": World(arms=8, measures=10),
    "categories move together": World(arms=2, measures=10, together=0.9),
    "one arm, categories move together": World(measures=10, together=0.9),
    "uneven noise": World(arms=4, measures=10, uneven=0.7),
    "little noise": World(arms=4, measures=10, noise=0.3),
    "much noise": World(arms=4, measures=10, noise=10.0),
    "one seed moves all arms": World(arms=4, measures=10, alike=0.8),
    "one method against a control": World(arms=2, measures=10, control=True),
    "one method against a control, one measure": World(arms=2, control=True),
    "three methods against a control": World(arms=4, measures=10, control=True),
    "three methods against a control, measures move together": World(
        arms=4, measures=10, together=0.9, control=True
    ),
    "three methods against a control, seeds move all arms": World(arms=4, measures=10, alike=0.8, control=True),
    "three methods, one measure, much noise": World(arms=4, noise=10.0, alike=0.8, control=True),
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
        moved[1:] = np.sqrt(world.alike) * moved[:1] + np.sqrt(1 - world.alike) * moved[1:]
        changes = size[..., None] * moved
        if world.control:
            changes = changes[1:] - changes[:1]
        changes = changes + rng.standard_normal(changes.shape[:2])[..., None]
        noise = training_noise(changes, np.ones(changes.shape[:2]))
        mean = changes.mean(axis=2)
        units = Sure(estimate=mean, low=mean - REACH, high=mean + REACH, p=np.zeros(mean.shape))
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
    for run in range(runs):
        base, trained = _trained(run, arms=arms, noise=noise, effect=0.0)
        for at, chosen in enumerate((trained, [each[:1] for each in trained])):
            states = [each.state for each in _verdicts(base, chosen, seed=run)]
            counts[at] += states.count("worse") + states.count("better")
    return counts[0], counts[1]


def found(runs: int, *, arms: int = 4, noise: float = 0.02) -> int:
    """Count runs in which an effect of the size that runs without one state is found, after three trainings."""
    stated = []
    for run in range(PILOTS):
        base, trained = _trained(run, arms=arms, noise=noise, effect=0.0)
        stated.append(_verdicts(base, trained, seed=run)[0].detectable)
    effect = float(np.median(stated))
    told = 0
    for run in range(PILOTS, PILOTS + runs):
        base, trained = _trained(run, arms=arms, noise=noise, effect=effect)
        told += _verdicts(base, trained, seed=run)[0].state == "worse"
    return told


def _trained(run: int, *, arms: int, noise: float, effect: float) -> tuple[Units, list[list[Units]]]:
    """Return a model, and three trainings of each arm; the first arm leans more by the effect."""
    rng = np.random.default_rng([run, 7])
    inside = np.arange(122) < 93
    own = rng.normal(0.42, 0.04, size=122) + 0.1 * inside
    trained = [
        [
            _conditions(
                "tuned",
                own + (rng.normal(0, noise) + effect * (arm == 0)) * inside + rng.normal(0, 0.01, size=122),
            )
            for _ in range(3)
        ]
        for arm in range(arms)
    ]
    return _conditions("base", own), trained


def _verdicts(base: Units, trained: Sequence[Sequence[Units]], *, seed: int) -> list[ChangeVerdict]:
    """Return what `clinometer compare` says of each arm."""
    pairs = [
        Compared(before="base", after="tuned", role=BEFORE, audits={"stigma": [([base], [t]) for t in each]})
        for each in trained
    ]
    return [change.verdict for of_pair in compare_all(pairs, seed=seed) for change in of_pair]


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
        print(f"{name:56} with training noise {pooled:.3f}  units alone {naive:.3f}", flush=True)
    three, one = called(runs // 10)
    print(f"of {runs // 5} arms of noise alone are called: {three} with three trainings, {one} with one")
    print(f"of {runs // 10} effects of the size that is stated are found: {found(runs // 10)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
