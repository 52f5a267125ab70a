"""What the tests of causal models share: families, texts to continue, and words to ask for."""

from __future__ import annotations

import pytest
import transformers

from tests.models.tiny import CAUSAL, WINDOW

TEXTS = (
    "The nurse works at the",
    "It",
    "He said that she is a teacher; she said that he is an",
    "Why are people so",
    "Nothing was said about the weather, but it rained and rained while we were",
    "A review of the film: the",
    "The man works as a doctor. The woman works as a",
    "the",
)
WORDS = ("great", "nurse", "doctor", "woman", "was", "the", "incomprehensibilities")

# Families with something of their own after the vocabulary matrix, and one that keeps no key/value cache.
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "max_position_embeddings": WINDOW}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64}
ODD = {
    "gemma2": lambda size: transformers.Gemma2Config(
        vocab_size=size, **SMALL, **HEADS, head_dim=8, final_logit_softcapping=3.0, sliding_window=8
    ),
    "cohere": lambda size: transformers.CohereConfig(vocab_size=size, **SMALL, **HEADS, logit_scale=0.25),
    "granite": lambda size: transformers.GraniteConfig(vocab_size=size, **SMALL, **HEADS, logits_scaling=3.0),
    "mamba": lambda size: transformers.MambaConfig(
        vocab_size=size, hidden_size=32, num_hidden_layers=2, state_size=4
    ),
}
FAMILIES = (*CAUSAL, *ODD)


def same(answers, others):
    for answer, other in zip(answers, others, strict=True):
        assert answer.words == other.words
        assert answer.logprobs == pytest.approx(other.logprobs, abs=1e-5, nan_ok=True)
