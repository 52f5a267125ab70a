"""Blanks per second: our adapter and engine, the fill-mask pipeline and minicons, on the same texts in one run.

    python benchmarks/fill.py short   [--device cpu|cuda] [--prompts 256]
    python benchmarks/fill.py reviews [--device cpu|cuda] [--prompts N] [--least 64] [--most 256]

`short` asks for the 200 likeliest words in prompts of 8 to 16 tokens, of a model of BERT-base's shape. `reviews`
asks how probable two words are after reviews of 64 to 256 tokens, of RoBERTa-base's shape: the shift test.
`--least 256` gives each review 256 tokens. Weights are random, so that nothing is downloaded.

The others run at the best of several batch sizes, found first. minicons is measured where it is installed
(`pip install --no-deps minicons wonderwords pillow`).

The ceiling: how fast this machine multiplies matrices of the sizes of one layer, in batches of ours, divided by
the operations that the answers need: every layer, the last one at the blank alone, and the words asked for.
On a GPU, where ours computes in bfloat16, the drift from float32 is measured on some of the texts.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from measured import Row, arguments, drift, figure, median_seconds, tell, times, waiting
from shapes import MADE_UP, save_bert, save_roberta
from transformers import pipeline
from transformers.utils import logging

from clinometer.engine.batching import WINDOW, default_budget, plan_batches
from clinometer.engine.executor import Batch, LocalExecutor
from clinometer.models.load import load_model
from clinometer.models.local.fast.products import speed_up_linear_layers
from clinometer.types import MASK, Fill, ModelSpec, WordAnswer

TOP_K = 200
LABELS = ("great", "terrible")
SIZE = 768  # BERT-base and RoBERTa-base
PROMPTS = {("short", "cpu"): 256, ("reviews", "cpu"): 24, ("short", "cuda"): 65_536, ("reviews", "cuda"): 32_768}
OTHERS = {("short", "cpu"): 256, ("reviews", "cpu"): 24, ("short", "cuda"): 1_024, ("reviews", "cuda"): 256}
BATCHES = {
    ("short", "cpu"): (8, 32, 128),
    ("reviews", "cpu"): (1, 4, 12),
    ("short", "cuda"): (64, 256),
    ("reviews", "cuda"): (32, 128),
}
CEILINGS = {("short", "cpu"): 1.5, ("reviews", "cpu"): 1.3}  # how near to it we want to come
REVIEWS_PER_SECOND = 11_500  # of 256 tokens, on an H200
BLANK = "something"  # what minicons is told to mask
GROUPS = ("nurses", "pilots", "teachers", "farmers", "students", "painters", "lawyers", "cooks")
MORE = ("who", "live", "in", "the", "old", "part", "of", "this", "town")


def main() -> None:
    """Time all of them, and tell."""
    parser = arguments(__doc__)
    parser.add_argument("work", choices=["short", "reviews"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="")
    parser.add_argument("--prompts", type=int, default=0)
    parser.add_argument("--least", type=int, default=64, help="tokens of the shortest review")
    parser.add_argument("--most", type=int, default=256, help="tokens of the longest review")
    parser.add_argument("--others", type=int, default=0, help="texts that the others are given")
    parser.add_argument("--batches", type=int, nargs="+", help="batch sizes of the others")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--layers", type=int, default=12, help="fewer of them, to try this out")
    options = parser.parse_args()
    options.dtype = options.dtype or ("float32" if options.device == "cpu" else "bfloat16")
    options.prompts = options.prompts or PROMPTS[options.work, options.device]
    options.others = options.others or OTHERS[options.work, options.device]
    options.batches = options.batches or BATCHES[options.work, options.device]
    logging.set_verbosity_error()
    logging.disable_progress_bar()

    requests = short_prompts(options.prompts) if options.work == "short" else reviews(options)
    with tempfile.TemporaryDirectory() as name:
        tell([compare(requests, Path(name), options)], to=options.json, device=options.device)


def short_prompts(count: int) -> list[Fill]:
    """Return prompts of 8 to 16 tokens: "why are nurses who live … so [MASK]?"."""
    texts = (
        " ".join(["Why are", GROUPS[number % len(GROUPS)], *MORE[: number // len(GROUPS) % 9], f"so {MASK}?"])
        for number in range(count)
    )
    return [Fill(text=text, top_k=TOP_K) for text in texts]


def reviews(options: argparse.Namespace) -> list[Fill]:
    """Return reviews with a word after them, as the shift test asks: start, review, word, "It was [MASK]", end.

    Words are gone through one after the other and with each all reviews, as one would write the loop.
    """
    rng = random.Random(0)
    lengths = [rng.randint(options.least, options.most) for _ in range(64)]
    texts = [rng.choices(MADE_UP, k=length) for length in lengths]
    requests = (
        Fill(
            text=" ".join([word] * repeated) + f" It was {MASK}",
            context=" ".join(review[: len(review) - repeated - 5]),
            words=LABELS,
            normalise="words",
        )
        for word in MADE_UP
        for repeated in (5, 10, 15)
        for review in texts
    )
    return list(itertools.islice(requests, options.prompts))


def compare(requests: list[Fill], folder: Path, options: argparse.Namespace) -> Row:
    """Time all on the same texts."""
    kind = options.work, options.device
    if options.work == "short":
        save_bert(folder, layers=options.layers)
    else:
        save_roberta(folder, ["It", "was", *LABELS, *MADE_UP], layers=options.layers)
    model = load_model(ModelSpec(name=str(folder), dtype=options.dtype), device=options.device)
    some = requests[: options.others]
    # in the order of their lengths, which is the best that a user of these tools can do
    some = [some[at] for _, at in sorted(zip(model.cost(some), range(len(some)), strict=True))]
    others: dict[str, Callable[[int], Callable[[], Any]]] = {
        "fill-mask pipeline": _pipeline(folder, some, options)
    }
    if importlib.util.find_spec("minicons"):
        others["minicons"] = _minicons(folder, some, options)
    else:
        print("minicons is not installed: not measured")
    wait = waiting(options.device)
    sizes: dict[str, int] = {}
    for name, at_size in others.items():
        trial = {str(size): at_size(size) for size in options.batches}
        trials = median_seconds(trial, repeats=1, after=wait) if len(trial) > 1 else dict.fromkeys(trial, 0.0)
        sizes[name] = int(min(trials, key=lambda size: trials[size]))
    plan, answers = _plan(model, requests, options), {}
    runs: dict[str, Callable[[], Any]] = {"ours": lambda: answers.update(_answers(model, requests, options))}
    runs |= {f"{name}, {size} at a time": others[name](size) for name, size in sizes.items()}
    runs["ceiling"] = _products(plan, options)
    seconds = median_seconds(runs, repeats=options.repeats, after=wait)
    lengths = model.cost(requests)
    operations = sum(_operations(length, options) for length in lengths)
    multiplied = _product_operations(plan, options.layers) / seconds.pop("ceiling")
    ours = len(requests) / seconds.pop("ours")
    ceiling = multiplied * len(requests) / operations
    rates = {name: len(some) / taken for name, taken in seconds.items()}
    ratio = ours / max(rates.values())
    targets = {"≥ 2 × the better of the others": ratio >= 2}
    if kind in CEILINGS:
        targets[f"within {CEILINGS[kind]} × of the ceiling"] = ceiling / ours <= CEILINGS[kind]
    if kind == ("reviews", "cuda") and options.least == options.most == 256:
        targets[f"≥ {REVIEWS_PER_SECOND:,} sequences/s"] = ours >= REVIEWS_PER_SECOND
    notes = [
        f"ceiling {figure(ceiling)}/s, {times(ceiling / ours)} ours: {multiplied / 1e12:.3g} TFLOP/s in products, "
        f"{ours * operations / len(requests) / 1e12:.3g} TFLOP/s in ours",
        f"largest difference from the pipeline: {_difference(folder, requests, answers, options):.1e}",
    ]
    if len(some) < len(requests):
        notes.append(f"the others were given {len(some):,} of the texts")
    if options.dtype == "bfloat16":
        notes.append(_drift(folder, requests[:512], answers, options))
    return Row(
        work=_work(options, lengths), unit="sequences/s", ours=ours, others=rates, targets=targets, notes=notes
    )


def _work(options: argparse.Namespace, lengths: Sequence[int]) -> str:
    span = (
        f"{min(lengths)} to {max(lengths)} tokens" if min(lengths) < max(lengths) else f"{lengths[0]} tokens each"
    )
    what = "top 200 words, BERT-base shape" if options.work == "short" else "two words, RoBERTa-base shape"
    texts = "prompts" if options.work == "short" else "reviews"
    return f"blanks of {options.prompts:,} {texts}, {span}, {what}, {options.dtype}"


def _plan(model: Any, requests: Sequence[Fill], options: argparse.Namespace) -> list[tuple[int, list[int]]]:
    """The batches as an audit plans them, window by window: the tokens of the longest, and who is in it."""
    found = []
    for first in range(0, len(requests), WINDOW):
        costs = model.cost(requests[first : first + WINDOW])
        for batch in plan_batches(costs, budget=default_budget(options.device)):
            found.append((max(costs[at] for at in batch), [first + at for at in batch]))
    return found


def _answers(model: Any, requests: Sequence[Fill], options: argparse.Namespace) -> dict[int, WordAnswer]:
    """Ask as a stage of an audit does: encode and plan a window, answer it, while the next is planned."""
    places: list[list[int]] = []

    def batches() -> Iterator[Batch]:
        for first in range(0, len(requests), WINDOW):
            window = requests[first : first + WINDOW]
            for batch in plan_batches(model.cost(window), budget=default_budget(options.device)):
                places.append([first + at for at in batch])
                yield Batch(len(places) - 1, tuple([window[at] for at in batch]))

    found: dict[int, WordAnswer] = {}
    for answered in LocalExecutor(model).run(batches()):
        found.update(zip(places[answered.number], answered.answers, strict=True))
    return found


def _pipeline(
    folder: Path, requests: Sequence[Fill], options: argparse.Namespace
) -> Callable[[int], Callable[[], Any]]:
    fill = pipeline("fill-mask", model=str(folder), dtype=getattr(torch, options.dtype), device=options.device)
    mask = fill.tokenizer.mask_token
    texts = [f"{request.context} {request.text}".strip().replace(MASK, mask) for request in requests]
    asked: dict[str, Any] = (
        {"top_k": TOP_K} if options.work == "short" else {"targets": [f"Ġ{word}" for word in LABELS]}
    )
    return lambda size: lambda: fill(texts, batch_size=size, **asked)


def _minicons(
    folder: Path, requests: Sequence[Fill], options: argparse.Namespace
) -> Callable[[int], Callable[[], Any]]:
    from minicons.scorer import MaskedLMScorer

    scorer = MaskedLMScorer(str(folder), options.device, dtype=getattr(torch, options.dtype))
    queries = [(f"{request.context} {request.text}".strip().replace(MASK, BLANK), BLANK) for request in requests]
    words = [scorer.tokenizer(f" {word}", add_special_tokens=False)["input_ids"][0] for word in LABELS]

    def run(size: int) -> None:
        for first in range(0, len(queries), size):
            found = scorer.cloze_distribution(queries[first : first + size])
            if options.work == "short":
                scorer.topk(found[:, None], TOP_K)
            else:
                found[:, words].tolist()

    return lambda size: lambda: run(size)


def _difference(
    folder: Path, requests: Sequence[Fill], answers: dict[int, WordAnswer], options: argparse.Namespace
) -> float:
    """The largest difference between our log-probabilities and the pipeline's, of the first texts."""
    found = _pipeline(folder, requests[:8], options)(8)()
    apart = []
    for at, theirs in enumerate(found):
        mine = dict(zip(answers[at].words, answers[at].logprobs, strict=True))
        scores = {each["token_str"].strip(): math.log(each["score"]) for each in theirs}
        if options.work == "short":
            apart += [abs(mine[word] - scores[word]) for word in list(mine)[:20] if word in scores]
        else:  # ours are relative to each other, theirs to the vocabulary
            apart.append(abs(mine[LABELS[0]] - mine[LABELS[1]] - scores[LABELS[0]] + scores[LABELS[1]]))
    return max(apart)


