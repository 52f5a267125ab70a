"""What the sentiment-words audit concludes: planted leans are found with their size, an even hand stays quiet."""

import dataclasses
import math
from statistics import NormalDist

import pytest
from fake_records import MemoryRecords, fake_model, plan_for
from fake_sentiment import FakeSentiment, ask_sentiment, row_of, rows_of, write_reviews, write_words

from clinometer.probes.kit import CANNOT_TELL, NONE_FOUND
from clinometer.probes.sentiment_words import PROBE
from clinometer.probes.sentiment_words.measures import PAPER, PAPER_AND_Q
from clinometer.probes.sentiment_words.verdicts import AFTER
from clinometer.stats import benjamini_hochberg
from clinometer.types import WordAnswer

POSITIVE_LEANS = [f"plain{i}" for i in range(6)]
NEGATIVE_LEANS = [f"plain{i}" for i in range(6, 12)]
PLANTED = POSITIVE_LEANS + NEGATIVE_LEANS


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentiment")
    return {
        "words_file": write_words(folder / "words.csv"),
        "reviews_file": write_reviews(folder / "reviews.csv", per_class=100),
    }


def plan_of(files, *, model=None, seed=0, **options):
    defaults = {"reviews_per_class": 100, "ks": (1, 2), "draws": 399}
    return plan_for(PROBE, model=model, seed=seed, **(files | defaults | options))


def summary(plan, answer):
    return PROBE.findings([plan], ask_sentiment(PROBE, plan, answer))


def called(findings, aspect):
    row = row_of(findings, "leans", aspect=aspect)
    return row.labels["positive"] + row.labels["negative"]


# ---- by hand


class ByHand:
    """Ten positive and ten negative reviews, two neutral words, and answers that a pencil can follow."""

    def __call__(self, request):
        if not request.context:
            return WordAnswer(words=request.words, logprobs=(-1.0,) * len(request.words))
        number, positive = int(request.context.split()[-1]), "positive" in request.context
        if request.normalise == "words":
            word = request.text.split()[0]
            great = self.after(word, request.text.split().count(word), positive, number)
            return WordAnswer(words=request.words, logprobs=(-0.1, -2.0) if great else (-2.0, -0.1))
        odd = number % 2
        probability = {
            "good0": 0.02 if positive else 0.01,
            "good1": 0.02 if positive else 0.01,
            "bad0": 0.01 if positive else 0.02,
            "bad1": 0.01 if positive else 0.02,
            # means .3 and .1, deviations .1 and .05: effect .2/.05 = 4
            "plain0": (0.2, 0.4)[odd] if positive else (0.05, 0.15)[odd],
            # means .1 and .16, deviations .05 and .06: effect −.06/.05 = −1.2
            "plain1": (0.05, 0.15)[odd] if positive else (0.1, 0.22)[odd],
            "great": 0.1 if self.before(positive, number) else 0.05,
            "terrible": 0.07,
        }
        return WordAnswer(words=request.words, logprobs=tuple(math.log(probability[w]) for w in request.words))

    def before(self, positive, number):
        return number < 8 if positive else number < 1  # accuracies .8 and .9

    def after(self, word, k, positive, number):
        # plain0 makes reviews positive: 3 and 5 negative ones, 1 and 2 positive ones
        # plain1 once: 4 positive reviews and the one negative "great" become terrible;
        # plain1 twice: the 2 lost positive reviews become great, the negative one becomes terrible
        limits = {("plain0", 1): (9, 4), ("plain0", 2): (10, 6), ("plain1", 1): (4, 0), ("plain1", 2): (10, 0)}
        return number < limits[word, k][0 if positive else 1]


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    folder = tmp_path_factory.mktemp("by-hand")
    words = write_words(folder / "words.csv", positive=2, negative=2, neutral=2)
    reviews = write_reviews(folder / "reviews.csv", per_class=10)
    plan = plan_for(PROBE, words_file=words, reviews_file=reviews, reviews_per_class=10, ks=(1, 2), draws=199)
    return summary(plan, ByHand())


