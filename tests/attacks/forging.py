"""What a stranger who knows the format does after changing a run: make every checksum fit again."""

from __future__ import annotations

import json
from pathlib import Path

from clinometer.store.documents import MODELS, PROVENANCE, SPEC, to_bytes, with_checksums


def forge(path: Path) -> None:
    """Write the checksums of a run anew, as its maker could."""
    provenance = json.loads((path / PROVENANCE).read_text())
    documents = {name: (path / name).read_bytes() for name in (SPEC, MODELS)}
    documents |= {name: (path / name).read_bytes() for name in provenance["sha256"] if name.startswith("inputs/")}
    (path / PROVENANCE).write_bytes(to_bytes(with_checksums(provenance, documents)))
