"""Short trainings of every kind, for tests that stop or kill them."""

from __future__ import annotations

import torch

from clinometer.train import (
    CausalSettings,
    MaskedSettings,
    PromptSettings,
    train_causal,
    tune_masked,
    tune_prompt,
)
from tests.train.samples import Listener, reviews

MASKED = MaskedSettings(learning_rate=1e-3, epochs=2, seed=7)
PROMPT = PromptSettings(
    learning_rate=1e-3, steps=10, score_every=3, shots=3, batch=4, length=64, test_reviews=5, seed=7
)
CAUSAL_SETTINGS = CausalSettings(learning_rate=1e-3, batch=4, accumulate=2, window=32, held_out=10, seed=7)


class Loud(Listener):
    def __init__(self, tell):
        super().__init__()
        self._tell = tell

    def advance(self, count):
        self._tell("step")
        super().advance(count)


def train(how, model, corpus, out, *, progress=None, save_seconds=0.0):
    options = {"out": out, "device": "cpu", "save_seconds": save_seconds, "progress": progress}
    if how == "masked":
        return tune_masked(model, corpus, settings=MASKED, **options)
    if how == "causal":
        return train_causal(model, corpus, settings=CAUSAL_SETTINGS, **options)
    return tune_prompt(model, reviews(), settings=PROMPT, **options)


def train_aloud(tell, *arguments):
    """Train in a process of its own, and tell after every step."""
    torch.set_num_threads(1)
    train(*arguments, progress=Loud(tell))