def test_association_by_hand(by_hand):
    first, second = (row_of(by_hand, "association", word=word) for word in ("plain0", "plain1"))
    assert first.estimate == pytest.approx(4.0)
    assert [first.labels[f"m_{m}"] for m in ("0.5", "1", "1.5")] == ["positive"] * 3
    assert second.estimate == pytest.approx(-1.2)
    assert [second.labels[f"m_{m}"] for m in ("0.5", "1", "1.5")] == ["negative", "negative", "none"]
    assert first.n == 20


def test_strength_by_hand(by_hand):
    # plain0: ½ ((.3 + .1)/1 + (.5 + .2)/4) = .2875
    assert row_of(by_hand, "shift", word="plain0").estimate == pytest.approx(0.2875)
    # plain1: once Neg_Diff = −.1, Pos_Diff = .4; twice −.1 and −.2: ½ (−.5 + .1/4) = −.2375
    assert row_of(by_hand, "shift", word="plain1").estimate == pytest.approx(-0.2375)
    once = row_of(by_hand, "shift_by_k", word="plain1", k=1)
    assert (once.labels["neg_diff"], once.labels["pos_diff"]) == pytest.approx((-0.1, 0.4))
    assert (once.estimate, once.labels["moves"]) == (pytest.approx(-0.5), "negative")
    twice = row_of(by_hand, "shift_by_k", word="plain1", k=2)
    assert (twice.estimate, twice.labels["moves"]) == (pytest.approx(0.1), "both the same way")
    # against the other word: .2875 + .2375 and its negative
    assert row_of(by_hand, "relative_shift", word="plain0").estimate == pytest.approx(0.525)
    assert row_of(by_hand, "relative_shift", word="plain1").estimate == pytest.approx(-0.525)
    ranks = [(row.labels["word"], row.labels["rank"]) for row in rows_of(by_hand, "shift")]
    assert ranks == [("plain0", "1"), ("plain1", "2")]
    neutral = row_of(by_hand, "biased_words", test="shift", m_or_k="K = 2", sign="truly neutral")
    assert (neutral.estimate, neutral.n) == (0.5, 2)


def test_sense_and_accuracy_by_hand(by_hand):
    # positive reviews: .02 − .01; negative ones: .01 − .02
    assert row_of(by_hand, "sense", reviews="positive reviews").estimate == pytest.approx(0.01)
    assert row_of(by_hand, "sense", reviews="positive minus negative reviews").estimate == pytest.approx(0.02)
    found = {row.labels["reviews"]: row.estimate for row in rows_of(by_hand, "accuracy", source="all")}
    assert found == pytest.approx({"all reviews": 0.85, "positive reviews": 0.8, "negative reviews": 0.9})
    assert row_of(by_hand, "accuracy", source="all", reviews="all reviews").low > 0.5
    assert {row.labels["interpretable"] for table in by_hand.tables for row in table.rows} == {"yes"}


def test_agreement_of_the_tests_by_hand(by_hand):
    # at m = 1 both tests call plain0 positive and plain1 negative; at m = 1.5 the association test drops plain1
    where = {"model": "fake", "rule": PAPER, "sign": "negative"}
    both = row_of(by_hand, "overlap", association_at="m = 1", of_the_words_of="shift", **where)
    assert (both.estimate, both.n) == (1.0, 1)
    none = row_of(by_hand, "overlap", association_at="m = 1.5", of_the_words_of="shift", **where)
    assert (none.estimate, none.n) == (0.0, 1)
    nothing = row_of(by_hand, "overlap", association_at="m = 1.5", of_the_words_of="association", **where)
    assert math.isnan(nothing.estimate)
    point = row_of(by_hand, "both_tests", word="plain0")
    assert point.labels["association_effect"] == pytest.approx(4.0)


# ---- planted leans


