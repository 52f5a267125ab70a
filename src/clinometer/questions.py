"""Requests that travel as columns, one by one."""

from __future__ import annotations

from collections.abc import Iterator

from clinometer.types import Block, Item, Questions


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
            yield from _rows(each)


def _rows(block: Block) -> Iterator[Item]:
    lengths = {name: len(column) for name, column in [*block.columns.items(), *block.tags.items()]}
    if len(set(lengths.values())) != 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items()) or "there is none"
        raise ValueError(f"the columns of a block must have one length; {found}")
    for row in range(next(iter(lengths.values()))):
        fields = {name: column[row] for name, column in block.columns.items()}
        tags = {name: column[row] for name, column in block.tags.items()}
        yield Item(request=block.kind(**block.shared, **fields), tags={**block.shared_tags, **tags})
