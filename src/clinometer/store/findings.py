"""Findings on disk: each table as Parquet and CSV, and an index for everything that is not a number.

    findings/<probe>/<table>.parquet    the labels in order, then estimate, low, high, p, q, n
    findings/<probe>/<table>.csv        the same, for people
    findings/<probe>/index.json         titles, captions, figures, notices, headlines, and each file's checksum

The index is written last. If the process is killed before that, the old checksums do not match the new tables.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from clinometer.errors import StoreError
from clinometer.limits import require_reasonable_size
from clinometer.plain import without_formula
from clinometer.store.atomic import make_folder, read_json, remove_leftovers, to_json, write_together
from clinometer.store.inside import read_plain
from clinometer.store.names import column_name, safe_name
from clinometer.store.shapes import all_built, built
from clinometer.types import ChangeVerdict, Figure, Finding, Findings, FindingTable, Notice, Verdict

INDEX = "index.json"
_TABLE_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.(parquet|csv)")
_NUMBERS = ("estimate", "low", "high", "p", "q")
_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """What the index says of a table."""

    name: str
    title: str
    caption: str
    labels: tuple[str, ...]
    version: int = 1  # format 1 has no versions


def write_findings(folder: Path, findings: Findings, *, run: Path) -> None:
    """Write what one probe concludes into its folder, replacing what it concluded before."""
    files: dict[str, bytes] = {}
    for table in findings.tables:
        name = safe_name(table.name, what="finding table")
        if f"{name}.parquet" in files:
            raise StoreError(
                f"probe {findings.probe!r} has two finding tables named {name!r}; give each its own name"
            )
        arrow = _to_arrow(table)
        files[f"{name}.parquet"] = _parquet(arrow)
        files[f"{name}.csv"] = _csv(arrow)
    make_folder(folder, run=run)
    remove_leftovers(folder)
    index = {
        "probe": findings.probe,
        "release": findings.release,
        "tables": [
            {
                "name": t.name,
                "version": t.version,
                "title": t.title,
                "caption": t.caption,
                "labels": _label_names(t),
            }
            for t in findings.tables
        ],
        "figures": findings.figures,
        "notices": findings.notices,
        "headlines": findings.headlines,
        "verdicts": findings.verdicts,
        "changes": findings.changes,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    before = _written_before(folder)
    write_together(folder, {**files, INDEX: to_json(index)}, run=run)
    for name in before - files.keys():
        (folder / name).unlink(missing_ok=True)


def _written_before(folder: Path) -> set[str]:
    """Return the tables of an earlier conclusion: those whose bytes are the ones that its index names.

    Whatever else is in the folder is somebody's own, and stays.
    """
    try:
        known: dict[str, str] = read_json(folder / INDEX, lambda index: dict(index["sha256"]))
    except StoreError:
        return set()
    kept = set()
    for name, checksum in known.items():
        with contextlib.suppress(OSError):
            if _TABLE_FILE.fullmatch(name) and hashlib.sha256(read_plain(folder / name)).hexdigest() == checksum:
                kept.add(name)
    return kept


def read_findings(folder: Path) -> Findings:
    """Read back what one probe concluded; raise StoreError that names a file that has changed."""

    def build(index: Mapping[str, Any]) -> Findings:
        files = {name: _checked(folder / name, checksum) for name, checksum in _checksums(index["sha256"]).items()}
        tables = all_built(_Table, index["tables"])
        named = {f"{table.name}.{kind}" for table in tables for kind in ("parquet", "csv")}
        if named != files.keys():
            raise ValueError(f"there is no checksum, or no table, for {min(named ^ files.keys())}")
        return Findings(
            probe=built(str, index["probe"]),
            tables=tuple(
                FindingTable(
                    name=table.name,
                    title=table.title,
                    caption=table.caption,
                    rows=_rows(files[f"{table.name}.parquet"], labels=table.labels),
                    version=table.version,
                )
                for table in tables
            ),
            figures=all_built(Figure, index["figures"]),
            notices=all_built(Notice, index["notices"]),
            headlines=built(tuple[str, ...], index["headlines"]),
            verdicts=all_built(Verdict, index.get("verdicts", [])),
            changes=all_built(ChangeVerdict, index.get("changes", [])),
            release=built(str, index.get("release", "")),
        )

    return read_json(folder / INDEX, build)


def finding_files(folder: Path) -> list[str]:
    """Return the files of one probe's findings, its index first."""
    return [INDEX, *read_json(folder / INDEX, lambda index: _checksums(index["sha256"]))]


