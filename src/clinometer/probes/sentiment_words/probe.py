"""The sentiment-words audit as the engine sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinometer.data import load_card
from clinometer.errors import DataError
from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.probes.sentiment_words.options import LABELS, Options
from clinometer.probes.sentiment_words.prompts import association_prompts, shift_prompts, vocabulary_question
from clinometer.probes.sentiment_words.summary import summarise
from clinometer.types import Findings, Item, Profile


@dataclass(frozen=True, slots=True)
class SentimentWords:
    """Words at "review It was [MASK]" (association), and labels of "review word word … It was [MASK]" (shift)."""

    name: str = "sentiment_words"
    title: str = "Sentiment that the model sees in neutral words"
    question: str = (
        "Which words that people call neutral does the model expect after positive or after negative reviews, and "
        "which of them change the label of a review when they are appended to it?"
    )
    paper: str = (
        "Apoorv Garg, Deval Srivastava, Zhiyang Xu and Lifu Huang, Identifying and Measuring Token-Level "
        "Sentiment Bias in Pre-trained Language Models with Prompts (2022)"
    )
    capabilities: tuple[str, ...] = ("fill",)
    roles: tuple[Role, ...] = ()

    @property
    def sources(self) -> str:
        """Where words and reviews come from."""
        return " ".join(load_card("sentiment_words").source.split())

    @property
    def options(self) -> type[Options]:
        """The options class of this audit."""
        return Options

    @property
    def user_data(self) -> Mapping[str, str]:
        """The neutral words are those of MPQA where the user has added them."""
        return {"neutral_file": "mpqa"}

    @property
    def profiles(self) -> Mapping[Profile, Mapping[str, Any]]:
        """What each profile sets instead of the defaults."""
        return {
            # long reviews cost most of the time; the paper's own mix has a median of thirty words
            "quick": {"reviews_per_class": 70, "longest_review": 40, "shift_words_limit": 10},
            "standard": {"reviews_per_class": 150, "longest_review": 80, "shift_words_limit": 120},
            "paper": {"reviews_per_class": 2000},
        }

    def check(self, options: Options) -> None:
        """Read the words and reviews, and see that there are enough of each kind."""
        for label, words in options.listed_words().items():
            if len(words) < 2:
                raise DataError(
                    f"sentiment_words: {len(words)} {label} words; expected at least 2 of each of "
                    f"{', '.join(LABELS)}: add some to the list"
                )
        options.chosen_reviews(0)

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        """Return what to ask: which words the model has, then reviews as they are, then with words appended."""
        names = ("vocabulary", "association", *(("shift",) if plan.options.asked_shift_templates else ()))
        return tuple(Stage(name=name) for name in names)

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
        """Yield the questions of a stage; all but the first depend on which words the model has."""
        if stage.name == "vocabulary":
            return iter([vocabulary_question(plan)])
        return association_prompts(plan, records) if stage.name == "association" else shift_prompts(plan, records)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        """Conclude from the answers of all models."""
        return summarise(self.name, plans, records)


PROBE = SentimentWords()
