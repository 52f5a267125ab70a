"""Gendered probability among the most probable words, and how a context changes it (counterexamples audit).

All functions take answers as arrays of shape (prompts, words): one row for each prompt, its most probable word
first. A row with fewer words is padded with log-probability −inf.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEMALE, MALE, NEITHER = 1, -1, 0  # codes of a word's gender, and of the gender that dominates an occupation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenderedMass:
    """Probability that the top k words give to each gender; three arrays with one entry for each prompt."""

    female: Floats
    male: Floats
    neither: Floats


def gendered_mass(logprobs: Floats, genders: Ints, *, k: int) -> GenderedMass:
    r"""Return the probability of female, male and other words among the first k words of each prompt.

    .. math:: P_g(c) = \sum_{w \in \mathrm{top}_k(c),\; \mathrm{gender}(w) = g} p(w \mid c)

    "Evaluation Metrics" of the counterexamples paper. `logprobs` (natural) and `genders` (1 female, −1 male,
    0 neither) have shape (prompts, words). A prompt with a NaN among its first k has NaN mass: missing, not zero.

    >>> mass = gendered_mass(np.log([[0.5, 0.25, 0.125]]), np.array([[1, -1, 1]]), k=2)
    >>> [round(float(part[0]), 3) for part in (mass.female, mass.male, mass.neither)]
    [0.5, 0.25, 0.0]
    """
    if k < 1:
        raise ValueError(f"k is {k}; expected at least 1")
    probabilities = np.exp(logprobs[:, :k])
    missing = np.isnan(probabilities).any(axis=1)

    def of(gender: int) -> Floats:
        mass: Floats = np.where(genders[:, :k] == gender, probabilities, 0.0).sum(axis=1)
        mass[missing] = np.nan
        return mass

    return GenderedMass(female=of(FEMALE), male=of(MALE), neither=of(NEITHER))


def gender_gap(mass: GenderedMass) -> Floats:
    r"""Return female minus male probability: positive where the model expects a woman.

    .. math:: G(c) = P_{female}(c) - P_{male}(c)

    >>> gap = gender_gap(GenderedMass(female=np.array([0.5]), male=np.array([0.2]), neither=np.array([0.1])))
    >>> round(float(gap[0]), 3)
    0.3
    """
    gap: Floats = mass.female - mass.male
    return gap


def stereotypical_margin(mass: GenderedMass, dominance: Ints) -> Floats:
    r"""Return pro- minus anti-stereotypical probability: positive where the model follows the stereotype.

    .. math:: M(c) = P_{pro}(c) - P_{anti}(c)

    Pro-stereotypical is the gender that dominates the occupation (caption of the paper's Table 1). `dominance` has
    one entry for each prompt: 1 female, −1 male.

    >>> mass = GenderedMass(female=np.array([0.5, 0.5]), male=np.array([0.25, 0.25]), neither=np.zeros(2))
    >>> stereotypical_margin(mass, np.array([1, -1])).tolist()
    [0.25, -0.25]
    """
    margin: Floats = dominance * gender_gap(mass)
    return margin


def normalised_gap(female: Floats, male: Floats) -> Floats:
    r"""Return the gap as a share of the gendered probability: −1 all male, 1 all female.

    .. math:: (P_{female} - P_{male}) / (P_{female} + P_{male})

    Over a whole list of words it does not depend on how many of them are among the top k. NaN where neither gender
    has any probability.

    >>> normalised_gap(np.array([0.003, 0.0]), np.array([0.001, 0.0])).tolist()
    [0.5, nan]
    """
    total = female + male
    gap: Floats = np.divide(female - male, total, out=np.full(np.shape(total), np.nan), where=total > 0)
    return gap


def log_relative_probability(
    words: Ints, logprobs: Floats, base_words: Ints, base_logprobs: Floats, *, k: int
) -> Floats:
    r"""Return the logarithm of the relative probability of each word that is in both lists of a prompt.

    .. math:: \log \frac{p(w \mid c_{knowledge})}{p(w \mid c_{base})}

    Equation 1 of the counterexamples paper. Words are numbers (the same word has the same number; negative is
    padding) of shape (prompts, words); the base arrays hold, row by row, the answer to the same prompt without
    knowledge. The result has shape (prompts, k): NaN where the word is not among the first k of both. If a word
    appears twice in a list (two spellings with one number), its probabilities are added and its ratio appears
    once.

    >>> ratio = log_relative_probability(
    ...     np.array([[7, 8]]), np.log([[0.4, 0.1]]), np.array([[9, 7]]), np.log([[0.3, 0.2]]), k=2
    ... )
    >>> np.exp(ratio).round(3).tolist()
    [[2.0, nan]]
    """
    if k < 1:
        raise ValueError(f"k is {k}; expected at least 1")
    words, base_words = words[:, :k], base_words[:, :k]
    same = words[:, :, None] == words[:, None, :]
    in_base = words[:, :, None] == base_words[:, None, :]
    first = ~np.tril(same, k=-1).any(axis=2)  # no earlier word of the row has this number
    shared = first & in_base.any(axis=2) & (words >= 0)
    after = np.einsum("nij,nj->ni", same, np.exp(logprobs[:, :k]))
    before = np.einsum("nij,nj->ni", in_base, np.exp(base_logprobs[:, :k]))
    with np.errstate(divide="ignore", invalid="ignore"):  # both may be 0 where nothing is shared
        return np.where(shared, np.log(after) - np.log(before), np.nan)
