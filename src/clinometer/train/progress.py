"""How a training tells what it is doing; the command line shows it, the library stays silent."""

from __future__ import annotations

from typing import Protocol


class TrainingProgress(Protocol):
    """Listens to a training; what listens to a run can listen here, too."""

    def begin(self, label: str, *, total: int, done: int, unit: str = ...) -> None:
        """A training starts: `done` of its `total` steps were done before."""
        ...

    def advance(self, count: int) -> None:
        """So many more steps are done."""
        ...

    def end(self) -> None:
        """The training is complete."""
        ...

    def note(self, text: str) -> None:
        """Something the user should know."""
        ...


class Quiet:
    """Listens and says nothing."""

    def begin(self, label: str, *, total: int, done: int, unit: str = "step") -> None:
        """Say nothing."""

    def advance(self, count: int) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
