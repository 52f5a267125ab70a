"""What makes an audit: what to ask in which stages, and how to read the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from clinometer.types import Findings, ModelInfo, Profile, Questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A part that other models play in an audit: the classifier that scores what was generated, …"""

    name: str
    capability: str  # what a model must offer to play it
    default: tuple[str, ...]  # who plays it when nobody is named
    at_least: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A round of questions; a later round may depend on the records of an earlier one."""

    name: str
    by: str = ""  # the name of the model that answers, one of the plan's roles; "": the model under audit
    size: int = 0  # how many items it has, where that is known without making them; 0: they are counted


class Records(Protocol):
    """The answers of a run so far, read-only.

    A table has one row for each item of the stage, in the order in which the probe asked: `index`, `tag_*` (the
    item's tags), `ask_*` (the request's fields) and `got_*` (the answer's fields). `got_texts` lacks the texts
    that are missing in a file of answers, if the user accepts that.
    """

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame: ...

    def batches(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows of `table`, in its order, in tables of bounded size: for stages of millions of items."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a probe may know when it asks: its options, the seed, the model under audit, who else takes part."""

    options: Any  # an instance of the probe's own options class
    seed: int
    model: ModelInfo
    roles: Mapping[str, tuple[ModelInfo, ...]] = field(default_factory=dict)

    def answers(self, stage: Stage) -> ModelInfo:
        """Return the model that answers a stage."""
        if not stage.by:
            return self.model
        return next(info for players in self.roles.values() for info in players if info.name == stage.by)


def questions_version(probe: Probe) -> int:
    """Return the version of what an audit asks: its attribute `questions_version`, or 1 where it has none.

    Raise the attribute when the same options, seed and model give other questions, or the same ones in another
    order. A run records the version, so that `verify` can tell answers to an older audit from missing ones. Tags
    are not questions: they have a digest of their own.
    """
    return int(getattr(probe, "questions_version", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Plain sentences about an audit, true of any run of it, and its paper as BibTeX."""

    how: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()
    bibtex: str = ""


class Probe(Protocol):
    """One audit. `questions` and `findings` are pure: no device, no disk, no batch, no worker.

    An audit may also have `questions_version: int`; see the function of that name. For `clinometer compare` it may
    have `compared(findings, models) -> Iterator[kit.asking.Units]`, which says what its models are compared by,
    and `compared_freely: frozenset[str]`, the options that may differ between two runs that are compared.
    """

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
    def roles(self) -> tuple[Role, ...]:
        """The parts that other models play beside the model under audit."""
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

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Questions:
        """Return what a stage asks, as items or blocks of them, in the order in which the answers are read."""
        ...

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the records of all models under audit (one plan each)."""
        ...
