"""Terms that a reader may not know, explained where they first appear in an audit."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term as the page writes it, and what it means."""

    name: str
    says: str


class Explained:
    """The terms of one audit; each is explained once, where it comes first.

    >>> terms = Explained("counterfactual")
    >>> [term.name for term in terms.new_in(["I.F. and W1", "I.F. again"])]
    ['I.F.', 'W1']
    >>> terms.new_in(["W1, again"])
    ()
    """

    def __init__(self, audit: str) -> None:
        self._audit = audit
        self._known: set[str] = set()

    def new_in(self, texts: Iterable[str]) -> tuple[Term, ...]:
        """Return the terms in these texts that were not explained before, in the order of the glossary."""
        whole = "\n".join(texts)
        found = tuple(
            term
            for term, audits, pattern in _glossary()
            if term.name not in self._known and (not audits or self._audit in audits) and pattern.search(whole)
        )
        self._known.update(term.name for term in found)
        return found


@functools.cache
def _glossary() -> tuple[tuple[Term, tuple[str, ...], re.Pattern[str]], ...]:
    text = resources.files("clinometer.report").joinpath("glossary.toml").read_text(encoding="utf-8")
    return tuple(
        (
            Term(name=entry.get("term", name), says=entry["says"]),
            tuple(entry.get("audits", ())),
            _pattern([entry.get("term", name), *entry.get("also", ())]),
        )
        for name, entry in tomllib.loads(text).items()
    )


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return what finds a term as whole words, and never within another one: "gap", but not "stopgap"."""
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?![\w])")
