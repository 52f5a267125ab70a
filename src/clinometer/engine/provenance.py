"""The versions and the machine that made a run, or a part of it, for whoever checks it later."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sys
from typing import Any

DRAWING_LIBRARY = "vl-convert-python"  # a page holds a copy of it
_PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "pyarrow", "polars", DRAWING_LIBRARY)


def describe_machine(*, seed: int, release: str) -> dict[str, Any]:
    """Return versions, processor, memory and accelerator, as plain values."""
    return {
        "started": _now(),
        "seed": seed,
        "python": platform.python_version(),
        "packages": {"clinometer": release, **{name: package_version(name) for name in _PACKAGES}},
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "accelerator": _accelerator(),
    }


def describe_session(*, release: str, device: str) -> dict[str, Any]:
    """Return who computes now: what may move the last bits of an answer. Ask once the model is loaded.

    `device` is the one that was asked for; "auto" is the GPU where there is one.
    """
    torch = sys.modules.get("torch")  # without torch, a model is Python code
    accelerated = device != "cpu" and _accelerator() != "none"
    return {
        "clinometer": release,
        "torch": package_version("torch"),
        "transformers": package_version("transformers"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": _accelerator() if accelerated else "cpu",
        "threads": int(torch.get_num_threads()) if torch is not None else 1,
    }


def use_threads(threads: int) -> None:
    """Let torch compute with so many threads, where it is used and computes on the CPU."""
    torch = sys.modules.get("torch")
    if torch is not None and not torch.cuda.is_available() and torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def with_time(session: dict[str, Any]) -> dict[str, Any]:
    """Return a session with the time at which it is recorded."""
    return {"recorded": _now(), **session}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def package_version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _accelerator() -> str:
    torch = sys.modules.get("torch")  # without torch there is none to report
    if torch is None or not torch.cuda.is_available():
        return "none"
    return str(torch.cuda.get_device_name())
