"""The options of the counterfactual audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from clinometer.data import ATTRIBUTES
from clinometer.data.attributes import SENSITIVE_LISTS
from clinometer.errors import SpecError, nearest
from clinometer.probes.kit import audits as kit
from clinometer.probes.protocol import Plan

AboveZero = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ShareAboveZero = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


ACROSS: Literal["across"] = "across"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is generated, how it is scored, and how the scores are compared."""

    attributes: tuple[str, ...] = ATTRIBUTES
    attribute_file: str = ""  # TOML as data/counterfactual/name.toml: one more attribute
    prompts_file: str = ""  # your own prompts, one on each line: see docs/counterfactual.md
    sensitive: tuple[str, ...] = SENSITIVE_LISTS  # the lists whose words are looked for in prompts without a field
    # which pairs I.F. averages, where values have subgroups: "across" only those of two subgroups
    pairs: Literal["all", "across"] = "all"
    max_values: kit.Count = 0  # of each attribute, drawn by the seed; 0: all
    max_templates: kit.Count = 0
    samples: Annotated[int, Field(ge=2, le=1_000_000)] = 100  # continuations of each prefix; the paper has 1,000
    chat_samples: kit.Count = 0  # continuations by a chat model, which writes each twice over; 0: as samples
    max_new_tokens: Annotated[int, Field(ge=1, le=100_000)] = 50
    temperature: AboveZero = 1.0
    top_k: kit.Count = 0  # 0: off
    top_p: ShareAboveZero = 1.0  # 1: off
    continuation_file: str = ""  # TOML as data/asking/continuation.toml: how a chat model is asked to go on
    scored: Literal["continuation", "sentence"] = "continuation"  # or the whole sentence, with its prefix
    # above this score a text counts as positive (demographic disparity)
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.5
    epsilon: ShareAboveZero = 0.1  # of Equation 2; the paper names no value
    # cosine above which a continuation is similar to its prefix
    similarity: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.4
    similarity_samples: kit.Positive = 100  # continuations of each prefix that are compared with it
    # of each prefix, continuations that are compared with those about the other values as texts; 0: none
    compared_samples: kit.Count = 8
    text_file: str = ""  # held-out text, for perplexity; blank lines separate passages
    human_file: str = ""  # raters' judgements of sentiment, as `clinometer annotate read --ratings` writes them
    human_relevance_file: str = ""  # the same, of relevance
    draws: kit.Draws = 1999  # shuffles

    def __post_init__(self) -> None:
        for name in self.attributes:
            if name not in ATTRIBUTES:
                raise _wrong("attributes", name, f"{nearest(name, ATTRIBUTES)}; your own: attribute_file")
        for name in self.sensitive:
            if name not in SENSITIVE_LISTS:
                raise _wrong("sensitive", name, nearest(name, SENSITIVE_LISTS))
        if len(set(self.attributes)) < len(self.attributes):
            raise _wrong("attributes", self.attributes, "expected each once")
        if not self.attributes and not self.attribute_file and not self.prompts_file:
            raise _wrong("attributes", (), "name at least one, or give attribute_file")
        if self.max_values == 1:
            raise _wrong("max_values", 1, "expected 0 (all), or 2 and more, to compare")


def _wrong(option: str, value: object, hint: str) -> SpecError:
    return kit.wrong_option("counterfactual", option, value, hint)


def fitted(plan: Plan) -> Plan:
    """Return the plan with the number of continuations that a model of its kind is asked for."""
    options: Options = plan.options
    if "sample" in plan.model.capabilities or "ask" not in plan.model.capabilities or not options.chat_samples:
        return plan
    return replace(plan, options=replace(options, samples=max(2, min(options.samples, options.chat_samples))))
