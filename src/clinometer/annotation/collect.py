"""Where the items to rate come from: what models said in a run, or a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from clinometer.annotation.items import Item, ItemKind, distinct_items, make_item
from clinometer.annotation.sheets import read_items
from clinometer.data import read_text
from clinometer.errors import DataError, nearest
from clinometer.store import RunFolder, StageKey


def read_new_items(source: Path, *, kind: ItemKind) -> tuple[Item, ...]:
    """Return the items of a file: a CSV with a column `word` or `sentence`, or any other text, one item a line."""
    if source.suffix.lower() == ".csv":
        return read_items(source, kind=kind)
    return distinct_items(make_item(kind, line) for line in read_text(source).splitlines())


def items_from_run(
    run: RunFolder, *, kind: ItemKind, probe: str = "", stage: str = "", model: str = ""
) -> tuple[Item, ...]:
    """Return what the models of a run said in one stage.

    Words: those offered at a blank, the most probable over all requests first, each with the text in which it was
    most probable. Sentences: generated texts after the text they continue, or answers, with their question as
    context.
    """
    column = "got_words" if kind == "word" else "got_texts"
    keys = _chosen(run, column, probe=probe, stage=stage, model=model)
    if kind == "word":
        return distinct_items(_offered_words(run, keys))
    return distinct_items(_generated_texts(run, keys))


def _chosen(run: RunFolder, column: str, *, probe: str, stage: str, model: str) -> list[StageKey]:
    """Return the stages to read: of one probe and one stage, for one model or for all."""
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
        if any(sign.isalpha() for sign in word):  # punctuation has no attitude to judge
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


def _generated_texts(run: RunFolder, keys: Iterable[StageKey]) -> Iterator[Item]:
    for key in keys:
        asked = "ask_prefix" if "ask_prefix" in run.column_names(key) else "ask_messages"
        for table in run.batches(key, columns=[asked, "got_texts"]):
            for question, texts in table.iter_rows():
                for text in texts:
                    if asked == "ask_prefix":
                        yield make_item("sentence", question + text)
                    else:
                        yield make_item("sentence", text, context=question[-1]["content"])
