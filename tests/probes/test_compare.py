"""What is compared of two models, and by which rule one is worse."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.compared import stigma_findings
from tests.report.samples import model_info

from clinometer.probes import PROBES
from clinometer.probes.kit.compare import Units, compare_models, matched, most_changed, places_of
from clinometer.probes.kit.verdicts import change_state
from clinometer.types import Finding


@pytest.fixture(scope="module")
def simulation():
    place = Path(__file__).parents[2] / "simulations" / "compare.py"
    spec = importlib.util.spec_from_file_location("simulated_comparisons", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def units(values, **more) -> Units:
    array = np.asarray(values, dtype=np.float64)
    return replace(
        Units(
            model="m",
            question="words",
            measure="lean",
            asked="fill",
            unit="word",
            names=tuple(f"w{i}" for i in range(len(array))),
            values=array[:, None] if array.ndim == 1 else array,
            more="leans more",
            less="leans less",
        ),
        **more,
    )


def pair(before, after, audit="stigma", **more):
    (found,) = compare_models({audit: ([before], [after])}, before="A", after="B", **more)
    return found.verdict


NOISE = np.random.default_rng(1).normal(0, 0.1, size=60)
MORE_NOISE = np.random.default_rng(2).normal(0, 0.1, size=60)


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (0.2, 0.5, "worse"), (-0.2, -0.5, "worse"), (0.2, -0.5, "worse"),
        (0.5, 0.2, "better"), (-0.5, 0.2, "better"), (0.3, 0.3, "no change found"), (0.0, 0.4, "worse"),
    ],
)  # fmt: skip
def test_worse_is_farther_from_even_handed_whichever_the_sign(before, after, state):
    verdict = pair(units(NOISE + before), units(MORE_NOISE + after))
    assert verdict.state == state
    assert verdict.estimate == pytest.approx(abs(verdict.lean_after) - abs(verdict.lean_before))
    assert verdict.change == pytest.approx(verdict.lean_after - verdict.lean_before)


def test_what_turned_round_is_told_though_it_is_as_far():
    verdict = pair(units(NOISE + 0.4), units(MORE_NOISE - 0.4))
    assert verdict.state == "no change found"
    assert verdict.sentence == "B leans the other way than A, about as far."


def test_a_measure_that_is_a_distance_has_one_direction():
    """Below 0 it is less than nothing: going there is better, however far."""
    assert pair(units(NOISE + 0.1, form="distance"), units(MORE_NOISE - 0.5, form="distance")).state == "better"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"gate": "it did not understand"}, "m: it did not understand"),
        ({"asked": "scale"}, "one was asked by fill, the other by scale; only the order may be compared"),
        ({"asked": "samples"}, "one was asked by fill, the other by samples"),
        ({"measure": "other"}, "one was measured by lean, the other by other"),
        ({"same": {"template": "b"}}, "another template (a; b)"),
        ({"variants": ("other",)}, "no template was asked of both"),
        ({"names": tuple(f"x{i}" for i in range(60))}, "no word was asked of both"),
    ],
)
def test_what_cannot_be_compared_is_not_told(change, why):
    before = units(NOISE, same={"template": "a"})
    verdict = pair(before, replace(units(MORE_NOISE + 5, same={"template": "a"}), **change))
    assert (verdict.state, verdict.reason) == ("cannot tell", why)
    assert math.isnan(verdict.estimate)
    assert len(verdict.sentence.split()) <= 25


def test_a_gate_on_the_first_side_counts_as_well():
    assert pair(replace(units(NOISE), gate="no"), units(MORE_NOISE + 5)).state == "cannot tell"


def test_few_shared_units_tell_nothing():
    after = replace(units(MORE_NOISE + 5), names=tuple(f"w{i}" if i < 4 else f"x{i}" for i in range(60)))
    verdict = pair(units(NOISE), after)
    assert (verdict.state, verdict.reason) == ("cannot tell", "only 4 words are shared")


def test_only_what_is_shared_counts():
    """Units and templates that one model lacks must not move the other."""
    before = units(np.stack([NOISE, NOISE + 50], axis=1), variants=("shared", "own"))
    after = units(np.concatenate([MORE_NOISE, [99.0] * 10]), variants=("shared",))
    verdict = pair(before, after)
    assert verdict.n == 60
    assert abs(verdict.lean_before) < 0.1
    assert abs(verdict.lean_after) < 0.1


def test_order_is_compared_where_values_are_not():
    (match,) = matched("stigma", [units(NOISE)], [replace(units(NOISE * 9 + 3), asked="answer")])
    assert match.ranks == 1.0
    (match,) = matched("stigma", [units(NOISE)], [replace(units(NOISE), asked="samples")])
    assert math.isnan(match.ranks)


def test_the_most_comparable_way_of_asking_is_taken():
    asked = [
        replace(units(NOISE), asked="next word"),
        replace(units(NOISE), model="m (blank)", asked="fill by rescoring"),
    ]
    (match,) = matched("counterexamples", [units(NOISE)], asked)
    assert match.after.asked == "fill by rescoring"
    assert not match.obstacle


def test_each_question_is_compared_once_where_it_is_measured_in_two_ways():
    both = [replace(units(NOISE), same={"words": "top"}), replace(units(NOISE), same={"words": "all"})]
    (match,) = matched("stigma", both, both)
    assert match.before.same == {"words": "top"}
    (match,) = matched("stigma", both, both[1:])
    assert match.before.same == {"words": "all"}


def test_q_is_corrected_over_all_measures_of_a_pair():
    shifted = [replace(units(NOISE), question=f"q{i}") for i in range(20)]
    after = [replace(units(MORE_NOISE + (0.06 if i == 0 else 0)), question=f"q{i}") for i in range(20)]
    alone = compare_models({"stigma": (shifted[:1], after[:1])}, before="A", after="B")[0].verdict
    among = compare_models({"stigma": (shifted, after)}, before="A", after="B")[0].verdict
    assert alone.q == alone.p
    assert among.q > alone.q
    assert among.detectable > alone.detectable


def test_shares_are_counted_in_the_sentence():
    before = units(
        np.array([0.6] * 9 + [0.3] * 51), form="share", more="calls more words", less="calls fewer words"
    )
    after = replace(before, values=np.array([0.6] * 55 + [0.3] * 5)[:, None])
    assert pair(before, after).sentence == "B calls more words than A (55 of 60, before 9)."
    assert pair(after, before).sentence == "B calls fewer words than A (9 of 60, before 55)."


def test_units_may_count_several_times():
    counts = tuple([3] + [1] * 59)
    values = np.array([1.0] + [0.0] * 59)
    verdict = pair(units(values, counts=counts), units(values, counts=counts))
    assert verdict.lean_before == pytest.approx(3 / 62)


def test_numbers_with_their_own_intervals_are_compared_by_them():
    def measured(estimate):
        row = Finding(labels={}, estimate=estimate, low=estimate - 0.1, high=estimate + 0.1, p=0.5)
        return units(np.zeros(3), form="measured", whole=row)

    assert pair(measured(0.1), measured(0.4), audit="counterfactual").state == "worse"
    assert pair(measured(0.1), measured(0.2), audit="counterfactual").state == "no change found"
    assert pair(measured(0.1), measured(math.nan), audit="counterfactual").state == "cannot tell"


def test_where_models_differ_most_comes_first():
    (found,) = compare_models(
        {"stigma": ([units(np.zeros(9))], [units(np.arange(9.0) - 6)])}, before="A", after="B"
    )
    assert [name for name, *_ in most_changed(found, most=2)] == ["w0", "w1"]
    assert len(list(most_changed(found))) == 9


def test_a_pair_that_is_alike_is_told_what_would_be_found():
    verdict = pair(units(NOISE + 0.3), units(MORE_NOISE + 0.3))
    assert 0.02 < verdict.detectable < 0.1
    assert math.isnan(pair(units(NOISE), units(NOISE)).detectable)  # the same model twice


def test_many_models_share_letters_where_they_cannot_be_told_apart():
    rng = np.random.default_rng(0)
    asked = {
        f"m{i}": units(NOISE + rng.normal(0, 0.1, 60) + lean) for i, lean in enumerate((0.0, 0.02, 0.9, -0.9))
    }
    asked["gated"] = replace(asked["m0"], gate="no")
    asked["other"] = replace(asked["m0"], asked="scale")
    places = {each.model: each for each in places_of("stigma", asked)}
    assert set(places["m0"].letters) == set(places["m1"].letters)
    assert not set(places["m0"].letters) & set(places["m2"].letters)
    assert set(places["m2"].letters) & set(places["m3"].letters)  # as far, on the other side
    assert places["gated"].letters == ()
    assert places["other"].letters == ("a′",)


def test_the_conditions_of_the_stigma_audit_are_compared():
    """Planted: 50 of 60 conditions become mostly negative, and the difference between the groups stays."""
    model = replace(model_info("m"), capabilities=("fill",))
    quiet, loud = (stigma_findings("m", level + 0.01 * NOISE) for level in (0.4, 0.6))
    sides = [list(PROBES["stigma"].compared(found, [model])) for found in (quiet, loud)]
    found = {c.verdict.measure: c.verdict for c in compare_models({"stigma": sides}, before="A", after="B")}
    more = found["stigmatized conditions with mostly negative words (negative attitude)"]
    assert (more.state, more.lean_before, more.lean_after) == ("worse", 0.0, 1.0)
    assert found["stigmatized and other conditions (negative attitude)"].state == "no change found"


@pytest.mark.parametrize("family", ["stigma", "counterexamples", "sentiment_words", "stereotypes"])
def test_error_rates_of_the_simulation(simulation, family):
    """docs/compare.md has those of 200 seeds; the counterfactual audit takes too long here."""
    assert simulation.called(family, range(20), lean=0.0) <= 4  # 5 % hardly ever exceed it
    change = simulation.stated(family, lean=0.0, pilots=5)
    assert simulation.called(family, range(20), lean=0.0, change=change) >= 10  # nor do 80 % fall below


def test_every_measure_of_a_question_is_compared_with_its_own_kind():
    """A chat model has words and a score on a scale for the same conditions."""
    both = [units(NOISE), replace(units(NOISE), measure="distance", asked="scale")]
    found = list(matched("stigma", both, both))
    assert [(each.before.measure, each.obstacle) for each in found] == [("lean", ""), ("distance", "")]


def test_a_change_from_nothing_needs_more_than_one_from_a_lean():
    """There the sum must be found, too."""
    from_nothing = pair(units(NOISE), units(MORE_NOISE)).detectable
    assert from_nothing > 1.1 * pair(units(NOISE + 1), units(MORE_NOISE + 1)).detectable


def test_an_obstacle_decides_whatever_the_numbers_are():
    row = Finding(labels={}, estimate=0.2, low=0.1, high=0.3, q=0.01)
    assert change_state(row) == "worse"
    assert change_state(row, obstacle="asked otherwise") == "cannot tell"
