"""Data sets that may not be packaged: what they are, and the folder where a user adds them once for every audit.

<folder>/<name>/data          the file, byte for byte
<folder>/<name>/record.json   where it came from, its checksum and what was found in it
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from clinometer import limits
from clinometer.data.files import Source
from clinometer.data.sentiment_lexicons import read_mpqa
from clinometer.data.stereotypes_data import read_emotions, read_human_stereotypes
from clinometer.data.stigma_data import read_attitudes
from clinometer.data.wording import counted
from clinometer.errors import DataError, nearest

_DATA, _RECORD = "data", "record.json"
_UNFINISHED = ".unfinished-"  # how folders that are being filled or removed are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One data set that a user can add. `check` reads the file strictly and says in words what it contains."""

    name: str
    about: str
    terms: str
    page: str  # where people find it
    check: Callable[[Source], str]
    url: str = ""  # where it can be downloaded, if no permission is needed
    sha256: str = ""  # of the file at that address


def _stereotypes(source: Source) -> str:
    rows = read_human_stereotypes(source)
    groups, categories = {row.group for row in rows}, {row.category for row in rows}
    return (
        f"{counted(len(rows), 'stereotype')} about {counted(len(groups), 'group')} in "
        f"{counted(len(categories), 'category', 'categories')}"
    )


def _nrc(source: Source) -> str:
    lexicon = read_emotions(source)
    labelled = sum(bool(emotions) for emotions in lexicon.words.values())
    return f"{counted(len(lexicon.words), 'word')}, {labelled:,} of them with at least one emotion"


def _mpqa(source: Source) -> str:
    return counted(len(read_mpqa(source)), "neutral word")


def _stigma_ratings(source: Source) -> str:
    return counted(len(read_attitudes(source)), "rated word")


DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="stereotypes",
            about="human stereotypes from search-engine suggestions, one word each (Choenni et al. 2021)",
            terms="MIT",
            page="https://github.com/RochelleChoenni/stereotypes_in_lms",
            check=_stereotypes,
            url="https://raw.githubusercontent.com/RochelleChoenni/stereotypes_in_lms/"
            "fbaba95f5d3dfa5f6d8ab1dbda8138f5c36b1440/"
            "data_collection/stereo_dataset/single_word_stereo_dataset.csv",
            sha256="b49b7b60c0e894db50b30be7827e57effd1840131b724b745337e41b581538f2",
        ),
        Dataset(
            name="nrc",
            about="NRC emotion lexicon, word level, including words without an emotion (Mohammad & Turney 2013)",
            terms="research use only; commercial use by licence of the NRC",
            page="http://saifmohammad.com/WebPages/NRC-Emotion-Lexicon.htm",
            check=_nrc,
        ),
        Dataset(
            name="mpqa",
            about="MPQA subjectivity clues (Wilson et al. 2005)",
            terms="research use; see its page",
            page="https://mpqa.cs.pitt.edu/lexicons/subj_lexicon/",
            check=_mpqa,
        ),
        Dataset(
            name="stigma-ratings",
            about="words rated by the attitude that they express, for the stigma audit",
            terms="MIT",
            page="https://github.com/Mooniem/MLMs_bias_stigmas",
            check=_stigma_ratings,
        ),
    )
}


def get_dataset(name: str) -> Dataset:
    """Return the data set of this name; raise DataError with the nearest name for an unknown one."""
    if name not in DATASETS:
        raise DataError(f"no data set {name!r}; {nearest(name, DATASETS)}")
    return DATASETS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedDataset:
    """What is recorded when a data set is added."""

    name: str
    origin: str  # the path or address that it came from
    added: str  # date and time, UTC
    sha256: str
    bytes: int
    found: str  # what it contains, in words


def user_folder() -> Path:
    """Return where added data sets are kept: `$CLINOMETER_DATA`, or a folder in the user's data directory."""
    if chosen := os.environ.get("CLINOMETER_DATA"):
        return Path(chosen)
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "clinometer"


def added_file(name: str) -> Path | None:
    """Return the file of a data set that the user has added, or None.

    Its checksum is compared with the recorded one every time: an audit must not use a damaged file.
    """
    file = user_folder() / name / _DATA
    if not file.is_file():
        return None
    expected = read_record(name).sha256
    with _explain(file):
        found = checksum(file)
    if found != expected:
        raise DataError(
            f"'{file}' is not the file that was added (SHA-256 {found}, expected {expected}); "
            f"add it again: clinometer data add {name} PATH"
        )
    return file


