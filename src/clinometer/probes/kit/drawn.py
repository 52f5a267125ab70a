"""Words that were drawn, not computed: a distribution with its number of draws, and intervals that carry them.

A mean over many units (occupations, conditions, reviews) whose values come from a few answers each needs none of
this: the values differ more because they were drawn, and whoever resamples units resamples that noise with them.
What is said of one unit, or of a few, rests on its own answers: `drawn_bootstrap` resamples these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clinometer.probes.kit.chat import OUTCOMES, REFUSAL, WORD, Outcome, Reading, read_word
from clinometer.probes.kit.numbers import Floats, Ints, percent
from clinometer.stats import cluster_bootstrap, share_interval
from clinometer.types import Finding

# The gate of every audit that asks for words: a model that mostly rambles does not understand what is asked of it.
# Refusing is understanding, so that refusals count neither way.
GATE_SHARE = 0.5  # of the answers that are not refusals must give a word
FEWEST_UNITS = 10  # from which on units are resampled: intervals over fewer clusters are too short


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

    def values(self, value_of: Callable[[str], float]) -> Floats:
        """Return a number for each answer, the mean over its words; NaN for one without a word, or of no value."""
        found = np.full(self.draws, np.nan)
        for at, reading in enumerate(self.readings):
            known = [value for value in map(value_of, reading.words) if not math.isnan(value)]
            found[at] = sum(known) / len(known) if known else math.nan
        return found


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


def drawn_bootstrap(
    answers: Sequence[Floats],
    *,
    units: Sequence[str] | None = None,
    rng: np.random.Generator,
    draws: int = 1999,
    bounds: tuple[float, float] | None = None,
) -> Finding:
    """Give the mean of numbers read from drawn answers an interval, and a p-value of "the mean is 0".

    A finding without labels, to be given its own by `dataclasses.replace`.

    With at least `FEWEST_UNITS` units, units are resampled, then the answers within them (`cluster_bootstrap`):
    the finding speaks for units like these. With fewer, the prompts stay as they are and the answers to each are
    resampled: it speaks for these prompts, and the interval is all drawing noise. The estimate is the mean over
    answers in the first case, over prompts in the second.

    Where all answers are alike there is no spread to resample, though other draws might differ. With `bounds`, the
    lowest and highest possible value, the interval is then Wilson's for as many units, or answers; without them
    there is none.

    Args:
        answers: for each prompt a number for each answer, NaN for one without a value: see `DrawnWords.values`.
        units: what each prompt is about; by default each prompt is a unit.
        rng: where the bootstrap's draws come from.
        draws: how many of those.
        bounds: the lowest and the highest possible value of an answer.

    >>> two = [np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, np.nan])]
    >>> found = drawn_bootstrap(two, rng=np.random.default_rng(0))
    >>> round(found.estimate, 3), found.low < 0.7 < found.high, found.n
    (0.708, True, 7)
    """
    names = [str(at) for at in range(len(answers))] if units is None else list(units)
    given = [(values[~np.isnan(values)], name) for values, name in zip(answers, names, strict=True)]
    given = [(values, name) for values, name in given if len(values)]
    n = sum(len(values) for values, _ in given)
    if not given:
        return Finding(labels={}, estimate=math.nan, n=0)
    clusters = [name for values, name in given for _ in values]
    many = len(set(clusters)) >= FEWEST_UNITS
    means = np.array([values.mean() for values, _ in given])
    every = np.concatenate([values for values, _ in given])
    estimate = float(every.mean() if many else means.mean())
    # one answer alone says nothing of how answers differ
    spread = every if many else _around(estimate, [values for values, _ in given if len(values) > 1])
    if len(spread) < 2 or np.ptp(spread) <= 1e-12 * max(1.0, float(np.abs(every).max())):
        size = len(set(clusters)) if many else n
        return _without_spread(estimate, size, n, bounds)
    found = cluster_bootstrap(spread, clusters if many else None, rng=rng, draws=draws)
    low, high = float(found.low), float(found.high)
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return Finding(labels={}, estimate=estimate, low=low, high=high, p=float(found.p), n=n)


def _around(estimate: float, prompts: Sequence[Floats]) -> Floats:
    """Return the answers with the differences between prompts taken out, spread as those of new draws would be.

    Answers of a prompt lie nearer to their own mean than to the true one: by √((n − 1)/n).
    """
    parts = [(values - values.mean()) * math.sqrt(len(values) / (len(values) - 1)) for values in prompts]
    return estimate + np.concatenate(parts) if parts else np.empty(0)


def _without_spread(estimate: float, size: int, n: int, bounds: tuple[float, float] | None) -> Finding:
    if bounds is None:
        return Finding(labels={}, estimate=estimate, n=n)
    low, width = bounds[0], bounds[1] - bounds[0]
    limits = share_interval((estimate - low) / width, size)
    ends = (low + width * float(limit) for limit in (limits.low, limits.high))
    return Finding(labels={}, estimate=estimate, low=next(ends), high=next(ends), n=n)
