"""How often the stigma audit calls an even-handed model a lean, and finds a lean of the size that it states.

    python simulations/stigma.py [SEEDS]

Answers are drawn as arrays, as a model of each kind would give them; everything from there on is the audit's own
code: tables, verdicts and the gate. docs/stigma.md has the results of 200 seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from clinometer.data.stigma_data import load_conditions
from clinometer.probes.kit import LEAN, Floats
from clinometer.probes.stigma import measures
from clinometer.probes.stigma.answers import ChatAnswers, ClassifierOutcomes
from clinometer.probes.stigma.measures import ATTITUDE, DISTANCE, SHARE, MaskedAttitudes
from clinometer.probes.stigma.questions import Roster
from clinometer.probes.stigma.tables import chat_rows, classifier_rows, masked_rows
from clinometer.probes.stigma.words import difference_verdict, single_verdict
from clinometer.stats import benjamini_hochberg, single_case_test
from clinometer.types import Verdict

ROSTER = Roster(wordings=load_conditions())
CONDITIONS = len(ROSTER.names)
STIGMATIZED = ROSTER.stigmatized
SEVEN = 7
DRAWS, SHUFFLES = 199, 999  # of the bootstrap and the tests: fewer than the audit's own, for time
PILOTS = 20  # even-handed runs whose median detectable effect is planted


def masked(rng: np.random.Generator, own: Floats) -> MaskedAttitudes:
    """A masked model with its own lean for each condition; each of seven distances adds noise."""
    by_distance = np.clip(own + 0.04 * rng.standard_normal((SEVEN, CONDITIONS)), 0.0, 1.0)
    overall = by_distance.mean(axis=0)
    return MaskedAttitudes(
        model="masked",
        tuned=False,
        gate="",
        rng=rng,
        draws=DRAWS,
        roster=ROSTER,
        templates=("for me",),
        by_template=overall[None],
        by_distance=by_distance,
        overall=overall,
        baseline=np.full((1, SEVEN), 0.3),
    )


def attitude(rng: np.random.Generator, effect: float) -> Verdict:
    """Conclude on a masked model that is more negative about every stigmatized condition by the effect."""
    found = masked(rng, rng.normal(0.42, 0.04, size=CONDITIONS) + effect * STIGMATIZED)
    few = measures.hangs_on_few(found.overall, STIGMATIZED)
    return difference_verdict(masked_rows(found), "masked", ATTITUDE, few_decide=few)


def single(rng: np.random.Generator, effect: float) -> Verdict:
    """Conclude on a masked model that is more negative about the first stigmatized condition by the effect."""
    own = rng.normal(0.42, 0.03, size=CONDITIONS)
    own[np.flatnonzero(STIGMATIZED)[0]] += effect
    found = masked(rng, own)
    return single_verdict(masked_rows(found), "masked", detectable=measures.detectable_excess(found))


def classification(rng: np.random.Generator, effect: float) -> Verdict:
    """Conclude on a classifier that finds each condition negative with a probability of its own."""
    chance = np.clip(rng.normal(0.35, 0.15, size=CONDITIONS) + effect * STIGMATIZED, 0.0, 1.0)
    negative = rng.random((2, len(ROSTER.wordings))) < chance[ROSTER.condition_of]
    outcomes = np.stack([negative, ~negative], axis=-1).astype(np.float64)
    found = ClassifierOutcomes(
        model="classifier",
        rng=rng,
        draws=DRAWS,
        roster=ROSTER,
        templates=("they", "these"),
        classes=("negative", "positive"),
        outcomes=outcomes,
        baseline=np.array([[0.0, 1.0]] * 2),
    )
    return difference_verdict(classifier_rows(found), "classifier", SHARE, gate=measures.classifier_gate(found))


def distance(rng: np.random.Generator, effect: float) -> Verdict:
    """Conclude on a chat model that keeps a distance of its own from each condition, on a scale from 0 to 3."""
    own = rng.normal(1.2, 0.3, size=CONDITIONS) + effect * STIGMATIZED
    by_distance = np.clip(own + 0.3 * rng.standard_normal((SEVEN, CONDITIONS)), 0.0, 3.0)
    found = ChatAnswers(
        model="chat",
        rng=rng,
        draws=DRAWS,
        roster=ROSTER,
        readings=("0", "1", "2", "3", "refusal", "unclear"),
        counts=np.ones((len(ROSTER.wordings), SEVEN, 6)) * [1, 1, 1, 1, 0, 0],
        baseline=np.full(SEVEN, 1.0),
        by_distance=by_distance,
        overall=by_distance.mean(axis=0),
    )
    return difference_verdict(chat_rows(found), "chat", DISTANCE, gate=measures.chat_gate(found), full=3)


FAMILIES: dict[str, Callable[[np.random.Generator, float], Verdict]] = {
    "attitude": attitude,
    "single conditions": single,
    "classification": classification,
    "social distance": distance,
}


def leans(family: str, *, seeds: int, effect: float) -> int:
    """Count the leans among that many seeds."""
    verdicts = (FAMILIES[family](np.random.default_rng([seed, 1]), effect) for seed in range(seeds))
    return sum(verdict.state == LEAN for verdict in verdicts)


def stated_effect(family: str, *, pilots: int = PILOTS) -> float:
    """Return the detectable effect that even-handed runs state, as their median."""
    stated = [FAMILIES[family](np.random.default_rng([seed, 2]), 0.0).detectable for seed in range(pilots)]
    return float(np.nanmedian(stated))


# ---------------------------------------------------------------------------------------------------------
# The gate


def random_model_passes(rng: np.random.Generator, *, sharpness: float, shared: float, prompts: int = 14) -> bool:
    """Tell whether random logits pass the gate of masked models.

    `sharpness` is the standard deviation of a logit, `shared` the part of its variance that all prompts have in
    common. 30,522 tokens, of which 352 are rated positive, 340 negative and 93 neutral, as in our list.
    """
    common = np.sqrt(shared) * rng.standard_normal(30_522)
    kinds = np.repeat([1, 2, 3, 0], [352, 340, 93, 30_522 - 785])
    held = np.zeros((prompts, 4))
    for prompt in range(prompts if shared < 1 else 1):
        logits = sharpness * (common + np.sqrt(1 - shared) * rng.standard_normal(30_522))
        weights = np.exp(logits - logits.max())
        top = np.argpartition(-weights, 50)[:50]
        held[prompt] = np.bincount(kinds[top], weights=weights[top] / weights.sum(), minlength=4)
    positive, negative, neutral = held[: prompts if shared < 1 else 1].mean(axis=0)[1:]
    covered = positive + negative + neutral
    return bool(covered >= measures.RATED and min(positive, negative) >= measures.EACH_SIDE)


# ---------------------------------------------------------------------------------------------------------
# Weak spots: skewed values

SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(0.42, 0.04, size=n),
    "exponential": lambda rng, n: 0.05 * rng.exponential(size=n),
    "exponential from 0.3": lambda rng, n: 0.3 + 0.05 * rng.exponential(size=n),
    "log-normal, σ = 0.5": lambda rng, n: 0.1 * np.exp(0.5 * rng.standard_normal(n) - 0.125),
    "log-normal, σ = 1": lambda rng, n: 0.05 * np.exp(rng.standard_normal(n) - 0.5),
    "beta(0.5, 5)": lambda rng, n: rng.beta(0.5, 5, size=n),
}
UNEQUAL = (  # shapes of one mean: of the stigmatized conditions, and of the others
    ("log-normal σ = 1.5 and 0.5", 1.5, 0.5),
    ("log-normal σ = 0.5 and 1.5", 0.5, 1.5),
    ("log-normal σ = 1 and 1", 1.0, 1.0),
)


def skewed_single(shape: str, *, seeds: int) -> tuple[float, float, float]:
    """Return how often something is singled out without a cause: before, now, and how often it cannot be told."""
    before, now, unable = 0, 0, 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 3])
        found = masked(rng, np.clip(SHAPES[shape](rng, CONDITIONS), 0, 1))
        others = found.overall[~STIGMATIZED]
        cases = single_case_test(found.overall[STIGMATIZED], others)
        q = benjamini_hochberg(cases.p)
        before += bool(((q < 0.05) & (cases.estimate > 0)).any())
        verdict = single_verdict(masked_rows(found), "masked", detectable=measures.detectable_excess(found))
        now += verdict.state == LEAN
        unable += verdict.state == "cannot tell"
    return before / seeds, now / seeds, unable / seeds


def skewed_difference(first: float, second: float, *, seeds: int) -> tuple[float, float]:
    """Return how often a difference is called a lean where both groups have one mean: before, and now."""
    before, now = 0, 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 4])
        sigma = np.where(STIGMATIZED, first, second)
        values = 0.02 * np.exp(sigma * rng.standard_normal(CONDITIONS) - sigma**2 / 2)
        found = masked(rng, values)
        found.overall[:] = values  # without the noise of prompts, which would hide the shape
        rows = masked_rows(found)
        before += difference_verdict(rows, "masked", ATTITUDE).state == LEAN
        few = measures.hangs_on_few(values, STIGMATIZED)
        now += difference_verdict(rows, "masked", ATTITUDE, few_decide=few).state == LEAN
    return before / seeds, now / seeds


def main(seeds: int) -> None:
    """Print everything."""
    measures.SHUFFLES = SHUFFLES
    for family in FAMILIES:
        effect = stated_effect(family)
        false, found = leans(family, seeds=seeds, effect=0.0), leans(family, seeds=seeds, effect=effect)
        print(f"{family}: even-handed {false} of {seeds} lean; planted {effect:.3f}: {found} of {seeds} found")
    for shared in (0.0, 0.5, 0.9, 1.0):
        for sharpness in (1, 3, 5, 8, 12, 20):
            rng = np.random.default_rng([sharpness, int(10 * shared)])
            passed = sum(random_model_passes(rng, sharpness=sharpness, shared=shared) for _ in range(seeds))
            print(f"gate, logits ±{sharpness}, {shared:.0%} in common: {passed} of {seeds} pass", flush=True)
    for shape in SHAPES:
        before, now, unable = skewed_single(shape, seeds=seeds)
        print(f"single, {shape}: {before:.1%} before, {now:.1%} now, cannot tell {unable:.1%}", flush=True)
    for name, first, second in UNEQUAL:
        before, now = skewed_difference(first, second, seeds=seeds)
        print(f"difference, {name}: {before:.1%} before, {now:.1%} now", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
