"""What is XLNet's own: the word is predicted from both sides, and the blank itself is not seen."""

from __future__ import annotations

import pytest
import torch

from clinometer.models.load import load_model
from clinometer.types import Fill

WORDS = ("great", "terrible", "nurse")


def logprobs(model, text):
    return model.fill([Fill(text=text, words=WORDS)])[0].logprobs


def test_both_sides_count(tiny_model):
    model = tiny_model("xlnet")
    middle = logprobs(model, "The nurse was [MASK] and the film was good.")
    assert logprobs(model, "The doctor was [MASK] and the film was good.") != pytest.approx(middle, abs=1e-3)
    assert logprobs(model, "The nurse was [MASK] and the film was bad.") != pytest.approx(middle, abs=1e-3)


def test_blanks_are_not_read(tiny_folder):
    """XLNet never learned to read its mask token: what that token's vector is must not matter."""
    model = load_model(str(tiny_folder("xlnet")), device="cpu")
    texts = ("The nurse was [MASK] and good.", "The [HIDDEN] was [MASK] and the [HIDDEN] was good.")
    before = [logprobs(model, text) for text in texts]
    with torch.no_grad():
        model._model.transformer.word_embedding.weight[model._mask_id] += 10
    # its row of the output matrix is the same numbers: look at the words only, against each other
    after = [logprobs(model, text) for text in texts]
    for old, new in zip(before, after, strict=True):
        assert [p - new[0] for p in new] == pytest.approx([p - old[0] for p in old], abs=1e-5)


def test_longer_neighbours_do_not_matter(tiny_model):
    """Padding stands at the left of shorter texts."""
    model = tiny_model("xlnet")
    short = Fill(text="It was [MASK].", words=WORDS)
    long = Fill(text="The person is a carpenter, " * 5 + "and [MASK].", words=WORDS)
    assert model.fill([short, long])[0].logprobs == pytest.approx(model.fill([short])[0].logprobs, abs=1e-5)