@pytest.fixture(scope="module")
def planted(files):
    """Effects of ±1 standard deviations, and pushes of ±0.8, on 12 of 60 neutral words."""
    lean = dict.fromkeys(POSITIVE_LEANS, 1.0) | dict.fromkeys(NEGATIVE_LEANS, -1.0)
    push = dict.fromkeys(POSITIVE_LEANS, 0.8) | dict.fromkeys(NEGATIVE_LEANS, -0.8)
    return summary(plan_of(files), FakeSentiment(lean=lean, push=push))


def test_planted_leans_are_found_by_both_tests(planted):
    """All 12 are found with their sign; of the 48 others at most 3 are called, as q ≤ 0.05 promises on average."""
    for table, verdict in (("association", "m_0.5"), ("shift", "called"), ("relative_shift", "called")):
        rows = {row.labels["word"]: row for row in rows_of(planted, table, listed_as="neutral")}
        assert len(rows) == 60
        for words, sign in ((POSITIVE_LEANS, "positive"), (NEGATIVE_LEANS, "negative")):
            assert [rows[word].labels[verdict] for word in words] == [sign] * 6
            assert all(rows[word].q <= 0.05 for word in words)
        false = [word for word, row in rows.items() if word not in PLANTED and row.q <= 0.05]
        assert len(false) <= 3


def test_the_planted_sizes_are_recovered(planted):
    """Within 3.5 standard errors, 24 times; how often intervals hold the truth is tested with the error rates."""
    effects = {row.labels["word"]: row.estimate for row in rows_of(planted, "association")}
    # standard error of an effect of 1 from 100 + 100 reviews: √(2/100 + 1/(2 · 100)) = .158
    for word in PLANTED:
        assert effects[word] == pytest.approx(1 if word in POSITIVE_LEANS else -1, abs=3.5 * 0.158)
    # labels before: evidence ±1 with deviation 1; after: ±1 + push with deviation √1.25
    phi = NormalDist().cdf
    moved = sum(phi((side + 0.8) / math.sqrt(1.25)) - phi(side) for side in (-1, 1))
    truth = 0.5 * (1 / 1 + 1 / 4) * moved  # ks = 1, 2
    assert truth == pytest.approx(0.234, abs=0.001)
    # labels that move are at most 1, and move in less than half of the reviews: √(2 · .5²/100) · .625 = .044
    strengths = {row.labels["word"]: row.estimate for row in rows_of(planted, "shift")}
    for word in PLANTED:
        assert strengths[word] == pytest.approx(truth if word in POSITIVE_LEANS else -truth, abs=3.5 * 0.044)


def test_counts_chance_and_headlines(planted):
    where = {"test": "association", "m_or_k": "m = 0.5", "rule": PAPER_AND_Q, "sign": "either"}
    found = row_of(planted, "biased_words", reviews="as labelled", **where)
    chance = row_of(planted, "biased_words", reviews="labels shuffled", **where)
    assert 12 <= found.estimate * 60 <= 15
    assert found.p == pytest.approx(1 / 200)  # none of the 199 shuffles calls as many
    assert chance.estimate < 0.01
    assert chance.n == 199
    assert [verdict.state for verdict in planted.verdicts] == ["lean", "lean"]
    assert planted.headlines[0].startswith(f"fake expects {called(planted, AFTER)} of 60 neutral words more after")
    assert planted.headlines[1].startswith("fake judges reviews differently after ")
    assert not [notice for notice in planted.notices if notice.level == "warning"]


def test_the_size_is_by_the_rule_whose_shares_the_paper_prints(files):
    """Of 8 + 8 reviews chance gives effects beyond m = 1, which q does not believe and the paper's rule does."""
    found = summary(plan_of(files, reviews_per_class=8, shift_words="none", draws=199), FakeSentiment())
    where = {"test": "association", "m_or_k": "m = 1", "sign": "either", "reviews": "as labelled"}
    shares = [row_of(found, "biased_words", rule=rule, **where).estimate for rule in (PAPER, PAPER_AND_Q)]
    assert shares[0] > shares[1]
    # its Table 1, RoBERTa-base at m = 1: .25 % + 3.75 %
    assert found.verdicts[0].size == (
        f"the paper's own rule calls {100 * shares[0]:.1f} % of the words, and 4.0 % in its RoBERTa-base"
    )


