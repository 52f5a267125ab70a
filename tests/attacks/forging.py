"""What a stranger who knows the format does after changing a run: make every checksum fit again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from clinometer.store.documents import MODELS, PROVENANCE, SPEC, to_bytes, with_checksums
from clinometer.store.inside import plain_files
from clinometer.store.seal import SEAL, write_seal


def forge(path: Path) -> None:
    """Write the checksums of a run anew, as its maker could: of documents and findings, and the seal."""
    provenance = json.loads((path / PROVENANCE).read_text())
    documents = {name: (path / name).read_bytes() for name in (SPEC, MODELS)}
    documents |= {name: (path / name).read_bytes() for name in provenance["sha256"] if name.startswith("inputs/")}
    (path / PROVENANCE).write_bytes(to_bytes(with_checksums(provenance, documents)))
    for index in path.glob("findings/*/index.json"):
        document = json.loads(index.read_text())
        document["sha256"] = {name: sha256(index.parent / name) for name in document["sha256"]}
        index.write_text(json.dumps(document, indent=1) + "\n")
    if (path / SEAL).exists():
        listed = [
            PROVENANCE,
            *documents,
            *plain_files(path, below="records"),
            *plain_files(path, below="findings"),
        ]
        write_seal(path, {name: sha256(path / name) for name in listed})


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
