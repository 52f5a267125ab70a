"""The stereotypes audit: its questions against the fill-mask pipeline, and the whole audit of builtin:masked.

    python benchmarks/stereotypes.py [--prompts 256]

First part: questions of the audit, spread over all groups and templates, top 200 words each, on a model of
BERT-base's shape with random weights; the pipeline runs at its best batch size. In float32, and in bfloat16 where
the processor computes in it. Goals: 1.6 and 3 times the pipeline. Second part: all 373 groups × 5 templates with
their priors, findings and report. Goal: 60 seconds on 2 cores.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from fill import compare
from transformers.utils import logging

import clinometer
from clinometer.probes.stereotypes import Options
from clinometer.probes.stereotypes.questions import questions

GOALS = {"float32": 1.6, "bfloat16": 3.0}
SECONDS = 60


def main() -> None:
    """Print the rates, the seconds and whether they reach the goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=256)
    count = parser.parse_args().prompts
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    every = [question.text for question in questions(Options())]
    texts = [every[number * len(every) // count % len(every)] for number in range(count)]
    for dtype, goal in GOALS.items():
        if dtype == "bfloat16" and not _computes_bfloat16():
            print("bfloat16: not measured, this processor has no instructions for it")
            continue
        ratio = compare(texts, dtype)
        print(f"{dtype}: goal {goal} ×, {'reached' if ratio >= goal else 'NOT reached'}")

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        clinometer.audit("builtin:masked", probes="stereotypes", folder=Path(folder) / "run")
        seconds = time.perf_counter() - start
    verdict = "reached" if seconds <= SECONDS else "NOT reached"
    print(
        f"whole audit of builtin:masked, {torch.get_num_threads()} threads: {seconds:.0f} s, goal {SECONDS} s, "
        f"{verdict}"
    )


def _computes_bfloat16() -> bool:
    capabilities = torch.backends.cpu.get_cpu_capability(), *_cpu_flags()
    return any("bf16" in each.lower() for each in capabilities)


def _cpu_flags() -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return []
    return [flag for line in lines if line.startswith(("flags", "Features")) for flag in line.split()]


if __name__ == "__main__":
    main()
