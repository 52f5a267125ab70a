"""How a model is tuned: all that decides the weights, and nothing that does not (device, how often to save)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clinometer.errors import InputError
from clinometer.types import MASK

REVIEW = "{review}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSettings:
    """Masked-LM fine-tuning, by default as in Choenni et al. (2021), section 6: one epoch, 5e-5, batches of 8."""

    fraction: float = 1.0  # the share of the corpus, see `choose_documents`
    at_most: int = 0  # the corpus is first cut to so many documents; 0: no limit
    epochs: int = 1
    learning_rate: float = 5e-5
    batch: int = 8
    masked_share: float = 0.15
    window: int = 512  # tokens in a piece of a document, at most; less where the model reads less
    seed: int = 0

    def __post_init__(self) -> None:
        _check_common(self.seed, self.batch, self.learning_rate)
        _check("fraction", self.fraction, 0 < self.fraction <= 1, "more than 0 and at most 1")
        _check("at_most", self.at_most, self.at_most >= 0, "0 (no limit) or more")
        _check("epochs", self.epochs, self.epochs >= 1, "1 or more")
        _check("masked_share", self.masked_share, 0 < self.masked_share < 1, "between 0 and 1")
        _check("window", self.window, self.window >= 8, "8 tokens or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    """Prompt-based fine-tuning, by default as LM-BFF does it for binary sentiment (Gao et al. 2021)."""

    template: str = "{review} It was [MASK]."  # the review comes first
    positive: str = "great"
    negative: str = "terrible"
    shots: int = 16  # reviews per class to train on; as many again choose the checkpoint
    demonstrations: bool = True
    steps: int = 1000
    score_every: int = 100  # steps between two looks at the development reviews
    learning_rate: float = 1e-5
    batch: int = 8
    length: int = 256  # tokens in an input with its demonstrations, at most
    test_reviews: int = 100  # per class, to measure accuracy before and after; fewer where there are fewer
    seed: int = 42

    def __post_init__(self) -> None:
        _check_common(self.seed, self.batch, self.learning_rate)
        if not self.template.startswith(REVIEW) or self.prompt.count(MASK) != 1 or REVIEW in self.prompt:
            raise InputError(
                f"template {self.template!r} is not valid; expected {REVIEW} at its beginning, then a prompt with"
                f" one {MASK}, such as '{REVIEW} It was {MASK}.'"
            )
        words = (self.positive, self.negative)
        _check("labels", "/".join(words), all(words) and len(set(words)) == 2, "two words, such as great/terrible")
        least = 2 if self.demonstrations else 1  # an input is not its own demonstration
        _check("shots", self.shots, self.shots >= least, f"{least} or more")
        _check("steps", self.steps, self.steps >= 1, "1 or more")
        _check("score_every", self.score_every, self.score_every >= 1, "1 or more")
        _check("length", self.length, self.length >= 16, "16 tokens or more")
        _check("test_reviews", self.test_reviews, self.test_reviews >= 1, "1 or more")

    @property
    def prompt(self) -> str:
        """What stands after the review."""
        return self.template.removeprefix(REVIEW).strip()


def _check_common(seed: int, batch: int, learning_rate: float) -> None:
    _check("seed", seed, seed >= 0, "0 or more")
    _check("batch", batch, batch >= 1, "1 or more")
    fine = math.isfinite(learning_rate) and learning_rate > 0
    _check("learning_rate", learning_rate, fine, "more than 0")


def _check(name: str, value: object, fine: bool, expected: str) -> None:
    if not fine:
        raise InputError(f"{name} = {value} is not valid; expected {expected}")
