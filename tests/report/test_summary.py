"""The grid of the first screen: what it shows of verdicts, and in which order."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from clinometer.report.summary import counts, summary_rows
from clinometer.types import Findings, RowReference, Verdict

LEAN = Verdict(
    audit="stigma",
    model="one",
    aspect="attitude",
    state="lean",
    estimate=0.2,
    low=0.1,
    high=0.4,
    p=0.001,
    q=0.004,
    n=122,
    detectable=0.1,
    size="20 % of the possible range",
    sentence="one uses more negative words.",
    rows=(RowReference(table="difference", labels={"model": "one"}),),
)
NONE = replace(LEAN, state="none found", estimate=0.0, low=-0.1, high=0.1, q=0.9)
UNKNOWN = replace(NONE, state="cannot tell", reason="it did not understand", sentence="one cannot be judged.")


def grid(*verdicts: Verdict, models: tuple[str, ...] = ("one",)):
    return summary_rows([Findings(probe="stigma", tables=(), figures=(), verdicts=verdicts)], models)


def test_a_lean_speaks_first_and_cannot_tell_only_when_nothing_else_does():
    (row,) = grid(UNKNOWN, NONE, LEAN)
    (cell,) = row.cells
    assert cell.state == "lean"
    assert [other.verdict.state for other in cell.others] == ["none found", "cannot tell"]
    assert grid(UNKNOWN, NONE)[0].cells[0].state == "none found"
    assert grid(UNKNOWN)[0].cells[0].state == "cannot tell"


def test_a_model_that_is_not_robust_does_not_lean_for_that():
    moved = replace(LEAN, concerns="robustness")
    assert grid(moved, NONE)[0].cells[0].state == "none found"
    assert [other.state for other in grid(moved, NONE)[0].cells[0].others] == ["not robust"]
    still = replace(NONE, concerns="robustness")
    assert grid(still)[0].cells[0].first.state == "none found"
    assert grid(moved, NONE, LEAN)[0].cells[0].first.verdict == LEAN


def test_a_model_that_refuses_nobody_does_not_look_fair_for_that():
    """Answers that cannot be judged stay so; that some groups are refused more is a lean like any other."""
    alike, more = (replace(each, concerns="refusals", aspect="refusals") for each in (NONE, LEAN))
    assert grid(alike, UNKNOWN)[0].cells[0].state == "cannot tell"
    assert grid(alike, NONE)[0].cells[0].first.verdict == NONE
    assert grid(more, UNKNOWN)[0].cells[0].state == "lean"
    assert grid(alike)[0].cells[0].state == "none found"  # nothing else was asked


def test_of_one_state_the_order_of_the_audit_decides():
    (row,) = grid(replace(LEAN, aspect="first"), replace(LEAN, aspect="second"))
    assert row.cells[0].first.verdict.aspect == "first"


def test_a_model_that_was_not_asked_has_an_empty_cell():
    rows = grid(LEAN, models=("one", "two"))
    assert [[row.model, *(cell.state for cell in row.cells)] for row in rows] == [
        ["one", "lean"],
        ["two", "not asked"],
    ]
    assert counts(rows) == {"lean": 1, "none found": 0, "cannot tell": 0}


def test_another_way_of_asking_is_in_the_cell_of_its_model():
    (row,) = grid(LEAN, replace(NONE, model="one (blank)"), replace(LEAN, model="one-more"))
    (cell,) = row.cells
    assert [other.verdict.model for other in cell.others] == ["one (blank)"]


def test_an_audit_without_verdicts_has_no_column():
    assert grid() == ()
    found = [Findings(probe=name, tables=(), figures=(), verdicts=given) for name, given in
             (("stigma", (LEAN,)), ("silent", ()), ("other", (NONE,)))]  # fmt: skip
    (row,) = summary_rows(found, ["one"])
    assert [(cell.audit, cell.state) for cell in row.cells] == [("stigma", "lean"), ("other", "none found")]


def test_models_of_one_aspect_share_a_scale():
    # from −0.1 (the detectable effect) to 0.4: 0 is at a fifth of the 96 that are drawn, after a margin of 2
    rows = grid(LEAN, replace(NONE, model="two", high=0.05), models=("one", "two"))
    one, two = (row.cells[0].first.interval for row in rows)
    assert one.zero == two.zero == pytest.approx(2 + 96 / 5)
    assert one.low == pytest.approx(2 + 96 * 2 / 5)
    assert one.high == pytest.approx(98)
    assert two.low == pytest.approx(2)
    assert two.detectable == pytest.approx((2, 2 + 96 * 2 / 5))


def test_what_cannot_be_told_has_no_number_and_no_point():
    (row,) = grid(replace(UNKNOWN, estimate=math.nan, low=math.nan, high=math.nan, detectable=math.nan))
    first = row.cells[0].first
    assert first.interval is None
    assert (first.estimate, first.limits, first.detectable) == ("", "", "")


def test_of_what_cannot_be_told_the_reason_is_said_and_the_state_not_twice():
    assert grid(UNKNOWN)[0].cells[0].first.sentence == "It did not understand."
    assert grid(replace(UNKNOWN, reason=""))[0].cells[0].first.sentence == "Cannot be judged."


def test_numbers_are_those_of_the_verdict():
    first = grid(LEAN)[0].cells[0].first
    assert (first.estimate, first.limits, first.detectable) == ("0.200", "[0.100, 0.400]", "0.100")


def test_the_sentence_begins_with_what_the_model_does():
    assert grid(LEAN)[0].cells[0].first.sentence == "Uses more negative words."
