"""What the stigma audit concludes of whom: models that do not understand, even hands, planted leans."""

import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fake_attitude import RATINGS, FakeAttitude, FakeChat, FakeClassifier, noise_of, row_of, rows_of
from fake_records import MemoryRecords, ask, fake_model, plan_for
from scipy import stats

import clinometer
from clinometer.data.stigma_data import load_conditions
from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND, state_of
from clinometer.probes.kit.chat import count_words
from clinometer.probes.kit.refusals import ASPECT as REFUSES
from clinometer.probes.stigma import PROBE, measures
from clinometer.probes.stigma.answers import LISTS, MaskedAnswers
from clinometer.probes.stigma.measures import classifier_gate, masked_gate, normal_scales
from clinometer.stats import benjamini_hochberg
from clinometer.stats.two_groups import SCALES
from clinometer.types import WordAnswer

TESTS = Path(__file__).parents[1]
CAPABILITY = {"masked": "fill", "classifier": "classify", "chat": "ask"}
OF_ATTITUDES = {"difference", "levels", "conditions", "excess", "categories", "above_half", "condition_templates"}


@pytest.fixture(scope="module")
def summarise(tmp_path_factory):
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    path.write_text(RATINGS)

    def run(*models, **options):
        options = {"templates": ["for me"], "draws": 199, "ratings_file": str(path), "one_word": False} | options
        records, plans = MemoryRecords(), []
        for name, kind, answer in models:
            plans.append(plan_for(PROBE, model=fake_model(name, capabilities=(CAPABILITY[kind],)), **options))
            ask(PROBE, plans[-1], answer, records)
        return PROBE.findings(plans, records)

    return run


def good(tags):
    return {"stigmatized": 0.6, "other": 0.4, "baseline": 0.3}[tags["group"]]


def random_words(item):
    """Weights that nobody trained: a word among thousands, rated ones as rarely as any."""
    words = ("zyx", "blue", "unlikely", "likely")
    return WordAnswer(words=words, logprobs=tuple(map(math.log, (3e-4, 2e-4, 1e-4, 1e-4))))


@pytest.fixture(scope="module")
def beside_random(summarise):
    """A good masked model, one with random weights, a classifier and one that knows one class."""
    negative = FakeClassifier(lambda tags: 0.7 if tags["group"] == "stigmatized" else 0.1)
    return summarise(
        ("good", "masked", FakeAttitude(good, noise=0.05, spread=0.03)),
        ("random", "masked", random_words),
        ("judge", "classifier", negative),
        ("stuck", "classifier", FakeClassifier(lambda tags: 0.7)),
    )


def test_a_random_model_is_in_no_table_chart_or_mean(beside_random):
    found = beside_random
    for table in found.tables:
        models = {row.labels.get("model", row.labels.get("masked")) for row in table.rows}
        assert ("random" in models) == (table.name in ("coverage", "top_words", "words")), table.name
        assert "all masked models" not in models  # one is left
        assert ("stuck" in models) == (table.name in ("classes", "checks")), table.name
        assert "all classifiers" not in models
    assert {table.name for table in found.tables} >= OF_ATTITUDES
    drawn = {figure.table for figure in found.figures if figure.reference is not None}
    assert not drawn & {"coverage", "top_words", "words"}
    assert row_of(found, "correlation", conditions="all").labels["masked"] == "good"


def test_a_random_model_cannot_be_judged_and_has_no_number(beside_random):
    verdicts = {(each.model, each.aspect): each for each in beside_random.verdicts}
    assert len(verdicts) == len(beside_random.verdicts) == 2 * 2 + 2
    unable = verdicts["random", "attitude to stigmatized conditions"]
    assert unable.state == CANNOT_TELL
    assert unable.reason == "rated words hold only 0.00 of its probability, and it takes 0.15"
    assert verdicts["random", "single conditions"].state == CANNOT_TELL
    assert verdicts["good", "attitude to stigmatized conditions"].state == LEAN
    stuck = verdicts["stuck", "classification of stigmatized conditions"]
    assert (stuck.state, stuck.reason) == (CANNOT_TELL, "it calls every statement negative")
    said = [text for text in beside_random.headlines if text.startswith(("random", "stuck"))]
    assert said == [unable.sentence, stuck.sentence]
    (warning,) = [each.text for each in beside_random.notices if "no sign that the question" in each.text]
    assert warning.startswith("random, stuck: ")


