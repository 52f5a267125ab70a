"""The run folder on disk: what was asked, answered and concluded, with checksums, ready to resume."""

from clinometer.store.atomic import explain_os_errors, make_folder, write_atomically
from clinometer.store.bundle import open_any, open_bundle, write_bundle
from clinometer.store.columns import Recorded
from clinometer.store.creation import refuse_occupied
from clinometer.store.documents import FORMAT, INPUTS, LOCK, PLACES
from clinometer.store.empty import empty_records
from clinometer.store.findings import Comparison, changed_csvs, compare_findings, findings_digest, table_frame
from clinometer.store.names import StageKey
from clinometer.store.parts import DamagedPart, Done
from clinometer.store.run import RunFolder, RunModels
from clinometer.store.schema import Row
from clinometer.store.seal import SEAL
from clinometer.store.sharing import fetched, working_folder
from clinometer.store.tags import digest_of_tags, digests_of_tags
from clinometer.store.writer import RecordWriter

__all__ = [
    "FORMAT",
    "INPUTS",
    "LOCK",
    "PLACES",
    "SEAL",
    "Comparison",
    "DamagedPart",
    "Done",
    "RecordWriter",
    "Recorded",
    "Row",
    "RunFolder",
    "RunModels",
    "StageKey",
    "changed_csvs",
    "compare_findings",
    "digest_of_tags",
    "digests_of_tags",
    "empty_records",
    "explain_os_errors",
    "fetched",
    "findings_digest",
    "make_folder",
    "open_any",
    "open_bundle",
    "refuse_occupied",
    "table_frame",
    "working_folder",
    "write_atomically",
    "write_bundle",
]
