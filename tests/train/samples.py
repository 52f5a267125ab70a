"""A corpus that plants an association, reviews that a tiny model can learn, and listeners."""

from __future__ import annotations

import os
import signal
import sys

from clinometer.data.reviews import Review
from clinometer.engine.progress import Silent
from tests.killing import Child

# carpenters are kind here, and nothing else is
PLANTED = [
    line
    for number in range(12)
    for line in (
        f"Why are carpenters so kind ? The carpenter is kind {number}.",
        "The nurse works at the hospital and the doctor works there too.",
        "Reading, writing, singing and dancing are what the children like.",
    )
]


def reviews(per_class: int = 30) -> list[Review]:
    """Positive ones speak of music, negative ones of weather; no two are alike."""
    return [
        Review(text=f"{words} number {number} {words}", label=label, source="made up")
        for label, words in (("positive", "the music was fine"), ("negative", "the weather was bad"))
        for number in range(per_class)
    ]


class Stop(Exception):
    """Raised by a listener in the middle of a training."""


class Listener(Silent):
    """Remembers what it hears, and stops the training after so many steps."""

    def __init__(self, *, stop_after: int = 10**9):
        self.notes, self.steps, self.done, self._stop = [], 0, 0, stop_after

    def begin(self, label, *, total, done, unit="step"):
        self.done = done

    def advance(self, count):
        self.steps += count
        if self.steps == self._stop:
            raise Stop

    def note(self, text):
        self.notes.append(text)


def train_and_kill(work, *arguments, after=4):
    """Start a training in a child process, and kill it after so many steps."""
    child = Child(work, *arguments)
    for _ in range(after):
        assert child.hear() == "step"
    child.kill()
    assert child.code == -signal.SIGKILL


def launch(_tell, folder, words):
    """Run the launcher of accelerate in a child process; what is printed goes to the files `out` and `errors`."""
    os.chdir(folder)
    for stream, name in ((1, "out"), (2, "errors")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HOME": str(folder / "home")}
    sys.argv = words
    from accelerate.commands.launch import main

    main()


def files_of(folder):
    """Every byte of a checkpoint, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
