"""The vectors that are compared are those of the last two layers, whatever a family does after them."""

from __future__ import annotations

import pytest
import torch
import transformers

from clinometer.errors import ModelError
from clinometer.train.base import load_base
from clinometer.train.regularisers import caught_layers, layers_of, mean_of_last_two

TEXT = "The nurse works at the hospital."


def read(folder):
    """Call a model once: the base model, the hidden states of transformers, and what was caught."""
    base = load_base(str(folder), device="cpu", dtype="float32", kinds=("causal", "masked"))
    ids = base.tokenizer(TEXT, return_tensors="pt")["input_ids"]
    with torch.no_grad(), caught_layers(base.model) as caught:
        states = base.model(input_ids=ids, output_hidden_states=True).hidden_states
    return base, states, caught


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "xlm-roberta"])
def test_masked_families_give_what_transformers_calls_hidden_states(family, tiny_folder):
    _, states, caught = read(tiny_folder(family))
    assert len(caught) == 2
    for found, expected in zip(caught, states[-2:], strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert not torch.equal(*caught)


@pytest.mark.parametrize(("family", "norm"), [("gpt2", "ln_f"), ("llama", "norm"), ("modernbert", "final_norm")])
def test_what_a_last_norm_makes_of_the_last_layer_is_not_taken(family, norm, tiny_folder):
    base, states, (before, last) = read(tiny_folder(family))
    torch.testing.assert_close(before, states[-2], rtol=0, atol=0)
    assert (last - states[-1]).abs().max() > 0.1
    with torch.no_grad():
        normed = getattr(base.model.base_model, norm)(last)
    torch.testing.assert_close(normed, states[-1])


def test_the_mean_is_taken_at_one_place_of_each_row():
    before = torch.arange(12.0).reshape(2, 3, 2)
    last = 10 * before.to(torch.bfloat16)
    found = mean_of_last_two([before, last], torch.tensor([2, 0]))
    # row 0, place 2: [4, 5] and [40, 50]; row 1, place 0: [6, 7] and [60, 70]
    assert found.tolist() == [[22.0, 27.5], [33.0, 38.5]]
    assert found.dtype == torch.float32


def test_nothing_is_caught_afterwards(tiny_folder):
    base, _, caught = read(tiny_folder("gpt2"))
    hooks = [len(layer._forward_hooks) for layer in layers_of(base.model)]  # those of transformers itself
    base.model(input_ids=torch.tensor([[5, 6]]))
    assert len(caught) == 2
    with pytest.raises(ZeroDivisionError), caught_layers(base.model):
        raise ZeroDivisionError
    assert [len(layer._forward_hooks) for layer in layers_of(base.model)] == hooks


@pytest.mark.parametrize("family", ["albert", "bart"])
def test_layers_that_cannot_be_told_apart(tiny_folder, family):
    base = load_base(str(tiny_folder(family)), device="cpu", dtype="float32")
    with pytest.raises(ModelError, match=rf"this {family} model cannot be told apart .* choose another model"):
        layers_of(base.model)


def test_a_model_with_one_layer():
    config = transformers.GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=9, n_positions=8)
    with pytest.raises(ModelError, match="fewer than two"):
        layers_of(transformers.GPT2LMHeadModel(config))
