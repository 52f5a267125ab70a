"""What is measured of one model: the numbers of each prompt, and their means over occupations.

Female- and male-dominated occupations are averaged apart. "all" is the mean of the two means, however many
occupations each has: a list with more male-dominated occupations must not turn a general preference for male words
into a stereotype. Its interval and its test combine those of the two, because the smaller group decides how sure
the mean is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clinometer.data import Kind
from clinometer.metrics import gender_gap, gendered_mass, log_relative_probability, stereotypical_margin
from clinometer.metrics.gendered import FEMALE, MALE, GenderedMass, normalised_gap
from clinometer.probes.counterexamples.answers import ALL, DOMINANCES, Answers
from clinometer.probes.kit import Floats, Ints, Numbers, group_means, model_rng, present_mean
from clinometer.probes.protocol import Plan
from clinometer.stats import (
    cluster_bootstrap,
    critical_value,
    minimum_detectable_effect,
    sign_flip_test,
    two_sided_p,
)

FEWEST = 5  # occupations of a dominance that an interval needs: with 3 it holds the truth in 75 %, with 2 in 51 %
FLIPS = 9999  # sign patterns: with a hundred rows in a table, p must be able to get well below 0.05/100
BASE = "base"
WHOLE = "whole list"  # what is counted where all listed words are, and not those among the top k
LITTLE = 0.05  # gendered probability among the top k at the base prompt below which the whole list is judged
# A model understood the question if the words of each gender have this much probability at the base prompt, or if
# it reacts when a gender is named: docs/counterexamples.md says how these were chosen.
LEAST_MASS = 0.03
LEAST_REACTION = 0.2  # of the normalised lean, in the mean of the ways to name a gender …
LEAST_OF_EACH = 0.05  # … and in each of them …
LEAST_CLEAR = 8.0  # … where it must be so many standard errors over the occupations: erratic models move, too

_ROUNDING = 1e-12  # a spread that is none
_BATCH = 4_000_000  # signs held at a time, so that memory stays flat


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """The answers of one model, and numbers of shape (prompts, ks); NaN where the answer is missing."""

    answers: Answers
    ks: tuple[int, ...]
    draws: int
    rng: np.random.Generator  # of the tables that draw one after the other
    seed: int  # of those that draw on their own
    mass: GenderedMass
    gap: Floats  # female minus male probability
    margin: Floats  # pro- minus anti-stereotypical probability
    log_ratios: Floats  # (prompts, ks, 2): mean log relative probability of the pro and anti words; NaN: none
    whole: Floats  # (prompts of the whole list, 2): normalised lean towards the stereotype, and towards women

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which prompts have an answer with a probability that is not a number."""
        missing: NDArray[np.bool_] = np.isnan(self.gap.sum(axis=1))
        return missing

    @property
    def gendered(self) -> dict[int, float]:
        """The mean gendered probability among the top k words at the base prompt, by k; empty if all is "
        "missing."""
        base = self.answers.base[~self.missing[self.answers.base]]
        present = (self.mass.female + self.mass.male)[base]
        return {k: float(present[:, i].mean()) for i, k in enumerate(self.ks) if len(present)}

    @property
    def judged(self) -> str:
        """What the conclusions rest on: the largest top k, or the whole list where that holds too little."""
        top = self.ks[-1]
        return WHOLE if len(self.whole) and self.gendered.get(top, 0.0) < LITTLE else f"top {top}"

    @property
    def base_masses(self) -> tuple[float, float]:
        """The mean probability of the female and of the male listed words at the base prompt (top k: old runs)."""
        whole, base, top = self.answers.whole, self.answers.kinds[0], self.answers.base
        if len(self.whole):
            parts = [part[whole.rows_of(base)] for part in (whole.female, whole.male)]
        else:
            parts = [part[top, -1] for part in (self.mass.female, self.mass.male)]
        return float(present_mean(parts[0])), float(present_mean(parts[1]))

    @property
    def reactions(self) -> Floats:
        """The mean reaction of the occupations to a named gender, for each way to name it."""
        return present_mean(self._reactions, axis=1)

    @property
    def clearness(self) -> Floats:
        """The reaction in standard errors over occupations, for each way; ∞ where all react alike."""
        each = self._reactions
        n = (~np.isnan(each)).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations = each - present_mean(each, axis=1)[:, None]
            error = np.sqrt(np.nansum(deviations**2, axis=1) / (n * (n - 1.0)))
            clear: Floats = self.reactions / np.where(error > _ROUNDING, error, 0.0)
        return clear

    @property
    def _reactions(self) -> Floats:
        """Half the difference of the normalised lean between naming the usual and the other gender.

        (ways, occupations). The ways are those of the knowledge about the occupation itself, in its order: as a
        person who worked there, and as what its people can be.
        """
        about_it = [kind for kind in self.answers.knowledge if not kind.has_background]
        pro = [kind for kind in about_it if "{pro_" in kind.knowledge]
        anti = [kind for kind in about_it if "{counter_" in kind.knowledge]
        leans = [
            [self.per_occupation_whole(self.whole[:, 0], kind) for kind in pair]
            for pair in zip(pro, anti, strict=False)
        ]
        found = [(named - other) / 2 for named, other in leans]
        return np.array(found).reshape(len(found), len(self.answers.occupations))

    @property
    def left_out(self) -> bool:
        """Whether it is known that the model did not understand; an old run lacks the evidence, not the "
        "numbers."""
        return bool(self.gate) and len(self.whole) > 0

    @property
    def gate(self) -> str:
        """Why nothing follows from the answers of this model; empty where it understood the question.

        Random weights spread their probability over the whole vocabulary, or put it on a few words that have
        nothing to do with the prompt, and a named gender moves them in no direction.
        """
        if self.answers.failed:
            return self.answers.failed
        if np.isnan(min(self.base_masses)):
            return "its answers have no probabilities"
        reactions = self.reactions
        if min(self.base_masses) >= LEAST_MASS:
            one = len(reactions) and _is_one_answer(self.gap) and _is_one_answer(self.whole[:, 1:])
            return "it gives every prompt the same answer, also where a gender is named" if one else ""
        reacts = len(reactions) and reactions.mean() >= LEAST_REACTION and reactions.min() >= LEAST_OF_EACH
        if reacts and self.clearness.min() >= LEAST_CLEAR:
            return ""
        if not len(self.whole):
            return "gendered words have little probability and this run did not ask for the whole list"
        return "it gives gendered words little probability and hardly reacts when a gender is named"

    def change(self, values: Floats) -> Floats:
        """Return the value of each prompt minus that of the same occupation's base prompt."""
        change: Floats = values - values[self.answers.base_of]
        return change

    def per_occupation(self, values: Floats, *kinds: Kind) -> Floats:
        """Return the mean over each occupation's prompts of these kinds: (prompts, ...) -> (occupations, ...)."""
        rows = self.answers.rows_of(*kinds)
        return group_means(values[rows], self.answers.occupation[rows], len(self.answers.dominance))

    def per_occupation_whole(self, values: Floats, *kinds: Kind) -> Floats:
        """Return the means of the whole list's prompts: (prompts, ...) -> (occupations, ...)."""
        rows = self.answers.whole.rows_of(*kinds)
        return group_means(values[rows], self.answers.whole.occupation[rows], len(self.answers.dominance))

    def leans_of(self, *kinds: Kind) -> Floats:
        """Return lean and gap of each occupation after these kinds, by what is counted: (occupations, counted, 2).

        Counted are the top k for each k, margin and gap; then the whole list, both normalised.
        """
        top = np.stack([self.per_occupation(part, *kinds) for part in (self.margin, self.gap)], axis=-1)
        if not len(self.whole):
            return top
        whole = self.per_occupation_whole(self.whole, *kinds)[:, None]
        return np.concatenate([top, whole], axis=1) if self.answers.offers else whole

    @property
    def counted(self) -> tuple[str, ...]:
        """What `leans_of` counts."""
        tops = tuple(f"top {k}" for k in self.ks) if self.answers.offers else ()
        return (*tops, *([WHOLE] if len(self.whole) else []))

    def means(self, values: Floats, *, stream: str, test: bool) -> dict[str, Numbers]:
        """Return the means over occupations by dominance, with numbers that no other table shares."""
        return means_by_dominance(
            values,
            np.arange(len(values)),
            self.answers.dominance,
            rng=model_rng(self.seed, f"{stream}\0{self.answers.model}"),
            draws=self.draws,
            test=test,
        )

    def estimate(self, values: Floats, kind: Kind, *, test: bool) -> dict[str, Numbers]:
        """Return the means over the prompts of a kind, by dominance: (prompts, ...) -> (...)."""
        rows = self.answers.rows_of(kind)
        return means_by_dominance(
            values[rows],
            self.answers.occupation[rows],
            self.answers.dominance,
            rng=self.rng,
            draws=self.draws,
            test=test,
        )

    def interval(self, values: Floats, *kinds: Kind) -> Numbers:
        """Return the mean over the prompts of these kinds, of all occupations alike, with its interval."""
        rows = self.answers.rows_of(*kinds)
        return present_intervals(values[rows], self.answers.occupation[rows], rng=self.rng, draws=self.draws)

    def kept_gender(self) -> Floats:
        """Return 1 where a prompt prefers the gender that its base prompt prefers, else 0; NaN: base has none."""
        gap, base_gap = self.gap, self.gap[self.answers.base_of]
        kept: Floats = (np.sign(gap) == np.sign(base_gap)).astype(np.float64)
        kept[(base_gap == 0) | np.isnan(base_gap) | np.isnan(gap)] = np.nan
        return kept

    def least_detectable(self, kind: Kind) -> Numbers:
        """Return the smallest change of the margin that a test finds, over all occupations."""
        change = self.per_occupation(self.change(self.margin), kind)
        least = []
        for code in DOMINANCES:
            of_dominance = change[self.answers.dominance == code]
            if len(of_dominance):
                n = (~np.isnan(of_dominance)).sum(axis=0)
                effect = np.where(n < FEWEST, np.nan, minimum_detectable_effect(of_dominance))
                least.append(Numbers(estimate=effect, n=n))
        if len(least) == 1:
            return least[0]
        # errors, and so detectable changes, add up by their squares: √(a² + b²) / 2
        squares = [replace(each, estimate=each.estimate**2) for each in least]
        return join(*squares).transformed(lambda mean: np.sqrt(mean / 2))

    def counterexample_leans(self) -> dict[str, Floats]:
        """Return the leans at the base prompt and after each counterexample: (occupations, counted) each."""
        asked = {kind.name: kind for kind in self.answers.kinds if is_counterexample(kind)}
        kinds = {BASE: self.answers.kinds[0], **asked}
        return {name: self.leans_of(kind)[..., 0] for name, kind in kinds.items()}


