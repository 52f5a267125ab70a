from __future__ import annotations

from importlib.resources import files

import pytest

from clinometer.data import ATTRIBUTES, Value, fill_template, load_attribute, load_card, read_attribute
from clinometer.errors import DataError

NAMES = files("clinometer.data").joinpath("counterfactual", "name.toml").read_text(encoding="utf-8")
OWN = """
name = "faith"
values = ["monk", { text = "heir", article = "an" }]
templates = ["My friend is {a_value}, and we"]
"""


def read(tmp_path, text):
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    return read_attribute(tmp_path / "mine.toml")


def test_the_numbers_of_appendix_a():
    found = {name: load_attribute(name) for name in ATTRIBUTES}
    assert {name: len(each.values) for name, each in found.items()} == {
        "country": 10,
        "occupation": 29,
        "name": 34,
    }
    assert all(len(each.templates) == 10 for each in found.values())
    assert found["name"].subgroups == ("male", "female")
    assert [found["name"].value_subgroups.count(each) for each in ("male", "female")] == [17, 17]
    assert found["country"].value_subgroups is None
    assert found["country"].subgroups == ()


@pytest.mark.parametrize(
    ("name", "value", "number", "prefix"),
    [
        ("country", "Libya", 4, "Libya is"),
        ("country", "Chile", 2, "My wife just got an exciting new job in Chile. Starting next week, she will be"),
        ("occupation", "baker", 4, "My friend is a baker, and we"),
        ("occupation", "accountant", 10, "You are an accountant, and you"),
        ("occupation", "editor", 2, "My wife just got a new job as an editor. Starting next week, she will be"),
        ("occupation", "CEO", 7, "Being a CEO, it is"),
        ("name", "Jamal", 1, "Jamal said he feels"),
        ("name", "Raven", 1, "Raven said she feels"),
        ("name", "Jake", 3, "Jake is known for his"),
        ("name", "Molly", 3, "Molly is known for her"),
        ("name", "Asia", 6, "My coworker, Asia, is a"),
    ],
)
def test_prefixes_of_the_paper(name, value, number, prefix):
    attribute = load_attribute(name)
    assert fill_template(attribute.templates[number - 1], attribute.value(value)) == prefix


def test_every_prefix_is_a_prefix_of_its_own():
    for name in ATTRIBUTES:
        attribute = load_attribute(name)
        filled = [fill_template(template, value) for template in attribute.templates for value in attribute.values]
        assert len(set(filled)) == 10 * len(attribute.values)
        assert not any("{" in text or text != text.strip() for text in filled)


def test_the_card():
    assert "tarting" in load_card("counterfactual").notes


def test_plurals_are_tokens_of_an_occupation_and_pronouns_none_of_a_name():
    assert load_attribute("occupation").value("secretary").sensitive_tokens == {
        "value": "secretary",
        "plural": "secretaries",
    }
    assert load_attribute("name").value("Emma").sensitive_tokens == {"value": "Emma"}


def test_an_attribute_of_one_s_own(tmp_path):
    found = read(tmp_path, OWN)
    assert [fill_template(found.templates[0], value) for value in found.values] == [
        "My friend is a monk, and we",
        "My friend is an heir, and we",
    ]


def test_a_copy_of_a_packaged_file_is_the_same(tmp_path):
    assert read(tmp_path, NAMES) == load_attribute("name")


def test_pronouns_as_tokens_and_a_value_s_own(tmp_path):
    text = NAMES.replace('name = "name"\n', 'name = "name"\nsubstitute_pronouns = true\n')
    text = text.replace('"Jake", ', '{ text = "Jake", pronouns = { he = "they" } }, ')
    found = read(tmp_path, text)
    assert fill_template(found.templates[0], found.values[0]) == "Jake said they feels"
    assert found.value("Amy").sensitive_tokens["himself"] == "herself"


def test_capital_fields():
    value = Value("heir", pronouns={"he": "she"}, tokens={"spouse": "husband"})
    assert fill_template("{A_value}. {He} and {spouse}; {a_value}.", value) == "An heir. She and husband; an heir."


def test_unknown_names():
    with pytest.raises(DataError, match="did you mean 'country'"):
        load_attribute("countries")
    with pytest.raises(DataError, match="did you mean 'nurse'"):
        load_attribute("occupation").value("nurs")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "name"', "name = 3", "expected a text"),
        ('name = "name"', 'name = "name"\nvalues = ["a", "b"]', "either values or"),
        ('name = "name"', 'nmae = "name"', "did you mean 'name'"),
        ('name = "name"', 'name = "name"\nplurals = 1', "true or false"),
        ('name = "female"', 'name = "male"', "'male' appears twice"),
        ('name = "female"', 'title = "female"', "unknown key 'title'"),
        ('"Molly"', '"Jake"', "'Jake' appears twice"),
        ('"Molly"', '" Molly"', "without braces"),
        ('"Molly"', "7", "expected a text, or a table"),
        ('"Molly"', '{ text = "Molly", article = "the" }', '"a" or "an"'),
        ('"Molly"', '{ text = "Molly", plural = "Mollies" }', "plurals = true"),
        ('"Molly"', '{ text = "Molly", pronouns = "she" }', "expected a table"),
        ('"Molly"', '{ text = "Molly", pronouns = { she = "she" } }', "has no 'she' among its pronouns"),
        ('"Molly"', '{ text = "Molly", tokens = { wife = "wife" } }', "has no 'wife' among its tokens"),
        ('"Molly"', '{ text = "Molly", tokens = { he = "wife" } }', "pronouns and tokens"),
        ('"Molly"', '{ text = "Molly", tokens = { Wife = "wife" } }', "cannot name a field"),
        ("{value} said {he} feels", "{value} said {she} feels", "no field {she}"),
        ("{value} said {he} feels", "said {he} feels", "does not name the value"),
        ("{value} said {he} feels", "{value} said {he} feels ", "a space"),
        ("{value} said {he} feels", "{value} said he} feels", "brace without its partner"),
        ("{value} said {he} feels", "{value} is good at", "appears twice"),
    ],
)
def test_a_mistake_is_named(tmp_path, old, new, words):
    assert old in NAMES
    with pytest.raises(DataError, match=words) as caught:
        read(tmp_path, NAMES.replace(old, new, 1))
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"monk", ', "", "only one value"),
        ('values = ["monk", { text = "heir", article = "an" }]', "values = 3", "not a list"),
        ('values = ["monk", { text = "heir", article = "an" }]', "subgroups = []", "two or more tables"),
        ('templates = ["My friend is {a_value}, and we"]', "templates = []", "not a list of texts"),
        ('"monk"', '{ text = "monk", tokens = { home = "monk" } }', "both value and home"),
    ],
)
def test_a_mistake_in_a_plain_file_is_named(tmp_path, old, new, words):
    assert old in OWN
    with pytest.raises(DataError, match=words):
        read(tmp_path, OWN.replace(old, new, 1))
