"""What one row of a mitigation reads: a sentence, or a window of consecutive sentences of a document.

The paper reads sequences of 512 tokens, with every sensitive token in them (§4, appendix B); a sentence is the
smaller unit, with its first sensitive token. Either may also be ordinary text, which mentions no value.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from clinometer.data import Mention, SensitiveSentence, load_statements, mention_finder, split_sentences
from clinometer.data.corpora import Document
from clinometer.models.local.text import Tokens
from clinometer.train.material import Material
from clinometer.train.randomness import rng_at

_DOCUMENTS_AT_A_TIME = 64  # whose sentences are tokenised together


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A text to read, the values in it that are exchanged, and which of their tokens are compared."""

    text: str
    values: tuple[str, ...] = ()  # in the order of their first mention; none: ordinary text
    only: int | None = None  # where the one token begins that is compared; None: every token of the values
    asked: tuple[tuple[int, int], ...] = ()  # the words that a masked model is asked for; none: words at random


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What a training chooses its rows from, and what was left out."""

    kept: tuple[Unit, ...]
    with_template: int = 0  # sentences that hold a template of the evaluation
    repeated: int = 0  # copies of an earlier one


def sentence_units(sentences: Iterable[SensitiveSentence]) -> tuple[Unit, ...]:
    """Return sentences as units: the value mentioned first is exchanged, and compared where it is mentioned."""
    return tuple(Unit(text=each.text, values=(each.value,), only=each.start) for each in sentences)


def statement_units() -> tuple[Unit, ...]:
    """Return the counterexamples as units: a masked model is asked for their gendered words."""
    return tuple(Unit(text=each.text, asked=each.gendered) for each in load_statements())


def sensitive_windows(material: Material, tokens: Tokens, *, size: int) -> Units:
    """Return the windows of the training documents that mention a value, in the order of the corpus."""
    mentions = mention_finder(material.attribute)
    documents = [each for each in material.split.training.documents if next(mentions(each.text), None)]
    counts: collections.Counter[str] = collections.Counter()
    kept: dict[str, Unit] = {}
    for text in _windows(documents, tokens, material.template_finder(), size=size, counts=counts):
        if values := _values(mentions(text)):
            counts["repeated"] += text in kept
            kept[text] = Unit(text=text, values=values)
    return Units(kept=tuple(kept.values()), with_template=counts["with_template"], repeated=counts["repeated"])


def ordinary_windows(
    material: Material, tokens: Tokens, *, size: int, at_most: int, seed: int
) -> tuple[Unit, ...]:
    """Return windows that mention no value, of documents in random order, until there are enough."""
    mentions = mention_finder(material.attribute)
    documents = material.split.training.documents
    order = (documents[index] for index in rng_at(seed, "windows").permutation(len(documents)))
    counts: collections.Counter[str] = collections.Counter()
    texts = _windows(order, tokens, material.template_finder(), size=size, counts=counts)
    kept: dict[str, None] = {}
    for text in texts:
        if next(mentions(text), None) is None:
            kept[text] = None
        if len(kept) >= at_most:
            break
    return tuple(Unit(text=text) for text in kept)


def ordinary_sentences(material: Material, *, at_most: int, seed: int) -> tuple[Unit, ...]:
    """Return random sentences that mention no value."""
    return tuple(Unit(text=text) for text in material.any_sentences(at_most=at_most, seed=seed, ordinary=True))


def _values(mentions: Iterable[Mention]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mention.value for mention in mentions))


def _windows(
    documents: Iterable[Document],
    tokens: Tokens,
    template_in: Callable[[str], str | None],
    *,
    size: int,
    counts: collections.Counter[str],
) -> Iterator[str]:
    """Yield the sentences of each document, packed into texts of about `size` tokens, never two documents in one.

    A sentence with a template of the evaluation is left out and ends a window. A window that holds one across the
    border of two sentences is left out as a whole.
    """
    remaining = iter(documents)
    while some := list(itertools.islice(remaining, _DOCUMENTS_AT_A_TIME)):
        sentences = [list(_sentences(document.text)) for document in some]
        lengths = iter(map(len, tokens.first([text for of_one in sentences for text, _ in of_one])))
        for of_one in sentences:
            runs: list[list[tuple[str, str, int]]] = [[]]
            for text, joint in of_one:
                length = next(lengths)
                if template_in(text) is not None:
                    counts["with_template"] += 1
                    runs.append([])
                else:
                    runs[-1].append((text, joint, length))
            for window in itertools.chain.from_iterable(_packed(run, size=size) for run in runs):
                if template_in(window) is None:
                    yield window
                else:
                    counts["with_template"] += 1


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a document, each with what joins it to the one before."""
    for line in text.splitlines():
        for number, sentence in enumerate(split_sentences(line)):
            yield sentence, " " if number else "\n"


def _packed(run: Sequence[tuple[str, str, int]], *, size: int) -> Iterator[str]:
    """Yield sentences joined as long as their tokens fit; one that is too long is alone, and cut later.

    >>> list(_packed([("A b.", " ", 3), ("C.", " ", 2), ("D e f.", chr(10), 4)], size=6))
    ['A b. C.', 'D e f.']
    """
    window, length = "", 0
    for text, joint, tokens in run:
        if window and length + tokens > size:
            yield window
            window, length = "", 0
        window = f"{window}{joint}{text}" if window else text
        length += tokens + (joint == "\n")  # a line break may be a token of its own
    if window:
        yield window
