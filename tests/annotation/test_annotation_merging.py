"""One rating out of several: when raters agree, when most do, and when somebody has to decide."""

import csv
import io

import pytest

from clinometer.annotation.items import make_item
from clinometer.annotation.merging import merge_ratings, merged_csv, unresolved_csv
from clinometer.annotation.sheets import RatedSheet
from clinometer.data import read_attitudes
from clinometer.errors import DataError

ITEMS = [make_item("word", text) for text in ("w1", "w2", "w3", "w4")]


def sheet(rater, ratings, notes=None):
    """Ratings as letters, one for each item; a dot is an empty cell."""
    given = {item.id: letter for item, letter in zip(ITEMS, ratings, strict=True) if letter != "."}
    return RatedSheet(rater=rater, ratings=given, notes=notes or {})


def outcome(merged):
    settled = {each.item.text: (each.rating, each.decision) for each in merged.settled}
    return settled, [item.text for item in merged.unresolved]


def test_two_raters():
    merged = merge_ratings(ITEMS, [sheet("ann", "++-."), sheet("bob", "+--+")])
    # w1 and w3 alike; w2 one each; w4 rated by one only
    assert outcome(merged) == ({"w1": ("+", "all agree"), "w3": ("-", "all agree")}, ["w2", "w4"])


def test_three_raters_by_majority_and_unanimously():
    sheets = [sheet("ann", "+++."), sheet("bob", "++-."), sheet("cy", "+-o.")]
    assert outcome(merge_ratings(ITEMS, sheets)) == (
        {"w1": ("+", "all agree"), "w2": ("+", "majority")},
        ["w3", "w4"],
    )
    assert outcome(merge_ratings(ITEMS, sheets, rule="unanimous")) == (
        {"w1": ("+", "all agree")},
        ["w2", "w3", "w4"],
    )


def test_more_than_half_is_needed_not_just_the_most():
    sheets = [sheet(name, ratings) for name, ratings in zip("abcd", ("++++", "+++o", "+--x", "+-oy"), strict=True)]
    # w1 4 of 4; w2 2 of 4; w3 2 of 4, w4 1 of 4
    assert outcome(merge_ratings(ITEMS, sheets)) == ({"w1": ("+", "all agree")}, ["w2", "w3", "w4"])


def test_somebody_decides():
    resolved = sheet("open", ".-..", notes={ITEMS[1].id: "the table, row 3"})
    merged = merge_ratings(ITEMS, [sheet("ann", "++-."), sheet("bob", "+--+")], resolved=resolved)
    settled, unresolved = outcome(merged)
    assert settled["w2"] == ("-", "resolved")
    assert unresolved == ["w4"]
    assert merged.settled[1].reason == "the table, row 3"


def test_nobody_overrules_the_raters():
    with pytest.raises(DataError, match=r"'w1' is among the resolved items, but its raters have decided on '\+'"):
        merge_ratings(ITEMS, [sheet("ann", "++-."), sheet("bob", "+--+")], resolved=sheet("open", "-..."))


def test_the_list_says_who_said_what_and_is_read_by_the_audit(tmp_path):
    items = [make_item("word", text) for text in ("easy", "true", "=1", "odd")]
    ratings = [
        ("positive", "positive"),
        ("neutral", "irrelevant"),
        ("irrelevant", "irrelevant"),
        ("neutral", "negative"),
    ]
    ann, bob = (
        RatedSheet(
            rater=name, ratings={item.id: pair[place] for item, pair in zip(items, ratings, strict=True)}, notes={}
        )
        for place, name in enumerate(("ann", "rater_bob"))
    )
    resolved = RatedSheet(
        rater="open", ratings={items[1].id: "neutral"}, notes={items[1].id: "judges a statement"}
    )
    merged = merge_ratings(items, [ann, bob], resolved=resolved)
    text = merged_csv(merged, [ann, bob], kind="word")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["word", "rating", "rater_ann", "rater_bob", "resolved"]
    assert rows[1] == {
        "word": "'true",
        "rating": "neutral",
        "rater_ann": "neutral",
        "rater_bob": "irrelevant",
        "resolved": "yes: judges a statement",
    }
    file = tmp_path / "list.csv"
    file.write_text(text, encoding="utf-8-sig", newline="")
    assert read_attitudes(file) == {"easy": "positive", "true": "neutral", "=1": "irrelevant"}


def test_the_sheet_to_resolve_shows_ratings_and_notes():
    ann, bob = sheet("ann", "++-."), sheet("bob", "+--+", notes={ITEMS[1].id: "hm"})
    merged = merge_ratings(ITEMS, [ann, bob])
    rows = list(csv.DictReader(io.StringIO(unresolved_csv(merged.unresolved, [ann, bob], kind="word"))))
    assert [row["word"] for row in rows] == ["w2", "w4"]
    # a spreadsheet would take a lone + or - for a formula
    assert (rows[0]["rater_ann"], rows[0]["rater_bob"]) == ("'+", "'-")
    assert (rows[0]["raters_notes"], rows[0]["rating"], rows[0]["note"]) == ("bob: hm", "", "")
