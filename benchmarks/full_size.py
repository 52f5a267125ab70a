"""Run the audits of the built-in models as whole commands, at the papers' size, and keep what each took and found.

    python benchmarks/full_size.py [--profile paper] [--device auto] [--minutes 9] [--runs FOLDER] [--out FOLDER]

One `clinometer audit` for each of the five audits, of every built-in model that it can ask; then `clinometer
bundle`. The out folder gets one JSON for each: command, seconds, peak memory of the process and of the GPU, the
headlines and verdicts, size and SHA-256 of the bundle. What has its JSON is not run again; a run that was stopped
is resumed, and its seconds add up. `--minutes` stops the audit that runs then: exit code 75, and the same command
goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from measured import machine

import clinometer
from clinometer.report.verdict_files import verdicts_json

_TEXT = ("builtin:causal", "builtin:chat")
_JUDGES = ("builtin:sentiment", "builtin:opinion-words")
# each with the models that it can ask, the shortest first
AUDITS = {
    "stigma": ("builtin:masked", *_TEXT, *_JUDGES),
    "stereotypes": ("builtin:masked", *_TEXT),
    "counterexamples": ("builtin:masked", *_TEXT),
    "counterfactual": (*_TEXT, *_JUDGES),
    "sentiment_words": ("builtin:masked", *_TEXT, *_JUDGES),
}
NOT_DONE = 75  # exit code: time was up, and the same command goes on


class Stopped(Exception):
    """Time was up."""


def run(
    command: Sequence[str], *, until: float = float("inf"), stdout: IO[bytes] | None = None
) -> tuple[float, float]:
    """Run a command of clinometer; return the most memory that it took, of the machine and of the GPU, in GiB."""
    process = subprocess.Popen([sys.executable, "-m", "clinometer", *command], stdout=stdout)
    on_gpu, stopped, ended, looked = 0.0, False, 0, -math.inf
    while not ended:
        time.sleep(0.1)
        # wait4 tells the memory of this process alone
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
        if time.monotonic() - looked > 1:
            on_gpu, looked = max(on_gpu, _gpu_memory()), time.monotonic()
        if not ended and not stopped and time.monotonic() > until:
            process.send_signal(signal.SIGINT)  # answers so far are kept
            stopped = True
    process.returncode = os.waitstatus_to_exitcode(status)
    if stopped and process.returncode:
        raise Stopped
    if process.returncode:
        raise SystemExit(f"clinometer {shlex.join(command)} ended with code {process.returncode}")
    return used.ru_maxrss / 2**20, on_gpu


def _gpu_memory() -> float:
    return max((float(line) / 1024 for line in _of_gpus("memory.used")), default=0.0)


def _of_gpus(what: str) -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.splitlines()


def computed_on(*, gpu: bool) -> dict[str, object]:
    """Describe the machine; this process itself loads neither torch nor a GPU's driver."""
    libraries = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    return machine() | libraries | ({"gpu": _of_gpus("name")[0]} if gpu else {})


def audit(name: str, options: argparse.Namespace, *, until: float) -> dict[str, object]:
    """Run or resume one audit, bundle it, and return what is kept."""
    folder = options.runs / f"{name}-{options.profile}"
    spent = options.runs / f"{folder.name}.seconds"
    before = float(spent.read_text()) if spent.exists() else 0.0
    models = [model for model in AUDITS[name] if model in options.models or not options.models]
    sizes = [part for pair in options.set if pair.startswith(f"{name}.") for part in ("--set", pair)]
    asked = ["audit", *models, "--probe", name, "--profile", options.profile, *sizes]
    command = ["resume", str(folder)] if folder.exists() else [*asked, "--out", str(folder)]
    began = time.monotonic()
    try:
        memory, on_gpu = run([*command, "--device", options.device, "--quiet"], until=until)
    finally:
        seconds = before + time.monotonic() - began
        spent.write_text(f"{seconds:.1f}\n")
    bundle = options.runs / f"{folder.name}.zip"
    bundle.unlink(missing_ok=True)
    run(["bundle", str(folder), "--out", str(bundle)])
    found = clinometer.open_run(folder)
    return {
        "command": f"clinometer {shlex.join(asked)}",
        "machine": computed_on(gpu=on_gpu > 0),
        "seconds": round(seconds, 1),
        "calls": "several" if before else "one",
        "peak_memory_gib": round(memory, 2),
        "peak_gpu_memory_gib": round(on_gpu, 2),
        "bundle": {
            "file": bundle.name,
            "bytes": bundle.stat().st_size,
            "sha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
        },
        "headlines": found.headlines[name],
        "verdicts": json.loads(verdicts_json(folder.name, found.verdicts))["verdicts"],
    }


def main() -> int:
    """Run what has no result yet."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", nargs="+", choices=AUDITS, default=list(AUDITS))
    parser.add_argument("--models", nargs="+", default=[], help="only these")
    parser.add_argument("--profile", default="paper")
    parser.add_argument("--set", action="append", default=[], help="audit.option=value, for a trial")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--runs", type=Path, default=Path("runs/full-size"), help="run folders and bundles")
    parser.add_argument("--out", type=Path, default=Path("docs/results/full-size"))
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.audits:
        result = options.out / f"{name}.json"
        if result.exists():
            print(f"{name}: there already")
            continue
        try:
            found = audit(name, options, until=began + 60 * options.minutes)
        except Stopped:
            print(f"{name}: time is up; the same command goes on from there")
            return NOT_DONE
        result.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{name}: {found['seconds']} s, {found['peak_memory_gib']} GiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
