"""In which ways models are asked, and which ways may be compared: in values, in rank only, or not at all.

Which pairs may be compared is data: `data/asking/comparable.toml`, one row for each audit and pair of ways. A way
is always comparable with itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from clinometer.data.comparability import Comparison, load_comparisons
from clinometer.types import ModelInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a model is asked: the name that tables write, what it needs, and whether probabilities are exact."""

    name: str
    capability: str  # what a model must offer
    exact: bool = True  # read from the model; False: counted in what was drawn


FILL = Way(name="fill", capability="fill")
RESCORED = Way(name="fill by rescoring", capability="rescore")
NEXT_WORD = Way(name="next word", capability="next_word")
ANSWER = Way(name="answer", capability="answer_word")
DRAWN = Way(name="drawn answers", capability="ask", exact=False)
SCALE = Way(name="scale", capability="ask", exact=False)
SAMPLED = Way(name="samples", capability="sample", exact=False)
CONTINUED = Way(name="drawn continuations", capability="ask", exact=False)
LABEL = Way(name="own label", capability="classify")
WAYS = (FILL, RESCORED, NEXT_WORD, ANSWER, DRAWN, SCALE, SAMPLED, CONTINUED, LABEL)

VALUES, RANKS, NOT = "values", "ranks", "not"


def way_of(model: ModelInfo, ways: Collection[Way]) -> Way:
    """Return the first of an audit's ways in which a model can be asked, in the order of `ways`.

    A chat model never reads as a causal one here: its kind is a part of what it offers.
    """
    return next(way for way in ways if way.capability in model.capabilities)


@cache
def _comparisons() -> dict[tuple[str, frozenset[str]], Comparison]:
    found = load_comparisons(tuple(way.name for way in WAYS))
    return {(each.audit, frozenset((each.first, each.second))): each for each in found}


def comparable(audit: str, first: str, second: str) -> Comparison:
    """Return whether two ways of asking give numbers that may be compared, and why.

    What is not listed may not be compared.

    >>> comparable("stigma", "fill", "fill by rescoring").how
    'values'
    >>> comparable("counterfactual", "samples", "own label").how
    'not'
    """
    if first == second:
        why = "the same question, asked in the same way"
        return Comparison(audit=audit, first=first, second=second, how=VALUES, why=why)
    listed = _comparisons().get((audit, frozenset((first, second))))
    if listed is not None:
        return listed
    return Comparison(audit=audit, first=first, second=second, how=NOT, why="nothing is asked alike")
