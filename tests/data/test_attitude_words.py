"""The attitude of words: our own ratings, and a reader for other people's."""

import csv
import io
import os
from collections import Counter
from pathlib import Path

import pytest

from clinometer.data import RATINGS, load_attitudes, load_card, packaged, read_attitudes, read_text
from clinometer.errors import DataError
from clinometer.stats import cohens_kappa


def write(folder, text):
    file = folder / "ratings.csv"
    file.write_text(text, encoding="utf-8")
    return file


def raw_rows():
    return list(csv.DictReader(io.StringIO(read_text(packaged("stigma", "attitudes.csv")))))


def test_our_list_is_large_and_uses_all_four_ratings():
    attitudes = load_attitudes()
    assert len(attitudes) >= 600
    assert len(attitudes) == len(raw_rows())
    counts = Counter(attitudes.values())
    assert set(counts) == set(RATINGS)
    assert min(counts.values()) >= 50


def test_every_word_was_rated_twice_and_every_disagreement_is_marked():
    for row in raw_rows():
        assert row["rater_a"] in RATINGS
        assert row["rater_b"] in RATINGS
        if row["rater_a"] == row["rater_b"]:
            assert (row["rating"], row["resolved"]) == (row["rater_a"], ""), row
        else:
            assert row["resolved"].startswith("yes: "), row
            assert row["rating"] in RATINGS


def test_agreement_is_the_one_that_the_card_states():
    rows = raw_rows()
    kappa = cohens_kappa([row["rater_a"] for row in rows], [row["rater_b"] for row in rows])
    assert f"Cohen's kappa {kappa.estimate:.2f} ({kappa.low:.2f} to {kappa.high:.2f})" in load_card("stigma").notes


def test_the_words_of_the_scale_itself():
    attitudes = load_attitudes()
    assert (attitudes["likely"], attitudes["unlikely"]) == ("positive", "negative")


def test_examples_of_the_guideline_are_rated_as_it_says():
    attitudes = load_attitudes()
    for line in read_text(packaged("stigma", "guideline.md")).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and cells[1] in RATINGS:
            for word in cells[2].split(", "):
                assert attitudes[word.strip("*")] == cells[1], word


def test_words_and_ratings_in_any_case(tmp_path):
    file = write(tmp_path, "word,rating\nEasy,Positive\n hard , NEGATIVE \n")
    assert read_attitudes(file) == {"easy": "positive", "hard": "negative"}


def test_the_authors_format(tmp_path):
    text = "\ufeffword,label\r\nTRUE,IRR\r\nLikely,POS\r\nlikely,POS\r\nhard,NEG\r\nodd,NEU\r\n"
    file = write(tmp_path, text)
    expected = {"true": "irrelevant", "likely": "positive", "hard": "negative", "odd": "neutral"}
    assert read_attitudes(file) == expected


def test_a_list_that_raters_made(tmp_path):
    text = "word,rating,rater_ann,rater_bob,resolved\n'true,neutral,neutral,irrelevant,yes: odd\n'tis,neutral,,,\n"
    assert read_attitudes(write(tmp_path, text)) == {"true": "neutral", "'tis": "neutral"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "word,rating\neasy,good\n",
            "line 2: rating 'good'; expected irrelevant or negative or neutral or positive",
        ),
        ("word,rating\neasy,positive\nhard,\n", "line 3: rating ''"),
        ("word,label\neasy,POSITIVE\n", "line 2: label 'POSITIVE'; expected irr or neg or neu or pos"),
        ("word,rating\neasy,positive\nEasy,negative\n", "line 3: 'easy' is negative here and positive in line 2"),
        ("word,rating\nvery easy,positive\n", "line 2: 'very easy'; expected a single word"),
        ("word,rating\n,positive\n", "line 2: nothing in column 'word'"),
        ("word,score\neasy,1\n", "no rating in any row"),
        ("rating\npositive\n", "no column 'word'"),
        ("word,rating\n", "no rows"),
        ("", "empty"),
    ],
)
def test_broken_files_are_refused(tmp_path, text, complaint):
    with pytest.raises(DataError, match=complaint):
        read_attitudes(write(tmp_path, text))


def test_the_authors_file():
    file = Path(os.environ.get("CLINOMETER_TEST_DATA", "nowhere")) / "stigma" / "word_ratings.csv"
    if not file.is_file():
        pytest.skip("the authors' files are not here; CLINOMETER_TEST_DATA/stigma is their folder")
    ratings = read_attitudes(file)
    # 445 rows; two words stand there in two spellings
    assert len(ratings) == 443
    assert set(ratings.values()) == set(RATINGS)
