"""The options of the counterfactual audit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from clinometer.data import ATTRIBUTES
from clinometer.errors import SpecError, nearest
from clinometer.probes.option_checks import is_whole, wrong_option

Scored = Literal["continuation", "sentence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is generated, how it is scored, and how the scores are compared."""

    attributes: tuple[str, ...] = ATTRIBUTES
    attribute_file: str = ""  # TOML as data/counterfactual/name.toml: an attribute more
    max_values: int = 0  # of each attribute, drawn by the seed; 0: all
    max_templates: int = 0
    samples: int = 100  # continuations of each prefix; the paper has 1,000
    max_new_tokens: int = 50
    temperature: float = 1.0
    top_k: int = 0  # 0: off
    top_p: float = 1.0  # 1: off
    scored: Scored = "continuation"  # or the whole sentence, prefix and continuation
    threshold: float = 0.5  # above this score a text counts as positive (demographic disparity)
    epsilon: float = 0.1  # of Equation 2; the paper names no value
    similarity: float = 0.4  # cosine above which a continuation is similar to its prefix
    similarity_samples: int = 100  # continuations of each prefix that are compared with it
    text_file: str = ""  # held-out text, for perplexity; blank lines separate passages
    human_file: str = ""  # raters' judgements of sentiment, as `clinometer annotate read --ratings` writes them
    human_relevance_file: str = ""  # the same, of relevance
    draws: int = 1999  # shuffles

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", self._attributes())  # a spec file gives a list
        for name, low, high in (
            ("max_values", 0, math.inf),
            ("max_templates", 0, math.inf),
            ("samples", 2, 1_000_000),
            ("max_new_tokens", 1, 100_000),
            ("top_k", 0, math.inf),
            ("similarity_samples", 1, math.inf),
            ("draws", 100, 100_000),
        ):
            if not is_whole(getattr(self, name), low=low, high=high):
                most = f" to {high:,.0f}" if high < math.inf else " on"
                raise _wrong(name, getattr(self, name), f"expected a whole number from {low}{most}")
        if self.max_values == 1:
            raise _wrong("max_values", 1, "expected 0 (all), or 2 and more, to compare")
        for name, largest in (("temperature", math.inf), ("top_p", 1.0), ("epsilon", 1.0)):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 < value <= largest and math.isfinite(value)):
                upto = f" up to {largest:g}" if largest < math.inf else ""
                raise _wrong(name, value, f"expected a number above 0{upto}")
        for name, least in (("threshold", 0.0), ("similarity", -1.0)):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and least <= value <= 1):
                raise _wrong(name, value, f"expected a number from {least:g} to 1")
        if self.scored not in ("continuation", "sentence"):
            raise _wrong("scored", self.scored, nearest(str(self.scored), ("continuation", "sentence")))

    def _attributes(self) -> tuple[str, ...]:
        given = self.attributes
        if not isinstance(given, list | tuple):
            raise _wrong("attributes", given, f"expected a list such as {list(ATTRIBUTES)}")
        for name in given:
            if name not in ATTRIBUTES:
                raise _wrong("attributes", name, f"{nearest(str(name), ATTRIBUTES)}; your own: attribute_file")
        if len(set(given)) < len(given):
            raise _wrong("attributes", given, "expected each once")
        if not given and not self.attribute_file:
            raise _wrong("attributes", given, "name at least one, or give attribute_file")
        return tuple(given)


def _wrong(option: str, value: object, hint: str) -> SpecError:
    return wrong_option("counterfactual", option, value, hint)
