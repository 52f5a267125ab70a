"""Which ways of asking may be compared: the data, and the page that shows it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from fake_records import fake_model

from clinometer.data import comparability
from clinometer.data.comparability import load_comparisons
from clinometer.errors import DataError
from clinometer.probes import _MODULES
from clinometer.probes.kit.asking import (
    ANSWER,
    DRAWN,
    FILL,
    LABEL,
    NEXT_WORD,
    NOT,
    VALUES,
    WAYS,
    comparable,
    way_of,
)

PAGE = Path(__file__).parents[2] / "docs" / "asking.md"
NAMES = tuple(way.name for way in WAYS)


def test_a_way_is_comparable_with_itself_and_what_is_not_listed_is_not():
    assert comparable("stigma", "fill", "fill").how == VALUES
    assert comparable("stigma", "fill", "samples").how == NOT
    assert comparable("no such audit", "fill", "answer").how == NOT


def test_the_order_of_a_pair_does_not_matter():
    for row in load_comparisons(NAMES):
        assert comparable(row.audit, row.first, row.second) == comparable(row.audit, row.second, row.first) == row


def test_exact_and_drawn_are_never_compared_by_value():
    exact = {way.name: way.exact for way in WAYS}
    for row in load_comparisons(NAMES):
        if exact[row.first] != exact[row.second]:
            assert row.how != VALUES, row


def test_every_audit_has_its_pairs_and_the_page_shows_each_row():
    rows = load_comparisons(NAMES)
    assert {row.audit for row in rows} == set(_MODULES)
    page = PAGE.read_text()
    listed = [line for line in page.splitlines() if line.startswith("| ") and line.count(" | ") == 4]
    shown = [f"| {row.audit} | {row.first} | {row.second} | {row.how} | {row.why} |" for row in rows]
    assert [line for line in listed if line.split(" | ")[3] in comparability.HOWS] == shown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            '[[pairs]]\naudit = "a"\nfirst = "fill"\nsecond = "fill"\nhow = "ranks"\nwhy = "w"',
            "two different ways",
        ),
        (
            '[[pairs]]\naudit = "a"\nfirst = "fill"\nsecond = "guess"\nhow = "ranks"\nwhy = "w"',
            "two different ways",
        ),
        (
            '[[pairs]]\naudit = "a"\nfirst = "fill"\nsecond = "answer"\nhow = "maybe"\nwhy = "w"',
            "two different ways",
        ),
        ('[[pairs]]\naudit = "a"\nfirst = "fill"\nsecond = "answer"\nhow = "ranks"', "why"),
        (
            2 * '[[pairs]]\naudit = "a"\nfirst = "fill"\nsecond = "answer"\nhow = "not"\nwhy = "w"\n',
            "listed twice",
        ),
    ],
)
def test_a_wrong_row_is_named(monkeypatch, tmp_path, text, complaint):
    file = tmp_path / "comparable.toml"
    file.write_text(text)
    monkeypatch.setattr(comparability, "packaged", lambda *_: file)
    with pytest.raises(DataError, match=complaint):
        load_comparisons(NAMES)


def test_a_model_is_asked_in_the_first_way_that_it_offers():
    ways = (FILL, NEXT_WORD, ANSWER, DRAWN, LABEL)
    for capabilities, way in (
        (("fill",), FILL),
        (("next_word", "rescore", "sample"), NEXT_WORD),
        (("ask", "answer_word"), ANSWER),
        (("ask",), DRAWN),
        (("classify",), LABEL),
    ):
        assert way_of(fake_model(capabilities=capabilities), ways) is way


@pytest.fixture(scope="module")
def simulated():
    """The simulation of every way of asking, as a module."""
    folder = Path(__file__).parents[2] / "simulations"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("simulated_ways", folder / "ways.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["simulated_ways"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def test_every_cell_is_simulated(simulated, tmp_path):
    """What docs/asking.md lists and masked models do not share; chat continuations are texts like any other."""
    cells = {(cell.audit, cell.way) for cell in simulated.cells(tmp_path / "files")}
    assert {way for audit, way in cells if audit == "sentiment_words"} == {
        "next word", "answer", "drawn answers", "own label",
    }  # fmt: skip
    for audit in ("stereotypes", "stigma", "counterexamples"):
        assert {(audit, "answer"), (audit, "drawn answers")} <= cells
    assert {("stigma", "fill by rescoring"), ("counterexamples", "fill by rescoring")} <= cells
    assert {("stereotypes", "next word"), ("counterfactual", "own label")} <= cells


def test_a_planted_lean_is_found_in_every_quick_cell_and_a_random_model_is_not_judged(simulated, tmp_path):
    """One seed of what `python simulations/ways.py` does with 200."""
    folder = tmp_path / "files"
    for place, cell in enumerate(simulated.cells(folder)):
        if cell.audit in ("sentiment_words", "counterfactual") or cell.way == "drawn answers":
            assert simulated.one(0, place=place, world="planted", folder=folder), cell.title
            assert not simulated.one(0, place=place, world="at random", folder=folder), cell.title
