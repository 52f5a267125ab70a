"""Runs every benchmark that needs no GPU, one after the other, and writes the tables of docs/speed.md.

    python benchmarks/every.py [NAMES]        (`make bench` runs all of them: under ten minutes on two idle cores)

A benchmark that fails is named, and the others go on; its last result stays in the table.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

from tables import RESULTS
from tables import main as write_tables

HERE = Path(__file__).parent
LIMIT = 300  # seconds for one of them
COMMANDS = {
    "start": "start.py",
    "fairness": "fairness.py",
    "findings": "findings.py counterfactual",
    "findings-lean": "findings.py counterfactual --lean 0.1",
    "opinion-words": "opinion_words.py",
    "records": "records.py --parts 0",
    "fill-short": "fill.py short --prompts 160",
    "fill-reviews": "fill.py reviews --prompts 16",
    "rescoring": "rescoring.py --positions 'in the middle'",
    "sampling": "sampling.py --samples 32 --batches 32 --repeats 1",
    "counterfactual": "counterfactual.py",
    "growth": "growth.py --chart docs/images/growth.svg",
}


def main() -> None:
    """Run them, tell how long each took, write the tables."""
    chosen = sys.argv[1:] or list(COMMANDS)
    failed, began = [], time.perf_counter()
    for name in chosen:
        print(f"== {name}", flush=True)
        script, *options = shlex.split(COMMANDS[name])
        command = [sys.executable, str(HERE / script), *options, "--json", str(RESULTS / f"{name}.json")]
        start = time.perf_counter()
        try:
            ended = subprocess.run(command, cwd=HERE.parent, timeout=LIMIT, check=False).returncode
        except subprocess.TimeoutExpired:
            ended = 124
        failed += [name] if ended else []
        print(f"   {time.perf_counter() - start:.0f} s{f', ended with {ended}' if ended else ''}", flush=True)
    write_tables()
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes; docs/speed.md written")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; their earlier results were kept")


if __name__ == "__main__":
    main()
