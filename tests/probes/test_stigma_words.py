"""The sentences that a reader takes away: when a headline calls something found, from rows written by hand."""

import math
from types import SimpleNamespace

import pytest

from clinometer.probes.stigma.tables import CAPTIONS
from clinometer.probes.stigma.words import headlines
from clinometer.types import Finding

MEASURES = {
    "masked": "negative attitude",
    "classifier": "negative classification",
    "chat": "social distance",
}
CHAT = SimpleNamespace(model="chat", share=lambda reading: 0.25)


def row(estimate=0.0, **fields):
    """A finding: what is not one of its numbers is a label."""
    numbers = {name: fields.pop(name) for name in ("low", "high", "q", "n") if name in fields}
    if "class_" in fields:
        fields["class"] = fields.pop("class_")
    return Finding(labels=fields, estimate=estimate, **numbers)


def rows_of(model, *, gap=None, excess=()):
    """What the headlines of one model read."""
    groups = ("stigmatized", "other")
    return {caption.name: () for caption in CAPTIONS} | {
        "difference": [row(model=model, measure=MEASURES[model], template="all", **(gap or {}))],
        "levels": [row(0.5, model=model, template="all", group=group) for group in groups],
        "classes": [row(0.5, model=model, template="all", group=group, class_="negative") for group in groups],
        "above_half": [row(0.5, model=model, group=group, above_half=5, n=10) for group in groups],
        "excess": excess,
    }


@pytest.mark.parametrize("model", MEASURES)
@pytest.mark.parametrize(
    ("estimate", "low", "high", "q", "verdict"),
    [
        (0.2, 0.1, 0.3, 0.04, "worse for stigmatized conditions"),
        (-0.2, -0.3, -0.1, 0.04, "better for stigmatized conditions"),
        (0.2, -0.1, 0.5, 0.04, "not distinguishable from no difference"),  # the interval holds 0
        (-0.2, -0.5, 0.1, 0.04, "not distinguishable from no difference"),
        (0.2, 0.1, 0.3, 0.06, "not distinguishable from no difference"),  # q is too large
        (-0.2, -0.3, -0.1, 0.06, "not distinguishable from no difference"),
        (0.2, 0.1, 0.3, math.nan, "not tested"),
    ],
)
def test_a_headline_needs_both_q_and_the_interval(model, estimate, low, high, q, verdict):
    gap = {"estimate": estimate, "low": low, "high": high, "q": q}
    said = next(headlines(rows_of(model, gap=gap), [CHAT] if model == "chat" else []))
    assert said.startswith(f"{model}: ")
    assert f"): {verdict}." in said


def test_a_condition_stands_out_by_q_and_upwards_only():
    """Its interval says whether its own prompts agree, which is another question."""
    excess = [
        row(0.2, model="masked", rank=1, condition="first", low=-0.1, high=0.5, q=0.04),
        row(0.2, model="masked", rank=2, condition="second", low=0.1, high=0.3, q=0.06),
        row(-0.2, model="masked", rank=3, condition="third", low=-0.3, high=-0.1, q=0.04),
    ]
    _, said = headlines(rows_of("masked", excess=excess), [])
    assert said.endswith("; 1 stands out above the non-stigmatized ones (q < 0.05): first.")


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (0, "; 0 stand out above the non-stigmatized ones (q < 0.05)."),
        (3, "; 3 stand out above the non-stigmatized ones (q < 0.05): a, b, c."),
        (4, "; 4 stand out above the non-stigmatized ones (q < 0.05), most of all a, b, c."),
    ],
)
def test_the_conditions_that_stand_out_most_are_named(found, sentence):
    excess = [
        row(0.2, model="masked", rank=rank, condition=name, q=0.01)
        for rank, name in reversed(list(enumerate("abcd"[:found], start=1)))
    ]
    _, said = headlines(rows_of("masked", excess=excess), [])
    assert said.endswith(sentence)