def findings_digest(findings: Iterable[Findings]) -> str:
    """Return the SHA-256 of the content of findings: the same for equal findings, whatever library wrote them."""
    content = [
        {
            "probe": each.probe,
            "tables": [
                {"name": t.name, "title": t.title, "caption": t.caption, "columns": _columns(t)}
                for t in each.tables
            ],
            "figures": each.figures,
            "notices": each.notices,
            "headlines": each.headlines,
            # those of older runs have none
            **{name: given for name in ("verdicts", "changes") if (given := getattr(each, name))},
        }
        for each in sorted(findings, key=lambda each: each.probe)
    ]
    return hashlib.sha256(to_json(content)).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Where stored findings differ from recomputed ones, a sentence for each difference."""

    numbers: tuple[str, ...]  # in tables made by the same version of an estimator
    wording: tuple[str, ...]  # titles, captions, notices, headlines, figures
    versions: tuple[str, ...]  # tables made by another version: not comparable


def compare_findings(stored: Findings, computed: Findings) -> Comparison:
    """Compare two conclusions of one probe; numbers may differ in their last bits, as processors do."""
    numbers: list[str] = []
    versions: list[str] = []
    wording = [
        what for what in ("headlines", "notices", "figures") if getattr(stored, what) != getattr(computed, what)
    ]
    for what in ("verdicts", "changes"):
        if [each.sentence for each in getattr(stored, what)] != [
            each.sentence for each in getattr(computed, what)
        ]:
            wording.append(what)
    before, now = ({table.name: table for table in each.tables} for each in (stored, computed))
    for name in dict.fromkeys([*before, *now]):
        if name not in now or name not in before:
            said = f"table {name!r} is {'stored, but does not follow' if name in before else 'missing'}"
            (numbers if stored.release == computed.release else versions).append(said)
        elif before[name].version != now[name].version:
            versions.append(
                f"table {name!r} was made by version {before[name].version} of its estimator, this release has "
                f"version {now[name].version}"
            )
        else:
            numbers += _number_differences(before[name], now[name])
            if (before[name].title, before[name].caption) != (now[name].title, now[name].caption):
                wording.append(f"the title or caption of table {name!r}")
    if not versions:  # another estimator may conclude otherwise
        numbers += _verdict_differences(stored, computed)
    return Comparison(numbers=tuple(numbers), wording=tuple(wording), versions=tuple(versions))


def _verdict_differences(stored: Findings, computed: Findings) -> list[str]:
    """Name the aspects, and the changes, whose verdicts do not follow, where both have one."""

    def by_name(findings: Findings) -> dict[tuple[str, ...], Verdict | ChangeVerdict]:
        leans = {(each.model, each.aspect): each for each in findings.verdicts}
        return leans | {(each.after, each.before, each.measure): each for each in findings.changes}

    now = by_name(computed)
    found = []
    for names, verdict in by_name(stored).items():
        other = now.get(names)
        for name in ("state", "estimate", "low", "high", "p", "q", "n", "detectable") if other else ():
            mine, theirs = getattr(verdict, name), getattr(other, name)
            if not (mine == theirs if isinstance(mine, str) else _close(mine, theirs)):
                where = f"the verdict on {', '.join(names)}"
                found.append(f"{where}: {name} {mine!r} is stored, {theirs!r} follows")
                break
    return found


def _close(stored: object, computed: object) -> Any:
    """Tell of numbers, or arrays of them, whether they are equal but for the last bits."""
    return np.isclose(np.asarray(stored), np.asarray(computed), rtol=1e-6, atol=1e-9, equal_nan=True)


def changed_csvs(folder: Path, findings: Findings) -> list[str]:
    """Name the tables whose CSV does not say what the table says; only the release that wrote them can tell."""
    return [
        f"{folder / table.name}.csv does not say what the table says"
        for table in findings.tables
        if read_plain(folder / f"{table.name}.csv") != _csv(_to_arrow(table))
    ]


def _checksums(document: object) -> dict[str, str]:
    """Return the checksums of an index by file; raise ValueError for a file that is not beside it."""
    values = built(dict[str, str], document)
    for name in values:
        if not _TABLE_FILE.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a table")
    return values


def _number_differences(stored: FindingTable, computed: FindingTable) -> list[str]:
    """Return the first difference between two tables, if any."""
    mine, theirs = _columns(stored), _columns(computed)
    where = f"table {stored.name!r}"
    if len(stored.rows) != len(computed.rows) or mine.keys() != theirs.keys():
        return [f"{where} has different rows or columns from those that follow from the records"]
    for name in mine:
        if name in _NUMBERS or isinstance(next(iter(mine[name]), ""), float):
            same = _close(mine[name], theirs[name])
        else:
            same = np.array([a == b for a, b in zip(mine[name], theirs[name], strict=True)], dtype=np.bool_)
        if not same.all():
            row = int(np.flatnonzero(~same)[0])
            return [f"{where}, row {row + 1}, {name}: {mine[name][row]} is stored, {theirs[name][row]} follows"]
    return []


def _label_names(table: FindingTable) -> list[str]:
    """Return the labels of a table, in the order of its first row."""
    return [column_name(name, what="label") for name in table.rows[0].labels] if table.rows else []


def _columns(table: FindingTable) -> dict[str, list[str] | list[int] | list[float]]:
    """Return a table column by column: the labels in order, then estimate, low, high, p, q, n."""
    names = _label_names(table)
    taken = set(names) & {*_NUMBERS, "n"}
    if taken:
        raise StoreError(
            f"finding table {table.name!r} has a label named {min(taken)!r}, which is the name of a number"
        )
    for row in table.rows:
        if set(row.labels) != set(names):
            raise StoreError(
                f"finding table {table.name!r} has a row with the labels {', '.join(row.labels) or '(none)'}; "
                f"all rows must have those of the first: {', '.join(names) or '(none)'}"
            )
    try:
        labels = {name: _one_type([row.labels[name] for row in table.rows]) for name in names}
        numbers = {name: [float(getattr(row, name)) for row in table.rows] for name in _NUMBERS}
        return {**labels, **numbers, "n": [int(row.n) for row in table.rows]}
    except (TypeError, ValueError) as error:
        raise StoreError(f"finding table {table.name!r} cannot be written: {error}") from error


def _one_type(values: list[Any]) -> list[Any]:
    """Return a label's values as plain Python; raise TypeError unless all are str, all int or all float."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    for kind in _TYPES:
        if all(isinstance(value, kind) for value in plain):
            return [kind(value) for value in plain]
    found = ", ".join(sorted({type(value).__name__ for value in plain}))
    raise TypeError(f"a label has values of type {found}; all must be text, all whole numbers, or all fractions")


