"""Rows of a mitigation: a text and its counterfactual as tokens, and where their sensitive tokens are.

For a causal model the paper compares x₁:ᵢ, the text up to a sensitive token, with x̃₁:ᵢ, the same with another
value of the attribute (§4). What follows the last such token counts for the language-model loss alone. A masked
model reads a text from both sides, so the whole text is compared with its whole counterfactual, with the same
tokens masked in both.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, final

import numpy as np
import torch

from clinometer.data import Attribute, substitution
from clinometer.data.substitution import Replaced
from clinometer.errors import DataError
from clinometer.models.local.text import Tokens
from clinometer.train.base import BaseModel
from clinometer.train.loop import IGNORED, Batch, Row
from clinometer.train.randomness import batched_order, rng_at
from clinometer.train.settings import MitigationSettings
from clinometer.train.units import Unit

_BLOCK = 2048  # sentences tokenised together: a tokenizer is far faster with many texts than with one
_IN_WINDOW = 8  # a window is about as long as so many sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Token ids of a text and its counterfactual, where each sensitive token ends in both, and the labels.

    Ordinary text has no counterfactual. A counterfactual has labels only where it is trained on, too.
    """

    ids: list[int]
    labels: list[int]
    at: tuple[int, ...] = ()
    other: list[int] = field(default_factory=list)
    other_at: tuple[int, ...] = ()  # as many as `at`, in the same order
    other_labels: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A unit at a place of the training: its text, its counterfactual, and the tokens that are compared."""

    text: str
    other: str = ""
    compared: tuple[Replaced, ...] = ()
    asked: tuple[tuple[int, int], ...] = ()  # the words that a masked model is asked for; none: words at random


@final
class Pairs:
    """Rows of a training: every choice depends on the seed and the place of the row alone.

    The units come in a new random order in every epoch. The other value is drawn uniformly from those of a
    different subgroup (§4: a female name in place of a male one), or, without subgroups, from all other values.
    Each value of a unit gets one other value wherever it is mentioned. Ordinary text has its places among the
    others in every batch, evenly spread, so that the parts of a step are alike.
    """

    def __init__(
        self,
        base: BaseModel,
        units: Sequence[Unit],
        attribute: Attribute,
        settings: MitigationSettings,
        *,
        ordinary: Sequence[Unit] = (),
    ) -> None:
        self._tokens = Tokens(base.tokenizer)
        self._settings, self._attribute = settings, attribute
        others = settings.ordinary_rows
        self._units = _Stream(self._plain(units), settings.batch - others, seed=settings.seed, purpose="order")
        if not len(self._units):
            raise DataError("no sentence mentions a value of the attribute; give a corpus that does")
        self._ordinary = _Stream(self._plain(ordinary), others, seed=settings.seed, purpose="ordinary order")
        if others and not len(self._ordinary):
            raise DataError(
                f"the corpus has no {settings.unit} without a value of '{attribute.name}'; give a larger corpus,"
                " or --ordinary 0"
            )
        self._others = {
            # an attribute without subgroups, or with only one, has nothing but its other values
            value.text: [other.text for other in attribute.values if other.subgroup != value.subgroup]
            or [other.text for other in attribute.values if other.text != value.text]
            for value in attribute.values
        }
        frame = len(self._tokens.start) + len(self._tokens.end)
        self._size = min(settings.tokens, base.info.window or settings.tokens) - frame
        masked = base.kind == "masked"
        self._masks = _Masks(base, settings, special=self._tokens.special) if masked else None
        self._rows = _BLOCK if settings.unit == "sentence" else max(1, _BLOCK // _IN_WINDOW)
        self._block = functools.lru_cache(maxsize=2)(self._pairs_of)

    def _plain(self, units: Sequence[Unit]) -> list[Unit]:
        # a control token that is spelt out in a text would be read as one
        return [each for each in units if self._tokens.as_text(each.text) == each.text]

    def __len__(self) -> int:
        return len(self._units)

    @property
    def ordinary(self) -> int:
        """How many ordinary texts there are."""
        return len(self._ordinary)

    def row_at(self, place: int) -> Row:
        """Return the row at a place of the training."""
        return {"pair": self._block(place // self._rows)[place % self._rows]}

    def other_values(self, place: int, values: Sequence[str]) -> dict[str, str]:
        """Return the value that replaces each of these at a place of the training."""
        rng = rng_at(self._settings.seed, "counterfactual", place)
        return {value: self._others[value][int(rng.integers(len(self._others[value])))] for value in values}

    def unit_at(self, place: int) -> Unit:
        """Return the unit at a place of the training."""
        batch, ordinary = self._settings.batch, self._settings.ordinary_rows
        step, index = divmod(place, batch)
        before = index * ordinary // batch  # so many ordinary ones are before it in its batch
        if (index + 1) * ordinary // batch > before:
            return self._ordinary[step * ordinary + before]
        return self._units[step * (batch - ordinary) + index - before]

    def reading_at(self, place: int) -> Reading:
        """Return the unit at a place of the training with its counterfactual, as far as that is read."""
        unit = self.unit_at(place)
        if not unit.values:
            return Reading(text=unit.text, asked=unit.asked)
        found = substitution(unit.text, self._attribute, self.other_values(place, unit.values))
        compared = tuple(each for each in found.replaced if unit.only in (None, each.start))
        if not compared:  # another spelling of the value reaches into its first mention
            return Reading(text=unit.text)
        whole = self._masks is not None or self._settings.method == "swapped"
        return Reading(
            text=unit.text,
            other=found.text if whole else found.text[: compared[-1].other_end],
            compared=compared,
        )

    def texts_at(self, place: int) -> tuple[str, ...]:
        """Return what is read at a place of the training: a text, and what it is compared with, if anything."""
        reading = self.reading_at(place)
        return (reading.text, reading.other) if reading.compared else (reading.text,)

    def _pairs_of(self, block: int) -> list[Pair]:
        places = range(block * self._rows, (block + 1) * self._rows)
        readings = [self.reading_at(place) for place in places]
        ids = iter(self._tokens.first([text for each in readings for text in self._encoded(each)]))
        return [self._framed(each, place, ids) for place, each in zip(places, readings, strict=True)]

    def _encoded(self, reading: Reading) -> Iterator[str]:
        """Yield what must be tokenised for a row, in the order in which `_framed` takes it."""
        yield from (reading.text, reading.other)
        for each in reading.compared:
            yield from (reading.text[: each.end], reading.other[: each.other_end])
            if self._masks is not None:
                yield reading.text[: each.start].rstrip()
        for start, end in reading.asked:
            yield from (reading.text[:start].rstrip(), reading.text[:end])

    def _framed(self, reading: Reading, place: int, encoded: Iterator[list[int]]) -> Pair:
        """Put the tokens together; a text that is too long is cut, if need be at its beginning.

        A sensitive token that a tokenizer writes differently when more text follows is not compared; where there
        is no other one, the text ends there.
        """
        whole, other = next(encoded), next(encoded)
        starts: list[list[int]] = []
        other_starts: list[list[int]] = []
        own: list[int] = []
        for _ in reading.compared:
            starts.append(next(encoded))
            other_starts.append(next(encoded))
            # a tokenizer may merge the mark before a word into it: at least one token is the word's
            own.append(max(1, len(starts[-1]) - len(next(encoded))) if self._masks is not None else 1)
        fitting = [
            at
            for at, (one, two) in enumerate(zip(starts, other_starts, strict=True))
            if whole[: len(one)] == one and other[: len(two)] == two
        ]
        if starts and not fitting:
            fitting = [0]
            whole = whole if whole[: len(starts[0])] == starts[0] else starts[0]
            other = other if other[: len(other_starts[0])] == other_starts[0] else other_starts[0]
        first = fitting[0] if fitting else None
        skipped, other_skipped = (
            0 if first is None else max(0, len(prefixes[first]) - self._size)
            for prefixes in (starts, other_starts)
        )
        ends = [
            (len(starts[at]) - 1 - skipped, len(other_starts[at]) - 1 - other_skipped, own[at]) for at in fitting
        ]
        ends = [each for each in ends if max(each[:2]) < self._size]  # what was cut off is not compared
        before = self._tokens.start
        ids, labels = self._asked(whole[skipped : skipped + self._size])
        other_ids, other_labels = self._asked(other[other_skipped : other_skipped + self._size])
        pair = Pair(
            ids=ids,
            labels=labels,
            at=tuple(len(before) + at for at, _, _ in ends),
            other=other_ids if ends else [],
            other_at=tuple(len(before) + at for _, at, _ in ends),
            other_labels=other_labels if ends and self._settings.method == "swapped" else [],
        )
        asked = [
            len(before) + index
            for _ in reading.asked
            for index in range(len(next(encoded)), len(next(encoded)))
            if index < self._size
        ]
        if self._masks is None:
            return pair
        return self._masks.masked(pair, place=place, own=[count for *_, count in ends], asked=asked)

    def _asked(self, ids: list[int]) -> tuple[list[int], list[int]]:
        """Return tokens in their frame, and their labels: not of the frame, nor of a token with nothing before."""
        before, after = self._tokens.start, self._tokens.end if self._masks else ()
        labels = [*[IGNORED] * max(1, len(before)), *ids[0 if before else 1 :], *[IGNORED] * len(after)]
        return [*before, *ids, *after], labels


@final
class _Stream:
    """Units in a new random order in every epoch, those of a batch of about the same length."""

    def __init__(self, units: Sequence[Unit], batch: int, *, seed: int, purpose: str) -> None:
        self._units, self._batch, self._seed, self._purpose = units, batch, seed, purpose
        self._lengths = np.array([len(each.text) for each in units])
        self._order = functools.lru_cache(maxsize=2)(self._order_of)

    def __len__(self) -> int:
        return len(self._units)

    def __getitem__(self, place: int) -> Unit:
        epoch, index = divmod(place, len(self._units))
        return self._units[int(self._order(epoch)[index])]

    def _order_of(self, epoch: int) -> Any:
        return batched_order(self._lengths, batch=self._batch, rng=rng_at(self._seed, self._purpose, epoch))


@final
class _Masks:
    """Which tokens a masked model is asked for: never a sensitive one, whose vector is compared."""

    def __init__(self, base: BaseModel, settings: MitigationSettings, *, special: frozenset[int]) -> None:
        self._mask: int = base.tokenizer.mask_token_id
        self._words: int = len(base.tokenizer)
        self._special, self._seed = special, settings.seed
        self._share, self._hidden = settings.masked_share, settings.hidden

    def masked(self, pair: Pair, *, place: int, own: Sequence[int], asked: Sequence[int] = ()) -> Pair:
        """Mask a pair; as many tokens as `own` says, up to each place of `pair.at`, are the sensitive ones.

        `asked` are tokens that are asked for and hidden, whatever is drawn, and no others.
        """
        sensitive = {
            index for at, count in zip(pair.at, own, strict=True) for index in range(at - count + 1, at + 1)
        }
        free = [
            index for index, token in enumerate(pair.ids) if token not in self._special and index not in sensitive
        ]
        rng = rng_at(self._seed, "masks", place)
        chosen = list(asked) or [index for index in free if rng.random() < self._share]
        if free and not chosen:  # a mean over nothing would be NaN
            chosen = [free[int(rng.integers(len(free)))]]
        ids, other = list(pair.ids), list(pair.other)
        labels, other_labels = [IGNORED] * len(ids), [IGNORED] * len(pair.other_labels)
        counterparts = _counterparts(pair)
        for index in chosen:
            labels[index] = ids[index]
            how = 0.0 if asked else rng.random()
            if how < self._hidden:
                ids[index] = self._mask
            elif how < (1 + self._hidden) / 2:
                ids[index] = int(rng.integers(self._words))
            if index in counterparts:  # all but what the substitution changed
                other[counterparts[index]] = ids[index]
                if other_labels:
                    other_labels[counterparts[index]] = labels[index]
        return replace(pair, ids=ids, labels=labels, other=other, other_labels=other_labels)


def _counterparts(pair: Pair) -> dict[int, int]:
    """Return where each token of a text is in its counterfactual: piece by piece between the sensitive tokens."""
    found: dict[int, int] = {}
    borders = [(0, 0), *((a + 1, b + 1) for a, b in zip(pair.at, pair.other_at, strict=True))]
    for (a, b), (end, other_end) in pairwise([*borders, (len(pair.ids), len(pair.other))]):
        pieces = SequenceMatcher(None, pair.ids[a:end], pair.other[b:other_end], autojunk=False)
        for block in pieces.get_matching_blocks():
            found |= {a + block.a + step: b + block.b + step for step in range(block.size)}
    return found


def collate(rows: Sequence[Row], *, pad_id: int) -> Batch:
    """Put texts and counterfactuals into one batch: first all texts, then all counterfactuals.

    `labels` and `weights` are of the texts that the language-model loss reads: a text and its counterfactual, if
    both are read, have half the weight each. `at` (2 × places) says where sensitive tokens end, in texts and in
    counterfactuals; `rows` in which of all texts that is, and `shares` how much each counts within its row.
    """
    pairs: list[Pair] = [row["pair"] for row in rows]
    compared = [(number, pair) for number, pair in enumerate(pairs) if pair.other]
    texts = [*(pair.ids for pair in pairs), *(pair.other for _, pair in compared)]
    asked = [*(pair.labels for pair in pairs), *(pair.other_labels for _, pair in compared if pair.other_labels)]
    width = max(map(len, texts))
    ids = torch.full((len(texts), width), pad_id)
    attention = torch.zeros_like(ids)
    labels = torch.full((len(asked), width), IGNORED)
    for index, text in enumerate(texts):
        ids[index, : len(text)] = torch.tensor(text)
        attention[index, : len(text)] = 1
    for index, each in enumerate(asked):
        labels[index, : len(each)] = torch.tensor(each)
    halves = [0.5 if pair.other_labels else 1.0 for pair in pairs]
    return {
        "input_ids": ids,
        "attention_mask": attention,
        "labels": labels,
        "weights": torch.tensor([*halves, *(0.5 for pair in pairs if pair.other_labels)]),
        "at": torch.tensor(
            [[*_flat(pair.at for pair in pairs)], [*_flat(pair.other_at for pair in pairs)]]
        ).long(),
        "rows": torch.tensor(
            [
                [*_flat([number] * len(pair.at) for number, pair in compared)],
                [*_flat([len(pairs) + other] * len(pair.at) for other, (_, pair) in enumerate(compared))],
            ]
        ).long(),
        "shares": torch.tensor([*_flat([1 / len(pair.at)] * len(pair.at) for pair in pairs if pair.at)]),
    }


def _flat(parts: Any) -> Iterator[int]:
    for part in parts:
        yield from part
