"""What all finding tables of one model share: its answers, their measures, and how an estimate is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from clinometer.data import Kind, Verbalizer
from clinometer.metrics.gendered import Floats, Ints
from clinometer.probes.counterexamples.answers import COLUMNS, Answers, read_answers
from clinometer.probes.counterexamples.dominances import ALL, NAMES, join, joint_sign_flip_p, present_dominances
from clinometer.probes.counterexamples.intervals import present_intervals
from clinometer.probes.counterexamples.measures import Measures, by_occupation, measure
from clinometer.probes.kit.numbers import Label, Numbers, model_rng
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

    @property
    def knowledge(self) -> tuple[Kind, ...]:
        """The kinds of knowledge, without the base."""
        return self.kinds[1:]

    @property
    def dominances(self) -> tuple[str, ...]:
        """The dominances that the occupations have, after "all" where they have both."""
        return present_dominances(self.dominance)

    def change(self, values: Floats) -> Floats:
        """Return the value of each prompt minus that of its base prompt."""
        change: Floats = values - values[self.answers.base]
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

    def estimate(self, values: Floats, kind: Kind, *, test: bool) -> dict[str, Numbers]:
        """Return the means over the prompts of a kind, by dominance: (prompts, ...) -> (...).

        Intervals come from the bootstrap; p, where a test is wanted, from sign flips of whole occupations.
        """
        rows = self.rows_of(kind)
        return self.by_dominance(values[rows], self.occupation[rows], test=test)

    def by_dominance(self, values: Floats, occupation: Ints, *, test: bool) -> dict[str, Numbers]:
        """Return the means of values, each of which belongs to an occupation, by dominance: (n, ...) -> (...)."""
        occupations = by_occupation(values, occupation, len(self.dominance))
        found = {}
        for code, name in NAMES.items():
            if name in self.dominances:
                chosen = self.dominance[occupation] == code
                found[name] = present_intervals(values[chosen], occupation[chosen], rng=self.rng, draws=self.draws)
                if test:
                    p = sign_flip_test(occupations[self.dominance == code], rng=self.rng, draws=FLIPS).p
                    found[name] = replace(found[name], p=p)
        if ALL not in self.dominances:
            return found
        both = join(*found.values())
        if test:
            p = joint_sign_flip_p(occupations, self.dominance, rng=self.rng, draws=FLIPS)
            both = replace(both, p=p)
        return {ALL: both, **found}

    def interval(self, values: Floats, rows: Ints) -> Numbers:
        """Return the mean of values, one for each of the given prompts, with its interval."""
        return present_intervals(values, self.occupation[rows], rng=self.rng, draws=self.draws)


def view_model(plan: Plan, records: Records, verbalizer: Verbalizer) -> View:
    """Read and measure the answers of one model."""
    name = plan.model.name
    answers = read_answers(records.table(model=name, stage="prompts", columns=COLUMNS), verbalizer)
    _, first, codes = np.unique(answers.occupation, return_index=True, return_inverse=True)
    return View(
        model=name,
        ks=plan.options.ks,
        draws=plan.options.draws,
        rng=model_rng(plan.seed, name),
        answers=answers,
        measures=measure(answers, plan.options.ks),
        kinds=tuple(kind for kind in plan.options.chosen_sentences().kinds if kind.name in answers.kind),
        occupation=np.argsort(np.argsort(first))[codes],
        dominance=answers.dominance[np.sort(first)],
    )
