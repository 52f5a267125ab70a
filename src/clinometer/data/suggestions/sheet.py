"""The review sheet: a CSV file on which a person judges what no rule can, and the data set made from it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from clinometer.data.files import Source, read_csv, write_whole
from clinometer.data.stereotypes_data import COLUMNS, MULTIPLE, HumanStereotype
from clinometer.data.suggestions.cleaning import Candidate
from clinometer.errors import DataError

_SHEET = (
    "keep?",
    "prompt",
    "group",
    "category",
    "completion",
    "engine",
    "reason",
    "proposed_prompt",
    "proposed_completion",
)


def write_sheet(path: Path, candidates: Sequence[Candidate], *, judged: Iterable[Candidate] = ()) -> None:
    """Write the review sheet; what a person `judged` on an earlier sheet is kept."""
    earlier = {(row.prompt, row.completion): row for row in judged if row.keep}
    rows = []
    for candidate in candidates:
        old = earlier.pop((candidate.prompt, candidate.completion), None)
        if old is not None:
            # the engine comes from the new answers: another engine may have offered it since
            rows.append(replace(old, engine=candidate.engine))
        else:
            rows.append(candidate)
    rows += earlier.values()  # rows that a person added by hand
    _write(path, _SHEET, [_cells(row) for row in rows], delimiter=",")


def _cells(row: Candidate) -> list[str]:
    values = (row.keep, row.prompt, row.group, row.category, row.completion, row.engine, row.reason)
    return [*values, row.proposed_prompt, row.proposed_completion]


def read_sheet(source: Source) -> tuple[Candidate, ...]:
    """Read a review sheet; `keep?` is yes, no or still empty."""
    rows = []
    for row in read_csv(source, columns=_SHEET):
        keep = row.choice("keep?", ("yes", "no", ""))
        candidate = Candidate(
            keep="yes" if keep == "yes" else "no" if keep == "no" else "",
            prompt=row.text("prompt").lower(),
            group=row.text("group").lower(),
            category=row.text("category").lower(),
            completion=row.text("completion").lower(),
            engine=row.text("engine"),
            reason=row.values["reason"],
            proposed_prompt=row.values["proposed_prompt"].lower(),
            proposed_completion=row.values["proposed_completion"].lower(),
        )
        if bool(candidate.proposed_prompt) != bool(candidate.proposed_completion):
            raise row.error(
                "proposed_prompt without proposed_completion, or the other way round", "both, or neither"
            )
        for prompt in filter(None, (candidate.prompt, candidate.proposed_prompt)):
            if candidate.group not in prompt:
                raise row.error(
                    f"{prompt!r} without its group {candidate.group!r}", "a prompt that names the group"
                )
        rows.append(candidate)
    return tuple(rows)


def judged_stereotypes(source: Source) -> tuple[HumanStereotype, ...]:
    """Return what a person kept on a review sheet, with the proposed wording where there is one.

    The same attribute after the same prompt from two engines becomes one row with the engine "multiple".
    """
    rows = read_sheet(source)
    if unjudged := [row for row in rows if not row.keep]:
        first = unjudged[0]
        raise DataError(
            f"'{source}': {len(unjudged):,} of {len(rows):,} rows have nothing in column 'keep?', the first is "
            f"'{first.prompt} {first.completion}'; expected yes or no in each"
        )
    kept: dict[tuple[str, str], HumanStereotype] = {}
    for row in rows:
        if row.keep == "no":
            continue
        stereotype = HumanStereotype(
            prompt=row.proposed_prompt or row.prompt,
            group=row.group,
            category=row.category,
            attribute=row.proposed_completion or row.completion,
            engine=row.engine,
        )
        key = (stereotype.prompt, stereotype.attribute)
        if key in kept and kept[key].engine != stereotype.engine:
            stereotype = replace(stereotype, engine=MULTIPLE)
        kept[key] = stereotype
    if not kept:
        raise DataError(f"'{source}' keeps no row; expected 'yes' in column 'keep?' at least once")
    return tuple(kept.values())


def write_stereotypes(path: Path, stereotypes: Iterable[HumanStereotype]) -> None:
    """Write a data set in the published tab-separated format; an existing file is not overwritten."""
    if path.exists():
        raise DataError(f"'{path}' exists already; give another file with --out")
    rows = [[row.prompt, row.category, row.group, row.attribute, row.engine] for row in stereotypes]
    _write(path, COLUMNS, rows, delimiter="\t")


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], *, delimiter: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as file:
            writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
    except OSError as error:
        raise DataError(
            f"cannot write '{path}' ({error.strerror or error}); give another place with --out"
        ) from None
