"""Reads a stage of any size in the order of its items, a bounded number of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from clinometer.store.parts import IntactPart

BATCH_ROWS = 65_536  # from how many waiting rows on a table is given out


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where a part lies, and the lowest index that it holds."""

    path: Path
    first: int


def by_index(
    spans: Sequence[Span], *, columns: list[str], empty: pl.DataFrame, load: Callable[[Path], IntactPart]
) -> Iterator[pl.DataFrame]:
    """Yield the rows of parts, given in the order in which they were written, by index and each once.

    A run fills its stage from the front, so parts overlap within a window of the engine: of an index that lies
    below all parts which are still to be read, every record is known. `empty` has the columns' types.
    """
    turns = sorted(range(len(spans)), key=lambda turn: spans[turn].first)
    waiting: dict[int, pl.DataFrame] = {}
    for place, turn in enumerate(turns):
        part = load(spans[turn].path)
        present = set(part.column_names())
        waiting[turn] = part.read([name for name in columns if name in present])
        last = place + 1 == len(turns)
        if not last and sum(map(len, waiting.values())) < BATCH_ROWS:
            continue
        complete = pl.lit(True) if last else pl.col("index") < spans[turns[place + 1]].first
        table = latest([empty, *(waiting[turn].filter(complete) for turn in sorted(waiting))])
        waiting = {turn: rest for turn, frame in waiting.items() if len(rest := frame.filter(~complete))}
        if len(table):
            yield table


def latest(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Put tables, in the order in which they were written, into one by index; of two records the later counts."""
    table = pl.concat(frames, how="diagonal_relaxed").sort("index", maintain_order=True)
    last = table["index"] != table["index"].shift(-1, fill_value=-1)
    return table if last.all() else table.filter(last)
