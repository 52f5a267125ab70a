"""Typicality, recall, emotion profiles and similarity between models: worked by hand, and against plain loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cosine

from clinometer import data
from clinometer.metrics import (
    EMOTIONS,
    emotion_profile,
    recall_at_k,
    representational_similarity,
    typicality,
)

# ---- typicality -------------------------------------------------------------------------------------------------


def test_typicality_by_hand():
    # log(.2/.1) = log 2, log(.05/.1) = −log 2, log(.1/.1) = 0
    found = typicality(np.log([0.2, 0.05, 0.1]), np.log(0.1))
    assert found == pytest.approx([math.log(2), -math.log(2), 0.0])


def test_typicality_of_what_is_missing():
    found = typicality([math.nan, -1.0, -math.inf, -math.inf], [-1.0, math.nan, -1.0, -math.inf])
    assert np.isnan(found).tolist() == [True, True, False, True]
    assert found[2] == -math.inf


# ---- recall -----------------------------------------------------------------------------------------------------


def test_recall_by_hand():
    ranked = {"nurses": ["Kind", "busy", "mean"], "cooks": ["fat", "rude"], "others": ["nice"]}
    gold = {"nurses": {"mean", "kind"}, "cooks": {"rude", "angry"}, "kings": {"rich"}}
    # five gold attributes; places: kind 1, rude 2, mean 3; "angry" and all of "kings" nowhere
    assert recall_at_k(ranked, gold, ks=[1, 2, 3, 200]) == pytest.approx(
        {1: 1 / 5, 2: 2 / 5, 3: 3 / 5, 200: 3 / 5}
    )


def test_recall_weighs_attributes_and_not_groups():
    # 1 of 1 and 0 of 3: the mean over groups would be 1/2
    assert recall_at_k({"a": ["x"], "b": ["y"]}, {"a": ["x"], "b": ["p", "q", "r"]}, ks=(1,)) == {1: 0.25}


def test_recall_counts_a_repeated_word_at_its_first_place_and_a_repeated_gold_attribute_once():
    assert recall_at_k({"a": ["X", "y", "x"]}, {"a": ["x", "X ", "z"]}, ks=[1]) == {1: 0.5}


def test_recall_without_gold():
    assert math.isnan(recall_at_k({"a": ["x"]}, {}, ks=[1])[1])
    assert math.isnan(recall_at_k({"a": ["x"]}, {"a": []}, ks=[1])[1])
    assert recall_at_k({}, {"a": ["x"]}, ks=[]) == {}
    with pytest.raises(ValueError, match="k is 0"):
        recall_at_k({}, {}, ks=[3, 0])


lists = st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from("uvwXYZxyz"), max_size=6), max_size=4)


@given(ranked=lists, gold=lists)
def test_recall_agrees_with_a_plain_loop_and_never_falls_with_k(ranked, gold):
    found = recall_at_k(ranked, gold, ks=range(1, 8))
    for k, value in found.items():
        hits = total = 0
        for key, attributes in gold.items():
            for attribute in {each.lower() for each in attributes}:
                total += 1
                hits += attribute in [word.lower() for word in ranked.get(key, [])[:k]]
        assert value == pytest.approx(hits / total) if total else math.isnan(value)
    values = list(found.values())
    assert math.isnan(values[0]) or values == sorted(values)


# ---- emotions ---------------------------------------------------------------------------------------------------

LEXICON = {
    "selfish": {"anger", "disgust", "negative"},
    "vocal": set(),
    "kind": {"joy", "positive", "trust", "anticipation"},
    "evil": {"fear", "negative"},
}


def test_profile_by_hand():
    # covered: selfish, vocal, kind, once each; "nice" is not in the lexicon
    profile = emotion_profile(["Selfish", "vocal", "kind", " KIND ", "nice"], LEXICON)
    shares = dict(zip(EMOTIONS, profile.vector, strict=True))
    third = {"anger", "disgust", "negative", "joy", "positive", "trust", "anticipation"}
    assert shares == pytest.approx({name: (name in third) / 3 for name in EMOTIONS})
    assert profile.covered == 3


def test_profile_of_chosen_emotions_keeps_their_order():
    profile = emotion_profile(["evil", "selfish"], LEXICON, emotions=("negative", "fear", "joy"))
    assert profile.vector.tolist() == [1.0, 0.5, 0.0]


def test_profile_without_a_covered_word_is_missing():
    profile = emotion_profile(["nice"], LEXICON)
    assert np.isnan(profile.vector).all()
    assert profile.vector.shape == (10,)
    assert profile.covered == 0


def test_the_order_of_emotions_is_the_papers_and_that_of_the_data():
    assert ", ".join(EMOTIONS) == (
        "fear, joy, sadness, trust, surprise, anticipation, disgust, anger, negative, positive"
    )
    assert data.EMOTIONS == EMOTIONS


# ---- similarity -------------------------------------------------------------------------------------------------


def by_loops(a, b, *, self_similarity=True):
    """The paper's words, one step at a time."""
    per_group = []
    for i in range(len(a)):
        others = [j for j in range(len(a)) if self_similarity or j != i]
        rows = [[1 - cosine(vectors[i], vectors[j]) for j in others] for vectors in (a, b)]
        per_group.append(stats.spearmanr(np.round(rows[0], 10), np.round(rows[1], 10)).statistic)
    return np.array(per_group)


