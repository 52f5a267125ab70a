"""A local server that answers as the three search engines do, and the questions to put to it."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Mapping

from clinometer.data.suggestions.asking import ENGINES
from clinometer.data.suggestions.collection import Question
from tests.local_server import Script

POETS = Question(prompt="why are poets so", group="poets", category="profession")
BAKERS = Question(prompt="why are bakers so", group="bakers", category="profession")


def asked(path: str) -> tuple[str, str]:
    """Which engine's address was asked, and what."""
    parts = urllib.parse.urlsplit(path)
    engine = parts.path.strip("/")
    query = urllib.parse.parse_qs(parts.query)
    return engine, query[ENGINES[engine].parameter][0]


def in_format(engine: str, question: str, suggestions: list[str]) -> bytes:
    """Suggestions as the engine would send them."""
    answer = {
        "google": [question, suggestions, [], {"google:suggestsubtypes": []}],
        "yahoo": {"gossip": {"qry": question, "results": [{"key": text, "mrk": 6} for text in suggestions]}},
        "duckduckgo": [{"phrase": text} for text in suggestions],
    }[engine]
    return json.dumps(answer).encode()


def answering(suggestions: Mapping[str, list[str]]) -> Callable[[str], Script]:
    """Answer every question with its own words and, one after the other, the completions of that engine."""

    def answer(path: str) -> Script:
        engine, question = asked(path)
        texts = [question + completion for completion in suggestions.get(engine, [])]
        return Script(in_format(engine, question, texts), headers={"Content-Type": "application/json"})

    return answer
