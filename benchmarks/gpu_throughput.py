"""What one GPU answers in a second, and the hours of a whole audit that follow from it.

    python benchmarks/gpu_throughput.py measure --out throughput.json [--device cuda|cpu] [--tiny] [--seconds 2]
                                                [--models bert-base roberta-large gpt2 7b classifier]
    python benchmarks/gpu_throughput.py hours throughput.json [--write]

`measure` builds models with random weights in the shapes of BERT-base, RoBERTa-large, GPT-2 and Llama-2-7B on the
device, so that nothing is downloaded, and asks them through our adapters, batches and executor, as an audit does:
blanks and next words after texts of 64 and of 256 tokens, continuations of 50 tokens, a blank filled by rescoring,
and labels of texts of 64 tokens by a classifier of BERT-base's shape. What cannot be measured is there with its
error. `--tiny` tries all of it with two small layers.

`hours` multiplies: it prints the tables of docs/cluster.md, or writes them there.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import json
import math
import platform
import random
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if importlib.util.find_spec("polars") is None:
    # a machine that has torch and little else: batching and executor do without the store, which needs polars
    import clinometer

    bare = types.ModuleType("clinometer.engine")
    bare.__path__ = [str(Path(clinometer.__file__).parent / "engine")]
    sys.modules["clinometer.engine"] = bare

LABELS = ("great", "terrible")
CANDIDATES = 785  # words that stigma puts into a blank
SAMPLES, NEW_TOKENS = 100, 50  # continuations in one request, as counterfactual asks for them
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se")
WORDS = ["".join(syllables) for syllables in itertools.product(SYLLABLES, repeat=3)][:1200]
MASKED, CAUSAL, CLASSIFIER = "masked", "causal", "classifier"
SHAPES = {"bert-base": MASKED, "roberta-large": MASKED, "gpt2": CAUSAL, "7b": CAUSAL, "classifier": CLASSIFIER}


# -- what is measured


def measure(options: argparse.Namespace) -> int:
    """Measure every cell; the file is written after each, so that a failure loses only what comes after it."""
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    on_gpu = options.device == "cuda"
    found: dict[str, Any] = {
        "machine": torch.cuda.get_device_name() if on_gpu else platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "dtype": "bfloat16" if on_gpu else "float32",
        "tiny": options.tiny,
        "rates": {},
    }
    failed = 0
    for name in options.models:
        rates = found["rates"].setdefault(name, {})
        try:
            model, parameters = _built(name, device=options.device, tiny=options.tiny)
        except Exception as error:
            traceback.print_exc()
            rates["error"], failed = _reason(error), failed + 1
            continue
        rates["parameters"] = parameters
        for cell, (requests, unit, units) in _cells(SHAPES[name], tiny=options.tiny).items():
            first = 256 if unit in ("prompts", "texts") and not options.tiny else 8
            try:
                rates[cell] = _rate(
                    model, requests, units, device=options.device, seconds=options.seconds, first=first
                )
                rates[cell]["unit"] = unit
                print(f"{name:14} {cell:12} {rates[cell]['rate']:14,.1f} {unit} a second", flush=True)
            except Exception as error:
                traceback.print_exc()
                rates[cell], failed = {"error": _reason(error)}, failed + 1
            if options.out:
                Path(options.out).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        del model
        gc.collect()
        if on_gpu:
            torch.cuda.empty_cache()
    print(json.dumps(found))
    return 1 if failed else 0


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _rate(
    model: Any,
    requests: Callable[[int], Iterator[Any]],
    units: Callable[[Any, Sequence[Any]], int],
    *,
    device: str,
    seconds: float,
    first: int,
) -> dict[str, float]:
    """Answer so many requests that it takes a while, each number twice: the first time warms up."""
    from clinometer.engine.batching import default_budget, plan_batches
    from clinometer.engine.executor import Batch, LocalExecutor

    executor = LocalExecutor(model)

    def run(some: Sequence[Any]) -> float:
        # questions are measured and planned inside the time, as the engine does it between batches
        began = time.perf_counter()
        plan = plan_batches(model.cost(some), budget=default_budget(device))
        batches = (Batch(number, [some[at] for at in places]) for number, places in enumerate(plan))
        answered = sum(len(batch.answers) for batch in executor.run(batches))
        assert answered == len(some)
        return time.perf_counter() - began

    count = first
    while True:
        some = list(requests(count))
        run(some)  # kernels are compiled for these shapes
        took = run(some)
        if took > seconds / 2:
            tokens = sum(model.cost(some)) / len(some)
            return {"rate": units(model, some) / took, "requests": count, "seconds": took, "tokens": tokens}
        count = min(8 * count, math.ceil(count * seconds / took))


Cells = Mapping[str, tuple[Callable[[int], Iterator[Any]], str, Callable[[Any, Sequence[Any]], int]]]


def _cells(kind: str, *, tiny: bool) -> Cells:
    """Return what a kind of model is asked: the requests, in what they are counted, and how many that are."""
    from clinometer.types import MASK, Classify, Fill, NextWord, Rescore, Sample

    rng = random.Random(0)
    longest = 64 if tiny else 256

    def text(count: int) -> str:
        return " ".join(rng.choices(WORDS, k=count))

    def fills(length: int) -> Callable[[int], Iterator[Any]]:
        # <s> review word × 5 It was [MASK] </s>
        return lambda count: (
            Fill(
                text=f"{' '.join([rng.choice(WORDS)] * 5)} It was {MASK}",
                context=text(length - 10),
                words=LABELS,
                normalise="words",
            )
            for _ in range(count)
        )

    def next_words(length: int) -> Callable[[int], Iterator[Any]]:
        return lambda count: (
            NextWord(
                text=f"{' '.join([rng.choice(WORDS)] * 5)} It was",
                context=text(length - 7),
                words=LABELS,
                normalise="words",
            )
            for _ in range(count)
        )

    def samples(count: int) -> Iterator[Any]:
        some = 16 if tiny else SAMPLES
        return (Sample(prefix=text(8), n=some, max_new_tokens=NEW_TOKENS, seed=at) for at in range(count))

    def rescored(count: int) -> Iterator[Any]:
        words = tuple(WORDS[: 20 if tiny else CANDIDATES])
        return (Rescore(text=f"{text(8)} {MASK} {text(10)}", words=words) for _ in range(count))

    def each(model: Any, some: Sequence[Any]) -> int:
        return len(some)

    if kind == CLASSIFIER:
        return {"texts_64": (lambda count: (Classify(text=text(62)) for _ in range(count)), "texts", each)}
    short = 32 if tiny else 64
    if kind == MASKED:
        return {"prompts_64": (fills(short), "prompts", each), "prompts_256": (fills(longest), "prompts", each)}
    return {
        "prompts_64": (next_words(short), "prompts", each),
        "prompts_256": (next_words(longest), "prompts", each),
        "sampled": (samples, "tokens", lambda _, some: sum(one.n * one.max_new_tokens for one in some)),
        "rescored": (rescored, "tokens", lambda model, some: sum(model.cost(some))),
    }


def _built(name: str, *, device: str, tiny: bool) -> tuple[Any, int]:
    """Return our adapter around random weights, and how many these are."""
    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoModelForMaskedLM,
        AutoModelForSequenceClassification,
        BertConfig,
        GPT2Config,
        LlamaConfig,
        RobertaConfig,
    )

    from clinometer.models.local.causal import CausalModel
    from clinometer.models.local.classifier import ClassifierModel
    from clinometer.models.local.masked import MaskedModel
    from clinometer.models.local.text import window_of
    from clinometer.types import ModelInfo

    kind = SHAPES[name]
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    large = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    llama = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008}
    bert = {"vocab_size": 30_522, "pad_token_id": 1, **(small if tiny else {})}
    configs: dict[str, Callable[[], Any]] = {
        "bert-base": lambda: BertConfig(**bert),
        "roberta-large": lambda: RobertaConfig(
            vocab_size=50_265, max_position_embeddings=514, type_vocab_size=1, **(small if tiny else large)
        ),
        "gpt2": lambda: GPT2Config(**({"n_embd": 32, "n_layer": 2, "n_head": 4} if tiny else {})),
        "7b": lambda: LlamaConfig(vocab_size=32_000, **(small if tiny else llama)),
        "classifier": lambda: BertConfig(num_labels=3, **bert),
    }
    config = configs[name]()
    if kind == CAUSAL:
        config.bos_token_id = config.eos_token_id = config.vocab_size - 1
    auto = {
        MASKED: AutoModelForMaskedLM,
        CAUSAL: AutoModelForCausalLM,
        CLASSIFIER: AutoModelForSequenceClassification,
    }[kind]
    with torch.device(device):
        model = auto.from_config(config, dtype=torch.bfloat16 if device == "cuda" else torch.float32).eval()
    tokenizer = _tokenizer(config.vocab_size, kind)
    info = ModelInfo(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        family=config.model_type,
        capabilities=(),
        weights="",
        tokenizer="",
        dtype=str(model.dtype),
        code="",
        window=window_of(tokenizer, config),
    )
    parts = {"info": info, "model": model, "tokenizer": tokenizer}
    if kind == CLASSIFIER:
        return ClassifierModel(**parts, classes=("negative", "neutral", "positive")), model.num_parameters()
    return (MaskedModel if kind == MASKED else CausalModel)(**parts), model.num_parameters()


def _tokenizer(size: int, kind: str) -> Any:
    """Return a tokenizer in which every word above is one token; the rest of the vocabulary is only written."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    known = [*WORDS, *LABELS, "It", "was"]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokens += [*known, *(f"Ġ{word}" for word in known)]
    tokens += [f"Ġ{number:x}" for number in range(size - len(tokens) - 1)] + ["<end>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    if kind == CAUSAL:
        return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        cls_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        mask_token=AddedToken("<mask>", lstrip=True, special=True, normalized=False),
        model_max_length=512,
    )


