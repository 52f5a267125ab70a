"""The answers of one run about one model as arrays: texts, scores, similarities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.requests import PREFIX, continuations, embeddings_stage, scores_stage
from clinometer.probes.counterfactual.specification import Chosen, chosen_attributes
from clinometer.probes.kit.numbers import Floats, Ints
from clinometer.probes.protocol import Plan, Records

Bools = NDArray[np.bool_]

OPINION_WORDS = "opinion-words"  # the family of scorers that can tell when a text has no opinion word


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What one scorer makes of the texts."""

    scorer: str
    values: Floats  # (prefixes, samples) in [0, 1]; NaN: nothing was written
    without_opinion: float  # share of texts without an opinion word; NaN where the scorer cannot tell

    def of(self, chosen: Chosen) -> Floats:
        """Return the scores of one attribute, templates × values × samples."""
        templates, values = chosen.shape
        rows = self.values[chosen.first : chosen.first + chosen.prefixes]
        return rows.reshape(templates, values, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarities:
    """How near continuations are to their prefixes, as one encoder sees it; a row for each that was asked."""

    encoder: str
    prefix: Ints
    sample: Ints
    cosine: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One model, ready to be summarised."""

    model: str
    options: Options
    seed: int
    attributes: tuple[Chosen, ...]
    texts: pl.DataFrame  # prefix, sample, beginning, text
    scores: tuple[Scores, ...]
    similarities: tuple[Similarities, ...]

    def texts_by_value(self, chosen: Chosen) -> dict[str, list[str]]:
        """Return what was written about each value of an attribute, without continuations that are empty."""
        values = [value.text for value in chosen.attribute.values]
        inside = pl.col("prefix").is_between(chosen.first, chosen.first + chosen.prefixes - 1)
        written = self.texts.filter(inside & (pl.col("text").str.strip_chars() != ""))
        of_value = (written["prefix"] - chosen.first) % len(values)
        return {value: written["text"].filter(of_value == at).to_list() for at, value in enumerate(values)}


def view_model(plan: Plan, records: Records) -> View:
    """Read the answers about one model."""
    options: Options = plan.options
    attributes = chosen_attributes(options, seed=plan.seed)
    shape = (sum(chosen.prefixes for chosen in attributes), options.samples)
    texts = pl.concat(list(continuations(plan, records)))
    written = bool((texts["text"].str.strip_chars() != "").any())
    return View(
        model=plan.model.name,
        options=options,
        seed=plan.seed,
        attributes=attributes,
        texts=texts,
        scores=tuple(
            _scores(plan, records, number, shape, tells=info.family == OPINION_WORDS, written=written)
            for number, info in enumerate(plan.roles["scorer"])
        ),
        similarities=tuple(_similarities(plan, records, number) for number, _ in enumerate(plan.roles["encoder"])),
    )


def _scores(
    plan: Plan, records: Records, number: int, shape: tuple[int, int], *, tells: bool, written: bool
) -> Scores:
    r"""Read the scores of one scorer.

    .. math:: s = \frac{p_+ + p_0 / 2}{p_+ + p_0 + p_-}

    Without a neutral class that is the positive probability; for opinion words p/(p + n), and 0.5 without any.
    """
    found = np.full(shape, np.nan)
    silent = asked = 0
    columns = ("tag_prefix", "tag_sample", "got_negative", "got_neutral", "got_positive")
    # where nothing at all was written, the scorer was asked nothing and has no records
    for table in _batches(plan, records, scores_stage(number), columns) if written else ():
        negative, neutral, positive = (
            table[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in columns[2:]
        )
        neutral = np.nan_to_num(neutral)
        with np.errstate(invalid="ignore"):
            score = (positive + neutral / 2) / (positive + neutral + negative)
        found[table["tag_prefix"].to_numpy(), table["tag_sample"].to_numpy()] = score
        silent += int((neutral == 1).sum())
        asked += len(table)
    share = silent / asked if tells and asked else np.nan
    return Scores(scorer=plan.roles["scorer"][number].name, values=found, without_opinion=share)


def _similarities(plan: Plan, records: Records, number: int) -> Similarities:
    """Read cosines batch by batch: vectors of a large run do not fit in memory, and prefixes come first."""
    prefixes: dict[int, Floats] = {}
    parts: list[tuple[Ints, Ints, Floats]] = []
    columns = ("tag_prefix", "tag_sample", "got_vector")
    for table in _batches(plan, records, embeddings_stage(number), columns):
        prefix, sample = (table[name].to_numpy().astype(np.int64) for name in columns[:2])
        vectors = np.array(table["got_vector"].to_list(), dtype=np.float64)
        is_prefix = sample == PREFIX
        prefixes |= dict(zip(prefix[is_prefix].tolist(), vectors[is_prefix], strict=True))
        if not is_prefix.all():
            own = np.stack([prefixes[at] for at in prefix[~is_prefix].tolist()])
            cosine = (own * vectors[~is_prefix]).sum(axis=1)  # vectors have length 1
            parts.append((prefix[~is_prefix], sample[~is_prefix], cosine))
    empty: tuple[Ints, Ints, Floats] = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    at, which, near = (np.concatenate(column) for column in zip(empty, *parts, strict=True))
    return Similarities(encoder=plan.roles["encoder"][number].name, prefix=at, sample=which, cosine=near)


def _batches(plan: Plan, records: Records, stage: str, columns: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    return records.batches(model=plan.model.name, stage=stage, columns=columns)
