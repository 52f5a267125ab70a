"""How a model is trained: everything that decides its weights, and nothing else (device, how often to save)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from clinometer.errors import InputError, SettingError
from clinometer.types import MASK, Dtype

REVIEW = "{review}"

MitigationMethod = Literal["embedding", "sentiment", "swapped", "counterexamples", "control"]
METHODS: tuple[MitigationMethod, ...] = get_args(MitigationMethod)
WITH_STRENGTH: tuple[MitigationMethod, ...] = ("embedding", "sentiment")  # which have a fairness loss

TextUnit = Literal["sentence", "window"]
UNITS: tuple[TextUnit, ...] = get_args(TextUnit)
_TOKENS: dict[TextUnit, int] = {"sentence": 128, "window": 512}  # the paper reads sequences of 512

LEAST_HELD_OUT = 10  # documents: fewer give no interval


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSettings:
    """Masked-LM fine-tuning, by default as in Choenni et al. (2021), section 6: one epoch, 5e-5, batches of 8."""

    fraction: float = 1.0  # the share of the corpus, see `choose_documents`
    at_most: int = 0  # documents to which the corpus is cut first; 0: no limit
    epochs: int = 1
    learning_rate: float = 5e-5
    batch: int = 8
    masked_share: float = 0.15
    window: int = 512  # tokens in a piece of a document, at most; less where the model reads less
    dtype: Dtype = "auto"  # the numbers to compute in; bfloat16 is mixed precision
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
    """Next-token training, by default as in Huang et al. (2020), appendix B, with batches of 16 pieces."""

    from_scratch: bool = False  # random weights to begin with, instead of those of the model
    fraction: float = 1.0  # the share of the documents that are not held out, see `split_corpus`
    at_most: int = 0  # documents to which the corpus is cut first; 0: no limit
    held_out: int = 100  # documents that are not trained on, to measure perplexity
    epochs: int = 1
    steps: int = 0  # instead of whole epochs; 0: epochs decide
    learning_rate: float = 0.0  # 0: the paper's, 2.5e-4 from scratch and 2.5e-5 for a trained model
    batch: int = 16
    accumulate: int = 1  # parts in which a step is computed, to need less memory
    window: int = 512  # tokens in a piece; less where the model reads less
    dtype: Dtype = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        _check_common(self.seed, self.batch, self.rate)
        _check("fraction", self.fraction, 0 < self.fraction <= 1, "more than 0 and at most 1")
        _check("at_most", self.at_most, self.at_most >= 0, "0 (no limit) or more")
        _check_held_out(self.held_out)
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
    dtype: Dtype = "auto"
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
        """What comes after the review."""
        return self.template.removeprefix(REVIEW).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class MitigationSettings:
    """Continued training with a fairness loss, by default as in Huang et al. (2020), appendix B, except for steps.

    The paper trains models of 257 to 708 million weights for 25,000 to 50,000 steps.
    """

    method: MitigationMethod = "embedding"
    strength: float = 10.0  # λ; 0, and 0 alone, for all methods but embedding and sentiment
    unit: TextUnit = "sentence"  # what one row is: a sentence, or consecutive sentences of a document
    ordinary: float = 0.0  # the share of each batch that mentions no value, for the language-model loss alone
    steps: int = 1000
    batch: int = 32  # sentences or windows in a step, ordinary ones among them
    accumulate: int = 1  # parts in which a step is computed, to need less memory
    learning_rate: float = 2.5e-5
    window: int = 0  # tokens of a unit, at most; 0: 128 of a sentence, 512 of a window
    masked_share: float = 0.15  # of the tokens, in a masked model
    hidden: float = 0.8  # of these, that become [MASK]; the rest stay or become other words, half each, as in BERT
    lora: int = 0  # the rank of the low-rank matrices that are trained instead of the weights; 0: the weights
    dtype: Dtype = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        _check_common(self.seed, self.batch, self.learning_rate)
        _check("method", self.method, self.method in METHODS, f"one of {', '.join(METHODS)}")
        regularised = self.method in WITH_STRENGTH
        fine = math.isfinite(self.strength) and self.strength >= 0 and (self.strength > 0) == regularised
        expected = f"0 for the control, and a number above 0 for {' and '.join(WITH_STRENGTH)}"
        _check("strength", self.strength, fine, expected)
        _check("unit", self.unit, self.unit in UNITS, " or ".join(UNITS))
        _check("ordinary", self.ordinary, 0 <= self.ordinary < 1, "0 or more and less than 1")
        some = not self.ordinary or 1 <= self.ordinary_rows < self.batch
        both = f"a share that leaves ordinary and other text in a batch of {self.batch}"
        _check("ordinary", self.ordinary, some, both)
        _check("steps", self.steps, self.steps >= 1, "1 or more")
        parts = self.accumulate >= 1 and self.batch % self.accumulate == 0
        _check("accumulate", self.accumulate, parts, f"a number by which a batch of {self.batch} can be divided")
        _check("window", self.window, self.window == 0 or self.window >= 8, "8 tokens or more")
        _check("masked_share", self.masked_share, 0 < self.masked_share < 1, "between 0 and 1")
        _check("hidden", self.hidden, 0 < self.hidden <= 1, "more than 0 and at most 1")
        _check("lora", self.lora, self.lora >= 0, "0 (train the weights themselves) or a rank of 1 or more")

    @property
    def is_control(self) -> bool:
        """Whether it is the same training without a fairness loss, to compare with."""
        return self.method == "control"

    @property
    def tokens(self) -> int:
        """The most tokens of a sentence or window."""
        return self.window or _TOKENS[self.unit]

    @property
    def ordinary_rows(self) -> int:
        """How many texts of a batch are ordinary."""
        return round(self.ordinary * self.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabellingSettings:
    """Which sentences the sentiment projection learns from."""

    scorer: str = "builtin:sentiment"
    sentences: int = 10_000  # to ask the scorer about, drawn from the training documents
    threshold: float = 0.7  # on a scale from −1 to 1; sentences with a score nearer to 0 are left out
    seed: int = 0

    def __post_init__(self) -> None:
        _check("sentences", self.sentences, self.sentences >= 1, "1 or more")
        _check("threshold", self.threshold, 0 <= self.threshold < 1, "0 or more and less than 1")
        _check("seed", self.seed, self.seed >= 0, "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSettings:
    """Which documents of a corpus a mitigation is trained on, and how many are kept to measure perplexity."""

    held_out: int = 100
    at_most: int = 0  # documents to which the corpus is cut first; 0: no limit
    labelling: LabellingSettings | None = None  # of its sentences, for the sentiment projection; None: the usual

    def __post_init__(self) -> None:
        _check_held_out(self.held_out)
        _check("at_most", self.at_most, self.at_most >= 0, "0 (no limit) or more")


def card_settings(
    settings: MaskedSettings | CausalSettings | PromptSettings | MitigationSettings,
) -> dict[str, str | int | float | bool]:
    """Return settings as a card keeps them, without the dtype: the card has what `auto` was resolved to."""
    return {name: value for name, value in asdict(settings).items() if name != "dtype"}


def _check_common(seed: int, batch: int, learning_rate: float) -> None:
    _check("seed", seed, seed >= 0, "0 or more")
    _check("batch", batch, batch >= 1, "1 or more")
    fine = math.isfinite(learning_rate) and learning_rate > 0
    _check("learning_rate", learning_rate, fine, "more than 0")


def _check_held_out(documents: int) -> None:
    enough = documents >= LEAST_HELD_OUT
    _check("held_out", documents, enough, f"{LEAST_HELD_OUT} or more; with fewer there is no interval")


def _check(name: str, value: object, fine: bool, expected: str) -> None:
    if not fine:
        raise SettingError(name, value, expected)