def _drift(
    folder: Path, requests: Sequence[Fill], answers: dict[int, WordAnswer], options: argparse.Namespace
) -> str:
    """How far bfloat16 is from float32 on the same texts."""
    exact = load_model(ModelSpec(name=str(folder), dtype="float32"), device=options.device)
    apart = []
    for at, other in _answers(exact, requests, options).items():
        mine, theirs = (dict(zip(each.words, each.logprobs, strict=True)) for each in (answers[at], other))
        apart += [mine[word] - theirs[word] for word in mine if word in theirs]
    return drift(apart)


def _operations(tokens: int, options: argparse.Namespace) -> float:
    """Return the operations of one answer: the last layer at the blank alone."""
    whole = (options.layers - 1) * (24 * tokens * SIZE**2 + 4 * tokens**2 * SIZE)
    last = 4 * tokens * SIZE**2 + 20 * SIZE**2 + 4 * tokens * SIZE
    vocabulary = 30_522 if options.work == "short" else len(LABELS)
    return float(whole + last + 2 * SIZE**2 + 2 * SIZE * vocabulary)


_PRODUCTS = ((SIZE, 3 * SIZE), (SIZE, SIZE), (SIZE, 4 * SIZE), (4 * SIZE, SIZE))  # of one layer


def _products(plan: Sequence[tuple[int, list[int]]], options: argparse.Namespace) -> Callable[[], None]:
    """Return what multiplies the matrices of one layer for every batch, a layer in turn, with nothing between."""
    dtype = getattr(torch, options.dtype)
    layers = [
        [torch.nn.Linear(*shape, bias=False, dtype=dtype, device=options.device) for shape in _PRODUCTS]
        for _ in range(options.layers)
    ]
    for layer in layers:
        speed_up_linear_layers(torch.nn.ModuleList(layer), packed=True)
    rows = [_rows(each) for each in plan]
    given = {
        (many, wide): torch.randn((many, wide), dtype=dtype, device=options.device)
        for many in set(rows)
        for wide in (SIZE, 4 * SIZE)
    }

    def run() -> None:
        for many in rows:
            for layer in layers:
                for multiply in layer:
                    multiply(given[many, multiply.in_features])

    return torch.inference_mode()(run)


def _product_operations(plan: Sequence[tuple[int, list[int]]], layers: int) -> float:
    return sum(2.0 * _rows(each) * layers * sum(wide * high for wide, high in _PRODUCTS) for each in plan)


def _rows(planned: tuple[int, list[int]]) -> int:
    return planned[0] * len(planned[1])


if __name__ == "__main__":
    main()
