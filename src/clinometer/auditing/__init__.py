"""An audit from spec to findings: the one room where probes, engine and store meet."""

from clinometer.auditing.checks import check_spec
from clinometer.auditing.plans import probes_for
from clinometer.auditing.pool import Execution
from clinometer.auditing.runs import resume_audit, start_audit
from clinometer.auditing.verify import Verification, verify_audit

__all__ = ["Execution", "Verification", "check_spec", "probes_for", "resume_audit", "start_audit", "verify_audit"]
