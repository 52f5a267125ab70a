"""Writing a sheet: never over another file, for a rater's work may be in it."""

from __future__ import annotations

from pathlib import Path

from clinometer.errors import DataError


def refuse_existing(*paths: Path) -> None:
    """Raise DataError for a path that is taken, before anything is written."""
    for place, path in enumerate(paths):
        if path.exists() or path in paths[:place]:
            raise DataError(f"'{path}' already exists; give another path, for a rater's work may be in it")


def write_new(path: Path, text: str, *, mark: bool = True) -> None:
    """Write a new UTF-8 file; the byte-order mark tells spreadsheets that it is one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8-sig" if mark else "utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        refuse_existing(path)
        raise DataError(f"'{path.parent}' is not a folder; give a path in a folder") from None
    except OSError as error:
        raise DataError(
            f"'{path}' cannot be written ({error.strerror or error}); give a path where you may write"
        ) from None
