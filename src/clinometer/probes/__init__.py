"""The audits, by name. Each is imported when it is first asked for, so that looking at the names costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from clinometer.errors import SpecError, nearest
from clinometer.plugins import PROBES as GROUP
from clinometer.plugins import entry_points, load_plugin

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
    """All audits, ours and those that packages register; a value is imported when it is read."""

    def __getitem__(self, name: str) -> Probe:
        if name in _MODULES:
            return _load(_MODULES[name])
        probe: Probe = load_plugin(GROUP, name)
        if probe.name != name:
            raise SpecError(f"the audit registered as {name!r} calls itself {probe.name!r}; the two must agree")
        return probe

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*_MODULES, *entry_points(GROUP)]))

    def __len__(self) -> int:
        return len(list(iter(self)))


PROBES: Mapping[str, Probe] = _Registry()


def get_probe(name: str) -> Probe:
    """Return the audit of that name.

    >>> get_probe("counterexamples").name
    'counterexamples'
    """
    if name not in PROBES:
        raise SpecError(f"no probe '{name}'; {nearest(name, PROBES)}")
    return PROBES[name]
