"""The rule of a conclusion, clause by clause, and what of a verdict survives the disk."""

import dataclasses
import math

import pytest

from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND, Said, certainty, conclude, state_of
from clinometer.probes.kit.asking import gate_of
from clinometer.probes.kit.verdicts import untold_change
from clinometer.stats import detectable_from_interval
from clinometer.store import RunFolder, compare_findings
from clinometer.store.findings import findings_digest
from clinometer.types import Finding, Findings, FindingTable

ROW = Finding(labels={"model": "m", "k": 3}, estimate=0.2, low=0.1, high=0.3, p=0.001, q=0.01, n=12)
SAID = Said(above="leans up", below="leans down", none="shows no lean")


def verdict(row=ROW, **others):
    given = {"audit": "a", "model": "m", "aspect": "x", "table": "t", "said": SAID, **others}
    return conclude(row, **given)


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, LEAN),
        ({"estimate": -0.2, "low": -0.3, "high": -0.1}, LEAN),
        ({"q": 0.05}, NONE_FOUND),  # below 0.05, not at it
        ({"q": 0.0499}, LEAN),
        ({"low": 0.0}, NONE_FOUND),  # an interval that touches 0 holds it
        ({"low": -0.1}, NONE_FOUND),
        ({"estimate": math.nan}, CANNOT_TELL),
        ({"low": math.nan}, CANNOT_TELL),
        ({"high": math.nan}, CANNOT_TELL),
        ({"q": math.nan}, CANNOT_TELL),
    ],
)
def test_every_clause_decides(change, state):
    row = dataclasses.replace(ROW, **change)
    assert state_of(row) == verdict(row).state == state
    # a model that did not understand the question is never called anything else
    assert state_of(row, gate="it knows no words") == CANNOT_TELL


def test_the_sentence_follows_the_state():
    assert verdict().sentence == "m leans up."
    assert verdict(dataclasses.replace(ROW, estimate=-0.2, low=-0.3, high=-0.1)).sentence == "m leans down."
    assert verdict(dataclasses.replace(ROW, low=-0.1, q=0.5)).sentence == "m shows no lean."
    unable = verdict(gate="rated words hold 0.00 of the probability", size="a tenth of the range")
    assert unable.sentence == "m cannot be judged: rated words hold 0.00 of the probability."
    assert (unable.reason, unable.size) == ("rated words hold 0.00 of the probability", "")
    assert verdict(dataclasses.replace(ROW, estimate=math.nan)).reason == "nothing was measured"


def test_no_lean_may_lie_elsewhere_than_at_0():
    row = dataclasses.replace(ROW, estimate=0.52, low=0.45, high=0.6)
    assert verdict(row).state == LEAN
    assert verdict(row, null=0.5).state == NONE_FOUND
    assert verdict(row, null=0.5).estimate == 0.52  # as the table has it
    below = dataclasses.replace(ROW, estimate=0.4, low=0.3, high=0.45)
    assert verdict(below, null=0.5).sentence == "m leans down."


def test_it_rests_on_a_row():
    (row,) = verdict().rows
    assert (row.table, row.labels) == ("t", {"model": "m", "k": 3})


def test_the_detectable_effect_is_found_four_times_in_five():
    """One of five normal means is off 0 by the stated effect, and Benjamini and Hochberg correct."""
    import numpy as np
    from scipy import stats

    from clinometer.stats import benjamini_hochberg

    rng = np.random.default_rng(0)
    effect = detectable_from_interval(-1.96, 1.96, tests=5)
    found = 0
    for _ in range(2000):
        z = rng.standard_normal(5)
        z[0] += effect
        found += benjamini_hochberg(2 * stats.norm.sf(np.abs(z)))[0] < 0.05
    assert 0.78 < found / 2000 < 0.86  # a little more than stated: other small p help in the correction
    assert math.isnan(detectable_from_interval(math.nan, 1.0))
    assert math.isnan(detectable_from_interval(0.5, 0.5))


def findings(*verdicts, rows=(ROW,)):
    table = FindingTable(name="t", title="T", caption="", rows=rows)
    return Findings(probe="a", tables=(table,), figures=(), verdicts=verdicts)


def test_verdicts_survive_the_disk_and_are_compared(tmp_path):
    run = RunFolder.create(tmp_path / "run", spec="", provenance={}, models=[])
    unable = verdict(dataclasses.replace(ROW, p=math.nan, q=math.nan), aspect="y", gate="why")
    run.write_findings(findings(verdict(), unable))
    (read,) = run.read_findings()
    assert repr(read.verdicts[0]) == repr(verdict())  # with its NaN
    assert math.isnan(read.verdicts[1].q)
    same = compare_findings(read, findings(verdict(), unable))
    assert same.numbers == same.wording == ()
    other = compare_findings(read, findings(dataclasses.replace(verdict(), state=NONE_FOUND), unable))
    assert other.numbers == ("the verdict on m, x: state 'lean' is stored, 'none found' follows",)
    reworded = compare_findings(read, findings(dataclasses.replace(verdict(), sentence="else"), unable))
    assert (reworded.numbers, reworded.wording) == ((), ("verdicts",))


