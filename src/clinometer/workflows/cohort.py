"""A cohort: many models and audits in one spec, one run that can be resumed, and a comparison at its end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from clinometer.engine import Progress
from clinometer.probes.protocol import Probe
from clinometer.store import RunFolder
from clinometer.store.documents import COMPARISON

COHORT = "cohort"  # in provenance.json: the run was begun as one


def compare_cohort(run: RunFolder, *, probes: Iterable[Probe], progress: Progress) -> Path | None:
    """Write the comparison of the models of a cohort into its run; None for any other run."""
    if not run.provenance.get(COHORT):
        return None
    from clinometer.workflows.compare import CompareRequest, run_compare

    progress.note(f"comparing {len(run.models)} models")
    compared = run_compare(CompareRequest(sources=(run,), probes=tuple(probes)))
    return Path(compared.write_page(run.path / COMPARISON))
