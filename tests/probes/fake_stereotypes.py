"""Fake models that finish "Why are … so [MASK]?" as the test plants it, and the small files that they need."""

import dataclasses
import hashlib
import math
import re

import numpy as np
import polars as pl
from fake_records import MemoryRecords, columns

from clinometer.data import EMOTIONS
from clinometer.models.fake import FakeModel
from clinometer.models.protocols import METHODS
from clinometer.probes.protocol import Plan
from clinometer.probes.stereotypes import PROBE
from clinometer.types import WordAnswer


class FakeAttributes:
    """A word's weight is its base weight, times what is planted for the group that the text names.

    `noise(text)` multiplies the weights as well: an array over the words, the same for the same text. Words in
    `pieces` are offered but are not a token after a space: asked for, they have no probability.
    """

    def __init__(self, base, *, links=None, noise=None, pieces=()):
        self.words, self.base = list(base), np.array(list(base.values()), dtype=float)
        self.links, self.noise, self.pieces = links or {}, noise, set(pieces)

    def __call__(self, request):
        weights = self.base.copy()
        for group, planted in self.links.items():
            if re.search(rf"\b{group}\b", request.text) and "[HIDDEN" not in request.text:
                for word, factor in planted.items():
                    weights[self.words.index(word)] *= factor
        if self.noise is not None and "[HIDDEN" not in request.text:
            weights *= self.noise(request.text)
        logprobs = np.log(weights / weights.sum())
        if request.words:
            known = dict(zip(self.words, logprobs.tolist(), strict=True))
            return WordAnswer(
                words=request.words,
                logprobs=tuple(math.nan if word in self.pieces else known[word] for word in request.words),
            )
        order = np.argsort(-logprobs, kind="stable")[: request.top_k]
        return WordAnswer(words=tuple(self.words[i] for i in order), logprobs=tuple(logprobs[order].tolist()))


def random_weights(size, *, seed, spread=1.0, by=lambda text: text):
    """Return noise for `FakeAttributes`: log-normal, and independent for each value of `by(text)`."""

    def noise(text):
        digest = hashlib.sha256(f"{seed}|{by(text)}".encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        return np.exp(spread * rng.standard_normal(size))

    return noise


def fake(answer, name="fake", *, tuning=None, causal=False, chat=()):
    ways = {"kind": "causal", "capabilities": ("next_word",)} if causal else {}
    ways = {"kind": "chat", "capabilities": chat} if chat else ways
    model = FakeModel(answer=answer, name=name, **ways)
    model.info = dataclasses.replace(model.info, tuning=tuning or {})
    return model


def conclude(*models, seed=0, **options):
    """Ask every stage of every model and return plans, records and findings."""
    records = MemoryRecords()
    plans = [Plan(options=PROBE.options(**options), seed=seed, model=model.info) for model in models]
    for plan, model in zip(plans, models, strict=True):
        for stage in PROBE.stages(plan):
            rows = []
            for index, item in enumerate(PROBE.questions(stage, plan, records)):
                (answer,) = getattr(model, METHODS[type(item.request)])([item.request])
                rows.append(
                    {"index": index}
                    | {f"tag_{key}": value for key, value in item.tags.items()}
                    | columns("ask", item.request)
                    | {
                        f"got_{key}": list(getattr(answer, key))
                        for key in ("words", "logprobs", "texts")
                        if hasattr(answer, key)
                    }
                )
            records.tables[model.info.name, stage.name] = pl.DataFrame(rows, infer_schema_length=None)
    return PROBE.findings(plans, records), records


def groups_file(folder, groups):
    """Write groups (name -> category) as a file."""
    path = folder / "groups.csv"
    path.write_text("group,category\n" + "".join(f"{name},{category}\n" for name, category in groups.items()))
    return str(path)


def lexicon_file(folder, words):
    """Write a full emotion lexicon: word -> its emotions."""
    path = folder / "emotions.txt"
    lines = [f"{word}\t{each}\t{int(each in labels)}\n" for word, labels in words.items() for each in EMOTIONS]
    path.write_text("".join(lines))
    return str(path)


def human_file(folder, rows):
    """Write human stereotypes (prompt, category, group, attribute) in the published format."""
    path = folder / "human.csv"
    header = "input\ttarget_category\ttarget_group\tcompletion\tsearch_engine\n"
    path.write_text(header + "".join('"{}\n"\t{}\t{}\t{}\tgoogle\n'.format(*row) for row in rows))
    return str(path)


def row_of(findings, table, **labels):
    """Return the one row of a table that has these labels."""
    (rows,) = [each.rows for each in findings.tables if each.name == table]
    (row,) = [row for row in rows if all(row.labels[name] == value for name, value in labels.items())]
    return row


def rows_of(findings, table):
    return next((each.rows for each in findings.tables if each.name == table), ())


def notice_with(findings, words):
    (notice,) = [notice for notice in findings.notices if words in notice.text]
    return notice
