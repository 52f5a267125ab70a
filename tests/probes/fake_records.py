"""Runs a probe purely: asks every item through a function and keeps the answers in memory."""

import dataclasses
import math

import polars as pl

from clinometer.probes.protocol import Plan
from clinometer.questions import items_of
from clinometer.types import AnswerWord, Message, ModelInfo, Rescore, WordAnswer


def fake_model(name="fake", *, capabilities=("fill",)):
    kind = "masked" if "fill" in capabilities else "causal"
    return ModelInfo(
        name=name,
        kind=kind,
        family="fake",
        capabilities=tuple(capabilities),
        weights="0",
        tokenizer="0",
        dtype="float32",
        code="0",
    )


def plan_for(probe, *, model=None, seed=0, **options):
    return Plan(options=probe.options(**options), seed=seed, model=model or fake_model())


class MemoryRecords:
    """The `Records` of tests: one table for each model and stage."""

    def __init__(self):
        self.tables = {}

    def table(self, *, model, stage, columns=None):
        table = self.tables[model, stage]
        return table if columns is None else table.select(columns)

    def batches(self, *, model, stage, columns=None):
        yield from self.table(model=model, stage=stage, columns=columns).iter_slices(100)


def columns(prefix, value):
    """Return the fields of a request or an answer as a row of records has them.

    As `dataclasses.asdict`, without its deep copy of every word, which took most of the time of these tests.
    """
    return {f"{prefix}_{field.name}": _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _plain(value):
    if isinstance(value, tuple):
        return [_plain(each) for each in value] if value and isinstance(value[0], tuple | Message) else list(value)
    return dataclasses.asdict(value) if isinstance(value, Message) else value


def ask(probe, plan, answer, records=None, *, unknown=(), listed=None):
    """Ask every stage; `answer` takes an item and returns its answer.

    Questions about given words need no `answer`: every word is one token but the `unknown` ones, and has the
    log-probability that `listed(item)` says, which is a function of the word.
    """
    records = records or MemoryRecords()

    def answered(item):
        words = getattr(item.request, "words", ())
        if not words or isinstance(item.request, Rescore | AnswerWord):
            return answer(item)
        known = listed(item) if listed else lambda word: -9.0
        logprobs = tuple(math.nan if word in unknown else known(word) for word in words)
        return WordAnswer(words=words, logprobs=logprobs)

    for stage in probe.stages(plan):
        rows = []
        for index, item in enumerate(items_of(probe.questions(stage, plan, records))):
            rows.append(
                {"index": index}
                | {f"tag_{key}": value for key, value in item.tags.items()}
                | columns("ask", item.request)
                | columns("got", answered(item))
            )
        records.tables[plan.model.name, stage.name] = pl.DataFrame(rows, infer_schema_length=None)
    return records
