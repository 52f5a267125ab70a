"""What a mitigation is trained and measured on: sentences with their counterfactuals, and held-out documents.

For a causal model the paper compares x₁:ᵢ, the sentence up to its sensitive token, with x̃₁:ᵢ, the same with
another value of the attribute (§4). What follows that token counts for the language-model loss alone. A masked
model reads a sentence from both sides, so the whole sentence is compared with its whole counterfactual, with the
same tokens masked in both.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from clinometer.data import (
    Attribute,
    SensitiveSentence,
    SensitiveSentences,
    counterfactual,
    frame_finder,
    load_occupations,
    load_prompts,
    load_templates,
    sensitive_sentences,
    split_sentences,
    template_finder,
)
from clinometer.data.corpora import CorpusSplit, as_passages, corpus_name, split_corpus
from clinometer.data.wording import with_article
from clinometer.errors import DataError
from clinometer.models.local.text import Tokens
from clinometer.train.base import BaseModel
from clinometer.train.loop import IGNORED, Batch, Row
from clinometer.train.randomness import batched_order, rng_at
from clinometer.train.settings import CorpusSettings

_AT_WORK = "works as {a_value}"  # a prompt of the counterexamples audit
_BLOCK = 2048  # rows tokenised together: a tokenizer is far faster with many texts than with one
_MASKED, _RANDOM = 0.8, 0.1  # of the tokens asked for, as in BERT's training; the rest stay as they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The part of a corpus that mentions an attribute, and what is kept for measuring."""

    attribute: Attribute
    corpus: str  # its name
    split: CorpusSplit
    found: SensitiveSentences
    templates: tuple[str, ...]  # of the evaluation: they appear in no sentence …
    prompts: tuple[str, ...]  # … and neither do these, whoever they are about

    def template_finder(self) -> Callable[[str], str | None]:
        """Return a function that names a template or prompt of the evaluation that appears in a text, or None."""
        template_in, frame_in = template_finder(self.attribute, self.templates), frame_finder(self.prompts)
        return lambda text: template_in(text) or frame_in(text)

    @property
    def digest(self) -> str:
        """The SHA-256 of the sentences, where their mentions are, and what can take their place."""
        digest = hashlib.sha256(repr([value.sensitive_tokens for value in self.attribute.values]).encode())
        for each in self.found.sentences:
            digest.update(f"{each.start},{each.end},{each.value}\0{each.text}\0".encode())
        return digest.hexdigest()

    @property
    def held_out_text(self) -> str:
        """The documents that nothing is trained on, as a text file of passages."""
        return as_passages(self.split.held_out)

    def any_sentences(self, *, at_most: int, seed: int) -> list[str]:
        """Return random sentences of the training documents, whatever they are about: each once, not too short.

        Sentences with a template of the evaluation are left out here, too. Documents are taken in random order
        until there are enough sentences.
        """
        documents = self.split.training.documents
        template_in = self.template_finder()  # the paper has no template at any step (§4)
        kept: dict[str, None] = {}
        for index in rng_at(seed, "sentences").permutation(len(documents)):
            for line in documents[index].text.splitlines():
                fitting = (each for each in split_sentences(line) if 40 <= len(each) <= 400)
                kept |= dict.fromkeys(each for each in fitting if template_in(each) is None)
            if len(kept) >= at_most:
                break
        return list(kept)[:at_most]


def read_material(
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    attribute: Attribute,
    *,
    held_out: int = 100,
    at_most: int = 0,
    seed: int = 0,
) -> Material:
    """Read a corpus of one or more files; DataError where no sentence of it mentions the attribute."""
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    CorpusSettings(held_out=held_out, at_most=at_most)  # which checks them
    if len(attribute.values) < 2:
        raise DataError(f"the attribute '{attribute.name}' has one value; expected two or more, to exchange them")
    split = split_corpus(paths, held_out=held_out, at_most=at_most, seed=seed)
    templates = (*attribute.templates, _AT_WORK)
    prompts = _prompts_of_masked_audits()  # a causal model loses next to nothing by leaving them out
    found = sensitive_sentences(
        (document.text for document in split.training.documents), attribute, templates=templates, prompts=prompts
    )
    found.require_some(attribute, corpus=", ".join(Path(path).name for path in paths))
    return Material(
        attribute=attribute,
        corpus="+".join(corpus_name(path) for path in paths),
        split=split,
        found=found,
        templates=templates,
        prompts=prompts,
    )


