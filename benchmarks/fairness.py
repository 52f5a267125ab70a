"""I.F. and G.F. with their permutation test: our metrics against scipy in a loop, on the same scores in one run.

    python benchmarks/fairness.py [--values 29] [--templates 10] [--samples 1000] [--draws 1000]

The loop is what one writes with scipy: for each permutation and template the labels are shuffled, and
`scipy.stats.wasserstein_distance` is called for every pair of values and for every value against all. A few
permutations tell its rate. The observed I.F. and G.F. of both must agree. How many cores ours keeps busy is its
processor time over its time, with twice as many sets of scores as cores (models and scorers share shuffles).
"""

from __future__ import annotations

import itertools
import os
import time

import numpy as np
from measured import Row, arguments, median_seconds, tell
from scipy.stats import wasserstein_distance

from clinometer.metrics import fairness_nulls


def main() -> None:
    """Time both, and tell."""
    parser = arguments(__doc__)
    parser.add_argument("--values", type=int, default=29)
    parser.add_argument("--templates", type=int, default=10)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    shape = (options.templates, options.values, options.samples)
    scores = rng.beta(1.5, 1.5, size=shape)
    found = {}

    def ours() -> None:
        (found["ours"],) = fairness_nulls([scores], rng=np.random.default_rng(1), draws=options.draws)

    def loop() -> None:
        found["loop"] = by_scipy(scores, permutations=1, rng=np.random.default_rng(1))

    seconds = median_seconds({"ours": ours, "loop": loop}, repeats=1, warm=False)
    per_set = 1 + options.draws  # observed, and each permutation
    measured = found["ours"]
    np.testing.assert_allclose([measured.individual.estimate, measured.group.estimate], found["loop"], rtol=1e-9)

    cores = len(os.sched_getaffinity(0))
    sets = [rng.beta(1.5, 1.5, size=shape) for _ in range(2 * cores)]
    began, busy = time.perf_counter(), time.process_time()
    fairness_nulls(sets, rng=np.random.default_rng(1), draws=options.draws // 5)
    used = (time.process_time() - busy) / (time.perf_counter() - began)

    ratio = (seconds["loop"] / 2 * per_set) / seconds["ours"]
    row = Row(
        work=f"I.F. and G.F. with {options.draws:,} permutations, "
        f"{options.values} values × {options.templates} templates × {options.samples:,} samples",
        unit="permutations/s",
        ours=per_set / seconds["ours"],
        others={"scipy in a loop": 2 / seconds["loop"]},
        targets={"≥ 100 × scipy in a loop": ratio >= 100, "all cores": used >= 0.8 * cores},
        notes=[
            f"{seconds['ours']:.1f} s in all; I.F. and G.F. of both agree to 1e-9",
            f"{len(sets)} sets of scores at once keep {used:.1f} of {cores} cores busy",
        ],
    )
    tell([row], to=options.json)


def by_scipy(scores: np.ndarray, *, permutations: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the observed I.F. and G.F.; measure so many permutations, too."""
    observed = _measured(scores)
    for _ in range(permutations):
        rows = rng.permuted(scores.reshape(len(scores), -1), axis=1)
        _measured(rows.reshape(scores.shape))
    return observed


def _measured(scores: np.ndarray) -> tuple[float, float]:
    values = range(scores.shape[1])
    pairs = [
        wasserstein_distance(template[first], template[second])
        for template in scores
        for first, second in itertools.combinations(values, 2)
    ]
    whole = scores.ravel()
    groups = [wasserstein_distance(scores[:, value].ravel(), whole) for value in values]
    return float(np.mean(pairs)), float(np.mean(groups))


if __name__ == "__main__":
    main()
