"""Reviews as prompts with a blank, and demonstrations: prompts of other reviews whose blank is filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from clinometer.data.reviews import Review, Verdict
from clinometer.errors import ModelError
from clinometer.models.local.text import Encoded, TextEncoder, Vocabulary
from clinometer.train.settings import PromptSettings
from clinometer.types import MASK, Fill, NextWord

# in the order of LM-BFF's labels 0 and 1: demonstrations and logits come in this order
VERDICTS: tuple[Verdict, ...] = ("negative", "positive")


@final
class Prompts:
    """Writes reviews as token ids for one model.

    With demonstrations a row is `review It was [MASK].` and, behind the model's separator token each, one review
    of each class with its label word in place of the blank. The input gets half of the length, a demonstration a
    quarter. What is cut is always a review, from its beginning, as in the audits; never prompt, mask or label.
    """

    def __init__(self, tokenizer: Any, *, window: int, settings: PromptSettings) -> None:
        self._prompt = settings.prompt
        self._words: Mapping[Verdict, str] = {"negative": settings.negative, "positive": settings.positive}
        length = min(settings.length, window or settings.length)
        share = length // (2 * len(VERDICTS))
        self._alone = TextEncoder(tokenizer, window=length)
        self._first = TextEncoder(tokenizer, window=length - share * len(VERDICTS))
        tokens = self._alone.tokens
        self._start, self._end = len(tokens.start), np.asarray(tokens.end, np.int32)
        # a demonstration has no special tokens before it, and those of the end behind it
        self._behind = TextEncoder(tokenizer, window=share + self._start - len(tokens.end))
        self.words = self._single_tokens(Vocabulary(tokenizer))

    def plain(self, review: Review) -> Encoded:
        """Return a review with the prompt."""
        return self._alone.fill([Fill(context=review.text, text=self._prompt)])[0]

    def demonstrated(self, review: Review, examples: Sequence[Review]) -> Encoded:
        """Return a review with the prompt and the filled prompts of the examples behind it."""
        first = self._first.fill([Fill(context=review.text, text=self._prompt)])[0]
        filled = [
            NextWord(context=example.text, text=self._prompt.replace(MASK, self._words[example.label]))
            for example in examples
        ]
        parts = [first.ids]
        for encoded in self._behind.prefixes(filled):
            parts += [encoded.ids[self._start :], self._end]
        return Encoded(ids=np.concatenate(parts), blank=first.blank)

    def _single_tokens(self, vocabulary: Vocabulary) -> tuple[int, ...]:
        """Return the token of each label word, in the order of `VERDICTS`."""
        found = {verdict: vocabulary.id_of(self._words[verdict]) for verdict in VERDICTS}
        for verdict, token in found.items():
            if token is None:
                raise ModelError(
                    f"the {verdict} label word {self._words[verdict]!r} is not one token of this model;"
                    " choose another with --labels positive/negative"
                )
        return tuple(token for token in found.values() if token is not None)
