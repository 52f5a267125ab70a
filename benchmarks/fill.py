"""Prompts per second at a mask: our adapter and engine against the fill-mask pipeline, in one run.

    python benchmarks/fill.py [--prompts 256] [--dtype float32|bfloat16]

The model has BERT-base's shape and random weights, so that nothing has to be downloaded; the tokenizer is that of
builtin:masked. Both ask for the top 200 words of short prompts. The pipeline runs at its best batch size.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, pipeline
from transformers.utils import logging

from clinometer.engine import Batch, LocalExecutor, default_budget
from clinometer.engine.batching import plan_batches
from clinometer.models.builtin import folder_of
from clinometer.models.load import load_model
from clinometer.types import Fill, ModelSpec

TOP_K = 200
PIPELINE_BATCHES = (1, 8, 32, 64)
GROUPS = ("nurses", "pilots", "teachers", "farmers", "students", "painters", "lawyers", "cooks")


def main() -> None:
    """Time both and print the rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=256)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    compare(
        [f"Why are {GROUPS[number % len(GROUPS)]} so [MASK]?" for number in range(options.prompts)], options.dtype
    )


def compare(texts: list[str], dtype: str) -> float:
    """Time both on the same texts, print the rates and return how many times faster ours is."""
    with tempfile.TemporaryDirectory() as name:
        folder = _base_shape(Path(name))
        ours = _ours(folder, texts, dtype)
        theirs = {size: _pipeline(folder, texts, dtype, size) for size in PIPELINE_BATCHES}
    best = max(theirs, key=lambda size: theirs[size])
    for size, rate in theirs.items():
        print(f"pipeline, batches of {size:3}: {rate:7.1f} prompts/s{'  (best)' if size == best else ''}")
    ratio = ours / theirs[best]
    print(f"clinometer, {dtype}:     {ours:7.1f} prompts/s, {ratio:.2f} × the pipeline at its best")
    return ratio


def _base_shape(folder: Path) -> Path:
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder_of("builtin:masked"))
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _ours(folder: Path, texts: list[str], dtype: str) -> float:
    model = load_model(ModelSpec(name=str(folder), dtype=dtype))  # type: ignore[arg-type]
    requests = [Fill(text=text, top_k=TOP_K) for text in texts]

    def run() -> None:
        plan = plan_batches(model.cost(requests), budget=default_budget("cpu"))
        batches = [Batch(number, tuple(requests[at] for at in batch)) for number, batch in enumerate(plan)]
        for _ in LocalExecutor(model).run(batches):
            pass

    return _rate(run, len(texts))


def _pipeline(folder: Path, texts: list[str], dtype: str, size: int) -> float:
    fill = pipeline("fill-mask", model=str(folder), dtype=getattr(torch, dtype), top_k=TOP_K, device="cpu")
    # one by one is slow: a quarter of the prompts tells its rate as well
    some = texts if size > 1 else texts[: max(8, len(texts) // 4)]
    return _rate(lambda: fill(some, batch_size=size), len(some))


def _rate(run: Callable[[], object], count: int, *, repeats: int = 3) -> float:
    """Return the best of several rates after one that warms up."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return count / min(seconds)


if __name__ == "__main__":
    main()
