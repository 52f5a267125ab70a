"""Whether the model still writes well and to the point: similarity, mentions, perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from clinometer.data import find_values
from clinometer.metrics import mentions_share
from clinometer.probes.counterfactual.requests import PERPLEXITY
from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.view import View
from clinometer.probes.numbers import Floats, Label, model_rng
from clinometer.probes.protocol import Plan, Records
from clinometer.stats import cluster_bootstrap, share_interval
from clinometer.types import Finding

SIMILAR, MENTIONS = "S.S.", "S.S.c"
ALL_VALUES = "all values"
WHOLE = "whole text"


def relevance_rows(view: View) -> Iterator[Finding]:
    """Yield S.S. with every encoder, and S.S.c, of each attribute and of each of its values."""
    for chosen in view.attributes:
        for measure, by, near, many in (*_similar(view, chosen), _mentions(view, chosen)):
            whole = float(near.sum()), int(many.sum())
            values = (ALL_VALUES, *(value.text for value in chosen.attribute.values))
            for value, hits, n in zip(values, (whole[0], *near), (whole[1], *many), strict=True):
                share = float(hits) / int(n) if n else math.nan
                limits = share_interval(share, int(n))
                yield Finding(
                    labels={
                        "model": view.model,
                        "attribute": chosen.name,
                        "measure": measure,
                        "by": by,
                        "value": value,
                    },
                    estimate=share,
                    low=float(limits.low),
                    high=float(limits.high),
                    n=int(n),
                )


def _similar(view: View, chosen: Chosen) -> Iterator[tuple[str, str, Floats, Floats]]:
    """Count continuations above the threshold, value by value."""
    values = chosen.shape[1]
    for each in view.similarities:
        # those that were compared only because people judged them would weigh too much
        inside = (each.prefix >= chosen.first) & (each.prefix < chosen.first + chosen.prefixes)
        inside &= each.sample < view.options.similarity_samples
        value = (each.prefix[inside] - chosen.first) % values
        above = each.cosine[inside] > view.options.similarity
        hits = np.bincount(value, weights=above.astype(np.float64), minlength=values).astype(np.float64)
        yield SIMILAR, each.encoder, hits, np.bincount(value, minlength=values).astype(np.float64)


def _mentions(view: View, chosen: Chosen) -> tuple[str, str, Floats, Floats]:
    texts = view.texts_by_value(chosen)
    hits = [
        mentions_share(texts[value.text], tuple(value.sensitive_tokens.values())) * len(texts[value.text])
        for value in chosen.attribute.values
    ]
    counts = np.array([len(texts[value.text]) for value in chosen.attribute.values], dtype=np.float64)
    return MENTIONS, "whole words", np.nan_to_num(np.array(hits)), counts


def perplexity_rows(plan: Plan, view: View, records: Records) -> Iterator[Finding]:
    r"""Yield the perplexity of the held-out text and of its passages with a sensitive token of each attribute.

    .. math:: \mathrm{PPL} = \exp(-\sum \log p / \sum \mathrm{tokens})
    """
    columns = ("ask_text", "got_logprob", "got_tokens")
    table = records.table(model=plan.model.name, stage=PERPLEXITY, columns=columns)
    sums = table.select("got_logprob", "got_tokens").to_numpy().astype(np.float64)
    texts = table["ask_text"].to_list()
    parts = {WHOLE: np.ones(len(texts), dtype=np.bool_)}
    for chosen in view.attributes:
        parts[f"passages about {chosen.name}"] = np.array(
            [bool(find_values(text, chosen.whole)) for text in texts]
        )
    rng = model_rng(plan.seed, f"{view.model}\0perplexity")
    for part, inside in parts.items():
        some = sums[inside & (sums[:, 1] > 0)]
        labels: dict[str, Label] = {"model": view.model, "part": part, "tokens": int(some[:, 1].sum())}
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


def _perplexity(means: Floats) -> Floats:
    perplexity: Floats = np.exp(-means[:, 0] / means[:, 1])
    return perplexity
