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

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from measured import Row as Measured
from measured import arguments, tell

from clinometer.engine import RequestIdentity, check_stage
from clinometer.engine.batching import WINDOW
from clinometer.questions import Items, WordAnswers, in_windows
from clinometer.store import Recorded, Row, RunFolder, StageKey, digests_of_tags
from clinometer.types import Block, Fill, Item, ModelInfo, Tag, WordAnswer

KEY = StageKey(probe="sentiment_words", model="model", stage="ask")
LABELS = ("great", "terrible")
APPENDED = tuple(f"word{number}" for number in range(319) for _ in range(3))
TIMES: tuple[int, ...] = (5, 10, 15) * 319
TEXTS = tuple(" ".join([word] * k + ["It was [MASK]"]) for word, k in zip(APPENDED, TIMES, strict=True))
BATCH = 1024
RATE = 500_000  # rows a second, to reach
INFO = ModelInfo(
    name="model", kind="masked", family="none", capabilities=("fill",), weights="0", tokenizer="0",
    dtype="float32", code="0",
)  # fmt: skip


def questions(total: int) -> Iterator[Block]:
    """Yield so many questions as the probe does, a review at a time."""
    for start in range(0, total, len(TEXTS)):
        rows = slice(0, min(len(TEXTS), total - start))
        number = start // len(TEXTS)
        shared_tags: dict[str, Tag] = {"template": "It was [MASK]", "review": number}
        yield Block(
            kind=Fill,
            columns={"text": TEXTS[rows]},
            shared={"context": f"Review {number}. " * 12, "words": LABELS, "normalise": "words"},
            tags={"word": APPENDED[rows], "k": TIMES[rows]},
            shared_tags=shared_tags,
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

    def row(self, what: str, rows: int, *, aim: bool = True, notes: tuple[str, ...] = ()) -> Measured:
        """Return the rows a second, and in a second of CPU time."""
        rate = rows / self.seconds
        return Measured(
            work=f"{rows:,} answers {what}",
            unit="rows/s",
            ours=rate,
            targets={f"≥ {RATE:,} rows/s": rate >= RATE} if aim else {},
            notes=(f"{rows / self.cpu:,.0f} rows in a second of CPU time", *notes),
        )


def large(folder: Path, total: int) -> list[Measured]:
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
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet")) / total
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    memory = Measured(
        work=f"{total:,} answers: memory, at most", unit="GB", ours=peak, targets={"< 1 GB": peak < 1}
    )
    return [
        writing.row("written", total, notes=(f"{size:.1f} bytes for each on disk",)),
        joining.row("joined to large parts", total, aim=False),
        reading.row("read back, every column", total),
        verifying.row("verified: checksums, keys and tags", total),
        memory,
    ]


def timed(work: Callable[[], object]) -> float:
    """Run, and return the seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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


def many_parts(folder: Path, parts: int, each: int = 20) -> list[Measured]:
    """Write small parts, open them, join them, open again."""
    run = new_run(folder)
    with run.writer(KEY, flush_seconds=0.0, max_rows=each) as writer:
        for start in range(0, parts * each, each):
            writer.append(rows(start, start + each))
    before = timed(lambda: RunFolder.open(folder).table(KEY, columns=["index"]))
    with run.lock():
        joining = timed(lambda: run.compact(KEY))
    after = timed(lambda: RunFolder.open(folder).table(KEY, columns=["index"]))
    left = len(list(folder.rglob("*.parquet")))
    return [
        Measured(work=f"{parts:,} parts opened", unit="s", ours=before),
        Measured(work=f"{parts:,} parts joined", unit="s", ours=joining, notes=(f"{left:,} are left",)),
        Measured(work="the joined parts opened", unit="s", ours=after),
    ]


def main() -> None:
    """Measure both."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--parts", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = large(Path(folder) / "large", given.rows) if given.rows else []
        found += many_parts(Path(folder) / "parts", given.parts) if given.parts else []
    tell(found, to=given.json)


if __name__ == "__main__":
    main()
