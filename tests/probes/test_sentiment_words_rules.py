"""The rules of the sentiment-words audit one by one, each on the smallest input that tells it apart."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from fake_records import fake_model, plan_for
from fake_sentiment import FakeSentiment, ask_sentiment, rows_of, write_reviews, write_words

from clinometer.probes.kit import CANNOT_TELL, LEAN, Numbers, Said, conclude
from clinometer.probes.kit.asking import FILL
from clinometer.probes.sentiment_words import PROBE, comparisons
from clinometer.probes.sentiment_words import verdicts as module
from clinometer.probes.sentiment_words.answers import CONTRAST, SentimentCheck
from clinometer.probes.sentiment_words.comparisons import published_share, table_2_rows, with_one_template
from clinometer.probes.sentiment_words.measures import (
    OPPOSITE,
    PAPER,
    PAPER_AND_Q,
    Shift,
    WordScores,
    against_average,
    draws_for,
    signs_by_rule,
)
from clinometer.probes.sentiment_words.tables import AGAINST, ALONE, FIGURES, TUNING, mark_interpretable
from clinometer.probes.sentiment_words.verdicts import table_2_notice
from clinometer.stats import benjamini_hochberg
from clinometer.types import Finding, Findings, FindingTable

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


@pytest.mark.parametrize(("share", "outside"), [(-0.1, -0.1), (0.0, 0.0), (1.0, 0.0), (1.1, 0.1)])
def test_a_share_may_lie_outside_the_papers_table_on_either_side(share, outside):
    """`share` goes from the paper's lowest (0) to its highest (1) at K = 5."""
    printed = published_share("shift", "K = 5").values()
    low, high = min(printed), max(printed)
    at = low + share * (high - low)
    labels = {"model": "m", "m_or_k": "K = 5", "rule": PAPER, "sign": "either"}
    (row,) = table_2_rows([Finding(labels=labels, estimate=at, p=0.5, q=0.5, n=9)])
    assert row.labels["outside"] == pytest.approx(abs(outside) * (high - low), abs=1e-6)
    assert (row.labels["paper_lowest"], row.labels["paper_highest"]) == (round(low, 4), round(high, 4))
    assert math.isnan(row.p)


def test_only_shares_of_either_sign_by_the_two_rules_are_beside_the_papers_table():
    labels = {"model": "m", "m_or_k": "K = 5", "rule": PAPER, "sign": "either"}
    others = ({"rule": OPPOSITE}, {"rule": PAPER_AND_Q}, {"sign": "positive"}, {"m_or_k": "K = 999"})
    rows = [Finding(labels=labels | each, estimate=0.5, n=9) for each in ({}, *others)]
    assert [row.labels["rule"] for row in table_2_rows(rows)] == [PAPER, OPPOSITE]


def test_what_compares_with_the_main_template_needs_both_to_be_sensed():
    def sensing(*templates):
        return SimpleNamespace(interpretable=lambda template=None, pair=None: (template or "main") in templates)

    def marks(row, models):
        (marked,) = mark_interpretable([Finding(labels=row, estimate=0.0)], models)
        return marked.labels["interpretable"]

    other = {"model": "m", "template": "other", "labels": ""}
    assert marks(other, {"m": sensing("other")}) == "yes"
    assert marks(other | {"changed_words": ""}, {"m": sensing("other")}) == "no"
    assert marks(other | {"changed_words": ""}, {"m": sensing("other", "main")}) == "yes"
    assert marks(other, {"m": sensing("main")}) == "no"
    # a change needs both models, and a row of no model all of them
    change = {"model": "m", "tuned": "t"}
    assert marks(change, {"m": sensing("main"), "t": sensing()}) == "no"
    assert marks(change, {"m": sensing("main"), "t": sensing("main")}) == "yes"
    assert marks({"models": 2}, {"m": sensing("main"), "t": sensing()}) == "no"


def test_nothing_is_drawn_of_a_model_that_senses_nothing_but_that_it_does_not():
    shows_why = {"curves", "accuracy"}
    for figure in (*FIGURES, TUNING):
        assert (figure.filters.get("interpretable") == "yes") == (figure.name not in shows_why), figure.name


def test_which_of_the_two_tests_calls_a_word_is_told_with_the_signs():
    told = {
        signs: comparisons._called_by(*signs) for signs in ((1, 1), (-1, -1), (1, -1), (1, 0), (0, -1), (0, 0))
    }
    assert told == {
        (1, 1): "both", (-1, -1): "both", (1, -1): "both, with opposite signs", (1, 0): "association",
        (0, -1): "shift", (0, 0): "neither",
    }  # fmt: skip


def words_of(**more):
    """One row of a table of words, as the audit marks it."""
    labels = {"model": "m", "template": "t", "word": "w", "listed_as": "neutral", "called": "none"}
    labels |= {"interpretable": "yes"} | {name: value for name, value in more.items() if name != "low"}
    return Finding(labels=labels, estimate=0.1, low=more.get("low", 0.0), high=0.2, n=8)


