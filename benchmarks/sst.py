"""Sequences per second of the sentiment shift test: our adapter and engine against the fill-mask pipeline.

    python benchmarks/sst.py [--device cpu|cuda] [--dtype float32|bfloat16] [--tokens 256] [--sequences N]
                             [--batch-tokens N] [--mixed]

The model has RoBERTa-base's shape and random weights, the tokenizer is a byte-level BPE trained on the spot, so
that nothing has to be downloaded. A sequence is a review, one word several times and "It was [MASK]"; the question
is how probable "great" and "terrible" are there. Both sides get the same texts in one run, the pipeline at its
best batch size; every sequence has --tokens tokens, or, with --mixed, from a quarter of that on.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import random
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from transformers import RobertaConfig, RobertaForMaskedLM, RobertaTokenizer, pipeline
from transformers.utils import logging

from clinometer.models.load import load_model
from clinometer.types import MASK, Fill, ModelSpec, WordAnswer

if importlib.util.find_spec("polars") is None:
    # a machine that has torch and little else: batching and executor do without the store, which needs polars
    import clinometer

    bare = types.ModuleType("clinometer.engine")
    bare.__path__ = [str(Path(clinometer.__file__).parent / "engine")]
    sys.modules["clinometer.engine"] = bare

from clinometer.engine.batching import WINDOW, default_budget, plan_batches
from clinometer.engine.executor import Batch, LocalExecutor

LABELS = ("great", "terrible")
REPEATED = (5, 10, 15)
PIPELINE_BATCHES = {"cpu": (1, 4, 8, 16), "cuda": (32, 128)}
SEQUENCES = {"cpu": 24, "cuda": 32_768}
PIPELINE_SEQUENCES = {"cpu": 24, "cuda": 256}
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se")


def main() -> None:
    """Time both and print the rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu"
    )
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--sequences", type=int, default=0)
    parser.add_argument("--batch-tokens", type=int, default=0)
    parser.add_argument("--mixed", action="store_true")
    options = parser.parse_args()
    dtype = options.dtype or ("float32" if options.device == "cpu" else "bfloat16")
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    made_up = ["".join(syllables) for syllables in itertools.product(SYLLABLES, repeat=3)]
    requests = _requests(
        made_up, options.sequences or SEQUENCES[options.device], options.tokens, mixed=options.mixed
    )
    print(f"{_machine(options.device)}, torch {torch.__version__}; {dtype}, {len(requests):,} sequences,", end=" ")
    print(
        f"{options.tokens // 4} to {options.tokens} tokens" if options.mixed else f"{options.tokens} tokens each"
    )
    if options.device == "cpu" and not _has_bfloat16():
        print("this CPU has no bfloat16 instructions: the goal for bfloat16 does not apply to it")
    with tempfile.TemporaryDirectory() as name:
        folder = _base_shape(Path(name), ["It", "was", *LABELS, *made_up])
        ours, answers = _ours(folder, requests, dtype, options.device, options.batch_tokens)
        print(f"clinometer:               {ours:9.1f} sequences/s", flush=True)
        if not options.mixed:
            print(f"{ours * _flops(options.tokens) / 1e12:35.2f} TFLOP/s, counted as full passes", flush=True)
        some = requests[: PIPELINE_SEQUENCES[options.device]]
        theirs = {
            size: _pipeline(folder, some, dtype, options.device, size) for size in PIPELINE_BATCHES[options.device]
        }
        scores = _scores(folder, requests[:8], dtype, options.device)
    best = max(theirs, key=lambda size: theirs[size])
    for size, rate in theirs.items():
        print(f"pipeline, batches of {size:3}: {rate:9.1f} sequences/s{'  (best)' if size == best else ''}")
    print(f"clinometer is {ours / theirs[best]:.2f} × as fast as the pipeline at its best")
    furthest = max(abs(mine - other) for mine, other in zip(answers[:8], scores, strict=True))
    print(f"largest difference from the pipeline, in log-odds: {furthest:.1e}")


