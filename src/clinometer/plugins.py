"""What other packages add: models, audits and executors, found by entry points and imported when asked for."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from clinometer.errors import InputError

MODELS, PROBES, EXECUTORS = "clinometer.models", "clinometer.probes", "clinometer.executors"


@functools.cache
def entry_points(group: str) -> Mapping[str, importlib.metadata.EntryPoint]:
    """Return what installed packages register in a group, by name; nothing is imported."""
    return {each.name: each for each in importlib.metadata.entry_points(group=group)}


def package_of(group: str, name: str) -> str:
    """Return the package that registered a name, with its version; Clinometer itself if none did."""
    point = entry_points(group).get(name)
    if point is None:
        return "Clinometer"
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"


@functools.cache
def load_plugin(group: str, name: str) -> Any:
    """Import what a package registered; raise InputError that names the package when that fails."""
    point = entry_points(group)[name]
    package = point.dist.name if point.dist else "an installed package"
    try:
        found = point.load()
    except Exception as error:  # whatever foreign code raises, the user must learn whose it is
        raise InputError(
            f"{name!r} of {package} ({point.value}) cannot be imported: {type(error).__name__}: {error}; "
            f"repair or uninstall {package}"
        ) from error
    return found
