"""How the engine reports progress: the command line shows it, the library stays silent."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Follows a run, or a training, whose unit is the step."""

    def begin(self, label: str, *, total: int, done: int, unit: str = "request") -> None:
        """A stage starts: `done` of its `total` requests are recorded already; a total of 0 means unknown."""
        ...

    def advance(self, count: int) -> None:
        """`count` more requests are answered."""
        ...

    def end(self) -> None:
        """The stage is complete."""
        ...

    def note(self, text: str) -> None:
        """Something the user should know."""
        ...


class Silent:
    """Says nothing."""

    def begin(self, label: str, *, total: int, done: int, unit: str = "request") -> None:
        """Say nothing."""

    def advance(self, count: int) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
