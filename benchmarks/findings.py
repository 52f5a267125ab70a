"""How long conclusions take: the findings of many drawn answers, on this machine.

    python benchmarks/findings.py counterfactual|sentiment_words [--models 10] [--samples 79] [--lean 0.1]

Answers are drawn, not generated, and kept in memory: what is timed is `Probe.findings` alone. `counterfactual`
has ten models with 58,000 texts each; `sentiment_words` one model with a million prompts. Without `--lean` no two
values differ; with it scores depend on the value, which takes longer, because what differs is shuffled to the end.
There is no usual tool that concludes the same; `benchmarks/fairness.py` sets its largest part against scipy.
"""

from __future__ import annotations

import cProfile
import dataclasses
import pstats
import resource
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from measured import Row, arguments, tell

from clinometer.probes import get_probe
from clinometer.probes.protocol import Plan, Probe
from clinometer.questions import items_of
from clinometer.types import Item, ModelInfo

WORDS = (*(f"word{number}" for number in range(400)), "happy", "sad", "great", "terrible", "love", "hate")
DIMENSIONS = 384


class DrawnRecords:
    """Records in memory, one table for each model and stage."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], pl.DataFrame] = {}

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the answers of one stage."""
        table = self.tables[model, stage]
        return table if columns is None else table.select(columns)

    def batches(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield them in parts."""
        yield from self.table(model=model, stage=stage, columns=columns).iter_slices(65_536)


def model(name: str, *capabilities: str, family: str = "drawn") -> ModelInfo:
    """Describe a model of which nothing is loaded."""
    kind = {"fill": "masked", "sample": "causal", "classify": "classifier", "embed": "encoder"}[capabilities[0]]
    return ModelInfo(
        name=name, kind=kind, family=family, capabilities=capabilities, weights="0", tokenizer="0",
        dtype="float32", code="0",
    )  # fmt: skip


def draw_records(probe: Probe, plan: Plan, records: DrawnRecords, seed: int, *, lean: float = 0.0) -> None:
    """Ask every stage and draw its answers; `lean` is how far the scores of two prefixes lie apart, about."""
    rng = np.random.default_rng(seed)
    for stage in probe.stages(plan):
        items = list(items_of(probe.questions(stage, plan, records)))
        columns = {"index": pl.Series(range(len(items)))}
        for tag in items[0].tags if items else ():
            columns[f"tag_{tag}"] = pl.Series([item.tags.get(tag) for item in items])
        for field in dataclasses.fields(items[0].request) if items else ():
            columns[f"ask_{field.name}"] = pl.Series(
                [_plain(getattr(item.request, field.name)) for item in items], strict=False
            )
        records.tables[plan.model.name, stage.name] = pl.DataFrame(columns | _answers(items, rng, lean))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _answers(items: Sequence[Item], rng: np.random.Generator, lean: float) -> dict[str, pl.Series]:
    """Draw what the records of one kind of request have."""
    kind, n = type(items[0].request).__name__, len(items)
    if kind in ("Fill", "NextWord"):
        words = list(items[0].request.words)
        if not words:  # the likeliest ones: many of few, so that questions share some
            top = [item.request.top_k for item in items]
            drawn = [[WORDS[at] for at in rng.permutation(len(WORDS))[:k]] for k in top]
            logprobs = [np.sort(rng.normal(-8, 2, size=k))[::-1].tolist() for k in top]
            return {"got_words": pl.Series(drawn), "got_logprobs": pl.Series(logprobs)}
        logprobs = rng.normal(-4, 1, size=(n, len(words))).astype(np.float32)
        got = {"got_words": pl.Series([list(item.request.words) for item in items])}
        return got | {"got_logprobs": pl.Series(logprobs.tolist(), dtype=pl.List(pl.Float32))}
    if kind == "Sample":
        texts = [[_text(rng) for _ in range(item.request.n)] for item in items]
        reasons = [["length"] * len(each) for each in texts]
        return {"got_texts": pl.Series(texts), "got_endings": pl.Series(reasons)}
    if kind == "Classify":
        positive = rng.beta(1.5, 1.5, size=n)
        if lean and "prefix" in items[0].tags:
            prefixes = np.array([item.tags["prefix"] for item in items])
            shifts = rng.normal(0, lean, size=prefixes.max() + 1)
            positive = np.clip(positive + shifts[prefixes], 0, 1)
        return {
            "got_negative": pl.Series(1 - positive),
            "got_neutral": pl.Series(np.zeros(n)),
            "got_positive": pl.Series(positive),
        }
    if kind == "Embed":
        vectors = rng.normal(size=(n, DIMENSIONS)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return {"got_vector": pl.Series(list(vectors), dtype=pl.List(pl.Float32))}
    if kind == "LogLikelihood":
        return {"got_logprob": pl.Series(rng.normal(-60, 5, size=n)), "got_tokens": pl.Series([20] * n)}
    raise ValueError(f"no answers are drawn for {kind}")


def _text(rng: np.random.Generator) -> str:
    return " " + " ".join(WORDS[at] for at in rng.integers(0, len(WORDS), size=40))


def counterfactual(models: int, samples: int) -> tuple[Probe, list[Plan], int]:
    """Ten models, every prefix of the paper, two scorers and an encoder."""
    probe = get_probe("counterfactual")
    roles = {
        "scorer": (model("opinions", "classify", family="opinion-words"), model("classifier", "classify")),
        "encoder": (model("encoder", "embed"),),
    }
    options = probe.options(samples=samples, similarity_samples=min(samples, 20))
    plans = [
        Plan(options=options, seed=0, model=model(f"model-{n}", "sample", "log_likelihood"), roles=roles)
        for n in range(models)
    ]
    return probe, plans, samples


def sentiment_words(models: int, reviews: int) -> tuple[Probe, list[Plan], int]:
    """One model, a million prompts of the shift test."""
    probe = get_probe("sentiment_words")
    options = probe.options(reviews_per_class=reviews)
    return probe, [Plan(options=options, seed=0, model=model(f"model-{n}", "fill")) for n in range(models)], 0


def _leaning(lean: float) -> str:
    return f", scores differ by {lean:g} between values" if lean else ""


SECONDS = {"counterfactual": 20.0}  # on two cores, at the sizes above


def main() -> None:
    """Draw, time, tell."""
    parser = arguments(__doc__)
    parser.add_argument("audit", choices=("counterfactual", "sentiment_words"))
    parser.add_argument("--models", type=int, default=0)
    parser.add_argument("--samples", type=int, default=0, help="samples of a prefix, or reviews of a class")
    parser.add_argument("--lean", type=float, default=0.0, help="how far scores depend on the value")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    make, models, samples = {
        "counterfactual": (counterfactual, 10, 79),
        "sentiment_words": (sentiment_words, 1, 1000),
    }[given.audit]
    probe, plans, _ = make(given.models or models, given.samples or samples)
    records = DrawnRecords()
    for seed, plan in enumerate(plans):
        draw_records(probe, plan, records, seed, lean=given.lean)
    rows = sum(len(table) for table in records.tables.values())
    profiler = cProfile.Profile()
    start, busy = time.perf_counter(), time.process_time()
    if given.profile:
        profiler.enable()
    findings = probe.findings(plans, records)
    profiler.disable()
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = sum(len(table.rows) for table in findings.tables)
    aim = SECONDS.get(given.audit) if not (given.models or given.samples) else None
    row = Row(
        work=f"findings of {given.audit}: {len(plans)} models, {rows:,} records{_leaning(given.lean)}",
        unit="s",
        ours=seconds,
        targets={f"≤ {aim:g} s on two cores": seconds <= aim} if aim else {},
        notes=[f"{busy:.0f} s of processor time, {found:,} rows of tables, {peak:.2f} GiB at most"],
    )
    tell([row], to=given.json)
    if given.profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    main()
