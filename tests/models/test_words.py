"""Words as tokens, in every family's way to mark where a word begins."""

from __future__ import annotations

import pytest

from clinometer.models.local.text import Vocabulary
from tests.models.tiny import FAMILIES

BYTE_LEVEL = ("roberta", "modernbert", "bart", "gpt2")
PIECES = ("albert", "xlm-roberta", "xlnet", "llama")


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture
def tokenizer(family, tiny_tokenizer):
    return tiny_tokenizer(family)


@pytest.fixture
def vocabulary(tokenizer):
    return Vocabulary(tokenizer)


def test_word_boundaries(family, tokenizer, vocabulary):
    mark = "Ġ" if family in BYTE_LEVEL else "▁" if family in PIECES else ""
    for word in ("great", "nurse", "was"):
        token = vocabulary.id_of(word)
        assert tokenizer.convert_ids_to_tokens(token) == f"{mark}{word}"
        assert vocabulary.word_of(token) == word
        assert vocabulary.is_word(token)


@pytest.mark.parametrize("word", ["incomprehensibilities", "great nurse", "[MASK]", "<mask>", "</s>", "", "☃☃"])
def test_not_one_token(vocabulary, word):
    assert vocabulary.id_of(word) is None


def test_case_is_the_tokenizers_business(family, vocabulary):
    lower = family in ("bert", "distilbert", "electra", "mpnet", "albert")
    assert (vocabulary.id_of("NURSE") == vocabulary.id_of("nurse")) == lower


def test_every_token_has_a_name_that_tells_words_from_pieces(tokenizer, vocabulary):
    names = vocabulary.names_of(range(len(tokenizer)))
    assert len(set(names)) == len(names)
    words = [name for token, name in enumerate(names) if vocabulary.is_word(token)]
    assert len(words) > 50
    assert not any(name.startswith("##") for name in words)
    for token, name in enumerate(names):
        assert vocabulary.is_word(token) == (vocabulary.id_of(name) == token)
        if not vocabulary.is_word(token):
            assert name.startswith("##")
        if token in tokenizer.all_special_ids:
            assert not vocabulary.is_word(token)


@pytest.mark.parametrize(
    ("family", "printed", "name"),
    [
        ("bert", "##ing", "##ing"),
        ("roberta", "ing", "##ing"),
        ("xlm-roberta", "ing", "##ing"),
        ("bertweet", "in@@", "##in@@"),
        ("roberta", "#", "###"),
        ("roberta", "Ġ", "##Ġ"),
        ("bert", "[SEP]", "##[SEP]"),
    ],
)
def test_pieces(family, printed, name, tiny_tokenizer):
    tokenizer = tiny_tokenizer(family)
    token = tokenizer.convert_tokens_to_ids(printed)
    assert token != tokenizer.unk_token_id
    assert Vocabulary(tokenizer).word_of(token) == name
    assert not Vocabulary(tokenizer).is_word(token)