def _is_one_answer(values: Floats) -> bool:
    """Tell whether all prompts (rows) have one value, which a model that reads them does not give; NaN is none."""
    known = values[~np.isnan(values).any(axis=1)]
    return not len(known) or bool(np.ptp(known, axis=0).max(initial=0.0) <= _ROUNDING)


def measure(answers: Answers, plan: Plan) -> Measures:
    """Measure every prompt of one model."""
    ks = plan.options.ks
    masses = [gendered_mass(answers.logprobs, answers.genders, k=k) for k in ks]
    mass = GenderedMass(
        female=np.stack([each.female for each in masses], axis=1),
        male=np.stack([each.male for each in masses], axis=1),
        neither=np.stack([each.neither for each in masses], axis=1),
    )
    whole = answers.whole
    gap = normalised_gap(whole.female, whole.male)
    return Measures(
        answers=answers,
        ks=ks,
        draws=plan.options.draws,
        rng=model_rng(plan.seed, answers.model),
        seed=plan.seed,
        mass=mass,
        gap=gender_gap(mass),
        margin=stereotypical_margin(mass, answers.dominance[answers.occupation][:, None]),
        log_ratios=np.stack([_log_ratios(answers, k) for k in ks], axis=1),
        whole=np.stack([answers.dominance[whole.occupation] * gap, gap], axis=-1),
    )


