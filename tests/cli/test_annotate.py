"""`clinometer annotate` as a user runs it: export, two raters, resolve, merge, audit."""

import csv
import io

import pytest

from clinometer.data import packaged, read_attitudes, read_text

WORDS = ["easy", "hard", "odd", "true", "=1+1", "surprising", "about", "rare"]


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return file


def rows_of(file):
    return list(csv.DictReader(io.StringIO(read_text(file))))


def rate(sheet, to, ratings, *, by="word"):
    """Fill a copy of a sheet in, as a spreadsheet in a country with semicolons saves it."""
    rows = rows_of(sheet)
    with to.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=";")
        writer.writeheader()
        for row in rows:
            writer.writerow(row | {"rating": ratings.get(row[by].removeprefix("'"), "")})
    return to


ANN = {
    "easy": "positive", "hard": "negative", "odd": "negative", "true": "neutral", "=1+1": "irrelevant",
    "surprising": "neutral", "about": "irrelevant", "rare": "negative",
}  # fmt: skip
BOB = ANN | {"odd": "neutral", "surprising": "negative"}


@pytest.fixture
def rated(clinometer, source, tmp_path):
    result = clinometer("annotate", "export", source, "--out", "sheet.csv", "--seed", 3)
    assert result.code == 0, result
    sheet = tmp_path / "sheet.csv"
    return sheet, rate(sheet, tmp_path / "ann.csv", ANN), rate(sheet, tmp_path / "bob.csv", BOB)


def test_export_writes_a_sheet_and_the_guideline(clinometer, rated, tmp_path):
    sheet = rated[0]
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbfid,word,context,rating,note\r\n")
    rows = rows_of(sheet)
    assert [row["word"] for row in rows] != WORDS
    assert {row["word"] for row in rows} == set(WORDS) - {"true", "=1+1"} | {"'true", "'=1+1"}
    assert {row["rating"] for row in rows} == {""}
    assert read_text(tmp_path / "sheet.guideline.md") == read_text(packaged("stigma", "guideline.md"))


def test_from_two_raters_to_a_list_for_the_audit(clinometer, rated, tmp_path):
    sheet, ann, bob = rated
    result = clinometer("annotate", "read", ann, bob, "--items", sheet, "--unresolved", "open.csv")
    assert result.code == 0, result
    # they agree on 6 of 8; ann: 1 positive, 3 negative, 2 neutral, 2 irrelevant; bob the same counts:
    # p_e = (1 + 9 + 4 + 4) / 64 = 18/64; kappa = (48/64 - 18/64) / (46/64) = 30/46 = 0.652
    assert "ann and bob: kappa 0.65 (" in result.out
    assert "agree on 75.0% of 8" in result.out
    assert "all raters agree on 6 items, 2 are unresolved" in result.out
    to_resolve = tmp_path / "open.csv"
    assert {(row["word"], row["rater_ann"], row["rater_bob"]) for row in rows_of(to_resolve)} == {
        ("odd", "negative", "neutral"),
        ("surprising", "neutral", "negative"),
    }
    decided = rate(to_resolve, tmp_path / "decided.csv", {"odd": "negative", "surprising": "neutral"})
    result = clinometer("annotate", "read", ann, bob, "--items", sheet, "--resolved", decided, "--out", "list.csv")
    assert result.code == 0, result
    assert "all raters agree on 6 items, 2 were resolved, 0 are unresolved" in result.out
    assert read_attitudes(tmp_path / "list.csv") == ANN
    assert {row["word"] for row in rows_of(tmp_path / "list.csv") if row["resolved"] == "yes"} == {
        "odd",
        "surprising",
    }


def test_without_an_answer_an_item_is_missing_and_named(clinometer, rated, tmp_path):
    sheet, ann, _ = rated
    partly = rate(sheet, tmp_path / "cy.csv", {"easy": "positive"})
    result = clinometer("annotate", "read", ann, partly, "--out", "list.csv")
    assert result.code == 0, result
    assert "cy left out 7 of 8: " in result.out
    assert "'rare'" in result.out
    assert read_attitudes(tmp_path / "list.csv") == {"easy": "positive"}
    assert "kappa is not defined" in result.out


def test_raters_who_never_disagree_have_no_interval(clinometer, rated, tmp_path):
    sheet, ann, _ = rated
    twin = rate(sheet, tmp_path / "twin.csv", ANN)
    result = clinometer("annotate", "read", ann, twin)
    assert "kappa 1.00 (no interval, because they never disagree), agree on 100.0% of 8" in result.out


def test_three_raters_give_three_pairs_and_a_majority(clinometer, rated, tmp_path):
    sheet, ann, bob = rated
    third = rate(sheet, tmp_path / "cy.csv", BOB)
    result = clinometer("annotate", "read", ann, bob, third)
    assert [line.partition(":")[0] for line in result.out.splitlines()[:3]] == [
        "ann and bob", "ann and cy", "bob and cy",
    ]  # fmt: skip
    assert "all raters agree on 6 items, most on 2, 0 are unresolved" in result.out
    result = clinometer("annotate", "read", ann, bob, third, "--rule", "unanimous")
    assert "all raters agree on 6 items, 2 are unresolved" in result.out


