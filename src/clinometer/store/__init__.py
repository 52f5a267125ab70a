"""The run folder: what was asked, answered and concluded, on disk, checksummed and resumable."""

from clinometer.store.atomic import write_atomically
from clinometer.store.done import Done
from clinometer.store.findings import same_findings
from clinometer.store.names import StageKey
from clinometer.store.parts import DamagedPart
from clinometer.store.run import INPUTS, RunFolder, refuse_occupied
from clinometer.store.schema import Row
from clinometer.store.writer import RecordWriter

__all__ = [
    "INPUTS",
    "DamagedPart",
    "Done",
    "RecordWriter",
    "Row",
    "RunFolder",
    "StageKey",
    "refuse_occupied",
    "same_findings",
    "write_atomically",
]
