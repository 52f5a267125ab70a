"""The workflows of a run, as tests call them: the requests in one line."""

from clinometer.store import RunFolder
from clinometer.workflows import (
    AuditRequest,
    Execution,
    ResumeRequest,
    VerifyRequest,
    run_audit,
    run_resume,
    run_verify,
)


def start_audit(spec, folder, *, loaded=None, execution=None, progress=None, probes=()) -> RunFolder:
    request = AuditRequest(
        spec=spec, folder=folder, models=loaded or {}, probes=probes, execution=execution or Execution()
    )
    return run_audit(request, progress=progress).folder


def resume_audit(run, *, loaded=None, execution=None, progress=None) -> RunFolder:
    request = ResumeRequest(run=run, models=loaded or {}, execution=execution or Execution())
    return run_resume(request, progress=progress).folder


def verify_audit(run):
    return run_verify(VerifyRequest(run=getattr(run, "folder", run)))
