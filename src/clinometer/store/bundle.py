"""A complete run as one file, to send or to keep: a zip archive that is written in one way, and opened with care.

Members are stored, not packed: records are packed already, the same run gives the same bytes on any machine, and
a bundle can never unpack to more than its own size. Whoever has no Clinometer opens it with any unzip.

A bundle comes from strangers. Before anything is written, every name, size and kind in it is checked; then its
files go to a temporary folder, which is a run like any other and is removed with the last reference to it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import struct
import tempfile
import unicodedata
import weakref
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from clinometer.errors import ClinometerError, InputError, StoreError
from clinometer.limits import DOCUMENT, TEXT, open_plain
from clinometer.store.atomic import TEMPORARY
from clinometer.store.documents import INPUTS, MODELS, PROVENANCE, REPORT, SPEC
from clinometer.store.inside import read_plain
from clinometer.store.run import RunFolder
from clinometer.store.seal import FINDINGS, RECORDS, SEAL, sealed_files

SUFFIX = ".zip"
MEMBERS = 100_000  # files in a bundle, at most
LARGEST = 64_000_000_000  # bytes of a bundle, at most

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_MEMBER = re.compile(
    "|".join(
        (
            *map(re.escape, (SPEC, PROVENANCE, MODELS, SEAL, REPORT)),
            rf"{INPUTS}/[^/\\:]+",
            rf"{RECORDS}/{_NAME}/{_NAME}/{_NAME}/{_NAME}\.parquet",
            rf"{FINDINGS}/{_NAME}/{_NAME}\.(?:parquet|csv|json)",
        )
    )
)
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)  # files that Windows cannot have
_WHEN = (1980, 1, 1, 0, 0, 0)  # the time of every member: the bytes must not tell when a bundle was made
_MODE = (stat.S_IFREG | 0o644) << 16
_PIECE = 1 << 20
_END, _LOCATOR, _END_64 = "<4s4H2LH", "<4sLQL", "<4sQ2H2L4Q"  # what is at the end of a zip archive


def write_bundle(run: RunFolder, out: Path | None = None) -> Path:
    """Write a complete run as one file, by default beside its folder, and return where it is.

    Every file is compared with its checksum on the way. A file that is there already is kept if it is the same
    bundle; any other is left alone, and InputError is raised.
    """
    out = out or run.path.absolute().with_name(run.path.absolute().name + SUFFIX)
    if not run.digest:
        raise InputError(
            f"{run.path} is not complete, or of an old format, so there is nothing to bundle; "
            f"run `clinometer resume {run.path}` first"
        )
    if out.is_dir() or not out.absolute().parent.is_dir():
        why = "it is a folder" if out.is_dir() else "its folder does not exist"
        raise InputError(f"the bundle cannot be written to {out}: {why}")
    checksums = sealed_files(run.path)
    names = [SEAL, REPORT, *sorted(checksums)]
    _check_names(out, names)
    temporary = out.absolute().parent / (TEMPORARY + secrets.token_hex(8))
    try:
        with open(temporary, "xb") as file:
            _write(file, _contents(run, names, checksums))
            file.flush()
            os.fsync(file.fileno())
        if out.exists() and not _equal(out, temporary):
            raise InputError(f"{out} exists and holds something else; remove it, or give another name with --out")
        os.replace(temporary, out)
    except OSError as error:
        raise InputError(f"the bundle cannot be written to {out}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return out


def _contents(run: RunFolder, names: Iterable[str], checksums: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield each file of the run; raise StoreError for one that is missing, or not as it was written."""
    for name in names:
        try:
            data = read_plain(run.path / name)
        except OSError as error:
            advice = f"run `clinometer {'report' if name == REPORT else 'verify'} {run.path}`"
            raise StoreError(f"{run.path / name} cannot be read: {error.strerror}; {advice}") from error
        if name in checksums and hashlib.sha256(data).hexdigest() != checksums[name]:
            raise StoreError(
                f"{run.path / name} is not as it was written, so nothing was bundled; "
                f"run `clinometer verify {run.path}`"
            )
        yield name, data


