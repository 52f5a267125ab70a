"""What all finding tables of one model share: its answers, their measures, and how an estimate is made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clinometer.data import Kind, Verbalizer, load_sentences
from clinometer.metrics.gendered import Floats, Ints
from clinometer.probes.counterexamples.answers import COLUMNS, Answers, read_answers
from clinometer.probes.counterexamples.contrasts import LEANS, MEANS, Contrast, contrast_values, possible
from clinometer.probes.counterexamples.intervals import present_intervals
from clinometer.probes.counterexamples.measures import Measures, by_occupation, measure
from clinometer.probes.counterexamples.numbers import Label, Numbers
from clinometer.probes.protocol import Plan, Records
from clinometer.stats import sign_flip_test

FLIPS = 9999  # sign patterns: with a hundred rows in a table, p must be able to get well below 0.05/100


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The answers of one model, ready to be summarised."""

    model: str
    ks: tuple[int, ...]
    draws: int
    rng: np.random.Generator
    answers: Answers
    measures: Measures
    kinds: tuple[Kind, ...]  # the base first, then those that were asked
    occupation: Ints  # (prompts,): occupations numbered in the order asked
    dominance: Ints  # (occupations,)
    means: tuple[Contrast, ...]
    leans: tuple[Contrast, ...]

    @property
    def knowledge(self) -> tuple[Kind, ...]:
        """The kinds of knowledge, without the base."""
        return self.kinds[1:]

    @property
    def gap_change(self) -> Floats:
        """Gap of each prompt minus that of its base prompt, (prompts, ks)."""
        change: Floats = self.measures.gap - self.measures.gap[self.answers.base]
        return change

    def rows_of(self, kind: Kind) -> Ints:
        """Return the prompts of a kind."""
        return np.flatnonzero(self.answers.kind == kind.name)

    def labels(self, k: int, kind: Kind, **others: Label) -> dict[str, Label]:
        """Return the labels that most tables begin with, and others."""
        return {"model": self.model, "k": k, "kind": kind.name, **others}

    def per_occupation(self, values: Floats, kind: Kind) -> Floats:
        """Return the mean over each occupation's prompts of a kind: (prompts, ...) -> (occupations, ...)."""
        rows = self.rows_of(kind)
        return by_occupation(values[rows], self.occupation[rows], len(self.dominance))

    def estimate(self, values: Floats, kind: Kind, contrasts: Sequence[Contrast], *, test: bool) -> Numbers:
        """Return contrasts over the prompts of a kind: (prompts, ...) -> (..., contrasts).

        Intervals come from the bootstrap; p, where a test is wanted, from sign flips of whole occupations.
        """
        rows = self.rows_of(kind)
        prompts = contrast_values(values[rows], contrasts, dominance=self.answers.dominance[rows])
        numbers = self.interval(prompts, rows)
        if not test:
            return numbers
        flippable = contrast_values(self.per_occupation(values, kind), contrasts, dominance=self.dominance)
        return replace(numbers, p=sign_flip_test(flippable, rng=self.rng, draws=FLIPS).p)

    def interval(self, values: Floats, rows: Ints) -> Numbers:
        """Return the mean of values, one for each of the given prompts, with its interval."""
        return present_intervals(values, self.occupation[rows], rng=self.rng, draws=self.draws)


def view_model(plan: Plan, records: Records, verbalizer: Verbalizer) -> View:
    """Read and measure the answers of one model."""
    name = plan.model.name
    answers = read_answers(records.table(model=name, stage="prompts", columns=COLUMNS), verbalizer)
    _, first, codes = np.unique(answers.occupation, return_index=True, return_inverse=True)
    dominance = answers.dominance[np.sort(first)]
    # The draws depend on seed and model alone: adding a model to a run changes no other model's numbers.
    name_number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return View(
        model=name,
        ks=plan.options.ks,
        draws=plan.options.draws,
        rng=np.random.default_rng([plan.seed, name_number]),
        answers=answers,
        measures=measure(answers, plan.options.ks),
        kinds=tuple(kind for kind in load_sentences().kinds if kind.name in answers.kind),
        occupation=np.argsort(np.argsort(first))[codes],
        dominance=dominance,
        means=possible(MEANS, dominance),
        leans=possible(LEANS, dominance),
    )
