"""How often the stereotypes audit calls an even hand a lean, and how often it finds one of the size it states.

    python simulations/stereotypes.py [SEEDS] [--jobs N]

Lists are drawn, not asked of a model: 60 words for each of 90 groups in three categories and each wording, a third
of them negative and a third positive. Every list varies by itself, whatever the group. The planted leans are of
the size that the audit states as detectable for the even hand of the same seed. Seeds are shared out to as many
processes as there are cores (--jobs). docs/stereotypes.md has the results of 200 seeds.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np

from clinometer.probes.kit import LEAN, Floats, state_of, with_q
from clinometer.probes.stereotypes.measures import (
    Repetitions,
    category_difference,
    group_differences,
    repetitions_of,
    spread_between_groups,
)
from clinometer.probes.stereotypes.tables import category_detectable
from clinometer.stats import detectable_from_interval
from clinometer.types import Finding

GROUPS, CATEGORIES, WORDS = 90, 3, 60
LIST_NOISE = 0.1  # standard deviation of what a list leans by itself
AT_MOST, AT_LEAST = 0.09, 0.73  # of 200 seeds: what exact 5 % and 80 % give 99 times in 100


def valences(lean: Floats, noise: Floats, *, wordings: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the valence of every word, (groups, wordings, words); a list leans by chance and by its group."""
    of_list = lean[:, None] + noise[:, None] * rng.standard_normal((len(lean), wordings))
    of_list = np.clip(of_list, -0.6, 0.6)
    chance = rng.random((*of_list.shape, WORDS))
    negative, positive = (1 / 3 + of_list / 2)[..., None], (1 / 3 - of_list / 2)[..., None]
    return np.where(chance < negative, 1, np.where(chance > 1 - positive, -1, 0))


def spread_row(words: np.ndarray, rng: np.random.Generator, *, draws: int) -> tuple[Finding, float]:
    """Return the finding on the spread, and the detectable one."""
    found = spread_between_groups(repeated(words), rng=rng, draws=draws)
    row = Finding(labels={}, estimate=found.estimate, low=found.low, high=found.high, p=found.p, q=found.p)
    return row, found.detectable


def repeated(words: np.ndarray) -> Repetitions:
    """Return the negativity of every list as the audit compares it."""
    values = words.mean(axis=2)
    return repetitions_of(values, np.tile(np.arange(values.shape[1]), (len(values), 1)))


def category_rows(words: np.ndarray, rng: np.random.Generator) -> list[tuple[Finding, float]]:
    """Return the findings on the categories, corrected together."""
    again = repeated(words)
    size = GROUPS // CATEGORIES
    rows = [
        category_difference(again, np.arange(c * size, (c + 1) * size), rng=rng, draws=999).finding((), {})
        for c in range(CATEGORIES)
    ]
    return [(row, category_detectable(row, tests=CATEGORIES)) for row in with_q(rows)]


def group_rows(words: np.ndarray) -> list[tuple[Finding, float]]:
    """Return the findings on the single groups, corrected together."""
    numbers, freedom = group_differences(repeated(words))
    rows = with_q(numbers.finding((g,), {}) for g in range(GROUPS))
    return [(row, detectable_from_interval(row.low, row.high, tests=GROUPS, freedom=freedom)) for row in rows]


def simulate(
    seeds: range, *, wordings: int = 5, unequal: bool = False, draws: int = 499
) -> dict[str, Counter[str]]:
    """Count for each family how often an even hand is called a lean, and a planted lean is found.

    `unequal`: the lists of a third of the groups vary twice as much as those of the others.
    """
    counts: dict[str, Counter[str]] = {"general": Counter(), "single": Counter(), "category": Counter()}
    noise = np.where(np.arange(GROUPS) % 3 == 0, 2.0 if unequal else 1.0, 1.0) * LIST_NOISE
    everyone = np.arange(GROUPS)
    for seed in seeds:
        rng = np.random.default_rng([seed, wordings])

        def lists(lean: Floats, rng: np.random.Generator = rng) -> np.ndarray:
            return valences(lean, noise, wordings=wordings, rng=rng)

        even = lists(np.zeros(GROUPS))
        if wordings > 1:
            row, detectable = spread_row(even, rng, draws=draws)
            counts["general"]["even"] += state_of(row) == LEAN
            planted, _ = spread_row(lists(detectable * rng.standard_normal(GROUPS)), rng, draws=draws)
            counts["general"]["planted"] += state_of(planted) == LEAN

            rows = group_rows(even)
            counts["single"]["even"] += any(state_of(each) == LEAN for each, _ in rows)
            lean = np.where(everyone == 1, rows[1][1], 0.0)
            counts["single"]["planted"] += state_of(group_rows(lists(lean))[1][0]) == LEAN

        rows = category_rows(even, rng)
        counts["category"]["even"] += any(state_of(each) == LEAN for each, _ in rows)
        lean = np.where(everyone < GROUPS // CATEGORIES, rows[0][1], 0.0)
        counts["category"]["planted"] += state_of(category_rows(lists(lean), rng)[0][0]) == LEAN
    return {family: count for family, count in counts.items() if count}


def one_seed(seed: int, wordings: int, unequal: bool) -> dict[str, Counter[str]]:
    """Return the counts of one seed."""
    return simulate(range(seed, seed + 1), wordings=wordings, unequal=unequal)


def main() -> None:
    """Print what was found, and whether it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="?", default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # of each process: there are enough of them
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for wordings, unequal in ((5, False), (5, True), (1, False)):
            how = f"{wordings} wordings{', unequal spread' if unequal else ''}"
            task = partial(one_seed, wordings=wordings, unequal=unequal)
            counts: dict[str, Counter[str]] = {}
            for each in pool.map(task, range(given.seeds), chunksize=max(1, given.seeds // (4 * given.jobs))):
                for family, count in each.items():
                    counts.setdefault(family, Counter()).update(count)
            for family, count in counts.items():
                holds = count["even"] <= AT_MOST * given.seeds and count["planted"] >= AT_LEAST * given.seeds
                print(
                    f"{family}, {how}: of {given.seeds} even hands {count['even']} called a lean, of as many "
                    f"planted leans {count['planted']} found: {'holds' if holds else 'DOES NOT HOLD'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
