"""What raters judge: words or sentences from a run, each with an id that survives a spreadsheet."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from clinometer.errors import DataError, nearest
from clinometer.store import RunFolder, StageKey

ItemKind = Literal["word", "sentence"]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to judge, and where it was found."""

    kind: ItemKind
    text: str
    context: str = ""

    @property
    def id(self) -> str:
        """The same item has the same id in every sheet; the letter in front keeps it text in a spreadsheet.

        The context of a word is only an example, so it does not count.

        >>> make_item("word", "Easy").id == make_item("word", "easy", context="It is …").id
        True
        """
        content = self.text if self.kind == "word" else f"{self.context}\n{self.text}"
        return "i" + hashlib.sha256(f"{self.kind}\n{content}".encode()).hexdigest()[:12]


def make_item(kind: ItemKind, text: str, *, context: str = "") -> Item:
    """Return an item on one line: white space and control characters become one space, words lower case.

    >>> make_item("sentence", " so  kind\\nof you").text
    'so kind of you'
    """
    plain = _on_one_line(text)
    return Item(kind=kind, text=plain.lower() if kind == "word" else plain, context=_on_one_line(context))


def distinct_items(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the items in order, each once and none of them empty; a word keeps its first context."""
    chosen: dict[str, Item] = {}
    for item in items:
        if item.text:
            chosen.setdefault(item.id, item)
    return tuple(chosen.values())


def shuffled(items: Sequence[Item], *, seed: int) -> tuple[Item, ...]:
    """Return the items in random order, so that neighbours do not influence a judgement."""
    return tuple(items[i] for i in np.random.default_rng(seed).permutation(len(items)))


def _on_one_line(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())


def items_from_run(
    run: RunFolder, *, kind: ItemKind, probe: str = "", stage: str = "", model: str = ""
) -> tuple[Item, ...]:
    """Return what the models of a run said in one stage.

    Words: those offered at a blank, the most probable over all requests first, each with the text in which it was
    most probable. Sentences: generated texts together with the text they continue, or answers with their question
    as context.
    """
    column = "got_words" if kind == "word" else "got_texts"
    keys = _stages_with(run, column, probe=probe, stage=stage, model=model)
    if kind == "word":
        return distinct_items(_offered_words(run, keys))
    return distinct_items(_generated_texts(run, keys))


def _stages_with(run: RunFolder, column: str, *, probe: str, stage: str, model: str) -> list[StageKey]:
    """Return the records that have a column: of one probe and one stage, for one model or for all."""
    recorded = run.stages()
    for name, value, valid in (
        ("probe", probe, {key.probe for key in recorded}),
        ("stage", stage, {key.stage for key in recorded}),
        ("model", model, {key.model for key in recorded}),
    ):
        if value and value not in valid:
            raise DataError(f"'{run.path}' has no {name} {value!r}; {nearest(value, valid)}")
    keys = [
        key
        for key in recorded
        if probe in ("", key.probe)
        and stage in ("", key.stage)
        and model in ("", key.model)
        and column in run.column_names(key)
    ]
    what = "words at a blank" if column == "got_words" else "generated texts"
    places = sorted({(key.probe, key.stage) for key in keys})
    if not places:
        raise DataError(
            f"'{run.path}' has no {what} in what was chosen; choose another kind, probe, stage or model"
        )
    if len(places) > 1:
        found = ", ".join(f"{probe} {stage}" for probe, stage in places)
        raise DataError(
            f"'{run.path}' has {what} in several stages ({found}); choose one with --probe and --stage"
        )
    return keys


def _offered_words(run: RunFolder, keys: Sequence[StageKey]) -> Iterator[Item]:
    columns = ["ask_text", "got_words", "got_logprobs"]
    parts = [_by_word(_exploded(table)) for key in keys for table in run.batches(key, columns=columns)]
    words = _by_word(pl.concat(parts)).sort(["mass", "word"], descending=[True, False])
    for word, context in words.select("word", "context").iter_rows():
        if any(letter.isalpha() for letter in word):  # punctuation has no attitude to judge
            yield make_item("word", word, context=context)


def _exploded(table: pl.DataFrame) -> pl.DataFrame:
    """Turn answers into one row for each word; a word that the model cannot say (NaN) is left out."""
    return (
        table.explode("got_words", "got_logprobs")
        .filter(pl.col("got_logprobs").is_not_nan())
        .select(
            word=pl.col("got_words").str.strip_chars().str.to_lowercase(),
            context=pl.col("ask_text"),
            mass=pl.col("got_logprobs").cast(pl.Float64).exp(),
            highest=pl.col("got_logprobs"),
        )
    )


def _by_word(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum the probability of each word, and keep the text in which it was most probable."""
    best = pl.col("context").sort_by(["highest", "context"], descending=[True, False]).first()
    return rows.group_by("word", maintain_order=True).agg(best, pl.col("mass").sum(), pl.col("highest").max())


def _generated_texts(run: RunFolder, keys: Sequence[StageKey]) -> Iterator[Item]:
    for key in keys:
        asked = "ask_prefix" if "ask_prefix" in run.column_names(key) else "ask_messages"
        for table in run.batches(key, columns=[asked, "got_texts"]):
            for question, texts in table.iter_rows():
                for text in texts:
                    if asked == "ask_prefix":
                        yield make_item("sentence", question + text)
                    else:
                        yield make_item("sentence", text, context=question[-1]["content"])
