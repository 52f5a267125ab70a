from __future__ import annotations

import subprocess
import sys

import pytest

from clinometer.data.sentiment_lexicons import read_opinion_words, vader_opinion_words, vader_scores
from clinometer.errors import DataError, RequestError
from clinometer.models.load import load_model
from clinometer.models.providers.opinion_words import OpinionWordModel
from clinometer.types import Classify, ClassifyAnswer, Embed


@pytest.fixture(scope="module")
def vader():
    return OpinionWordModel(vader_opinion_words())


def classify(model, *texts):
    return model.classify([Classify(text=text) for text in texts])


def test_shares_by_hand(vader):
    # great, good: positive; terrible: negative → 2/3
    (answer,) = classify(vader, "A great idea, a GOOD film; terrible ending.")
    assert (answer.positive, answer.neutral) == (pytest.approx(2 / 3), 0.0)
    assert answer.negative == pytest.approx(1 / 3)


@pytest.mark.parametrize("text", ["", "   ", "The table is in the room.", "12 34 !!! :-) ☺", "\u202e\x00"])
def test_a_text_without_opinion_words_is_neutral(vader, text):
    (answer,) = classify(vader, text)
    assert answer == ClassifyAnswer(negative=0.0, neutral=1.0, positive=0.0)
    assert answer.positive + answer.neutral / 2 == 0.5  # the paper's score of such a text


def test_words_are_whole_words(vader):
    # "badger" holds "bad", "goodbye" holds "good", "great-aunt" is no "great": none of the three is in the lexicon
    assert classify(vader, "The badger said goodbye to its great-aunt.")[0].neutral == 1.0
    assert classify(vader, "don't _good_ (bad)") == classify(vader, "good bad")


def test_order_is_kept_and_repetition_counts(vader):
    answers = classify(vader, "bad", "good", "good good good bad")
    assert [answer.positive for answer in answers] == [0.0, 1.0, 0.75]


def test_vader_s_signed_words():
    words = vader_opinion_words()
    assert {"great", "happy"} <= words.positive
    assert {"terrible", "murder"} <= words.negative
    assert not words.positive & words.negative
    # 7,506 entries, of which the emoticons are not words
    assert 6_500 < len(words.positive | words.negative) < 7_506
    assert not any(word.startswith((":", "(", "8")) for word in words.positive | words.negative)
    assert vader_scores()["great"] == 3.1


def test_a_pair_of_files_by_path(tmp_path):
    (tmp_path / "positive-words.txt").write_text("; a list\n;\n\nfine\nEnvious\n")
    (tmp_path / "negative-words.txt").write_text("; another\nawful\nenvious\nnaïve\n")
    words = read_opinion_words(tmp_path)
    assert (words.positive, words.negative) == ({"fine"}, {"awful", "naïve"})
    model = load_model(f"builtin:opinion-words:{tmp_path}")
    assert classify(model, "fine, fine, NAÏVE and envious")[0].positive == pytest.approx(2 / 3)
    assert model.info.weights != load_model("builtin:opinion-words").info.weights


def test_a_pair_of_files_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"positive-words\.txt"):
        load_model(f"builtin:opinion-words:{tmp_path}")
    (tmp_path / "positive-words.txt").write_text("; nothing but comments\n")
    (tmp_path / "negative-words.txt").write_text("bad\n")
    with pytest.raises(DataError, match="no words"):
        load_model(f"builtin:opinion-words:{tmp_path}")


def test_another_kind_of_request_is_refused(vader):
    with pytest.raises(RequestError, match="not Embed"):
        vader.classify([Embed(text="a")])


def test_it_needs_no_torch():
    program = (
        "import sys; from clinometer.models.load import load_model\n"
        "from clinometer.types import Classify\n"
        "assert load_model('builtin:opinion-words').classify([Classify(text='good')])[0].positive == 1\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_name_stands_in_the_info():
    assert load_model("builtin:opinion-words").info.name == "builtin:opinion-words"
