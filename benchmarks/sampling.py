"""Sampled tokens per second: our adapter and engine against `generate` at its best batch size, in one run.

    python benchmarks/sampling.py [--shape gpt2|smollm2] [--device cpu|cuda] [--prompts 2] [--samples 64]
                                  [--tokens 50] [--top-p 1] [--batches 32 64 128] [--others 2] [--repeats 3]
                                  [--warm-up 2]

The model has random weights in the shape of GPT-2 (124M) or SmolLM2-135M, so that nothing is downloaded. Both
draw so many samples of each prompt, of so many new tokens, at temperature 1. `--others N` gives `generate` the
first N prompts alone, where all of them would take it too long; it, too, samples each prompt as often. Before it
counts, each runs once; with `--warm-up N`, ours runs on the first N prompts then.
On a GPU, where ours computes in bfloat16, the drift from float32 is measured on some of the texts.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from measured import Row, arguments, drift, median_seconds, tell, waiting
from shapes import MADE_UP, save_causal
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

from clinometer.engine.batching import WINDOW, default_budget, plan_batches
from clinometer.engine.executor import Batch, LocalExecutor
from clinometer.models.load import load_model
from clinometer.types import LogLikelihood, ModelSpec, Sample

ONE_BEGINNING, MANY_BEGINNINGS = 1_000_000, 300_000  # tokens a second that we want of an H200


def main() -> None:
    """Time both, and tell."""
    parser = arguments(__doc__)
    parser.add_argument("--shape", choices=["gpt2", "smollm2"], default="gpt2")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="")
    parser.add_argument("--prompts", type=int, default=2)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=50)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--batches", type=int, nargs="*", default=[32, 64, 128], help="batch sizes of generate")
    parser.add_argument("--others", type=int, default=0, help="prompts that generate is given; 0: all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=0, help="prompts of the run before; 0: all")
    parser.add_argument("--layers", type=int, default=0, help="fewer of them, to try this out")
    options = parser.parse_args()
    options.dtype = options.dtype or ("float32" if options.device == "cpu" else "bfloat16")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        row = compare(save_causal(options.shape, Path(name), layers=options.layers), options)
        tell([row], to=options.json, device=options.device)


def beginnings(count: int) -> list[str]:
    """Return so many different beginnings: one or two of eight tokens, or many of 6 to 24."""
    rng = random.Random(0)
    if count <= 2:
        return [" " + " ".join(rng.choices(MADE_UP, k=8)) for _ in range(count)]
    return [" " + " ".join(rng.choices(MADE_UP, k=rng.randint(6, 24))) for _ in range(count)]


def compare(folder: Path, options: argparse.Namespace) -> Row:
    """Time both on the same beginnings."""
    prompts = beginnings(options.prompts)
    some = prompts[: options.others or None]
    each = options.samples * options.tokens
    model = load_model(ModelSpec(name=str(folder), dtype=options.dtype, kind="causal"), device=options.device)
    theirs = _generate(folder, some, options)
    wait = waiting(options.device)
    sizes = {size: lambda size=size: theirs(size) for size in options.batches}
    best = 0
    if len(sizes) > 1:
        trials = median_seconds({str(size): run for size, run in sizes.items()}, repeats=1, after=wait)
        best = int(min(trials, key=lambda size: trials[size]))
    elif sizes:
        (best,) = sizes
    runs: dict[str, Callable[[], object]] = {"ours": lambda: _ours(model, prompts, options)}
    if best:
        runs[f"generate, {best:,} at a time"] = sizes[best]
    if options.warm_up:
        _ours(model, prompts[: options.warm_up], options)
        if best:
            sizes[best]()
    seconds = median_seconds(runs, repeats=options.repeats, warm=not options.warm_up, after=wait)
    ours = len(prompts) * each / seconds.pop("ours")
    rates = {name: len(some) * each / taken for name, taken in seconds.items()}
    notes = []
    if len(some) < len(prompts) and best:
        notes.append(f"generate was given {len(some):,} of the beginnings")
    if options.dtype == "bfloat16":
        notes.append(_drift(folder, model, prompts[:256], options))
    targets = {}
    if options.device == "cuda":
        many = len(prompts) > 2
        aim = MANY_BEGINNINGS if many else ONE_BEGINNING
        if (options.shape == "smollm2") == many:
            targets[f"≥ {aim:,} tokens/s"] = ours >= aim
    cut = f", top-p {options.top_p:g}" if options.top_p < 1 else ""
    work = (
        f"{options.samples:,} continuations of {options.tokens} tokens of each of {len(prompts):,} "
        f"beginnings{cut}, {'GPT-2' if options.shape == 'gpt2' else 'SmolLM2-135M'} shape, {options.dtype}"
    )
    return Row(work=work, unit="tokens/s", ours=ours, others=rates, targets=targets, notes=notes)


def _ours(model: Any, prompts: list[str], options: argparse.Namespace) -> None:
    requests = [
        Sample(prefix=text, n=options.samples, max_new_tokens=options.tokens, top_p=options.top_p)
        for text in prompts
    ]

    def batches() -> Iterator[Batch]:
        number = 0
        for first in range(0, len(requests), WINDOW):  # as a stage of an audit is worked through
            window = requests[first : first + WINDOW]
            for batch in plan_batches(model.cost(window), budget=default_budget(options.device)):
                yield Batch(number, tuple([window[at] for at in batch]))
                number += 1

    texts = sum(
        len(answer.texts) for answered in LocalExecutor(model).run(batches()) for answer in answered.answers
    )
    assert texts == options.samples * len(prompts)


def _generate(folder: Path, prompts: list[str], options: argparse.Namespace) -> Callable[[int], None]:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, options.dtype))
    model = model.to(options.device).eval()
    model.generation_config.eos_token_id = None  # all run to the end, as nearly all of ours do

    def run(size: int) -> None:
        for text in prompts:
            inputs = tokenizer(text, return_tensors="pt").to(options.device)
            for begin in range(0, options.samples, size):
                ids = model.generate(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    do_sample=True,
                    top_k=0,
                    top_p=options.top_p,
                    num_return_sequences=min(size, options.samples - begin),
                    max_new_tokens=options.tokens,
                    pad_token_id=0,
                )
                tokenizer.batch_decode(ids, skip_special_tokens=True)

    return run


def _drift(folder: Path, model: Any, prompts: list[str], options: argparse.Namespace) -> str:
    """How far bfloat16 is from float32: the log-probability of a text, by its tokens."""
    exact = load_model(ModelSpec(name=str(folder), dtype="float32", kind="causal"), device=options.device)
    requests = [LogLikelihood(text=text) for text in prompts]
    apart = [
        (mine.logprob - other.logprob) / max(1, mine.tokens)
        for mine, other in zip(model.log_likelihood(requests), exact.log_likelihood(requests), strict=True)
    ]
    return drift(apart, "a token's log-probability")


if __name__ == "__main__":
    main()
