"""`clinometer models`: what there is to audit without a network."""

from __future__ import annotations

import tomllib
from typing import Annotated, Any

import typer


def models(
    name: Annotated[
        str | None, typer.Argument(help="Show the whole card of this built-in model.", show_default=False)
    ] = None,
) -> None:
    """List the built-in models with size, licence, source and checksum, or show the card of one."""
    from clinometer.models.builtin import catalogue, entry

    for model in catalogue() if name is None else [entry(name)]:
        print(f"{model.name}: {model.about}")
        print(f"  kind      {model.kind}")
        print(f"  size      {model.size / 1e6:.1f} MB")
        print(f"  licence   {model.licence}")
        print(f"  source    {model.source}")
        print(f"  sha256    {model.checksum}")
        if model.card and name is None:
            print(f"  card      clinometer models {model.name}")
        elif model.card:
            _print_card(tomllib.loads(model.card), indent=2)


def _print_card(part: dict[str, Any], *, indent: int) -> None:
    for name, value in part.items():
        if isinstance(value, dict):
            print(f"{' ' * indent}{name}")
            _print_card(value, indent=indent + 2)
        else:
            print(f"{' ' * indent}{name}: {str(value).strip()}")
