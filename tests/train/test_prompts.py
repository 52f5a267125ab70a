"""Prompts and demonstrations: what a row says, and what is cut when it does not fit."""

from __future__ import annotations

import pytest
from transformers import AutoTokenizer

from clinometer.data.reviews import Review
from clinometer.errors import InputError, ModelError
from clinometer.models.local.text import TextEncoder
from clinometer.train.prompt_tuning import Prompts
from clinometer.train.settings import PromptSettings
from clinometer.types import Fill

GOOD = Review(text="the music was fine", label="positive", source="a")
BAD = Review(text="the book was bad", label="negative", source="a")
LONG = Review(text="the story was good and " * 30 + "the end", label="positive", source="a")


@pytest.fixture
def tokenizer(tiny_folder):
    return AutoTokenizer.from_pretrained(tiny_folder("bert"))


def prompts(tokenizer, **settings):
    return Prompts(tokenizer, window=64, settings=PromptSettings(**settings))


def test_a_plain_row_is_what_the_audit_asks(tokenizer):
    for review in (GOOD, LONG):
        row = prompts(tokenizer).plain(review)
        asked = TextEncoder(tokenizer, window=64).fill([Fill(context=review.text, text="It was [MASK].")])[0]
        assert row.ids.tolist() == asked.ids.tolist()
        assert row.blank == asked.blank
        assert row.ids[row.blank] == tokenizer.mask_token_id


def test_demonstrations_stand_behind_separators_with_their_label_words(tokenizer):
    row = prompts(tokenizer).demonstrated(GOOD, [BAD, LONG])
    first, second, third, rest = tokenizer.decode(row.ids).split("[SEP]")
    assert first == "[CLS] the music was fine it was [MASK]. "
    assert second == " the book was bad it was terrible. "
    assert third.endswith("the end it was great. ")
    assert rest == ""
    assert row.ids[row.blank] == tokenizer.mask_token_id
    assert (row.ids == tokenizer.mask_token_id).sum() == 1


@pytest.mark.parametrize("length", [48, 64, 256])  # the window of the model is 64
def test_only_reviews_are_cut(tokenizer, length):
    row = prompts(tokenizer, length=length).demonstrated(LONG, [LONG, LONG])
    assert len(row.ids) <= min(length, 64)
    assert len(row.ids) > min(length, 64) - 4  # and no more than needed
    parts = tokenizer.decode(row.ids).split("[SEP]")
    for part, word in zip(parts[:3], ("[MASK]", "great", "great"), strict=True):
        assert part.strip().endswith(f"the end it was {word}.")


@pytest.mark.parametrize("family", ["roberta", "albert", "xlm-roberta", "bart"])
def test_other_families_have_one_mask_and_their_own_separators(family, tiny_folder):
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder(family))
    row = prompts(tokenizer).demonstrated(GOOD, [BAD, GOOD])
    assert (row.ids == tokenizer.mask_token_id).sum() == 1
    assert row.ids[row.blank] == tokenizer.mask_token_id
    assert (row.ids == tokenizer.sep_token_id).sum() == 3


def test_a_mask_written_in_a_review_stays_text(tokenizer):
    review = Review(text="a [MASK] film [SEP]", label="positive", source="a")
    row = prompts(tokenizer).demonstrated(review, [review, review])
    assert (row.ids == tokenizer.mask_token_id).sum() == 1
    assert (row.ids == tokenizer.sep_token_id).sum() == 3


def test_label_words_must_be_tokens(tokenizer):
    words = prompts(tokenizer, positive="good", negative="bad").words
    assert tokenizer.convert_ids_to_tokens(list(words)) == ["bad", "good"]  # negative first
    with pytest.raises(ModelError, match="negative label word 'dreadful' is not one token of this model"):
        prompts(tokenizer, negative="dreadful")


@pytest.mark.parametrize(
    "template", ["It was [MASK].", "{review} It was.", "{review} [MASK] [MASK]", "[MASK] {review}"]
)
def test_templates_that_make_no_sense(template):
    with pytest.raises(InputError, match=r"template .* is not valid; expected {review} at its beginning"):
        PromptSettings(template=template)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"shots": 1}, "shots = 1 is not valid; expected 2 or more"),
        ({"shots": 0, "demonstrations": False}, "shots = 0 is not valid; expected 1 or more"),
        ({"positive": "bad", "negative": "bad"}, "labels = bad/bad is not valid"),
        ({"positive": ""}, "labels = /terrible is not valid"),
        ({"steps": 0}, "steps = 0 is not valid"),
        ({"length": 8}, "length = 8 is not valid"),
    ],
)
def test_settings_that_make_no_sense(options, complaint):
    with pytest.raises(InputError, match=complaint):
        PromptSettings(**options)
