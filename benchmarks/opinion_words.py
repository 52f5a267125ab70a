"""Texts per second of the opinion-word scorer on one core, and of VADER, whose word list it reads.

python benchmarks/opinion_words.py
"""

from __future__ import annotations

import random

from measured import Row, arguments, median_seconds, tell
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from clinometer.models.load import load_model
from clinometer.types import Classify

TEXTS, OTHERS = 100_000, 5_000
SENTENCE = "the film was a great and terrible story of good people who went home to sing in bad weather"


def main() -> None:
    """Classify short texts, and tell."""
    options = arguments(__doc__).parse_args()
    rng = random.Random(0)
    words = SENTENCE.split()
    texts = [" ".join(rng.choices(words, k=20)) for _ in range(TEXTS)]
    batch = [Classify(text=text) for text in texts]
    model, vader = load_model("builtin:opinion-words"), SentimentIntensityAnalyzer()
    seconds = median_seconds(
        {
            "ours": lambda: model.classify(batch),
            "VADER, one by one": lambda: [vader.polarity_scores(text) for text in texts[:OTHERS]],
        }
    )
    row = Row(
        work="opinion words of texts of 20 words, one core",
        unit="texts/s",
        ours=TEXTS / seconds.pop("ours"),
        others={name: OTHERS / taken for name, taken in seconds.items()},
        notes=["VADER also weighs negation, emphasis and punctuation; ours counts words"],
    )
    tell([row], to=options.json)


if __name__ == "__main__":
    main()