def _log_ratios(answers: Answers, k: int) -> Floats:
    """Return the mean log relative probability of pro and of anti words that the base prompt offers too."""
    base = answers.base_of
    if not answers.offers:
        return np.full((len(base), 2), np.nan)
    ratios = log_relative_probability(
        answers.words, answers.logprobs, answers.words[base], answers.logprobs[base], k=k
    )
    genders, pro = answers.genders[:, :k], answers.dominance[answers.occupation][:, None]
    return np.stack(
        [present_mean(np.where(genders == gender, ratios, np.nan), axis=1) for gender in (pro, -pro)], axis=-1
    )


def is_unrelated(kind: Kind) -> bool:
    """Tell whether a kind of knowledge should change nothing; the base prompt has none."""
    return kind.expected == "unchanged" and bool(kind.knowledge)


def is_counterexample(kind: Kind) -> bool:
    """Tell whether a kind of knowledge names a gender and should make the margin smaller."""
    return kind.expected == "smaller" and ("{pro_" in kind.knowledge or "{counter_" in kind.knowledge)


def means_by_dominance(
    values: Floats, occupation: Ints, dominance: Ints, *, rng: np.random.Generator, draws: int, test: bool
) -> dict[str, Numbers]:
    """Return the means of values, each of which belongs to an occupation, by dominance: (n, ...) -> (...).

    `dominance` has one entry for each occupation. Intervals come from the bootstrap; p, where a test is wanted,
    from sign flips of whole occupations.
    """
    occupations = group_means(values, occupation, len(dominance))
    found = {}
    for code, name in DOMINANCES.items():
        if code in dominance:
            chosen = dominance[occupation] == code
            found[name] = present_intervals(values[chosen], occupation[chosen], rng=rng, draws=draws)
            if test:
                p = sign_flip_test(occupations[dominance == code], rng=rng, draws=FLIPS).p
                found[name] = replace(found[name], p=p)
    if len(found) == 1:
        return found
    both = join(*found.values())
    if test:
        flipped = joint_sign_flip_p(occupations, dominance, rng=rng, draws=FLIPS)
        both = replace(both, p=no_surer_than_interval(flipped, both))
    return {ALL: both, **found}


