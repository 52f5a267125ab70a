"""Where the human stereotypes stand in a model's lists, found once for all tables that count them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.metrics.stereotypes import gold_ranks
from clinometer.probes.kit.numbers import Floats
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.questions import Question, human_questions
from clinometer.probes.stereotypes.view import ALL, View

RANKINGS = ("after", "before")  # columns of the attributes …
RANKING_NAMES = {"after": "by typicality", "before": "by probability"}  # … and what they are called


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """The human stereotypes about the groups that are asked about, by the question that their prompt asks."""

    # by question and not by its text: one prompt may name two groups ("why are black women so")
    attributes: dict[Question, tuple[str, ...]]  # distinct
    group: NDArray[np.str_]  # (attributes,): of each, in the order of the above
    category: NDArray[np.str_]
    unmatched: int  # rows about groups that are not asked about

    def __len__(self) -> int:
        return len(self.group)

    def members(self, category: str) -> NDArray[np.int64]:
        """Return the numbers of the attributes of a category's groups."""
        return np.flatnonzero((self.category == category) | (category == ALL))


def read_gold(options: Options) -> Gold:
    """Return the human stereotypes to look for; one that several engines offer at one prompt counts once."""
    found: dict[Question, dict[str, None]] = {}
    rows = 0
    for question, row in human_questions(options):
        found.setdefault(question, {})[row.attribute.strip().lower()] = None
        rows += 1
    owners = [question for question, attributes in found.items() for _ in attributes]
    return Gold(
        attributes={question: tuple(attributes) for question, attributes in found.items()},
        group=np.array([question.group.name for question in owners], dtype=np.str_),
        category=np.array([question.group.category for question in owners], dtype=np.str_),
        unmatched=len(options.chosen_stereotypes()) - rows,
    )


def ranks_of_gold(view: View, gold: Gold) -> Floats:
    """Return the place of each gold attribute, after and before re-ranking: (attributes, 2); infinity: nowhere.

    A prompt is answered by the list of that very prompt, not by the templates.
    """
    number = {question: str(i) for i, question in enumerate(view.questions)}
    wanted = {number[question]: attributes for question, attributes in gold.attributes.items()}
    asked = pl.DataFrame({"index": list(map(int, wanted))}, schema={"index": pl.Int64})
    offered = view.answers.attributes.join(asked, on="index", how="semi")
    columns = []
    for ranking in RANKINGS:
        ranked = offered.sort("index", ranking).group_by("index", maintain_order=True).agg("word")
        places = gold_ranks({str(index): words for index, words in ranked.iter_rows()}, wanted)
        columns.append([place for of_question in places.values() for place in of_question.values()])
    return np.array(columns, dtype=np.float64).T.reshape(len(gold), len(RANKINGS))
