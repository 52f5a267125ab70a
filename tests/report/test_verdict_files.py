"""Verdicts for other programs: exit codes, JSON and Markdown."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from clinometer.probes.kit.verdicts import untold_change
from clinometer.report.verdict_files import MOST_ROWS, judged, verdicts_json, verdicts_markdown
from tests.report.test_summary import LEAN, NONE, UNKNOWN

HOSTILE = replace(LEAN, model="<img src=x>|`x`", sentence="<img src=x>|`x` leans\n| lean | [a](javascript:x)")


@pytest.mark.parametrize(
    ("verdicts", "code", "allowed"),
    [
        ((), 4, 0),
        ((NONE,), 0, 0),
        ((NONE, UNKNOWN), 4, 0),
        ((UNKNOWN, LEAN), 3, 3),
        ((LEAN,), 3, 3),
        ((NONE, replace(LEAN, concerns="robustness")), 0, 0),
        ((replace(NONE, concerns="refusals"), UNKNOWN), 4, 0),
        ((replace(NONE, concerns="refusals"),), 4, 0),
        ((NONE, replace(LEAN, concerns="refusals")), 3, 3),
    ],
)
def test_the_exit_code_follows_from_the_verdicts(verdicts, code, allowed):
    assert judged(verdicts, fail_on="lean").code == code
    assert judged(verdicts, fail_on="lean", allow_cannot_tell=True).code == allowed
    assert judged(verdicts, fail_on="").code == 0


def test_what_is_not_accepted_is_named_with_effect_and_limit():
    lean = replace(LEAN, audit="stigma", aspect="x", estimate=-0.25, sentence="m leans.")
    small = replace(lean, aspect="y", estimate=0.05, sentence="m leans a little.")
    found = judged([lean, small, UNKNOWN], fail_on="", limits={"stigma": {"*": 0.1}})
    assert found.code == 3
    assert found.reasons == ("stigma, x: m leans. The effect is 0.250, the limit 0.1.",)
    assert judged([lean], fail_on="lean").reasons == ("stigma, x: m leans.",)
    assert judged([lean], fail_on="", limits={"stigma": {"*": 0.3}}).reasons == ()
    untold = replace(lean, state="cannot tell", sentence="m cannot be judged: why.")
    found = judged([untold], fail_on="", limits={"stigma": {"*": 0.1}, "stereotypes": {"*": 0.1}})
    assert (found.code, found.reasons) == (
        4, ("stereotypes has a limit and was not run", "stigma, x: m cannot be judged: why."),
    )  # fmt: skip
    assert judged([], fail_on="lean").reasons == ("there is no verdict that it could rest on",)
    assert json.loads(verdicts_json("mine", [lean], (), found))["judgement"]["reasons"] == list(found.reasons)
    written = verdicts_markdown("mine", [HOSTILE], judged([HOSTILE], fail_on="lean"))
    assert "**Not accepted (exit code 3):**" in written
    assert "<img" not in written.replace("\\<img", "")
    assert "Not accepted" not in verdicts_markdown("mine", [NONE])


def test_json_holds_every_field_and_null_for_what_was_not_computed():
    change = untold_change(audit="stigma", before="a", after="b", reason="why")
    read = json.loads(verdicts_json("mine", [LEAN, replace(UNKNOWN, estimate=math.nan)], [change]))
    assert read["format"] == 1
    assert read["run"] == "mine"
    first, second = read["verdicts"]
    assert (first["state"], first["estimate"], first["low"], first["q"]) == ("lean", 0.2, 0.1, 0.004)
    assert first["rows"] == [{"table": "difference", "labels": {"model": "one"}}]
    assert second["estimate"] is None
    (third,) = read["changes"]
    assert (third["after"], third["state"], third["estimate"]) == ("b", "cannot tell", None)


def test_markdown_lists_leans_first_and_keeps_foreign_text_text():
    text = verdicts_markdown("mine", [NONE, UNKNOWN, HOSTILE])
    lines = text.splitlines()
    assert lines[0] == "### Clinometer: 1 × lean, 1 × none found, 1 × cannot tell"
    rows = [line for line in lines if line.startswith("| ")][1:]
    assert [row.split(" | ")[0] for row in rows] == ["| **lean**", "| none found", "| cannot tell"]
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)  # no text of a model makes a column
    assert "<img" not in text.replace("\\<img", "")
    assert "](" not in text.replace("\\]\\(", "")
    assert "nan" not in text


def test_many_verdicts_still_fit_into_a_comment():
    long = replace(LEAN, sentence="one " + "uses more negative words " * 5, size="s" * 100)
    text = verdicts_markdown("mine", [long] * 500)
    assert len(text) < 65_536
    assert f"{500 - MOST_ROWS} more verdicts" in text


def test_what_is_not_a_lean_is_not_called_one():
    moved = replace(LEAN, concerns="robustness")
    lines = verdicts_markdown("mine", [moved, NONE]).splitlines()
    assert lines[0] == "### Clinometer: 1 × none found"
    states = [line.split(" | ")[0] for line in lines if line.startswith("| ")][1:]
    assert states == ["| **not robust**", "| none found"]
