"""Bootstrap intervals for many columns, each over the prompts that it has a value for."""

from __future__ import annotations

import numpy as np

from clinometer.metrics.gendered import Floats, Ints
from clinometer.probes.counterexamples.dominances import FEWEST
from clinometer.probes.kit.numbers import Numbers
from clinometer.stats import cluster_bootstrap


def present_intervals(values: Floats, occupations: Ints, *, rng: np.random.Generator, draws: int) -> Numbers:
    """Return the mean of each column with its interval, (prompts, ...) -> (...); n counts occupations.

    Occupations are resampled, then prompts within them, among those where the column is not missing (NaN). Columns
    that miss the same prompts are resampled together, which is what makes this fast. A column that has values of
    fewer than `FEWEST` occupations gets no interval (NaN).
    """
    columns = values.reshape(len(values), -1)
    shape = (3, columns.shape[1])
    limits = np.full(shape, np.nan)
    n = np.zeros(columns.shape[1], dtype=np.int64)
    patterns, pattern_of = np.unique(~np.isnan(columns), axis=1, return_inverse=True)
    for number, rows in enumerate(patterns.T):
        if not rows.any():
            continue  # a column without a single value: missing
        chosen = np.flatnonzero(pattern_of == number)
        n[chosen] = len(np.unique(occupations[rows]))
        if n[chosen[0]] < FEWEST:
            limits[0, chosen] = columns[rows][:, chosen].mean(axis=0)
            continue
        found = cluster_bootstrap(columns[rows][:, chosen], occupations[rows], rng=rng, draws=draws)
        limits[:, chosen] = found.estimate, found.low, found.high
    estimate, low, high = (part.reshape(values.shape[1:]) for part in limits)
    return Numbers(estimate=estimate, low=low, high=high, n=n.reshape(values.shape[1:]))
