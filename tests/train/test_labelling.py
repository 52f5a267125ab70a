"""Labelled sentences: whom the scorer is sure of, what is left out, and how they are split."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from clinometer.errors import DataError, InputError, ModelError
from clinometer.models.fake import FakeModel
from clinometer.models.load import load_model
from clinometer.train import sentiment as labelling
from clinometer.train.processes import Quiet
from clinometer.train.sentiment import Labelled, label_sentences, sentiment_score, split_labelled
from clinometer.types import ClassifyAnswer

WORDS = {"good": 0.95, "fair": 0.84, "mixed": 0.5, "poor": 0.16, "bad": 0.05}


class Batches(Quiet):
    """Hears how large the batches are."""

    def __init__(self):
        self.total, self.sizes, self.ended = 0, [], False

    def begin(self, label, *, total, done, unit="step"):
        self.total = total

    def advance(self, count):
        self.sizes.append(count)

    def end(self):
        self.ended = True


def scorer(answer=None):
    """Positive by the sentence's first word; a binary classifier, so neutral is NaN."""

    def by_word(request):
        positive = WORDS[request.text.split()[0]]
        return ClassifyAnswer(negative=1 - positive, neutral=math.nan, positive=positive)

    return FakeModel(answer=answer or by_word, name="judge", kind="classifier", capabilities=("classify",))


def test_only_scores_further_from_zero_than_the_threshold_count():
    # scores 2p − 1: 0.9, 0.68, 0, −0.68, −0.9
    sentences = [f"{word} day" for word in WORDS]
    found = label_sentences(sentences, scorer())
    assert (found.texts, found.labels) == (("good day", "bad day"), (1, 0))
    assert (found.asked, found.positive, found.negative) == (5, 1, 1)
    assert (found.scorer, found.threshold) == ("judge", 0.7)
    lower = label_sentences(sentences, scorer(), threshold=0.6)
    assert (lower.texts, lower.labels) == (("good day", "fair day", "poor day", "bad day"), (1, 1, 0, 0))


def test_neutral_mass_lowers_the_score():
    # (0.8 − 0.1)/1 = 0.7 is not more than 0.7; the masses need not sum to 1: (0.4 − 0.04)/0.5 = 0.72
    assert sentiment_score(ClassifyAnswer(negative=0.1, neutral=0.1, positive=0.8)) == pytest.approx(0.7)
    assert sentiment_score(ClassifyAnswer(negative=0.04, neutral=0.06, positive=0.4)) == pytest.approx(0.72)
    assert math.isnan(sentiment_score(ClassifyAnswer(negative=math.nan, neutral=math.nan, positive=math.nan)))


def test_an_answer_that_is_no_number_is_left_out_and_counted():
    def answer(request):
        return ClassifyAnswer(negative=math.nan, neutral=math.nan, positive=math.nan)

    found = label_sentences(["good day"], scorer(answer))
    assert (found.asked, found.texts) == (1, ())


def test_order_is_kept_whatever_the_batches(monkeypatch):
    sentences = [f"{word} {'day ' * (number % 7)}{number}" for number in range(40) for word in WORDS]
    reference = label_sentences(sentences, scorer())
    expected = [text for text in sentences if text.startswith(("good", "bad"))]
    assert list(reference.texts) == expected
    assert list(reference.labels) == [int(text.startswith("good")) for text in expected]
    monkeypatch.setattr(labelling, "_WINDOW", 17)
    heard = Batches()
    assert label_sentences(sentences, scorer(), budget=30, progress=heard) == reference
    assert heard.total == sum(heard.sizes) == 200
    assert heard.ended


def test_batches_are_longest_first_and_within_the_budget():
    costs = [3, 8, 3, 4, 20]
    # 20 alone although over the budget; 8 alone; 4 + 3 (2 × 4 ≤ 9); 3
    assert list(labelling._batches(costs, budget=9)) == [[4], [1], [3, 0], [2]]


def test_a_repeated_sentence_is_asked_once():
    found = label_sentences(["good day", "bad day", "good  Day", "good day"], scorer())
    assert found.texts == ("good day", "bad day")
    assert found.asked == 2


def test_the_opinion_word_scorer_labels_sentences():
    sentences = [
        "A wonderful, happy day.",
        "The table is by the door.",
        "A terrible and sad war.",
        "Good and bad.",
    ]
    found = label_sentences(sentences, load_model("builtin:opinion-words"))
    assert found.texts == ("A wonderful, happy day.", "A terrible and sad war.")
    assert found.labels == (1, 0)
    assert found.asked - len(found.texts) == 2


def test_what_cannot_classify_is_refused():
    with pytest.raises(ModelError, match="'fake' cannot judge sentiment; expected a classifier"):
        label_sentences(["a"], FakeModel(answer=lambda request: None))
    with pytest.raises(InputError, match=r"threshold = 1\.0 is not valid"):
        label_sentences(["a"], scorer(), threshold=1.0)


def labelled(positive, negative):
    texts = [f"good {number}" for number in range(positive)] + [f"bad {number}" for number in range(negative)]
    return Labelled(
        texts=tuple(texts), labels=(1,) * positive + (0,) * negative, asked=1000, scorer="judge", threshold=0.7
    )


def test_parts_are_balanced_and_share_no_text():
    split = split_labelled(labelled(300, 900), seed=0)
    # 300 of each class; a tenth is 30 of each
    sizes = {"training": 240, "validation": 30, "test": 30}
    for name, each in sizes.items():
        part = getattr(split, name)
        assert Counter(part.labels) == {0: each, 1: each}
        assert [int(text.startswith("good")) for text in part.texts] == list(part.labels)
    texts = [text for name in sizes for text in getattr(split, name).texts]
    assert len(set(texts)) == len(texts) == 600


def test_small_parts_have_the_least_number():
    split = split_labelled(labelled(100, 120), seed=0)
    assert [len(part.texts) for part in (split.validation, split.test, split.training)] == [50, 50, 100]


def test_the_seed_decides_the_split():
    one, again, other = (split_labelled(labelled(200, 400), seed=seed) for seed in (0, 0, 1))
    assert one == again
    assert set(one.test.texts) != set(other.test.texts)
    kept = {text for part in (one.training, one.validation, one.test) for text in part.texts}
    # drawn from the whole of the larger class, not its beginning
    assert any(int(text.split()[1]) >= 300 for text in kept if text.startswith("bad"))


def test_too_few_of_a_class_is_an_error_that_says_what_to_do():
    with pytest.raises(DataError, match="judge calls 99 of 1,000 sentences positive and 0 negative") as caught:
        split_labelled(labelled(99, 0), seed=0)
    for part in ("0.7", "at least 100 of each", "larger corpus", "lower threshold", "another scorer"):
        assert part in str(caught.value)
