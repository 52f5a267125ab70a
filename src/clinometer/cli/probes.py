"""`clinometer probes`: which audits there are, and their options."""

from __future__ import annotations

import dataclasses


def probes() -> None:
    """List the audits, what they ask, and their options with the value in each profile."""
    from clinometer.probes import PROBES

    for name, probe in sorted(PROBES.items()):
        print(f"{name}: {probe.title}")
        print(f"  {probe.question}")
        print(f"  Needs a model that offers {' or '.join(probe.capabilities)}. After {probe.paper}.")
        print("  Options (--set):")
        for field in dataclasses.fields(probe.options):
            changes = [
                f"{profile}: {values[field.name]!r}"
                for profile, values in probe.profiles.items()
                if field.name in values
            ]
            shown = f"  ({', '.join(changes)})" if changes else ""
            print(f"    {name}.{field.name} = {field.default!r}{shown}")