def test_sentences_with_their_own_choices(clinometer, tmp_path):
    source = tmp_path / "said.csv"
    source.write_text("sentence,context\nNo.,May I?\nNo.,Can I?\nYes.,May I?\n", encoding="utf-8")
    choices = ("--choices", "on topic, off topic ,unclear")
    result = clinometer("annotate", "export", source, "--kind", "sentences", *choices, "--out", "sheet.csv")
    assert "3 sentences to rate: on topic, off topic, unclear" in result.out
    assert "on topic, off topic, unclear" in read_text(tmp_path / "sheet.guideline.md")
    sheet = tmp_path / "sheet.csv"
    ann = rate(sheet, tmp_path / "ann.csv", {"No.": "on topic", "Yes.": "Off Topic"}, by="sentence")
    bob = rate(sheet, tmp_path / "bob.csv", {"No.": "on topic", "Yes.": "unclear"}, by="sentence")
    result = clinometer("annotate", "read", ann, bob, *choices, "--out", "list.csv")
    assert result.code == 0, result
    assert {(row["sentence"], row["context"], row["rating"]) for row in rows_of(tmp_path / "list.csv")} == {
        ("No.", "May I?", "on topic"),
        ("No.", "Can I?", "on topic"),
    }


def test_limit_seed_and_words_that_are_rated_already(clinometer, source, tmp_path):
    known = tmp_path / "known.csv"
    known.write_text("word,rating\neasy,positive\n'true,neutral\n", encoding="utf-8")
    clinometer("annotate", "export", source, "--out", "a.csv", "--without", known, "--limit", 4)
    # of a file the first that are left: hard, odd, =1+1, surprising
    assert {row["word"] for row in rows_of(tmp_path / "a.csv")} == {"hard", "odd", "'=1+1", "surprising"}
    for name, seed in (("b", 1), ("c", 1), ("d", 2)):
        clinometer("annotate", "export", source, "--out", f"{name}.csv", "--seed", seed)
    first, again, other = ((tmp_path / f"{name}.csv").read_bytes() for name in "bcd")
    assert first == again
    assert first != other
    assert sorted(first.split()) == sorted(other.split())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("export", "nowhere.txt", "--out", "x.csv"), "no file 'nowhere.txt'"),
        (("export", "words.txt", "--out", "words.txt"), "'words.txt' already exists"),
        (("export", "words.txt", "--out", "x.csv", "--kind", "sentences"), "no --choices; give two or more"),
        (("export", "words.txt", "--out", "x.csv", "--choices", "good"), "--choices 'good'; give two or more"),
        (
            ("export", "words.txt", "--out", "x.csv", "--choices", "good,Good"),
            "give two or more different ratings",
        ),
        (("export", "words.txt", "--out", "x.csv", "--probe", "stigma"), "--probe chooses from a run"),
        (("export", "words.txt", "--out", "x.csv", "--guideline", "none.md"), "no file 'none.md'"),
        (("export", "words.txt", "--out", "x.csv", "--without", "known.csv"), "has no words to rate"),
        (("export", ".", "--out", "x.csv"), "is not a run"),
        (("read", "known.csv"), "found one sheet"),
        (("read", "known.csv", "known.csv"), "two sheets are called 'known'"),
        (("read", "known.csv", "wrong.csv"), "'wrong.csv', line 2: rating 'fine'; expected positive, negative"),
        (("read", "known.csv", "other.csv"), "'other.csv', line 2: word 'new' (i"),
        (("read", "words.txt", "other.csv"), "expected a column 'word' or a column 'sentence'"),
        (("read", "known.csv", "same.csv", "--out", "same.csv"), "'same.csv' already exists"),
        (("read", "known.csv", "same.csv", "--resolved", "wrong.csv"), "'wrong.csv', line 2: rating 'fine'"),
        (("read", "known.csv", "same.csv", "--resolved", "known.csv"), "its raters have decided on 'neutral'"),
        (("read", "known.csv", "none.csv", "--out", "x.csv"), "the raters agree on no item"),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(clinometer, source, tmp_path, arguments, complaint):
    for name, word, rating in (
        ("wrong", "easy", "fine"), ("other", "new", "neutral"), ("same", "easy", "neutral"), ("none", "easy", ""),
    ):  # fmt: skip
        (tmp_path / f"{name}.csv").write_text(f"word,rating\n{word},{rating}\n", encoding="utf-8")
    (tmp_path / "known.csv").write_text(
        "word,rating\n" + "".join(f"{word},neutral\n" for word in WORDS), encoding="utf-8"
    )
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = clinometer("annotate", *arguments)
    assert result.code == 2, result
    assert complaint in result.err
    assert result.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