def test_positive_and_negative_words_verify_the_test(planted):
    where = {"test": "association", "m_or_k": "m = 0.5", "rule": PAPER_AND_Q}
    assert row_of(planted, "verification", listed_as="positive", found="positive", **where).estimate == 1.0
    assert row_of(planted, "verification", listed_as="negative", found="positive", **where).estimate == 0.0


def test_tests_agree_and_the_strongest_words_more_often(planted):
    row = row_of(
        planted, "overlap", model="fake", association_at="m = 0.5", rule=PAPER_AND_Q, sign="negative",
        of_the_words_of="association",
    )  # fmt: skip
    assert row.estimate >= 0.8
    parts = rows_of(planted, "top_words", association_at="m = 0.5", rule=PAPER, sign="positive")
    strongest, weakest = (next(row for row in parts if row.labels["part"] == p) for p in ("strongest", "weakest"))
    assert strongest.n == weakest.n == sum(row.estimate > 0 for row in rows_of(planted, "shift")) // 2
    assert strongest.estimate > weakest.estimate


def test_every_table_and_figure_is_there(planted):
    assert "tuning" not in {figure.name for figure in planted.figures}  # nothing was tuned
    names = {table.name for table in planted.tables}
    for figure in planted.figures:
        assert figure.table in names
        (table,) = [each for each in planted.tables if each.name == figure.table]
        used = {figure.x, figure.y, figure.color, figure.column, *figure.menus, *figure.filters} - {"", "estimate"}
        assert used <= set(table.rows[0].labels)
    for table in planted.tables:
        assert len({tuple(row.labels) for row in table.rows}) <= 1
    assert {table.name for table in planted.tables if not table.rows} == {
        "shared_words",
        "tuning",
        "variants",
        "dropped_words",
        "table_2",  # of K = 5, 10 and 15
    }
    curve = rows_of(planted, "curves", reviews="positive reviews")
    assert [row.estimate for row in curve] == sorted(row.estimate for row in curve)
    assert len(curve) == 100


def test_an_even_hand_stays_quiet(files):
    """Three models without a lean, 60 words and three families of tests each: at most two false calls in all."""
    false = 0
    for seed in range(3):
        findings = summary(plan_of(files, seed=seed, ks=(1,), reviews_per_class=60), FakeSentiment(seed=seed))
        assert {row.labels["interpretable"] for row in rows_of(findings, "leans")} == {"yes"}
        for table in ("association", "shift", "relative_shift"):
            false += sum(row.q <= 0.05 for row in rows_of(findings, table, listed_as="neutral"))
    assert false <= 2


def test_any_appended_word_may_move_labels_without_setting_words_apart(files):
    """All words push alike: nearly all are called by the shift test, none leans more than the average word."""
    push = {f"plain{i}": 0.6 for i in range(60)}
    findings = summary(plan_of(files, ks=(1,)), FakeSentiment(push=push))
    assert sum(row.labels["called"] == "positive" for row in rows_of(findings, "shift")) >= 58
    assert sum(row.labels["called"] != "none" for row in rows_of(findings, "relative_shift")) <= 3


# ---- what must not be believed


def with_labels(fake, *, right):
    """The fake's words; the first `right` reviews of each class get their own label, the others the wrong one."""

    def answer(request):
        found = fake(request)
        if not request.context:
            return found
        great = ("positive" in request.context) == (int(request.context.split()[-1]) < right)
        labels = {"great": -1.0, "terrible": -2.0} if great else {"great": -2.0, "terrible": -1.0}
        given = zip(found.words, found.logprobs, strict=True)
        return WordAnswer(words=found.words, logprobs=tuple(labels.get(word, each) for word, each in given))

    return answer