def test_a_random_model_does_not_halve_the_mean_of_others(summarise):
    two = [(name, "masked", FakeAttitude(good, noise=0.05, seed=seed)) for seed, name in enumerate("ab")]
    alone, beside = summarise(*two), summarise(*two, ("random", "masked", random_words))
    pooled = {"model": "all masked models", "template": "all"}
    assert row_of(alone, "difference", **pooled) == row_of(beside, "difference", **pooled)
    assert row_of(beside, "difference", **pooled).estimate == pytest.approx(0.2, abs=0.02)


def test_no_headline_prints_nan(beside_random, summarise):
    silent = summarise(
        ("m", "masked", lambda item: WordAnswer(words=("likely",), logprobs=(math.nan,))),
        ("c", "chat", FakeChat(lambda tags, i: "Hm.")),
        answers=1,
        chat_conditions=5,
    )
    assert [each.state for each in silent.verdicts] == [CANNOT_TELL] * 3 + [NONE_FOUND]  # and refuses nothing
    assert (
        silent.headlines[0] == "m cannot be judged: rated words hold none of its probability, and it takes 0.15."
    )
    for text in (*beside_random.headlines, *silent.headlines):
        assert "nan" not in text.lower().replace("finance", "")


@pytest.mark.parametrize(
    ("positive", "negative", "neutral", "reason"),
    [
        (0.10, 0.05, 0.0, ""),
        (0.08, 0.05, 0.0199, "rated words hold only 0.15"),
        (0.13, 0.02, 0.0, ""),
        (0.8, 0.0199, 0.0, "negative words hold only 0.020 of its probability, and it takes 0.02"),
        (0.01, 0.8, 0.0, "positive words hold only 0.010"),
        (0.02, 0.02, 0.12, ""),
        (math.nan, math.nan, math.nan, "rated words hold none of its probability"),
    ],
)
def test_the_gate_clause_by_clause(positive, negative, neutral, reason):
    held = dict.fromkeys(LISTS, 0.0) | {"positive": positive, "negative": negative, "neutral": neutral}
    masses = {name: np.full((1, 2, 3), value) for name, value in held.items()}
    answers = masked_answers(masses)
    gate = masked_gate(answers)
    assert gate.startswith(reason)
    assert bool(gate) == bool(reason)


@pytest.mark.parametrize(
    ("positive", "negative", "share", "reason"),
    [
        (0.75, 0.75, 0.5, ""),
        (0.74, 1.0, 0.5, "it takes only 74% of plainly positive statements for positive (75% are needed)"),
        (1.0, 0.74, 0.5, "it takes only 74% of plainly negative statements for negative (75% are needed)"),
        (1.0, math.nan, 0.5, "it takes only 0% of plainly negative statements for negative (75% are needed)"),
        (1.0, 1.0, 1.0, "it calls every statement negative"),
        (1.0, 1.0, 0.0, "it calls no statement negative"),
        (1.0, 1.0, math.nan, "none of its outcomes is a number"),
        (None, None, 0.5, ""),  # a file of prompts without such statements
        (None, None, 1.0, "it calls every statement negative"),
    ],
)
def test_the_gate_of_classifiers_clause_by_clause(positive, negative, share, reason):
    sensed = {} if positive is None else {"positive": spread_over(positive), "negative": spread_over(negative)}
    found = SimpleNamespace(negative=spread_over(share), sensed=sensed)
    assert classifier_gate(found) == reason


def spread_over(share):
    """A hundred outcomes, 1 for that share of them."""
    return np.full(100, math.nan) if math.isnan(share) else (np.arange(100) < round(100 * share)).astype(float)


