"""The papers' numbers beside ours: the authors' published outputs through our own measures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinometer.data.user_folder import added_file
from clinometer.errors import DataError
from clinometer.replication import PAPERS, Cell, Outputs, Paper, Settings, find_paper, outputs_in
from clinometer.replication.download import CopyCheck, OnFile, check_copy, fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateRequest:
    """What to recompute. Without a folder, the authors' files are downloaded."""

    paper: str  # the name of its audit
    item: str = ""  # such as table-4; "": all
    folder: Path | None = None
    nrc: Path | None = None  # the full NRC lexicon; None: the one that was added, if any
    ratings: Path | None = None  # the authors' ratings of words; None: those that were added, or ours


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedItem:
    """One table, figure or section, cell by cell."""

    name: str
    about: str
    cells: tuple[Cell, ...]
    missing: tuple[str, ...]  # files that it takes and that are not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """What a paper prints beside what our code makes of its authors' outputs."""

    paper: str
    title: str
    repository: str  # "": the authors published no outputs
    commit: str
    folder: Path | None
    files: CopyCheck  # whether they are the authors'
    items: tuple[ReplicatedItem, ...]

    @property
    def compared(self) -> tuple[Cell, ...]:
        """The cells that have a printed number and ours; a number that is printed once counts once."""
        return tuple(
            cell for item in self.items for cell in item.cells if cell.printed and cell.found and not cell.again
        )

    @property
    def agreeing(self) -> int:
        """How many of those agree within the rounding of the printed digits."""
        return sum(cell.agrees for cell in self.compared)

    @property
    def not_found(self) -> int:
        """How many cells could not be computed."""
        return sum(not cell.found for item in self.items for cell in item.cells)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values; null is missing."""
        return {
            "paper": self.paper,
            "title": self.title,
            "repository": self.repository,
            "commit": self.commit,
            "files": {
                "known": self.files.known,
                "changed": list(self.files.changed),
                "unknown": list(self.files.unknown),
            },
            "compared": len(self.compared),
            "agreeing": self.agreeing,
            "items": [
                {
                    "item": item.name,
                    "about": item.about,
                    "missing": list(item.missing),
                    "cells": [_plain(cell) for cell in item.cells],
                }
                for item in self.items
            ],
        }


def _plain(cell: Cell) -> dict[str, Any]:
    both = bool(cell.printed) and cell.found
    return {
        "cell": cell.name,
        "printed": float(cell.printed) if cell.printed else None,
        "ours": cell.ours if cell.found else None,
        "difference": cell.difference if both else None,
        "agrees": cell.agrees if both else None,
        "counted": both and not cell.again,
        "note": cell.note,
    }


def run_replicate(request: ReplicateRequest, *, on_file: OnFile | None = None) -> Replication:
    """Recompute the items of a paper; raise DataError where none of the authors' files is there."""
    paper = find_paper(request.paper, PAPERS)
    items = paper.chosen(request.item)
    folder, done = None, []
    files = CopyCheck(known=0, changed=(), unknown=())
    if not items:
        _refuse_files(request, paper)
    else:
        where = request.folder if request.folder is not None else fetch(paper, items, on_file=on_file)
        folder = outputs_in(where, paper).folder
        settings = Settings(nrc=_given(request.nrc, "nrc"), ratings=_given(request.ratings, "stigma-ratings"))
        outputs = Outputs(folder)
        for item in items:
            outputs.missing = {}
            cells = tuple(item.cells(outputs, settings))
            done.append(
                ReplicatedItem(name=item.name, about=item.about, cells=cells, missing=tuple(outputs.missing))
            )
        if not outputs.opened:
            example = next(iter(done[0].missing), "")
            raise DataError(
                f"'{folder}' has no file of {paper.repository}, such as '{example}'; give a copy of the repository"
            )
        files = check_copy(paper, items, outputs)
    return Replication(
        paper=paper.name,
        title=paper.title,
        repository=paper.repository,
        commit=paper.commit,
        folder=folder,
        files=files,
        items=tuple(done),
    )


def _refuse_files(request: ReplicateRequest, paper: Paper) -> None:
    """Raise where a file or folder is given for a paper that has nothing to recompute from."""
    for path in (request.folder, request.nrc, request.ratings):
        if path is not None:
            raise DataError(
                f"'{path}' is not read: the authors of {paper.name} published no outputs; leave it out"
            )


def _given(path: Path | None, name: str) -> str:
    if path is not None and not path.is_file():  # an item that does not take it would never say so
        raise DataError(f"no file '{path}'; give the path of the data set {name!r}")
    file = path if path is not None else added_file(name)
    return "" if file is None else str(file)
