from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinometer.data import (
    Attribute,
    Mention,
    Value,
    counterfactual,
    find_values,
    load_attribute,
    mention_finder,
    substitution,
)
from clinometer.errors import DataError

COUNTRY, OCCUPATION, NAME = (load_attribute(name) for name in ("country", "occupation", "name"))

# the paper's φ(male) = {he, his, him, husband, Paul}
GENDER = Attribute(
    "gender",
    (
        Value("Paul", tokens={"he": "he", "him": "him", "his": "his", "hers": "his", "spouse": "husband"}),
        Value("Mary", tokens={"he": "she", "him": "her", "his": "her", "hers": "hers", "spouse": "wife"}),
    ),
    (),
    ("{value} is",),
)


@pytest.mark.parametrize(
    ("text", "a", "b", "expected"),
    [
        ("a nurse", "nurse", "accountant", "an accountant"),
        ("An accountant, an ACCOUNTANT.", "accountant", "nurse", "A nurse, a NURSE."),
        ("AN ACCOUNTANT", "accountant", "nurse", "A NURSE"),
        ("A NURSE", "nurse", "accountant", "AN ACCOUNTANT"),
        ("Nurses and nurses' rooms", "nurse", "secretary", "Secretaries and secretaries' rooms"),
        ("the nurse's coat", "nurse", "baker", "the baker's coat"),
        ("the nurse’s coat", "nurse", "baker", "the baker’s coat"),
        ("nursery, nursed, subnurse", "nurse", "baker", "nursery, nursed, subnurse"),
        ("a part-time nurse-led ward", "nurse", "baker", "a part-time baker-led ward"),
        ("a new nurse", "nurse", "auditor", "a new auditor"),  # the article is not right before it
        ("a\n  nurse", "nurse", "auditor", "an\n  auditor"),
        ("The CEO and CEOs", "CEO", "nurse", "The nurse and nurses"),
        ("A CEO met a CEO. A CEO's hat", "CEO", "auditor", "An auditor met an auditor. An auditor's hat"),
        ("CEO at last. CEO again", "CEO", "nurse", "Nurse at last. Nurse again"),
        ("Nurse and nurse", "nurse", "CEO", "CEO and CEO"),
        ("a baker and a nurse", "nurse", "baker", "a baker and a baker"),  # what was there stays
        ("", "nurse", "baker", ""),
    ],
)
def test_occupations(text, a, b, expected):
    assert counterfactual(text, OCCUPATION, a, b) == expected


def test_proper_names_are_not_found_in_lower_case_or_in_other_words():
    text = "Chile's CHILE grows chile; Chilean. An Iran of ours."
    assert (
        counterfactual(text, COUNTRY, "Chile", "Italy") == "Italy's ITALY grows chile; Chilean. An Iran of ours."
    )
    assert counterfactual(text, COUNTRY, "Iran", "Libya").endswith("A Libya of ours.")
    assert counterfactual("O'Connor, O’Connor, 'Connor'", NAME, "Connor", "Jake") == "O'Connor, O’Connor, 'Jake'"


def test_articles_can_be_left_as_they_are():
    assert counterfactual("a nurse", OCCUPATION, "nurse", "auditor", articles=False) == "a auditor"


def test_a_value_s_own_article():
    attribute = Attribute("x", (Value("nurse"), Value("MRI technician", article="an")), (), ("{value}",))
    assert counterfactual("a nurse", attribute, "nurse", "MRI technician") == "an MRI technician"
    assert counterfactual("an MRI\ntechnician", attribute, "MRI technician", "nurse") == "a nurse"


def test_names_keep_the_pronouns_that_are_no_tokens_of_theirs():
    assert counterfactual("Jake lost his hat", NAME, "Jake", "Emma") == "Emma lost his hat"


@pytest.mark.parametrize(
    ("male", "female"),
    [
        ("He saw him. His hat is his.", "She saw her. Her hat is hers."),
        ("Paul's husband gave it to him, and he left.", "Mary's wife gave it to her, and she left."),
        (
            "I told him that his own dog likes him in the park.",
            "I told her that her own dog likes her in the park.",
        ),
        ("A friend of his: HE'S here.", "A friend of hers: SHE'S here."),
        ("We know him\nand his “new” car", "We know her\nand her “new” car"),
    ],
)
def test_pronouns_both_ways(male, female):
    assert counterfactual(male, GENDER, "Paul", "Mary") == female
    assert counterfactual(female, GENDER, "Mary", "Paul") == male


def test_unknown_values_are_named():
    with pytest.raises(DataError, match="did you mean 'nurse'"):
        counterfactual("", OCCUPATION, "nurses", "baker")


# words between which a value can stand; none is a token of an occupation, none an article
FILLING = st.lists(st.sampled_from(["the", "old", "met", "two", "and,", "(then)", "\n", "end."]), max_size=4).map(
    " ".join
)
REGULAR = [value.text for value in OCCUPATION.values if value.text != "CEO"]