def test_what_training_changed_survives_the_disk_and_is_compared(tmp_path):
    run = RunFolder.create(tmp_path / "run", spec="", provenance={}, models=[])
    change = dataclasses.replace(
        untold_change(audit="a", before="m", after="t", reason="why"), trainings=(0.1, 0.2), p=0.5
    )
    given = dataclasses.replace(findings(verdict()), changes=(change,))
    run.write_findings(given)
    (read,) = run.read_findings()
    assert repr(read.changes) == repr((change,))  # with its NaN
    assert findings_digest([read]) != findings_digest([findings(verdict())])
    assert compare_findings(read, given).numbers == ()
    other = dataclasses.replace(given, changes=(dataclasses.replace(change, state="worse", sentence="else"),))
    differing = compare_findings(read, other)
    assert differing.numbers == (
        "the verdict on t, m, every measure: state 'cannot tell' is stored, 'worse' follows",
    )
    assert differing.wording == ("changes",)


@pytest.mark.parametrize(("low", "q", "told"), [(0.1, 0.107, True), (-0.1, 0.107, False), (0.1, 0.01, False)])
def test_an_interval_without_0_beside_nothing_found_is_explained(low, q, told):
    row = Finding(labels={}, estimate=0.2, low=low, high=0.3, p=0.01, q=q)
    said = verdict(row)
    assert said.sentence.endswith(", once all tests are counted.") == told
    assert ("interval of this one test" in certainty(row)) == told
    assert ("q over all tests = 0.107" in certainty(row)) == told
    below = verdict(dataclasses.replace(row, estimate=-0.2, low=-0.3, high=-low))
    assert below.sentence.endswith(", once all tests are counted.") == told
    # one-sided, so that no correction is the reason
    alone = verdict(dataclasses.replace(row, estimate=-0.2, low=-0.3, high=-low, p=0.98, q=0.98))
    assert alone.sentence.endswith(", though the interval leaves out 0.") == (low > 0)
    assert "once all tests" not in alone.sentence


@pytest.mark.parametrize(("low", "q", "told"), [(-0.1, 0.01, True), (-0.1, 0.06, False), (0.1, 0.01, False)])
def test_a_small_q_beside_nothing_found_is_explained(low, q, told):
    """p and interval may ask two things: whether a condition is far from its kind, whether its prompts agree."""
    row = Finding(labels={}, estimate=0.2, low=low, high=0.3, p=q, q=q)
    for said in (verdict(row), verdict(dataclasses.replace(row, estimate=-0.2, low=-0.3, high=-low))):
        assert said.sentence.endswith(", because the interval holds 0.") == told


@pytest.mark.parametrize(("detectable", "state"), [(0.49, NONE_FOUND), (0.51, CANNOT_TELL)])
def test_what_is_blind_to_half_of_the_largest_lean_does_not_find_none(detectable, state):
    row = Finding(labels={}, estimate=0.1, low=-0.1, high=0.3, p=0.3, q=0.3)
    about = {"audit": "a", "model": "m", "aspect": "b", "table": "t", "said": SAID, "detectable": detectable}
    said = conclude(row, **about, full=1.0)
    assert said.state == state
    assert ("only a lean of 0.51 or more would have been found, of 1 possible" in said.sentence) == (
        state == CANNOT_TELL
    )
    assert conclude(row, **about).state == NONE_FOUND  # of what has no largest value, nothing is known
    found = dataclasses.replace(row, low=0.05, q=0.01)
    assert conclude(found, **about, full=1.0).state == LEAN


def test_only_where_the_correction_is_the_reason_an_interval_is_called_that_of_one_test():
    row = Finding(labels={}, estimate=0.2, low=0.1, high=0.3, p=0.01, q=0.107)
    assert "of this one test" in certainty(row)
    # its own test finds nothing either, or the interval holds the value without a lean, here one half
    assert "of this one test" not in certainty(dataclasses.replace(row, p=0.42, q=0.6))
    half = dataclasses.replace(row, estimate=0.67, low=0.39, high=0.86)
    assert "of this one test" not in certainty(half, null=0.5)
    assert "of this one test" in certainty(dataclasses.replace(half, low=0.52), null=0.5)


def test_a_lean_too_small_to_be_found_hinders_no_comparison():
    row = Finding(labels={}, estimate=0.1, low=-0.1, high=0.3, p=0.3, q=0.3)
    about = {"audit": "a", "model": "m", "aspect": "b", "table": "t", "said": SAID}
    blind = conclude(row, **about, detectable=0.9, full=1.0)
    deaf = conclude(row, **about, gate="it did not understand")
    assert (blind.state, deaf.state) == (CANNOT_TELL, CANNOT_TELL)
    for verdict_of, reason in ((blind, ""), (deaf, "it did not understand")):
        found = Findings(probe="a", tables=(), figures=(), verdicts=(verdict_of,))
        assert gate_of(found, "m", "b") == reason
