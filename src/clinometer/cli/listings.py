"""`clinometer models` and `clinometer probes`: what there is to audit, and which audits there are."""

from __future__ import annotations

import dataclasses
import tomllib
from typing import Annotated, Any

import typer

from clinometer.cli.terminal import show


def models(
    name: Annotated[
        str | None, typer.Argument(help="Show the whole card of this built-in model.", show_default=False)
    ] = None,
) -> None:
    """List the built-in models with size, licence, source and checksum, or show the card of one."""
    from clinometer.models.builtin import catalogue, entry
    from clinometer.plugins import MODELS, entry_points, package_of

    for model in catalogue() if name is None else [entry(name)]:
        show(f"{model.name}: {model.about}")
        show(f"  kind      {model.kind}")
        show(f"  size      {model.size / 1e6:.1f} MB")
        show(f"  licence   {model.licence}")
        show(f"  source    {model.source}")
        show(f"  sha256    {model.checksum}")
        if model.card and name is None:
            show(f"  card      clinometer models {model.name}")
        elif model.card:
            _print_card(tomllib.loads(model.card), indent=2)
    if name is None:
        for provider in sorted(entry_points(MODELS)):
            show(f"{provider}: more models, opened by name")
            show(f"  source    {package_of(MODELS, provider)}")


def probes() -> None:
    """List the audits, what they ask, and their options with the value in each profile."""
    from clinometer.plugins import PROBES as GROUP
    from clinometer.plugins import package_of
    from clinometer.probes import PROBES

    for name, probe in sorted(PROBES.items()):
        show(f"{name}: {probe.title}")
        show(f"  {probe.question}")
        show(f"  Needs a model that offers {' or '.join(probe.capabilities)}. After {probe.paper}.")
        show(f"  From {package_of(GROUP, name)}.")
        show("  Options (--set):")
        for field in dataclasses.fields(probe.options):
            changes = [
                f"{profile}: {values[field.name]!r}"
                for profile, values in probe.profiles.items()
                if field.name in values
            ]
            shown = f"  ({', '.join(changes)})" if changes else ""
            show(f"    {name}.{field.name} = {field.default!r}{shown}")


def _print_card(part: dict[str, Any], *, indent: int) -> None:
    for name, value in part.items():
        if isinstance(value, dict):
            show(f"{' ' * indent}{name}")
            _print_card(value, indent=indent + 2)
        else:
            first, *more = str(value).strip().splitlines() or [""]
            show(f"{' ' * indent}{name}: {first}")
            for line in more:
                show(line)
