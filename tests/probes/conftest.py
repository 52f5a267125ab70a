"""What holds for the findings of every audit, whatever a test asks of them."""

import functools
import unicodedata
from collections.abc import Iterator

import pytest

from clinometer.probes import counterexamples, counterfactual, sentiment_words, stereotypes, stigma
from clinometer.types import Findings


def sentences_of(found: Findings) -> Iterator[str]:
    """What is read as sentences; labels of rows may hold what a model wrote."""
    yield from found.headlines
    yield from (notice.text for notice in found.notices)
    for each in found.verdicts:
        yield from (each.aspect, each.sentence, each.reason, each.size)
    for each in found.changes:
        yield from (each.before, each.after, each.measure, each.sentence, each.reason)
    for table in found.tables:
        yield from (table.title, table.caption)
    for figure in found.figures:
        yield from (figure.title, figure.caption)


@pytest.fixture(scope="session", autouse=True)
def _no_control_characters() -> Iterator[None]:
    """No sentence of any audit has a control character: a terminal and a page show it as nothing, or as a box."""
    with pytest.MonkeyPatch.context() as patch:
        for audit in (counterexamples, counterfactual, sentiment_words, stereotypes, stigma):
            patch.setattr(type(audit.PROBE), "findings", _checked(type(audit.PROBE).findings))
        yield


def _checked(findings):
    @functools.wraps(findings)
    def checked(*given, **named):
        found = findings(*given, **named)
        for text in sentences_of(found):
            assert not any(unicodedata.category(letter) == "Cc" for letter in text), repr(text)
        return found

    return checked
