"""Words per second at a blank of a causal model: our rescoring against one `forward` for each word, in one run.

    python benchmarks/rescoring.py [--model builtin:causal] [--words 40] [--device cpu] [--dtype float32]

Both score the same words in the same sentence, with the blank near its start, in its middle and near its end, and
must agree. What a position allows: the part before the blank need run only once, so the speed of the plain model
when it is given all words in one batch, times the tokens of all sentences over those that have to run.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from clinometer.models.load import load_model
from clinometer.models.providers.local import resolve
from clinometer.types import ModelSpec, Rescore

SENTENCES = {
    "start": "The [MASK] works as a nurse in the hospital of the small town where both were born many years ago.",
    "middle": "In the hospital of the town where they were born, the [MASK] works as a nurse on the third floor.",
    "end": "In the hospital of the small town where both were born many years ago, a nurse helps the [MASK].",
}
WORDS = """
    man woman boy girl father mother son daughter brother sister uncle aunt king queen actor actress husband wife
    doctor teacher farmer soldier driver lawyer student child person patient friend neighbor stranger worker baker
    singer painter cook guard judge tailor mayor
"""


def main() -> None:
    """Time both at each position, and print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="builtin:causal")
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    spec = ModelSpec(name=options.model, dtype=options.dtype, kind="causal")
    ours = load_model(spec, device=options.device)
    folder = resolve(spec).folder
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, options.dtype))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    words = WORDS.split()[: options.words]
    for position, text in SENTENCES.items():
        compare(ours, plain.to(options.device).eval(), tokenizer, text, words, position)


def compare(ours: Any, plain: Any, tokenizer: Any, text: str, words: list[str], position: str) -> float:
    """Time all three on one sentence, print the rates, and return what share of the allowed is reached."""
    rows = [tokenizer(text.replace("[MASK]", word))["input_ids"] for word in words]
    left = len(tokenizer(text.partition("[MASK]")[0].rstrip())["input_ids"])
    whole = sum(map(len, rows)) / len(rows)
    found, times = _timed(
        {
            "one by one": lambda: [_score(plain, [row])[0] for row in rows],
            "one batch": lambda: _score(plain, rows),
            "rescored": lambda: ours.rescore([Rescore(text=text, words=tuple(words))]),
        }
    )
    one_by_one, (answer,) = found["one by one"], found["rescored"]
    seconds, batched, rescored = times.values()
    total = float(torch.tensor(one_by_one, dtype=torch.float64).logsumexp(dim=0))
    apart = max(abs(score - total - found) for score, found in zip(one_by_one, answer.logprobs, strict=True))

    allowed = seconds / batched * len(words) * whole / (left + len(words) * (whole - left))
    ratio = seconds / rescored
    print(
        f"blank near the {position} ({left} of {whole:.0f} tokens before it): one forward a word"
        f" {len(words) / seconds:6.1f} words/s, all in one batch {len(words) / batched:6.1f},"
        f" rescoring {len(words) / rescored:6.1f}: {ratio:.1f} × one by one;"
        f" the position allows {allowed:.1f} ×, reached {ratio / allowed:.0%}; largest difference {apart:.1e}"
    )
    return ratio / allowed


@torch.inference_mode()
def _score(model: Any, rows: list[list[int]]) -> list[float]:
    """Return the log-probability of each text, all in one pass."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows], device=model.device)
    logits = model(input_ids=ids, use_cache=False).logits.float()
    logprobs = logits[:, :-1].gather(2, ids[:, 1:, None])[..., 0] - logits[:, :-1].logsumexp(dim=2)
    return [float(row[: len(kept) - 1].sum(dtype=torch.float64)) for row, kept in zip(logprobs, rows, strict=True)]


def _timed(runs: dict[str, Callable[[], Any]], times: int = 4) -> tuple[dict[str, Any], dict[str, float]]:
    """Run everything once to warm up, then several times in turn: what each returned, and its least seconds.

    In turn, because other work on the machine would otherwise slow one of them alone.
    """
    found = {name: run() for name, run in runs.items()}
    best = dict.fromkeys(runs, math.inf)
    for _ in range(times):
        for name, run in runs.items():
            begun = time.perf_counter()
            found[name] = run()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            best[name] = min(best[name], time.perf_counter() - begun)
    return found, best


if __name__ == "__main__":
    main()
