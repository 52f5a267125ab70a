"""Reviews of a hub dataset, written to a file that `read_reviews` reads."""

from __future__ import annotations

import csv
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinometer.errors import DataError, nearest

_LONGEST = 100_000  # characters: what a CSV reader takes as one value


def fetch_hub_reviews(
    name: str,
    *,
    split: str,
    text_column: str,
    label_column: str,
    positive: str,
    negative: str,
    out: Path,
    config: str | None = None,
) -> int:
    """Write the reviews of a hub dataset to a new CSV file `text,label,source`; return how many.

    A row counts as positive, or negative, when its label is `positive`, or `negative`: two names of classes, or
    two values, where "1" is also the number 1. Rows with another label (three of five stars), without text,
    or with more than 100,000 characters are left out. The file is there whole or not at all.

    Args:
        name: the dataset's name on the hub, or a folder of data files.
        split: such as "train", or a part of it: "train[:5000]+train[-5000:]".
        text_column: the column that holds the text.
        label_column: the column that holds the label.
        positive: the label of positive reviews.
        negative: the label of negative reviews.
        out: a file that does not exist, ending in .csv.
        config: which of the dataset's configurations, where it has several.
    """
    _check(out, positive, negative)
    table = _load(name, config=config, split=split)
    for column in (text_column, label_column):
        if column not in table.column_names:
            raise DataError(f"dataset '{name}' has no column '{column}'; {nearest(column, table.column_names)}")
    reviews = _reviews(table, text_column, label_column, positive=positive, negative=negative)
    source = Path(name).name if Path(name).is_dir() else name  # where a folder lies is nobody's business
    temporary = out.with_name(f".tmp-{secrets.token_hex(8)}")
    try:
        with open(temporary, "x", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("text", "label", "source"))
            count = 0
            for text, label in reviews:
                writer.writerow((text, label, source))
                count += 1
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, out)
    except OSError as error:
        raise DataError(f"'{out}' cannot be written ({error.strerror or error}); give a place with room") from None
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _check(out: Path, positive: str, negative: str) -> None:
    """Refuse what cannot end well before anything is downloaded."""
    if out.suffix != ".csv":
        raise DataError(f"'{out}' does not end in .csv; reviews are written as CSV: give such a name")
    if out.exists():
        raise DataError(f"'{out}' is already there; give the name of a new file")
    if not out.parent.is_dir():
        raise DataError(f"no folder '{out.parent}'; make it first or give another place")
    if positive == negative:
        raise DataError(f"positive and negative are both {positive!r}; give two different labels")


def _load(name: str, *, config: str | None, split: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise DataError("reviews of a hub dataset need a library: pip install 'clinometer[hub]'") from None
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as error:  # the library lets errors of many others through: network, formats, file systems
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(
            f"dataset '{name}', split '{split}' cannot be loaded ({reason}); check the name and the network, or "
            "give reviews as a file"
        ) from error


def _reviews(
    table: Any, text_column: str, label_column: str, *, positive: str, negative: str
) -> Iterator[tuple[str, str]]:
    """Yield text and class of the reviews of both classes; raise DataError in the end where a class has none."""
    names = list(getattr(table.features[label_column], "names", None) or ())  # of classes stored as numbers
    # classes may be named "1" and "2" while they are stored as 0 and 1: either both labels are names, or none is
    by_name = {positive, negative} <= set(names)
    classes = {positive: "positive", negative: "negative"}
    seen: set[str] = set()
    used: set[str] = set()
    for batch in table.select_columns([text_column, label_column]).iter(batch_size=1000):
        for text, value in zip(batch[text_column], batch[label_column], strict=True):
            label = names[value] if by_name and value in range(len(names)) else _as_text(value)
            if len(seen) < 20:
                seen.add(label)
            plain = text.replace("\0", " ").strip() if isinstance(text, str) else ""
            if label in classes and 0 < len(plain) <= _LONGEST:
                used.add(label)
                yield plain, classes[label]
    for label, meaning in classes.items():
        if label not in used:
            there = f"labels there: {', '.join(map(repr, sorted({*seen, *names})))}" if seen else "no rows there"
            raise DataError(f"no review has the label {label!r}, given as {meaning}; {there}")


def _as_text(label: object) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
