"""Requests, items and answers that travel as columns: what many rows share is there once.

A column is its distinct values and, for each row, which of them it has. Millions of prompts share a few hundred
texts and a few thousand contexts; what is done once for each value (encoding, hashing, writing) need not be done
for each row. Whoever wants a request reads one: columns are sequences that make it then.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, cast, overload

import numpy as np
import numpy.typing as npt

from clinometer.types import Block, Item, Questions, Request, Tag, WordAnswer

Codes = npt.NDArray[np.int32]
Rows = slice | npt.NDArray[np.integer[Any]] | Sequence[int]
ABSENT: Final = object()  # in place of a tag that an item does not have


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column: values, of which none need be used, and for each row the place of its own."""

    values: tuple[Any, ...]
    codes: Codes

    @classmethod
    def of(cls, values: Sequence[Any]) -> Coded:
        """Make a column; an object that many rows share becomes one value."""
        identities = list(map(id, values))
        distinct = dict(zip(identities, values, strict=True))
        if len(distinct) == len(identities):
            return cls(tuple(values), np.arange(len(identities), dtype=np.int32))
        places = dict(zip(distinct, range(len(distinct)), strict=True))
        codes = np.fromiter(map(places.__getitem__, identities), np.int32, len(identities))
        return cls(tuple(distinct.values()), codes)

    @classmethod
    def same(cls, value: Any, rows: int) -> Coded:
        """Make a column of one value."""
        return cls((value,), np.zeros(rows, np.int32))

    def take(self, rows: Rows) -> Coded:
        """Return some rows; the values stay, so that what is known of them can be found again."""
        return Coded(self.values, self.codes[rows])

    def each(self) -> list[Any]:
        """Return the value of every row."""
        if len(self.values) == 1:
            return [self.values[0]] * len(self.codes)
        return [self.values[code] for code in self.codes.tolist()]

    def used(self) -> Coded:
        """Return the column without the values that no row has."""
        has = np.zeros(len(self.values), np.bool_)
        has[self.codes] = True
        places = (np.cumsum(has) - 1).astype(np.int32)
        return Coded(tuple(self.values[at] for at in np.flatnonzero(has).tolist()), places[self.codes])


