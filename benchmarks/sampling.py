"""Sampled tokens per second: our adapter and engine against `generate` at its best batch size, in one run.

    python benchmarks/sampling.py [--shape gpt2|smollm2] [--device cpu|cuda] [--dtype float32|bfloat16]
                                  [--prompts 2] [--samples 64] [--tokens 50] [--batches 32 64 128]

The model has random weights in the shape of GPT-2 (124M) or SmolLM2-135M, so that nothing is downloaded. Both
draw so many samples of each prompt, of so many new tokens, at temperature 1 from the whole vocabulary.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedTokenizerFast
from transformers.utils import logging

from clinometer.engine import Batch, LocalExecutor, default_budget
from clinometer.engine.batching import plan_batches
from clinometer.models.load import load_model
from clinometer.types import ModelSpec, Sample

SHAPES = {
    "gpt2": GPT2Config(),
    "smollm2": LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1_536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
    ),
}
REPEATS = {"cpu": 2, "cuda": 3}


def main() -> None:
    """Time both and print the rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), default="gpt2")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--prompts", type=int, default=2)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=50)
    parser.add_argument("--batches", type=int, nargs="*", default=[32, 64, 128], help="batch sizes of generate")
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    on_gpu = options.device == "cuda"
    print(
        torch.cuda.get_device_name()
        if on_gpu
        else f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
    )
    if not on_gpu and options.dtype == "bfloat16" and not torch.cpu._is_avx512_bf16_supported():
        print("this CPU has no bfloat16 instructions: expect no gain from bfloat16 here")

    prompts = [f"He is {number:02}" for number in range(options.prompts)]  # eight tokens each
    with tempfile.TemporaryDirectory() as name:
        folder = _saved(options.shape, Path(name))
        ours = _ours(folder, prompts, options)
        theirs = {size: _generate(folder, prompts, options, size) for size in options.batches}
        # in turn, so that what else the machine does slows both alike
        tokens = options.prompts * options.samples * options.tokens
        seconds = [_seconds(run) for _ in range(REPEATS[options.device]) for run in (ours, *theirs.values())]
    rates = [tokens / min(seconds[place :: 1 + len(theirs)]) for place in range(1 + len(theirs))]
    for size, rate in zip(theirs, rates[1:], strict=True):
        print(f"generate, {size:5} at a time: {rate:9,.0f} tokens/s{'  (best)' if rate == max(rates[1:]) else ''}")
    against = f", {rates[0] / max(rates[1:]):.2f} × generate at its best" if theirs else ""
    print(f"clinometer, {options.shape} in {options.dtype}: {rates[0]:9,.0f} tokens/s{against}")


def _saved(shape: str, folder: Path) -> Path:
    torch.manual_seed(0)
    config = SHAPES[shape]
    config.bos_token_id = config.eos_token_id = config.vocab_size - 1
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    # every byte is a token; the others are never read, only written
    known = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [f"Ġ{number:x}" for number in range(config.vocab_size - len(known) - 1)]
    vocabulary = {token: number for number, token in enumerate([*known, *words, "<end>"])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
    return folder


def _ours(folder: Path, prompts: list[str], options: argparse.Namespace) -> Callable[[], None]:
    model = load_model(ModelSpec(name=str(folder), dtype=options.dtype), device=options.device)
    requests = [Sample(prefix=text, n=options.samples, max_new_tokens=options.tokens) for text in prompts]

    def run() -> None:
        plan = plan_batches(model.cost(requests), budget=default_budget(options.device))
        batches = [Batch(number, tuple(requests[at] for at in batch)) for number, batch in enumerate(plan)]
        texts = sum(
            len(answer.texts) for answered in LocalExecutor(model).run(batches) for answer in answered.answers
        )
        assert texts == options.samples * len(prompts)

    if options.device == "cuda":  # kernels are compiled, a graph is captured
        run()
    return run


def _generate(folder: Path, prompts: list[str], options: argparse.Namespace, size: int) -> Callable[[], None]:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, options.dtype))
    model = model.to(options.device).eval()
    model.generation_config.eos_token_id = None  # all run to the end, as nearly all of ours do

    def run() -> None:
        for text in prompts:
            inputs = tokenizer(text, return_tensors="pt").to(options.device)
            for begin in range(0, options.samples, size):
                ids = model.generate(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    do_sample=True,
                    top_k=0,
                    num_return_sequences=min(size, options.samples - begin),
                    max_new_tokens=options.tokens,
                    pad_token_id=0,
                )
                tokenizer.batch_decode(ids, skip_special_tokens=True)

    if options.device == "cuda":
        run()
    return run


def _seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