def _to_arrow(table: FindingTable) -> pa.Table:
    """Return a table as Arrow, keeping the type of each label."""
    columns = _columns(table)
    number_types = {**dict.fromkeys(_NUMBERS, pa.float64()), "n": pa.int64()}
    try:
        return pa.table(
            {
                name: pa.array(values, number_types.get(name) or _TYPES[type(values[0])])
                for name, values in columns.items()
            }
        )
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise StoreError(f"finding table {table.name!r} cannot be written: {error}") from error


def table_frame(table: FindingTable) -> pl.DataFrame:
    """Return a table as a frame: the labels in order, then estimate, low, high, p, q, n."""
    return pl.DataFrame(_to_arrow(table))


def _parquet(table: pa.Table) -> bytes:
    """Return the bytes of a Parquet file, the same for the same table on any machine."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue())


def _csv(table: pa.Table) -> bytes:
    """Return a table for people, whose spreadsheet must not run what a model or a stranger wrote into a label."""
    frame = pl.DataFrame(table)
    for name in frame.select(pl.col(pl.String)).columns:
        frame = frame.with_columns(pl.Series(name, list(map(without_formula, frame[name]))))
    return frame.rename(without_formula).write_csv(quote_style="non_numeric").encode()


def _frame(data: bytes) -> pl.DataFrame:
    """Decode a table; raise ValueError for one that is not Parquet, or unpacks to too much."""
    try:
        require_reasonable_size(pq.read_metadata(io.BytesIO(data)))
        return pl.read_parquet(io.BytesIO(data))
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"a table cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _rows(data: bytes, *, labels: Sequence[str]) -> tuple[Finding, ...]:
    """Read the rows of a table from its Parquet bytes."""
    return tuple(
        Finding(labels={name: row[name] for name in labels}, n=row["n"], **{name: row[name] for name in _NUMBERS})
        for row in _frame(data).iter_rows(named=True)
    )


def _checked(path: Path, checksum: str) -> bytes:
    """Read a file and check its checksum."""
    try:
        data = read_plain(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}; run `clinometer resume`") from error
    if hashlib.sha256(data).hexdigest() != checksum:
        raise StoreError(
            f"{path} is not as it was written (the checksum differs); run `clinometer resume` to write it again"
        )
    return data
