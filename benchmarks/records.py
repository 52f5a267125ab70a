"""How fast answers are written, read back and verified, and what many small parts cost to open.

    python benchmarks/records.py [--rows 5000000] [--parts 20000] [--json FILE]

Rows are what the shift test records: a review, a text, two words, their log-probabilities, four tags. They are
written as the engine writes them, batch by batch, in the order of a plan, and joined as a finished stage is.
Reading back gives every column; verifying compares the checksum of every part, and key and tags of every record
with those of the question that is asked there, as `clinometer verify` does.

The second part writes each batch as a part of its own, as a run does that is killed and resumed all night, opens
the run, joins the parts and opens it again.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from clinometer.engine import RequestIdentity, check_stage
from clinometer.engine.batching import WINDOW
from clinometer.questions import Items, WordAnswers, in_windows
from clinometer.store import Recorded, Row, RunFolder, StageKey, digests_of_tags
from clinometer.types import Block, Fill, Item, ModelInfo, WordAnswer

KEY = StageKey(probe="sentiment_words", model="model", stage="ask")
LABELS = ("great", "terrible")
APPENDED = tuple(f"word{number}" for number in range(319) for _ in range(3))
TIMES = (5, 10, 15) * 319
TEXTS = tuple(" ".join([word] * k + ["It was [MASK]"]) for word, k in zip(APPENDED, TIMES, strict=True))
BATCH = 1024
INFO = ModelInfo(
    name="model", kind="masked", family="none", capabilities=("fill",), weights="0", tokenizer="0",
    dtype="float32", code="0",
)  # fmt: skip


def questions(total: int) -> Iterator[Block]:
    """Yield so many questions as the probe does, a review at a time."""
    for start in range(0, total, len(TEXTS)):
        rows = slice(0, min(len(TEXTS), total - start))
        number = start // len(TEXTS)
        yield Block(
            kind=Fill,
            columns={"text": TEXTS[rows]},
            shared={"context": f"Review {number}. " * 12, "words": LABELS, "normalise": "words"},
            tags={"word": APPENDED[rows], "k": TIMES[rows]},
            shared_tags={"template": "It was [MASK]", "review": number},
        )


def batches(items: Items, first: int, keys: list[bytes], digests: list[bytes]) -> Iterator[Recorded]:
    """Yield what the engine records of a window, batch by batch, in an order that is not that of the questions."""
    order = np.argsort(-items.requests.columns["text"].codes, kind="stable")
    rng = np.random.default_rng(first)
    for at in range(0, len(items), BATCH):
        rows = order[at : at + BATCH]
        chosen = rows.tolist()
        yield Recorded(
            indices=first + rows.astype(np.int64),
            keys=[keys[row] for row in chosen],
            items=items.take(rows),
            digests=[digests[row] for row in chosen],
            answers=WordAnswers(LABELS, -rng.exponential(size=(len(rows), 2)).astype(np.float32)),
        )


def new_run(folder: Path) -> RunFolder:
    """Make a run folder without a model behind it."""
    return RunFolder.create(folder, spec="version = 1\n", provenance={}, models=[INFO])


class Clock:
    """Seconds of the clock and of CPU time, as often as it is started."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0

    def __enter__(self) -> Clock:
        self._begun = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._begun[0]
        self.cpu += time.process_time() - self._begun[1]

    def rates(self, what: str, rows: int) -> dict[str, int]:
        """Print and return the rows per second of either."""
        found = {f"{what}_rows_per_s": rows / self.seconds, f"{what}_rows_per_cpu_s": rows / self.cpu}
        print(f"{what}: {self.seconds:.1f} s, {self.cpu:.1f} s of CPU time", flush=True)
        return {name: round(rate) for name, rate in found.items()}


def large(folder: Path, total: int) -> dict[str, Any]:
    """Write, read and verify one large stage."""
    run = new_run(folder)
    identity = RequestIdentity(INFO)
    writing, joining, reading, verifying = Clock(), Clock(), Clock(), Clock()
    first = 0
    with run.writer(KEY) as writer:
        for items in in_windows(questions(total), WINDOW):
            keys = identity.keys(items.requests)  # known before a model is asked
            with writing:
                for recorded in batches(items, first, keys, digests_of_tags(items.tags, len(items))):
                    writer.append(recorded)
            first += len(items)
        with writing:
            writer.flush()
    with run.lock(), joining:
        run.compact(KEY)
    with reading:
        read = sum(len(table) for table in RunFolder.open(folder).batches(KEY))
    with verifying:
        opened = RunFolder.open(folder)
        damaged = opened.check()
        checked = check_stage(questions(total), identity=identity, done=opened.done(KEY))
    if damaged or not checked.whole or checked.asked != total or read != total:
        raise SystemExit(f"{read} rows read, {damaged}, {checked}")
    found: dict[str, Any] = {"rows": total}
    for what, clock in (("write", writing), ("join", joining), ("read", reading), ("verify", verifying)):
        found |= clock.rates(what, total)
    found["bytes_per_row"] = round(sum(path.stat().st_size for path in folder.rglob("*.parquet")) / total, 1)
    found["peak_gib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    return found


def timed(what: str, work: Callable[[], object]) -> float:
    """Run, print and return the seconds."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    print(f"{what}: {seconds:.1f} s", flush=True)
    return seconds


def rows(start: int, stop: int) -> list[Row]:
    """Return single rows, as an endpoint's answers are given to the writer."""
    return [
        Row(
            at,
            at.to_bytes(16, "big"),
            Item(
                request=Fill(text=TEXTS[at % 957], context=f"Review {at // 957}.", words=LABELS),
                tags={"word": APPENDED[at % 957], "review": at // 957},
            ),
            WordAnswer(words=LABELS, logprobs=(-1.0 - at % 7, -2.0)),
        )
        for at in range(start, stop)
    ]


def many_parts(folder: Path, parts: int, each: int = 20) -> dict[str, float]:
    """Write small parts, open them, join them, open again."""
    run = new_run(folder)
    with run.writer(KEY, flush_seconds=0.0, max_rows=each) as writer:
        for start in range(0, parts * each, each):
            writer.append(rows(start, start + each))
    found = len(list(folder.rglob("*.parquet")))
    print(f"{found} parts")
    before = timed("opened and read", lambda: RunFolder.open(folder).table(KEY, columns=["index"]))
    with run.lock():
        joining = timed("joined", lambda: run.compact(KEY))
    after = timed("opened and read", lambda: RunFolder.open(folder).table(KEY, columns=["index"]))
    left = len(list(folder.rglob("*.parquet")))
    return {"parts": found, "open_s": before, "join_s": joining, "parts_after": left, "open_after_s": after}


def main() -> None:
    """Measure both and print them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--parts", type=int, default=20_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = large(Path(folder) / "large", given.rows) if given.rows else {}
        found |= many_parts(Path(folder) / "parts", given.parts) if given.parts else {}
    print(json.dumps(found))
    if given.json:
        given.json.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
