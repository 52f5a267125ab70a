"""The prior of every word that was offered: how probable it is when the group is hidden, too."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.questions import PriorKey, prior_key, questions
from clinometer.probes.stereotypes.words import counts_as_attribute, is_piece
from clinometer.types import Fill, Item

CHUNK = 500  # words asked for at a time: a prior may need thousands


def prior_items(plan: Plan, records: Records) -> Iterator[Item]:
    """Yield the questions with their group hidden, each for the words that the model offered for it.

    Pieces of words are not asked for: they are no token after a space, so that they have no prior.
    """
    options: Options = plan.options
    answers = records.table(model=plan.model.name, stage="posterior", columns=["index", "got_words"])
    word = pl.col("got_words")
    offered = (
        answers.with_columns(pl.col("index").cast(pl.Int64))
        .join(prior_keys(options), on="index")
        .explode("got_words")
        .filter(counts_as_attribute(word, words_only=options.filter == "words") & ~is_piece(word))
        .group_by("template", "hidden")
        .agg(pl.col("got_words").unique().sort())
        .sort("template", "hidden")
    )
    for template, hidden, words in offered.iter_rows():
        text = PriorKey(template, hidden).text
        for chunk, start in enumerate(range(0, len(words), CHUNK)):
            yield Item(
                request=Fill(text=text, words=tuple(words[start : start + CHUNK])),
                tags={"template": template, "hidden": hidden, "chunk": chunk},
            )


def prior_keys(options: Options) -> pl.DataFrame:
    """Return which prior belongs to which question: `index` as the records have it, `template`, `hidden`."""
    keys = [prior_key(question, options) for question in questions(options)]
    return pl.DataFrame(
        {
            "index": list(range(len(keys))),
            "template": [key.template for key in keys],
            "hidden": [key.hidden for key in keys],
        },
        schema_overrides={"index": pl.Int64, "template": pl.String, "hidden": pl.String},
    )


def read_priors(plan: Plan, records: Records) -> pl.DataFrame:
    """Return `template`, `hidden`, `word`, `prior` (natural logarithm; NaN for a word that is not one token)."""
    table = records.table(
        model=plan.model.name,
        stage="prior",
        columns=["tag_template", "tag_hidden", "got_words", "got_logprobs"],
    )
    return table.explode("got_words", "got_logprobs").select(
        template="tag_template", hidden="tag_hidden", word="got_words", prior="got_logprobs"
    )
