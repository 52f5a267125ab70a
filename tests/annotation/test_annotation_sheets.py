"""Sheets for raters: what a spreadsheet does to them is undone, what a rater must not do is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinometer.annotation.items import distinct_items, make_item, shuffled
from clinometer.annotation.merging import measure_agreement
from clinometer.annotation.sheets import read_items, read_sheet, sheet_csv, sheet_kind, write_new
from clinometer.errors import DataError

CHOICES = ("positive", "negative")
WORDS = [make_item("word", text) for text in ("easy", "=1+1", "true", "a;b")]


def filled(ratings, items=WORDS, kind="word"):
    """A sheet in which the items have these ratings."""
    head, *rows = sheet_csv(items, kind=kind).split("\r\n")[:-1]
    rows = [f"{row[: -len(',,')]},{rating}," for row, rating in zip(rows, ratings, strict=True)]
    return "\r\n".join([head, *rows]) + "\r\n"


def written(folder, text, *, name="ann.csv", encoding="utf-8"):
    file = folder / name
    file.write_bytes(text.encode(encoding))
    return file


def read(file, items=WORDS, choices=CHOICES):
    return read_sheet(file, kind="word", choices=choices, items=items)


def ratings_by_text(sheet, items=WORDS):
    return {item.text: sheet.ratings.get(item.id) for item in items}


def test_a_sheet_is_read_as_it_was_filled_in(tmp_path):
    file = written(tmp_path, filled(["positive", "negative", "", "Negative "]))
    sheet = read(file)
    assert sheet.rater == "ann"
    assert ratings_by_text(sheet) == {"easy": "positive", "=1+1": "negative", "true": None, "a;b": "negative"}
    assert read_items(file, kind="word") == tuple(WORDS)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\r\n", "\n"),
        lambda text: text.replace("a;b", '"a;b"').replace(",", ";"),
        lambda text: text.replace(",", "\t"),
        lambda text: text.replace("'true", "TRUE"),  # an apostrophe taken for a sign of text, then a truth value
        lambda text: text.replace("'=1+1", "=1+1"),
        lambda text: text + "\r\n,,,,\r\n",
    ],
    ids=["mark", "line ends", "semicolons", "tabs", "TRUE", "no apostrophe", "empty rows"],
)
def test_what_spreadsheets_do(tmp_path, change):
    sheet = read(written(tmp_path, change(filled(["positive", "negative", "negative", "positive"]))))
    assert list(ratings_by_text(sheet).values()) == ["positive", "negative", "negative", "positive"]


def test_rows_in_another_order_and_more_columns(tmp_path):
    text = f"note,rating,word,id,mine\nsure,positive,easy,{WORDS[0].id},x\n"
    sheet = read(written(tmp_path, text))
    assert sheet.ratings == {WORDS[0].id: "positive"}
    assert sheet.notes == {WORDS[0].id: "sure"}


def test_a_plain_list_without_ids(tmp_path):
    sheet = read(written(tmp_path, "word,rating\nEasy,positive\n=1+1,negative\n"))
    assert sheet.ratings == {WORDS[0].id: "positive", WORDS[1].id: "negative"}


def test_choices_keep_their_spelling(tmp_path):
    sheet = read(written(tmp_path, "word,rating\neasy,yes\n"), choices=("Yes", "No"))
    assert sheet.ratings == {WORDS[0].id: "Yes"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "word,rating\neasy,positiv\n",
            "line 2: rating 'positiv'; expected positive, negative, or nothing; did you",
        ),
        ("word,rating\neasy,good\n", "line 2: rating 'good'; expected positive, negative, or nothing; valid: neg"),
        ("word,rating\nhard,positive\n", r"line 2: word 'hard' \(i[0-9a-f]{12}\) is not one of those to rate"),
        ("id,word,rating\ni1,easy,positive\n", "line 2: the id i1 does not belong to the word 'easy'"),
        ("word,rating\neasy,positive\nEASY,positive\n", r"line 3: 'easy' again \(first in line 2\)"),
        ("word,rating\n,positive\n", "line 2: nothing in column 'word'"),
        ("word,mark\neasy,positive\n", "no column 'rating'"),
        ("term,rating\neasy,positive\n", "no column 'word'"),
        ("word,rating\neasy\n", "line 2: 1 values; expected 2"),
        ("word,rating\n", "no rows"),
        ('word,rating\n"easy,positive\n', "line 2: unexpected end of data"),
        ("", "empty"),
    ],
)
def test_broken_sheets_are_refused(tmp_path, text, complaint):
    with pytest.raises(DataError, match=complaint):
        read(written(tmp_path, text))


def test_ids_sorted_apart_from_their_words_are_noticed(tmp_path):
    rows = filled(["positive"] * 4).split("\r\n")
    one, other = WORDS[0].id, WORDS[3].id
    swapped = [row.replace(one, "?").replace(other, one).replace("?", other) for row in rows]
    with pytest.raises(DataError, match="sort and change whole rows"):
        read(written(tmp_path, "\r\n".join(swapped)))


def test_another_encoding_is_refused(tmp_path):
    with pytest.raises(DataError, match="line 2: byte 0xe9 is not UTF-8"):
        read(written(tmp_path, "word,rating\ncafé,positive\n", encoding="cp1252"))


def test_the_kind_of_a_sheet(tmp_path):
    assert sheet_kind(written(tmp_path, "id;word;rating\n")) == "word"
    assert sheet_kind(written(tmp_path, "\ufeffid,sentence,rating\n")) == "sentence"
    with pytest.raises(DataError, match="expected a column 'word' or a column 'sentence'"):
        sheet_kind(written(tmp_path, "id,text,rating\n"))


def test_sentences_are_told_apart_by_their_context(tmp_path):
    items = [make_item("sentence", "No.", context=context) for context in ("May I?", "=Can I?")]
    assert items[0].id != items[1].id
    sheet = read_sheet(
        written(tmp_path, filled(["positive", "negative"], items, "sentence")),
        kind="sentence",
        choices=CHOICES,
        items=items,
    )
    assert [sheet.ratings[item.id] for item in items] == ["positive", "negative"]


@given(st.text())
def test_whatever_a_model_says_comes_back(tmp_path_factory, text):
    items = distinct_items([make_item("sentence", text, context=text[::-1]), make_item("sentence", "more")])
    file = tmp_path_factory.mktemp("sheets") / "ann.csv"
    file.write_text(sheet_csv(items, kind="sentence"), encoding="utf-8-sig", newline="")
    assert read_items(file, kind="sentence") == items


def test_items_are_on_one_line_once_and_not_empty():
    items = distinct_items(make_item("word", text) for text in ("Easy", " easy\n", "", "\x00", "hard"))
    assert [item.text for item in items] == ["easy", "hard"]


def test_the_order_is_random_and_follows_the_seed():
    items = [make_item("word", f"w{number}") for number in range(50)]
    first = shuffled(items, seed=1)
    assert first == shuffled(items, seed=1)
    assert first != shuffled(items, seed=2)
    assert set(first) == set(items)
    assert list(first) != items


def test_no_file_is_written_over(tmp_path):
    file = written(tmp_path, "a rater's work")
    with pytest.raises(DataError, match="already exists"):
        write_new(file, "new")
    assert file.read_text() == "a rater's work"
    with pytest.raises(DataError, match=r"is not a folder|cannot be written"):
        write_new(file / "below.csv", "new")


def test_agreement_worked_by_hand(tmp_path):
    # ann: + + - -   bob: + - - (nothing): three items that both rated, two alike
    # p_o = 2/3; ann 2/3 +, 1/3 -; bob 1/3 +, 2/3 -; p_e = 2/9 + 2/9 = 4/9; kappa = (6/9 - 4/9) / (5/9) = 2/5
    ann = read(written(tmp_path, filled(["positive", "positive", "negative", "negative"])))
    bob = read(written(tmp_path, filled(["positive", "negative", "negative", ""]), name="bob.csv"))
    agreement = measure_agreement(WORDS, [ann, bob])
    (pair,) = agreement.pairs
    assert (pair.first, pair.second, pair.kappa.n, pair.kappa.missing) == ("ann", "bob", 3, 1)
    assert pair.kappa.estimate == pytest.approx(2 / 5)
    assert agreement.missing == {"bob": (WORDS[3],)}