@pytest.mark.parametrize(
    ("sense", "right", "sensed"),
    [
        (1.0, 60, True),
        (1.0, 54, False),  # 54 % of 200 reviews are labelled correctly: the interval holds 0.5
        (0.03, 60, False),  # the contrast is above 0, but may be chance
        (-1.0, 60, False),  # the contrast is sure, but the wrong way round
    ],
)
def test_a_model_senses_sentiment_if_both_its_words_and_its_labels_do(files, sense, right, sensed):
    """Each clause of the rule decides alone: the interval of the accuracy, and p and sign of the contrast."""
    plan = plan_of(files, shift_words="none")
    findings = summary(plan, with_labels(FakeSentiment(sense=sense), right=right))
    accuracy = row_of(findings, "accuracy", source="all", reviews="all reviews")
    contrast = row_of(findings, "sense", reviews="positive minus negative reviews")
    assert (accuracy.estimate, accuracy.low > 0.5) == (right / 100, right == 60)
    assert (contrast.estimate > 0, contrast.p < 0.01) == (sense > 0, abs(sense) == 1)
    (verdict,) = findings.verdicts
    assert (verdict.state, verdict.sentence.startswith("fake cannot be judged")) == (
        (NONE_FOUND, False) if sensed else (CANNOT_TELL, True)
    )
    assert {row.labels["interpretable"] for row in rows_of(findings, "association")} == {"yes" if sensed else "no"}


def test_a_model_without_sentiment_is_not_interpreted(files):
    findings = summary(
        plan_of(files, ks=(1,), shift_words_limit=9), FakeSentiment(sense=0.0, lean={"plain0": 2.0})
    )
    assert {row.labels["interpretable"] for table in findings.tables for row in table.rows} == {"no"}
    (warning,) = [notice.text for notice in findings.notices if notice.level == "warning"]
    assert "does not sense sentiment" in warning
    assert [verdict.state for verdict in findings.verdicts] == [CANNOT_TELL] * 2
    (line,) = findings.headlines  # why is said once, and no number with it
    assert line.startswith("fake cannot be judged: with 'It was [MASK]' positive reviews do not")
    for figure in findings.figures:  # nothing is drawn but the evidence of its blindness
        assert figure.filters.get("interpretable") == "yes" or figure.name in ("curves", "accuracy")


@pytest.mark.parametrize("main_is_blind", [False, True])
def test_a_template_that_shows_no_sentiment_is_marked_and_so_is_its_comparison(files, main_is_blind):
    class BlindWithJust(FakeSentiment):
        def __call__(self, request):
            blind = request.text.endswith("!")
            return (FakeSentiment(sense=0.0) if blind else super()).__call__(request)

    templates = ("It was [MASK]", "Just [MASK]!")
    asked = templates[::-1] if main_is_blind else templates
    findings = summary(plan_of(files, templates=asked, shift_words="none"), BlindWithJust())
    by_template = {
        template: {row.labels["interpretable"] for row in rows_of(findings, "association", template=template)}
        for template in templates
    }
    assert by_template == {templates[0]: {"yes"}, templates[1]: {"no"}}
    assert {row.labels["interpretable"] for row in rows_of(findings, "variants")} == {"no"}
    # the main template is the one that passes, whichever comes first
    assert any("with the template 'Just [MASK]!'" in notice.text for notice in findings.notices)
    assert any("the main template is 'It was [MASK]'" in notice.text for notice in findings.notices)
    assert row_of(findings, "leans").labels["template"] == "It was [MASK]"
    assert findings.verdicts[0].state == NONE_FOUND
    assert any("the shift test was not made" in notice.text for notice in findings.notices)
    assert rows_of(findings, "shift") == []


def test_reviews_that_were_not_answered_are_left_out_and_counted(files):
    plan = plan_of(files, ks=(1,), shift_words_limit=5)
    broken = {review.text for review in plan.options.chosen_reviews(0)[:7]}
    findings = summary(plan, FakeSentiment(broken=broken))
    assert {row.n for row in rows_of(findings, "association")} == {193}
    assert {row.n for row in rows_of(findings, "shift")} == {193}
    assert any("7 reviews were left out" in notice.text for notice in findings.notices)
    everything = {review.text for review in plan.options.chosen_reviews(0)}
    nothing = summary(plan, FakeSentiment(broken=everything))
    assert nothing.headlines == ("fake cannot be judged: nothing was measured.",)
    assert rows_of(nothing, "association") == []


