"""Audit specs as TOML files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from clinometer.errors import SpecError, nearest
from clinometer.limits import parse_json, parse_toml, read_limited
from clinometer.types import SPEC_VERSION, AuditSpec, ModelSpec

T = TypeVar("T")


def read_spec(path: Path) -> AuditSpec:
    """Read a spec file."""
    try:
        text = read_limited(path).decode("utf-8")
    except OSError as error:
        raise SpecError(f"cannot read the spec {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SpecError(f"the spec {path} is not text; expected a TOML file in UTF-8") from None
    spec = _placed(parse_spec(text, origin=str(path)), path.parent / "places.json")
    return with_folders(with_files(spec, lambda file: str(path.parent / file)), base=path.parent)


def _placed(spec: AuditSpec, places: Path) -> AuditSpec:
    """Return the spec of a run with the folders of its models, which the file beside it knows."""
    try:
        known = parse_json(read_limited(places)) if places.is_file() else {}
    except (OSError, ValueError) as error:
        raise SpecError(f"{places} cannot be used ({error}); remove it, and name the models' folders") from None
    if not known or not isinstance(known, dict):
        return spec

    def placed(model: ModelSpec) -> ModelSpec:
        place = known.get(model.name)
        return dataclasses.replace(model, name=place) if isinstance(place, str) else model

    roles = {role: tuple(map(placed, players)) for role, players in spec.roles.items()}
    return dataclasses.replace(spec, models=tuple(map(placed, spec.models)), roles=roles)


def parse_spec(text: str, *, origin: str = "spec") -> AuditSpec:
    """Turn TOML into a spec; the error for an unknown key names the nearest one.

    >>> parse_spec('version = 1\\nprobes = ["counterexamples"]\\nmodels = [{name = "gpt2"}]').models[0].name
    'gpt2'
    """
    try:
        values = parse_toml(text)
    except ValueError as error:
        raise SpecError(f"{origin} is not valid TOML: {error}") from None
    version = values.get("version")
    if version != SPEC_VERSION:
        found = "no version" if version is None else f"version {version!r}"
        raise SpecError(
            f"{origin} has {found}, this Clinometer reads version {SPEC_VERSION}: "
            f"write `version = {SPEC_VERSION}` and check the keys against docs/guide.md"
        )
    return build(AuditSpec, values, where=origin)


def dump_spec(spec: AuditSpec) -> str:
    """Write a spec as TOML; `parse_spec` reads it back."""
    import tomli_w

    values = dataclasses.asdict(spec)
    for model in [*values["models"], *(model for players in values["roles"].values() for model in players)]:
        for optional in ("label_map", "alias", "kind"):
            if not model[optional]:
                del model[optional]
    return tomli_w.dumps(values)


def with_files(spec: AuditSpec, place: Callable[[str], str]) -> AuditSpec:
    """Change the path of every file that the options name (`…_file = "path"`).

    >>> spec = AuditSpec(probes=(), models=(), options={"stigma": {"words_file": "a.csv", "top_k": 3}})
    >>> with_files(spec, "folder/{}".format).options["stigma"]
    {'words_file': 'folder/a.csv', 'top_k': 3}
    """
    options = {
        probe: {name: place(value) if is_file_option(name, value) else value for name, value in values.items()}
        for probe, values in spec.options.items()
    }
    return dataclasses.replace(spec, options=options)


def with_folders(spec: AuditSpec, *, base: Path) -> AuditSpec:
    """Give models that are folders, relative to `base`, their full path: a run can be resumed from anywhere."""

    def placed(model: ModelSpec) -> ModelSpec:
        folder = base / Path(model.name).expanduser()
        # a name that is enormously long or has a NUL is not a folder, and will be refused as a model
        is_folder = len(model.name) < 4096 and "\0" not in model.name and folder.is_dir()
        return dataclasses.replace(model, name=str(folder.resolve())) if is_folder else model

    roles = {role: tuple(map(placed, players)) for role, players in spec.roles.items()}
    return dataclasses.replace(spec, models=tuple(map(placed, spec.models)), roles=roles)


def is_file_option(name: str, value: object) -> bool:
    """Tell whether an option names a file of the user; its name ends with `_file`."""
    return name.endswith("_file") and isinstance(value, str) and bool(value)


def build(cls: type[T], values: Mapping[str, Any], *, where: str) -> T:
    """Make a spec or a probe's options from plain values, checking every key and type.

    Values from TOML (lists) and from Python (tuples) are checked alike.
    """
    from pydantic import TypeAdapter, ValidationError

    _check_keys(cls, values, where=where)
    try:
        # strict JSON mode: "3" is not a number and 1 is not true, but an array may become a tuple; what JSON
        # lacks, such as a date, goes in as text and is refused as the wrong type
        return TypeAdapter(cls).validate_json(json.dumps(values, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise SpecError(f"{where}: {key}: {first['msg']}; found {_shown(first['input'])}") from None


def _check_keys(cls: type[Any], values: Mapping[str, Any], *, where: str) -> None:
    valid = [field.name for field in dataclasses.fields(cls)]
    for key in values:
        if key not in valid:
            raise SpecError(f"{where}: unknown key {key!r}; {nearest(str(key), valid)}")
    if cls is not AuditSpec:
        return
    roles = values.get("roles", {})
    named = {f"roles.{role}": players for role, players in roles.items()} if isinstance(roles, Mapping) else {}
    for part, models in {"models": values.get("models", ()), **named}.items():
        for number, model in enumerate(models if isinstance(models, (list, tuple)) else (), start=1):
            if isinstance(model, str):
                raise SpecError(
                    f"{where}: {part}, entry {number}: found {_shown(model)}, expected {{name = {_shown(model)}}}"
                )
            if isinstance(model, Mapping):
                _check_keys(ModelSpec, model, where=f"{where}: {part}, entry {number}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
