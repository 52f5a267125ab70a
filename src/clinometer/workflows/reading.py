"""What the reader of a report needs beside the numbers of an audit: how to read them, and what they do not show.

Ours is in `probes/reading.toml`. An audit of another package may have a `reading` of its own.
"""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

from clinometer.probes.protocol import Probe, Reading


def reading_of(probe: Probe) -> Reading:
    """Return how an audit is read; nothing for one that does not say."""
    own = getattr(probe, "reading", None)
    return own if isinstance(own, Reading) else _ours().get(probe.name, Reading())


@functools.cache
def _ours() -> dict[str, Reading]:
    text = resources.files("clinometer.probes").joinpath("reading.toml").read_text(encoding="utf-8")
    return {
        name: Reading(how=tuple(each["how"]), not_shown=tuple(each["not_shown"]), bibtex=each["bibtex"].strip())
        for name, each in tomllib.loads(text).items()
    }
