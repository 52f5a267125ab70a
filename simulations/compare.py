"""How often two models that are alike are called worse or better, and how often a change of stated size is found.

    python simulations/compare.py [SEEDS]

Units are drawn as the audits measure them; everything from there on is the code of `clinometer compare`. A pair
that is alike has one lean, and noise of its own on each side. docs/compare.md has the results of 200 seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from clinometer.metrics.fairness_closed import pair_rows
from clinometer.metrics.fairness_resampling import individual_interval
from clinometer.probes.kit import Floats
from clinometer.probes.kit.asking import Units
from clinometer.probes.kit.compare import compare_models
from clinometer.types import ChangeVerdict, Finding

PILOTS = 20  # pairs that are alike, whose median detectable change is planted
Pair = tuple[Units, Units]


def _units(audit: str, values: Floats, **more: object) -> Units:
    given = {
        "question": audit,
        "measure": "m",
        "asked": "fill",
        "unit": "unit",
        "more": "leans more",
        "less": "less",
    }
    names = tuple(f"u{i}" for i in range(len(values)))
    return replace(
        Units(model="model", names=names, values=values[:, None], **given),  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )


def conditions(rng: np.random.Generator, lean: float, change: float) -> Pair:
    """93 stigmatized and 29 other conditions with a level of their own, which both models share."""
    parts = ("stigmatized",) * 93 + ("other",) * 29
    inside = np.array([part == "stigmatized" for part in parts])
    own = rng.normal(0.42, 0.04, size=len(parts))
    sides = [own + rng.normal(0, 0.03, size=len(parts)) + more * inside for more in (lean, lean + change)]
    weights = {"stigmatized": 1.0, "other": -1.0}
    return _pair("stigma", sides, parts=parts, weights=weights)


def occupations(rng: np.random.Generator, lean: float, change: float) -> Pair:
    """29 female- and 29 male-dominated occupations; heavy noise, as gendered words have it."""
    parts = ("female",) * 29 + ("male",) * 29
    own = 0.2 * rng.standard_t(5, size=58)
    own -= own.mean()
    sides = [own + 0.1 * rng.standard_t(5, size=58) + more for more in (lean, lean + change)]
    return _pair("counterexamples", sides, parts=parts, weights={"female": 0.5, "male": 0.5})


def words(rng: np.random.Generator, lean: float, change: float) -> Pair:
    """200 neutral words, of which a share is called; three in four of those by both models."""
    draws = rng.random((3, 200))
    share = 0.1 + lean
    both = draws[0] < 0.75 * share
    change /= 1 - 0.75 * share  # among the words that are not called by both
    sides = [
        (both | (each < 0.25 * share + more)).astype(np.float64)
        for each, more in zip(draws[1:], (0.0, change), strict=True)
    ]
    return _pair("sentiment_words", sides, form="share")


def groups(rng: np.random.Generator, lean: float, change: float) -> Pair:
    """150 groups whose squared distance from the mean is measured without what chance gives it."""
    noise = 0.05
    own = rng.standard_normal(150)
    sides = []
    for variance in (0.002 + lean, 0.002 + lean + change):
        distance = np.sqrt(variance) * own + noise * rng.standard_normal(150)
        sides.append(distance**2 - noise**2)
    return _pair("stereotypes", sides, form="distance")


def texts(rng: np.random.Generator, lean: float, change: float) -> Pair:
    """Scores of texts about 6 values in 8 templates, 40 of each; the first value's are higher, up to this I.F."""
    measured = []
    for excess in (lean, lean + change):
        scores = _scores(rng, float(np.interp(excess, *_shifts())))
        found = individual_interval(scores, rng=rng, draws=99)
        row = Finding(labels={}, estimate=found.excess, low=found.low, high=found.high, p=0.5)
        measured.append(replace(_units("counterfactual", np.zeros(8)), form="measured", whole=row))
    return measured[0], measured[1]


def _scores(rng: np.random.Generator, shift: float) -> Floats:
    scores = rng.beta(2, 2, size=(8, 6, 40))
    scores[:, 0] += shift
    return scores


@cache
def _shifts() -> tuple[Floats, Floats]:
    """Return which excess of I.F. follows, on average, from which shift of one value's scores."""
    rng, shifts = np.random.default_rng(0), np.linspace(0, 0.5, 11)
    excess = []
    for shift in shifts:
        found = [pair_rows(_scores(rng, shift)).mean(axis=(0, 2)) for _ in range(40)]
        excess.append(float(np.mean([distance - chance for distance, chance in found])))
    return np.array(excess) - excess[0], shifts


def _pair(audit: str, sides: list[Floats], **more: object) -> Pair:
    before, after = (_units(audit, side, **more) for side in sides)
    return before, after


FAMILIES: dict[str, tuple[Callable[[np.random.Generator, float, float], Pair], float]] = {  # and a lean of both
    "stigma": (conditions, 0.05),
    "counterexamples": (occupations, 0.2),
    "sentiment_words": (words, 0.1),
    "stereotypes": (groups, 0.004),
    "counterfactual": (texts, 0.03),
}


def verdict(family: str, seed: int, *, lean: float, change: float) -> ChangeVerdict:
    """Conclude on one pair."""
    before, after = FAMILIES[family][0](np.random.default_rng([seed, 5]), lean, change)
    (found,) = compare_models({family: ([before], [after])}, before="A", after="B", seed=seed)
    return found.verdict


def called(family: str, seeds: range, *, lean: float, change: float = 0.0) -> int:
    """Count the pairs that are called worse or better; of a planted change, those that are called worse."""
    found = [verdict(family, seed, lean=lean, change=change).state for seed in seeds]
    return found.count("worse") + (0 if change else found.count("better"))


def stated(family: str, *, lean: float, pilots: int = PILOTS) -> float:
    """Return the detectable change that pairs which are alike state, as their median."""
    found = [verdict(family, 10_000 + seed, lean=lean, change=0.0).detectable for seed in range(pilots)]
    return float(np.nanmedian(found))


def every_audit_at_once(seed: int) -> bool:
    """Tell whether any of five audits calls a pair that is alike, each corrected on its own."""
    rng = np.random.default_rng([seed, 6])
    pairs = {name: make(rng, 0.0, 0.0) for name, (make, _) in FAMILIES.items()}
    found = compare_models({name: ([a], [b]) for name, (a, b) in pairs.items()}, before="A", after="B", seed=seed)
    return any(each.verdict.state in ("worse", "better") for each in found)


def main(seeds: int) -> None:
    """Print the table of docs/compare.md."""
    print(f"{seeds} seeds; called among pairs that are alike, and found among planted changes")
    for family, (_, lean) in FAMILIES.items():
        for level, name in ((0.0, "even-handed"), (lean, "leaning")):
            alike = called(family, range(seeds), lean=level)
            change = stated(family, lean=level)
            planted = called(family, range(seeds), lean=level, change=change)
            print(f"{family:18} {name:12} called {alike:4}  planted {change:.4f} found {planted:4}", flush=True)
    print("all five audits at once:", sum(every_audit_at_once(seed) for seed in range(seeds)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