def compared_of(rows, *, aspect, table, pair="", gate=""):
    lean = {"model": "m", "aspect": aspect, "asked": "fill", "template": "t", "labels": pair}
    given = {"leans": [Finding(labels=lean, estimate=0.0)], table: rows}
    tables = tuple(FindingTable(name=name, title="", caption="", rows=tuple(each)) for name, each in given.items())
    row = Finding(labels={}, estimate=0.1, low=-0.1, high=0.2, q=0.5)
    said = Said(above="", below="", none="")
    told = conclude(row, audit=PROBE.name, model="m", aspect=aspect, table="leans", said=said, gate=gate)
    found = Findings(probe=PROBE.name, tables=tables, figures=(), verdicts=(told,))
    return list(PROBE.compared(found, [fake_model("m")]))


def test_a_template_that_is_sensed_is_compared_though_the_main_one_is_not():
    rows = [words_of(interpretable="no"), words_of(template="u")]
    main, other = compared_of(rows, aspect=module.AFTER, table="association", gate="it guesses")
    assert [(each.same["template"], each.gate) for each in (main, other)] == [("t", "it guesses"), ("u", "")]


def test_only_neutral_words_with_an_interval_are_compared():
    rows = [words_of(), words_of(word="no interval", low=math.nan), words_of(word="good", listed_as="positive"),
            words_of(word="called", called="negative"), words_of(word="another model", model="n")]  # fmt: skip
    (units,) = compared_of(rows, aspect=module.AFTER, table="association")
    assert dict(zip(units.names, units.values[:, 0].tolist(), strict=True)) == {"w": 0.0, "called": 1.0}


def test_appended_words_are_compared_with_the_main_label_words_against_the_average_word():
    rows = [
        words_of(labels=pair, measure=measure, word=f"{pair} {measure}")
        for pair in ("great/terrible", "good/bad")
        for measure in (ALONE, AGAINST)
    ]
    (units,) = compared_of(rows, aspect=module.APPENDED, table="graded_shift", pair="good/bad")
    assert units.names == (f"good/bad {AGAINST}",)
    assert units.same["pair of labels"] == "good/bad"


def row_about(estimate, half, p):
    """The primary row of neutral words "a", "b", … with these effects, half-widths of intervals, and p-values."""
    values, halves, p = (np.asarray(each, dtype=np.float64) for each in (estimate, half, p))
    numbers = Numbers(estimate=values, low=values - halves, high=values + halves, p=p, n=np.full(len(values), 40))
    words = tuple("abcdefgh"[: len(values)])
    of_words = SimpleNamespace(way=FILL, words=SimpleNamespace(listed_as=dict.fromkeys(words, "neutral")))
    measures = SimpleNamespace(model="m", answers=of_words, main_template="t")
    found = WordScores(numbers=numbers, q=benjamini_hochberg(p))
    return module._lean_row(measures, module.AFTER, "", words, found, None)


def test_a_word_leans_by_one_rule_and_the_surest_of_these_decides():
    """Of four words with the smallest p, which shuffles give to many, two have an interval without 0."""
    row = row_about([-5.0, 3.0, -1.0, 0.5, 0.1], [9.0, 1.0, 0.5, 0.6, 1.0], [1e-4, 1e-4, 1e-4, 1e-4, 0.8])
    # "a" is the largest, and its interval holds 0; so does that of "d"
    assert (row.labels["word"], row.estimate) == ("b", 3.0)
    assert (row.labels["positive"], row.labels["negative"], row.labels["of"]) == (1, 1, 5)
    assert row.p == pytest.approx(1e-4 * 5 / 4)


def test_a_small_q_of_a_word_whose_interval_holds_0_proves_no_other_word():
    """ "a" has q = .0005, "b" only .02: the finding is about "b", and as sure as "b" is."""
    row = row_about([-5.0, 2.0, 0.1, 0.1, 0.1], [9.0, 1.0, 1.0, 1.0, 1.0], [1e-4, 8e-3, 0.5, 0.6, 0.8])
    assert row.labels["word"] == "b"
    assert row.p == pytest.approx(8e-3 * 5 / 2)


def test_where_no_word_leans_the_surest_of_all_is_told_with_simes_p():
    row = row_about([-5.0, 0.2], [9.0, 0.1], [1e-4, 0.4])
    assert (row.labels["word"], row.labels["positive"], row.labels["negative"]) == ("a", 0, 0)
    assert row.p == pytest.approx(2e-4)


def test_the_detectable_effect_is_that_of_a_word_with_the_median_interval():
    wide = row_about([-5.0, 0.2, 0.1], [9.0, 1.0, 1.0], [1e-4, 0.4, 0.5])
    alike = row_about([-5.0, 0.2, 0.1], [1.0, 1.0, 1.0], [1e-4, 0.4, 0.5])
    assert wide.labels["detectable"] == alike.labels["detectable"]
    # found four times in five after a correction for three words and two questions: well beyond the half-width
    assert 1.5 < wide.labels["detectable"] < 2.5
