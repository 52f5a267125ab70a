"""How fast answers are written, read back and verified, and what many small parts cost to open.

    python benchmarks/records.py [--rows 5000000] [--parts 20000]

Rows are what a fill-mask stage records: a text, two words, their log-probabilities, three tags. They are written
as the engine writes them, batch by batch; the second part writes each batch as a part of its own, as a run does
that is killed and resumed all night, opens the run, joins the parts and opens it again.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from clinometer.store import Row, RunFolder, StageKey
from clinometer.types import Fill, Item, ModelInfo, WordAnswer

KEY = StageKey(probe="sentiment_words", model="model", stage="ask")
WORDS = ("great", "terrible")
BATCH = 1024


def rows(start: int, stop: int) -> list[Row]:
    """Return rows as a stage gives them to the writer."""
    return [
        Row(
            at,
            at.to_bytes(16, "big"),
            Item(
                request=Fill(text=f"word {at % 977}. It was [MASK].", context=f"Review {at % 200}.", words=WORDS),
                tags={"word": at % 977, "review": at % 200, "k": 5},
            ),
            WordAnswer(words=WORDS, logprobs=(-1.0 - at % 7, -2.0)),
        )
        for at in range(start, stop)
    ]


def batches(total: int) -> Iterator[list[Row]]:
    """Yield all rows, a batch at a time; a thousand different batches are made once."""
    for start in range(0, total, BATCH):
        yield rows(start, min(start + BATCH, total))


def new_run(folder: Path) -> RunFolder:
    """Make a run folder without a model behind it."""
    info = ModelInfo(
        name="model", kind="masked", family="none", capabilities=("fill",), weights="0", tokenizer="0",
        dtype="float32", code="0",
    )  # fmt: skip
    return RunFolder.create(folder, spec="version = 1\n", provenance={}, models=[info])


def timed(what: str, work: Callable[[], object]) -> float:
    """Run, print and return the seconds."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    print(f"{what}: {seconds:.1f} s", flush=True)
    return seconds


def large(folder: Path, total: int) -> dict[str, float]:
    """Write, read and verify one large stage."""
    run = new_run(folder)
    writing = 0.0
    with run.writer(KEY) as writer:
        for batch in batches(total):
            start = time.perf_counter()
            writer.append(batch)
            writing += time.perf_counter() - start
        start = time.perf_counter()
    writing += time.perf_counter() - start
    print(f"written: {writing:.1f} s")
    opened = RunFolder.open(folder)
    verifying = timed("opened, every checksum compared", opened.check)
    columns = ["index", "tag_word", "tag_review", "got_logprobs"]
    reading = timed("read back in batches", lambda: sum(len(t) for t in opened.batches(KEY, columns=columns)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "rows": total,
        "write_rows_per_s": round(total / writing),
        "verify_rows_per_s": round(total / verifying),
        "read_rows_per_s": round(total / reading),
        "bytes_per_row": round(sum(path.stat().st_size for path in folder.rglob("*.parquet")) / total, 1),
        "peak_gib": round(peak, 2),
    }


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
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = large(Path(folder) / "large", given.rows) if given.rows else {}
        found |= many_parts(Path(folder) / "parts", given.parts) if given.parts else {}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
