"""An audit from spec to findings: the one room where probes, engine and store meet."""

from clinometer.workflows.audit import resume_audit, start_audit
from clinometer.workflows.checkpoints import CheckpointAudit
from clinometer.workflows.checks import check_spec
from clinometer.workflows.plans import probes_for
from clinometer.workflows.pool import Execution
from clinometer.workflows.verify import Verification, verify_audit

__all__ = [
    "CheckpointAudit",
    "Execution",
    "Verification",
    "check_spec",
    "probes_for",
    "resume_audit",
    "start_audit",
    "verify_audit",
]
