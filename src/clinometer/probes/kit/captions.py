"""The name, title and reading guide of a finding table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clinometer.types import Finding, FindingTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The name of a table, its title, what its numbers are, and which version of its estimator made them.

    Raise `version` whenever the same records give other numbers; not for a change of words.
    """

    name: str
    title: str
    text: str
    version: int = 1


def tables_of(captions: Iterable[Caption], rows: Mapping[str, Sequence[Finding]]) -> tuple[FindingTable, ...]:
    """Return the tables in the order of their captions; a caption without rows gives an empty table."""
    return tuple(
        FindingTable(
            name=caption.name,
            title=caption.title,
            caption=caption.text,
            rows=tuple(rows.get(caption.name, ())),
            version=caption.version,
        )
        for caption in captions
    )
