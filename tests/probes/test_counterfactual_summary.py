"""What the counterfactual audit concludes: worked by hand, planted moods, even models, people's judgements."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from fake_generator import COLOURS, generator, numbers, rows_of, uniform, write_attribute
from fake_records import ask, fake_model, plan_for
from scipy.stats import kstest

from clinometer.metrics import (
    epsilon_verdict,
    group_fairness,
    individual_fairness,
    wasserstein1,
    worst_by_chance,
)
from clinometer.metrics.fairness_ranks import shuffled_places
from clinometer.metrics.value_means import against_whole
from clinometer.probes.counterfactual import PROBE
from clinometer.probes.counterfactual.answers import ModelAnswers, Scores, read_answers
from clinometer.probes.counterfactual.measures import measure
from clinometer.probes.counterfactual.questions import asked_attributes
from clinometer.probes.counterfactual.tables import fairness_rows
from clinometer.types import (
    Classify,
    ClassifyAnswer,
    Embed,
    EmbedAnswer,
    LogLikelihood,
    LogLikelihoodAnswer,
    Sample,
    TextAnswer,
)

HAPPY, SAD = ClassifyAnswer(negative=0, neutral=0, positive=1), ClassifyAnswer(negative=1, neutral=0, positive=0)
SILENT = ClassifyAnswer(negative=0, neutral=1, positive=0)


def planned(tmp_path, *, seed=0, values=COLOURS, templates=2, subgroups=None, **options):
    file = write_attribute(tmp_path / "colour.toml", values=values, templates=templates, subgroups=subgroups)
    plan = plan_for(
        PROBE,
        model=fake_model("writer", capabilities=("sample", "log_likelihood")),
        seed=seed,
        **{"attributes": (), "attribute_file": file, "samples": 40, "draws": 199, **options},
    )
    scorers = (
        replace(fake_model("opinions", capabilities=("classify",)), family="opinion-words"),
        fake_model("classes", capabilities=("classify",)),
    )
    return replace(plan, roles={"scorer": scorers, "encoder": (fake_model("e", capabilities=("embed",)),)})


def concluded(plan, model):
    """Let a fake write, and two scorers and an encoder read what it wrote."""

    def answer(item):
        request = item.request
        match request:
            case Sample():
                return model.sample([request])[0]
            case LogLikelihood():
                return LogLikelihoodAnswer(logprob=-3.0, tokens=2) if "red" in request.text else _rare
            case Classify():
                words = request.text.split()
                return HAPPY if "good" in words else SAD if "bad" in words else SILENT
            case Embed():
                return EmbedAnswer(vector=(0.6, 0.8) if "good" in request.text.split() else (1.0, 0.0))

    return PROBE.findings([plan], ask(PROBE, plan, answer))


_rare = LogLikelihoodAnswer(logprob=-1.0, tokens=2)


TEXTS = {"h": " good", "s": " bad red", "n": " so", "-": "  "}


class Scripted:
    """Writes what a table says: prefix -> one letter a text, h(appy), s(ad), n(either) or -, nothing."""

    def __init__(self, script):
        self.script = script

    def sample(self, requests):
        return [
            TextAnswer(texts=tuple(TEXTS[letter] for letter in self.script[request.prefix]))
            for request in requests
        ]


BY_HAND = {
    "The red house is": "hhhs",  # scores 1, 1, 1, 0
    "The blue house is": "sssh",
    "We met at a red door, and": "hhss",
    "We met at a blue door, and": "shsh",
}


@pytest.fixture
def by_hand(tmp_path):
    text = tmp_path / "held-out.txt"
    text.write_text("The red house.\n\nA Blue one.\n\nNothing of the kind, hundred.\n")
    plan = planned(tmp_path, values=["red", "blue"], samples=4, text_file=str(text), similarity=0.5)
    return concluded(plan, Scripted(BY_HAND))


def test_distances_by_hand(by_hand):
    def measured(measure):
        (row,) = rows_of(by_hand, "fairness", measure=measure, scorer="classes", quantity="measured")
        return row.estimate

    # template 1: red has 3/4 ones, blue 1/4: W1 = 1/2; template 2: 1/2 both: 0
    assert measured("I.F.") == pytest.approx((0.5 + 0) / 2)
    # pooled: red 5/8, blue 3/8, everything 1/2
    assert measured("G.F.") == pytest.approx((1 / 8 + 1 / 8) / 2)
    assert measured("demographic disparity") == pytest.approx(0.25)  # the scores are 0 and 1
    assert numbers(rows_of(by_hand, "templates", scorer="classes")) == pytest.approx([0.5, 0])
    assert numbers(rows_of(by_hand, "pairs", scorer="classes")) == pytest.approx([0.25])
    assert numbers(rows_of(by_hand, "subgroups", scorer="classes")) == pytest.approx([1 / 8, 1 / 8])


def test_values_and_verdict_by_hand(by_hand):
    rows = rows_of(by_hand, "values", scorer="classes")
    found = {(row.labels["template"], row.labels["value"]): row.estimate for row in rows}
    # 3/4 and 1/4 lie 1/4 from their mean; over both templates half of that
    assert found["all templates", "red"] == pytest.approx(1 / 8)
    assert found["The {value} house is", "blue"] == pytest.approx(-1 / 4)
    assert found["We met at {a_value} door, and", "red"] == pytest.approx(0)
    assert rows[0].labels["value"] == "blue"  # the lowest comes first
    worst, share = rows_of(by_hand, "verdict", scorer="classes")
    assert (worst.estimate, share.estimate) == pytest.approx((0.5, 0.5))  # one of two pairs is not below .1
    assert worst.labels["verdict"] == "not below ε"


def test_distributions_by_hand(by_hand):
    at_zero = rows_of(by_hand, "distributions", scorer="classes", score=0.0)
    found = {(row.labels["value"], row.labels["line"]): row.estimate for row in at_zero}
    assert found["red", "this value"] == pytest.approx(3 / 8)  # sad ones among its 8 texts
    assert found["blue", "everything"] == pytest.approx(1 / 2)
    assert all(row.estimate == 1 for row in rows_of(by_hand, "distributions", score=1.0))


def test_guards_by_hand(by_hand):
    # happy texts have cosine .6 with a prefix (above .5), sad ones 1: all 16
    (similar,) = rows_of(by_hand, "relevance", measure="S.S.", value="all values")
    assert (similar.estimate, similar.n) == (1, 16)
    mentions = {row.labels["value"]: row.estimate for row in rows_of(by_hand, "relevance", measure="S.S.c")}
    # sad texts say "red": 3 of red's 8, and none of blue's says "blue"
    assert mentions == pytest.approx({"all values": 3 / 16, "red": 3 / 8, "blue": 0})
    whole, about = rows_of(by_hand, "perplexity")
    # −3, −1 and −3 ("hundred" holds the letters of red, but the fake goes by those) over 2 tokens each
    assert whole.estimate == pytest.approx(math.exp(7 / 6))
    assert about.estimate == pytest.approx(math.exp(4 / 4))  # "hundred" is no sensitive token, "Blue" is
    assert (about.n, about.labels["tokens"]) == (2, 4)


def test_scores_of_three_classes_and_of_none(tmp_path):
    script = dict.fromkeys(BY_HAND, "hsn-")
    plan = planned(tmp_path, values=["red", "blue"], samples=4)
    found = concluded(plan, Scripted(script))
    (mean,) = rows_of(found, "scorers", scorer="classes", measure="mean score")
    assert (mean.estimate, mean.n) == (0.5, 12)  # 1, 0 and 1/2; the empty ones are missing
    (silent,) = rows_of(found, "scorers", measure="texts without an opinion word")
    assert silent.labels["scorer"] == "opinions"
    assert silent.estimate == pytest.approx(1 / 3)
    (empty,) = [notice for notice in found.notices if "wrote nothing" in notice.text]
    assert (empty.level, "25.0 %" in empty.text) == ("warning", True)


def test_a_classifier_that_does_not_sum_to_one(tmp_path):
    plan = planned(tmp_path, values=["red", "blue"], samples=2, templates=1)

    def answer(item):
        if isinstance(item.request, Sample):
            return Scripted({"The red house is": "hh", "The blue house is": "ss"}).sample([item.request])[0]
        if isinstance(item.request, Embed):
            return EmbedAnswer(vector=(1.0, 0.0))
        return ClassifyAnswer(negative=0.1, neutral=0.2, positive=0.1)

    answers = read_answers(plan, ask(PROBE, plan, answer))
    assert answers.scores[0].values == pytest.approx(np.full((2, 2), 0.5))  # (.1 + .1)/.4


def test_a_planted_mood_is_found_with_its_size(tmp_path):
    plan = planned(tmp_path, templates=6, samples=60, seed=2)
    found = concluded(plan, generator({"red": 0.9, "blue": 0.1}))
    for scorer in ("opinions", "classes"):
        # |difference| of the six pairs: .8, .4 four times, 0; a subgroup lies |mood − .5| from everything
        for name, truth in (("I.F.", (0.8 + 4 * 0.4) / 6), ("G.F.", (0.4 + 0.4) / 4)):
            measured, chance, excess = rows_of(found, "fairness", scorer=scorer, measure=name)
            assert measured.low < truth < measured.high
            assert excess.estimate == pytest.approx(measured.estimate - chance.estimate)
            assert 0 < excess.low < excess.high
            assert excess.q < 0.05
        overall = rows_of(found, "values", scorer=scorer, template="all templates")
        differences = {row.labels["value"]: row for row in overall}
        assert differences["red"].low < 0.4 < differences["red"].high
        assert differences["blue"].low < -0.4 < differences["blue"].high
        assert differences["red"].q < 0.05
        assert differences["blue"].q < 0.05
        (far,) = rows_of(found, "pairs", scorer=scorer, value="red", other="blue")
        assert far.low < 0.8 < far.high
        assert far.q < 0.05
        (even,) = rows_of(found, "pairs", scorer=scorer, value="green", other="grey")
        assert even.q > 0.05
    *firsts, last = found.headlines
    assert all("writes more or less positively when only the colour changes" in line for line in firsts)
    assert [verdict.state for verdict in found.verdicts] == ["lean", "lean"]
    assert "more positive than the whole by every scorer (q < 0.05): red;" in last


def test_an_even_model_stays_quiet(tmp_path):
    found = concluded(planned(tmp_path, templates=5), generator())
    assert [verdict.state for verdict in found.verdicts] == ["none found", "none found"]
    assert len(found.headlines) == 2
    assert all("was not found to write differently" in line for line in found.headlines)
    assert all(row.q > 0.05 for row in rows_of(found, "fairness", quantity="excess"))
    assert all(row.q > 0.05 for row in rows_of(found, "values", template="all templates"))


def test_p_values_of_even_models_are_uniform():
    p = []
    for seed in range(60):
        scores = np.array(
            [[[round(uniform(seed, t, v, at), 1) for at in range(12)] for v in range(3)] for t in range(2)]
        )
        p.append(against_whole(scores, rng=np.random.default_rng(seed), draws=199).p[0])
    p = np.array(p)
    # 180 p-values, 60 of them independent: their mean has a standard error of about .3/√60 = .04
    assert abs(p.mean() - 0.5) < 0.12
    assert 0 < (p <= 0.2).mean() < 0.33  # expected .2, standard error .05
    assert p.min() >= 1 / 200


def test_p_values_of_even_models_are_uniform_through_the_audit(tmp_path):
    p = []
    for seed in range(30):
        plan = planned(tmp_path, seed=seed, values=["red", "blue", "green"], samples=10, draws=100)
        attributes = asked_attributes(plan.options, seed=seed)
        values = np.array([[uniform(seed, at, sample) ** 2 for sample in range(10)] for at in range(6)])
        scores = Scores(scorer="s", values=values, without_opinion=math.nan)
        answers = ModelAnswers(
            model="writer",
            options=plan.options,
            seed=seed,
            attributes=attributes,
            texts=None,
            scores=(scores,),
        )
        (found,) = measure(answers)
        p.append([row.p for row in fairness_rows([found]) if row.labels["quantity"] == "excess"])
    p = np.array(p)  # seeds × I.F., G.F., disparity
    # the mean of 30 uniform numbers has a standard error of .289/√30 = .053; a share of .2 one of .073
    assert np.abs(p[:, :2].mean(axis=0) - 0.5).max() < 0.16
    assert ((p[:, :2] <= 0.2).mean(axis=0) < 0.42).all()
    assert (p.max(axis=0) > 0.8).all()


def test_a_value_about_which_nothing_is_written_is_missing_and_not_zero(tmp_path):
    script = dict.fromkeys(BY_HAND, "hshs") | {"The red house is": "----", "We met at a red door, and": "----"}
    script |= {prefix.replace("red", "green"): "hhss" for prefix in BY_HAND}
    found = concluded(planned(tmp_path, values=["red", "blue", "green"], samples=4), Scripted(script))
    pairs = {(row.labels["value"], row.labels["other"]): row for row in rows_of(found, "pairs", scorer="classes")}
    assert math.isnan(pairs["red", "blue"].estimate)
    assert math.isnan(pairs["red", "blue"].labels["by_chance"])
    assert pairs["blue", "green"].estimate == 0
    (measured,) = rows_of(found, "fairness", scorer="classes", measure="I.F.", quantity="measured")
    assert measured.estimate == 0
    values = {row.labels["value"]: row for row in rows_of(found, "values", scorer="classes")[:3]}
    assert math.isnan(values["red"].estimate)
    assert values["blue"].estimate == 0


def test_against_the_whole_equals_a_plain_loop():
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=(2, 3, 7))
    scores[0, 1, :2] = np.nan
    found = against_whole(scores, rng=rng, draws=100)
    means = [[np.nanmean(scores[t, v]) for v in range(3)] for t in range(2)]
    for v in range(3):
        each, variance = [], 0.0
        for t in range(2):
            each.append(means[t][v] - sum(means[t]) / 3)
            for w in range(3):
                known = scores[t, w][~np.isnan(scores[t, w])]
                variance += ((v == w) - 1 / 3) ** 2 * known.var(ddof=1) / len(known)
        assert found.estimate[0, v] == pytest.approx(sum(each) / 2)
        assert found.estimate[2, v] == pytest.approx(each[1])
        half = 1.959964 * math.sqrt(variance) / 2
        assert (found.low[0, v], found.high[0, v]) == pytest.approx((sum(each) / 2 - half, sum(each) / 2 + half))


def test_values_without_texts_do_not_count_among_the_whole():
    scores = np.random.default_rng(4).uniform(size=(1, 3, 6))
    scores[0, 2] = np.nan
    found = against_whole(scores, rng=np.random.default_rng(0), draws=100)
    # two values are left: each lies half of their difference from the mean of both, with half of its error
    one, other = scores[0, :2]
    half = 1.959964 * math.sqrt(one.var(ddof=1) / 6 + other.var(ddof=1) / 6) / 2
    assert found.estimate[0, 0] == pytest.approx((one.mean() - other.mean()) / 2)
    assert found.high[0, 0] - found.estimate[0, 0] == pytest.approx(half)
    assert np.isnan([found.estimate[0, 2], found.p[0, 2], found.low[0, 2]]).all()
    scores[0, 1] = np.nan  # the first is now alone: there is no whole to set it against
    alone = against_whole(scores, rng=np.random.default_rng(0), draws=100)
    assert np.isnan([alone.estimate, alone.low, alone.high]).all()
    assert np.isnan(alone.p).all()


def test_one_text_has_no_spread():
    scores = np.array([[[0.2, 0.4, 0.9], [0.5, np.nan, np.nan]]])
    found = against_whole(scores, rng=np.random.default_rng(0), draws=100)
    assert found.estimate[0] == pytest.approx([0, 0])
    assert np.isnan([found.low, found.high]).all()


def test_few_texts_of_one_value_are_no_finding():
    """A value with 4 texts among 40 is further out by chance than the others: shuffles must show that."""
    rng = np.random.default_rng(6)
    single, worst = [], []
    for _ in range(60):
        scores = rng.uniform(size=(2, 3, 40))
        scores[:, 0, 4:] = np.nan
        single.append(against_whole(scores, rng=rng, draws=99).p[0, 0])
        worst.append(judged(scores, epsilon=0.1, rng=rng).worst_p)
    for p in (single, worst):
        # of 60 uniform p-values 6 are up to .1, standard error 2.3; with equal numbers in the shuffles it was 30
        assert np.mean(np.array(p) <= 0.1) < 0.1 + 4 * math.sqrt(0.1 * 0.9 / 60)
        assert kstest(p, "uniform").pvalue > 0.002


def judged(scores, *, epsilon, rng):
    (by_chance,) = worst_by_chance([scores], epsilon=epsilon, rng=rng)
    return epsilon_verdict(scores, epsilon=epsilon, by_chance=by_chance)


def test_nothing_to_compare_is_no_verdict():
    scores = np.full((1, 2, 3), np.nan)
    scores[0, 0] = 0.1, 0.2, 0.3
    found = judged(scores, epsilon=0.1, rng=np.random.default_rng(0))
    assert (found.fair, found.compared) == (False, 0)
    assert np.isnan([found.worst, found.worst_null, found.worst_p, found.share, found.share_null]).all()


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.9])
@pytest.mark.parametrize("missing", [False, True])
def test_the_worst_pair_of_a_shuffle_is_that_of_all_pairs(epsilon, missing):
    """Most pairs are settled by the triangle inequality: what is found is what measuring every pair gives."""
    rng = np.random.default_rng(3)
    scores = rng.beta(2, 5, size=(4, 6, 25))
    scores[1] = scores[1] ** 4  # a template whose pairs are all near each other
    scores[2] = np.round(scores[2], 1)
    if missing:
        scores[0, 2, 9:], scores[1, 4], scores[3, 1:] = np.nan, np.nan, np.nan
    (found,) = worst_by_chance([scores], epsilon=epsilon, rng=np.random.default_rng(1), draws=60)
    sizes, rng = (~np.isnan(scores)).sum(axis=2), np.random.default_rng(1)
    templates = [at for at, each in enumerate(sizes) if (each > 0).sum() > 1]
    dealt = [shuffled_places(sizes[at], 60, rng) for at in templates]
    for shuffle in range(60):
        distances = []
        for at, places in zip(templates, dealt, strict=True):
            ordered = np.sort(scores[at][~np.isnan(scores[at])])
            ends = np.cumsum(sizes[at])[:-1]
            given = [each for each in np.split(ordered[places[shuffle]], ends) if len(each)]
            distances += [wasserstein1(one, other) for one, other in combinations(given, 2)]
        assert found.distance[shuffle] == pytest.approx(max(distances))
        assert found.share[shuffle] == pytest.approx(np.mean(np.array(distances) >= epsilon))
    assert found.distance.std() > 0


def test_the_worst_pair_by_chance():
    rng = np.random.default_rng(0)
    even, far = rng.uniform(size=(2, 4, 3, 30))
    far[:, 0] = far[:, 0] / 4
    quiet, loud = (judged(each, epsilon=0.2, rng=rng) for each in (even, far))
    assert quiet.worst_p > 0.05 > loud.worst_p
    assert quiet.worst == pytest.approx(quiet.worst_null, abs=0.1)
    assert (loud.fair, loud.compared, loud.share > 0.5) == (False, 12, True)


def test_subgroups_are_compared(tmp_path):
    groups = {"warm": ["red", "orange"], "cold": ["blue", "green"]}
    plan = planned(tmp_path, subgroups=groups, templates=5)
    found = concluded(plan, generator({"red": 0.9, "orange": 0.9}, default=0.2))
    rows = rows_of(found, "subgroups", scorer="classes")
    assert [row.labels["subgroup"] for row in rows] == ["warm", "cold"]
    assert all(row.q < 0.05 for row in rows)
    assert {row.labels["value"] for row in rows_of(found, "distributions")} >= {"all warm", "all cold", "red"}
    (figure,) = [figure for figure in found.figures if figure.name == "values_colour"]
    assert figure.color == "subgroup"


def test_reservations_are_said(tmp_path):
    quick = plan_for(PROBE, model=fake_model("writer", capabilities=("sample",)), samples=8, max_values=3)
    plan = replace(planned(tmp_path), options=replace(quick.options, attributes=("name",), max_templates=2))
    plan = replace(plan, options=replace(plan.options, temperature=0.7))
    found = concluded(plan, generator())
    texts = {
        notice.level: " ".join(n.text for n in found.notices if n.level == notice.level)
        for notice in found.notices
    }
    assert "Only 8 continuations" in texts["warning"]
    assert "up to about 0.18 arise by chance" in texts["warning"]  # .5/√8
    assert "3 of 34 values" in texts["warning"]
    assert "2 of 10 templates" in texts["warning"]
    assert "temperature 0.7" in texts["info"]
    assert "Perplexity was not measured" in texts["info"]
    assert "these templates alone" in texts["info"]
    assert "paper's WMT-19" not in texts["info"]  # which prints nothing about names
    jobs = replace(plan, options=replace(plan.options, attributes=("occupation",)))
    told = [notice.text for notice in concluded(jobs, generator()).notices]
    assert any("WMT-19 baseline has an I.F. of 0.333 between designer and accountant" in text for text in told)


def write_ratings(path, ratings):
    lines = ["sentence,context,rater_ann,rater_bob"]
    lines += [f'"{sentence}",,{ann},{bob}' for sentence, (ann, bob) in ratings.items()]
    path.write_text("\n".join(lines))
    return str(path)


def test_what_people_said_is_read_back(tmp_path):
    letters = {"The red house is": "hhhhhs", "The blue house is": "ssssss"}
    texts = {
        prefix: tuple(f"{TEXTS[letter]} {at}" for at, letter in enumerate(script))
        for prefix, script in letters.items()
    }

    class Numbered:
        def sample(self, requests):
            return [TextAnswer(texts=texts[request.prefix]) for request in requests]

    said = {}
    for prefix, script in letters.items():
        for at, letter in enumerate(script):
            rating = "positive" if letter == "h" else "negative"
            said[prefix + texts[prefix][at]] = (rating, rating)
    said["The red house is good 0"] = ("positive", "neutral")  # mean .75
    said["Nobody wrote this."] = ("mixed", "negative")
    human = write_ratings(tmp_path / "sentiment.csv", said)
    relevant = {
        sentence: ("relevant", "relevant") if "good" in sentence else ("irrelevant", "somewhat relevant")
        for sentence in said
    }
    relevance = write_ratings(tmp_path / "relevance.csv", relevant)
    plan = planned(
        tmp_path,
        values=["red", "blue"],
        templates=1,
        samples=6,
        human_file=human,
        human_relevance_file=relevance,
    )
    found = concluded(plan, Numbered())
    (kappa,) = rows_of(found, "human_agreement", question="sentiment")
    # 13 sentences, 11 of them alike. ann: 5 positive, 7 negative, 1 mixed; bob: 4, 8, 0, and 1 neutral
    expected = (5 * 4 + 7 * 8) / 13**2
    assert kappa.estimate == pytest.approx((11 / 13 - expected) / (1 - expected))
    assert (kappa.labels["rater"], kappa.labels["other"], kappa.n) == ("ann", "bob", 13)
    (row,) = rows_of(found, "human_correlation", measure="classes")
    # ranks: the scorer has 5 happy (mean rank 10) and 7 sad (4); people 4 of the happy 10.5, one 8, the sad 4
    scipy = pytest.importorskip("scipy.stats")
    happy = [1] * 5 + [0] * 7
    people = [0.75, 1, 1, 1, 1] + [0] * 7
    assert row.estimate == pytest.approx(scipy.spearmanr(happy, people).statistic)
    assert row.n == 12
    (similar,) = rows_of(found, "human_correlation", measure="S.S. (e)")
    assert similar.estimate == pytest.approx(-1)  # happy texts are relevant, and further from the prefix
    (fairness,) = rows_of(found, "human_fairness")
    # red: .75, 1, 1, 1, 1, 0; blue: all 0
    assert fairness.estimate == pytest.approx(4.75 / 6)
    assert fairness.p < 0.05
    texts = [notice.text for notice in found.notices]
    assert any("1 of the 13 sentences of sentiment.csv were not written" in text for text in texts)
    assert any("1 of the 13 sentences of relevance.csv" in text for text in texts)


def test_a_sentence_that_anybody_calls_mixed_is_dropped(tmp_path):
    said = {"The red house is good": ("positive", "mixed"), "The blue house is bad red": ("negative", "negative")}
    human = write_ratings(tmp_path / "sentiment.csv", said)
    plan = planned(tmp_path, values=["red", "blue"], templates=1, samples=2, human_file=human)
    found = concluded(plan, Scripted({"The red house is": "hh", "The blue house is": "ss"}))
    (row,) = rows_of(found, "human_correlation", measure="classes")
    assert (row.n, math.isnan(row.estimate)) == (1, True)
    assert "human_fairness" not in {table.name for table in found.tables}  # too few sentences


def test_words_that_set_values_apart(tmp_path):
    plan = planned(tmp_path, values=["red", "blue"], samples=20)
    found = concluded(plan, generator({"red": 1.0, "blue": 0.0}))
    words = {row.labels["word"]: row for row in rows_of(found, "words", value="red", other="blue")}
    # 40 texts each of six words: "good" 40 times and never; (40 + 1)/(0 + 1)
    assert words["good"].estimate == pytest.approx(41)
    assert (words["good"].n, words["good"].labels["count_for_other"]) == (40, 0)
    assert "text" not in words


def test_the_measures_are_those_of_the_metrics(tmp_path):
    plan = planned(tmp_path, templates=3, subgroups={"warm": ["red", "orange"], "cold": ["blue", "green"]})
    model = generator({"red": 0.8})
    found = concluded(plan, model)
    scores = np.full((3, 4, 40), np.nan)
    for item in PROBE.questions(PROBE.stages(plan)[0], plan, None):
        at = item.tags["prefix"]
        texts = model.sample([item.request])[0].texts
        scores[at // 4, at % 4] = ["good" in text for text in texts]
    measured = {
        row.labels["measure"]: row.estimate
        for row in rows_of(found, "fairness", scorer="classes", quantity="measured")
    }
    assert measured["I.F."] == pytest.approx(individual_fairness(scores))
    assert measured["G.F."] == pytest.approx(group_fairness(scores, ["warm", "warm", "cold", "cold"]))
