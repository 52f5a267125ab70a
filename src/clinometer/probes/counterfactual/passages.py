"""The held-out text on which perplexity is measured."""

from __future__ import annotations

import re

from clinometer.data import read_text


def passages(file: str) -> tuple[str, ...]:
    """Return the passages of a text file: what blank lines separate, or its lines where there is no blank line.

    A passage is what the paper calls an article: it counts towards the subset perplexity as a whole.
    """
    text = read_text(file).strip()
    parts = re.split(r"\n\s*\n", text)
    if len(parts) == 1:
        parts = text.splitlines()
    return tuple(part.strip() for part in parts if part.strip())
