"""The user's data folder: data sets that may not be packaged, added once and then used by every audit."""

from __future__ import annotations

import os
from pathlib import Path


def user_folder() -> Path:
    """Return where added data sets are kept: `$CLINOMETER_DATA`, else a folder in the user's data directory."""
    if chosen := os.environ.get("CLINOMETER_DATA"):
        return Path(chosen)
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "clinometer"


def added_file(name: str) -> Path | None:
    """Return the file of a data set that the user has added; None where there is none."""
    file = user_folder() / name / "data"
    return file if file.is_file() else None
