"""Clinometer measures which way a language model leans, and helps to reduce the lean.

>>> import clinometer
>>> run = clinometer.audit("builtin:causal", probes=["counterexamples"], profile="quick")  # doctest: +SKIP
>>> run.headlines  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clinometer.front import (
        audit,
        bundle,
        compare,
        load_model,
        mitigate,
        open_run,
        replicate,
        resume,
        shift,
        tune,
        verify,
        write_report,
    )

__version__ = "0.2.0"

__all__ = [
    "__version__", "audit", "bundle", "compare", "load_model", "mitigate", "open_run", "replicate", "resume",
    "shift", "tune", "verify", "write_report",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # the front door opens at once; what is behind it (torch, polars, …) comes when it is called
    if name in __all__:
        return getattr(importlib.import_module("clinometer.front"), name)
    raise AttributeError(f"module 'clinometer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
