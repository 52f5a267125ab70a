"""What a user can have done, one frozen request each: both the library and the command line call these.

`workflows.tune`, `workflows.shift` and `workflows.mitigate`, which train, and `workflows.compare`, which loads the
audits, are imported where they are needed.
"""

from clinometer.workflows.audit import AuditRequest, ResumeRequest, run_audit, run_resume
from clinometer.workflows.checkpoints import CheckpointAudit
from clinometer.workflows.plans import probes_for
from clinometer.workflows.pool import Execution
from clinometer.workflows.report import report_run
from clinometer.workflows.verify import Verification, VerifyRequest, run_verify

__all__ = [
    "AuditRequest",
    "CheckpointAudit",
    "Execution",
    "ResumeRequest",
    "Verification",
    "VerifyRequest",
    "probes_for",
    "report_run",
    "run_audit",
    "run_resume",
    "run_verify",
]
