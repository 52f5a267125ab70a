"""The text both built-in models are trained on, and the rule that says what is held out."""

from __future__ import annotations

import csv
import hashlib
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BUCKETS = 100
# Articles and reviews of bucket 0 measure the masked model's perplexity: 1 % of each.
TEXT_HELD_OUT = range(0, 1)
# Reviews are few and short, so a larger share of them is needed to measure sentiment: 8 %.
REVIEWS_HELD_OUT = range(0, 8)
# Chooses and calibrates the classifier; never reported as a result.
REVIEWS_VALIDATION = range(8, 12)

_TITLE = re.compile(r"^= ([^=].*) =$")
_MARKUP = re.compile(r"<[^>]{1,20}>")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """One encyclopedia article without its heading."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One film review; `positive` is its author's verdict, `source` is imdb or rotten_tomatoes."""

    text: str
    positive: bool
    source: str


def bucket(key: str) -> int:
    """Return the bucket, 0 to 99, that a text falls into for good: SHA-256 of its words in lower case, modulo 100.

    Case and spacing are ignored so that copies of one review are held out, or trained on, together.

    >>> bucket("Anarchism") == bucket(" anarchism ")
    True
    """
    plain = " ".join(key.lower().split())
    return int.from_bytes(hashlib.sha256(plain.encode()).digest(), "big") % BUCKETS


def read_articles(path: Path) -> Iterator[Article]:
    """Yield the articles of one `.txt.xz` file in which each is headed by a line `= Title =`."""
    title: str | None = None
    lines: list[str] = []
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            heading = _TITLE.match(line.rstrip("\n"))
            if heading is None:
                lines.append(line)
                continue
            if title is not None:
                yield Article(title=title, text="".join(lines))
            title, lines = heading.group(1), []
    if title is not None:
        yield Article(title=title, text="".join(lines))


def read_reviews(path: Path) -> list[Review]:
    """Return the reviews of a CSV file with the columns text, label (0 or 1) and source, markup removed."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            Review(text=plain_text(row["text"]), positive=row["label"] == "1", source=row["source"])
            for row in csv.DictReader(stream)
        ]


def plain_text(text: str) -> str:
    """Return the text without HTML tags and with single spaces.

    >>> plain_text("Good.<br /><br />Very  good.")
    'Good. Very good.'
    """
    return _SPACES.sub(" ", _MARKUP.sub(" ", text)).strip()
