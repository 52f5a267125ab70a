"""What is compared of two models, and by which rule one is worse."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.compared import stigma_findings
from tests.report.samples import model_info

from clinometer.probes import PROBES
from clinometer.probes.kit.asking import BEFORE, Units, matched
from clinometer.probes.kit.compare import Compared, compare_all, compare_models, most_changed, places_of
from clinometer.probes.kit.verdicts import BLUNT, change_state
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


def test_q_is_corrected_over_the_measures_of_an_audit():
    shifted = [replace(units(NOISE), question=f"q{i}") for i in range(20)]
    after = [replace(units(MORE_NOISE + (0.06 if i == 0 else 0)), question=f"q{i}") for i in range(20)]
    alone = compare_models({"stigma": (shifted[:1], after[:1])}, before="A", after="B")[0].verdict
    among = compare_models({"stigma": (shifted, after)}, before="A", after="B")[0].verdict
    assert alone.q == alone.p
    assert among.q > alone.q
    assert among.detectable > alone.detectable
    # another audit changes nothing
    audits = {"stigma": (shifted[:1], after[:1]), "counterexamples": (shifted, after)}
    assert compare_models(audits, before="A", after="B")[0].verdict == alone


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


@pytest.mark.parametrize(("full", "state"), [(1.0, "no change found"), (0.05, "cannot tell")])
def test_no_change_means_nothing_where_only_more_than_half_of_what_is_possible_would_be_found(full, state):
    verdict = pair(units(NOISE + 0.05, full=full), units(MORE_NOISE + 0.05, full=full))
    assert (verdict.state, verdict.detectable > BLUNT * full) == (state, state == "cannot tell")
    if state == "cannot tell":
        said = f"only a change of {verdict.detectable:.2f} or more would have been found, of 0.05 possible"
        assert verdict.reason == said
        assert len(verdict.sentence.split()) <= 25


def test_the_limit_of_what_is_blunt_is_a_limit_and_what_was_found_stays_found():
    quiet = pair(units(NOISE + 0.05), units(MORE_NOISE + 0.05))
    at = quiet.detectable / BLUNT
    for full, state in ((at * 1.001, "no change found"), (at * 0.999, "cannot tell")):
        assert pair(units(NOISE + 0.05, full=full), units(MORE_NOISE + 0.05, full=full)).state == state
    assert pair(units(NOISE + 0.2, full=0.01), units(MORE_NOISE + 0.5, full=0.01)).state == "worse"
    turned = pair(units(NOISE + 0.4, full=0.01), units(MORE_NOISE - 0.4, full=0.01))
    assert turned.sentence == "B leans the other way than A, about as far."


def own(estimate, **more):
    return Finding(labels={"before": 0.1, "after": 0.1 + estimate}, estimate=estimate, **more)


def trained(before, *after, role=BEFORE):
    sides = {"stigma": [([before], [each]) for each in after]}
    ((found,),) = compare_all([Compared(before="A", after="B", audits=sides, role=role)])
    return found.verdict


def test_the_change_that_the_audit_measured_itself_is_taken_for_its_own_pairs():
    change = float(np.mean(MORE_NOISE + 0.5 - NOISE - 0.3))
    row = own(change, low=change - 0.05, high=change + 0.07, p=0.001)
    after = units(MORE_NOISE + 0.5, changes={BEFORE: row})
    verdict = trained(units(NOISE + 0.3), after)
    assert (verdict.change_low, verdict.change_high) == (row.low, row.high)
    assert verdict.state == "worse"
    assert trained(units(NOISE + 0.3), after, role="").change_low != row.low
    # what is not the same number is not taken
    other = units(MORE_NOISE + 0.5, changes={BEFORE: replace(row, estimate=0.4)})
    assert trained(units(NOISE + 0.3), other).change == pytest.approx(change)
    # nor does it decide alone: the sum of both leans must be told from 0, too
    row = own(float(np.mean(MORE_NOISE + 0.01 - NOISE)), low=0.01, high=0.02, p=0.001)
    near = units(MORE_NOISE + 0.01, changes={BEFORE: row})
    assert trained(units(NOISE), near).state == "no change found"


def test_texts_of_one_run_are_paired():
    def measured(estimate, **more):
        whole = Finding(labels={}, estimate=estimate, low=estimate - 0.1, high=estimate + 0.1, p=0.5)
        return units(np.zeros(3), form="measured", whole=whole, **more)

    paired = measured(0.15, changes={BEFORE: own(0.05, low=0.03, high=0.07, p=0.001)})
    assert trained(measured(0.1), measured(0.15)).state == "no change found"
    assert trained(measured(0.1), paired).state == "worse"
    assert trained(measured(0.1), replace(paired, changes={BEFORE: own(0.05)})).state == "cannot tell"


def test_one_lean_has_one_interval():
    """The page of a run and the table of many models show the same."""
    lean = float(np.mean(NOISE))
    row = Finding(labels={}, estimate=lean, low=lean - 0.123, high=lean + 0.1)
    asked = {
        "a": units(NOISE, whole=row),
        "b": units(MORE_NOISE),
        "c": units(NOISE, whole=replace(row, estimate=9.0)),
    }
    places = {each.model: each for each in places_of("stigma", asked)}
    assert (places["a"].low, places["a"].high) == (row.low, row.high)
    assert places["c"].low == pytest.approx(places["a"].lean - 0.025, abs=0.01)


def several(leans, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    return [units(NOISE + lean + noise * rng.normal(size=60), full=9.0) for lean in leans]


def test_trainings_that_disagree_make_the_change_unsure():
    alike, apart = several((0.3, 0.31, 0.29)), several((0.0, 0.3, 0.6))
    sure, unsure = (trained(units(NOISE + 0.1, full=9.0), *each) for each in (alike, apart))
    assert (sure.state, unsure.state) == ("worse", "no change found")
    assert sure.estimate == pytest.approx(unsure.estimate, abs=0.01)
    assert unsure.high - unsure.low > 3 * (sure.high - sure.low)
    assert unsure.trainings == pytest.approx((0.0, 0.3, 0.6), abs=0.03)
    assert unsure.detectable > 3 * sure.detectable
    assert trained(units(NOISE + 0.1), apart[2]).state == "worse"  # one of them alone looks sure


def test_what_would_be_found_after_few_trainings_has_their_few_degrees_of_freedom():
    """By hand: one arm and measure, so τ² = s² with 2 degrees of freedom; e² = u² + s²/3, ν = 2 (e² / (s²/3))²."""
    before = units(NOISE + 0.1, form="distance", full=9.0)
    after = [replace(each, form="distance") for each in several((0.25, 0.3, 0.35))]
    verdict = trained(before, *after)
    mean = replace(after[0], values=np.mean([each.values for each in after], axis=0))
    alone = trained(before, mean)
    unit_error = (alone.high - alone.low) / (2 * stats.norm.ppf(0.975))
    noise = np.var(verdict.training_changes, ddof=1) / 3
    error = math.sqrt(unit_error**2 + noise)
    student = stats.t(2 * (error**2 / noise) ** 2)
    assert verdict.high - verdict.low == pytest.approx(2 * student.ppf(0.975) * error, rel=1e-3)
    assert verdict.detectable == pytest.approx((student.ppf(0.975) + student.ppf(0.9)) * error, rel=0.05)
    assert verdict.detectable > 1.1 * (stats.norm.ppf(0.975) + stats.norm.ppf(0.9)) * error


def test_what_other_arms_say_of_training_noise_counts():
    """Two trainings that happen to agree are not sure where those of eight other arms do not."""
    lucky = several((0.3, 0.3))
    others = [several((0.3 + 0.2 * sign, 0.3 - 0.2 * sign), seed=n) for n, sign in enumerate((1, -1) * 4)]

    def verdict(*arms):
        given = [
            Compared(
                before="A", after=f"B{n}", role=BEFORE,
                audits={"stigma": [([units(NOISE + 0.1, full=9.0)], [each]) for each in arm]},
            )
            for n, arm in enumerate(arms)
        ]  # fmt: skip
        return compare_all(given)[0][0].verdict

    alone, among = verdict(lucky), verdict(lucky, *others)
    assert among.high - among.low > 2 * (alone.high - alone.low)
    assert (alone.state, among.state) == ("worse", "no change found")


def test_a_share_after_several_trainings_is_the_mean_share():
    before = units(np.array([0.6] * 9 + [0.3] * 51), form="share")
    after = [replace(before, values=np.array([0.6] * n + [0.3] * (60 - n))[:, None]) for n in (40, 42, 44)]
    verdict = trained(before, *after)
    assert (verdict.lean_before, verdict.lean_after) == (pytest.approx(9 / 60), pytest.approx(42 / 60))
    assert verdict.state == "worse"
    assert verdict.trainings == pytest.approx((40 / 60, 42 / 60, 44 / 60))


def test_one_training_that_cannot_be_judged_stops_the_arm():
    good = several((0.3, 0.31, 0.29))
    verdict = trained(units(NOISE + 0.1), *good[:2], replace(good[2], gate="it did not understand"))
    assert (verdict.state, verdict.reason) == ("cannot tell", "m: it did not understand")
    missing = trained(units(NOISE + 0.1), *good[:2], replace(good[2], question="other"))
    assert missing.reason == "it was not measured after every training"


def test_texts_after_several_trainings_are_as_sure_together_as_one():
    def measured(estimate, change=None):
        changes = {} if change is None else {BEFORE: own(change, low=change - 0.02, high=change + 0.02, p=0.001)}
        whole = Finding(labels={}, estimate=estimate, low=estimate - 0.1, high=estimate + 0.1, p=0.5)
        return units(np.zeros(3), form="measured", whole=whole, changes=changes)

    near = trained(measured(0.1), *(measured(0.2, change) for change in (0.1, 0.101, 0.099)))
    assert near.change == pytest.approx(0.1)
    assert near.change_high - near.change_low == pytest.approx(0.04, abs=0.002)
    far = trained(measured(0.1), *(measured(0.2, change) for change in (0.0, 0.1, 0.2)))
    assert (near.state, far.state) == ("worse", "no change found")
