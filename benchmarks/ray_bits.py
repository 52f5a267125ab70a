"""The same bytes on 1, 2 and 4 workers as in one process: masked, causal, sampled and scored stages.

    python benchmarks/ray_bits.py [--workers 1 2 4]

A tiny BERT and a tiny GPT-2 with random weights, audited by counterexamples (blanks; rescored words of the causal
model) and counterfactual (sampled texts, scored by two classifiers and an encoder), one thread each.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path[0] = str(Path(__file__).parents[1])  # for tests/, and so that benchmarks/ray.py is not taken for Ray

from tests.models.tiny import tiny
from tests.ray_faults import findings_of

import clinometer
from clinometer.engine import ClusterSettings
from clinometer.workflows import Execution


def main() -> None:
    """Audit here, then on so many workers, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        models = [str(tiny(family, Path(name) / family)) for family in ("bert", "gpt2")]
        expected = _audit(models, Path(name) / "local", Execution(device="cpu"))
        same = True
        for count in options.workers:
            cluster = ClusterSettings(workers=count, threads=1)
            execution = Execution(device="cpu", executor="ray", cluster=cluster)
            found = _audit(models, Path(name) / str(count), execution)
            print(f"{count} worker(s): {'the same bytes' if found == expected else 'OTHER BYTES'}", flush=True)
            same = same and found == expected
        sys.exit(0 if same else 1)


def _audit(models: list[str], folder: Path, execution: Execution) -> dict[str, bytes]:
    began = time.monotonic()
    probes = ["counterexamples", "counterfactual"]
    options = {"counterfactual": {"max_new_tokens": 4, "draws": 100}, "counterexamples": {"draws": 100}}
    run = clinometer.audit(
        models, probes=probes, profile="quick", options=options, folder=folder, execution=execution
    )
    stages = {key.stage for key in run.folder.stages()}
    print(f"{folder.name}: {time.monotonic() - began:.0f} s; stages {', '.join(sorted(stages))}", flush=True)
    return findings_of(folder)


if __name__ == "__main__":
    main()
