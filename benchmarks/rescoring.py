"""Words per second at a blank of a causal model: our rescoring against one `forward` for each word, in one run.

    python benchmarks/rescoring.py [--device cpu|cuda] [--words 900] [--others 60] [--sentences 1]

Random weights in SmolLM2-135M's shape, sentences of 30 tokens with the blank near the start, in the middle and
near the end. Both score the same words in the same sentences, and must agree; `--others N` has the plain model
score the first N words alone, because one by one takes long.

What a position allows: the part before the blank need run only once, so the speed of the plain model when it is
given the words in batches, times the tokens of all sentences over those that have to run.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measured import Row, arguments, drift, median_seconds, tell, times, waiting
from shapes import MADE_UP, save_causal
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from clinometer.engine.batching import default_budget, plan_batches
from clinometer.engine.executor import Batch, LocalExecutor
from clinometer.models.load import load_model
from clinometer.types import MASK, ModelSpec, Rescore

TOKENS = 30
BEFORE = {"near the start": 2, "in the middle": 15, "near the end": 27}
TARGET = {"cpu": 3.5, "cuda": 30.0}  # times one forward per word, blank in the middle


def main() -> None:
    """Time both at each position, and tell."""
    parser = arguments(__doc__)
    parser.add_argument("--words", type=int, default=900)
    parser.add_argument("--others", type=int, default=0, help="words of the plain model; 0: 60 on a CPU, else all")
    parser.add_argument("--sentences", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="")
    parser.add_argument("--positions", nargs="*", choices=list(BEFORE), default=list(BEFORE))
    parser.add_argument("--layers", type=int, default=30, help="fewer of them, to try this out")
    options = parser.parse_args()
    options.dtype = options.dtype or ("float32" if options.device == "cpu" else "bfloat16")
    options.others = options.others or (60 if options.device == "cpu" else options.words)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        folder = save_causal("smollm2", Path(name), layers=options.layers)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        plain = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, options.dtype))
        plain = plain.to(options.device).eval()
        ours = load_model(ModelSpec(name=str(folder), dtype=options.dtype, kind="causal"), device=options.device)
        exact = None
        if options.dtype == "bfloat16":
            exact = load_model(ModelSpec(name=str(folder), dtype="float32", kind="causal"), device=options.device)
        rows = [compare(ours, plain, tokenizer, position, exact, options) for position in options.positions]
        tell(rows, to=options.json, device=options.device)


def compare(ours: Any, plain: Any, tokenizer: Any, position: str, exact: Any, options: argparse.Namespace) -> Row:
    """Time all on the same sentences."""
    rng = random.Random(0)
    words = tuple(MADE_UP[: options.words])
    around = [rng.choices(MADE_UP, k=TOKENS - 1) for _ in range(options.sentences)]
    texts = [" " + " ".join([*each[: BEFORE[position]], MASK, *each[BEFORE[position] :]]) for each in around]
    requests = [Rescore(text=text, words=words) for text in texts]
    some = words[: options.others]
    rows = [tokenizer(text.replace(MASK, word))["input_ids"] for text in texts[:1] for word in some]
    assert {len(row) for row in rows} == {TOKENS}
    scores: list[float] = []
    runs: dict[str, Callable[[], object]] = {
        "ours": lambda: _ours(ours, requests, options.device),
        "one forward for each word": lambda: scores.extend(_score(plain, [row])[0] for row in rows),
        "forward in batches of 64": lambda: [_score(plain, rows[at : at + 64]) for at in range(0, len(rows), 64)],
    }
    seconds = median_seconds(runs, repeats=2, after=waiting(options.device))
    rates = {name: len(some) / taken for name, taken in seconds.items() if name != "ours"}
    rate = options.sentences * len(words) / seconds["ours"]
    ratio = rate / rates["one forward for each word"]
    # the plain model computes the vocabulary at every place, ours where a token is scored, so it can be passed
    ran = BEFORE[position] + len(words) * (TOKENS - BEFORE[position])
    allowed = rates["forward in batches of 64"] / rates["one forward for each word"] * len(words) * TOKENS / ran
    answer = ours.rescore([Rescore(text=texts[0], words=some)])[0].logprobs
    expected = torch.tensor(scores[: len(some)], dtype=torch.float64).log_softmax(0).tolist()
    apart = max(abs(mine - other) for mine, other in zip(answer, expected, strict=True))
    notes = [
        f"{times(ratio)} one by one, where the position allows {times(allowed)}",
        f"largest difference from one by one: {apart:.1e}",
    ]
    if len(some) < len(words):
        notes.append(f"the plain model was given {len(some)} of the words")
    if exact is not None:
        kept = exact.rescore([Rescore(text=texts[0], words=some)])[0].logprobs
        notes.append(drift([mine - other for mine, other in zip(answer, kept, strict=True)]))
    aim = TARGET[options.device]
    return Row(
        work=f"rescoring {len(words)} words in sentences of {TOKENS} tokens, blank {position}, "
        f"SmolLM2-135M shape, {options.dtype}",
        unit="words/s",
        ours=rate,
        others=rates,
        targets={f"≥ {aim:g} × one forward for each word": ratio >= aim} if position == "in the middle" else {},
        notes=notes,
    )


def _ours(model: Any, requests: list[Rescore], device: str) -> list[Any]:
    plan = plan_batches(model.cost(requests), budget=default_budget(device))
    batches = [Batch(number, tuple([requests[at] for at in batch])) for number, batch in enumerate(plan)]
    return [answer for answered in LocalExecutor(model).run(batches) for answer in answered.answers]


@torch.inference_mode()
def _score(model: Any, rows: list[list[int]]) -> list[float]:
    """Return the log-probability of each text, all in one pass; all have the same length."""
    ids = torch.tensor(rows, device=model.device)
    logits = model(input_ids=ids).logits[:, :-1].float()
    scores = logits.log_softmax(dim=-1).gather(2, ids[:, 1:, None])[..., 0].sum(dim=1)
    return [float(score) for score in scores]


if __name__ == "__main__":
    main()
