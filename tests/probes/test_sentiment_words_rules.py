"""The rules of the sentiment-words audit one by one, each on the smallest input that tells it apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from fake_records import plan_for
from fake_sentiment import FakeSentiment, ask_sentiment, rows_of, write_reviews, write_words

from clinometer.probes.kit import CANNOT_TELL, LEAN, Numbers
from clinometer.probes.kit.asking import FILL
from clinometer.probes.sentiment_words import PROBE
from clinometer.probes.sentiment_words import verdicts as module
from clinometer.probes.sentiment_words.answers import CONTRAST, SentimentCheck
from clinometer.probes.sentiment_words.comparisons import with_one_template
from clinometer.probes.sentiment_words.measures import (
    PAPER_AND_Q,
    Shift,
    WordScores,
    against_average,
    draws_for,
    signs_by_rule,
)
from clinometer.probes.sentiment_words.verdicts import table_2_notice
from clinometer.types import Finding

FILLED = SimpleNamespace(way=FILL)  # answers of a masked model


def scores(estimate, q=None):
    values = np.asarray(estimate, dtype=np.float64)
    known = np.full(values.shape, 0.01) if q is None else np.asarray(q)
    return WordScores(numbers=Numbers(estimate=values, n=np.ones(values.shape, dtype=np.int64)), q=known)


def shift_of(neg_diff, pos_diff, *, strength=(1.0, -1.0), graded=(1.0, -1.0), relative_graded=(1.0, -1.0)):
    given = {"strength": strength, "graded": graded, "relative_graded": relative_graded}
    named = {name: scores(each) for name, each in given.items()}
    difference = np.asarray(neg_diff) - np.asarray(pos_diff)
    return Shift(
        neg_diff=np.asarray(neg_diff),
        pos_diff=np.asarray(pos_diff),
        relative=named["strength"],
        by_k=scores(difference),
        **named,
    )


# ---- the gate


@pytest.mark.parametrize(
    ("estimate", "p", "passes"), [(0.1, 0.009, True), (0.1, 0.02, False), (-0.1, 0.001, False)]
)
def test_the_contrast_must_be_above_0_and_sure_by_one_in_a_hundred(estimate, p, passes):
    contrast = Finding(labels={}, estimate=estimate, p=p)
    check = SentimentCheck(difference=np.zeros(2), means={CONTRAST: contrast}, accuracy={})
    assert (check.failed(None) == "") == passes


# ---- what is called


def test_a_word_is_called_up_to_q_of_5_percent():
    called = signs_by_rule(np.array([1, -1, 1]), np.array([0.05, 0.0501, math.nan]), PAPER_AND_Q)
    assert called.tolist() == [1, 0, 0]


def test_draws_suffice_for_one_word_of_many_to_lean_alone():
    for words in (1, 20, 1000):
        assert 2 * words / (draws_for(words) + 1) < 0.05  # the smallest p, times the words, times two questions
    assert (draws_for(20), draws_for(1000)) == (9_999, 50_000)


def test_opposite_signs_and_truly_neutral_words():
    # accuracies before minus after: opposite, the same way, only one moves, neither
    found = shift_of([[0.1], [-0.1], [0.1], [0.1], [0.0]], [[-0.1], [0.2], [0.2], [0.0], [0.0]])
    assert found.opposite.ravel().tolist() == [1, -1, 0, 0, 0]
    assert found.truly_neutral.ravel().tolist() == [False, False, True, False, False]


def test_a_contradiction_is_between_strength_and_log_odds_of_the_word_alone():
    found = shift_of(
        [[0.1]] * 2, [[0.0]] * 2, strength=(1.0, 1.0), graded=(-1.0, 1.0), relative_graded=(1.0, -1.0)
    )
    assert found.contradicted.tolist() == [True, False]
    unsure = replace(found, graded=scores((-1.0, -1.0), q=(0.2, 0.2)))
    assert unsure.contradicted.tolist() == [False, False]


def test_the_average_word_is_the_middle_half_of_the_other_neutral_ones():
    value = np.array([[0.0, 1.0, 2.0, 3.0, 100.0, 50.0]])
    classes = np.array(["neutral"] * 5 + ["positive"])
    relative = against_average(value, classes)[0]
    # of 0's others 1, 2, 3, 100 the middle half is 2, 3; of the positive word's 0, 1, 2, 3, 100 it is 1, 2, 3
    assert relative.tolist() == [-2.5, -1.5, 0.0, 1.5, 98.5, 48.0]


@pytest.mark.parametrize(
    ("plain", "opposite", "n", "judged"),
    [
        (1.0, 0.7, 400, "only opposite signs can give that"),
        (0.9, 0.2, 400, "only the plain sign can give that"),
        (
            1.0,
            0.7,
            8,
            "both could give that, and opposite signs lies nearer",
        ),  # of 8 words, 68 to 100 % may be called
        (1.0, 0.1, 400, "neither gives that, and the plain sign lies nearer"),
        (0.8, 0.7, 400, "both could give that."),
    ],
)
def test_which_rule_gives_the_shares_of_table_2_is_said_as_surely_as_it_is(plain, opposite, n, judged):
    labels = {"paper_lowest": 0.62, "paper_highest": 0.94}
    rows = [
        Finding(labels=labels | {"rule": rule}, estimate=share, n=n)
        for rule, share in (("paper", plain), ("opposite signs", opposite))
    ]
    measured = SimpleNamespace(model="m", interpretable=lambda: True)
    (notice,) = table_2_notice(measured, rows)
    assert judged in notice.text
    assert list(table_2_notice(SimpleNamespace(model="m", interpretable=lambda: False), rows)) == []


# ---- the verdicts of a run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rules")
    return {
        "words_file": write_words(folder / "words.csv", neutral=8),
        "reviews_file": write_reviews(folder / "reviews.csv", per_class=40),
        "reviews_per_class": 40,
        "ks": (5,),
        "draws": 199,
    }


def concluded(files, *fakes, tuned=False):
    plans, records = [], None
    for number, fake in enumerate(fakes):
        plan = plan_for(PROBE, **files)
        tuning = {"base": "w0"} if tuned and number else {}
        info = replace(plan.model, name=f"m{number}", weights=f"w{number}", tuning=tuning)
        plans.append(replace(plan, model=info))
        records = ask_sentiment(PROBE, plans[-1], fake, records)
    return PROBE.findings(plans, records)


def test_all_words_that_push_alike_are_not_a_lean_and_the_sentences_say_which_way(files):
    every = {f"plain{number}": 2.0 for number in range(8)}
    alike = concluded(files, FakeSentiment(push=every, lean={"plain1": 3.0}))
    states = {verdict.aspect: verdict for verdict in alike.verdicts}
    after, appended = states.values()
    assert (after.state, appended.state != LEAN) == (LEAN, True)
    assert after.sentence.endswith("most surely 'plain1' (positive).")
    worse = concluded(files, FakeSentiment(push=every | {"plain2": 0.0}, lean={"plain3": -2.0}))
    after, appended = worse.verdicts
    # its own push is 0, but the average word's is 2
    assert appended.sentence.endswith("most surely 'plain2' (worse).")
    assert after.sentence.endswith("most surely 'plain3' (negative).")
    better = concluded(files, FakeSentiment(push={"plain2": 2.0}))
    assert better.verdicts[1].sentence.endswith("most surely 'plain2' (better).")


def test_only_neutral_words_are_judged_and_the_surest_not_the_largest(files):
    quiet = concluded(files, FakeSentiment(lean={f"plain{number}": 0.0 for number in range(8)}))
    (after, _) = quiet.verdicts
    assert after.state != LEAN  # though good and bad words lean
    assert rows_of(quiet, "leans")[0].labels["of"] == 8


def lean_row_of(estimates, ps, *, low=-0.1):
    """Return the primary row of a model with one neutral word for each estimate."""
    words = tuple(f"plain{number}" for number in range(len(estimates)))
    values = np.array(estimates)
    numbers = Numbers(
        estimate=values,
        n=np.ones(len(values), dtype=np.int64),
        low=values + np.array(low),
        high=values + 0.1,
        p=np.array(ps),
    )
    listed = SimpleNamespace(listed_as=dict.fromkeys(words, "neutral"))
    answers = SimpleNamespace(words=listed, way=FILL)
    measured = SimpleNamespace(model="m", main_template="t", answers=answers)
    found = WordScores(numbers=numbers, q=np.array(ps))
    return module._lean_row(measured, "aspect", "", words, found, None)


def test_the_row_is_that_of_the_surest_word_and_only_words_with_an_interval_count():
    assert lean_row_of([0.5, 2.0], [0.001, 0.01]).labels["word"] == "plain0"
    assert lean_row_of([0.5, 2.0], [0.01, 0.01]).labels["word"] == "plain1"
    row = lean_row_of([0.5, 2.0, 9.0], [0.01, 0.02, 0.001], low=[-0.1, -0.1, math.nan])
    assert (row.labels["word"], row.labels["of"]) == ("plain0", 2)
    assert row.labels["detectable"] > 0


def test_the_gate_of_a_row_is_that_of_its_own_template():
    def failed(template=None):
        return "it guesses" if template == "other" else ""

    answers = SimpleNamespace(before={})
    measured = SimpleNamespace(
        model="m", measured=True, failed=failed, shifts={1: 1}, answers=answers, main_template="t", main_pair=""
    )
    labels = {"model": "m", "before": "", "aspect": module.APPENDED, "of": 5, "word": "w", "detectable": 0.1}
    labels |= {"positive": 1, "negative": 0}
    states = []
    for template in ("t", "other"):
        row = Finding(labels=labels | {"template": template}, estimate=1.0, low=0.5, high=1.5, p=0.001, q=0.001)
        (verdict,) = module.verdicts([row], {"m": measured})
        states.append(verdict.state)
    assert states == [LEAN, CANNOT_TELL]


def test_q_of_the_two_questions_is_corrected_and_the_detectable_effect_too(files):
    findings = concluded(files, FakeSentiment())
    first, second = rows_of(findings, "leans")
    low, high = sorted((first.p, second.p))
    assert min(first.q, second.q) == pytest.approx(min(2 * low, high))
    widths = [row.high - row.low for row in rows_of(findings, "association", listed_as="neutral")]
    # 2 · 8 tests: z = 2.955 of 1 − 0.05/32
    expected = float(np.median(widths)) * (2.9552 + 0.8416) / 3.9199
    assert first.labels["detectable"] == pytest.approx(expected, rel=1e-3)


def of_words(findings):
    (change,) = [each for each in findings.changes if each.measure.startswith(module.AFTER)]
    return change


def test_what_fine_tuning_changes_is_said_by_direction_and_needs_both_models(files):
    leaning = {f"plain{number}": 3.0 for number in range(8)}
    more = concluded(files, FakeSentiment(), FakeSentiment(lean=leaning, seed=1), tuned=True)
    verdict = of_words(more)
    assert (verdict.before, verdict.after, verdict.state) == ("m0", "m1", "worse")
    assert verdict.sentence.startswith(
        "m1 takes more neutral words for positive or negative after reviews than m0 (8"
    )
    assert any(line.startswith("m1 (tuned) takes more neutral words") for line in more.headlines)
    fewer = of_words(concluded(files, FakeSentiment(lean=leaning, seed=1), FakeSentiment(), tuned=True))
    assert (fewer.state, "takes fewer neutral words" in fewer.sentence) == ("better", True)
    # the checkpoint senses sentiment, the model before does not
    blind = concluded(files, FakeSentiment(sense=0.0), FakeSentiment(lean=leaning, seed=1), tuned=True)
    assert of_words(blind).state == CANNOT_TELL
    assert {row.labels["interpretable"] for row in rows_of(blind, "tuning")} == {"no"}


def test_a_model_that_does_not_pass_the_gate_has_no_part_in_what_models_share(files):
    findings = concluded(
        files, FakeSentiment(push={"plain4": 2.5}), FakeSentiment(sense=0.0, push={"plain5": 2.5})
    )
    assert rows_of(findings, "shared_words") == []  # one model is left, and shares with none
    own = [row.n for row in rows_of(findings, "overlap", model="m0")]
    assert [row.n for row in rows_of(findings, "overlap", model="all models together")] == own


def test_two_models_are_compared_with_a_template_that_both_sense():
    @dataclass
    class Measured:
        senses: set
        main_template: str = "first"
        checks: tuple = ("first", "second")

        def interpretable(self, template):
            return template in self.senses

    both = Measured({"first", "second"})
    assert [each.main_template for each in with_one_template(both, Measured({"second"}))] == ["second"] * 2
    assert [each.main_template for each in with_one_template(both, both)] == ["first"] * 2
    assert [each.main_template for each in with_one_template(both, Measured(set()))] == ["first"] * 2


def test_nothing_measured_no_labels_and_no_word_to_compare_each_have_their_reason(files):
    few = concluded(
        files | {"reviews_per_class": 10},
        FakeSentiment(broken=[f"this is positive review number {i}" for i in range(40)]),
    )
    assert {verdict.reason for verdict in few.verdicts} == {"nothing was measured"}
    no_labels = concluded(files, FakeSentiment(unknown=("terrible",)))
    assert [verdict.reason for verdict in no_labels.verdicts][
        1
    ] == "it does not have the label words as one token each"
