"""Words with labels: the printed neutral ones, VADER's, MPQA's and the user's own."""

import math
import os
from pathlib import Path

import pytest

from clinometer.data import load_card, packaged, read_csv
from clinometer.data.sentiment_lexicons import (
    load_neutral_words,
    read_labelled_words,
    read_mpqa,
    read_neutral_file,
    vader_words,
)
from clinometer.errors import DataError

MPQA = Path(os.environ.get("CLINOMETER_TEST_DATA", "nowhere")) / "lexicons" / "subjclueslen1-HLTEMNLP05.tff"


@pytest.fixture
def write(tmp_path):
    def write(content, name="words.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def names(words):
    return [word.word for word in words]


def test_the_printed_words():
    words = load_neutral_words()
    assert len(words) == len(set(names(words))) == len({word.lower() for word in names(words)}) == 119
    assert {word.label for word in words} == {"neutral"}
    assert all(math.isnan(word.score) for word in words)
    assert all(word.word.isalpha() for word in words)
    # words that the text breaks at a line end, and the printed case
    assert {"undergoing", "Circle", "patriarchal", "corrective", "Pricing", "consistency"} <= set(names(words))
    assert {"PEOPLE", "ander", "Saint", "obligation", "obligations"} <= set(names(words))


def test_each_printed_table_has_its_ten_words():
    tables = [
        row.text("table").split()
        for row in read_csv(packaged("sentiment_words", "neutral.csv"), columns=("word", "table"))
    ]
    for table in "345678":
        assert sum(table in places for places in tables) == 10
    assert {place for places in tables for place in places} == set("12345678")


def test_the_card_counts_what_is_there():
    card = load_card("sentiment_words")
    assert card.notes.startswith("119 distinct words")
    with_score = {word.word for sign in ("positive", "negative") for word in vader_words(sign=sign)}
    printed = {word.word.lower() for word in load_neutral_words()}
    assert printed & with_score == {"precious", "comedy", "overweight", "screaming", "adversity", "stall"}


def test_vader_strongest_first_ties_by_name():
    positive, negative = vader_words(sign="positive"), vader_words(sign="negative")
    for words, label, side in ((positive, "positive", 1), (negative, "negative", -1)):
        assert len(words) > 3000
        assert {word.label for word in words} == {label}
        assert all(word.score * side > 0 for word in words)
        keys = [(-abs(word.score), word.word) for word in words]
        assert keys == sorted(keys)
        assert all(word.word.isalpha() for word in words)
        assert vader_words(sign=label, n=400) == words[:400]
    assert {"best", "euphoric"} <= set(names(positive[:20]))
    assert {"murder", "terrorist"} <= set(names(negative[:20]))
    assert "j4f" not in names(positive)
    assert not any("-" in word or " " in word for word in names(positive + negative))


@pytest.mark.parametrize("n", [0, -1, 100_000])
def test_vader_has_only_so_many(n):
    with pytest.raises(DataError, match=f"asked for {n} positive words"):
        vader_words(sign="positive", n=n)
    with pytest.raises(DataError, match="'positive' or 'negative'"):
        vader_words(sign="neutral")


CLUE = "type=weaksubj len=1 word1={} pos1=adj stemmed1=n priorpolarity={}\n"


def test_mpqa_with_its_odd_lines(write):
    path = write(
        CLUE.format("large-scale", "neutral")
        + CLUE.format("awful", "negative")
        + CLUE.format("large-scale", "neutral")  # the same word as another part of speech
        + "type=strongsubj len=1 len=1 word1=falter pos1=verb stemmed1=y priorpolarity=negative\n"
        + "type=weaksubj len=1 word1=impassive pos1=adj stemmed1=n polarity=negative priorpolarity=weakneg\n"
        + "type=strongsubj len=1 word1=pervasive pos1=adj stemmed1=n m priorpolarity=negative\r\n"
        + "type=weaksubj len=1 word1=so pos1=adverb stemmed1=1 priorpolarity=neutral mpqapolarity=strongneg\n"
        + CLUE.format("either", "both")
        + "\n"
        + CLUE.format("need", "positive")
        + CLUE.format("need", "neutral"),
        "clues.tff",
    )
    assert names(read_mpqa(path)) == ["large-scale", "so", "need"]
    assert read_neutral_file(path) == read_mpqa(path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("type=weaksubj word1=so priorpolarity=neutrl", "priorpolarity 'neutrl'; did you mean 'neutral'?"),
        ("type=weaksubj word1=so", "line 2: no priorpolarity=…"),
        ("type=weaksubj priorpolarity=neutral", "no word1=…"),
        ("word1= priorpolarity=neutral", "'word1='; expected key=value"),
        ("word1=so word1=as priorpolarity=neutral", "word1 is 'so' and 'as'"),
        ("word1=so colour=red priorpolarity=neutral", "'colour=red'; expected key=value"),
        ("so,neutral", "'so,neutral'; expected key=value"),
        ("x" * 100_000, "xxx…'; expected key=value"),
    ],
)
def test_bad_clues_are_refused_with_file_and_line(write, line, complaint):
    path = write(CLUE.format("so", "neutral") + line + "\n")
    with pytest.raises(DataError) as caught:
        read_mpqa(path)
    assert complaint in str(caught.value)
    assert f"'{path}', line 2" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_clues_without_a_neutral_word(write):
    with pytest.raises(DataError, match="no clue with priorpolarity=neutral"):
        read_mpqa(write(CLUE.format("awful", "negative")))


