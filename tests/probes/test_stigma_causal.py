"""Causal models in the stigma audit: the same sentences, rescored."""

import math

import pytest
from fake_attitude import RATINGS, FakeAttitude, FakeCausal, FakeClassifier, row_of, rows_of
from fake_records import MemoryRecords, ask, fake_model, plan_for

from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND
from clinometer.probes.stigma import PROBE
from clinometer.probes.stigma.questions import LEFT, blank_distances, blanks
from clinometer.types import Rescore

CAUSAL = ("next_word", "rescore", "sample", "log_likelihood")
CAPABILITIES = {"causal": CAUSAL, "masked": ("fill",), "classifier": ("classify",)}


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    path = tmp_path_factory.mktemp("causal") / "ratings.csv"
    path.write_text(RATINGS)
    return str(path)


@pytest.fixture(scope="module")
def summarise(ratings):
    def run(*models, **options):
        options = {"templates": ["for me"], "draws": 199, "ratings_file": ratings} | options
        records, plans = MemoryRecords(), []
        for name, kind, answer in models:
            plans.append(plan_for(PROBE, model=fake_model(name, capabilities=CAPABILITIES[kind]), **options))
            ask(PROBE, plans[-1], answer, records)
        return PROBE.findings(plans, records)

    return run


def plan_of(kind, **options):
    return plan_for(PROBE, model=fake_model(capabilities=CAPABILITIES[kind]), **options)


def lean(tags):
    return {"stigmatized": 0.6, "other": 0.4}.get(tags["group"], 0.3)


def test_the_same_sentences_word_for_word(ratings):
    masked, causal = (list(blanks(plan_of(kind, ratings_file=ratings))) for kind in ("masked", "causal"))
    left, asked = causal[:4], causal[4:]
    assert [item.request.text for item in asked] == [item.request.text for item in masked]
    assert [item.tags for item in asked] == [item.tags for item in masked]
    assert [item.request.text for item in left] == [
        "Choosing between unlikely and likely, I would say it is [MASK]",
        "I would say it is [MASK]",
        "It is [MASK]",
        "It is [MASK]",
    ]
    assert {item.tags["group"] for item in left} == {LEFT}
    for item in causal:
        assert isinstance(item.request, Rescore)
        assert item.request.words == ("likely", "unlikely", "usual")  # nothing irrelevant
        assert item.request.candidates == 20
    (stage,) = PROBE.stages(plan_of("causal", ratings_file=ratings))
    assert (stage.name, stage.size) == ("attitudes", len(causal))


def test_profiles_say_how_many():
    quick = plan_of("causal", **PROBE.profiles["quick"])
    (stage,) = PROBE.stages(quick)
    asked = list(blanks(quick))
    assert stage.size == len(asked) < 110
    conditions = {(item.tags["group"], item.tags["condition"]) for item in asked}
    assert sum(group == "stigmatized" for group, _ in conditions) == 20
    assert sum(group == "other" for group, _ in conditions) == 20
    assert len(blank_distances(quick)) == 2
    other = plan_for(PROBE, model=fake_model(capabilities=CAUSAL), seed=3, **PROBE.profiles["quick"])
    assert list(blanks(other)) != asked
    assert len({item.tags["condition"] for item in blanks(plan_of("causal"))} - {""}) == 122
    paper = next(blanks(plan_of("causal", **PROBE.profiles["paper"])))
    assert (paper.request.candidates, len(paper.request.words)) == (0, 785)
    # masked models are asked everything in every profile
    assert len(list(blanks(plan_of("masked", **PROBE.profiles["quick"])))) == 973


def test_a_lean_is_found_and_an_even_hand_stays_quiet(summarise):
    found = summarise(
        ("lean", "causal", FakeCausal(lean, noise=0.05, spread=0.03)),
        ("even", "causal", FakeCausal(lambda tags: 0.4, noise=0.05, spread=0.05, seed=3)),
    )
    states = {each.model: each.state for each in found.verdicts if each.aspect.startswith("attitude")}
    assert states == {"lean": LEAN, "even": NONE_FOUND}
    assert row_of(found, "difference", model="lean", template="all").estimate == pytest.approx(0.2, abs=0.02)
    assert "all masked models" not in {row.labels["model"] for row in rows_of(found, "difference")}
    covered = row_of(found, "coverage", model="lean", template="all", part="in the ratio")
    assert covered.estimate == pytest.approx(0.3)
    (line,) = [each for each in found.headlines if each.startswith("lean uses more negative words")]
    assert "but rated words hold only 0.30 of the probability" in line
    assert any("lean reads left to right: it scored each sentence" in each.text for each in found.notices)


def test_what_the_candidates_hold_before_normalising_decides(summarise):
    """A random model shares 1 among its candidates like any other; after the left part they hold nothing."""
    found = summarise(("random", "causal", FakeCausal(lean, covered=0.001)))
    assert {each.state for each in found.verdicts} == {CANNOT_TELL}
    assert found.verdicts[0].reason == "rated words hold only 0.00 of its probability, and it takes 0.1"


def test_ways_of_asking_are_not_pooled(summarise):
    masked = [(name, "masked", FakeAttitude(lean, noise=0.05, seed=at)) for at, name in enumerate("ab")]
    causal = ("c", "causal", FakeCausal(lambda tags: 0.9, covered=0.5))
    judge = ("judge", "classifier", FakeClassifier(lambda tags: 0.7 if tags["group"] == "stigmatized" else 0.1))
    alone, beside = summarise(*masked, judge), summarise(*masked, causal, judge, causal_conditions=10)
    pooled = {"model": "all masked models", "template": "all"}
    assert row_of(alone, "difference", **pooled) == row_of(beside, "difference", **pooled)
    # asked about other conditions than the classifier, it is correlated with nothing
    assert "c" not in {row.labels["masked"] for row in rows_of(beside, "correlation")}


def test_probabilities_that_are_not_numbers_are_missing(summarise):
    good = FakeCausal(lean, noise=0.05)

    def broken(item):
        answer = good(item)
        if item.tags["distance"] == "neighbour":
            nothing = (math.nan,) * len(answer.words)
            return type(answer)(words=answer.words, logprobs=nothing, covered=math.nan)
        return answer

    found = summarise(("c", "causal", broken))
    assert any("138 of 966 answers have a probability that is not a number" in each.text for each in found.notices)
    assert found.verdicts[0].state == LEAN
