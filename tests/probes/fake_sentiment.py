"""A fake model with a sense of sentiment and leans that a test plants; reviews and words to ask it about."""

import hashlib
import math

import numpy as np
import polars as pl
from fake_records import MemoryRecords

from clinometer.types import WordAnswer

GREAT, TERRIBLE = "great", "terrible"
SPREAD = 0.2  # standard deviation of a word's probability over reviews, as a share of its mean
BASE = 1e-3


def write_reviews(path, *, per_class):
    rows = [
        f"{label},this is {label} review number {i}"
        for i in range(per_class)
        for label in ("positive", "negative")
    ]
    path.write_text("label,text\n" + "\n".join(rows) + "\n")
    return str(path)


def write_words(path, *, positive=10, negative=10, neutral=60):
    words = [f"good{i},positive" for i in range(positive)]
    words += [f"bad{i},negative" for i in range(negative)]
    words += [f"plain{i},neutral" for i in range(neutral)]
    path.write_text("word,label\n" + "\n".join(words) + "\n")
    return str(path)


class FakeSentiment:
    """Answers every `Fill` of the audit.

    `lean[word]` is the effect in the association test: a positive review raises the word's probability by so many
    standard deviations. `push[word]` is what appending the word adds to the evidence for "great"; that evidence is
    +`sense` or −`sense` for a review, plus noise of deviation 1, plus `jitter` anew for each appended word.
    Positive words lean by `sense`, negative ones by −`sense`.
    """

    def __init__(self, *, lean=None, push=None, sense=1.0, jitter=0.5, seed=0, unknown=(), broken=()):
        self.lean, self.push = lean or {}, push or {}
        self.sense, self.jitter, self.seed = sense, jitter, seed
        self.unknown, self.broken = set(unknown), set(broken)
        self._drawn = {}

    def __call__(self, request):
        if not request.context:  # the vocabulary
            return self._answer(request.words, [0.0] * len(request.words))
        if request.context in self.broken:
            return WordAnswer(words=request.words, logprobs=(math.nan,) * len(request.words))
        side = 1 if "positive" in request.context else -1
        evidence = side * self.sense + self._noise(request.context)[0]
        if request.normalise == "words":  # the shift test: the first word is the appended one
            word = request.text.split(" ", 1)[0]
            evidence += self.push.get(word, 0.0) + self.jitter * self._noise(request.context, request.text)[0]
            return self._answer(request.words, [self._label(word, evidence) for word in request.words])
        noise = self._noise(request.context, "words", size=len(request.words))
        probabilities = [
            BASE * (1 + SPREAD * (each + self._lean(word) * (side > 0)))
            for word, each in zip(request.words, noise, strict=True)
        ]
        logprobs = [
            self._label(word, evidence) if word in (GREAT, TERRIBLE) else math.log(max(each, 1e-9))
            for word, each in zip(request.words, probabilities, strict=True)
        ]
        return self._answer(request.words, logprobs)

    def _label(self, word, evidence):
        return math.log(BASE) + {GREAT: evidence, TERRIBLE: -evidence}.get(word, 0.0)

    def _answer(self, words, logprobs):
        known = [math.nan if word in self.unknown else value for word, value in zip(words, logprobs, strict=True)]
        return WordAnswer(words=words, logprobs=tuple(known))

    def _lean(self, word):
        side = 1 if word.startswith("good") else -1 if word.startswith("bad") else 0
        return self.lean.get(word, side * self.sense)

    def _noise(self, *texts, size=1):
        if (texts, size) not in self._drawn:
            digest = hashlib.blake2b(f"{self.seed}|{'|'.join(texts)}".encode(), digest_size=8).digest()
            draw = np.random.default_rng(int.from_bytes(digest, "big")).standard_normal(size)
            if len(texts) > 1:
                return draw
            self._drawn[texts, size] = draw  # a review is asked about many times
        return self._drawn[texts, size]


def ask_sentiment(probe, plan, answer, records=None):
    """Ask every stage of the audit; `answer` takes a request."""
    records = records or MemoryRecords()
    for stage in probe.stages(plan):
        items = list(probe.questions(stage, plan, records))
        answers = [answer(item.request) for item in items]
        columns = {f"tag_{name}": [item.tags[name] for item in items] for name in (items[0].tags if items else ())}
        columns["got_words"] = [list(each.words) for each in answers]
        columns["got_logprobs"] = [list(each.logprobs) for each in answers]
        records.tables[plan.model.name, stage.name] = pl.DataFrame(columns)
    return records


def rows_of(findings, table, **labels):
    (found,) = [each for each in findings.tables if each.name == table]
    return [row for row in found.rows if all(row.labels[name] == value for name, value in labels.items())]


def row_of(findings, table, **labels):
    (row,) = rows_of(findings, table, **labels)
    return row
