"""Fifty random faults over one run on a Ray cluster of three nodes: nothing lost, nothing twice, the same bytes.

    python benchmarks/ray_faults.py [--faults 50] [--questions 20000] [--seed 0]

Workers are killed with SIGKILL, whole nodes taken away, and nodes join late. The models are fakes whose last
digits depend on the whole batch, as those of a real model do; a run in this process says which bytes are right.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # for tests/, and so that benchmarks/ray.py is not taken for Ray

from tests.ray_faults import Numbers, audit, audit_with_faults, findings_of, three_nodes

import clinometer
from clinometer.workflows import Execution, VerifyRequest, run_verify


def main() -> None:
    """Run, break, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--questions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        here, there = Path(name) / "local", Path(name) / "ray"
        audit(here, Execution(batch_tokens=60), questions=options.questions)
        began = time.monotonic()
        with three_nodes() as (cluster, nodes):
            done = audit_with_faults(
                there, cluster, nodes, count=options.faults, seed=options.seed, questions=options.questions
            )
        counts = ", ".join(f"{count} × {kind}" for kind, count in sorted(collections.Counter(done).items()))
        print(f"{len(done)} faults in {time.monotonic() - began:.0f} s: {counts}")
        run = clinometer.open_run(there)
        recorded = {str(key): len(run.folder.table(key, columns=["index"])) for key in run.folder.stages()}
        wrong = run_verify(VerifyRequest(run=run.folder, probes=(Numbers(),))).problems
        print(f"records: {recorded}; verify: {wrong or 'nothing wrong'}")
        same = findings_of(here) == findings_of(there)
        print("findings are those of the local run, byte for byte" if same else "FINDINGS DIFFER")
        sys.exit(0 if same and not wrong and len(done) >= options.faults else 1)


if __name__ == "__main__":
    main()
