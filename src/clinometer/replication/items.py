"""What a replication is made of: the papers, their items, and the cells in which printed and recomputed meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinometer import limits
from clinometer.errors import DataError, nearest

ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".zst", ".7z", ".rar")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One number: as the paper prints it, and as our code computes it from the authors' outputs.

    What the paper does not print as a number is not written into `printed`, so it is not counted as a comparison.
    """

    name: str
    printed: str = ""  # as printed, for its digits; "": the paper shows it in a figure only
    ours: float = math.nan  # NaN: a file that it takes is not there
    note: str = ""
    again: bool = False  # the printed number is compared in another cell, and counts there

    @property
    def found(self) -> bool:
        """Whether it could be computed."""
        return not math.isnan(self.ours)

    @property
    def difference(self) -> float:
        """Ours minus printed; NaN where one of them is missing.

        >>> round(Cell(name="ρ", printed="0.44", ours=0.4381).difference, 4)
        -0.0019
        """
        return self.ours - float(self.printed) if self.printed else math.nan

    @property
    def agrees(self) -> bool:
        """Whether ours, rounded to the printed digits, is the printed number.

        >>> Cell(name="ρ", printed="0.44", ours=0.445).agrees, Cell(name="ρ", printed="0.440", ours=0.4409).agrees
        (True, False)
        """
        digits = len(self.printed.partition(".")[2])
        # what lies exactly between two roundings agrees with both
        return abs(self.difference) <= 0.5 * 10.0**-digits + 1e-9


class Outputs:
    """The authors' files in a folder; those that are asked for and not there are remembered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.missing: dict[str, None] = {}
        self.opened: dict[str, None] = {}
        self.known: dict[str, Any] = {}  # what a paper has read of a file that several items take

    def path(self, name: str) -> Path | None:
        """Return where a file is, or None, and remember that it is missing."""
        file = self.folder.joinpath(*name.split("/"))
        if not file.is_file():
            self.missing[name] = None
            return None
        self.opened[name] = None
        return file

    def json(self, name: str) -> dict[str, Any] | None:
        """Return the table of a JSON file; None where it is missing."""
        file = self.path(name)
        if file is None:
            return None
        try:
            found = limits.parse_json(limits.read_limited(file))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"'{file}' cannot be read ({reason}); expected the authors' JSON file") from None
        if not isinstance(found, dict):
            raise DataError(f"'{file}' is not a table; expected the authors' JSON file")
        if not found:  # else its cells would pass for ones whose file is missing
            raise DataError(f"'{file}' is an empty table; expected the authors' JSON file")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Files that the authors used and did not publish as data; "": what the package has instead."""

    nrc: str = ""  # the full NRC emotion lexicon
    ratings: str = ""  # the authors' ratings of words, which they published as a PDF


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A table, a figure or a section of a paper that can be recomputed from the authors' outputs."""

    name: str  # such as table-4
    about: str
    under: tuple[str, ...]  # how the paths of its files begin
    cells: Callable[[Outputs, Settings], Iterator[Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper, and where its authors published what their models said."""

    name: str  # that of its audit
    title: str
    repository: str = ""  # "": the authors published no outputs
    commit: str = ""
    items: tuple[Item, ...] = field(default=())

    def chosen(self, item: str) -> tuple[Item, ...]:
        """Return the items to compute: the one of this name, or all."""
        names = [each.name for each in self.items]
        if item and item not in names:
            hint = nearest(item, names) if names else "its authors published no outputs"
            raise DataError(f"{self.name} has no item {item!r}; {hint}")
        return tuple(each for each in self.items if item in ("", each.name))


def find_paper(name: str, papers: Mapping[str, Paper]) -> Paper:
    """Return the paper of an audit; a hyphen serves as well as an underscore."""
    wanted = name.replace("-", "_")
    if wanted not in papers:
        raise DataError(f"no paper {name!r}; {nearest(wanted, papers)}")
    return papers[wanted]


def outputs_in(folder: Path, paper: Paper) -> Outputs:
    """Return the outputs in a folder: the repository itself, or a folder that it lies in under its own name."""
    inside = folder / paper.repository.rpartition("/")[2]
    if folder.is_file():
        unpack = "unpack it and " if folder.suffix.lower() in ARCHIVES else ""
        raise DataError(f"'{folder}' is a file; {unpack}give the folder with a copy of {paper.repository}")
    if not folder.is_dir():
        raise DataError(f"no folder '{folder}'; give the folder with a copy of {paper.repository}")
    return Outputs(inside if inside.is_dir() else folder)