@pytest.mark.parametrize("self_similarity", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_similarity_agrees_with_scipy(self_similarity, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((12, 10)), rng.random((12, 7))
    a[3] = 2 * a[5]  # ties: a cosine of 1 with another group
    found = representational_similarity(a, b, self_similarity=self_similarity)
    expected = by_loops(a, b, self_similarity=self_similarity)
    assert found.per_group == pytest.approx(expected)
    assert found.mean == pytest.approx(expected.mean())


def test_similarity_by_hand():
    # angles of the groups: a 0°, 20°, 50°; b 0°, 60°, 80°. Nearest first, with itself:
    # group 0: a 0 1 2, b 0 1 2: ρ = 1.  group 1: a 1 0 2, b 1 2 0: ranks (2,3,1) against (1,3,2): ρ = 1/2
    # group 2: a 2 1 0, b 2 1 0: ρ = 1.   mean 5/6
    def at(*degrees):
        return np.array([[math.cos(math.radians(each)), math.sin(math.radians(each))] for each in degrees])

    found = representational_similarity(at(0, 20, 50), at(0, 60, 80))
    assert found.per_group == pytest.approx([1.0, 0.5, 1.0])
    assert found.mean == pytest.approx(5 / 6)
    # without itself two similarities are left: in order or turned around
    without = representational_similarity(at(0, 20, 50), at(0, 60, 80), self_similarity=False)
    assert without.per_group == pytest.approx([1.0, -1.0, 1.0])


def test_similarity_ignores_the_size_of_vectors_and_the_order_of_groups():
    rng = np.random.default_rng(0)
    a, b = rng.random((8, 5)), rng.random((8, 5))
    plain = representational_similarity(a, b)
    assert representational_similarity(a * rng.uniform(1, 9, (8, 1)), b).mean == pytest.approx(plain.mean)
    order = rng.permutation(8)
    assert representational_similarity(a[order], b[order]).per_group == pytest.approx(plain.per_group[order])
    assert representational_similarity(b, a).per_group == pytest.approx(plain.per_group)


def test_groups_without_a_vector_are_left_out():
    rng = np.random.default_rng(1)
    a, b = rng.random((9, 4)), rng.random((9, 4))
    expected = representational_similarity(np.delete(a, [2, 6], axis=0), np.delete(b, [2, 6], axis=0))
    a[2], b[6, 1] = 0.0, np.nan
    found = representational_similarity(a, b)
    assert np.isnan(found.per_group[[2, 6]]).all()
    assert np.delete(found.per_group, [2, 6]) == pytest.approx(expected.per_group)
    assert found.mean == pytest.approx(expected.mean)


def test_nothing_to_compare():
    assert math.isnan(representational_similarity(np.zeros((4, 3)), np.ones((4, 3))).mean)
    # all directions are the same: no order among the similarities
    assert np.isnan(
        representational_similarity(np.ones((4, 3)), np.random.default_rng(0).random((4, 3))).per_group
    ).all()
    assert np.isnan(representational_similarity([[1.0, 2.0]], [[1.0, 2.0]], self_similarity=False).mean)
    with pytest.raises(ValueError, match=r"\(3, 2\) and \(4, 2\)"):
        representational_similarity(np.ones((3, 2)), np.ones((4, 2)))
