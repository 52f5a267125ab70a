"""`clinometer models`: what there is to audit without a network."""

from __future__ import annotations


def models() -> None:
    """List the built-in models with size, licence, source and checksum."""
    from clinometer.models.builtin import catalogue

    for model in catalogue():
        print(f"{model.name}: {model.about}")
        print(f"  kind      {model.kind}")
        print(f"  size      {model.size / 1e6:.1f} MB")
        print(f"  licence   {model.licence}")
        print(f"  source    {model.source}")
        print(f"  sha256    {model.checksum}")
