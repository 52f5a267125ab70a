"""How female- and male-dominated occupations are put together: the mean over both, the margin, the gap.

Each measure is a weighted sum of two means, one over the female-dominated and one over the male-dominated
occupations. So "all" weighs the two dominances equally however many occupations each has: a list with more
male-dominated occupations must not turn a general preference for male words into a stereotype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clinometer.metrics.gendered import FEMALE, MALE, Floats, Ints


@dataclass(frozen=True, slots=True)
class Contrast:
    """A weighted sum of the means of the two dominances."""

    measure: str
    dominance: str
    female: float  # weight of the female-dominated occupations' mean
    male: float

    def weight(self, dominance: int) -> float:
        """Return the weight of one dominance (1 female, −1 male)."""
        return self.female if dominance == FEMALE else self.male


MEANS = (
    Contrast("mean", "all", 0.5, 0.5),
    Contrast("mean", "female-dominated", 1.0, 0.0),
    Contrast("mean", "male-dominated", 0.0, 1.0),
)
# Of the gap (female minus male probability). Within one dominance gap and margin are the same but for the sign, so
# only the margin stands there.
LEANS = (
    Contrast("margin", "all", 0.5, -0.5),
    Contrast("margin", "female-dominated", 1.0, 0.0),
    Contrast("margin", "male-dominated", 0.0, -1.0),
    Contrast("gap", "all", 0.5, 0.5),
)


def possible(contrasts: Sequence[Contrast], dominance: Ints) -> tuple[Contrast, ...]:
    """Return the contrasts that need no dominance which the occupations lack."""
    absent = [code for code in (FEMALE, MALE) if code not in dominance]
    return tuple(each for each in contrasts if not any(each.weight(code) for code in absent))


def contrast_values(values: Floats, contrasts: Sequence[Contrast], *, dominance: Ints) -> Floats:
    r"""Return numbers whose mean is the contrast: (items, ...) -> (items, ..., contrasts).

    .. math:: x_i = w_{d(i)} \frac{n}{n_{d(i)}} (v_i - \bar v_{d(i)} + \mathrm{sign}(w_{d(i)})\,\theta)

    with :math:`\theta` the contrast. Items are prompts, for the bootstrap, or occupations, for sign flips. Where a
    contrast joins both dominances, what it does not ask about is taken out first (for the margin: a preference for
    one gender in all occupations); else that would widen intervals and null distributions, and hide a stereotype.
    NaN: not part of the contrast, or missing.
    """
    of_dominance = dominance.reshape(-1, *(1,) * (values.ndim - 1))
    results = []
    for contrast in contrasts:
        codes = [code for code in (FEMALE, MALE) if contrast.weight(code)]
        members = {code: np.where(of_dominance == code, values, np.nan) for code in codes}
        counts = {code: (~np.isnan(members[code])).sum(axis=0) for code in codes}
        sums = {code: np.nansum(members[code], axis=0) for code in codes}
        with np.errstate(invalid="ignore", divide="ignore"):  # a dominance without values has no mean: NaN
            means = {code: sums[code] / counts[code] for code in codes}
            theta = sum(contrast.weight(code) * means[code] for code in codes)
            total = sum(counts[code] for code in codes)
            result = np.full(values.shape, np.nan)
            for code in codes:
                weight = contrast.weight(code)
                shifted = members[code] - means[code] + np.sign(weight) * theta
                if len(codes) == 1:
                    shifted = members[code]  # the same, without rounding
                scaled = weight * total / counts[code] * shifted
                result = np.where(of_dominance == code, scaled, result)
        results.append(result)
    return np.stack(results, axis=-1)