def _requests(words: Sequence[str], count: int, tokens: int, *, mixed: bool) -> list[Fill]:
    """Return requests of reviews and texts whose words are one token each: start, review, text, end.

    Words are gone through one after the other and with each all reviews, as one would write the loop.
    """
    rng = random.Random(0)
    lengths = [rng.randint(tokens // 4, tokens) if mixed else tokens for _ in range(64)]
    reviews = [rng.choices(words, k=length) for length in lengths]
    requests = (
        Fill(
            text=" ".join([word] * times) + f" It was {MASK}",
            context=" ".join(review[: len(review) - times - 5]),
            words=LABELS,
            normalise="words",
        )
        for word in words
        for times in REPEATED
        for review in reviews
    )
    return list(itertools.islice(requests, count))


def _base_shape(folder: Path, words: Sequence[str]) -> Path:
    torch.manual_seed(0)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=50_265,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    # every word at the start of a text and after a space
    bpe.train_from_iterator([text for word in words for text in (word, f"a {word}", f"a {word}")], trainer)
    bpe.save(str(folder / "bpe.json"))
    trained = json.loads((folder / "bpe.json").read_text())["model"]
    mask = AddedToken("<mask>", lstrip=True, special=True, normalized=False)
    merges = [tuple(merge) for merge in trained["merges"]]
    RobertaTokenizer(vocab=trained["vocab"], merges=merges, mask_token=mask).save_pretrained(folder)
    config = RobertaConfig(vocab_size=50_265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)
    RobertaForMaskedLM(config).save_pretrained(folder)
    return folder


def _ours(
    folder: Path, requests: list[Fill], dtype: str, device: str, batch_tokens: int
) -> tuple[float, list[float]]:
    model = load_model(ModelSpec(name=str(folder), dtype=dtype), device=device)  # type: ignore[arg-type]
    budget = batch_tokens or default_budget(device)
    answers: dict[int, WordAnswer] = {}

    def run() -> None:
        places: list[list[int]] = []

        def batches() -> Iterator[Batch]:
            for first in range(0, len(requests), WINDOW):  # as a stage of an audit is worked through
                window = requests[first : first + WINDOW]
                for batch in plan_batches(model.cost(window), budget=budget):
                    places.append([first + at for at in batch])
                    yield Batch(len(places) - 1, tuple([window[at] for at in batch]))

        for answered in LocalExecutor(model).run(batches()):
            answers.update(zip(places[answered.number], answered.answers, strict=True))

    rate = _rate(run, len(requests))
    return rate, [answers[at].logprobs[0] - answers[at].logprobs[1] for at in range(8)]


def _pipeline(folder: Path, requests: Sequence[Fill], dtype: str, device: str, size: int) -> float:
    fill = pipeline("fill-mask", model=str(folder), dtype=getattr(torch, dtype), device=device)
    texts = _texts(requests)
    # one by one is slow: a quarter of the texts tells its rate as well
    some = texts if size > 1 else texts[: max(8, len(texts) // 4)]
    return _rate(lambda: fill(some, batch_size=size, targets=_targets()), len(some), repeats=1 if size == 1 else 2)


def _scores(folder: Path, requests: Sequence[Fill], dtype: str, device: str) -> list[float]:
    """Return the log-odds that the pipeline gives to the two words."""
    fill = pipeline("fill-mask", model=str(folder), dtype=getattr(torch, dtype), device=device)
    odds = []
    for found in fill(_texts(requests), targets=_targets()):
        scores = {answer["token_str"].strip(): answer["score"] for answer in found}
        odds.append(math.log(scores[LABELS[0]]) - math.log(scores[LABELS[1]]))
    return odds


def _texts(requests: Sequence[Fill]) -> list[str]:
    return [f"{request.context} {request.text}".replace(MASK, "<mask>") for request in requests]


def _targets() -> list[str]:
    return [f"Ġ{word}" for word in LABELS]


def _flops(tokens: int) -> float:
    """Return the operations of a full pass: 12 layers of size 768, projections and attention."""
    return 12 * (24 * tokens * 768**2 + 4 * tokens**2 * 768)


def _machine(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else f"CPU ({torch.get_num_threads()} threads)"


def _has_bfloat16() -> bool:
    flags = Path("/proc/cpuinfo")
    return flags.is_file() and any(name in flags.read_text() for name in ("avx512_bf16", "amx_bf16"))


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
