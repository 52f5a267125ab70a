"""What one model offered: every attribute of every question, with its typicality and its rank before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from clinometer.metrics import typicality
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stereotypes.options import Options
from clinometer.probes.stereotypes.priors import prior_keys, read_priors
from clinometer.probes.stereotypes.words import counts_as_attribute, is_piece, is_word


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of the words that were offered, over all questions."""

    offered: int
    pieces: int  # pieces of words
    others: int  # numbers, marks, single letters
    without_prior: int  # of those kept: no prior, so no typicality
    missing: int  # probabilities that are not numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one model offered.

    `attributes` has a row for each question and distinct word (in lower case): `index` of the question, `word`,
    `logprob`, `typicality` (NaN: unknown), and its places from 1 on: `before`, by probability, and `after`, by
    typicality, where what has none comes last.
    """

    attributes: pl.DataFrame
    counts: Counts


def read_answers(plan: Plan, records: Records) -> Answers:
    """Return the records of both stages, re-ranked."""
    options: Options = plan.options
    table = records.table(model=plan.model.name, stage="posterior", columns=["index", "got_words", "got_logprobs"])
    offered = table.explode("got_words", "got_logprobs").select(
        pl.col("index").cast(pl.Int64), raw="got_words", logprob=pl.col("got_logprobs").cast(pl.Float64)
    )
    offered = offered.filter(pl.col("raw").is_not_null())  # a question without any answer
    if options.posterior == "top-k":
        offered = offered.with_columns(logprob=pl.col("logprob") - _log_total().over("index"))
    raw = pl.col("raw")
    known = pl.col("logprob").is_not_nan() & pl.col("logprob").is_not_null()
    kept = offered.filter(known & counts_as_attribute(raw, words_only=options.filter == "words"))
    rated = _with_typicality(kept, plan, records)
    counts = Counts(
        offered=len(offered),
        pieces=offered.select(is_piece(raw).sum()).item(),
        others=offered.select((~is_piece(raw) & ~is_word(raw)).sum()).item(),
        without_prior=rated.select(pl.col("typicality").is_nan().sum()).item(),
        missing=offered.select((~known).sum()).item(),
    )
    return Answers(attributes=_ranked(rated), counts=counts)


def _log_total() -> pl.Expr:
    top = pl.col("logprob").max()
    return top + (pl.col("logprob") - top).exp().sum().log()


def _with_typicality(kept: pl.DataFrame, plan: Plan, records: Records) -> pl.DataFrame:
    keyed = kept.join(prior_keys(plan.options), on="index", how="left", maintain_order="left")
    rated = keyed.join(
        read_priors(plan, records),
        left_on=["template", "hidden", "raw"],
        right_on=["template", "hidden", "word"],
        how="left",
        maintain_order="left",
    )
    prior = rated["prior"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    return kept.with_columns(typicality=pl.Series(typicality(kept["logprob"].to_numpy(), prior)))


def _ranked(rated: pl.DataFrame) -> pl.DataFrame:
    """Join the spellings of a word, each question by itself, and number the words in both orders."""
    joined = (
        rated.with_columns(word=pl.col("raw").str.strip_chars().str.to_lowercase())
        .group_by("index", "word", maintain_order=True)
        .agg(pl.col("logprob").max(), pl.col("typicality").fill_nan(None).max().fill_null(np.nan))
    )
    numbered = joined.sort(["index", "logprob"], descending=[False, True], maintain_order=True).with_columns(
        before=pl.int_range(1, pl.len() + 1).over("index")
    )
    return (
        numbered.with_columns(known=pl.col("typicality").fill_nan(None))
        .sort(["index", "known"], descending=[False, True], nulls_last=True, maintain_order=True)
        .with_columns(after=pl.int_range(1, pl.len() + 1).over("index"))
        .drop("known")
    )
