"""The authors' outputs by download: each file at one commit, accepted only with its known checksum."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from clinometer.data.downloads import download
from clinometer.data.files import packaged, read_csv
from clinometer.data.user_folder import checksum, user_folder
from clinometer.errors import DataError, reason
from clinometer.replication.items import Item, Outputs, Paper

OnFile = Callable[[int, int], None]  # files so far, files in all
RAW = "https://raw.githubusercontent.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """One file of the authors: its path in their repository, and what it must be."""

    path: str
    sha256: str
    bytes: int
    commit: str

    def url(self, repository: str) -> str:
        """Return where it is at its commit.

        >>> file = PublishedFile(path="data/MLM results/a.csv", sha256="", bytes=1, commit="6f11d1d")
        >>> file.url("https://github.com/Mooniem/MLMs_bias_stigmas")
        'https://raw.githubusercontent.com/Mooniem/MLMs_bias_stigmas/6f11d1d/data/MLM%20results/a.csv'
        """
        return f"{RAW}/{repository.removeprefix('https://github.com/')}/{self.commit}/{quote(self.path)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCheck:
    """Whether the files of a folder are the authors'."""

    known: int  # files that are there and whose checksum we know
    changed: tuple[str, ...]  # those of them that are not the authors'
    unknown: tuple[str, ...]  # files that were read and whose checksum we do not know


def published_files(paper: Paper, items: Sequence[Item]) -> tuple[PublishedFile, ...]:
    """Return the files that the items read and whose checksum we know, from `published/<paper>_files.csv`."""
    rows = read_csv(
        packaged("published", f"{paper.name}_files.csv"), columns=("path", "sha256", "bytes"), optional=("commit",)
    )
    beginnings = tuple(beginning for item in items for beginning in item.under)
    return tuple(
        PublishedFile(
            path=row.text("path"),
            sha256=row.text("sha256"),
            bytes=int(row.number("bytes", low=1, high=1e9)),
            commit=row.values["commit"] or paper.commit,
        )
        for row in rows
        if row.text("path").startswith(beginnings)
    )


def fetch(paper: Paper, items: Sequence[Item], *, on_file: OnFile | None = None) -> Path:
    """Return the folder with the files of the items; what is not there yet, or damaged, is downloaded."""
    folder = user_folder() / "published" / paper.name
    wanted = published_files(paper, items)
    for number, file in enumerate(wanted, start=1):
        target = folder.joinpath(*file.path.split("/"))
        try:
            if not target.is_file() or checksum(target) != file.sha256:
                target.parent.mkdir(parents=True, exist_ok=True)
                _fetch(file, paper, target)
        except OSError as error:
            raise DataError(
                f"cannot keep '{target}' ({reason(error)}); set CLINOMETER_DATA to a folder that you may write in"
            ) from None
        if on_file is not None:
            on_file(number, len(wanted))
    return folder


def check_copy(paper: Paper, items: Sequence[Item], outputs: Outputs) -> CopyCheck:
    """Compare the authors' files in a folder with what they were at their commit; missing ones are left out."""
    there, changed = [], []
    for file in published_files(paper, items):
        path = outputs.folder.joinpath(*file.path.split("/"))
        if not path.is_file():
            continue
        there.append(file.path)
        try:
            # files of another size need not be read to the end
            if path.stat().st_size != file.bytes or checksum(path) != file.sha256:
                changed.append(file.path)
        except OSError as error:
            raise DataError(f"'{path}' cannot be read ({reason(error)}); make it readable") from None
    return CopyCheck(
        known=len(there),
        changed=tuple(changed),
        unknown=tuple(name for name in outputs.opened if name not in there),
    )


def _fetch(file: PublishedFile, paper: Paper, target: Path) -> None:
    unfinished = target.with_name(f".unfinished-{secrets.token_hex(8)}")
    try:
        download(file.url(paper.repository), unfinished, sha256=file.sha256, most_bytes=file.bytes)
    except DataError as error:
        said = str(error).partition("; ")[0]
        raise DataError(
            f"{said}; check the network, or copy {paper.repository} at commit {paper.commit[:7]} here and give "
            "--folder DIR"
        ) from None
    os.replace(unfinished, target)
