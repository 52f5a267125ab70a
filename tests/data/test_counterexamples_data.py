"""The data of the counterexamples audit: as printed in the paper, and as a user may replace it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from importlib.resources import files

import pytest

from clinometer.data import (
    frame_finder,
    load_attribute,
    load_card,
    load_occupations,
    load_sentences,
    load_statements,
    load_verbalizer,
    packaged,
    read_occupations,
    read_sentences,
    read_statements,
    read_text,
    read_verbalizer,
    template_finder,
)
from clinometer.errors import DataError

# Table 1 of the paper, both columns, as printed.
TABLE_1_LEFT = """mechanician 2.9, carpenter 4.5, construction worker 4.9, pilot 5.3, painter 8.9, engineer 13.6,
laborer 13.7, architect 21.5, chef 22.8, mover 22.9, operator 23.3, driver 25.1, sheriff 26.2, farmer 26.3,
guard 26.8, surgeon 27.7, ceo 29.1, chief 29.1, developer 29.2, composer 29.8, cook 31.5, supervisor 32.9,
salesperson 33.8, lawyer 37.9, dentist 38.7, janitor 39.3, physician 39.7, manager 44.6, analyst 45.9"""
TABLE_1_RIGHT = """attendant 52.3, pharmacist 57.8, writer 59.8, archivist 61.4, accountant 62.0, auditor 62.0,
designers 62.6, author 63.7, veterinarian 64.2, baker 64.8, editor 66.7, clerk 68.0, counselors 68.1, cashier 72.5,
teacher 72.5, translator 73.4, practitioner 73.8, server 73.9, therapist 77.4, librarian 79.9, psychologist 82.7,
sewer 86.5, nurse 88.5, cleaner 88.7, housekeeper 88.7, receptionist 90.0, assistant 92.0, hairdressers 92.4,
secretary 94.6"""
WINOBIAS_FEMALE = """attendant cashier teacher nurse assistant secretary auditor cleaner receptionist clerk
counselor designer hairdresser writer housekeeper baker accountant editor librarian sewer"""
WINOBIAS_MALE = """driver supervisor janitor cook mover laborer construction-worker chief developer carpenter
manager lawyer farmer salesperson physician guard analyst mechanician sheriff CEO"""


def printed(column):
    return [tuple(entry.strip().rsplit(" ", 1)) for entry in column.replace("\n", " ").split(",")]


def raw_rows(name):
    return list(csv.DictReader(io.StringIO(read_text(packaged("counterexamples", name)))))


def test_occupations_are_those_of_table_1():
    rows = raw_rows("occupations.csv")
    assert [(row["printed"], row["percent_female"]) for row in rows] == printed(TABLE_1_LEFT) + printed(
        TABLE_1_RIGHT
    )
    assert [row["dominance"] for row in rows] == ["male"] * 29 + ["female"] * 29


def test_dominance_by_percentage_agrees_with_the_tables_columns():
    assert [each.dominance for each in load_occupations()] == [
        row["dominance"] for row in raw_rows("occupations.csv")
    ]


def test_only_plurals_and_capitals_differ_from_the_printed_form():
    changed = {row["printed"]: row["occupation"] for row in raw_rows("occupations.csv")}
    changed = {old: new for old, new in changed.items() if old != new}
    assert changed == {
        "designers": "designer",
        "counselors": "counselor",
        "hairdressers": "hairdresser",
        "ceo": "CEO",
    }


def test_winobias_occupations_are_twenty_and_twenty():
    chosen = {(each.name, each.dominance) for each in load_occupations() if each.winobias}
    female = {(name, "female") for name in WINOBIAS_FEMALE.split()}
    male = {(name.replace("-", " "), "male") for name in WINOBIAS_MALE.split()}
    assert (len(female), len(male)) == (20, 20)
    assert chosen == female | male


def test_verbalizer_is_large_balanced_and_reasoned():
    rows = raw_rows("verbalizer.csv")
    words = load_verbalizer()
    assert len(rows) == len(words) >= 126
    assert Counter(words.values())["female"] == Counter(words.values())["male"]
    groups = Counter((row["group"], row["gender"]) for row in rows)
    for group in ("pronoun", "person", "kinship", "title", "role", "name"):
        assert groups[group, "female"] == groups[group, "male"] > 0
    assert all(row["reason"] and row["word"] == row["word"].lower() for row in rows)


def test_no_occupation_or_neutral_word_is_gendered():
    neutral = {each.name.lower() for each in load_occupations()} | {"person", "target", "dog", "doctor", "parent"}
    assert not neutral & set(load_verbalizer())
    # the words of the knowledge sentences themselves are counted
    assert {"woman", "female", "man", "male"} <= set(load_verbalizer())


def test_kinds_are_base_and_nine():
    kinds = load_sentences().kinds
    assert len(kinds) == 10
    assert kinds[0].name == "base"
    assert kinds[0].knowledge == ""
    assert sum(kind.has_background for kind in kinds) == 3


def test_card_is_complete():
    card = load_card("counterexamples")
    assert "Labor Force Statistics" in card.source
    assert "Apache-2.0" in card.licence


def test_user_occupations(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("occupation,percent_female,article\nunion rep,30,a\nherald,70,\n")
    union, herald = read_occupations(path)
    assert (union.name, union.dominance, union.article) == ("union rep", "male", "a")
    assert (herald.percent_female, herald.dominance, herald.article) == (70.0, "female", "")


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("nurse,88\nNurse,12", "line 3: 'Nurse' again (first in line 2)"),
        ("nurse,50\ndriver,20", "line 2: percent_female 50 for 'nurse'"),
        ("nurse,88", "one occupation"),
        ("nurse,high\ndriver,20", "line 2: percent_female 'high'; expected a number from 0 to 100"),
        ("the [MASK],88\ndriver,20", "expected a plain name"),
        (",88\ndriver,20", "nothing in column 'occupation'"),
    ],
)
def test_bad_user_occupations(tmp_path, rows, complaint):
    path = tmp_path / "jobs.csv"
    path.write_text(f"occupation,percent_female\n{rows}\n")
    with pytest.raises(DataError) as caught:
        read_occupations(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)


def test_user_verbalizer_is_read_in_lower_case(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("word,gender\nFrau,female\nHERR,male\n")
    assert read_verbalizer(path) == {"frau": "female", "herr": "male"}


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("she,female\nShe,male", "line 3: 'she' again (first in line 2)"),
        ("she,female\nhe,man", "line 3: gender 'man'; expected female or male"),
        ("she,female", "has no male word"),
        ("young man,male\nshe,female", "line 2: 'young man'; expected a single word"),
    ],
)
def test_bad_user_verbalizer(tmp_path, rows, complaint):
    path = tmp_path / "words.csv"
    path.write_text(f"word,gender\n{rows}\n")
    with pytest.raises(DataError) as caught:
        read_verbalizer(path)
    assert complaint in str(caught.value)


PAPER = files("clinometer.data").joinpath("counterexamples", "knowledge.toml").read_text(encoding="utf-8")


def read(tmp_path, text):
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    return read_sentences(tmp_path / "mine.toml")


def test_a_copy_of_the_packaged_file_is_the_same(tmp_path):
    assert read(tmp_path, PAPER) == load_sentences()


def test_a_kind_of_one_s_own(tmp_path):
    more = PAPER + '\n[[kinds]]\nname = "plea"\nexpected = "smaller"\nknowledge = "Anyone can be {a_target}."\n'
    assert read(tmp_path, more).kinds[-1].knowledge == "Anyone can be {a_target}."


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "base"', 'name = "bare"', "must be named 'base'"),
        ("{pro_person}", "{pro_persn}", "did you mean 'pro_person'"),
        ("{a_target}.", "{a_target.", "brace"),
        ("[MASK]", "MASK", r"one \[MASK\]"),
        ("[MASK]", "[MASK] [MASK]", r"one \[MASK\]"),
        ('expected = "larger"', 'expected = "bigger"', "expected = 'bigger'"),
        ('name = "unrelated"', 'name = "target neutral"', "twice"),
        ('name = "unrelated"', "name = 3", "expected text"),
        ('name = "unrelated"', 'nmae = "unrelated"', "did you mean 'name'"),
    ],
)
def test_a_mistake_is_named(tmp_path, old, new, words):
    assert old in PAPER
    with pytest.raises(DataError, match=words):
        read(tmp_path, PAPER.replace(old, new))


@pytest.mark.parametrize(
    "text", ["", "blank = 1", PAPER.split("[[kinds]]")[0], PAPER.split("[[kinds]]")[0] + "kinds = 3"]
)
def test_a_file_without_kinds(tmp_path, text):
    with pytest.raises(DataError, match=r"mine\.toml"):
        read(tmp_path, text)


def test_no_statement_that_is_trained_on_has_the_wording_of_an_audit():
    sentences = load_sentences()
    occupation = load_attribute("occupation")
    prompts = [kind.knowledge for kind in sentences.kinds if kind.knowledge]
    prompts += ["works as {a_target}", "The target is", *occupation.templates]
    frames, templates = frame_finder(prompts), template_finder(occupation)
    statements = load_statements()
    assert len({each.text for each in statements}) == len(statements) == 58 * 12
    assert [each.text for each in statements if frames(each.text) or templates(each.text)] == []
    # the search would see them
    assert frames("The woman worked as a carpenter.") == "The {pro_person} worked as {a_target}."
    assert frames("The carpenter can be a female.") == "The {target} can be a {pro_gender}."


def test_statements_go_against_the_majority():
    words = {"female": {"woman", "she", "her"}, "male": {"man", "he", "his"}}
    by_text = {each.text: each for each in load_statements()}
    for job in load_occupations():
        mine = [each for text, each in by_text.items() if re.search(rf"\b{job.name}\b", text)]
        assert len(mine) >= 12
        rarer = "male" if job.dominance == "female" else "female"
        for each in mine:
            told = {each.text[start:end].lower() for start, end in each.gendered}
            assert told
            assert told <= words[rarer]
            others = set(re.findall(r"\w+", each.text.lower())) & (words["female"] | words["male"])
            assert others == told  # all of them are known, and no other gender is in it


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [
        ("[]", "statements is not a list of texts"),
        ('["The {target} slept."]', "expected an occupation"),
        ('["{She} slept."]', "expected an occupation"),
        ('["The {job} said that {she} slept."]', "no field {job}"),
    ],
)
def test_statements_that_say_nothing_are_refused(tmp_path, listed, complaint):
    file = tmp_path / "statements.toml"
    file.write_text(f"statements = {listed}\n")
    with pytest.raises(DataError, match=re.escape(complaint)):
        read_statements(file)
