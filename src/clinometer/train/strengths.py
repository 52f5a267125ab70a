"""Several mitigations of one model: every method with every strength, and what they have in common made once."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clinometer.errors import InputError, nearest
from clinometer.train.checkpoints import Checkpoint
from clinometer.train.material import Material
from clinometer.train.mitigation import mitigate
from clinometer.train.progress import Quiet, TrainingProgress
from clinometer.train.sentiment_step import LabellingSettings, fit_projection
from clinometer.train.settings import METHODS, MitigationMethod, MitigationSettings
from clinometer.types import Dtype

_PROJECTION = "sentiment-projection.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One of the checkpoints to make: its folder's name and its settings."""

    name: str
    settings: MitigationSettings


def variants(
    methods: Sequence[str], strengths: Sequence[float], *, model: str, attribute: str, common: MitigationSettings
) -> tuple[Variant, ...]:
    """Return what is to be trained, by method and strength; strength 0 is one control for all methods.

    >>> found = variants(["embedding"], [0, 10], model="gpt2", attribute="name", common=MitigationSettings())
    >>> [each.name for each in found]
    ['gpt2-name-control', 'gpt2-name-embedding-10']
    """
    usual = [method for method in METHODS if method != "control"]
    chosen: list[MitigationMethod] = []
    for method in methods:
        known: Mapping[str, MitigationMethod] = {name: name for name in usual}
        if method not in known:
            raise InputError(f"no method {method!r}; {nearest(method, usual)}; the control is --strength 0")
        chosen.append(known[method])
    if not chosen or not strengths:
        raise InputError("name at least one method and one strength, such as --method embedding --strength 10")
    shown = collections.Counter(f"{strength:g}" for strength in set(strengths))
    if repeated := [strength for strength, count in shown.items() if count > 1]:
        raise InputError(f"several strengths are written {repeated[0]}; give strengths that differ more")
    stem = f"{model}-{re.sub(r'[^A-Za-z0-9._]+', '-', attribute)}"
    control = [Variant(name=f"{stem}-control", settings=replace(common, method="control", strength=0.0))]
    return (
        *(control if 0 in strengths else []),
        *(
            Variant(
                name=f"{stem}-{method}-{strength:g}", settings=replace(common, method=method, strength=strength)
            )
            for method in dict.fromkeys(chosen)
            for strength in sorted(set(strengths) - {0})
        ),
    )


def mitigate_all(
    model: str,
    material: Material,
    wanted: Sequence[Variant],
    *,
    out: str | os.PathLike[str],
    labelling: LabellingSettings | None = None,
    device: str = "auto",
    dtype: Dtype = "auto",
    save_seconds: float = 60.0,
    progress: TrainingProgress | None = None,
) -> tuple[Checkpoint, ...]:
    """Train every variant into a folder of its own below `out`, or go on where that was interrupted."""
    place, progress = Path(out), progress or Quiet()
    projection = None
    if any(each.settings.method == "sentiment" for each in wanted):
        projection = fit_projection(
            model,
            material,
            out=place / _PROJECTION,
            settings=labelling,
            device=device,
            dtype=dtype,
            progress=progress,
        )
    return tuple(
        mitigate(
            model,
            material,
            out=place / each.name,
            settings=each.settings,
            projection=projection if each.settings.method == "sentiment" else None,
            device=device,
            dtype=dtype,
            save_seconds=save_seconds,
            progress=progress,
        )
        for each in wanted
    )
