"""The loss of the third step against the formulas in numpy, computed from one unpadded text at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from clinometer.errors import ModelError
from clinometer.train.base import load_base
from clinometer.train.loop import IGNORED
from clinometer.train.pairs import Pair, collate
from clinometer.train.projection import Projection
from clinometer.train.regularisers import (
    caught_layers,
    cosine_distance,
    language_loss,
    layers_of,
    mean_of_last_two,
    regularised_terms,
)

FAMILIES = ["gpt2", "llama", "bert"]


@pytest.fixture(scope="module")
def base_of(tiny_folder):
    return lambda family: load_base(
        str(tiny_folder(family)), device="cpu", dtype="float32", kinds=("causal", "masked")
    )


def some_pairs(base, *, texts=5, seed=0):
    """Rows of different lengths; a masked model is asked for some tokens, a causal one for all but the first."""
    rng = np.random.default_rng(seed)
    pairs = []
    for number in range(texts):
        ids, other = (rng.integers(10, 100, size).tolist() for size in (5 + 3 * number, 4 + number))
        labels = [IGNORED, *ids[1:]] if base.kind == "causal" else [IGNORED, ids[1], IGNORED, *ids[3:]]
        at, other_at = int(rng.integers(len(ids))), len(other) - 1
        pairs.append(Pair(ids=ids, at=(at,), other=other, other_at=(other_at,), labels=labels))
    return pairs


def batch_of(base, pairs):
    return collate([{"pair": pair} for pair in pairs], pad_id=base.pad_id)


def terms_of(base, pairs, *, strength, project=None, compute=torch.float32):
    return regularised_terms(
        base.model,
        batch_of(base, pairs),
        strength=strength,
        project=project,
        shifted=base.kind == "causal",
        compute=compute,
    )


@torch.no_grad()
def one_text(base, ids):
    """log p over the vocabulary at every place, and the output of the last two layers, of one text alone."""
    outputs = []
    hooks = [
        layer.register_forward_hook(lambda *given: outputs.append(given[2]))
        for layer in layers_of(base.model)[-2:]
    ]
    logits = base.model(input_ids=torch.tensor([ids])).logits[0].double().numpy()
    logits -= logits.max(axis=1, keepdims=True)
    for hook in hooks:
        hook.remove()
    tensors = [output[0] if isinstance(output, tuple) else output for output in outputs]
    logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logp, [tensor[0].double().numpy() for tensor in tensors]


def by_hand(base, pairs, *, strength, projection=None):
    """The paper's L_LM + λ (1 − cos) in float64: a mean over sensitive tokens, then over rows."""
    language, fairness = [], []
    for pair in pairs:
        logp, layers = one_text(base, pair.ids)
        language.append(asked_of(base, logp, pair.labels))
        distances = []
        if pair.other:
            other_logp, other_layers = one_text(base, pair.other)
            if pair.other_labels:
                language[-1] = (language[-1] + asked_of(base, other_logp, pair.other_labels)) / 2
            for at, other_at in zip(pair.at, pair.other_at, strict=True):
                u = (layers[0][at] + layers[1][at]) / 2
                v = (other_layers[0][other_at] + other_layers[1][other_at]) / 2
                if projection:
                    u, v = projected_by_hand(projection, u), projected_by_hand(projection, v)
                distances.append(1 - float(u @ v) / math.sqrt(float(u @ u)) / math.sqrt(float(v @ v)))
        fairness.append(np.mean(distances) if distances else 0.0)  # ordinary text has nothing to compare
    means = np.mean(language), np.mean(fairness)
    return [means[0] + strength * means[1], *means]


def asked_of(base, logp, labels):
    back = 1 if base.kind == "causal" else 0
    return -np.mean([logp[place - back, label] for place, label in enumerate(labels) if label != IGNORED])


