"""Texts per second of the opinion-word scorer on one core.

python benchmarks/opinion_words.py
"""

from __future__ import annotations

import random
import time

from clinometer.models.load import load_model
from clinometer.types import Classify

TEXTS = 100_000
SENTENCE = "the film was a great and terrible story of good people who went home to sing in bad weather"


def main() -> None:
    """Classify short texts and print the rate."""
    rng = random.Random(0)
    words = SENTENCE.split()
    batch = [Classify(text=" ".join(rng.choices(words, k=20))) for _ in range(TEXTS)]
    model = load_model("builtin:opinion-words")
    start = time.perf_counter()
    model.classify(batch)
    seconds = time.perf_counter() - start
    print(f"{TEXTS / seconds:,.0f} texts of 20 words per second, one core")


if __name__ == "__main__":
    main()