@pytest.mark.skipif(
    not MPQA.is_file(), reason=f"needs the published file lexicons/{MPQA.name} in the folder $CLINOMETER_TEST_DATA"
)
def test_the_published_mpqa_file():
    words = names(read_mpqa(MPQA))
    assert len(words) == len(set(words)) == 430
    printed = {word.word.lower() for word in load_neutral_words()}
    assert len(printed & set(words)) == 43  # as the card says


def test_a_users_list(write):
    path = write('\ufeffword,label\r\nGood,Positive\r\ngood,positive\r\n"naïve",neutral\r\n日本,negative\r\n')
    words = read_labelled_words(path)
    assert [(word.word, word.label) for word in words] == [
        ("Good", "positive"),
        ("good", "positive"),
        ("naïve", "neutral"),
        ("日本", "negative"),
    ]
    assert names(read_neutral_file(path)) == ["naïve"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"\x89PNG\0", "binary file"),
        ("word,label\ncafé,neutral\n".encode("latin-1"), "line 2: byte 0xe9 is not UTF-8"),
        ("word,label\n", "no rows"),
        ("word\nso\n", "no column 'label'"),
        ("word,lable\nso,neutral\n", "no column 'label'"),
        ("word,label,score\nso,neutral,1\n", "unknown column 'score'"),
        ("word,label\nso,neutrl\n", "line 2: label 'neutrl'"),
        ("word,label\n,neutral\n", "line 2: nothing in column 'word'"),
        ("word,label\nso,neutral\nas,neutral\nso,positive\n", "line 4: 'so' again (first in line 2)"),
        ("word,label\nso so,neutral\n", "line 2: word 'so so'; expected a single word"),
        ('word,label\n"' + "x" * 200_000 + '",neutral\n', "field larger than field limit"),
    ],
)
def test_bad_lists_are_refused(write, content, complaint):
    path = write(content)
    with pytest.raises(DataError) as caught:
        read_labelled_words(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_plain_list_of_neutral_words(write):
    path = write("\ufeffcheese\r\n\r\n  vodka \r\nPEOPLE\r\n", "words.txt")
    assert names(read_neutral_file(path)) == ["cheese", "vodka", "PEOPLE"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("cheese\nvodka martini\n", "line 2: 'vodka martini'; expected one word per line"),
        ("cheese\nvodka,neutral\n", "line 2: 'vodka,neutral'; expected one word per line"),
        ("cheese\nvodka\ncheese\n", "line 3: 'cheese' again (first in line 1)"),
        ("word,label\nso,positive\n", "no row with label neutral"),
        ("cheese,vodka\n", "no column 'word'"),
        ("", "is empty"),
        ("cheese\n" + "x " * 50_000, "x x …'; expected one word"),
    ],
)
def test_bad_neutral_files_are_refused(write, content, complaint):
    with pytest.raises(DataError) as caught:
        read_neutral_file(write(content))
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="no file"):
        read_neutral_file(tmp_path / "none.tff")
