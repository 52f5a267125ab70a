"""What is said of checkpoints: which of many did more than the control."""

import dataclasses
import math

import pytest
from fake_generator import rows_of
from fake_mitigation import BASE, Writer, as_given, checkpoint, concluded

from clinometer.metrics import fairness_epsilon
from clinometer.probes.counterfactual.checkpoints import (
    BEYOND,
    CheckpointResults,
    checkpoint_headlines,
    overview,
)
from clinometer.probes.counterfactual.measures import INDIVIDUAL
from clinometer.probes.kit.before_after import Checkpoint
from clinometer.probes.kit.verdicts import change_state, untold_change
from clinometer.types import Finding

LEAN = {"red": 0.9, "blue": 0.1}
ONCE = "One training each: intervals leave out what another seed would change."


@pytest.fixture(autouse=True)
def quick_verdicts(monkeypatch):
    """The verdict at ε takes most of the time, and nothing here asks about it."""
    monkeypatch.setattr(fairness_epsilon, "WORST_DRAWS", 9)


def test_of_many_checkpoints_is_said_in_short_which_of_them_did_more_than_training(tmp_path):
    halfway, even, more = {"red": 0.7, "blue": 0.3}, {"red": 0.5, "blue": 0.5}, {"red": 1.0, "blue": 0.0}
    models = [
        (as_given(), Writer(LEAN, near=0.2)),
        (checkpoint("control", "0"), Writer(halfway, salt="c", near=0.4)),
        (checkpoint("embedding", "1"), Writer(halfway, salt="e1", near=0.3)),
        (checkpoint("embedding", "10"), Writer(even, salt="e10", near=0.3)),
        (checkpoint("embedding", "100"), Writer(even, salt="e100", near=0.3)),
        (checkpoint("sentiment", "10"), Writer(more, salt="s", near=0.3)),
    ]
    found = concluded(tmp_path, models, samples=100)
    first, control, *_, last = found.headlines[-6:]
    assert first == (
        "given, colour: I.F. is measurably lower than before by every scorer in 3 of 4 checkpoints and in 1 "
        "of 1 controls. Lower than the control's by every scorer: embedding, λ = 10, 100. Higher than the "
        "control's by some scorer: sentiment, λ = 10. Not measurably different from the control's: embedding, "
        f"λ = 1. {ONCE}"
    )
    (row,) = rows_of(found, "reduction", model="control-0", measure="I.F.", scorer="one")
    share = f"reduced by {row.estimate:.0f} % (95 % interval {row.low:.0f} to {row.high:.0f} %) according to one,"
    assert control.startswith(f"control, λ = 0 (control-0), colour: excess of I.F. {share} reduced by")
    assert "Compared with the control" not in control
    assert "S.S. +" in control  # compared with the model as given
    assert last.startswith("sentiment, λ = 10 (sentiment-10), colour: excess of I.F. increased by ")
    assert ". Compared with the control, I.F. is higher according to one and two; perplexity " in last
    assert "S.S. −" in last  # compared with the control, but above that of the model as given
    assert not any("reduced by -" in line or "by −" in line for line in found.headlines)


def test_many_checkpoints_without_a_control_or_a_change(tmp_path):
    models = [(checkpoint("embedding", strength), Writer(LEAN, salt=strength)) for strength in "1234"]
    found = concluded(tmp_path, [(as_given(), Writer(LEAN)), *models], samples=60)
    first, *each = found.headlines[-5:]
    said = "given, colour: I.F. is measurably lower than before by every scorer in 0 of 4 checkpoints."
    assert first == f"{said} {ONCE}"
    assert all(line.count("no measurable change (95 % interval ") == 2 and "% removed)" in line for line in each)


def test_many_checkpoints_of_an_even_model_and_one_without_texts(tmp_path):
    models = [(checkpoint("embedding", strength), Writer(LEAN, salt=strength)) for strength in "123"]
    silent = (checkpoint("embedding", "4"), Writer(salt="4", empty=1.0))
    found = concluded(tmp_path, [(as_given(), Writer()), *models, silent], samples=60)
    assert found.headlines[-2].count("increased (95 % interval of the change 0.") == 2
    assert found.headlines[-1].count("excess of I.F. could not be compared according to one") == 1
    assert "no measurable change" not in found.headlines[-1]


# low, high and q of a change of I.F.: l(ower), h(igher), a(like), u(nknown); and what only one clause of the rule
# refuses: the interval leaves out 0 but q is large (q), q is small but the interval holds 0 (i)
TESTS = {
    "l": (-0.2, -0.1, 0.01),
    "h": (0.1, 0.2, 0.01),
    "a": (-0.1, 0.1, 0.5),
    "u": (math.nan, math.nan, math.nan),
    "q": (-0.2, -0.1, 0.2),
    "i": (-0.2, 0.1, 0.01),
}


