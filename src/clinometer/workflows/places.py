"""Where the folders of a run's models are on this machine: known to its owner, and not part of the run.

A spec that says `/home/ann/models/bert` tells strangers who Ann is, and helps none of them. So the spec of a run
names a folder by the label of its model, and `places.json` beside it says where that folder is here. Whoever
shares a run leaves that file out; whoever resumes it elsewhere says where the model is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath

from clinometer.errors import StoreError
from clinometer.limits import parse_json
from clinometer.store import PLACES
from clinometer.store.inside import read_plain
from clinometer.types import AuditSpec, ModelSpec
from clinometer.workflows.plans import all_models, labels_of

_FOLDER = "folder:"  # begins the name of a model whose place is in places.json; no hub id has a colon
_ANSWERS = "answers:"  # begins the place of a file of answers
_WEIGHTS = ".gguf"  # ends the place of a file that is a model itself


def without_places(spec: AuditSpec) -> tuple[AuditSpec, dict[str, str]]:
    """Return the spec with folders named by their labels, and where those folders are.

    >>> kept, places = without_places(AuditSpec(probes=(), models=(ModelSpec(name="/home/ann/bert"),)))
    >>> kept.models[0].name, kept.models[0].alias, places
    ('folder:bert', 'bert', {'folder:bert': '/home/ann/bert'})
    """
    models = all_models(spec)
    labels = dict(zip(map(repr, models), labels_of(models), strict=True))
    places: dict[str, str] = {}

    def kept(model: ModelSpec) -> ModelSpec:
        if not PurePath(model.name.removeprefix(_ANSWERS)).is_absolute():
            return model
        label = labels[repr(model)]
        places[_FOLDER + label] = model.name
        return replace(model, name=_FOLDER + label, alias=label)

    return _each(spec, kept), places


def with_places(spec: AuditSpec, folder: Path, *, given: Mapping[str, str] | None = None) -> AuditSpec:
    """Return the spec of the run in a folder with its models' folders where they are on this machine.

    `given` says so for models by their labels; the rest is in places.json. A folder of which nobody says where it
    is keeps its name, and is refused when it is opened.
    """
    places = _read(folder)
    places |= {_FOLDER + label: _placed(Path(place).resolve()) for label, place in (given or {}).items()}
    return _each(spec, lambda model: replace(model, name=places.get(model.name, model.name)))


def _placed(place: Path) -> str:
    """Return the name of a model that is at a place: a folder, a file of weights, or a file of answers."""
    is_answers = place.is_file() and place.suffix.lower() != _WEIGHTS
    return f"{_ANSWERS}{place}" if is_answers else str(place)


def _read(folder: Path) -> dict[str, str]:
    path = folder / PLACES
    try:
        places = parse_json(read_plain(path)) if path.exists() else {}
        if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
            raise ValueError("expected the place of each folder")
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be used ({error}); remove it, and say where the models are") from error
    return places


def _each(spec: AuditSpec, change: Callable[[ModelSpec], ModelSpec]) -> AuditSpec:
    roles = {role: tuple(map(change, players)) for role, players in spec.roles.items()}
    return replace(spec, models=tuple(map(change, spec.models)), roles=roles)
