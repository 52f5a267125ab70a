"""Packing: no token is lost, none is added but the separators, and each is predicted once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clinometer.data.corpora import Document
from clinometer.errors import DataError, ModelError
from clinometer.train.base import load_base
from clinometer.train.causal import PackedDocuments, collate_pieces, next_token_loss
from tests.models.tiny import CAUSAL, WINDOW

TEXTS = [
    "The nurse works at the hospital.",
    "Why are people so kind? " * 30,
    "It was great",
    "He said </s> and <|endoftext|> aloud.",
]


def documents(*texts):
    return [Document(text=text, title="", source="made up", line=1) for text in texts]


@pytest.fixture
def base_of(tiny_folder):
    return lambda family: load_base(str(tiny_folder(family)), device="cpu", dtype="float32", kinds=("causal",))


@pytest.mark.parametrize("family", CAUSAL)
def test_no_token_is_lost_and_none_is_added_but_the_separators(family, base_of):
    base = base_of(family)
    end = base.tokenizer.eos_token_id
    packed = PackedDocuments(base, documents(*TEXTS[:3]), window=16)
    # independently: the tokenizer's own encoding of each text, with its own start token
    expected = [token for text in TEXTS[:3] for token in [*base.tokenizer(text)["input_ids"], end]]
    assert packed.stream.tolist() == expected
    assert (expected[0] == 1) == (family == "llama")  # <s>; GPT-2 has no start token
    pieces = [packed[index].tolist() for index in range(len(packed))]
    assert [token for piece in pieces for token in piece[:-1]] == expected[:-1]
    assert [token for piece in pieces for token in piece[1:]] == expected[1:]
    assert {len(piece) for piece in pieces[:-1]} == {17}
    assert 2 <= len(pieces[-1]) <= 17


@pytest.mark.parametrize("family", CAUSAL)
def test_a_separator_that_is_written_out_stays_text(family, base_of):
    base = base_of(family)
    packed = PackedDocuments(base, documents(TEXTS[3]), window=16)
    assert packed.stream.tolist().count(base.tokenizer.eos_token_id) == 1
    assert packed.stream[-1] == base.tokenizer.eos_token_id


@pytest.mark.parametrize(("tokens", "lengths"), [(8, [8]), (9, [9]), (10, [9, 2]), (17, [9, 9]), (18, [9, 9, 2])])
def test_where_the_last_piece_ends(tokens, lengths, base_of):
    base = base_of("gpt2")
    packed = PackedDocuments(base, documents(TEXTS[0]), window=8)
    packed.stream = np.arange(tokens, dtype=np.int32)
    assert [len(packed[index]) for index in range(len(packed))] == lengths
    assert packed.predicted.tolist() == [length - 1 for length in lengths]


def test_a_start_token_that_ends_texts_stands_once_between_them(base_of):
    base = base_of("llama")
    base.tokenizer.eos_token = "<s>"  # as OPT has it: one token for both
    bare = [base.tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS[:2]]
    packed = PackedDocuments(base, documents(*TEXTS[:2]), window=16)
    assert packed.stream.tolist() == [1, *bare[0], 1, *bare[1], 1]


def test_the_window_is_the_models_where_that_is_smaller(base_of):
    packed = PackedDocuments(base_of("gpt2"), documents(*TEXTS), window=512)
    assert packed.window == WINDOW
    assert len(packed[0]) == WINDOW + 1  # the last one is only predicted


def test_what_cannot_be_packed(base_of):
    base = base_of("gpt2")
    with pytest.raises(DataError, match="none of the documents has a token"):
        PackedDocuments(base, documents(""), window=16)
    base.tokenizer.eos_token = None
    with pytest.raises(ModelError, match="no end-of-text token"):
        PackedDocuments(base, documents(*TEXTS), window=16)


def test_a_batch_by_hand():
    rows = [{"piece": np.array(piece, np.int32)} for piece in ([5, 6, 7, 8], [9, 10])]
    batch = collate_pieces(rows, pad_id=3)
    assert batch["input_ids"].tolist() == [[5, 6, 7], [9, 3, 3]]
    assert batch["labels"].tolist() == [[6, 7, 8], [10, -100, -100]]


@pytest.mark.parametrize("family", CAUSAL)
def test_the_loss_is_the_mean_over_all_tokens(family, base_of):
    base = base_of(family)
    packed = PackedDocuments(base, documents(*TEXTS[:2]), window=24)
    pieces = [packed[0], packed[len(packed) - 1]]
    assert len(pieces[0]) != len(pieces[1])  # the shorter one is padded in the batch
    batch = collate_pieces([{"piece": piece} for piece in pieces], pad_id=base.pad_id)
    # independently: each piece alone, without padding, and a loop over its tokens in double precision
    losses = []
    for piece in pieces:
        ids = torch.tensor(piece.astype(np.int64))[None]
        with torch.no_grad():
            logits = base.model(input_ids=ids).logits[0].double().numpy()
        for place in range(1, len(piece)):
            scores = logits[place - 1]
            losses.append(np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[piece[place]])
    assert len(losses) == int((batch["labels"] != -100).sum())
    found = next_token_loss(base.model, batch, compute=torch.float32)
    assert float(found.detach()) == pytest.approx(np.mean(losses), abs=1e-4)
