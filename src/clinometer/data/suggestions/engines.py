"""The three search engines of the paper's Appendix B: how each is asked for suggestions, and how it answers."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clinometer.errors import DataError, nearest


class OtherFormat(Exception):
    """The engine answered, but not with suggestions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A public suggestion address. `read` takes the suggestions out of the decoded JSON, or raises OtherFormat."""

    name: str
    address: str
    parameter: str  # the one that carries the question
    settings: Mapping[str, str]
    read: Callable[[Any], tuple[str, ...]]

    def url(self, question: str) -> str:
        """Return the address that asks for completions of a question.

        >>> get_engine("duckduckgo").url("why are poets so ")
        'https://duckduckgo.com/ac?q=why+are+poets+so+'
        """
        parts = urllib.parse.urlsplit(self.address)
        query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
        query += [*self.settings.items(), (self.parameter, question)]
        return urllib.parse.urlunsplit(parts._replace(query=urllib.parse.urlencode(query)))


def _google(answer: Any) -> tuple[str, ...]:
    """`["question", ["suggestion", …], …]`."""
    if isinstance(answer, list) and len(answer) > 1 and isinstance(answer[1], list):
        return _texts(answer[1])
    raise OtherFormat('expected ["question", ["suggestion", …]]')


def _yahoo(answer: Any) -> tuple[str, ...]:
    """`{"gossip": {"results": [{"key": "suggestion"}, …]}}`."""
    results = answer.get("gossip", {}) if isinstance(answer, dict) else None
    results = results.get("results") if isinstance(results, dict) else None
    if isinstance(results, list):
        return _texts([_field(entry, "key") for entry in results])
    raise OtherFormat('expected {"gossip": {"results": [{"key": "suggestion"}, …]}}')


def _duckduckgo(answer: Any) -> tuple[str, ...]:
    """`[{"phrase": "suggestion"}, …]`."""
    if isinstance(answer, list):
        return _texts([_field(entry, "phrase") for entry in answer])
    raise OtherFormat('expected [{"phrase": "suggestion"}, …]')


def _field(entry: Any, name: str) -> Any:
    return entry.get(name) if isinstance(entry, dict) else None


def _texts(values: list[Any]) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str):
            raise OtherFormat(f"expected suggestions as text, not {str(value)[:40]!r}")
    return tuple(values)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            name="google",
            address="http://suggestqueries.google.com/complete/search",
            parameter="q",
            settings={"client": "firefox", "hl": "en", "oe": "utf-8"},
            read=_google,
        ),
        Engine(
            name="yahoo",
            address="http://sugg.search.yahoo.net/sg",
            parameter="command",
            settings={"output": "json", "nresults": "10"},
            read=_yahoo,
        ),
        Engine(
            name="duckduckgo", address="https://duckduckgo.com/ac", parameter="q", settings={}, read=_duckduckgo
        ),
    )
}


def get_engine(name: str) -> Engine:
    """Return the engine of a name; raise DataError with the nearest name for one that is not known."""
    if name not in ENGINES:
        raise DataError(f"no search engine {name!r}; {nearest(name, ENGINES)}")
    return ENGINES[name]
