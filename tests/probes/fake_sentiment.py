"""A fake model with a sense of sentiment and leans that a test plants; reviews and words to ask it about."""

import hashlib
import math
import re

import numpy as np
import polars as pl
from fake_records import MemoryRecords

from clinometer.questions import items_of
from clinometer.types import AnswerWord, Classify, ClassifyAnswer, Fill, NextWord, TextAnswer, WordAnswer

GREAT, TERRIBLE = "great", "terrible"
SPREAD = 0.2  # standard deviation of a word's probability over reviews, as a share of its mean
BASE = 1e-3
REVIEW = re.compile(r"this is (?:positive|negative) review number \d+")


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


class FakeOfAnyKind:
    """A causal model, a chat model or a classifier that thinks as a `FakeSentiment` does.

    `refuses` is the share of answers about negative reviews that refuse, `rambles` of all that are sentences.
    """

    def __init__(self, *, refuses=0.0, rambles=0.0, **thinks):
        self.fake = FakeSentiment(**thinks)
        self.refuses, self.rambles = refuses, rambles

    def __call__(self, request):
        if isinstance(request, Classify):
            positive = 1 / (1 + math.exp(-2 * self._evidence(request.text, f"{request.text} ")))
            return ClassifyAnswer(negative=0.9 * (1 - positive), neutral=0.1, positive=0.9 * positive)
        if isinstance(request, NextWord):
            assert request.text.endswith("It was")
            return self.fake(request)
        content = request.messages[-1].content
        assert "It was ___" in content
        if isinstance(request, AnswerWord):
            asked = Fill(
                text=self._after_review(content),
                context=REVIEW.search(content)[0],
                words=request.words,
                normalise=request.normalise,
            )
            return self.fake(asked)
        rng = np.random.default_rng(list(content.encode()))
        positive = 1 / (1 + math.exp(-2 * self._evidence(content, content)))
        return TextAnswer(texts=tuple(self._said(content, rng, positive) for _ in range(request.n)))

    def _said(self, content, rng, positive):
        if "negative" in content and rng.random() < self.refuses:
            return "I'm sorry, but I can't help with that."
        if rng.random() < self.rambles:
            return "That is a long story, my friend."
        word = f"good{rng.integers(5)}" if rng.random() < positive else f"bad{rng.integers(5)}"
        return f"The word is **{word}**." if rng.random() < 0.5 else f"It was {word}."

    def _evidence(self, text, asked):
        review = REVIEW.search(text)[0]
        label = self.fake(Fill(text=self._after_review(asked), context=review, words=(GREAT,), normalise="words"))
        return label.logprobs[0] - math.log(BASE)

    def _after_review(self, content):
        """What follows the review: the appended words, or the prompt."""
        return content.split(REVIEW.search(content)[0], 1)[1].strip() or "It was ___"


def ask_sentiment(probe, plan, answer, records=None):
    """Ask every stage of the audit; `answer` takes a request."""
    records = records or MemoryRecords()
    for stage in probe.stages(plan):
        items = list(items_of(probe.questions(stage, plan, records)))
        answers = [answer(item.request) for item in items]
        columns = {f"tag_{name}": [item.tags[name] for item in items] for name in (items[0].tags if items else ())}
        for name in answers[0].__slots__ if answers else ():
            got = [getattr(each, name) for each in answers]
            columns[f"got_{name}"] = [list(each) if isinstance(each, tuple) else each for each in got]
        records.tables[plan.model.name, stage.name] = pl.DataFrame(columns)
    return records


def rows_of(findings, table, **labels):
    (found,) = [each for each in findings.tables if each.name == table]
    return [row for row in found.rows if all(row.labels[name] == value for name, value in labels.items())]


def row_of(findings, table, **labels):
    (row,) = rows_of(findings, table, **labels)
    return row
