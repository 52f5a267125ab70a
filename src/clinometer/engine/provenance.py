"""The versions and the machine that made a run, for whoever checks it later."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sys
from typing import Any

_PACKAGES = ("clinometer", "torch", "transformers", "tokenizers", "numpy", "scipy", "pyarrow", "polars")


def describe_machine(*, seed: int) -> dict[str, Any]:
    """Return versions, processor, memory and accelerator, as plain values."""
    return {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "accelerator": _accelerator(),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _accelerator() -> str:
    torch = sys.modules.get("torch")  # without torch there is none to report
    if torch is None or not torch.cuda.is_available():
        return "none"
    return str(torch.cuda.get_device_name())