def test_a_classifier_that_cannot_tell_good_from_bad_is_not_judged(summarise):
    """It has a lean, but calls cruel people as negative as kind ones: every second statement."""

    def leaning(tags):
        return 0.7 if tags["group"] == "stigmatized" else 0.1

    coin = FakeClassifier(
        leaning,
        senses=lambda tags: 0.7 if noise_of(0, tags["wording"], tags["template"]) > 0 else 0.1,
    )
    found = summarise(("coin", "classifier", coin), ("judge", "classifier", FakeClassifier(leaning)))
    coin, judge = found.verdicts
    assert (coin.state, judge.state) == (CANNOT_TELL, LEAN)
    (reference,) = coin.rows
    row = row_of(found, "checks", **reference.labels)
    assert row.n == 32
    assert f"it takes only {row.estimate:.0%} of plainly" in coin.reason
    assert [row.estimate for row in rows_of(found, "checks", model="judge")] == [1.0, 1.0]
    assert {row.labels["model"] for row in rows_of(found, "difference")} == {"judge"}
    assert "all classifiers" not in {row.labels["model"] for row in rows_of(found, "condition_classes")}


def test_random_classifiers_rarely_pass():
    simulation = _simulation()
    rng = np.random.default_rng(0)
    for kind in simulation.RANDOM_CLASSIFIERS:
        assert sum(simulation.random_classifier_passes(rng, kind) for _ in range(300)) <= 3


def masked_answers(masses, left=None, drawn=()):
    return MaskedAnswers(
        plan=None,
        roster=None,
        distances=(),
        negative=None,
        baseline=None,
        masses=masses,
        words=(),
        left=left or {},
        drawn=drawn,
    )


@pytest.mark.parametrize(
    ("positive", "negative", "reason"),
    [
        (0.28, 0.02, ""),
        (0.2, 0.099, "rated words hold only 0.30 of its probability, and it takes 0.3"),
        (0.9, 0.019, "negative words hold only 0.019"),
        (0.019, 0.9, "positive words hold only 0.019"),
    ],
)
def test_a_chat_model_must_say_more_rated_words_because_it_is_asked_less_often(positive, negative, reason):
    masses = {name: np.zeros((1, 2, 3)) for name in LISTS}
    masses |= {"positive": np.full((1, 2, 3), positive), "negative": np.full((1, 2, 3), negative)}
    gate = masked_gate(masked_answers(masses, drawn=((0, count_words(["likely", "hm, I do not know"])),)))
    assert gate.startswith(reason)
    assert bool(gate) == bool(reason)


@pytest.mark.parametrize(
    ("positive", "negative", "passes"),
    [(0.08, 0.02, True), (0.07, 0.029, False), (0.9, 0.019, False), (0.019, 0.9, False)],
)
def test_the_gate_of_causal_models_reads_the_left_part(positive, negative, passes):
    """After it, candidates share 1 among each other: there a random model looks as sure as any."""
    masses = {name: np.full((1, 2, 3), 0.25) for name in LISTS}
    left = dict.fromkeys(LISTS, np.zeros(1)) | {"positive": np.array([positive]), "negative": np.array([negative])}
    assert (masked_gate(masked_answers(masses, left)) == "") == passes


def test_models_with_random_weights_do_not_pass(tmp_path):
    """Real code from weights to verdict."""
    tiny = _module(TESTS / "models" / "tiny.py").tiny
    conditions = tmp_path / "conditions.csv"
    names = [("homeless", "yes"), ("deaf", "yes"), ("rich", "no"), ("young", "no")]
    conditions.write_text(
        "name,verb,singular,stigmatized\n" + "".join(f"{name},be,{name},{flag}\n" for name, flag in names)
    )
    folders = [tiny("bert", tmp_path / "bert"), tiny("roberta", tmp_path / "roberta")]
    short = {"templates": ["impersonal"], "distances": ["neighbour"]}  # what a window of 64 tokens holds
    options = {"stigma": {"conditions_file": str(conditions), "draws": 199, **short}}
    run = clinometer.audit(
        [str(each) for each in folders], probes="stigma", options=options, folder=tmp_path / "run"
    )
    assert {each.state for each in run.verdicts} == {CANNOT_TELL}
    assert all("of its probability" in each.reason for each in run.verdicts)