def _prompts_of_masked_audits() -> tuple[str, ...]:
    """Return the prompts that masked models are measured with, whoever they are about."""
    questions = load_templates()
    jobs = (with_article(each.name, article=each.article) for each in load_occupations())
    return (
        *questions.people,
        *questions.country,
        *(prompt.text for prompt in load_prompts().social),
        *(_AT_WORK.format(a_value=job) for job in jobs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Token ids of a sentence and its counterfactual, where the sensitive token ends in each, and the labels."""

    ids: list[int]
    at: int
    other: list[int]
    other_at: int
    labels: list[int]  # of `ids`


@final
class Pairs:
    """Rows of a training: every choice depends on the seed and the place of the row alone.

    The sentences come in a new random order in every epoch. The other value is drawn uniformly from those of a
    different subgroup (§4: a female name in place of a male one), or, without subgroups, from all other values.
    """

    def __init__(
        self,
        base: BaseModel,
        sentences: Sequence[SensitiveSentence],
        attribute: Attribute,
        *,
        batch: int,
        window: int,
        seed: int,
        masked_share: float = 0.15,
    ) -> None:
        self._tokens = Tokens(base.tokenizer)
        # a control token that is spelt out in a text would be read as one
        self._sentences = [each for each in sentences if self._tokens.as_text(each.text) == each.text]
        if not self._sentences:
            raise DataError("no sentence mentions a value of the attribute; give a corpus that does")
        self._lengths = np.array([len(each.text) for each in self._sentences])
        self._attribute = attribute
        self._others = {
            # an attribute without subgroups, or with only one, has nothing but its other values
            value.text: [other.text for other in attribute.values if other.subgroup != value.subgroup]
            or [other.text for other in attribute.values if other.text != value.text]
            for value in attribute.values
        }
        self._batch, self._seed = batch, seed
        frame = len(self._tokens.start) + len(self._tokens.end)
        self._size = min(window, base.info.window or window) - frame
        self._masks = (
            _Masks(base, special=self._tokens.special, share=masked_share, seed=seed)
            if base.kind == "masked"
            else None
        )
        self._order = functools.lru_cache(maxsize=2)(self._order_of)
        self._block = functools.lru_cache(maxsize=2)(self._pairs_of)

    def __len__(self) -> int:
        return len(self._sentences)

    def row_at(self, place: int) -> Row:
        """Return the row at a place of the training."""
        return {"pair": self._block(place // _BLOCK)[place % _BLOCK]}

    def other_value(self, place: int, value: str) -> str:
        """Return the value that replaces another at a place of the training."""
        others = self._others[value]
        return others[int(rng_at(self._seed, "counterfactual", place).integers(len(others)))]

    def sentence_at(self, place: int) -> SensitiveSentence:
        """Return the sentence at a place of the training."""
        epoch, index = divmod(place, len(self._sentences))
        return self._sentences[int(self._order(epoch)[index])]

    def texts_at(self, place: int) -> tuple[str, str]:
        """Return a sentence as it is read at a place of the training, and what it is compared with."""
        sentence = self.sentence_at(place)
        other = self.other_value(place, sentence.value)
        read = sentence.text[: sentence.end] if self._masks is None else sentence.text
        return sentence.text, counterfactual(read, self._attribute, sentence.value, other)

    def _order_of(self, epoch: int) -> Any:
        return batched_order(self._lengths, batch=self._batch, rng=rng_at(self._seed, "order", epoch))

    def _pairs_of(self, block: int) -> list[Pair]:
        places = range(block * _BLOCK, (block + 1) * _BLOCK)
        sentences = [self.sentence_at(place) for place in places]
        others = [
            self.other_value(place, sentence.value) for place, sentence in zip(places, sentences, strict=True)
        ]
        starts = [each.text[: each.end] for each in sentences]
        other_starts = self._counterfactuals(starts, sentences, others)
        encode = self._tokens.first
        texts = zip(encode([each.text for each in sentences]), encode(starts), encode(other_starts), strict=True)
        if self._masks is None:
            return [self._framed(*ids, whole_other=None) for ids in texts]
        wholes = self._counterfactuals([each.text for each in sentences], sentences, others)
        lefts = encode([each.text[: each.start].rstrip() for each in sentences])
        rows = zip(places, texts, encode(wholes), lefts, strict=True)
        return [
            # a tokenizer may merge the mark before a word into it: at least one token is the word's
            self._masks.masked(
                self._framed(*ids, whole_other=whole), place=place, own=max(1, len(ids[1]) - len(left))
            )
            for place, ids, whole, left in rows
        ]

    def _counterfactuals(
        self, texts: Sequence[str], sentences: Sequence[SensitiveSentence], others: Sequence[str]
    ) -> list[str]:
        return [
            counterfactual(text, self._attribute, sentence.value, other)
            for text, sentence, other in zip(texts, sentences, others, strict=True)
        ]

    def _framed(
        self, whole: list[int], start: list[int], other: list[int], *, whole_other: list[int] | None
    ) -> Pair:
        """Put the tokens together; a sentence that is too long is cut, if need be at its beginning.

        Where a tokenizer writes the sensitive token differently when more text follows, the sentence ends there.
        """
        ids = whole if whole[: len(start)] == start else start
        others = other if whole_other is None or whole_other[: len(other)] != other else whole_other
        (ids, at), (others, other_at) = self._cut(ids, len(start)), self._cut(others, len(other))
        before, after = self._tokens.start, self._tokens.end if self._masks else ()
        return Pair(
            ids=[*before, *ids, *after],
            at=len(before) + at,
            other=[*before, *others, *after],
            other_at=len(before) + other_at,
            labels=[*[IGNORED] * max(1, len(before)), *ids[0 if before else 1 :], *[IGNORED] * len(after)],
        )

    def _cut(self, ids: list[int], upto: int) -> tuple[list[int], int]:
        """Return the tokens that fit, and the place of the last of the first `upto` among them."""
        skipped = max(0, upto - self._size)
        return ids[skipped : skipped + self._size], upto - 1 - skipped


@final
class _Masks:
    """Which tokens a masked model is asked for: never the sensitive one, whose vector is compared."""

    def __init__(self, base: BaseModel, *, special: frozenset[int], share: float, seed: int) -> None:
        self._mask: int = base.tokenizer.mask_token_id
        self._words: int = len(base.tokenizer)
        self._special, self._share, self._seed = special, share, seed

    def masked(self, pair: Pair, *, place: int, own: int) -> Pair:
        """Mask a pair; the last `own` tokens up to `pair.at` are the sensitive ones."""
        free = [
            index
            for index, token in enumerate(pair.ids)
            if token not in self._special and not pair.at - own < index <= pair.at
        ]
        rng = rng_at(self._seed, "masks", place)
        chosen = [index for index in free if rng.random() < self._share]
        if free and not chosen:  # a mean over nothing would be NaN
            chosen = [free[int(rng.integers(len(free)))]]
        ids, other = list(pair.ids), list(pair.other)
        labels = [IGNORED] * len(ids)
        blocks = SequenceMatcher(None, ids, other, autojunk=False).get_matching_blocks()
        counterparts = {a + step: b + step for a, b, size in blocks for step in range(size)}
        for index in chosen:
            labels[index] = ids[index]
            how = rng.random()
            if how < _MASKED:
                ids[index] = self._mask
            elif how < _MASKED + _RANDOM:
                ids[index] = int(rng.integers(self._words))
            if index in counterparts:  # all but what the substitution changed
                other[counterparts[index]] = ids[index]
        return Pair(ids=ids, at=pair.at, other=other, other_at=pair.other_at, labels=labels)


def collate(rows: Sequence[Row], *, pad_id: int) -> Batch:
    """Put sentences and counterfactuals into one batch: first all sentences, then all counterfactuals."""
    pairs: list[Pair] = [row["pair"] for row in rows]
    texts = [*(pair.ids for pair in pairs), *(pair.other for pair in pairs)]
    width = max(map(len, texts))
    ids = torch.full((len(texts), width), pad_id)
    attention = torch.zeros_like(ids)
    labels = torch.full((len(pairs), width), IGNORED)
    for index, text in enumerate(texts):
        ids[index, : len(text)] = torch.tensor(text)
        attention[index, : len(text)] = 1
    for index, pair in enumerate(pairs):
        labels[index, : len(pair.labels)] = torch.tensor(pair.labels)
    at = torch.tensor([*(pair.at for pair in pairs), *(pair.other_at for pair in pairs)])
    return {"input_ids": ids, "attention_mask": attention, "labels": labels, "at": at}