@given(
    st.lists(st.tuples(FILLING, st.sampled_from(["{}", "{s}", "{}'s", "{T}", "{U}", "{a}", "{A}"])), max_size=6),
    st.sampled_from(REGULAR),
    st.sampled_from(REGULAR),
)
def test_there_and_back_again(parts, a, b):
    def written(occupation):
        value = OCCUPATION.value(occupation)
        an = "an" if occupation[0] in "aeiou" else "a"
        forms = {
            "{}": occupation,
            "{s}": value.tokens["plural"],
            "{}'s": occupation + "'s",
            "{T}": occupation.capitalize(),
            "{U}": occupation.upper(),
            "{a}": f"{an} {occupation}",
            "{A}": f"{an.capitalize()} {occupation}",
        }
        return " ".join(f"{filling} {forms[form]}" for filling, form in parts)

    there = counterfactual(written(a), OCCUPATION, a, b)
    assert there == written(b)
    assert counterfactual(there, OCCUPATION, b, a) == written(a)


@given(st.text(max_size=80), st.sampled_from(NAME.values), st.sampled_from(NAME.values))
def test_text_without_the_value_stays(text, a, b):
    if a.text not in find_values(text, NAME):
        assert counterfactual(text, NAME, a.text, b.text) == text
    changed = counterfactual(f"{text} {a.text} ", NAME, a.text, b.text)
    assert b.text in find_values(changed, NAME)
    assert a.text == b.text or a.text not in find_values(changed, NAME)


def test_which_values_occur():
    assert find_values("Italy's IRAN, Iraqis, chile", COUNTRY) == ("Iran", "Italy")
    assert find_values("Two secretaries and a Chief", OCCUPATION) == ("secretary", "chief")
    assert find_values("no one", OCCUPATION) == ()
    assert find_values("she saw her", GENDER) == ("Mary",)


def test_shared_tokens_do_not_say_which_value_occurs():
    attribute = Attribute(
        "x",
        (
            Value("Jake", tokens={"he": "he"}),
            Value("Luke", tokens={"he": "he"}),
            Value("Amy", tokens={"he": "she"}),
        ),
        (),
        (),
    )
    assert find_values("he said", attribute) == ()
    assert find_values("she and Luke", attribute) == ("Luke", "Amy")


@pytest.mark.parametrize(
    ("text", "attribute", "expected"),
    [
        ("chile, Chilean, O'Connor, CHILE", COUNTRY, Mention("Chile", 26, 31)),
        ("Two secretaries and a nurse", OCCUPATION, Mention("secretary", 4, 15)),
        ("“Ñandú 𝒳” – the nurse's", OCCUPATION, Mention("nurse", 16, 21)),
        ("nursery", OCCUPATION, None),
        ("", OCCUPATION, None),
        ("he saw her and Paul", GENDER, Mention("Paul", 0, 2)),  # "he" is Paul's alone
    ],
)
def test_the_first_mention(text, attribute, expected):
    assert next(mention_finder(attribute)(text), None) == expected


@given(st.lists(st.sampled_from(["Emma", "JAKE", "raven", "Raven's", "Jakes", "\n", "é", "-", "’"]), max_size=8))
def test_mentions_are_what_occurs(parts):
    text = "".join(parts)
    found = list(mention_finder(NAME)(text))
    assert {each.value for each in found} == set(find_values(text, NAME))
    assert [text[each.start : each.end].upper() for each in found] == [each.value.upper() for each in found]


def test_large_texts_are_no_matter():
    text = "The old secretary from Iran met Jake and two nurses, who were not there at the time. " * 25_000  # 2 MB
    started = time.process_time()
    for attribute in (COUNTRY, OCCUPATION, NAME):
        find_values(text, attribute)
    assert time.process_time() - started < 6  # at least 1 MB a second, on the slowest machine


def test_several_values_change_places_at_once_and_it_is_told_where():
    text = "A nurse and an accountant met two nurses; a NURSE's accountant."
    found = substitution(text, OCCUPATION, {"nurse": "accountant", "accountant": "chief"})
    assert found.text == "An accountant and a chief met two accountants; an ACCOUNTANT's chief."
    before = [text[each.start : each.end] for each in found.replaced]
    after = [found.text[each.other_start : each.other_end] for each in found.replaced]
    assert before == ["nurse", "accountant", "nurses", "NURSE", "accountant"]
    assert after == ["accountant", "chief", "accountants", "ACCOUNTANT", "chief"]


def test_a_shared_token_follows_the_first_of_its_values():
    attribute = Attribute(
        "person",
        tuple(
            Value(name, tokens={"he": pronoun})
            for name, pronoun in (("Paul", "he"), ("Tom", "he"), ("Mary", "she"), ("Robin", "they"))
        ),
        (),
        ("{value} is",),
    )
    text = "Tom met Paul, and he left."
    assert substitution(text, attribute, {"Tom": "Mary", "Paul": "Robin"}).text == "Mary met Robin, and she left."
    assert substitution(text, attribute, {"Paul": "Robin"}).text == "Tom met Robin, and they left."