def test_words_and_label_words_that_the_model_lacks_are_named(files):
    findings = summary(plan_of(files, ks=(1,)), FakeSentiment(unknown=("plain3", "good1", "terrible")))
    text = " ".join(notice.text for notice in findings.notices)
    assert "great/terrible are not one token each; so there are no labels of reviews and no shift test" in text
    assert "(1 positive, 0 negative, 1 neutral)" in text
    assert "Neutral ones: plain3." in text
    assert rows_of(findings, "shift") == []
    assert {row.labels["word"] for row in rows_of(findings, "dropped_words")} == {"plain3", "good1"}
    row = row_of(findings, "vocabulary", listed_as="neutral")
    assert (row.labels["listed"], row.labels["one_token"], row.labels["used"]) == (60, 59, 59)
    assert row_of(findings, "sense", reviews="positive reviews").labels["interpretable"] == "yes"


@pytest.mark.parametrize("listed", ["good", "bad", "plain"])
def test_a_class_without_a_single_word_leaves_nothing_to_measure(files, listed):
    unknown = [f"{listed}{i}" for i in range(60)]
    findings = summary(plan_of(files, ks=(1,), shift_words_limit=5), FakeSentiment(unknown=unknown))
    assert findings.headlines == ("fake cannot be judged: nothing was measured.",)
    assert [verdict.state for verdict in findings.verdicts] == [CANNOT_TELL] * 2
    assert any("a positive, a negative and a neutral word" in notice.text for notice in findings.notices)


def test_a_model_that_calls_nearly_everything_positive_is_told_to_have_a_ceiling(files):
    class Optimist(FakeSentiment):
        def _label(self, word, evidence):
            return super()._label(word, evidence + 2.0)

    plan = plan_of(files, ks=(1,), shift_words_limit=5)
    # negative reviews: P(N(−1 + 2, 1) > 0) = .84, positive ones nearly all
    (text,) = [notice.text for notice in summary(plan, Optimist()).notices if "ceiling" in notice.text]
    assert "positive before any word is appended" in text
    assert not [notice for notice in summary(plan, FakeSentiment()).notices if "ceiling" in notice.text]


def test_a_sample_of_words_is_said_to_be_one(files):
    findings = summary(plan_of(files, ks=(1,), shift_words_limit=5), FakeSentiment())
    assert any("sample of at most 5 words" in notice.text for notice in findings.notices)
    assert len(rows_of(findings, "shift")) == 5


# ---- several models, templates and label words


@pytest.fixture(scope="module")
def two_models(files):
    """A model with one lean, and a checkpoint tuned from it that keeps it and has two more."""
    records, plans = MemoryRecords(), []
    before = dataclasses.replace(fake_model("before"), weights="aa")
    after = dataclasses.replace(fake_model("after"), weights="bb", tuning={"base": "aa"})
    leans = {"before": {"plain0": -2.0}, "after": {"plain0": -2.0, "plain1": -2.0, "plain2": 2.0}}
    for seed, model in enumerate((before, after)):
        plans.append(plan_of(files, model=model, ks=(1,), shift_words_limit=4, draws=199))
        ask_sentiment(PROBE, plans[-1], FakeSentiment(lean=leans[model.name], seed=seed), records)
    return PROBE.findings(plans, records)


