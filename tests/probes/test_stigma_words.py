"""The sentences that a reader takes away: verdicts and the headlines made of them, from rows written by hand."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND
from clinometer.probes.stigma.figures import CAPTIONS
from clinometer.probes.stigma.measures import hangs_on_few
from clinometer.probes.stigma.words import difference_verdict, headlines, published, single_verdict
from clinometer.types import Finding

MEASURES = {
    "masked": "negative attitude",
    "classifier": "negative classification",
    "chat": "social distance",
}
WORSE = {
    "masked": "uses more negative words about people with a stigmatized condition than about others",
    "classifier": "finds plain statements about stigmatized conditions negative more often than those about",
    "chat": "keeps a greater distance from people with a stigmatized condition than from others",
}
BETTER = {"masked": "uses fewer", "classifier": "negative less often", "chat": "keeps a smaller distance"}
NONE = "shows no difference between stigmatized and other conditions that this audit could see"
CHAT = SimpleNamespace(model="chat", share=lambda reading: 0.25)


def row(estimate=0.0, **fields):
    """A finding: what is not one of its numbers is a label."""
    numbers = {name: fields.pop(name) for name in ("low", "high", "q", "n") if name in fields}
    if "class_" in fields:
        fields["class"] = fields.pop("class_")
    return Finding(labels=fields, estimate=estimate, **numbers)


def rows_of(model, *, gap=None, excess=(), covered=0.8):
    """What the headlines of one model read."""
    groups = ("stigmatized", "other")
    part = "in the ratio"
    return {caption.name: () for caption in CAPTIONS} | {
        "difference": [row(model=model, measure=MEASURES[model], template="all", **(gap or {}))],
        "levels": [row(0.5, model=model, template="all", group=group) for group in groups],
        "distance_levels": [row(1.5, model=model, group=group) for group in groups],
        "classes": [row(0.5, model=model, template="all", group=group, class_="negative") for group in groups],
        "above_half": [row(0.5, model=model, group=group, above_half=5, n=10) for group in groups],
        "readings": [row(0.5, model=model, group=group, reading="unclear") for group in groups],
        "coverage": [row(covered, model=model, template="all", part=part)],
        "excess": excess,
    }


def said_of(rows, verdict):
    (said,) = headlines(rows, [verdict], [CHAT])
    return said


@pytest.mark.parametrize("model", MEASURES)
@pytest.mark.parametrize(
    ("estimate", "low", "high", "q", "state"),
    [
        (0.2, 0.1, 0.3, 0.04, LEAN),
        (-0.2, -0.3, -0.1, 0.04, LEAN),
        (0.2, -0.1, 0.5, 0.04, NONE_FOUND),  # the interval holds 0
        (-0.2, -0.5, 0.1, 0.04, NONE_FOUND),
        (0.2, 0.1, 0.3, 0.06, NONE_FOUND),  # q is too large
        (-0.2, -0.3, -0.1, 0.06, NONE_FOUND),
        (0.2, 0.1, 0.3, math.nan, CANNOT_TELL),
    ],
)
def test_a_headline_needs_both_q_and_the_interval(model, estimate, low, high, q, state):
    rows = rows_of(model, gap={"estimate": estimate, "low": low, "high": high, "q": q})
    verdict = difference_verdict(rows, model, MEASURES[model], full=3 if model == "chat" else 1)
    said = said_of(rows, verdict)
    assert verdict.state == state
    assert said.startswith(f"{model} ")
    if state == LEAN:
        assert (WORSE if estimate > 0 else BETTER)[model] in said
    elif state == NONE_FOUND:
        assert NONE in said
    else:
        assert said.startswith(f"{model} cannot be judged: too little was measured for an interval.")
        assert "difference of" not in said
        return
    sign = "+" if estimate > 0 else "−"
    assert f"a difference of {sign}0.200 (95 % interval " in said
    # of a scale from 0 to 3, 0.2 is a fifteenth; elsewhere a fifth
    assert f"), {7 if model == 'chat' else 20} % of the possible range" in said
    # 2.80 standard errors, of which an interval has 3.92: .2 · 2.802/3.92
    assert verdict.detectable == pytest.approx((high - low) * 2.8016 / 3.92, rel=1e-3)
    assert f"a difference of {verdict.detectable:.3f} would be found four times in five" in said


@pytest.mark.parametrize("model", MEASURES)
def test_below_the_gate_there_is_a_reason_and_no_number(model):
    rows = rows_of(model, gap={"estimate": 0.0, "low": -0.1, "high": 0.1, "q": 0.9})
    verdict = difference_verdict(rows, model, MEASURES[model], gate="it knows no words")
    assert (verdict.state, verdict.reason) == (CANNOT_TELL, "it knows no words")
    assert math.isnan(verdict.estimate)
    assert verdict.rows[0].table == {"masked": "coverage", "classifier": "classes", "chat": "readings"}[model]
    said = said_of(rows, verdict)
    assert said.startswith(f"{model} cannot be judged: it knows no words.")
    assert "nan" not in said.lower()


def test_what_the_paper_found_is_beside_it():
    rows = rows_of("masked", gap={"estimate": 0.2, "low": 0.1, "high": 0.3, "q": 0.01})
    verdict = difference_verdict(rows, "masked", "negative attitude")
    assert verdict.size == ("20 % of the possible range; in the paper 0.10 (DistilBERT) to 0.28 (RoBERTa-large)")
    # of somebody's own conditions the paper says nothing
    own = difference_verdict(rows, "masked", "negative attitude", as_printed=False)
    assert own.size == "20 % of the possible range"
    assert published("difference in negative classification") == {
        "DistilBERT SST-2": 0.65, "TwitterRB": 0.58, "BERTweet": 0.51, "SiEBERT": 0.28,
    }  # fmt: skip
    assert published("correlation") == {"masked models and classifiers": 0.79}
    assert published("difference in social distance") == {}


def test_a_difference_that_could_only_be_found_beyond_half_of_the_range_cannot_be_told():
    rows = rows_of("masked", gap={"estimate": 0.1, "low": -0.4, "high": 0.6, "q": 0.5})
    assert difference_verdict(rows, "masked", "negative attitude").state == CANNOT_TELL
    # of a scale from 0 to 3 that is less than half
    assert difference_verdict(rows, "masked", "negative attitude", full=3.0).state == NONE_FOUND


def test_a_difference_that_a_few_conditions_decide_is_not_called_a_lean():
    found = {"estimate": 0.2, "low": 0.1, "high": 0.3, "q": 0.01}
    assert difference_verdict(rows_of("masked", gap=found), "masked", "negative attitude").state == LEAN
    few = difference_verdict(rows_of("masked", gap=found), "masked", "negative attitude", few_decide=True)
    assert few.state == CANNOT_TELL
    assert "a few conditions with very high or low numbers" in few.sentence
    none = rows_of("masked", gap=found | {"q": 0.5})
    assert difference_verdict(none, "masked", "negative attitude", few_decide=True).state == NONE_FOUND


def test_when_a_few_conditions_decide():
    labels = np.repeat([True, False], [93, 29])
    rng = np.random.default_rng(0)
    even = rng.normal(0.4, 0.05, size=122)
    assert not hangs_on_few(even + 0.03 * labels, labels)
    skewed = np.where(labels, 0.4 + 0.01 * rng.exponential(size=122) ** 2, 0.41)
    assert hangs_on_few(skewed, labels)
    assert not hangs_on_few(skewed + 0.5 * labels, labels)  # so far that the few do not matter
    # a skewed group with little of the standard error does not count
    small = np.where(labels, 0.4 + 0.001 * rng.exponential(size=122) ** 2, rng.normal(0.4, 0.05, size=122))
    assert not hangs_on_few(small, labels)
    assert not hangs_on_few(skewed[:3], labels[:3])


EXCESS = [
    {
        "estimate": 0.2,
        "rank": 1,
        "condition": "first",
        "low": -0.1,
        "high": 0.5,
        "q": 0.04,
    },  # the interval holds 0
    {"estimate": 0.2, "rank": 2, "condition": "second", "low": 0.1, "high": 0.3, "q": 0.06},  # q is too large
    {"estimate": 0.1, "rank": 3, "condition": "third", "low": 0.05, "high": 0.2, "q": 0.04},
    {"estimate": -0.2, "rank": 4, "condition": "fourth", "low": -0.3, "high": -0.1, "q": 0.01},  # downwards
]


def excess_rows(*rows):
    return [row(**{"model": "masked", "group": "stigmatized"} | each) for each in rows]


def test_a_condition_is_singled_out_by_the_one_rule_and_upwards_only():
    rows = rows_of("masked", excess=excess_rows(*EXCESS))
    verdict = single_verdict(rows, "masked", detectable=0.1)
    assert verdict.state == LEAN
    assert verdict.rows[0].labels["condition"] == "third"
    assert verdict.sentence == "masked singles out 1 of 4 stigmatized conditions, most of all third."
    said = said_of(rows, verdict)
    sure = "95 % interval over its prompts +0.050 to +0.200; against how much others differ, q = 0.040"
    assert (
        f" For third, the excess over the non-stigmatized conditions is +0.100 ({sure}); an excess of 0.100"
        in said
    )
    without = rows_of("masked", excess=excess_rows(*EXCESS[:2], EXCESS[3]))
    assert single_verdict(without, "masked", detectable=0.1).state == NONE_FOUND


def test_the_conditions_that_stand_out_most_are_named():
    rows = rows_of(
        "masked",
        excess=excess_rows(
            *(EXCESS[2] | {"rank": rank, "condition": name} for rank, name in reversed([*enumerate("abcd", 1)]))
        ),
    )
    verdict = single_verdict(rows, "masked", detectable=0.1)
    assert verdict.sentence == "masked singles out 4 of 4 stigmatized conditions, most of all a."
    assert "; next come b, c; an excess of" in said_of(rows, verdict)


@pytest.mark.parametrize(
    ("detectable", "reason"),
    [(math.nan, "too few, too alike or too unevenly spread"), (0.51, "so much that nothing could stand out")],
)
def test_where_nothing_could_stand_out_it_cannot_be_told(detectable, reason):
    """The others are at .5, so that no excess is larger than .5."""
    rows = rows_of("masked", excess=excess_rows(EXCESS[1]))
    assert single_verdict(rows, "masked", detectable=0.49).state == NONE_FOUND
    verdict = single_verdict(rows, "masked", detectable=detectable)
    assert verdict.state == CANNOT_TELL
    assert reason in verdict.sentence
    assert tuple(headlines(rows, [verdict], [])) == (
        f"masked, single conditions: cannot be judged: {verdict.reason}.",
    )
    # the reason why nothing can be told of a model is said once
    attitude = dataclasses.replace(verdict, aspect="attitude to stigmatized conditions")
    assert len(tuple(headlines(rows, [attitude, verdict], []))) == 1


def test_sentences_are_short():
    found = {"estimate": 0.2, "low": 0.1, "high": 0.3, "q": 0.01}
    for model, measure in MEASURES.items():
        for sign in (1, -1):
            gap = found if sign > 0 else {"estimate": -0.2, "low": -0.3, "high": -0.1, "q": 0.01}
            for q in (0.01, 0.5):
                rows = rows_of(model, gap=gap | {"q": q})
                assert len(difference_verdict(rows, model, measure).sentence.split()) <= 25