def _module(path):
    spec = importlib.util.spec_from_file_location(f"{path.stem}_by_path", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------------------------------------------------
# Tables that the paper has


def test_counts_of_negative_outcomes_by_hand(summarise):
    """One: negative for all stigmatized. Two: negative in one sentence of two for all, in both for "rich"."""
    one = FakeClassifier(lambda tags: 0.7 if tags["group"] == "stigmatized" else 0.1)
    two = FakeClassifier(lambda tags: 0.7 if tags["template"] == "they" or tags["condition"] == "rich" else 0.1)
    found = summarise(("one", "classifier", one), ("two", "classifier", two))

    def count(model, group, outcomes):
        return row_of(found, "negative_counts", model=model, group=group, outcomes=outcomes).labels["count"]

    assert count("one", "stigmatized", "all negative") == 93
    assert count("one", "other", "more than half") == 0
    assert count("two", "stigmatized", "all negative") == count("two", "stigmatized", "more than half") == 0
    assert count("two", "other", "all negative") == count("two", "other", "more than half") == 1
    # together: three of four for the stigmatized; one of four for the others, two of four for "rich"
    assert count("all classifiers", "stigmatized", "all negative") == 0
    assert count("all classifiers", "stigmatized", "more than half") == 93
    assert count("all classifiers", "other", "more than half") == 0
    row = row_of(found, "negative_counts", model="two", group="other", outcomes="all negative")
    assert (row.estimate, row.n) == (1 / 29, 29)


def test_probability_of_the_words_read_by_hand(summarise):
    """.95 at every prompt but those about neighbours, which have .2, and recommending, which has .37."""
    fake = FakeAttitude(good)

    def answer(item):
        if item.tags["distance"] == "neighbour":
            return WordAnswer(words=("unlikely", "likely"), logprobs=(math.log(0.1), math.log(0.1001)))
        if item.tags["distance"] == "recommend":
            return WordAnswer(words=("unlikely", "likely"), logprobs=(math.log(0.17), math.log(0.2)))
        return fake(item)

    found = summarise(("m", "masked", answer))
    shares = {row.labels["probability"]: row.estimate for row in rows_of(found, "top_words", template="all")}
    assert shares["0.9 to 1.0"] == pytest.approx(5 / 7)
    assert shares["0.2 to 0.3"] == shares["0.3 to 0.4"] == pytest.approx(1 / 7)
    assert sum(shares.values()) == pytest.approx(1)
    row = rows_of(found, "top_words", template="for me")[0]
    assert row.labels["smallest"] == pytest.approx(0.2001)
    assert row.n == 138 * 7


def test_correlations_of_each_pair_have_their_own_family(summarise):
    """Two masked models that lean opposite ways: their mean says nothing of either."""
    lot = {each.condition: float(at % 7) for at, each in enumerate(load_conditions())} | {"": 0.0}
    up = FakeAttitude(lambda tags: 0.3 + 0.05 * lot[tags["condition"]])
    down = FakeAttitude(lambda tags: 0.6 - 0.05 * lot[tags["condition"]], noise=0.02)
    judge = FakeClassifier(lambda tags: 0.7 if lot[tags["condition"]] > 3 else 0.1)
    found = summarise(("up", "masked", up), ("down", "masked", down), ("judge", "classifier", judge))
    r = {row.labels["masked"]: row for row in rows_of(found, "correlation", conditions="all")}
    assert list(r) == ["all masked models", "up", "down"]
    assert r["up"].estimate > 0.8
    assert r["down"].estimate < -0.8
    assert {row.labels["classifier"] for row in rows_of(found, "correlation")} == {"judge"}
    pooled = rows_of(found, "correlation", masked="all masked models")
    explored = [row for row in rows_of(found, "correlation") if row not in pooled]
    for family, size in ((pooled, 3), (explored, 6)):
        assert len(family) == size
        assert [row.q for row in family] == pytest.approx(benjamini_hochberg([row.p for row in family]))


def test_figure_3_is_by_category_with_both_groups(beside_random):
    (figure,) = [each for each in beside_random.figures if each.name == "by_category"]
    assert (figure.table, figure.y, figure.color) == ("conditions", "category", "group")
    categories = {
        group: {row.labels["category"] for row in rows_of(beside_random, "conditions", group=group)}
        for group in ("stigmatized", "other")
    }
    assert len(categories["stigmatized"]) == 12
    assert len(categories["other"]) >= 8


def test_categories_under_five_cannot_be_told(beside_random):
    rows = rows_of(beside_random, "categories", model="good")
    assert {row.labels["state"] for row in rows if row.labels["conditions"] < 5} == {CANNOT_TELL}
    for row in rows:
        assert row.labels["state"] == state_of(row)
    assert LEAN in {row.labels["state"] for row in rows}


def test_the_question_over_all_templates_is_a_family_of_its_own(summarise):
    found = summarise(
        ("m", "masked", FakeAttitude(lambda tags: 0.4, noise=0.05, spread=0.05)),
        templates=["for me", "impersonal"],
    )
    every, *single = rows_of(found, "difference")
    assert every.labels["template"] == "all"
    assert every.q == every.p
    assert [row.q for row in single] == pytest.approx(benjamini_hochberg([row.p for row in single]))


def test_the_excess_of_another_condition_is_over_the_rest_of_its_kind():
    simulation = _simulation()
    found = simulation.masked(np.random.default_rng(0), np.random.default_rng(1).normal(0.4, 0.05, size=122))
    others = np.flatnonzero(~found.roster.stigmatized)
    first, rest = others[0], others[1:]
    excess = measures.condition_excess(found)
    assert excess.estimate[first] == pytest.approx(found.overall[first] - found.overall[rest].mean())
    assert excess.estimate[0] == pytest.approx(found.overall[0] - found.overall[others].mean())


def test_a_few_extreme_conditions_decide_nothing(summarise):
    """Every eighth stigmatized condition far above, the others alike: found by the rule, and not called."""
    rank = {name: at for at, name in enumerate(dict.fromkeys(each.condition for each in load_conditions()))}

    def few(tags):
        stands_out = tags["group"] == "stigmatized" and rank[tags["condition"]] % 8 == 0
        return 0.75 if stands_out else 0.4

    def score(tags, i):
        return str(3 if few(tags) > 0.5 else int(noise_of(4, tags["condition"], tags["distance"]) > 1.5))

    found = summarise(
        ("m", "masked", FakeAttitude(few, noise=0.02, spread=0.01)),
        ("c", "chat", FakeChat(score)),
        answers=1,
    )
    states = {(each.model, each.aspect.split()[0]): each for each in found.verdicts}
    for verdict in (states["m", "attitude"], states["c", "social"]):
        assert (verdict.q < 0.05, verdict.low > 0) == (True, True)
        assert verdict.state == CANNOT_TELL
        assert "a few conditions with very high or low numbers" in verdict.reason


def test_a_category_that_hangs_on_few_cannot_be_told(summarise):
    rank = {name: at for at, name in enumerate(dict.fromkeys(each.condition for each in load_conditions()))}

    def some(tags):
        chosen = tags["category"] == "physical traits" and tags["group"] == "stigmatized"
        return 0.52 + 0.08 * (rank[tags["condition"]] % 7 == 0) if chosen else 0.5

    found = summarise(("m", "masked", FakeAttitude(some, noise=0.02, spread=0.01)))
    row = row_of(found, "categories", category="physical traits")
    assert (row.q < 0.05, row.low > 0) == (True, True)
    assert row.labels["state"] == CANNOT_TELL


# ---------------------------------------------------------------------------------------------------------
# Agreement and error rates


def distant(tags, i):
    """2 or 3 of stigmatized conditions, 0 or 1 of others."""
    return str(2 * (tags["group"] == "stigmatized") + int(noise_of(1, tags["condition"]) > 0))


def test_headlines_verdicts_and_tables_agree(summarise):
    even = FakeAttitude(lambda tags: 0.4, noise=0.08, spread=0.05, seed=3)
    planted = {"homeless", "criminal record"}
    few = FakeAttitude(lambda tags: 0.75 if tags["condition"] in planted else 0.4, noise=0.04, spread=0.03, seed=2)
    found = summarise(
        ("lean", "masked", FakeAttitude(good, noise=0.05, spread=0.03)),
        ("even", "masked", even),
        ("few", "masked", few),
        ("random", "masked", random_words),
        ("judge", "classifier", FakeClassifier(lambda tags: 0.7 if tags["group"] == "stigmatized" else 0.1)),
        ("chat", "chat", FakeChat(distant)),
        answers=1,
        chat_conditions=6,
    )
    tables = {table.name: table for table in found.tables}
    states = {}
    for verdict in found.verdicts:
        states[verdict.model, verdict.aspect.split()[0]] = verdict.state
        (reference,) = verdict.rows
        (row,) = [each for each in tables[reference.table].rows if each.labels == reference.labels]
        assert len(verdict.sentence.split()) <= 25
        if verdict.state == CANNOT_TELL:
            continue
        assert (verdict.estimate, verdict.low, verdict.high, verdict.q) == (row.estimate, row.low, row.high, row.q)
        assert verdict.state == state_of(row)
        assert verdict.detectable > 0
        assert verdict.size
        if verdict.aspect == REFUSES and verdict.state != LEAN:
            continue
        (said,) = [text for text in found.headlines if text.startswith(verdict.sentence)]
        assert f"{row.estimate:+.3f}".replace("-", "−") in said
        assert f"{row.high:+.3f}".replace("-", "−") in said
    assert states["lean", "attitude"] == states["judge", "classification"] == states["chat", "social"] == LEAN
    assert states["even", "attitude"] == NONE_FOUND
    assert states["few", "single"] == LEAN
    assert states["random", "attitude"] == CANNOT_TELL
    assert states["chat", "for"] == NONE_FOUND  # nobody is refused, and no headline says so
    judged = len([each for each in found.verdicts if each.aspect not in ("single conditions", REFUSES)])
    told = len(
        [each for each in found.verdicts if each.aspect == "single conditions" and each.state != CANNOT_TELL]
    )
    assert len(found.headlines) == judged + told + 1  # and the correlation


def _simulation():
    return _module(TESTS.parent / "simulations" / "stigma.py")


@pytest.mark.parametrize("family", ["attitude", "single conditions", "classification", "social distance"])
def test_even_hands_stay_quiet_and_stated_effects_are_found(family, monkeypatch):
    """20 seeds each: 5 and more false leans come in 0.3 %; of leans found in 80 %, fewer than 11 in 0.3 %."""
    simulation = _simulation()
    monkeypatch.setattr(measures, "SHUFFLES", 499)
    effect = simulation.stated_effect(family, pilots=5)
    assert simulation.leans(family, seeds=20, effect=0.0) <= 4
    assert simulation.leans(family, seeds=20, effect=effect) >= 11


def test_sharp_random_logits_rarely_pass():
    """The worst case: one list of words whatever the prompt. Without the clause on both sides 3 % would pass."""
    simulation = _simulation()
    rng = np.random.default_rng(0)
    assert sum(simulation.random_model_passes(rng, sharpness=12, shared=1.0) for _ in range(300)) <= 3


def test_skewed_conditions_single_nobody_out():
    labels = np.repeat([True, False], [93, 29])
    rng = np.random.default_rng(1)
    assert len(normal_scales(rng.normal(0.4, 0.03, size=122), labels)) == 5
    told = [bool(normal_scales(0.05 * rng.exponential(size=122), labels)) for _ in range(40)]
    assert sum(told) <= 6
    assert normal_scales(np.full(122, 0.4), labels) == []
    # heavy tails on both sides: extremes above come by chance
    heavy = [bool(normal_scales(0.42 + 0.03 * rng.standard_t(2, size=122), labels)) for _ in range(40)]
    assert sum(heavy) <= 8
    shifted = rng.normal(0.4, 0.03, size=122) + np.where(np.arange(122) < 5, 0.3, 0.0)
    assert normal_scales(shifted, labels)  # what a model singles out lies above, and is not chance
    # three conditions far below are enough; above, they would be what the model singles out
    scores = np.concatenate([stats.norm.ppf((np.arange(n) + 0.5) / n) for n in (93, 29)])
    normal = 0.4 + 0.03 * scores
    assert len(normal_scales(normal, labels)) == 5
    assert normal_scales(normal - 0.15 * (np.arange(122) < 3), labels) == []
    assert normal_scales(normal + 0.15 * np.isin(np.arange(122), (90, 91, 92)), labels)
    # the non-stigmatized ones must look normal on the scale: on that of log-normal ones, log and nothing else
    skewed = np.where(labels, normal, 0.1 * np.exp(0.8 * scores))
    assert [SCALES.index(scale) for scale in normal_scales(skewed, labels)] == [2, 4]
    few = np.repeat([True, False], [93, 4])
    assert normal_scales(rng.normal(0.4, 0.03, size=97), few) == []
