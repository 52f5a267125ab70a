"""A function as a scorer: what it must return."""

import math

import pytest

from clinometer.errors import ModelError, RequestError
from clinometer.models.callable_scorer import CallableScorer
from clinometer.models.protocols import CanClassify
from clinometer.types import Classify, Embed

TEXTS = [Classify(text="a kind word"), Classify(text="another")]


def test_scores_become_probabilities_in_order():
    seen = []
    model = CallableScorer("mine", lambda texts: seen.append(texts) or [0.25, 1])
    assert isinstance(model, CanClassify)
    first, second = model.classify(TEXTS)
    assert seen == [["a kind word", "another"]]
    assert (first.negative, first.positive, second.negative, second.positive) == (0.75, 0.25, 0, 1)
    assert math.isnan(first.neutral)
    assert model.cost(TEXTS) == [3, 1]


@pytest.mark.parametrize("score", [float("nan"), -0.1, 1.5, "good", None, float("inf")])
def test_what_is_no_score_is_named_with_its_text(score):
    model = CallableScorer("mine", lambda texts: [0.5, score])
    with pytest.raises(ModelError, match=r"'another' as .*0 .*to 1"):
        model.classify(TEXTS)


def test_a_missing_score():
    with pytest.raises(ModelError, match="1 scores for 2 texts"):
        CallableScorer("mine", lambda texts: [0.5]).classify(TEXTS)


@pytest.mark.parametrize(("returned", "kind"), [(None, "NoneType"), (0.5, "float")])
def test_what_is_no_list_is_named(returned, kind):
    with pytest.raises(ModelError, match=f"'mine' returned {kind} for 2 texts; it must return a list"):
        CallableScorer("mine", lambda texts: returned).classify(TEXTS)


def test_other_requests():
    model = CallableScorer("mine", lambda texts: [0.5])
    with pytest.raises(RequestError, match="not Embed"):
        model.cost([Embed(text="x")])


def test_identity_follows_name_and_version():
    infos = [
        CallableScorer(name, lambda texts: [], version=version).info
        for name, version in (("a", "1"), ("a", "1"), ("a", "2"), ("b", "1"))
    ]
    assert infos[0].weights == infos[1].weights
    assert len({info.weights for info in infos}) == 3
    assert infos[0].capabilities == ("classify",)
