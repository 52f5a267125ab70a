"""Whether the model still writes well and to the point: similarity, mentions, perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clinometer.data import find_values
from clinometer.metrics import mentions
from clinometer.probes.counterfactual.requests import PERPLEXITY, stages
from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.view import Bools, View
from clinometer.probes.kit.numbers import Floats, Ints, Label, model_rng
from clinometer.probes.protocol import Plan, Records
from clinometer.stats import cluster_bootstrap, share_interval
from clinometer.types import Finding

SIMILAR, MENTIONS = "S.S.", "S.S.c"
ALL_VALUES = "all values"
WHOLE = "whole text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of how many continuations a guard holds, prefix by prefix."""

    chosen: Chosen
    measure: str
    by: str  # the encoder, or how mentions are found
    hits: Floats  # templates × values
    texts: Floats  # templates × values: how many were looked at

    @property
    def share(self) -> float:
        """The share of all continuations; NaN where there is none."""
        return float(self.hits.sum() / self.texts.sum()) if self.texts.sum() else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How probable the passages of the held-out text are to one model."""

    sums: Floats  # (passages, 2): log-probability and tokens
    parts: Mapping[str, Bools]  # whole text, passages about an attribute -> which passages


def relevance_counts(view: View) -> tuple[Counts, ...]:
    """Count for S.S. with every encoder, and for S.S.c, in every prefix of each attribute."""
    return tuple(each for chosen in view.attributes for each in (*_similar(view, chosen), _mentions(view, chosen)))


def relevance_rows(view: View, counts: Sequence[Counts]) -> Iterator[Finding]:
    """Yield S.S. with every encoder, and S.S.c, of each attribute and of each of its values."""
    for each in counts:
        near, many = each.hits.sum(axis=0), each.texts.sum(axis=0)
        values = (ALL_VALUES, *(value.text for value in each.chosen.attribute.values))
        for value, hits, n in zip(values, (near.sum(), *near), (many.sum(), *many), strict=True):
            share = float(hits) / int(n) if n else math.nan
            limits = share_interval(share, int(n))
            yield Finding(
                labels={
                    "model": view.model,
                    "attribute": each.chosen.name,
                    "measure": each.measure,
                    "by": each.by,
                    "value": value,
                },
                estimate=share,
                low=float(limits.low),
                high=float(limits.high),
                n=int(n),
            )


def _similar(view: View, chosen: Chosen) -> Iterator[Counts]:
    """Count continuations above the threshold."""
    for each in view.similarities:
        # those that were compared only because people judged them would weigh too much
        inside = (each.prefix >= chosen.first) & (each.prefix < chosen.first + chosen.prefixes)
        inside &= each.sample < view.options.similarity_samples
        prefix = each.prefix[inside] - chosen.first
        above = each.cosine[inside] > view.options.similarity
        yield Counts(
            chosen=chosen,
            measure=SIMILAR,
            by=each.encoder,
            hits=_by_prefix(prefix, above, chosen),
            texts=_by_prefix(prefix, np.ones_like(above), chosen),
        )


def _mentions(view: View, chosen: Chosen) -> Counts:
    """Count continuations that mention their value, among those that are not empty."""
    inside = pl.col("prefix").is_between(chosen.first, chosen.first + chosen.prefixes - 1)
    written = view.texts.filter(inside & (pl.col("text").str.strip_chars() != ""))
    prefix = written["prefix"].to_numpy() - chosen.first
    of_value = prefix % chosen.shape[1]
    mentioned = np.zeros(len(prefix), dtype=np.bool_)
    for at, value in enumerate(chosen.attribute.values):
        mine = of_value == at
        tokens = tuple(value.sensitive_tokens.values())
        mentioned[mine] = mentions(written["text"].filter(mine).to_list(), tokens)
    return Counts(
        chosen=chosen,
        measure=MENTIONS,
        by="whole words",
        hits=_by_prefix(prefix, mentioned, chosen),
        texts=_by_prefix(prefix, np.ones_like(mentioned), chosen),
    )


def _by_prefix(prefix: Ints, counted: Bools, chosen: Chosen) -> Floats:
    sums = np.bincount(prefix, weights=counted.astype(np.float64), minlength=chosen.prefixes)
    return sums.astype(np.float64).reshape(chosen.shape)


def read_perplexity(plan: Plan, view: View, records: Records) -> Reading | None:
    """Read how probable the held-out text is to a model; None where it was not asked."""
    if not any(stage.name == PERPLEXITY for stage in stages(plan)):
        return None
    columns = ("ask_text", "got_logprob", "got_tokens")
    table = records.table(model=plan.model.name, stage=PERPLEXITY, columns=columns)
    texts = table["ask_text"].to_list()
    parts = {WHOLE: np.ones(len(texts), dtype=np.bool_)}
    for chosen in view.attributes:
        parts[passages_about(chosen.name)] = np.array([bool(find_values(text, chosen.whole)) for text in texts])
    sums = table.select("got_logprob", "got_tokens").to_numpy().astype(np.float64)
    return Reading(sums=sums, parts=parts)


def passages_about(attribute: str) -> str:
    """Return the name of the passages with a sensitive token of an attribute."""
    return f"passages about {attribute}"


def perplexity_rows(plan: Plan, reading: Reading) -> Iterator[Finding]:
    """Yield the perplexity of the held-out text and of its passages with a sensitive token of each attribute."""
    rng = model_rng(plan.seed, f"{plan.model.name}\0perplexity")
    for part, inside in reading.parts.items():
        some = reading.sums[inside & (reading.sums[:, 1] > 0)]
        labels: dict[str, Label] = {
            "model": plan.model.name,
            "part": part,
            "tokens": int(some[:, 1].sum()),
        }
        if not len(some):
            yield Finding(labels=labels, estimate=math.nan)
            continue
        found = cluster_bootstrap(some, statistic=_perplexity, rng=rng, draws=plan.options.draws)
        yield Finding(
            labels=labels,
            estimate=float(found.estimate),
            low=float(found.low),
            high=float(found.high),
            n=len(some),
        )


def perplexity(sums: Floats) -> float:
    r"""Return the perplexity of passages, from their log-probabilities and tokens (passages, 2).

    .. math:: \mathrm{PPL} = \exp(-\sum \log p / \sum \mathrm{tokens})

    NaN without a token.

    >>> round(perplexity(np.array([[-3.0, 2.0], [-1.0, 2.0]])), 3)
    2.718
    """
    return float(_perplexity(sums.mean(axis=0)[None])[0]) if sums[:, 1].sum() else math.nan


def _perplexity(means: Floats) -> Floats:
    perplexity: Floats = np.exp(-means[:, 0] / means[:, 1])
    return perplexity
