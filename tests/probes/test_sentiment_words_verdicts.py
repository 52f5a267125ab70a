"""What the sentiment-words audit concludes: the gate by clauses, error rates, and agreement with its tables."""

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_records import plan_for
from fake_sentiment import FakeSentiment, ask_sentiment, row_of, rows_of, write_reviews, write_words

from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND
from clinometer.probes.sentiment_words import PROBE, measures
from clinometer.probes.sentiment_words.answers import check_sentiment
from clinometer.probes.sentiment_words.comparisons import published, published_share
from clinometer.probes.sentiment_words.measures import OPPOSITE, PAPER, measure_shift
from clinometer.probes.sentiment_words.verdicts import AFTER, APPENDED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("simulated", ROOT / "simulations" / "sentiment_words.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(measures, "FEWEST_DRAWS", 1_999)  # enough for 20 words and two questions
    monkeypatch.setattr(measures, "SHUFFLES", 9)


def test_even_handed_models_stay_quiet_and_planted_leans_are_found(simulation, few_draws):
    """Of 20: at most 4 false ones (5 %: more in 3 of 1,000), at least 12 found (80 %: fewer in 1 of 100)."""
    assert simulation.even_handed(20)[simulation.EITHER] <= 4
    found = simulation.planted(20)
    assert min(found.values()) >= 12, found


def test_fine_tuning_that_exchanges_words_is_no_change_and_one_that_adds_them_is(simulation, few_draws):
    """Of 6: at most 2 false ones, at least 3 found (80 %: fewer in 2 of 100)."""
    found = simulation.tuning(6)
    assert found[simulation.EXCHANGED] <= 2
    assert found[simulation.GAINED] >= 3


def test_models_that_answer_at_random_do_not_pass_the_gate(simulation):
    """Under 1 %: of 60 none, or one with bad luck."""
    assert simulation.random_models(60)[simulation.GATE] <= 1


@pytest.mark.parametrize(("skew", "unequal", "judged"), [(1.5, 1.0, True), (0.5, 3.0, True), (1.5, 3.0, False)])
def test_words_that_are_far_more_skewed_in_one_class_are_not_judged(simulation, few_draws, skew, unequal, judged):
    answers = simulation.drawn_answers(np.random.default_rng(0), skew=skew, unequal=unequal)
    verdict = simulation.concluded(0, answers)[AFTER]
    assert (verdict.state != CANNOT_TELL) == judged
    assert ("no neutral word can be compared" not in verdict.sentence) == judged


# ---- the gate


def answers_with(simulation, *, right, per_class=100):
    """Answers whose words sense sentiment, and whose labels are right for so many reviews of each class."""
    answers = simulation.drawn_answers(np.random.default_rng(1), per_class=per_class, sense=1.0)
    odds = np.where(answers.positive, 1.0, -1.0).astype(np.float32)
    for chosen, count in zip((answers.positive, ~answers.positive), right, strict=True):
        odds[np.flatnonzero(chosen)[count:]] *= -1
    return replace(answers, before={(simulation.TEMPLATE, simulation.PAIR.name): odds})


@pytest.mark.parametrize(
    ("right", "why"),
    [
        ((97, 59), ""),
        (
            (99, 17),
            "17 % of negative reviews",
        ),  # 58 % in all: the interval lies above 0.5, yet one class is not sensed
        ((17, 99), "17 % of positive reviews"),
        ((100, 34), ""),
        ((100, 33), "33 % of negative reviews"),  # a third is more
        ((60, 60), ""),
        ((59, 59), "a coin might do"),  # 99 % interval: 0.498 to 0.677
    ],
)
def test_labels_must_be_right_in_both_classes(simulation, right, why):
    answers = answers_with(simulation, right=right)
    check = check_sentiment(answers, simulation.TEMPLATE, rng=np.random.default_rng(0), draws=100)
    found = check.failed(simulation.PAIR.name)
    assert (why in found) if why else found == ""
    assert check.failed(None) == ""  # the words do sense it


@pytest.mark.parametrize(("sense", "passes"), [(1.0, True), (0.0, False), (-1.0, False)])
def test_words_must_follow_the_reviews(simulation, sense, passes):
    answers = simulation.drawn_answers(np.random.default_rng(2), sense=sense)
    check = check_sentiment(answers, simulation.TEMPLATE, rng=np.random.default_rng(0), draws=100)
    assert (check.failed(None) == "") == passes


# ---- headlines, verdicts and tables agree


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verdicts")
    return {
        "words_file": write_words(folder / "words.csv", neutral=12),
        "reviews_file": write_reviews(folder / "reviews.csv", per_class=60),
        "reviews_per_class": 60,
        "ks": (5,),
        "draws": 199,
    }


FAKES = {
    "even": {},
    "leans": {"lean": {"plain3": -2.0}, "push": {"plain4": 1.5}},
    "blind": {"sense": 0.0, "lean": {"plain3": -2.0}},
    "no labels": {"unknown": ("terrible",)},
}


@pytest.fixture(scope="module", params=FAKES)
def concluded(request, files):
    plan = plan_for(PROBE, **files)
    return request.param, PROBE.findings([plan], ask_sentiment(PROBE, plan, FakeSentiment(**FAKES[request.param])))


def test_states(concluded):
    name, findings = concluded
    states = {verdict.aspect: verdict.state for verdict in findings.verdicts}
    expected = {
        "even": [NONE_FOUND, NONE_FOUND],
        "leans": [LEAN, LEAN],
        "blind": [CANNOT_TELL, CANNOT_TELL],
        "no labels": [NONE_FOUND, CANNOT_TELL],
    }
    assert states == dict(zip((AFTER, APPENDED), expected[name], strict=True))


def test_headlines_agree_with_the_rows_that_they_name(concluded):
    name, findings = concluded
    words = {AFTER: "association", APPENDED: "graded_shift"}
    for verdict in findings.verdicts:
        (reference,) = verdict.rows
        row = (
            row_of(
                findings,
                reference.table,
                **reference.labels | {"interpretable": "no" if name == "blind" else "yes"},
            )
            if verdict.estimate == verdict.estimate
            else None
        )
        assert len(verdict.sentence.split()) <= 25
        (line,) = {each for each in findings.headlines if each.startswith(verdict.sentence)}
        assert "nan" not in line
        if verdict.state == CANNOT_TELL:
            assert line == verdict.sentence
            assert verdict.reason
            continue
        assert (row.estimate, row.low, row.high, row.p, row.q) == (
            verdict.estimate, verdict.low, verdict.high, verdict.p, verdict.q,
        )  # fmt: skip
        assert f"{abs(row.estimate):.3f}" in line
        assert f"{verdict.detectable:.3f}" in line
        where = {"measure": "against the average word"} if verdict.aspect == APPENDED else {}
        listed = rows_of(findings, words[verdict.aspect], listed_as="neutral", **where)
        (own,) = [each for each in listed if each.labels["word"] == row.labels["word"]]
        assert (own.estimate, own.low, own.high) == (row.estimate, row.low, row.high)
        assert row.p == min(each.q for each in listed)  # Simes
        called = [each for each in listed if each.q <= 0.05]
        assert row.labels["positive"] == sum(each.estimate > 0 for each in called)
        assert row.labels["negative"] == sum(each.estimate < 0 for each in called)
        if verdict.state == LEAN:
            assert f"'{row.labels['word']}'" in line
            assert f"{len(called)} of 12" in line


# ---- the graded strength


def test_the_graded_strength_is_the_mean_change_of_the_log_odds():
    # four reviews, two of each class; the word adds 1, 2, 3, 4 once and 2, 2, 2, 2 twice: (2.5 + 2) / 2
    positive = np.array([True, False] * 5)
    before = np.where(positive, 5.0, -5.0).astype(np.float32)
    once = before + np.tile([1.0, 3.0], 5).astype(np.float32)
    after = np.stack([np.stack([once, before + 2]), np.stack([before, before])])
    neutral = np.array(["neutral", "neutral"])
    found = measure_shift(before, after, positive, neutral, ks=(1, 2), rng=np.random.default_rng(0), draws=100)
    # positive reviews: (1 + 2)/2, negative ones (3 + 2)/2; mean of the two classes
    assert found.graded.estimate == pytest.approx([2.0, 0.0])
    assert found.relative_graded.estimate == pytest.approx([2.0, -2.0])
    assert found.strength.estimate == pytest.approx([0.0, 0.0])  # no label moved


def test_strength_and_log_odds_may_contradict_each_other():
    """A word makes the few labels near 0 positive and pushes the many others down, as "referee" can."""
    rng = np.random.default_rng(0)
    positive = np.arange(200) % 2 == 0
    before = np.where(np.arange(200) % 4 < 3, 3.0, -0.2).astype(np.float32) + rng.normal(0, 0.05, 200)
    pushed = np.where(before > 0, before - 1.0, before + 0.5)
    after = np.stack([pushed, before + rng.normal(0, 0.01, 200)])[:, None].astype(np.float32)
    classes = np.array(["neutral", "neutral"])
    found = measure_shift(before.astype(np.float32), after, positive, classes, ks=(1,), rng=rng, draws=100)
    assert found.strength.estimate[0] > 0 > found.graded.estimate[0]
    assert found.contradicted.tolist() == [True, False]


def test_a_contradiction_is_said(files):
    class Referee(FakeSentiment):
        def __call__(self, request):
            answer = super().__call__(request)
            if request.normalise == "words" and request.text.startswith("plain0 "):
                great, terrible = answer.logprobs
                odds = great - terrible
                odds = odds - 9.0 if odds > 9.1 else 0.1 if odds > -2 else odds - 9.0
                return replace(answer, logprobs=(odds / 2, -odds / 2))
            return answer

    plan = plan_for(PROBE, **files)
    findings = PROBE.findings([plan], ask_sentiment(PROBE, plan, Referee()))
    row = row_of(findings, "graded_shift", word="plain0", measure="alone")
    strength = row_of(findings, "shift", word="plain0")
    assert row.estimate < 0 < strength.estimate
    assert (row.labels["strength_contradicts"], row.labels["strength"]) == ("yes", strength.estimate)
    (text,) = [notice.text for notice in findings.notices if "opposite signs. The strength" in notice.text]
    assert "for 1 of 12 appended words (plain0)" in text


# ---- the paper's tables


def test_the_papers_values_are_those_it_prints():
    assert len(published()) == 48 + 4 + 60 + 13  # Tables 1 and 2, §4.2, Tables 3 to 8, the rest
    assert published_share("shift", "K = 5")["RoBERTa-base"] == pytest.approx(0.88)
    every = [share for k in (5, 10, 15) for share in published_share("shift", f"K = {k}").values()]
    assert (round(min(every), 3), round(max(every), 3)) == (0.621, 0.937)


def test_leading_words_nearest_words_and_the_two_rules(files):
    plan = plan_for(PROBE, **files)
    push = {"plain1": 2.0, "plain2": 1.0, "plain5": -2.0}
    findings = PROBE.findings([plan], ask_sentiment(PROBE, plan, FakeSentiment(push=push, lean={"plain7": 3.0})))
    where = {"test": "shift", "m_or_k": "K = 5", "sign": "positive"}
    first = row_of(findings, "leading_words", rule=PAPER, **where)
    assert first.labels["words"].split(", ")[:2] == ["plain1", "plain2"]
    assert len(first.labels["words"].split(", ")) == round(first.estimate * 12)
    effect = row_of(findings, "leading_words", rule=PAPER, test="association", m_or_k="m = 1.5", sign="positive")
    assert (effect.labels["words"], effect.n) == ("plain7", 12)
    strengths = {row.labels["word"]: row.estimate for row in rows_of(findings, "shift")}
    nearest = rows_of(findings, "words_nearest_0", side="above 0")
    above = sorted(value for value in strengths.values() if value > 0)
    assert [row.estimate for row in nearest] == above[:5]
    assert {row.labels["word"] for row in rows_of(findings, "words_nearest_0", side="0 or below")} <= {
        word for word, value in strengths.items() if value <= 0
    }
    # accuracies that move in opposite directions: counted from the table of each K
    rows = rows_of(findings, "shift_by_k", k=5)
    opposite = [row for row in rows if row.labels["neg_diff"] * row.labels["pos_diff"] < 0]
    counted = row_of(findings, "biased_words", test="shift", m_or_k="K = 5", rule=OPPOSITE, sign="either")
    assert counted.estimate == pytest.approx(len(opposite) / 12)
    positive = row_of(findings, "biased_words", test="shift", m_or_k="K = 5", rule=OPPOSITE, sign="positive")
    assert positive.estimate == pytest.approx(sum(row.labels["neg_diff"] > 0 for row in opposite) / 12)
    shown = row_of(findings, "table_2", rule=OPPOSITE, m_or_k="K = 5")
    assert shown.estimate == counted.estimate
    low, high = 0.621, 0.893  # fine-tuned RoBERTa-base and -large
    assert (shown.labels["paper_lowest"], shown.labels["paper_highest"]) == (low, high)
    assert shown.labels["outside"] == pytest.approx(max(low - shown.estimate, shown.estimate - high, 0))
    (text,) = [notice.text for notice in findings.notices if "Table 2" in notice.text]
    assert "62 % to 89 % of the words" in text
    assert f"opposite signs calls {100 * shown.estimate:.0f} % of 12" in text


def test_nothing_prints_nan(concluded):
    _, findings = concluded
    said = [
        *findings.headlines,
        *(notice.text for notice in findings.notices),
        *(v.size for v in findings.verdicts),
    ]
    assert not [text for text in said if "nan" in text.lower().split()]
    assert all(not math.isnan(v.detectable) for v in findings.verdicts if v.state != CANNOT_TELL)
