"""What each prompt says: the gendered probability of its words, and how it compares with the base prompt's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinometer.metrics import gender_gap, gendered_mass, log_relative_probability, stereotypical_margin
from clinometer.metrics.gendered import FEMALE, MALE, Floats, Ints
from clinometer.probes.counterexamples.answers import Answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Numbers for each prompt and each k, of shape (prompts, ks); NaN where the answer is missing."""

    female: Floats
    male: Floats
    neither: Floats
    gap: Floats  # female minus male probability
    margin: Floats  # pro- minus anti-stereotypical probability
    log_ratio_pro: Floats  # mean log relative probability of the pro words shared with base; NaN: none
    log_ratio_anti: Floats


def measure(answers: Answers, ks: tuple[int, ...]) -> Measures:
    """Return the measures of every prompt."""
    genders = answers.genders
    masses = [gendered_mass(answers.logprobs, genders, k=k) for k in ks]
    pro, anti = [], []
    for k in ks:
        ratios = log_relative_probability(
            answers.words,
            answers.logprobs,
            answers.words[answers.base],
            answers.logprobs[answers.base],
            k=k,
        )
        of_gender = {gender: _mean_of(ratios, genders[:, :k] == gender) for gender in (FEMALE, MALE)}
        pro.append(np.where(answers.dominance == FEMALE, of_gender[FEMALE], of_gender[MALE]))
        anti.append(np.where(answers.dominance == FEMALE, of_gender[MALE], of_gender[FEMALE]))
    return Measures(
        female=np.stack([mass.female for mass in masses], axis=1),
        male=np.stack([mass.male for mass in masses], axis=1),
        neither=np.stack([mass.neither for mass in masses], axis=1),
        gap=np.stack([gender_gap(mass) for mass in masses], axis=1),
        margin=np.stack([stereotypical_margin(mass, answers.dominance) for mass in masses], axis=1),
        log_ratio_pro=np.stack(pro, axis=1),
        log_ratio_anti=np.stack(anti, axis=1),
    )


def by_occupation(values: Floats, occupations: Ints, count: int) -> Floats:
    """Return the mean over the prompts of each occupation, (prompts, ...) -> (count, ...); NaN is left out."""
    present = ~np.isnan(values)
    sums = np.zeros((count, *values.shape[1:]))
    totals = np.zeros((count, *values.shape[1:]))
    np.add.at(sums, occupations, np.where(present, values, 0.0))
    np.add.at(totals, occupations, present)
    means: Floats = np.divide(sums, totals, out=np.full_like(sums, np.nan), where=totals > 0)
    return means


def _mean_of(ratios: Floats, chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    kept = chosen & ~np.isnan(ratios)
    totals = kept.sum(axis=1)
    sums = np.where(kept, ratios, 0.0).sum(axis=1)
    means: Floats = np.divide(sums, totals, out=np.full(len(ratios), np.nan), where=totals > 0)
    return means
