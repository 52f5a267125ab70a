"""Let a causal model continue beginnings, many times each, and keep the texts as token ids of the masked model.

The folder gets shards: `sampled-000.xz` and so on, each the ids (uint16, little-endian, a separator after each
text) under xz, and `sampled.json` with their checksums. A shard depends on the options and its number alone, so a
call that is stopped goes on with the next one, `--minutes` ends a call in time, and a larger `--shards` adds some.
On a GPU, texts are drawn by the package's own fast path. Of the package's dependencies only torch and transformers
are needed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import sys
import time
import types
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from prepare_text import tokenise, whole_texts
from sampled_shards import Shards, write_shard

import clinometer

if importlib.util.find_spec("polars") is None:
    # a machine that has torch and little else: batching and executor do without the store, which needs polars
    bare = types.ModuleType("clinometer.engine")
    bare.__path__ = [str(Path(clinometer.__file__).parent / "engine")]
    sys.modules["clinometer.engine"] = bare

from clinometer.engine.batching import WINDOW, default_budget, plan_batches
from clinometer.engine.executor import Batch, LocalExecutor
from clinometer.models.load import load_model
from clinometer.types import ModelSpec, Sample

NOT_DONE = 75  # exit code: time was up, and the same command goes on


def draw(model: Any, requests: Sequence[Sample], *, device: str) -> list[str]:
    """Return beginning and continuation of every sample, in the order of the requests."""

    def batches() -> Iterator[Batch]:
        number = 0
        for first in range(0, len(requests), WINDOW):
            costs = model.cost(requests[first : first + WINDOW])
            for rows in plan_batches(costs, budget=default_budget(device)):
                places.append([first + at for at in rows])
                yield Batch(number, tuple(requests[first + at] for at in rows))
                number += 1

    places: list[list[int]] = []
    texts: list[tuple[str, ...]] = [()] * len(requests)
    for answered in LocalExecutor(model).run(batches()):
        for place, answer in zip(places[answered.number], answered.answers, strict=True):
            texts[place] = answer.texts
    return [
        request.prefix + text
        for request, drawn in zip(requests, texts, strict=True)
        for text in drawn
        if text.strip()
    ]


def requests_of(
    shard: int, beginnings: Sequence[str], *, size: int, samples: int, tokens: int, top_p: float
) -> list[Sample]:
    """Return what a shard asks: the next `size` beginnings; after the last comes the first, with new samples."""
    rounds, per_round = divmod(shard * size, len(beginnings))
    asked = []
    for at in range(per_round, per_round + size):
        again, place = divmod(at, len(beginnings))
        first = (rounds + again) * samples
        asked.append(Sample(prefix=beginnings[place], n=samples, first=first, max_new_tokens=tokens, top_p=top_p))
    return asked


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beginnings", type=Path, required=True, help="what beginnings.py wrote")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of the masked model")
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    parser.add_argument("--model", default="builtin:causal", help="a built-in name, or a folder")
    parser.add_argument("--shards", type=int, default=32, help="how many there shall be")
    parser.add_argument("--samples", type=int, default=16, help="of each beginning, each time")
    parser.add_argument("--tokens", type=int, default=200, help="at most, in each sample")
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--shard", type=int, default=1_500, help="beginnings in a shard")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no shard that would end later")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main() -> int:
    """Draw the shards that are missing until there are tokens enough, or time is up."""
    began = time.monotonic()
    options = arguments()
    beginnings = options.beginnings.read_text(encoding="utf-8").splitlines()
    tokenizer = whole_texts(options.tokenizer)
    model: Any = load_model(ModelSpec(name=options.model, kind="causal"), device=options.device)
    options.out.mkdir(parents=True, exist_ok=True)
    how = {"size": options.shard, "samples": options.samples, "tokens": options.tokens, "top_p": options.top_p}
    made_with = {
        **how,
        "weights": model.info.weights,
        "beginnings": hashlib.sha256("\n".join(beginnings).encode()).hexdigest(),
        "tokenizer": hashlib.sha256(tokenizer.to_str().encode()).hexdigest(),
    }
    shards = Shards(options.out, made_with)
    longest = 0.0
    waiting: list[tuple[int, Future[dict[str, Any]]]] = []

    def keep(number: int, texts: list[str]) -> dict[str, Any]:
        return write_shard(options.out, number, tokenise(texts, tokenizer=tokenizer))

    def finish(all_of_them: bool) -> None:
        while waiting and (all_of_them or waiting[0][1].done()):
            number, written = waiting.pop(0)
            shards.add(number, written.result())
            print(json.dumps({"shard": number, **shards.shards[str(number)]}), flush=True)

    # Tokenising and packing go on while the GPU draws the next shard.
    with ThreadPoolExecutor(4) as pool:
        for number in range(options.shards):
            if str(number) in shards.shards:
                continue
            at = time.monotonic()
            if at - began + 1.2 * longest > 60 * options.minutes:
                break
            texts = draw(model, requests_of(number, beginnings, **how), device=options.device)
            longest = max(longest, time.monotonic() - at)
            waiting.append((number, pool.submit(keep, number, texts)))
            finish(all_of_them=False)
        finish(all_of_them=True)
    seconds = time.monotonic() - began
    print(json.dumps({"tokens": shards.tokens, "shards": len(shards.shards), "seconds": round(seconds, 1)}))
    return 0 if all(str(number) in shards.shards for number in range(options.shards)) else NOT_DONE


if __name__ == "__main__":
    sys.exit(main())
