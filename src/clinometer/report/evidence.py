"""Chooses examples of the prompts behind a figure from a stage's records, and writes them as text."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from clinometer.errors import RecordsError, nearest
from clinometer.report.page import Exchange
from clinometer.report.rounding import count_text, label_text, probability_text
from clinometer.types import Figure

WORDS = 8  # so many of the most probable words are shown
TEXTS = 3  # so many continuations
LONGEST = 1_200  # characters of one text
CANDIDATES = 2_000  # among so many rows the spread is sought: enough, and quick for millions of records


def matching(table: pl.DataFrame, filters: Mapping[str, str | int | float]) -> pl.DataFrame:
    """Keep the rows whose tags have the values that a figure filters by; a filter that is no tag keeps all."""
    for name, value in filters.items():
        column = f"tag_{name}"
        if column in table.columns and isinstance(value, str) == (table[column].dtype == pl.String):
            table = table.filter(pl.col(column) == value)
    return table


def with_tags(table: pl.DataFrame, figure: Figure) -> pl.DataFrame:
    """Keep the rows that have the tags of the figure's `evidence_filter`."""
    for name, value in figure.evidence_filter.items():
        column = f"tag_{name}"
        if column not in table.columns:  # no record of this model has the tag
            return table.clear()
        if isinstance(value, str) != (table[column].dtype == pl.String):
            raise RecordsError(
                f"figure {figure.name!r} shows prompts whose tag {name!r} is {value!r}, but that tag holds"
                f" {'text' if table[column].dtype == pl.String else 'numbers'}"
            )
        table = table.filter(pl.col(column) == value)
    return table


def check_evidence_filter(figure: Figure, *, tags: Sequence[str]) -> None:
    """Raise RecordsError when the figure's `evidence_filter` names a tag that no record of the stage has."""
    for name in figure.evidence_filter:
        if name not in tags:
            raise RecordsError(
                f"figure {figure.name!r} shows prompts by {name!r}, which is no tag of stage {figure.evidence!r}: "
                f"{nearest(name, tags)}"
            )


def spread(table: pl.DataFrame, count: int) -> pl.DataFrame:
    """Choose rows such that the values of every tag come as equally often as they can; the same ones each time.

    Each next row is the one whose tag values were chosen least often so far; the earliest, where several are.

    >>> rows = pl.DataFrame({"tag_kind": ["a", "a", "a", "b"], "index": [0, 1, 2, 3]})
    >>> spread(rows, 2)["index"].to_list()
    [0, 3]
    """
    if len(table) > CANDIDATES:
        table = table[sorted(random.Random(0).sample(range(len(table)), CANDIDATES))]
    tags = table.select(pl.col("^tag_.*$")).rows()
    if not tags:
        return table[: min(count, len(table))]
    seen = [Counter[Any]() for _ in tags[0]]
    left = list(range(len(tags)))
    chosen: list[int] = []
    while left and len(chosen) < count:
        best = min(left, key=lambda row: sum(counts[value] for counts, value in zip(seen, tags[row], strict=True)))
        left.remove(best)
        chosen.append(best)
        for counts, value in zip(seen, tags[best], strict=True):
            counts[value] += 1
    return table[sorted(chosen)]


def exchanges(table: pl.DataFrame, *, model: str) -> tuple[Exchange, ...]:
    """Write each row of a stage's records as a question and what the model said."""
    return tuple(_exchange(row, model) for row in table.iter_rows(named=True))


def _exchange(row: Mapping[str, Any], model: str) -> Exchange:
    context = row.get("ask_context") or ""
    return Exchange(
        model=model,
        tags={name.removeprefix("tag_"): _tag(value) for name, value in row.items() if name.startswith("tag_")},
        context=_cut(context),
        separator="[SEP]" if context and row.get("ask_join") == "separator" else "",
        text=_cut(_question(row)),
        answers=tuple(_cut(answer) for answer in _answers(row)),
    )


def _tag(value: str | int | float | None) -> str:
    return "" if value is None else label_text(value)


def _question(row: Mapping[str, Any]) -> str:
    for name in ("ask_text", "ask_prefix"):
        if row.get(name) is not None:
            return str(row[name])
    return "\n".join(f"{message['role']}: {message['content']}" for message in row.get("ask_messages") or ())


def _answers(row: Mapping[str, Any]) -> list[str]:
    if row.get("got_words") is not None:
        return _words(row["got_words"], row["got_logprobs"])
    if row.get("got_texts") is not None:
        texts = list(row["got_texts"])
        more = [f"… and {count_text(len(texts) - TEXTS)} more"] if len(texts) > TEXTS else []
        return texts[:TEXTS] + more
    if row.get("got_tokens") is not None:
        return [f"log-probability {row['got_logprob']:.2f} over {count_text(row['got_tokens'])} tokens"]
    if "got_negative" in row:
        classes = ("negative", "neutral", "positive")
        return [f"{name} {_probability(row[f'got_{name}'])}" for name in classes]
    if row.get("got_vector") is not None:
        return [f"a vector of {count_text(len(row['got_vector']))} numbers"]
    return []


def _words(words: Sequence[str], logprobs: Sequence[float | None]) -> list[str]:
    known = [
        (logprob, word)
        for word, logprob in zip(words, logprobs, strict=True)
        if logprob is not None and not math.isnan(logprob)
    ]
    known.sort(key=lambda pair: -pair[0])
    shown = [f"{word} {_probability(math.exp(logprob))}" for logprob, word in known[:WORDS]]
    lost = len(words) - len(known)
    return shown + ([f"{count_text(lost)} not in the vocabulary"] if lost else [])


def _probability(value: float | None) -> str:
    return probability_text(math.nan if value is None else value)


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … ({count_text(len(text))} characters in all)"
