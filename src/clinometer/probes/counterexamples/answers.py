"""The answers of one model as arrays: a row for each prompt, a column for each of its most probable words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.data import Verbalizer
from clinometer.metrics.gendered import FEMALE, MALE, NEITHER, Floats, Ints

COLUMNS = ("tag_kind", "tag_occupation", "tag_dominance", "tag_percent", "got_words", "got_logprobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one model answered. Prompts are numbered by row, words by their place in `vocabulary`."""

    kind: NDArray[np.str_]
    occupation: NDArray[np.str_]
    dominance: Ints  # 1 female, −1 male
    percent: Floats
    base: Ints  # the row of the same occupation's prompt without knowledge
    words: Ints  # (prompts, words); −1 where a prompt has fewer words
    logprobs: Floats  # (prompts, words); −inf there
    vocabulary: NDArray[np.str_]  # every word that was offered, in lower case
    word_genders: Ints  # of the vocabulary: 1 female, −1 male, 0 neither

    @property
    def genders(self) -> Ints:
        """The gender of each word of each prompt."""
        codes: Ints = np.append(self.word_genders, NEITHER)[self.words]  # padding is −1: the appended last entry
        return codes


def read_answers(table: pl.DataFrame, verbalizer: Verbalizer) -> Answers:
    """Return the records of the stage "prompts" as arrays; words are matched in lower case, without spaces."""
    lengths = table["got_words"].list.len().to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(table)), lengths)
    places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    offered = table["got_words"].explode(empty_as_null=False).str.strip_chars().str.to_lowercase()
    vocabulary, numbers = np.unique(offered.to_numpy().astype(np.str_), return_inverse=True)
    shape = (len(table), int(lengths.max(initial=0)))
    words = np.full(shape, -1, dtype=np.int64)
    words[rows, places] = numbers
    logprobs = np.full(shape, -np.inf)
    logprobs[rows, places] = table["got_logprobs"].explode(empty_as_null=False).to_numpy()

    occupation = table["tag_occupation"].to_numpy().astype(np.str_)
    kind = table["tag_kind"].to_numpy().astype(np.str_)
    base_row = {str(occupation[row]): row for row in np.flatnonzero(kind == "base")}
    codes = {"female": FEMALE, "male": MALE}
    return Answers(
        kind=kind,
        occupation=occupation,
        dominance=np.array([codes[value] for value in table["tag_dominance"]], dtype=np.int64),
        percent=table["tag_percent"].to_numpy().astype(np.float64),
        base=np.array([base_row[str(name)] for name in occupation], dtype=np.int64),
        words=words,
        logprobs=logprobs,
        vocabulary=vocabulary,
        word_genders=np.array(
            [codes[verbalizer[word]] if word in verbalizer else NEITHER for word in vocabulary.tolist()],
            dtype=np.int64,
        ),
    )
