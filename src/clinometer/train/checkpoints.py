"""The finished checkpoint: a model folder like any other, with a card that says how it was made."""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from clinometer.errors import InputError
from clinometer.models.files import CARD, tokenizer_files
from clinometer.train.base import BaseModel
from clinometer.train.loop import quiet
from clinometer.train.work import Settings, WorkFolder, refuse_other_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A tuned model on disk: its folder, what `ModelInfo.tuning` will say of it, and what was measured."""

    folder: Path
    tuning: Mapping[str, str]
    figures: Mapping[str, Any]


def finished(out: Path, settings: Settings) -> Checkpoint | None:
    """Return the checkpoint that is there already; None where there is none.

    Raises InputError where something else has that name, or a checkpoint of other settings.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    card = _read_card(out)
    if not {"tuning", "settings", "figures"} <= set(card):
        raise InputError(f"{out} exists and is no checkpoint of ours; name another place with --out")
    refuse_other_settings(settings, card["settings"], place=out, state="there is a checkpoint made")
    WorkFolder(out).remove()  # of a training that was killed after its last word
    return Checkpoint(folder=out, tuning=card["tuning"], figures=card["figures"])


def finish(
    work: WorkFolder,
    base: BaseModel,
    *,
    title: str,
    tuning: Mapping[str, str],
    settings: Settings,
    figures: Mapping[str, Any],
    limits: str,
) -> Checkpoint:
    """Write config, tokenizer, weights and card, and give the folder its name.

    Nothing in it depends on the time or the place: the same training writes the same bytes.
    """
    card = {
        "title": title,
        "licence": f"{base.licence}; the terms of the training texts apply as well",
        "tuning": dict(tuning),
        "settings": dict(settings),
        "figures": dict(figures),
        "made_with": {name: importlib.metadata.version(name) for name in ("torch", "transformers")},
        "limits": {"text": limits},
    }

    def write_model(folder: Path) -> None:
        with quiet():
            base.model.save_pretrained(folder)

    # the tokenizer's own files, so that its checksum stays
    work.finish(files=tokenizer_files(base.folder), card=tomli_w.dumps(card).encode(), write_model=write_model)
    return Checkpoint(folder=work.out, tuning=tuning, figures=figures)


def _read_card(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / CARD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
