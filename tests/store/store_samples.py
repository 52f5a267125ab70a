"""Records to write in tests, also from child processes."""

import hashlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

from clinometer.store import Row, RunFolder, StageKey
from clinometer.types import Fill, Item, ModelInfo, WordAnswer

KEY = StageKey(probe="counterexamples", model="builtin:masked", stage="ask")
WORDS = ("he", "she")


def key_of(index: int) -> bytes:
    return hashlib.sha256(b"%d" % index).digest()[:16]


def rows(start: int, stop: int, *, salt: str = "") -> list[Row]:
    """Rows whose every value follows from their index (and salt), so that a reader can check them."""
    return [
        Row(
            index,
            key_of(index),
            Item(
                request=Fill(text=f"The [MASK] is number {index}.{salt}", context="Once.", words=WORDS),
                tags={"word": f"w{index % 5}", "turn": index, "share": index / 4},
            ),
            WordAnswer(words=WORDS, logprobs=(-float(index), float("nan"))),
        )
        for index in range(start, stop)
    ]


def new_run(path: Path) -> RunFolder:
    info = ModelInfo(
        name="builtin:masked",
        kind="masked",
        family="bert",
        capabilities=("fill",),
        weights="00",
        tokenizer="11",
        dtype="float32",
        code="22",
        settings={"label": "x"},
    )
    return RunFolder.create(
        path, spec='version = 1\nprobes = ["naïve"]\r\n', provenance={"seed": 3}, models=[info]
    )


def append(run: RunFolder, start: int, stop: int, *, salt: str = "") -> Path:
    """Write one part and return its path."""
    before = set(parts(run))
    with run.writer(KEY) as writer:
        writer.append(rows(start, stop, salt=salt))
    (path,) = set(parts(run)) - before
    return path


def parts(run: RunFolder) -> list[Path]:
    return sorted((run.path / "records" / KEY.folder).glob("*.parquet"))


def leftovers(run: RunFolder) -> list[Path]:
    return list(run.path.rglob(".tmp-*"))


def start_child(code: str, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start Python code in a process of its own; `before` is a command that runs it."""
    return subprocess.Popen(
        [*before, sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )


def append_for_ever(tell, place: Path, batch: int) -> None:
    """Append to a run where its records end; every append is a flush, and is told afterwards."""
    run = RunFolder.open(place)
    with run.lock():
        index = len(run.done(KEY))
        with run.writer(KEY, flush_seconds=0) as writer:
            while True:
                writer.append(rows(index, index + batch))
                index += batch
                tell(index)


def create_for_ever(tell, home: Path) -> None:
    """Make one run after the other."""
    tell("ready")
    for turn in itertools.count():
        new_run(home / str(turn))