# -- what follows from it


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one model is asked in a profile, all five audits together."""

    long: int  # prompts counted at 256 tokens
    short: int  # prompts counted at 64 tokens
    sampled: int = 0  # tokens
    rescored: int = 0  # tokens
    texts: int = 0  # texts of about 64 tokens that two classifiers and an encoder read, each counted


# sentiment_words: words × repetitions × reviews, and the reviews alone; then counterexamples, stereotypes, stigma;
# `clinometer audit builtin:masked builtin:causal --profile PROFILE --dry-run` prints the sizes of the stages.
WORK: dict[str, dict[str, Work]] = {
    MASKED: {
        "quick": Work(long=0, short=10 * 3 * 140 + 280 + 1_276 + 754 + 373 + 973),
        "standard": Work(long=120 * 3 * 300 + 600, short=3_886 + 754 + 1_865 + 3_892),
        "paper": Work(long=400 * 3 * 4_000 + 4_000, short=2_680 + 520 + 1_865 + 3_892),
    },
    CAUSAL: {
        "quick": Work(
            long=0,
            short=10 * 1 * 40 + 40 + 1_276 + 754 + 373,
            sampled=24 * 8 * 50,
            rescored=87 * 393 + 406 * 393,
            texts=24 * 8 * 3,
        ),
        "standard": Work(
            long=120 * 3 * 200 + 200,
            short=3_886 + 754 + 1_865,
            sampled=730 * 100 * 50,
            rescored=3_895 * 411 + 580 * 411,
            texts=730 * 100 * 3,
        ),
        "paper": Work(
            long=400 * 3 * 4_000 + 4_000,
            short=2_680 + 520 + 1_865,
            sampled=730 * 1_000 * 50,
            rescored=3_895 * 15_950 + 400 * 411,
            texts=730 * 1_000 * 3,
        ),
    },
}
PROFILES = ("quick", "standard", "paper")
GPUS = (1, 8, 64)
NAMES = {"bert-base": "BERT-base", "roberta-large": "RoBERTa-large", "gpt2": "GPT-2", "7b": "7B causal"}
COHORT = {"bert-base": 10, "roberta-large": 10, "7b": 10}
DRIVER = 15_000  # requests a second that one driver hands out (docs/cluster.md, measured by benchmarks/ray.py)
DOCS = Path(__file__).parents[1] / "docs" / "cluster.md"
BEGIN, END = "<!-- hours: written by benchmarks/gpu_throughput.py -->", "<!-- end of hours -->"


def parts_of(name: str, work: Work, rates: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    """Return what each part of the work of one model is: how many, and how many a second."""
    own = rates[name]
    parts = {
        "long prompts": (work.long, own["prompts_256"]["rate"]),
        "short prompts": (work.short, own["prompts_64"]["rate"]),
    }
    if work.sampled:
        parts |= {
            "rescored tokens": (work.rescored, own["rescored"]["rate"]),
            "sampled tokens": (work.sampled, own["sampled"]["rate"]),
            "texts read": (work.texts, rates["classifier"]["texts_64"]["rate"]),
        }
    return parts


def hours_of(name: str, profile: str, rates: Mapping[str, Any]) -> float:
    """Return the GPU-hours of one model."""
    work = WORK[SHAPES[name]][profile]
    return sum(count / rate for count, rate in parts_of(name, work, rates).values()) / 3600


def driver_hours(name: str, profile: str) -> float:
    """Return the hours for which one driver is busy with the requests of one model."""
    work = WORK[SHAPES[name]][profile]
    # a request asks for up to 100 texts of one prompt; stigma's blanks are a few thousand
    return (work.long + work.short + work.sampled / (50 * 100) + work.texts) / DRIVER / 3600


def tables(found: Mapping[str, Any]) -> str:
    """Return the tables as Markdown."""
    rates = found["rates"]
    head = f"one {found['machine']}, {found['dtype']}"
    lines = [
        f"Measured (`benchmarks/gpu_throughput.py measure`; torch {found['torch']}, transformers "
        f"{found['transformers']}; random weights, our adapters, batches and executor):",
        "",
        f"| {head} | parameters | prompts/s, 64 tokens | prompts/s, 256 | sampled tokens/s | rescored tokens/s |",
        "|---|---|---|---|---|---|",
    ]
    for name, shown in NAMES.items():
        cells = ("prompts_64", "prompts_256", "sampled", "rescored")
        each = [f"{rates[name][cell]['rate']:,.0f}" if cell in rates[name] else "–" for cell in cells]
        lines.append(f"| {shown} | {rates[name]['parameters'] / 1e6:,.0f} M | {' | '.join(each)} |")
    texts = rates["classifier"]["texts_64"]["rate"]
    lines += [
        "",
        f"A classifier of BERT-base's shape reads {texts:,.0f} texts of 64 tokens a second.",
        "",
        "Computed from that, GPU-hours of one model, all five audits:",
        "",
        f"| | {' | '.join(PROFILES)} | arithmetic at `paper`, in seconds |",
        "|---|---|---|---|---|",
    ]
    for name, shown in NAMES.items():
        parts = parts_of(name, WORK[SHAPES[name]]["paper"], rates)
        sums = " + ".join(
            f"{count:,} {what} / {rate:,.0f} = {count / rate:,.0f}" for what, (count, rate) in parts.items()
        )
        each = [_shown(hours_of(name, profile, rates)) for profile in PROFILES]
        lines.append(f"| {shown} | {' | '.join(each)} | {sums} |")
    lines += [
        "",
        f"Extrapolated: hours for N GPUs, if they add up; one driver hands out {DRIVER:,} requests a second, so "
        "the hours are never less than its share (marked *).",
        "",
        f"| | profile | {' | '.join(f'{count} GPUs' for count in GPUS).replace('1 GPUs', '1 GPU', 1)} |",
        f"|---|---|{'---|' * len(GPUS)}",
    ]
    for (name, shown), profile in itertools.product(NAMES.items(), PROFILES):
        each = [_bounded(hours_of(name, profile, rates) / count, driver_hours(name, profile)) for count in GPUS]
        lines.append(f"| {shown} | {profile} | {' | '.join(each)} |")
    for profile in PROFILES:
        total = sum(models * hours_of(name, profile, rates) for name, models in COHORT.items())
        driver = sum(models * driver_hours(name, profile) for name, models in COHORT.items())
        each = [_bounded(total / count, driver) for count in GPUS]
        shown = ", ".join(f"{models} {NAMES[name]}" for name, models in COHORT.items())
        lines.append(f"| a cohort: {shown} ({_shown(total)} GPU-hours) | {profile} | {' | '.join(each)} |")
    return "\n".join(lines)


def _shown(hours: float) -> str:
    return "< 0.01" if hours < 0.005 else f"{hours:.2f}" if hours < 10 else f"{hours:,.1f}"


def _bounded(hours: float, driver: float) -> str:
    return f"{_shown(driver)}*" if driver > hours else _shown(hours)


def hours(options: argparse.Namespace) -> int:
    """Print the tables, or put them into the docs."""
    found = json.loads(Path(options.file).read_text(encoding="utf-8"))
    made = tables(found)
    if options.write and found["tiny"]:
        raise SystemExit("these are the rates of tiny models: measure without --tiny")
    if not options.write:
        print(made)
        return 0
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCS.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", encoding="utf-8")
    return 0


def main() -> int:
    """Measure, or compute."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    measuring.add_argument("--out", default="")
    measuring.add_argument("--seconds", type=float, default=2.0, help="of each measurement, about")
    measuring.add_argument("--tiny", action="store_true")
    measuring.add_argument("--models", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    measuring.set_defaults(run=measure)
    computing = commands.add_parser("hours")
    computing.add_argument("file")
    computing.add_argument("--write", action="store_true")
    computing.set_defaults(run=hours)
    options = parser.parse_args()
    chosen: Callable[[argparse.Namespace], int] = options.run
    return chosen(options)


if __name__ == "__main__":
    sys.exit(main())
