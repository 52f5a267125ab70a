"""The audits, by name. Each is imported when it is first asked for, so that looking at the names costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from clinometer.errors import SpecError, nearest

if TYPE_CHECKING:
    from clinometer.probes.protocol import Probe

__all__ = ["PROBES", "get_probe"]

# name -> the module whose `PROBE` it is
_MODULES = {
    "counterexamples": "clinometer.probes.counterexamples",
    "counterfactual": "clinometer.probes.counterfactual",
    "sentiment_words": "clinometer.probes.sentiment_words",
    "stigma": "clinometer.probes.stigma",
    "stereotypes": "clinometer.probes.stereotypes",
}


@cache
def _load(module: str) -> Probe:
    probe: Probe = import_module(module).PROBE
    return probe


class _Registry(Mapping[str, "Probe"]):
    """All audits; a value is imported when it is read."""

    def __getitem__(self, name: str) -> Probe:
        return _load(_MODULES[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


PROBES: Mapping[str, Probe] = _Registry()


def get_probe(name: str) -> Probe:
    """Return the audit of that name.

    >>> get_probe("counterexamples").name
    'counterexamples'
    """
    if name not in PROBES:
        raise SpecError(f"no probe '{name}'; {nearest(name, PROBES)}")
    return PROBES[name]
