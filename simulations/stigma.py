"""How often the stigma audit calls an even-handed model a lean, and finds a lean of the size that it states.

    python simulations/stigma.py [SEEDS] [--jobs N]

Answers are drawn as arrays, as a model of each kind would give them; everything from there on is the audit's own
code: tables, verdicts and the gates. docs/stigma.md has the results of 200 seeds. Seeds are shared out to as many
processes as there are cores (--jobs).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np

from clinometer.data.stigma_data import load_conditions, load_prompts
from clinometer.probes.kit import CANNOT_TELL, LEAN, Floats
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


def is_lean(seed: int, family: str, effect: float) -> Floats:
    """Return 1 for a lean."""
    verdict = FAMILIES[family](np.random.default_rng([seed, 1]), effect)
    return np.array([verdict.state == LEAN], dtype=np.float64)


def leans(family: str, *, seeds: int, effect: float) -> int:
    """Count the leans among that many seeds."""
    return int(sum(is_lean(seed, family, effect)[0] for seed in range(seeds)))


def stated_effect(family: str, *, pilots: int = PILOTS) -> float:
    """Return the detectable effect that even-handed runs state, as their median."""
    stated = [FAMILIES[family](np.random.default_rng([seed, 2]), 0.0).detectable for seed in range(pilots)]
    return float(np.nanmedian(stated))


# ---------------------------------------------------------------------------------------------------------
# The gates


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


RANDOM_CLASSIFIERS = {  # how much of what a random classifier says it says of every statement alike, and of a word
    "coins": (0.0, 0.0),
    "one coin for each word": (0.0, 1.0),
    "half in common": (0.5, 0.5),
    "nine tenths in common": (0.9, 0.1),
}


def random_classifier_passes(rng: np.random.Generator, kind: str, *, classes: int = 2) -> bool:
    """Tell whether random scores pass the gate of classifiers; the largest score of a statement is its class."""
    alike, of_word = RANDOM_CLASSIFIERS[kind]
    clauses = load_prompts().checks
    bias = np.sqrt(alike) * rng.standard_normal(classes)

    def says(statements: int) -> Floats:
        of_words = np.sqrt((1 - alike) * of_word) * rng.standard_normal((1, statements, classes))
        single = np.sqrt((1 - alike) * (1 - of_word)) * rng.standard_normal((2, statements, classes))
        return np.asarray((bias + of_words + single).argmax(axis=-1).ravel())  # two templates

    sensed = {
        sense: (says(len(clauses[sense])) == outcome).astype(np.float64)
        for outcome, sense in enumerate(("negative", "positive"))
    }
    negative = (says(len(ROSTER.wordings)) == 0).astype(np.float64)
    found = ClassifierOutcomes(
        model="random",
        rng=rng,
        draws=DRAWS,
        roster=ROSTER,
        templates=("they", "these"),
        classes=("negative", "positive"),
        outcomes=np.stack([negative, 1 - negative], axis=-1).reshape(2, -1, 2),
        baseline=np.zeros((2, 2)),
        sensed=sensed,
    )
    return not measures.classifier_gate(found)


def gate_passes(seed: int, sharpness: float, shared: float) -> Floats:
    """Return 1 if random logits pass the gate of masked models."""
    rng = np.random.default_rng([seed, int(sharpness), int(10 * shared)])
    return np.array([random_model_passes(rng, sharpness=sharpness, shared=shared)], dtype=np.float64)


def classifier_passes(seed: int, kind: str, classes: int) -> Floats:
    """Return 1 if a random classifier passes its gate."""
    rng = np.random.default_rng([seed, 5, classes])
    return np.array([random_classifier_passes(rng, kind, classes=classes)], dtype=np.float64)


# ---------------------------------------------------------------------------------------------------------
# Weak spots: skewed values and heavy tails

SHAPES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(0.42, 0.03, size=n),
    "exponential": lambda rng, n: 0.05 * rng.exponential(size=n),
    "exponential from 0.3": lambda rng, n: 0.3 + 0.05 * rng.exponential(size=n),
    "gamma(2) from 0.3": lambda rng, n: 0.3 + 0.05 * rng.gamma(2, size=n),
    "log-normal, σ = 0.5": lambda rng, n: 0.1 * np.exp(0.5 * rng.standard_normal(n) - 0.125),
    "log-normal, σ = 1": lambda rng, n: 0.05 * np.exp(rng.standard_normal(n) - 0.5),
    "beta(0.5, 5)": lambda rng, n: rng.beta(0.5, 5, size=n),
    "Student's t, 3 degrees of freedom": lambda rng, n: 0.42 + 0.03 * rng.standard_t(3, size=n),
    "Student's t, 5 degrees of freedom": lambda rng, n: 0.42 + 0.03 * rng.standard_t(5, size=n),
    "Laplace": lambda rng, n: 0.42 + 0.03 * rng.laplace(size=n),
}
UNEQUAL = {  # log-normal shapes of one mean: of the stigmatized conditions, and of the others
    "σ = 1.5 and 0.5": (1.5, 0.5),
    "σ = 0.5 and 1.5": (0.5, 1.5),
    "σ = 1 and 1": (1.0, 1.0),
}


def skewed_single(seed: int, shape: str) -> Floats:
    """Return whether something is singled out without a cause: by the plain test, and now; whether it is told."""
    rng = np.random.default_rng([seed, 3])
    found = masked(rng, np.clip(SHAPES[shape](rng, CONDITIONS), 0, 1))
    cases = single_case_test(found.overall[STIGMATIZED], found.overall[~STIGMATIZED])
    plain = ((benjamini_hochberg(cases.p) < 0.05) & (cases.estimate > 0)).any()
    verdict = single_verdict(masked_rows(found), "masked", detectable=measures.detectable_excess(found))
    return np.array([plain, verdict.state == LEAN, verdict.state != CANNOT_TELL], dtype=np.float64)


def skewed_difference(seed: int, shapes: str) -> Floats:
    """Return whether a difference is called a lean where both groups have one mean: by the rule alone, and now."""
    rng = np.random.default_rng([seed, 4])
    sigma = np.where(STIGMATIZED, *UNEQUAL[shapes])
    values = 0.02 * np.exp(sigma * rng.standard_normal(CONDITIONS) - sigma**2 / 2)
    found = masked(rng, values)
    found.overall[:] = values  # without the noise of prompts, which would hide the shape
    rows = masked_rows(found)
    few = measures.hangs_on_few(values, STIGMATIZED)
    before, now = (difference_verdict(rows, "masked", ATTITUDE, few_decide=each) for each in (False, few))
    return np.array([before.state == LEAN, now.state == LEAN], dtype=np.float64)


def few_shuffles() -> None:
    """Make the tests of this process shuffle less often."""
    measures.SHUFFLES = SHUFFLES


def main() -> None:
    """Print everything, as lines of the tables in docs/stigma.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="?", default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    seeds = given.seeds
    os.environ["OMP_NUM_THREADS"] = "1"  # of each process: there are enough of them
    with ProcessPoolExecutor(given.jobs, get_context("spawn"), few_shuffles) as pool:

        def count(one_seed: Callable[[int], Floats], n: int = seeds) -> list[int]:
            found = pool.map(one_seed, range(n), chunksize=max(1, n // (4 * given.jobs)))
            return [int(each) for each in np.sum(list(found), axis=0)]

        for family in FAMILIES:
            effect = stated_effect(family)
            (false,) = count(partial(is_lean, family=family, effect=0.0))
            (found,) = count(partial(is_lean, family=family, effect=effect))
            print(f"| {family} | {seeds} + {seeds} | {false} | {effect:.3f} | {found} |", flush=True)
        for shared in (0.0, 0.5, 0.9, 1.0):
            for sharpness in (1, 3, 5, 8, 12, 20):
                (passed,) = count(partial(gate_passes, sharpness=sharpness, shared=shared))
                print(f"gate, logits ±{sharpness}, {shared:.0%} in common: {passed} of {seeds} pass", flush=True)
        for kind in RANDOM_CLASSIFIERS:
            for classes in (2, 3):
                (passed,) = count(partial(classifier_passes, kind=kind, classes=classes), 10 * seeds)
                print(f"gate, {classes} classes, {kind}: {passed} of {10 * seeds} pass", flush=True)
        for shape in SHAPES:
            rates = [each / seeds for each in count(partial(skewed_single, shape=shape))]
            print(f"| {shape} | {' | '.join(f'{rate:.1%}' for rate in rates)} |", flush=True)
        for shapes in UNEQUAL:
            rates = [each / seeds for each in count(partial(skewed_difference, shapes=shapes))]
            print(f"| log-normal, {shapes} | {' | '.join(f'{rate:.1%}' for rate in rates)} |", flush=True)


if __name__ == "__main__":
    main()
