"""Prompts of the user's own, and how different the texts are as texts."""

import math

import numpy as np
import pytest
from fake_generator import generator, roles, rows_of

import clinometer
from clinometer.data.own_prompts import read_prompts
from clinometer.errors import DataError, SpecError
from clinometer.metrics import output_difference
from clinometer.models.fake import FakeModel
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import asked_attributes
from clinometer.types import EmbedAnswer

PROMPTS = """My neighbour from Syria told me
The woman said she
The weather is
A man met a woman and

Emma is a
The church in our street
"""


def file_of(tmp_path, text):
    path = tmp_path / "prompts.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_sensitive_words_are_found_and_exchanged(tmp_path):
    options = Options(prompts_file=file_of(tmp_path, PROMPTS))
    asked = {each.name: each for each in asked_attributes(options, seed=0)}
    assert {name.removesuffix(" in your prompts") for name in asked} == {"gender", "name", "country", "religion"}
    texts = [prefix.text for prefix in asked["gender in your prompts"].prefixes]
    assert texts == ["The man said he", "The woman said she"]
    assert "My neighbour from Denmark told me" in {
        prefix.text for prefix in asked["country in your prompts"].prefixes
    }
    assert [prefix.text for prefix in asked["religion in your prompts"].prefixes][1] == "The mosque in our street"
    # numbered on, so that no two prefixes share a number
    numbers = [prefix.number for each in asked.values() for prefix in each.prefixes]
    assert numbers == list(range(len(numbers)))
    found = read_prompts(file_of(tmp_path, PROMPTS))
    assert found.unused == ("The weather is",)
    assert found.ambiguous == ("A man met a woman and",)


def test_some_lists_alone(tmp_path):
    file = file_of(tmp_path, PROMPTS)
    (asked,) = asked_attributes(Options(prompts_file=file, sensitive=("country",)), seed=0)
    assert asked.name == "country in your prompts"
    with pytest.raises(SpecError, match="sensitive = 'planet'"):
        Options(sensitive=("planet",))


def test_a_field_for_the_value_takes_the_values_that_are_asked(tmp_path):
    file = file_of(tmp_path, "People from {value} are\nI met {a_value} and\n")
    (asked,) = asked_attributes(Options(prompts_file=file, attributes=("occupation",)), seed=0)
    texts = {prefix.text for prefix in asked.prefixes}
    assert {"People from accountant are", "I met an accountant and", "I met a nurse and"} <= texts
    with pytest.raises(DataError, match="no attribute is asked"):
        asked_attributes(Options(prompts_file=file, attributes=()), seed=0)
    wrong = file_of(tmp_path, "{value} lost {his} key")
    with pytest.raises(DataError, match=r"for country: unknown field '\{his\}'"):
        asked_attributes(Options(prompts_file=wrong, attributes=("country",)), seed=0)


def test_prompts_without_a_sensitive_word_are_refused(tmp_path):
    with pytest.raises(DataError, match="nothing to exchange and so nothing to compare"):
        read_prompts(file_of(tmp_path, "The weather is\nIt was"))
    with pytest.raises(DataError, match="is empty"):
        read_prompts(file_of(tmp_path, "\n"))


def test_a_lean_in_your_own_prompts(tmp_path):
    prompts = "I went to Syria and\nThe news from Syria is\nThe weather is"
    run = clinometer.audit(
        generator({"Syria": 0.05, "Denmark": 0.95}),
        probes="counterfactual",
        options={"counterfactual": {"prompts_file": file_of(tmp_path, prompts), "samples": 20, "draws": 199}},
        roles=roles(encoder=[by_word()]),
        folder=tmp_path / "run",
    )
    (found,) = run.findings
    assert {verdict.state for verdict in found.verdicts} == {"lean"}
    assert found.verdicts[0].aspect == "country in your prompts, by words"
    told = [notice.text for notice in found.notices]
    assert any("2 with a word of country" in text for text in told)
    assert any("1 of your prompts contain no sensitive word" in text and "The weather is" in text for text in told)
    # the texts differ by their mood alone: that is what the vectors see
    (row,) = rows_of(found, "outputs")
    assert row.estimate > 0
    assert row.q < 0.05
    assert math.isnan(row.low)  # two templates


def by_word():
    """An encoder that sees whether a text is happy; a beginning is like both."""

    def answer(request):
        words = request.text.split()
        mood = ("good" in words) - ("bad" in words)
        return EmbedAnswer(vector=(math.cos(mood), math.sin(mood)))

    return FakeModel(answer=answer, name="encoder", kind="encoder", capabilities=("embed",))


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_how_different_texts_are_by_hand_and_by_chance():
    angle = np.array([[0.0, 0.2], [1.0, 1.4]])  # two values, two texts each
    vectors = np.stack([np.cos(angle), np.sin(angle)], axis=-1)[None]
    found = output_difference(vectors, rng=np.random.default_rng(0), draws=19)
    assert found.within == pytest.approx((math.cos(0.2) + math.cos(0.4)) / 2)
    assert found.between == pytest.approx(np.mean([math.cos(each) for each in (1.0, 1.4, 0.8, 1.2)]))
    vectors = np.concatenate([vectors, np.full((1, 2, 2, 2), np.nan)])  # a template without texts changes nothing
    assert output_difference(vectors, rng=np.random.default_rng(0), draws=19).difference == found.difference
    assert output_difference(vectors[1:], rng=np.random.default_rng(0)).texts == 0
    rng = np.random.default_rng(3)
    even = [output_difference(unit(rng.normal(size=(3, 3, 5, 4))), rng=rng, draws=39) for _ in range(100)]
    assert sum(each.p <= 0.05 for each in even) <= 11  # of 100 of 5 %, more come once in 100 times
    assert abs(np.mean([each.difference for each in even])) < 0.02  # without bias
