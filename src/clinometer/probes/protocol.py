"""What makes an audit: what to ask in which stages, and how to read the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from clinometer.types import Findings, Item, ModelInfo, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A round of questions; a later round may depend on the records of an earlier one."""

    name: str


class Records(Protocol):
    """The answers of a run so far, read-only.

    A table has one row for each item of the stage, in the order in which the probe asked: `index`, `tag_*` (the
    item's tags), `ask_*` (the request's fields) and `got_*` (the answer's fields).
    """

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a probe may know when it asks: its options, the seed, and the model under audit."""

    options: Any  # an instance of the probe's own options class
    seed: int
    model: ModelInfo


class Probe(Protocol):
    """One audit. `requests` and `summarise` are pure: no device, no disk, no batch, no worker."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def question(self) -> str:
        """What is asked of the model, in one sentence for the reader of the report."""
        ...

    @property
    def paper(self) -> str:
        """Who asked this question first: authors, title, year."""
        ...

    @property
    def sources(self) -> str:
        """Where its word lists come from, for the reader of the report."""
        ...

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What the model under audit must offer; any one of these will do."""
        ...

    @property
    def options(self) -> type[Any]:
        """A frozen dataclass of the probe's options, with defaults.

        An option whose name ends in `_file` is the path of a file of the user's: a run keeps a copy of it.
        """
        ...

    @property
    def user_data(self) -> Mapping[str, str]:
        """Which `_file` options are filled from the user's data folder when nothing is said: option -> data set.

        The names of the data sets are those of `clinometer data`.
        """
        ...

    @property
    def profiles(self) -> Mapping[Profile, Mapping[str, Any]]:
        """What each profile sets instead of the defaults."""
        ...

    def check(self, options: Any) -> None:
        """Raise an InputError if the options, or the files that they name, cannot be used."""
        ...

    def stages(self, plan: Plan) -> tuple[Stage, ...]: ...

    def requests(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]: ...

    def summarise(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the records of all models under audit (one plan each)."""
        ...