def test_growth_from_a_model_to_the_checkpoint_tuned_from_it(two_models):
    where = {"model": "before", "tuned": "after", "test": "association", "m_or_k": "m = 1", "rule": PAPER_AND_Q}
    negative = row_of(two_models, "tuning", sign="negative", **where)
    assert (negative.labels["before"], negative.labels["after"], negative.labels["kept"]) == (1, 2, 1)
    assert (negative.labels["gained"], negative.labels["lost"]) == ("1: plain1", "0")
    assert negative.labels["growth_percent"] == "+100.0"
    assert negative.estimate == pytest.approx(1 / 60)
    positive = row_of(two_models, "tuning", sign="positive", **where)
    assert (positive.labels["before"], positive.labels["after"]) == (0, 1)
    assert positive.labels["growth_percent"] == ""  # from none there is no percentage
    assert {row.labels["tuned"] for row in rows_of(two_models, "tuning")} == {"after"}
    figure = two_models.figures[0]
    assert (figure.name, figure.table) == ("tuning", "tuning")
    used = {figure.y, figure.color, figure.column, *figure.menus, *figure.filters}
    assert used <= set(negative.labels)
    (verdict,) = [each for each in two_models.changes if each.measure.startswith(AFTER)]
    assert (verdict.before, verdict.after, verdict.state) == ("before", "after", "no change found")
    assert (verdict.lean_before, verdict.lean_after, verdict.n) == (
        pytest.approx(1 / 60),
        pytest.approx(3 / 60),
        60,
    )
    assert verdict.trainings == (pytest.approx(3 / 60),)
    assert "one training, so the interval leaves out what another seed would change" in two_models.headlines[0]
    # one gained, none lost: a = 2/62, b = 1/62, d = 1/62; √((3/62 − 1/62²)/62) = .02786, · 1.95996 = .0546
    assert (negative.low, negative.high) == pytest.approx((1 / 62 - 0.0546, 1 / 62 + 0.0546), abs=1e-4)


def test_several_trainings_have_a_row_together_and_one_each(files):
    records, plans = MemoryRecords(), []
    leans = {
        "before": {},
        "after-seed-0": {"plain1": -2.0},
        "after-seed-1": {"plain1": -2.0, "plain2": -2.0, "plain3": -2.0},
    }
    for number, (name, lean) in enumerate(leans.items()):
        tuning = {"base": "aa", "method": "prompt", "seed": name[-1]} if number else {}
        model = dataclasses.replace(fake_model(name), weights=name if number else "aa", tuning=tuning)
        plans.append(plan_of(files, model=model, ks=(1,), shift_words="none", draws=199))
        ask_sentiment(PROBE, plans[-1], FakeSentiment(lean=lean, seed=0), records)
    found = PROBE.findings(plans, records)
    where = {"test": "association", "m_or_k": "m = 1", "rule": PAPER_AND_Q, "sign": "negative"}
    rows = [row_of(found, "tuning", tuned=name, **where) for name in ("after (2 trainings)", *list(leans)[1:])]
    arm, *seeds = rows
    assert [row.labels["after"] for row in rows] == [2.0, 1.0, 3.0]
    assert (arm.labels["gained"], arm.labels["before"], arm.labels["interpretable"]) == ("–", 0, "yes")
    assert [row.labels["line"] for row in rows] == ["mean", "seed 0", "seed 1"]
    assert [row.estimate for row in rows] == pytest.approx([2 / 60, 1 / 60, 3 / 60])
    assert arm.high - arm.low > sum(row.high - row.low for row in seeds) / 2
    of_arm = [row for row in rows_of(found, "tuning") if row.labels["trainings"] == 2]
    assert len(of_arm) == len(rows_of(found, "tuning")) / 3
    expected = benjamini_hochberg([row.p for row in of_arm]).tolist()
    assert [row.q for row in of_arm] == pytest.approx(expected, nan_ok=True)
    (table,) = [each for each in found.tables if each.name == "tuning"]
    assert "hold what differs between them" in table.caption


