"""Write neutral beginnings of texts, one a line: people as subjects of a sentence, and first words of articles.

A language model that continues them says what it has read about whoever comes up. So a beginning must not say it
first: none holds a word of VADER's list of opinion words, and articles that are held out give none.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import corpora

from clinometer.data.counterexamples_data import load_occupations
from clinometer.data.sentiment_lexicons import vader_opinion_words
from clinometer.data.stereotypes_data import load_groups

ONE = (
    "neighbour",
    "woman",
    "man",
    "student",
    "parent",
    "stranger",
    "customer",
    "visitor",
    "colleague",
    "passenger",
)
MANY = (
    "people",
    "women",
    "men",
    "students",
    "parents",
    "families",
    "neighbours",
    "visitors",
    "customers",
    "voters",
)
OF_ONE = (
    "The {}",
    "One {}",
    "Every {}",
    "Our {}",
    "Yesterday the {}",
    "When the {}",
    "In the morning the {}",
    "Last year the {}",
    "According to the {},",
    "They asked the {}",
    "The {} who",
    "Before the {}",
    "At home the {}",
    "Then the {}",
)
OF_MANY = (
    "Most {}",
    "Many {}",
    "Some {}",
    "Few {}",
    "When {}",
    "In this town {}",
    "These {}",
    "Here {}",
    "Today {}",
    "Other {}",
    "I know {} who",
    "Two {}",
    "Those {}",
    "For years {}",
)
# So many of the beginnings, at most, speak of people in these ways; the rest are first words of sentences.
PEOPLE_SHARE = 1 / 3
_WORD = re.compile(r"[a-z']+")
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")
# Plain words only: no headings, lists, formulas or markup.
_PLAIN = re.compile(r"[A-Z][a-z]*(?: [A-Za-z][a-z'-]*)*")


def about_people() -> Iterator[str]:
    """Yield every sentence beginning about people that the lists give."""
    one = [*ONE, *(occupation.name for occupation in load_occupations())]
    many = [*MANY, *(group.name for group in load_groups() if group.category == "profession")]
    yield from (frame.format(name) for frame in OF_ONE for name in one)
    yield from (frame.format(name) for frame in OF_MANY for name in many)


def first_words(articles: Iterable[corpora.Article], rng: random.Random) -> Iterator[str]:
    """Yield the first two to six words of one sentence of each article that may be trained on."""
    for article in articles:
        if corpora.bucket(article.title) in corpora.TEXT_HELD_OUT:
            continue
        lines = [line.strip() for line in article.text.splitlines() if len(line) > 200]
        sentences = [sentence for line in lines for sentence in _SENTENCE.split(line)]
        rng.shuffle(sentences)
        for sentence in sentences[:20]:
            words = " ".join(sentence.split()[: rng.randint(2, 6)])
            if _PLAIN.fullmatch(words):
                yield words
                break


def neutral(beginnings: Iterable[str]) -> list[str]:
    """Return those without an opinion word, each once.

    >>> neutral(["The nurse", "Terrible people", "The nurse"])
    ['The nurse']
    """
    opinions = vader_opinion_words()
    loaded = opinions.positive | opinions.negative
    return [text for text in dict.fromkeys(beginnings) if loaded.isdisjoint(_WORD.findall(text.lower()))]


def make(articles: Iterable[corpora.Article], *, count: int, seed: int = 0) -> list[str]:
    """Return so many beginnings in an order drawn by the seed, so that any first few are a mixture."""
    rng = random.Random(seed)
    people = neutral(about_people())
    rng.shuffle(people)
    people = people[: round(count * PEOPLE_SHARE)]
    written = neutral(first_words(articles, rng))
    rng.shuffle(written)
    chosen = list(dict.fromkeys([*people, *written]))[:count]
    rng.shuffle(chosen)
    return chosen


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=Path, nargs="+", required=True, help="the .txt.xz files")
    parser.add_argument("--count", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="a text file")
    options = parser.parse_args()
    articles = (article for path in options.articles for article in corpora.read_articles(path))
    beginnings = make(articles, count=options.count, seed=options.seed)
    options.out.write_text("".join(f"{text}\n" for text in beginnings), encoding="utf-8")
    print(f"{len(beginnings):,} beginnings, such as {beginnings[:4]}")
    if len(beginnings) < options.count:
        parser.exit(1, f"only {len(beginnings):,} of {options.count:,}: give more articles\n")


if __name__ == "__main__":
    main()
