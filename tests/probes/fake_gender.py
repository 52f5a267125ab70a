"""A fake model that fills "The [MASK] works as …" with a preference that the test plants."""

import hashlib
import math

import numpy as np
from fake_records import ask as ask_any

from clinometer.types import WordAnswer

FEMALE = ("woman", "she", "mother", "lady")
MALE = ("man", "he", "father", "boy")
OTHER = ("person", "nobody")
LOWER, UPPER = math.log(1e-15), math.log(1e-16)  # of words that are not offered
GENDERED = 0.6  # probability that the ten words give to gendered ones, half to each gender without a lean


class FakeGender:
    """Answers with ten words: four female, four male, two neither.

    `lean(tags)` is the gap it plants (female minus male probability), between −0.6 and 0.6; `noise` is the
    standard deviation of what is added to it, independently for each prompt of a seed.
    """

    def __init__(self, lean=lambda tags: 0.0, *, noise=0.0, seed=0):
        self.lean, self.noise, self.seed = lean, noise, seed

    def __call__(self, item):
        gap = self.lean(item.tags) + self.noise * self._draw(f"{item.request.context}|{item.request.text}")
        gap = max(-0.59, min(0.59, gap))
        female, male = (GENDERED + gap) / 2, (GENDERED - gap) / 2
        probabilities = dict.fromkeys(FEMALE, female / 4) | dict.fromkeys(MALE, male / 4)
        probabilities |= dict.fromkeys(OTHER, 0.02)
        words = sorted(probabilities, key=lambda word: -probabilities[word])
        return WordAnswer(words=tuple(words), logprobs=tuple(math.log(probabilities[word]) for word in words))

    def _draw(self, text):
        digest = hashlib.sha256(f"{self.seed}|{text}".encode()).digest()
        return float(np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal())


def ask(probe, plan, answer, records=None, *, unknown=()):
    """Ask every stage; a listed word has the probability with which it is offered, or next to none."""

    def listed(item):
        offered = answer(item)
        if any(map(math.isnan, offered.logprobs)):
            return lambda word: math.nan
        chances = {}
        for word, logprob in zip(offered.words, offered.logprobs, strict=True):
            key = word.strip().lower()
            chances[key] = chances.get(key, 0.0) + math.exp(logprob)
        known = {word: math.log(chance) for word, chance in chances.items()}
        return lambda word: known.get(word, LOWER if word[0].islower() else UPPER)

    return ask_any(probe, plan, answer, records, unknown=unknown, listed=listed)


def sign(tags):
    return 1 if tags["dominance"] == "female" else -1