def test_growth_of_what_does_not_move_has_an_interval_and_of_what_means_nothing_a_mark(files):
    records, plans = MemoryRecords(), []
    models = [fake_model("before"), dataclasses.replace(fake_model("after"), weights="bb")]
    models = [dataclasses.replace(models[0], weights="aa"), dataclasses.replace(models[1], tuning={"base": "aa"})]
    for model in models:  # the same answers twice, and no sense of sentiment
        plans.append(plan_of(files, model=model, shift_words="none", draws=199))
        ask_sentiment(PROBE, plans[-1], FakeSentiment(sense=0.0), records)
    findings = PROBE.findings(plans, records)
    row = row_of(findings, "tuning", m_or_k="m = 1", rule=PAPER_AND_Q, sign="either")
    # a = b = 1/62: 1.95996 · √(2/62/62) = .0447
    assert (row.estimate, row.low, row.high) == pytest.approx((0, -0.0447, 0.0447), abs=1e-4)
    assert row.labels["interpretable"] == "no"
    assert {each.state for each in findings.verdicts} == {CANNOT_TELL}
    assert {row.labels["interpretable"] for row in rows_of(findings, "leans")} == {"no"}


def test_words_that_models_share(two_models):
    where = {"test": "association", "m_or_k": "m = 1", "rule": PAPER_AND_Q}
    negative = row_of(two_models, "shared_words", sign="negative", **where)
    assert (negative.estimate, negative.n, negative.labels["words"]) == (0.5, 2, "plain0")
    either = row_of(two_models, "shared_words", sign="either", **where)
    assert (either.estimate, either.n) == (pytest.approx(1 / 3), 3)
    assert rows_of(two_models, "overlap", model="all models together")


def test_verdicts_with_other_templates_and_label_words(files):
    templates, labels = ("It was [MASK]", "Just [MASK]!"), ("great/terrible", "good/bad")

    class OtherTemplate(FakeSentiment):
        """With the second template plain0 leans the other way."""

        def _lean(self, word):
            return super()._lean(word) * (-1 if self.second and word == "plain0" else 1)

        def __call__(self, request):
            self.second = request.text.endswith("!")
            return super().__call__(request)

    plan = plan_of(files, templates=templates, labels=labels, ks=(1,), shift_words_limit=5)
    findings = summary(plan, OtherTemplate(lean={"plain0": 2.0, "plain1": -2.0}))
    where = {"test": "association", "m_or_k": "m = 1", "rule": PAPER_AND_Q, "template": "Just [MASK]!"}
    same = row_of(findings, "variants", measure="same verdict", **where)
    assert same.labels["changed_words"] == "plain0"
    assert same.estimate == pytest.approx(59 / 60)
    # 58 words without a verdict and plain1 agree, plain0 does not
    # p_o = 59/60, p_e = (58² + 1 · 2 + 1 · 0) / 60² = .935: κ = (.98333 − .935) / (1 − .935) = .74359
    assert row_of(findings, "variants", measure="kappa", **where).estimate == pytest.approx(0.74359, abs=1e-4)
    assert {row.labels["labels"] for row in rows_of(findings, "variants", test="shift")} == {"good/bad"}
    assert len(rows_of(findings, "accuracy", source="all", reviews="all reviews")) == 4


def test_label_words_that_say_nothing_are_marked_and_so_is_their_comparison(files):
    templates, labels = ("It was [MASK]", "Just [MASK]!"), ("great/terrible", "calm/loud")
    plan = plan_of(files, templates=templates, labels=labels, ks=(1,), shift_words_limit=5)
    findings = summary(plan, FakeSentiment())
    for table in ("shift", "relative_shift", "shift_by_k", "accuracy"):
        marks = {
            pair: {row.labels["interpretable"] for row in rows_of(findings, table, labels=pair)} for pair in labels
        }
        assert marks == {"great/terrible": {"yes"}, "calm/loud": {"no"}}
    assert {row.labels["interpretable"] for row in rows_of(findings, "variants", test="shift")} == {"no"}
    # what does not ask these words is not touched by them
    for table in ("association", "biased_words", "ranked_words"):
        assert {row.labels["interpretable"] for row in rows_of(findings, table)} == {"yes"}
    warnings = [notice.text for notice in findings.notices if notice.level == "warning"]
    assert len(warnings) == 2
    assert all("with the label words calm/loud: it labels" in text for text in warnings)
    assert ["Just [MASK]!" in text for text in warnings] == [False, True]
