"""How a model is tuned: all that decides the weights, and nothing that does not (device, how often to save)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from clinometer.errors import InputError
from clinometer.types import MASK

REVIEW = "{review}"

MitigationMethod = Literal["embedding", "sentiment", "control"]
METHODS: tuple[MitigationMethod, ...] = get_args(MitigationMethod)


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
class CausalSettings:
    """Next-token training, by default as in Huang et al. (2020), appendix B, but for batches of 16 pieces."""

    from_scratch: bool = False  # random weights to begin with, instead of those of the model
    fraction: float = 1.0  # the share of the documents that are not held out, see `split_corpus`
    at_most: int = 0  # the corpus is first cut to so many documents; 0: no limit
    held_out: int = 100  # documents that are not trained on, to measure perplexity
    epochs: int = 1
    steps: int = 0  # instead of whole epochs; 0: epochs decide
    learning_rate: float = 0.0  # 0: the paper's, 2.5e-4 from scratch and 2.5e-5 for a trained model
    batch: int = 16
    accumulate: int = 1  # parts in which a step is computed, to need less memory
    window: int = 512  # tokens in a piece; less where the model reads less
    seed: int = 0

    def __post_init__(self) -> None:
        _check_common(self.seed, self.batch, self.rate)
        _check("fraction", self.fraction, 0 < self.fraction <= 1, "more than 0 and at most 1")
        _check("at_most", self.at_most, self.at_most >= 0, "0 (no limit) or more")
        _check("held_out", self.held_out, self.held_out >= 10, "10 or more, for fewer give no interval")
        _check("epochs", self.epochs, self.epochs >= 1, "1 or more")
        _check("steps", self.steps, self.steps >= 0, "0 (epochs decide) or more")
        parts = self.accumulate >= 1 and self.batch % self.accumulate == 0
        _check("accumulate", self.accumulate, parts, f"a number by which a batch of {self.batch} can be divided")
        _check("window", self.window, self.window >= 8, "8 tokens or more")

    @property
    def rate(self) -> float:
        """The highest learning rate."""
        return self.learning_rate or (2.5e-4 if self.from_scratch else 2.5e-5)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MitigationSettings:
    """Continued training with a fairness loss, by default as in Huang et al. (2020), appendix B, but for steps.

    The paper has 25,000 to 50,000 of them for models of 257 to 708 million weights.
    """

    method: MitigationMethod = "embedding"
    strength: float = 10.0  # λ; 0, and 0 alone, for the control
    steps: int = 1000
    batch: int = 32  # sentences in a step
    accumulate: int = 1  # parts in which a step is computed, to need less memory
    learning_rate: float = 2.5e-5
    window: int = 128  # tokens of a sentence
    masked_share: float = 0.15  # of the tokens, in a masked model
    lora: int = 0  # the rank of the low-rank matrices that are trained instead of the weights; 0: the weights
    seed: int = 0

    def __post_init__(self) -> None:
        _check_common(self.seed, self.batch, self.learning_rate)
        _check("method", self.method, self.method in METHODS, f"one of {', '.join(METHODS)}")
        fine = math.isfinite(self.strength) and self.strength >= 0 and (self.strength > 0) != self.is_control
        _check("strength", self.strength, fine, "0 for the control, and a number above 0 for every other method")
        _check("steps", self.steps, self.steps >= 1, "1 or more")
        parts = self.accumulate >= 1 and self.batch % self.accumulate == 0
        _check("accumulate", self.accumulate, parts, f"a number by which a batch of {self.batch} can be divided")
        _check("window", self.window, self.window >= 8, "8 tokens or more")
        _check("masked_share", self.masked_share, 0 < self.masked_share < 1, "between 0 and 1")
        _check("lora", self.lora, self.lora >= 0, "0 (train the weights themselves) or a rank of 1 or more")

    @property
    def is_control(self) -> bool:
        """Whether it is the same training without a fairness loss, to compare with."""
        return self.method == "control"


def _check_common(seed: int, batch: int, learning_rate: float) -> None:
    _check("seed", seed, seed >= 0, "0 or more")
    _check("batch", batch, batch >= 1, "1 or more")
    fine = math.isfinite(learning_rate) and learning_rate > 0
    _check("learning_rate", learning_rate, fine, "more than 0")


def _check(name: str, value: object, fine: bool, expected: str) -> None:
    if not fine:
        raise InputError(f"{name} = {value} is not valid; expected {expected}")
