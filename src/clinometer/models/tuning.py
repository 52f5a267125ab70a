"""What the card of a checkpoint says about how Clinometer made it."""

from __future__ import annotations

import tomllib
from pathlib import Path

CARD = "card.toml"  # beside the weights; its table [tuning] holds what `ModelInfo.tuning` tells


def tuning_of(folder: Path) -> dict[str, str]:
    """Return the table [tuning] of a checkpoint's card; empty for a model that was not tuned here."""
    try:
        card = tomllib.loads((folder / CARD).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # somebody else's file of that name says nothing about a tuning of ours
        return {}
    table = card.get("tuning")
    return {str(key): str(value) for key, value in table.items()} if isinstance(table, dict) else {}