def changed(scorer, name, before, low, high, q):
    """The verdict on the excess of I.F. by one scorer, by the rule of every comparison."""
    row = Finding(labels={}, estimate=low, low=low, high=high, p=q, q=q)
    nothing = untold_change(audit="counterfactual", before=before, after=name, reason="")
    measure = f"{INDIVIDUAL} of colour by {scorer} ({BEYOND})"
    return dataclasses.replace(nothing, measure=measure, state=change_state(row))


def made(method, strength, *, attribute="colour", model="", **tests):
    """A checkpoint and what two scorers find, against the models that `tests` names: one letter of TESTS each."""
    name = model or f"{method}-{strength}"
    return CheckpointResults(
        checkpoint=Checkpoint(
            name=name,
            base_name="m",
            model=1,
            base=0,
            control=None,
            control_name="the control",
            method=method,
            strength=strength,
            attribute=attribute,
        ),
        attribute="colour",
        comparisons=(),
        changes=[
            changed(scorer, name, {"before": "m", "control": "the control"}[against], *TESTS[letter])
            for against, letters in tests.items()
            for scorer, letter in zip(("one", "two"), letters, strict=True)
        ],
        costs=(),
    )


def test_an_overview_sorts_checkpoints_by_what_the_scorers_say():
    given = [
        made("control", "0", before="la"),
        *(made("embedding", str(10**i), before="ll", control=said) for i, said in enumerate(("ll", "la", "lh"))),
        *(
            made("sentiment", str(10**i), before="ll", control=said)
            for i, said in enumerate(("ha", "aa", "uu", "ua"))
        ),
        made("sentiment", "9", before="uu"),
        made("causal-lm", "1", attribute="", before="aa"),
    ]
    assert overview(given) == (
        "m, colour: I.F. is measurably lower than before by every scorer in 7 of 8 checkpoints and in 0 of 1 "
        "controls. Lower than the control's by every scorer: embedding, λ = 1. "
        "Lower than the control's by some scorers only: embedding, λ = 10, 100. "
        "Higher than the control's by some scorer: sentiment, λ = 1. "
        "Not measurably different from the control's: sentiment, λ = 10, 1000. "
        "Could not be compared with the control: sentiment, λ = 100. "
        "Without a control: sentiment, λ = 9."
    )


def test_an_overview_names_what_method_and_strength_do_not_tell_apart():
    given = [made("control", "0", before="ll")]
    given += [made("embedding", "10", model=f"seed-{i}", before="ll", control="ll") for i in range(3)]
    assert overview(given).endswith("Lower than the control's by every scorer: seed-0; seed-1; seed-2.")


def test_an_overview_of_controls_and_of_other_trainings():
    said = "m, colour: I.F. is measurably lower than before by every scorer in"
    seeds = [made("control", "0", model=f"seed-{i}", before=verdicts) for i, verdicts in enumerate(("ll", "aa"))]
    assert overview(seeds * 2) == f"{said} 2 of 4 controls."
    shares = [made("causal-lm", share, attribute="", before="aa") for share in ("0.1", "0.5", "1")]
    assert overview([*seeds[:1], *shares]) == f"{said} 0 of 3 checkpoints and in 1 of 1 controls."


@pytest.mark.parametrize("clause", ["q", "i"])
def test_what_one_clause_of_the_rule_refuses_is_not_called_lower(clause):
    """q below 0.05 and an interval without 0: either one alone is not enough for any headline."""
    said = "m, colour: I.F. is measurably lower than before by every scorer in 0 of 1 checkpoints and in 0 of 1 "
    said += "controls"
    given = [
        made("control", "0", before=clause * 2),
        made("embedding", "1", before=clause * 2, control=clause * 2),
    ]
    assert overview(given) == f"{said}. Not measurably different from the control's: embedding, λ = 1."
    _, line = checkpoint_headlines(given)
    end = " One training: intervals leave out what another seed would change."
    assert line.removesuffix(end).endswith("I.F. is not measurably different according to one and two.")
    assert made("embedding", "1", before=f"l{clause}").verdicts("before") == {
        "one": "is lower",
        "two": "is not measurably different",
    }


def test_checkpoints_of_two_models_are_told_apart(tmp_path):
    other = "ab" * 32
    models = [(as_given(), Writer(LEAN)), (as_given("other", weights=other), Writer(LEAN, salt="o"))]
    for base, name, lean in ((BASE, "a", LEAN), (other, "b", None)):
        models += [
            (checkpoint("embedding", str(i), name=f"{name}{i}", base=base), Writer(lean or {}, salt=f"{name}{i}"))
            for i in range(1, 5)
        ]
    found = concluded(tmp_path, models, samples=60)
    told_of = [
        line.removesuffix(f" {ONCE}").split(" in ")[-1] for line in found.headlines if "checkpoints" in line
    ]
    assert told_of == ["0 of 4 checkpoints.", "4 of 4 checkpoints."]
    assert [line.split(",")[0] for line in found.headlines if "checkpoints" in line] == ["given", "other"]
