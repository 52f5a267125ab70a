"""Where Clinometer keeps what is made once on a machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return where converted models and the scripts of reports are kept.

    That is `$CLINOMETER_CACHE`, else a folder in the user's cache. Whatever is in it can be made again.
    """
    if chosen := os.environ.get("CLINOMETER_CACHE"):
        return Path(chosen).expanduser()
    if users := os.environ.get("XDG_CACHE_HOME"):
        return Path(users) / "clinometer"
    return Path.home() / ".cache" / "clinometer"
