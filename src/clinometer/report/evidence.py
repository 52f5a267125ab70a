"""The prompts behind a figure: examples chosen from the records, as text."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from clinometer.errors import RecordsError, nearest
from clinometer.report.rounding import count_text, label_text, probability_text
from clinometer.store import RunFolder, StageKey
from clinometer.types import Figure, Findings

PROMPTS = 60  # shown behind each figure
WORDS = 8  # how many of the most probable words are shown
TEXTS = 3  # how many continuations
LONGEST = 1_200  # characters of one text
CANDIDATES = 2_000  # the spread is chosen among this many rows: enough, and quick for millions of records


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question and what the model said, as text."""

    model: str
    tags: Mapping[str, str]
    context: str = ""
    separator: str = ""  # between context and text: nothing, or a separator token
    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Examples of the prompts behind a figure, and where all of them are."""

    shown: tuple[Exchange, ...]
    total: int
    where: tuple[str, ...]  # record folders, relative to the run folder


def read_evidence(run: RunFolder, found: Sequence[Findings]) -> dict[str, dict[str, Evidence]]:
    """Return examples by probe and figure."""
    stages = run.stages()
    return {
        findings.probe: {
            name: evidence
            for stage in dict.fromkeys(figure.evidence for figure in findings.figures if figure.evidence)
            for name, evidence in _examples(
                run,
                keys=[key for key in stages if (key.probe, key.stage) == (findings.probe, stage)],
                figures=[figure for figure in findings.figures if figure.evidence == stage],
            )
        }
        for findings in found
    }


def _examples(
    run: RunFolder, *, keys: Sequence[StageKey], figures: Sequence[Figure]
) -> Iterator[tuple[str, Evidence]]:
    """Yield examples for each figure: equally many from each model, and no more than a reader would look at."""
    wanted = {figure.name: [key for key in keys if _shows(figure, key)] for figure in figures}
    shown: dict[str, list[Exchange]] = {figure.name: [] for figure in figures}
    total = dict.fromkeys(shown, 0)
    tags = {key: [name for name in run.column_names(key) if name.startswith("tag_")] for key in keys}
    known = list(dict.fromkeys(name.removeprefix("tag_") for names in tags.values() for name in names))
    for figure in figures if keys else ():
        check_evidence_filter(figure, tags=known)
    for key in keys:
        # a stage can hold millions of records: choose by tags, then read only what is shown
        labels = run.table(key, columns=["index", *tags[key]])
        chosen: dict[str, list[int]] = {}
        for figure in figures:
            if key in wanted[figure.name]:
                behind = matching(with_tags(labels, figure), figure.filters)
                total[figure.name] += len(behind)
                room = max(1, PROMPTS // len(wanted[figure.name]))
                chosen[figure.name] = spread(behind, room)["index"].to_list()
        rows = run.table(key, indices=[index for indices in chosen.values() for index in indices])
        for name, indices in chosen.items():
            shown[name] += exchanges(rows.filter(pl.col("index").is_in(indices)), model=key.model)
    for name, places in wanted.items():
        if places:
            where = tuple(f"records/{key.folder.as_posix()}" for key in places)
            yield name, Evidence(shown=tuple(shown[name][:PROMPTS]), total=total[name], where=where)


def _shows(figure: Figure, key: StageKey) -> bool:
    return figure.filters.get("model", key.model) == key.model


def matching(table: pl.DataFrame, filters: Mapping[str, str | int | float]) -> pl.DataFrame:
    """Keep the rows whose tags match a figure's filters; a filter that is not a tag keeps all."""
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
                f"figure {figure.name!r} shows prompts by {name!r}, which is not a tag of stage "
                f"{figure.evidence!r}: {nearest(name, tags)}"
            )


def spread(table: pl.DataFrame, count: int) -> pl.DataFrame:
    """Choose rows so that the values of each tag appear about equally often; always the same rows.

    Each next row is the one whose tag values were chosen least often so far; the earliest of several.

    >>> rows = pl.DataFrame({"tag_kind": ["a", "a", "a", "b"], "index": [0, 1, 2, 3]})
    >>> spread(rows, 2)["index"].to_list()
    [0, 3]
    """
    if len(table) > CANDIDATES:
        table = table[sorted(random.Random(0).sample(range(len(table)), CANDIDATES))]
    tags = table.select(pl.col("^tag_.*$")).rows()
    if not tags:
        return table[: min(count, len(table))]
    rows_with: defaultdict[tuple[int, Any], list[int]] = defaultdict(list)  # by tag and value
    for row, values in enumerate(tags):
        for tagged in enumerate(values):
            rows_with[tagged].append(row)
    seen = [0.0] * len(tags)  # how often the values of each row were chosen; a row that was chosen is out
    chosen: list[int] = []
    while len(chosen) < min(count, len(tags)):
        best = seen.index(min(seen))
        chosen.append(best)
        seen[best] = math.inf
        for tagged in enumerate(tags[best]):
            for row in rows_with[tagged]:
                seen[row] += 1
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
