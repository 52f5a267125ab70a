"""What the answers of one model come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from clinometer.data import Verbalizer
from clinometer.probes.counterexamples.dominances import NAMES
from clinometer.probes.counterexamples.tables.leans import change_rows, lean_rows, mass_rows
from clinometer.probes.counterexamples.tables.occupations import correlation_rows, occupation_rows
from clinometer.probes.counterexamples.tables.relative import relative_rows
from clinometer.probes.counterexamples.tables.robustness import robustness_rows
from clinometer.probes.counterexamples.tables.vocabulary import (
    WORD_COLUMNS,
    Listed,
    listed_words,
    vocabulary_rows,
)
from clinometer.probes.counterexamples.tables.words import coverage_rows, word_rows
from clinometer.probes.counterexamples.view import View, view_model
from clinometer.probes.protocol import Plan, Records
from clinometer.types import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFindings:
    """The rows of one model for each table, by the table's name, and what comparisons and notices need."""

    model: str
    view: View
    rows: Mapping[str, list[Finding]]
    dominances: Mapping[str, int]  # dominance -> occupations
    listed: tuple[Listed, ...]
    prompts: int
    missing: int  # prompts whose answer has a probability that is not a number
    without_words: Mapping[int, int]  # k -> occupations whose base prompt offers no gendered word
    gendered: Mapping[int, float]  # k -> mean gendered probability among the top k words

    @property
    def occupations(self) -> int:
        """The number of occupations asked about."""
        return sum(self.dominances.values())


def model_findings(plan: Plan, records: Records, verbalizer: Verbalizer) -> ModelFindings:
    """Conclude from the answers of one model."""
    view = view_model(plan, records, verbalizer)
    words = records.table(model=view.model, stage="words", columns=WORD_COLUMNS)
    listed = listed_words(words, verbalizer)
    changed = change_rows(view)
    rows = {
        "gendered_mass": list(mass_rows(view)),
        "lean": lean_rows(view),
        "change": changed,
        "relative_probability": relative_rows(view),
        "robustness": list(robustness_rows(view, changed)),
        "labour_statistics": correlation_rows(view),
        "occupations": list(occupation_rows(view)),
        "coverage": list(coverage_rows(view)),
        "words": list(word_rows(view)),
        "vocabulary": list(vocabulary_rows(view.model, listed)),
    }
    gendered = view.measures.female + view.measures.male
    missing = np.isnan(gendered).any(axis=1)
    base = view.rows_of(view.kinds[0])
    return ModelFindings(
        model=view.model,
        view=view,
        rows=rows,
        dominances={name: int((view.dominance == code).sum()) for code, name in NAMES.items()},
        listed=listed,
        prompts=len(gendered),
        missing=int(missing.sum()),
        without_words={k: int((gendered[base, i] == 0).sum()) for i, k in enumerate(view.ks)},
        gendered={k: float(gendered[~missing, i].mean()) for i, k in enumerate(view.ks) if not missing.all()},
    )
