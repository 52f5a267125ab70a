"""Words that were drawn, not computed: a distribution with its number of draws.

The intervals of the audits need no correction for the drawing: values from a few answers each differ more,
and resampling the units (occupations, conditions, reviews) resamples that noise with them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clinometer.probes.kit.chat import OUTCOMES, REFUSAL, WORD, Outcome, Reading, read_word
from clinometer.probes.kit.numbers import Ints, percent

# The gate of every audit that asks for words: a model that mostly rambles does not understand what is asked of it.
# Refusing is understanding, so that refusals count neither way.
GATE_SHARE = 0.5  # of the answers that are not refusals must give a word


@dataclass(frozen=True, kw_only=True)
class DrawnWords:
    """What was answered to one prompt: a distribution over words, with its number of draws."""

    readings: tuple[Reading, ...]

    @property
    def draws(self) -> int:
        """How many answers were drawn."""
        return len(self.readings)

    @property
    def answered(self) -> int:
        """How many of them give a word: the number of draws behind `words`."""
        return self.count(WORD)

    def count(self, outcome: Outcome) -> int:
        """Return how many answers are of one kind."""
        return sum(reading.outcome == outcome for reading in self.readings)

    @property
    def outcomes(self) -> Ints:
        """How many answers are of each kind, in the order of `OUTCOMES`."""
        return np.array([self.count(outcome) for outcome in OUTCOMES], dtype=np.int64)

    @cached_property
    def words(self) -> dict[str, float]:
        """Each word's share of the answers with a word, largest first; the words of a list share an answer."""
        found: dict[str, float] = {}
        for reading in self.readings:
            for word in reading.words:
                found[word] = found.get(word, 0.0) + 1 / (len(reading.words) * self.answered)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def share(self, words: Collection[str]) -> float:
        """Return the share of the answers with a word that these words have; NaN where no answer has one.

        >>> count_words(["nurse", "a nurse", "doctor/nurse", "I refuse."]).share(["nurse"])
        0.8333333333333333
        """
        if not self.answered:
            return math.nan
        return float(sum(share for word, share in self.words.items() if word in words))


def count_words(texts: Sequence[str], *, asked: str = "", words: Sequence[str] = ()) -> DrawnWords:
    """Read the answers to one prompt; see `read_word`.

    >>> found = count_words(["Nurse.", "nurse", "The word is doctor.", "I can't answer that."])
    >>> {word: round(share, 2) for word, share in found.words.items()}, found.draws, found.count("refusal")
    ({'nurse': 0.67, 'doctor': 0.33}, 4, 1)
    """
    return DrawnWords(readings=tuple(read_word(text, asked=asked, words=words) for text in texts))


def failed_to_answer(prompts: Sequence[DrawnWords]) -> str:
    """Return why the words of a chat model mean nothing, for `conclude(gate=…)`; "" if they may.

    >>> failed_to_answer([count_words(["nurse", "I won't answer.", "This is a sentence.", "", "42"])])
    'it gives a word in 25 % of the answers that are not refusals; half is needed'
    """
    tried = sum(drawn.draws - drawn.count(REFUSAL) for drawn in prompts)
    if not tried:
        return "it refuses every answer" if any(drawn.draws for drawn in prompts) else "it was not asked"
    share = sum(drawn.answered for drawn in prompts) / tried
    if share >= GATE_SHARE:
        return ""
    return f"it gives a word in {percent(share, 0)} of the answers that are not refusals; half is needed"