def projected_by_hand(projection, x):
    weights = {name: weight.double().numpy() for name, weight in projection.state_dict().items()}
    first = np.maximum(weights["first.weight"] @ x + weights["first.bias"], 0)
    return np.maximum(weights["second.weight"] @ first + weights["second.bias"], 0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("projected", [False, True])
def test_the_terms_are_the_formulas(family, projected, base_of):
    base = base_of(family)
    torch.manual_seed(1)
    projection = Projection(32) if projected else None
    pairs = some_pairs(base)
    found = terms_of(base, pairs, strength=3.0, project=projection.hidden if projection else None)
    expected = by_hand(base, pairs, strength=3.0, projection=projection)
    assert found.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert expected[2] > 0.01  # there is something to compare


def mixed_pairs(base, *, swapped):
    """A row with three sensitive tokens, one with one, and ordinary text."""
    first, second, third = some_pairs(base, texts=3)
    others = {"other_labels": [IGNORED, *first.other[1:]]} if swapped else {}
    more = {"other_labels": [IGNORED, *second.other[1:]]} if swapped else {}
    return [
        replace(first, at=(1, 2, 4), other_at=(0, 1, 3), **others),
        replace(third, at=(), other=[], other_at=()),
        replace(second, **more),
    ]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("swapped", [False, True])
def test_every_sensitive_token_counts_and_ordinary_text_for_the_language_alone(family, swapped, base_of):
    base = base_of(family)
    pairs = mixed_pairs(base, swapped=swapped)
    found = terms_of(base, pairs, strength=3.0)
    expected = by_hand(base, pairs, strength=3.0)
    assert found.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5)
    # each of the parts matters: leaving one out gives other numbers
    for changed in (
        [replace(pairs[0], at=pairs[0].at[:1], other_at=pairs[0].other_at[:1]), *pairs[1:]],
        [pairs[0], pairs[2]],
        *([[replace(pairs[0], other_labels=[]), pairs[1], replace(pairs[2], other_labels=[])]] if swapped else []),
    ):
        assert by_hand(base, changed, strength=3.0)[0] != pytest.approx(expected[0], rel=1e-4)


def test_ordinary_text_alone_has_a_loss_and_a_gradient(base_of):
    base = base_of("llama")
    pairs = [replace(pair, at=(), other=[], other_at=()) for pair in some_pairs(base)]
    terms = terms_of(base, pairs, strength=1000.0)
    loss, language, fairness = terms.tolist()
    assert (loss, fairness) == (language, 0.0)
    terms[0].backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in base.model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_does_not_matter(family, base_of):
    base = base_of(family)
    pairs = some_pairs(base)
    each = torch.stack([terms_of(base, [pair], strength=10.0) for pair in pairs])
    together = terms_of(base, pairs, strength=10.0)
    # one row at a time there is less padding; the terms are means over sentences
    torch.testing.assert_close(together, each.mean(dim=0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_texts_are_drawn(family, base_of):
    """The fairness term alone has a gradient at the embeddings of tokens that are in one of the texts only."""
    base = base_of(family)
    ids, other = [11, 12, 13, 14], [21, 22, 23]
    pair = Pair(ids=ids, at=(2,), other=other, other_at=(2,), labels=[IGNORED, 12, 13, 14])
    weights = base.model.get_input_embeddings().weight
    gradients = []
    for strength in (0.0, 1.0):
        terms = terms_of(base, [pair], strength=strength)
        (gradient,) = torch.autograd.grad(terms[0], weights)
        gradients.append(gradient)
    fairness = gradients[1] - gradients[0]
    assert all(fairness[token].abs().max() > 1e-6 for token in (13, *other))
    if base.kind == "causal":
        assert fairness[14].abs().max() < 1e-6  # what stands behind the place compared takes no part


@pytest.mark.parametrize("family", FAMILIES)
def test_at_strength_0_the_vectors_take_no_part(family, base_of):
    base = base_of(family)
    pairs = some_pairs(base)
    loss, language, fairness = terms_of(base, pairs, strength=0.0, project=lambda u: u * math.nan).tolist()
    assert loss == language == pytest.approx(by_hand(base, pairs, strength=0.0)[1], rel=1e-5)
    assert math.isnan(fairness)


def test_the_kept_terms_carry_no_gradient(base_of):
    base = base_of("llama")
    weight = base.model.get_input_embeddings().weight
    both = terms_of(base, some_pairs(base), strength=2.0)
    for term in (1, 2):
        (gradient,) = torch.autograd.grad(both[term], weight, retain_graph=True)
        assert not gradient.any()


@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_is_close(family, base_of):
    base = base_of(family)
    pairs = some_pairs(base)
    exact = terms_of(base, pairs, strength=1.0)
    rounded = terms_of(base, pairs, strength=1.0, compute=torch.bfloat16)
    assert rounded.dtype == torch.float32
    # 8 bits of a number: a step of 0.4 %, through two layers
    torch.testing.assert_close(rounded, exact, rtol=0.05, atol=0.05)
    assert not torch.equal(rounded, exact)


def test_the_language_loss_worked_by_hand():
    # two sentences, three words in the vocabulary; p is (1/2, 1/4, 1/4) everywhere
    logits = torch.log(torch.tensor([0.5, 0.25, 0.25])).expand(2, 3, 3)
    labels = torch.tensor([[IGNORED, 0, 1], [IGNORED, 0, IGNORED]])
    # sentence 1: (ln 2 + ln 4) / 2; sentence 2: ln 2; their mean, whatever their lengths
    expected = (math.log(8) / 2 + math.log(2)) / 2
    for shifted in (True, False):
        assert float(language_loss(logits, labels, shifted=shifted)) == pytest.approx(expected, rel=1e-6)
    shift = torch.tensor([[[9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0]]])
    at_own_place, before = torch.tensor([[0, 1, 2]]), torch.tensor([[IGNORED, 0, 1]])
    assert float(language_loss(shift, at_own_place, shifted=False)) < 0.001
    assert float(language_loss(shift, before, shifted=True)) < 0.001
    assert float(language_loss(shift, before, shifted=False)) > 8


def distance_by_hand(a, b):
    """1 − a·b/(‖a‖‖b‖), one pair at a time, in float64."""
    distances = []
    for one, other in zip(a.astype(np.float64), b.astype(np.float64), strict=True):
        product = sum(x * y for x, y in zip(one, other, strict=True))
        lengths = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(y * y for y in other))
        distances.append(1 - product / lengths)
    return np.array(distances)


@pytest.mark.parametrize("size", [1e-3, 1.0, 800.0])
def test_it_is_the_formula(size):
    rng = np.random.default_rng(0)
    a = (rng.normal(size=(50, 128)) * size).astype(np.float32)
    b = (a * 0.9 + rng.normal(size=(50, 128)) * size * 0.2).astype(np.float32)
    found = cosine_distance(torch.tensor(a), torch.tensor(b))
    assert found.shape == (50,)
    np.testing.assert_allclose(found.numpy(), distance_by_hand(a, b), atol=1e-6)


def test_pairs_worked_by_hand():
    a = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [3.0, 4.0]])
    b = torch.tensor([[5.0, 0.0], [-2.0, -2.0], [-2.0, 1.0], [4.0, 3.0]])
    # same direction 0; opposite 2; orthogonal 1; 1 − 24/25
    assert cosine_distance(a, b).tolist() == pytest.approx([0.0, 2.0, 1.0, 0.04], abs=1e-6)


