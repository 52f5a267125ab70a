"""How female- and male-dominated occupations are put together.

"all" is the mean of the two dominances' means, however many occupations each has: a list with more male-dominated
occupations must not turn a general preference for male words into a stereotype. What is known of "all" is put
together from what is known of each dominance, because the smaller one decides how sure the mean is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clinometer.metrics.gendered import FEMALE, MALE, Floats, Ints
from clinometer.probes.kit.numbers import Numbers

ALL = "all"
NAMES = {FEMALE: "female-dominated", MALE: "male-dominated"}

FEWEST = 5  # occupations of a dominance that an interval needs: with 3 it holds the truth in 75 %, with 2 in 51 %

_BATCH = 4_000_000  # signs held at a time, so that memory stays flat


def present_dominances(dominance: Ints) -> tuple[str, ...]:
    """Return the dominances that a list of occupations has, after "all" where it has both.

    >>> present_dominances(np.array([1, -1, 1])), present_dominances(np.array([1, 1]))
    (('all', 'female-dominated', 'male-dominated'), ('female-dominated',))
    """
    present = tuple(name for code, name in NAMES.items() if code in dominance)
    return (ALL, *present) if len(present) > 1 else present


def join(female: Numbers, male: Numbers) -> Numbers:
    r"""Return the mean of two independent estimates, with an interval made of theirs.

    .. math:: \bar\theta - \tfrac12 \sqrt{(\theta_f - l_f)^2 + (\theta_m - l_m)^2}

    and likewise above. Zou & Donner, Construction of confidence limits about effect measures: a general approach
    (Statistics in Medicine 27, 2008). NaN where one of them has no interval.
    """
    joined = Numbers(estimate=(female.estimate + male.estimate) / 2, n=female.n + male.n)
    if female.low is None or female.high is None or male.low is None or male.high is None:
        return joined
    return replace(
        joined,
        low=joined.estimate - np.hypot(female.estimate - female.low, male.estimate - male.low) / 2,
        high=joined.estimate + np.hypot(female.high - female.estimate, male.high - male.estimate) / 2,
    )


def joint_sign_flip_p(values: Floats, dominance: Ints, *, rng: np.random.Generator, draws: int) -> Floats:
    r"""Return p of "the two dominances' means cancel out", two-sided: (occupations, ...) -> (...).

    .. math:: t = (\bar v_f + \bar v_m) / \sqrt{s_f^2 / n_f + s_m^2 / n_m}

    Where the null hypothesis holds, the values, with the sign turned in one dominance, have one mean for all
    occupations. It is taken out (it is what the contrast does not ask about: for the margin, a preference for one
    gender everywhere), then the signs of whole occupations are flipped. Dividing by the standard error keeps the
    error rate where a dominance has few occupations: the wild bootstrap-t with the null imposed (Cameron, Gelbach
    & Miller 2008). NaN is missing; p is NaN where a dominance has fewer than `FEWEST` occupations.
    """
    turned = (values * dominance.reshape(-1, *(1,) * (values.ndim - 1))).reshape(len(values), -1)
    present = ~np.isnan(turned)
    counts = {code: present[dominance == code].sum(axis=0) for code in NAMES}
    enough = np.all([count >= FEWEST for count in counts.values()], axis=0)
    p = np.full(turned.shape[1], np.nan)
    if enough.any():
        kept, counts = turned[:, enough], {code: count[enough] for code, count in counts.items()}
        centre = np.nansum(kept, axis=0) / present[:, enough].sum(axis=0)
        deviations: Floats = np.where(present[:, enough], kept - centre, 0.0)
        # rounding is not spread: values that are all the same must stay so
        deviations[np.abs(deviations) <= 1e-13 * np.nanmax(np.abs(kept), axis=0)] = 0.0
        observed = np.ones((1, len(values)))
        threshold = np.abs(_t(observed, deviations, dominance, counts))[0] * (1 - 1e-5)
        as_large = np.ones(deviations.shape[1])  # the observed signs are one of the patterns
        batch = max(1, _BATCH // len(values))
        for done in range(0, draws, batch):
            bits = rng.integers(2, size=(min(batch, draws - done), len(values)), dtype=np.int8)
            signs = (1 - 2 * bits).astype(np.float64)
            as_large += (np.abs(_t(signs, deviations, dominance, counts)) >= threshold).sum(axis=0)
        p[enough] = as_large / (draws + 1)
    return p.reshape(values.shape[1:])


def _t(signs: Floats, deviations: Floats, dominance: Ints, counts: dict[int, Ints]) -> Floats:
    """Return the difference of the dominances' means in standard errors, for each row of signs."""
    scale = np.abs(deviations).max(axis=0)
    means, variance = {}, np.zeros((len(signs), deviations.shape[1]))
    for code, count in counts.items():
        members = deviations[dominance == code]
        means[code] = signs[:, dominance == code] @ members / count
        squares = (members**2).sum(axis=0) / count
        spread = squares - means[code] ** 2
        spread[spread <= 1e-10 * squares] = 0.0  # what is left of a difference of equal numbers is rounding
        variance += spread / (count - 1)
    difference = means[FEMALE] - means[MALE]
    difference[np.abs(difference) <= 1e-12 * scale] = 0.0
    error = np.maximum(np.sqrt(variance), 1e-6 * scale)  # without any spread: large, but finite
    t: Floats = np.divide(difference, error, out=np.zeros_like(difference), where=difference != 0)
    return t
