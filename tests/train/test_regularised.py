"""The loss of the third step against the formulas in numpy, computed from one unpadded text at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from clinometer.train.base import load_base
from clinometer.train.loop import IGNORED
from clinometer.train.material import Pair, collate
from clinometer.train.projection import Projection
from clinometer.train.regularisers import language_loss, layers_of, regularised_terms

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
        pairs.append(Pair(ids=ids, at=at, other=other, other_at=other_at, labels=labels))
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
    """The paper's L_LM + λ (1 − cos) in float64."""
    language, fairness = [], []
    for pair in pairs:
        logp, layers = one_text(base, pair.ids)
        _, other_layers = one_text(base, pair.other)
        back = 1 if base.kind == "causal" else 0
        asked = [(place - back, label) for place, label in enumerate(pair.labels) if label != IGNORED]
        language.append(-np.mean([logp[place, label] for place, label in asked]))
        u = (layers[0][pair.at] + layers[1][pair.at]) / 2
        v = (other_layers[0][pair.other_at] + other_layers[1][pair.other_at]) / 2
        if projection:
            weights = {name: weight.double().numpy() for name, weight in projection.state_dict().items()}
            u, v = (
                np.maximum(
                    weights["second.weight"] @ np.maximum(weights["first.weight"] @ x + weights["first.bias"], 0)
                    + weights["second.bias"],
                    0,
                )
                for x in (u, v)
            )
        fairness.append(1 - float(u @ v) / math.sqrt(float(u @ u)) / math.sqrt(float(v @ v)))
    means = np.mean(language), np.mean(fairness)
    return [means[0] + strength * means[1], *means]


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
    pair = Pair(ids=ids, at=2, other=other, other_at=2, labels=[IGNORED, 12, 13, 14])
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