def read_record(name: str) -> AddedDataset:
    """Return the record of an added data set."""
    file = user_folder() / name / _RECORD
    try:
        return AddedDataset(**limits.parse_json(limits.read_limited(file)))
    except FileNotFoundError:
        if (user_folder() / name / _DATA).is_file():
            raise DataError(f"'{file}' is missing; add the data again: clinometer data add {name} PATH") from None
        raise DataError(f"the data set {name!r} is not added; add it: clinometer data add {name} PATH") from None
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"'{file}' cannot be used ({error}); add the data again: clinometer data add {name} PATH"
        ) from None


def add_file(name: str, path: Path, *, origin: str = "") -> AddedDataset:
    """Check a file with the reader of its data set, and copy it into the user's data folder.

    `origin` is recorded, and named in error messages, as the place it came from; by default the path.
    """
    dataset = get_dataset(name)
    shown = origin or str(path)
    target = user_folder() / name
    with _unfinished_folder() as work:
        copy = work / _DATA
        try:
            _copy(path, copy)
        except FileNotFoundError:
            raise DataError(f"no file '{path}'; give the path of the data set {name!r} ({dataset.page})") from None
        except IsADirectoryError:
            raise DataError(f"'{path}' is a folder; give the path of the file") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"'{path}' cannot be copied to '{user_folder()}' ({reason})") from None
        try:
            found = dataset.check(copy)  # the copy, because that is what will be used
        except DataError as error:
            raise DataError(str(error).replace(str(copy), shown)) from None
        record = AddedDataset(
            name=name,
            origin=origin or str(path.absolute()),
            added=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            sha256=checksum(copy),
            bytes=copy.stat().st_size,
            found=found,
        )
        with _explain(target):
            (work / _RECORD).write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")
            for file in (copy, work / _RECORD):
                _sync(file)
            _put_in_place(work, target)
    return record


def remove_added(name: str) -> AddedDataset | None:
    """Remove an added data set and return its record, or None if it was damaged."""
    target = user_folder() / get_dataset(name).name  # a known name: never a path that leads elsewhere
    record = None
    try:
        record = read_record(name)
    except DataError:
        if not target.is_dir():
            raise
        # damaged: all the more reason to remove it
    with _explain(target):
        aside = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent))
        os.replace(target, aside / name)
        shutil.rmtree(aside)
    return record


@contextlib.contextmanager
def _unfinished_folder() -> Iterator[Path]:
    """Make a folder inside the user's data folder; if it is still there at the end, remove it."""
    folder = user_folder()
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        with _explain(folder):
            folder.mkdir(parents=True, exist_ok=True)
            _sweep(folder)
            work = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
            work.chmod(0o755)  # mkdtemp makes it private, but the folder may be shared
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except BaseException:
        for parent in made:  # nothing is left behind, not even empty folders
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _sweep(folder: Path) -> None:
    """Remove what a killed process left more than a day ago; younger folders may be in use."""
    for leftover in folder.glob(_UNFINISHED + "*"):
        with contextlib.suppress(FileNotFoundError):  # someone else swept it
            if time.time() - leftover.stat().st_mtime > 24 * 3600:
                shutil.rmtree(leftover, ignore_errors=True)


def _put_in_place(work: Path, target: Path) -> None:
    """Rename the finished folder to its place; if that fails, put back what was there before."""
    if not target.exists():
        os.replace(work, target)
        return
    aside = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent))
    os.replace(target, aside / target.name)
    try:
        os.replace(work, target)
    except BaseException:
        os.replace(aside / target.name, target)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _copy(path: Path, target: Path) -> None:
    with limits.open_plain(path) as source:
        if os.fstat(source.fileno()).st_size > limits.TEXT:
            raise OSError(errno.EFBIG, f"it has more than {limits.TEXT:,} bytes")
        with open(target, "wb") as file:
            shutil.copyfileobj(source, file)


def checksum(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _sync(file: Path) -> None:
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())


@contextlib.contextmanager
def _explain(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot use '{place}' ({error.strerror or error}); "
            "set CLINOMETER_DATA to a folder that you may write in, or make room"
        ) from error
