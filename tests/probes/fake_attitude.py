"""Fake models of the stigma audit, each with a lean that the test plants."""

import hashlib
import math

import numpy as np

from clinometer.types import ClassifyAnswer, TextAnswer, WordAnswer

RATINGS = "word,rating\nlikely,positive\nunlikely,negative\nusual,neutral\nblue,irrelevant\n"
COVERED = 0.8  # probability of the three rated words; "blue" has .1, "zyx", which nobody rated, .05


def noise_of(seed, *parts):
    """A standard normal number that depends on its coordinates alone."""
    digest = hashlib.sha256("|".join(map(str, (seed, *parts))).encode()).digest()
    return float(np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal())


class FakeAttitude:
    """A masked model: `lean(tags)` is the negative share of its rated words.

    `noise` is the standard deviation of what each prompt adds, `spread` that of what each condition adds.
    """

    def __init__(self, lean=lambda tags: 0.4, *, noise=0.0, spread=0.0, seed=0):
        self.lean, self.noise, self.spread, self.seed = lean, noise, spread, seed

    def __call__(self, item):
        tags = item.tags
        negative = self.lean(tags)
        if self.noise:
            negative += self.noise * noise_of(self.seed, item.request.text)
        if self.spread:
            negative += self.spread * noise_of(self.seed, tags["condition"])
        negative = min(0.9, max(0.01, negative))
        probabilities = {
            "unlikely": COVERED * negative,
            " Likely": COVERED * (0.95 - negative),
            "usual": COVERED * 0.05,
            "blue": 0.1,
            "zyx": 0.05,
        }
        words = sorted(probabilities, key=lambda word: -probabilities[word])
        return WordAnswer(words=tuple(words), logprobs=tuple(math.log(probabilities[word]) for word in words))


class FakeCausal:
    """A causal model that rescores sentences as a `FakeAttitude` would fill them; candidates hold `covered`."""

    def __init__(self, lean, *, covered=0.3, **noise):
        self.covered, self.fake = covered, FakeAttitude(lean, **noise)

    def __call__(self, item):
        filled = self.fake(item)
        known = {
            word.strip().lower(): math.exp(each) for word, each in zip(filled.words, filled.logprobs, strict=True)
        }
        total = sum(known[word] for word in item.request.words if word in known)
        logprobs = [math.log(known[word] / total) if word in known else math.nan for word in item.request.words]
        return WordAnswer(words=item.request.words, logprobs=tuple(logprobs), covered=self.covered)


class FakeClassifier:
    """A classifier: `negative(tags)` is the probability of that class; `neutral` NaN makes it binary.

    It takes statements of a plain sense as they are meant, unless `senses` is a function of their tags, too.
    """

    def __init__(self, negative, *, neutral=0.2, senses=None):
        self.negative, self.neutral = negative, neutral
        self.senses = senses or (lambda tags: 0.7 if tags["sense"] == "negative" else 0.1)

    def __call__(self, item):
        negative = (self.senses if item.tags["group"] == "check" else self.negative)(item.tags)
        rest = 1 - negative - (0 if math.isnan(self.neutral) else self.neutral)
        return ClassifyAnswer(negative=negative, neutral=self.neutral, positive=rest)


class FakeChat:
    """A chat model: `answer(tags, i)` is the i-th answer to a question."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, item):
        return TextAnswer(texts=tuple(self.answer(item.tags, i) for i in range(item.request.n)))


def rows_of(findings, table, **labels):
    (found,) = [each for each in findings.tables if each.name == table]
    return [row for row in found.rows if all(row.labels[name] == value for name, value in labels.items())]


def row_of(findings, table, **labels):
    (row,) = rows_of(findings, table, **labels)
    return row
