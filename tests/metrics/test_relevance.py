from __future__ import annotations

import re

import numpy as np
import pytest

from clinometer.metrics import distinct_words, mentions, mentions_share, semantic_similarity_share


def test_similarity_by_hand():
    # cosines 1, 0.8, 0.4 (not above), −1
    vectors = [[2.0, 0.0], [4.0, 3.0], [0.4, np.sqrt(1 - 0.16)], [-1.0, 0.0]]
    assert semantic_similarity_share([1.0, 0.0], vectors, threshold=0.4 + 1e-9) == 0.5
    assert semantic_similarity_share([1.0, 0.0], vectors, threshold=0.9) == 0.25


def test_similarity_against_a_loop_with_several_prefixes():
    rng = np.random.default_rng(0)
    prefixes, texts = rng.normal(size=(3, 8)), rng.normal(size=(3, 20, 8))
    above = [
        prefixes[k] @ text / np.sqrt((prefixes[k] @ prefixes[k]) * (text @ text)) > 0.1
        for k in range(3)
        for text in texts[k]
    ]
    assert semantic_similarity_share(prefixes[:, None], texts, threshold=0.1) == pytest.approx(np.mean(above))


def test_vectors_without_direction_are_missing():
    assert semantic_similarity_share([1.0, 0.0], [[1.0, 0.0], [0.0, 0.0], [np.nan, 1.0]]) == 1.0
    assert np.isnan(semantic_similarity_share([1.0, 0.0], [[0.0, 0.0]]))
    with pytest.raises(ValueError, match="last axis"):
        semantic_similarity_share([1.0], [[1.0, 0.0]])


@pytest.mark.parametrize(
    "tokens", [["Iran"], ["New York", "iranian"], ["c++", "ſ"], ["K"], [" "], ["Zürich", "a b"]]
)
def test_mentions_are_those_of_the_plain_search(tokens):
    """Letters beyond ASCII match others than themselves: the long s, and the sign of Kelvin."""
    texts = [
        "IRAN.",
        "Iranian",
        "new\n York",
        "New Yorkers",
        "c++",
        "s",
        "S",
        "k",
        "\u212a",
        "zÜrich",
        "a  B",
        "",
        " ",
    ]
    either = "|".join(re.escape(token).replace(r"\ ", r"\s+") for token in tokens)
    plain = [bool(re.search(rf"(?<!\w)(?:{either})(?!\w)", text, re.IGNORECASE)) for text in texts]
    assert mentions(texts, tokens).tolist() == plain


def test_mentions():
    texts = ["from IRAN.", "an Iranian", "Iran's men", "New  York", "nothing", "York"]
    assert mentions_share(texts, ["Iran"]) == pytest.approx(2 / 6)
    assert mentions_share(texts, ["Iran", "New York"]) == pytest.approx(3 / 6)
    assert mentions_share(["c++ is fun", "c is fun"], ["c++"]) == 0.5
    assert np.isnan(mentions_share([], ["Iran"]))
    for wrong in ("Iran", [], [""]):
        with pytest.raises(ValueError, match="list of words"):
            mentions_share(texts, wrong)


def test_distinct_words_by_hand():
    # N_a = 20, N_b = 30, V = {law, the, cake, odd}, s = 1
    a, b = {"law": 10, "the": 9, "odd": 1}, {"the": 20, "cake": 9, "odd": 1}
    found = distinct_words(a, b, min_count=1)
    # law: (11/24)/(1/34), odd: (2/24)/(2/34); the: (10/24)/(21/34) < 1
    assert [each.word for each in found] == ["law", "odd"]
    assert found[0].ratio == pytest.approx((11 / 24) / (1 / 34))
    assert (found[0].count, found[0].other_count) == (10, 0)
    assert [each.word for each in distinct_words(a, b)] == ["law"]  # "odd" occurs too seldom
    assert [each.word for each in distinct_words(b, a)] == ["cake", "the"]
    assert [each.word for each in distinct_words(b, a, n=1)] == ["cake"]
    # without smoothing worth the name, what the other never has comes first; with much, what is frequent
    assert distinct_words(a, b, min_count=1, smoothing=1e-9)[0].ratio > 1e6
    assert distinct_words({}, b) == ()
    with pytest.raises(ValueError, match="smoothing"):
        distinct_words(a, b, smoothing=0)