def _write(file: IO[bytes], contents: Iterable[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(file, "w", compression=zipfile.ZIP_STORED) as archive:
        for name, data in contents:
            member = zipfile.ZipInfo(name, date_time=_WHEN)
            member.create_system = 3  # whatever system it is made on
            member.external_attr = _MODE
            archive.writestr(member, data)


def _equal(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    return _sha256(one) == _sha256(other)


def _sha256(path: Path) -> bytes:
    checksum = hashlib.sha256()
    with open_plain(path) as file:
        while piece := file.read(_PIECE):
            checksum.update(piece)
    return checksum.digest()


def open_bundle(path: str | Path) -> RunFolder:
    """Open a bundle to read it: its files go to a temporary folder that lives as long as what is returned.

    Raises InputError for a file that is not a bundle, and for one that could do harm; nothing is written then.
    """
    path = Path(path)
    try:
        with open_plain(path) as file, _archive(path, file) as archive:
            members = _checked(path, file, archive)
            place = Path(tempfile.mkdtemp(prefix="clinometer-"))
            try:
                run = _opened(path, archive, members, place / _folder_name(path))
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error.strerror or error}") from error
    run.origin = path
    weakref.finalize(run, shutil.rmtree, place, ignore_errors=True)
    return run


def _opened(path: Path, archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo], root: Path) -> RunFolder:
    size, free = sum(member.file_size for member in members), shutil.disk_usage(root.parent).free
    if size > free:
        raise OSError(
            errno.ENOSPC, f"its files need {size:,} bytes in {root.parent}, {free:,} are free (set TMPDIR)"
        )
    for member in members:
        _extract(path, archive, member, root)
    try:
        return RunFolder.open(root)
    except ClinometerError as error:
        raise type(error)(str(error).replace(str(root), str(path))) from error


def open_any(path: str | Path) -> RunFolder:
    """Open a run folder, or a bundle, to read it."""
    return open_bundle(path) if Path(path).is_file() else RunFolder.open(path)


def _archive(path: Path, file: IO[bytes]) -> zipfile.ZipFile:
    """Read the list of members, after seeing that it is not too long to be read."""
    if _directory_size(file) > DOCUMENT:
        raise _refused(path, f"its list of files has more than {DOCUMENT:,} bytes")
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise InputError(
            f"{path} is not a bundle ({error}); give the folder of a run, or a file that `clinometer bundle` wrote"
        ) from error


def _directory_size(file: IO[bytes]) -> int:
    """Return how long the archive says that its list of members is; 0 where it does not say it as ours do."""
    size, found = os.fstat(file.fileno()).st_size, 0
    end, locator = struct.calcsize(_END), struct.calcsize(_LOCATOR)
    file.seek(max(0, size - end - locator))
    tail = file.read(end + locator)
    if tail[-end:][:4] == b"PK\5\6":
        found = struct.unpack(_END, tail[-end:])[5]
    if tail[:4] == b"PK\6\7":  # an archive of more than 4 GB, or of more than 65,535 files
        file.seek(min(struct.unpack(_LOCATOR, tail[:locator])[2], size))
        record = file.read(struct.calcsize(_END_64))
        found = struct.unpack(_END_64, record)[8] if record[:4] == b"PK\6\6" and len(record) == 56 else size
    file.seek(0)
    return int(found)


def _checked(path: Path, file: IO[bytes], archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the members; raise InputError unless every one is a plain, stored file with a place in a run."""
    members = archive.infolist()
    if archive.comment or not members:
        raise _refused(path, "it has a comment" if archive.comment else "it is empty")
    if len(members) > MEMBERS:
        raise _refused(path, f"it has {len(members):,} files, more than {MEMBERS:,}")
    # `filename` is cut at a zero byte and has slashes turned; what is in the archive is `orig_filename`
    _check_names(path, [member.orig_filename for member in members])
    for member in members:
        name = member.orig_filename
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise _refused(path, f"{name!r} is {'a link' if kind == stat.S_IFLNK else 'not a plain file'}")
        if member.flag_bits & 0x1:
            raise _refused(path, f"{name!r} is encrypted")
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise _refused(path, f"{name!r} is packed; the files of a bundle are stored as they are")
        if member.file_size > TEXT:
            raise _refused(path, f"{name!r} has {member.file_size:,} bytes, more than {TEXT:,}")
    size, total = os.fstat(file.fileno()).st_size, sum(member.file_size for member in members)
    if size > LARGEST:
        raise _refused(path, f"it has {size:,} bytes, more than {LARGEST:,}")
    if total > size:  # files that share bytes: a few kilobytes could say that they hold gigabytes
        raise _refused(path, f"its files have {total:,} bytes, more than the bundle itself")
    return members


def _check_names(path: Path, names: Iterable[str]) -> None:
    """Raise InputError for a name that has no place in a run, or that some system takes for another one."""
    taken: set[str] = set()
    spelled: dict[str, str] = {}  # how each file and folder is written, by how any system may read it
    for name in names:
        parts = name.split("/")
        if not _MEMBER.fullmatch(name) or not name.isprintable() or not all(map(_is_ordinary, parts)):
            raise _refused(path, f"{name!r} has no place in a run")
        for depth in range(1, len(parts) + 1):
            place = "/".join(parts[:depth])
            if spelled.setdefault(unicodedata.normalize("NFC", place).casefold(), place) != place:
                raise _refused(path, f"{name!r} is written like another name but for upper and lower case")
        if name in taken:
            raise _refused(path, f"{name!r} is there twice")
        taken.add(name)


def _is_ordinary(part: str) -> bool:
    return part not in (".", "..") and part.rstrip(". ") == part and not _DEVICES.fullmatch(part)


def _extract(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, root: Path) -> None:
    """Write one file below the temporary folder; its checksum in the archive is compared on the way."""
    place = root / member.orig_filename
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with archive.open(member) as source, open(place, "xb") as target:
            shutil.copyfileobj(source, target, _PIECE)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, struct.error) as error:
        raise StoreError(f"{path}: {member.orig_filename} is damaged ({error}); get the bundle again") from error


def _folder_name(path: Path) -> str:
    """Name the folder of a bundle's files as the run was named, for whoever reads a message about them."""
    stem = path.name.removesuffix(SUFFIX)
    return stem if re.fullmatch(_NAME, stem) and len(stem) <= 100 and _is_ordinary(stem) else "run"


def _refused(path: Path, why: str) -> InputError:
    return InputError(f"{path} is not opened: {why}; make the bundle again with `clinometer bundle RUN`")