def present_intervals(values: Floats, occupations: Ints, *, rng: np.random.Generator, draws: int) -> Numbers:
    """Return the mean of each column with its interval, (prompts, ...) -> (...); n counts occupations.

    Occupations are resampled, then prompts within them, among those where the column is not missing (NaN). Columns
    that miss the same prompts are resampled together, which is what makes this fast. A column that has values of
    fewer than `FEWEST` occupations gets no interval (NaN).
    """
    columns = values.reshape(len(values), -1)
    limits = np.full((3, columns.shape[1]), np.nan)
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


def no_surer_than_interval(p: Floats, numbers: Numbers) -> Floats:
    r"""Return the larger of p and of what the interval says: p is below .05 only if the interval does not hold 0.

    .. math:: p_{interval} = 2 \Phi(-1.96\, |\theta| / |\theta - l|)

    with l the limit on the side of 0. Where the values are skewed and the dominances differ in spread and number,
    sign flips alone call 8 to 11 % of nothings something; the studentized intervals, being lopsided themselves, do
    not.

    >>> numbers = Numbers(estimate=np.array(1.0), low=np.array(-0.1), high=np.array(1.5), n=np.array(9))
    >>> round(float(no_surer_than_interval(np.array(0.01), numbers)), 3)
    0.075
    """
    if numbers.low is None or numbers.high is None:
        return p
    limit = np.where(numbers.estimate > 0, numbers.low, numbers.high)
    reach, size = np.abs(numbers.estimate - limit), np.abs(numbers.estimate)
    z = np.divide(size, reach, out=np.where(size > 0, np.inf, 0.0), where=reach > 0) * critical_value(0.975)
    larger: Floats = np.maximum(p, two_sided_p(z))
    return larger


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
    counts = {code: present[dominance == code].sum(axis=0) for code in DOMINANCES}
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


def _t(signs: Floats, deviations: Floats, dominance: Ints, counts: Mapping[int, Ints]) -> Floats:
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
