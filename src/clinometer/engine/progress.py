"""How the engine tells what it is doing; the command line shows it, the library stays silent."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Listens to the work of a run, or of a training, which counts in steps."""

    def begin(self, label: str, *, total: int, done: int, unit: str = "request") -> None:
        """A stage starts: `done` of its `total` requests are already recorded; a total of 0 is unknown."""
        ...

    def advance(self, count: int) -> None:
        """So many more requests are answered."""
        ...

    def end(self) -> None:
        """The stage is complete."""
        ...

    def note(self, text: str) -> None:
        """Something the user should know."""
        ...


class Silent:
    """Listens and says nothing."""

    def begin(self, label: str, *, total: int, done: int, unit: str = "request") -> None:
        """Say nothing."""

    def advance(self, count: int) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
