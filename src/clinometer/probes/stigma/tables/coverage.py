"""How much of the probability the ratio speaks for, and which words hold it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.metrics.attitude import Floats, present_mean
from clinometer.probes.stigma.attitudes import LISTS, MaskedAnswers, MaskedView
from clinometer.probes.stigma.classes import per_condition
from clinometer.probes.stigma.groups import mean_interval
from clinometer.probes.stigma.tables.levels import ALL
from clinometer.types import Finding

ENOUGH = 0.5  # Figure 5 of the paper: the words read hold at least so much
SHOWN = 25  # words of each list

COVERED, IRRELEVANT, UNRATED, BEYOND = "in the ratio", "irrelevant", "unrated", "beyond the words read"
BELOW = "prompts with less than 0.5 in the ratio"


def coverage_rows(view: MaskedView, answers: MaskedAnswers) -> Iterator[Finding]:
    """Yield where the probability lies, on average over the conditions; the parts add up to 1."""
    covered = answers.coverage
    parts = {
        COVERED: covered,
        IRRELEVANT: answers.masses["irrelevant"],
        UNRATED: answers.masses["unrated"],
        BEYOND: 1 - covered - answers.masses["irrelevant"] - answers.masses["unrated"],
        BELOW: np.where(np.isnan(covered), np.nan, (covered < ENOUGH).astype(np.float64)),
    }
    count = len(view.roster.names)

    def by_condition(
        values: Floats,
    ) -> Floats:  # (templates, wordings, distances) -> (conditions, all + templates)
        each = [per_condition(of_template, view.roster.condition_of, count) for of_template in values]
        return np.stack([present_mean(np.stack(each), axis=0), *each], axis=1)

    stacked = np.stack([by_condition(values) for values in parts.values()], axis=-1)
    numbers = mean_interval(stacked, rng=view.rng, draws=view.draws).as_share()
    for t, template in enumerate((ALL, *view.templates)):
        for at, part in enumerate(parts):
            yield numbers.finding((t, at), {"model": view.model, "template": template, "part": part})


def word_rows(answers: MaskedAnswers) -> Iterator[Finding]:
    """Yield the words with the most probability in each list, and among those that nobody rated."""
    for name in LISTS[::-1]:
        chosen = [each for each in answers.words if each.listed == name][:SHOWN]
        for rank, each in enumerate(chosen, start=1):
            yield Finding(
                labels={"model": answers.model, "list": name, "rank": rank, "word": each.word},
                estimate=each.probability,
                n=each.prompts,
            )
