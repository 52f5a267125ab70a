"""The run folder on disk: what was asked, answered and concluded, with checksums, ready to resume."""

from clinometer.store.atomic import explain_os_errors, make_folder, write_atomically
from clinometer.store.findings import Comparison, compare_findings, findings_digest, table_frame
from clinometer.store.names import StageKey
from clinometer.store.parts import DamagedPart, Done
from clinometer.store.run import FORMAT, INPUTS, RunFolder, RunModels, refuse_occupied
from clinometer.store.schema import Row
from clinometer.store.writer import RecordWriter

__all__ = [
    "FORMAT",
    "INPUTS",
    "Comparison",
    "DamagedPart",
    "Done",
    "RecordWriter",
    "Row",
    "RunFolder",
    "RunModels",
    "StageKey",
    "compare_findings",
    "explain_os_errors",
    "findings_digest",
    "make_folder",
    "refuse_occupied",
    "table_frame",
    "write_atomically",
]