class Requests(Sequence[Request]):
    """Requests of one kind as columns, one for each field."""

    __slots__ = ("columns", "kind")

    def __init__(self, kind: type, columns: Mapping[str, Coded]) -> None:
        self.kind = kind
        self.columns = columns

    @classmethod
    def of(cls, requests: Sequence[Any]) -> Requests:
        """Return requests of one kind as columns; those that are columns already stay as they are.

        >>> from clinometer.types import Classify
        >>> Requests.of([Classify(text="a"), Classify(text="b")])[1]
        Classify(text='b')
        """
        if isinstance(requests, Requests):
            return requests
        kind: type = type(requests[0])
        columns = {name: Coded.of(list(map(attrgetter(name), requests))) for name in names_of(kind)}
        return cls(kind, columns)

    def take(self, rows: Rows) -> Requests:
        """Return some of the requests."""
        return Requests(self.kind, {name: column.take(rows) for name, column in self.columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).codes)

    @overload
    def __getitem__(self, at: int) -> Request: ...
    @overload
    def __getitem__(self, at: slice) -> Requests: ...
    def __getitem__(self, at: int | slice) -> Request | Requests:
        if isinstance(at, slice):
            return self.take(at)
        found: Request = self.kind(
            **{name: column.values[column.codes[at]] for name, column in self.columns.items()}
        )
        return found

    def __iter__(self) -> Iterator[Request]:
        for fields in zip(*(column.each() for column in self.columns.values()), strict=True):
            yield self.kind(**dict(zip(self.columns, fields, strict=True)))

    def __repr__(self) -> str:
        return repr(list(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # another process needs the values that are used, and no others
        return Requests, (self.kind, {name: column.used() for name, column in self.columns.items()})


class Items(Sequence[Item]):
    """Items of one kind of request as columns."""

    __slots__ = ("requests", "tags")

    def __init__(self, requests: Requests, tags: Mapping[str, Coded]) -> None:
        self.requests = requests
        self.tags = tags

    @classmethod
    def of(cls, items: Sequence[Item]) -> Items:
        """Return items of one kind of request as columns."""
        tags = [item.tags for item in items]
        names = dict.fromkeys(name for each in tags for name in each)
        columns = {name: Coded.of([each.get(name, ABSENT) for each in tags]) for name in names}
        return cls(Requests.of([item.request for item in items]), columns)

    def take(self, rows: Rows) -> Items:
        """Return some of the items."""
        return Items(self.requests.take(rows), {name: column.take(rows) for name, column in self.tags.items()})

    def tags_of(self, at: int) -> dict[str, Tag]:
        """Return the tags of one item."""
        found = {name: column.values[column.codes[at]] for name, column in self.tags.items()}
        return {name: value for name, value in found.items() if value is not ABSENT}

    def __len__(self) -> int:
        return len(self.requests)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> Items: ...
    def __getitem__(self, at: int | slice) -> Item | Items:
        if isinstance(at, slice):
            return self.take(at)
        return Item(request=self.requests[at], tags=self.tags_of(at))


class WordAnswers(Sequence[WordAnswer]):
    """Answers about the same words: one row of log-probabilities each, in float32, as they are recorded."""

    __slots__ = ("logprobs", "words")

    def __init__(self, words: tuple[str, ...], logprobs: npt.NDArray[np.float32]) -> None:
        self.words = words
        self.logprobs = logprobs

    def take(self, rows: Rows) -> WordAnswers:
        """Return some of the answers."""
        return WordAnswers(self.words, self.logprobs[rows])

    def __len__(self) -> int:
        return len(self.logprobs)

    @overload
    def __getitem__(self, at: int) -> WordAnswer: ...
    @overload
    def __getitem__(self, at: slice) -> WordAnswers: ...
    def __getitem__(self, at: int | slice) -> WordAnswer | WordAnswers:
        if isinstance(at, slice):
            return self.take(at)
        return WordAnswer(words=self.words, logprobs=tuple(self.logprobs[at].tolist()))


@functools.cache
def names_of(kind: type) -> tuple[str, ...]:
    """Return the names of a request's fields."""
    return tuple(field.name for field in dataclasses.fields(kind))


def items_of(questions: Questions) -> Iterator[Item]:
    """Yield every question as an item, in order.

    >>> from clinometer.types import Classify
    >>> block = Block(kind=Classify, columns={"text": ["a", "b"]}, tags={"word": ["x", "y"]})
    >>> [(item.request.text, item.tags["word"]) for item in items_of([block])]
    [('a', 'x'), ('b', 'y')]
    """
    for each in questions:
        if isinstance(each, Item):
            yield each
        else:
            for piece in _pieces_of(each, _rows_of(each)):
                yield from piece


def in_windows(questions: Iterable[Item | Block | Items], size: int) -> Iterator[Items]:
    """Yield the questions as columns, so many at a time, and never one more than is asked for.

    A window holds one kind of request: where the kind changes, it ends.
    """
    waiting: list[Items] = []
    count = 0
    for piece in _pieces(questions, size):
        if waiting and piece.requests.kind is not waiting[0].requests.kind:
            yield _joined(waiting)
            waiting, count = [], 0
        start = 0
        while count + len(piece) - start >= size:
            end = start + size - count
            yield _joined([*waiting, piece[start:end]])
            waiting, count, start = [], 0, end
        if start < len(piece):
            waiting.append(piece[start:])
            count += len(piece) - start
    if waiting:
        yield _joined(waiting)


def _pieces(questions: Iterable[Item | Block | Items], size: int) -> Iterator[Items]:
    """Yield columns of what is given, not more than `size` rows of items or blocks at a time."""
    single: list[Item] = []
    for each in questions:
        if single and (not isinstance(each, Item) or type(each.request) is not type(single[0].request)):
            yield Items.of(single)
            single = []
        if isinstance(each, Item):
            single.append(each)
            if len(single) == size:
                yield Items.of(single)
                single = []
        elif isinstance(each, Items):
            yield each
        else:
            yield from _pieces_of(each, size)
    if single:
        yield Items.of(single)


def _rows_of(block: Block) -> int:
    lengths = {name: len(column) for name, column in [*block.columns.items(), *block.tags.items()]}
    if len(set(lengths.values())) != 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items()) or "there is none"
        raise ValueError(f"the columns of a block must have one length; {found}")
    return next(iter(lengths.values()))


def _pieces_of(block: Block, size: int) -> Iterator[Items]:
    rows = _rows_of(block)
    for start in range(0, rows, size or 1):
        count = min(size, rows - start)

        def column(values: Sequence[Any], start: int = start, count: int = count) -> Coded:
            # a tuple stays the object it is, so that blocks which share it are seen to; a list may change later
            some = values if count == rows else values[start : start + count]
            return Coded(tuple(some), np.arange(count, dtype=np.int32))

        given = {name: column(values) for name, values in block.columns.items()}
        first = block.kind(**block.shared, **{name: each.values[0] for name, each in given.items()})
        columns = {
            name: given[name] if name in given else Coded.same(getattr(first, name), count)
            for name in names_of(cast(type, block.kind))
        }
        tags = {name: Coded.same(value, count) for name, value in block.shared_tags.items()}
        tags |= {name: column(values) for name, values in block.tags.items()}
        yield Items(Requests(block.kind, columns), tags)


def _joined(pieces: Sequence[Items]) -> Items:
    if len(pieces) == 1:
        return pieces[0]
    kind = pieces[0].requests.kind
    names = dict.fromkeys(name for piece in pieces for name in piece.tags)
    columns = {name: joined([piece.requests.columns[name] for piece in pieces]) for name in names_of(kind)}
    tags = {
        name: joined([piece.tags.get(name) or Coded.same(ABSENT, len(piece)) for piece in pieces])
        for name in names
    }
    return Items(Requests(kind, columns), tags)


def joined(columns: Sequence[Coded]) -> Coded:
    """Return one column after the other; values that they share, as one object, stay one."""
    starts: dict[int, int] = {}
    values: list[tuple[Any, ...]] = []
    count = 0
    codes = np.empty(sum(len(column.codes) for column in columns), np.int32)
    at = 0
    for column in columns:
        known = id(column.values[0]) if len(column.values) == 1 else id(column.values)
        if known not in starts:
            starts[known] = count
            count += len(column.values)
            values.append(column.values)
        np.add(column.codes, starts[known], out=codes[at : at + len(column.codes)])
        at += len(column.codes)
    whole = values[0] if len(values) == 1 else tuple(value for some in values for value in some)
    return Coded(whole, codes)


def spelled(parts: Sequence[str | Coded], *, rows: int, show: Callable[[Any], str] = repr) -> list[bytes]:
    """Return for each row the parts one after the other, each column by how its value is shown.

    What all rows share is written once, with the value that comes after it.

    >>> spelled(["<", Coded.of([1, 2]), ", ", Coded.same("a", 2), ">"], rows=2)
    [b"<1, 'a'>", b"<2, 'a'>"]
    """
    differing: list[tuple[str, Coded]] = []
    constant = ""
    for part in parts:
        if isinstance(part, str):
            constant += part
        elif len(part.values) == 1:
            constant += show(part.values[0])
        else:
            differing.append((constant, part))
            constant = ""
    columns: list[list[bytes]] = []
    for number, (before, column) in enumerate(differing, 1):
        after = constant if number == len(differing) else ""
        values = [f"{before}{show(value)}{after}".encode("utf-8", "surrogatepass") for value in column.values]
        columns.append([values[code] for code in column.codes.tolist()])
    if not columns:
        return [constant.encode("utf-8", "surrogatepass")] * rows
    return columns[0] if len(columns) == 1 else list(map(b"".join, zip(*columns, strict=True)))


def as_answers(answers: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
    """Return some answers, as columns if they are columns."""
    if isinstance(answers, WordAnswers):
        return cast(Sequence[Any], answers.take(np.asarray(rows, np.intp)))
    return [answers[row] for row in rows]