def test_the_gradient_is_right():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(4, 6, dtype=torch.float64, generator=generator, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(cosine_distance, (a, b))
    short = (a.detach() * 1e-3).requires_grad_()
    assert torch.autograd.gradcheck(cosine_distance, (short, b), eps=1e-9, atol=1e-3)


@pytest.mark.parametrize("nothing", [0.0, 1e-30])
def test_vectors_without_a_direction_have_a_distance_and_a_finite_gradient(nothing):
    a = torch.tensor([[nothing, 0.0], [nothing, 0.0], [1.0, 2.0]], requires_grad=True)
    b = torch.tensor([[0.0, nothing], [1.0, 1.0], [0.0, 0.0]], requires_grad=True)
    distances = cosine_distance(a, b)
    assert distances.tolist() == [0.0, 1.0, 1.0]  # both none: equal; one: orthogonal
    distances.sum().backward()
    assert a.grad.isfinite().all()
    assert b.grad.isfinite().all()
    assert a.grad[0].tolist() == [0.0, 0.0]  # two that are equal do not pull


def test_half_precision_is_computed_in_float32():
    rng = np.random.default_rng(1)
    a = torch.tensor(rng.normal(size=(20, 128)), dtype=torch.bfloat16)
    b = (a + torch.tensor(rng.normal(size=(20, 128)) * 0.05)).to(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = cosine_distance(a, b)
    assert found.dtype == torch.float32
    # distances near 0.001: bfloat16, whose step below 1 is 0.004, would give 0
    np.testing.assert_allclose(found.numpy(), distance_by_hand(a.float().numpy(), b.float().numpy()), atol=1e-6)


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
