"""What a command shows while it works (a bar on a terminal, plain lines elsewhere) and what it found."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clinometer.cli.terminal import show
from clinometer.errors import EndpointError, StoppedError, WorkerError
from clinometer.plain import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from clinometer.engine import Progress
    from clinometer.results import Run

_SECONDS_BETWEEN_LINES = 10.0


def finish_run(place: Path, work: Callable[[Progress], Run], *, quiet: bool) -> Run:
    """Do the work, print what it found, and return the run; on Ctrl-C say how to continue."""
    try:
        with show_progress(quiet=quiet) as progress:
            run = work(progress)
    except KeyboardInterrupt:
        shared = shared_address(place)
        there = shared or place.exists()
        again = f"continue with: clinometer resume {shared or place}" if there else "nothing was written"
        show(error=True)
        show(f"clinometer: stopped; {again}", error=True)
        raise typer.Exit(130) from None
    except (EndpointError, StoppedError, WorkerError) as error:
        shared = shared_address(place)
        if not shared and not place.exists():
            raise
        raise type(error)(
            f"{error}; what was answered is kept, continue with: clinometer resume {shared or place}"
        ) from None
    print_run(run)
    if shared := shared_address(place):
        show(f"shared  {shared}")
    return run


def shared_address(place: Path) -> str:
    """Return the address of a run on shared storage; "" for a folder here."""
    from clinometer.store.remote import address_of

    return address_of(place)


def print_run(run: Run) -> None:
    """Print what was found, and where the run and its report are."""
    for found in run.findings:
        show()
        show(found.probe)
        for line in found.headlines:
            show(f"  {line}")
        for notice in found.notices:
            if notice.level == "warning":  # the others are in the report
                show(f"  warning: {notice.text}")
    show()
    show(f"run     {run.path}")
    show(f"report  {run.report_path}")
    if (run.path / "comparison.html").is_file():
        show(f"compare {run.path / 'comparison.html'}")
    if run.digest:
        show(f"digest  {run.digest}")


@contextlib.contextmanager
def show_progress(*, quiet: bool) -> Iterator[Progress]:
    """Show progress on standard error until the block ends."""
    if quiet:
        from clinometer.engine import Silent

        yield Silent()
    elif sys.stderr.isatty():
        with _Bar() as bar, _library_notes(bar):
            yield bar
    else:
        lines = _Lines()
        with _library_notes(lines):
            yield lines


@contextlib.contextmanager
def _library_notes(progress: Progress) -> Iterator[None]:
    """Show what the library logs, for instance that it converts a built-in model."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            progress.note(record.getMessage())

    logger, handler = logging.getLogger("clinometer"), Handler()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Lines:
    """A line at the start of a stage, every ten seconds, and at its end."""

    _told = 0.0  # when the workers were last shown

    def stage(self) -> _Lines:
        """Show one more stage beside the others."""
        return _Lines()

    def workers(self, lines: Sequence[str]) -> None:
        """Show the workers now and then, in one line."""
        now = time.monotonic()
        if lines and now - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = now
            show("; ".join(lines), error=True)

    def begin(self, label: str, *, total: int, done: int, unit: str = "request") -> None:
        self._label, self._total, self._done, self._fresh = label, total, done, 0
        self._did = "asked" if unit == "request" else f"{unit}s"
        self._start = self._last = time.monotonic()
        kept = f", {done:,} already recorded" if done else ""
        count = f"{total:,} {unit}{'s' if total != 1 else ''}" if total else f"more {unit}s than one window"
        show(f"{label}: {count}{kept}", error=True)

    def advance(self, count: int) -> None:
        self._fresh += count
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            rate = self._fresh / (now - self._start)
            done = self._done + self._fresh
            if self._total:
                left = (self._total - done) / rate if rate else 0.0
                show(f"{self._label}: {done:,}/{self._total:,}, {_rate(rate)}, {duration(left)} left", error=True)
            else:
                show(f"{self._label}: {done:,}, {_rate(rate)}", error=True)

    def end(self) -> None:
        seconds = time.monotonic() - self._start
        if self._fresh:
            show(f"{self._label}: done, {self._fresh:,} {self._did} in {duration(seconds)}", error=True)

    def note(self, text: str) -> None:
        show(text, error=True)


class _Bar:
    """A bar with rate and remaining time; below the bars, what each worker does."""

    _workers: Sequence[str] = ()

    def stage(self) -> _Bar:
        """Show one more stage beside the others."""
        beside = _Bar()
        beside._progress = self._progress
        return beside

    def workers(self, lines: Sequence[str]) -> None:
        """Show what the workers do now."""
        self._workers = lines

    def __enter__(self) -> _Bar:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.table import Column
        from rich.text import Text

        bar = self

        class WithWorkers(Progress):
            """The stages, and below them what each worker does."""

            def get_renderables(self) -> Iterator[RenderableType]:
                yield self.make_tasks_table(self.tasks)
                if bar._workers:
                    yield Text("\n".join(map(visible, bar._workers)), style="dim")

        name = Column(max_width=40, no_wrap=True, overflow="ellipsis")  # a long path must not crowd out the bar
        self._progress = WithWorkers(
            TextColumn("{task.description}", markup=False, table_column=name),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, label: str, *, total: int, done: int, unit: str = "request") -> None:
        self._fresh, self._start = 0, time.monotonic()
        self._task = self._progress.add_task(visible(label), total=total or None, completed=done, rate="")

    def advance(self, count: int) -> None:
        self._fresh += count
        rate = self._fresh / max(time.monotonic() - self._start, 1e-9)
        self._progress.update(self._task, advance=count, rate=_rate(rate))

    def end(self) -> None:
        self._progress.stop_task(self._task)

    def note(self, text: str) -> None:
        self._progress.console.out(visible(text), highlight=False)


def _rate(per_second: float) -> str:
    """Write a speed; if one item takes more than a second, write how long it takes.

    >>> _rate(1234.56), _rate(0.125)
    ('1,234.6/s', '8.0 s each')
    """
    return f"{per_second:,.1f}/s" if per_second >= 1 or not per_second else f"{1 / per_second:,.1f} s each"


def duration(seconds: float) -> str:
    """Write a duration.

    >>> duration(3.2), duration(75), duration(7300)
    ('3 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
