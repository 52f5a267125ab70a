"""How many prompts a second the host makes, keys, tokenises, plans, reads out and records in the shift test.

    python benchmarks/host.py [--device cpu|cuda] [--prompts 400000] [--forward] [--batch-tokens N] [--json FILE]

The real path with `builtin:masked`: the stage `shift` of the audit sentiment_words, asked by `run_stage`, recorded
in a run folder and joined. Reviews are made up (median of thirty words, as in the paper's own mix), 319 words are
appended 5, 10 and 15 times: 957 prompts for each review, as at the paper's size of 3.8 million.

On a CPU the forward pass would hide what is measured here, so it is left out, and batches are as large as on a
GPU; with --forward, and on a GPU always, it runs. There it computes in bfloat16, and how far that drifts from
float32 is measured on some of the prompts; with --drift on a CPU, too, and nothing else. What is printed: prompts
per second of the clock and of CPU time (all threads), and where in our source the threads were found, looked at
every few milliseconds.
"""

from __future__ import annotations

import csv
import random
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import torch
from measured import Row, arguments, drift, tell

import clinometer
from clinometer.engine import RequestIdentity, Silent, Worker, run_stage
from clinometer.engine.batching import tokens_for
from clinometer.engine.executor import LocalExecutor
from clinometer.models.load import load_model
from clinometer.models.local.masked import MaskedModel
from clinometer.models.local.readout import Projection, linear_projection
from clinometer.probes.protocol import Plan
from clinometer.probes.sentiment_words import PROBE
from clinometer.probes.sentiment_words.options import Options
from clinometer.probes.sentiment_words.questions import shift_prompts
from clinometer.store import RunFolder, StageKey
from clinometer.types import Fill, ModelSpec

MODEL = "builtin:masked"
WORDS = 319
KS = (5, 10, 15)
TEMPLATE = "It was [MASK]"
COMMON = """
the a of and is it that was this film movie in to as but with for on you one not have be are his they all who at
story by like from so there just or about what out some good more when very up if time my even would which only
really see had can no their were me than much plot scene character acting director ending long slow warm
"""
RATE = 40_000  # prompts a second, to reach
_EVERY = 0.003  # seconds between two looks at the threads


def main() -> None:
    """Ask the stage once and print what was measured."""
    parser = arguments(__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--prompts", type=int, default=400_000)
    parser.add_argument("--forward", action="store_true", help="run the model on a CPU, too")
    parser.add_argument("--batch-tokens", type=int, default=tokens_for(gpu=True))
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16"], default="auto")
    parser.add_argument("--drift", action="store_true", help="only measure that of bfloat16")
    parser.add_argument("--warm-up", type=int, default=0, help="prompts that are asked before, and not counted")
    given = parser.parse_args()
    if given.drift:
        print(drift_of(given.device))
        return
    if given.device == "cpu":
        torch.set_num_threads(1)
    model = load_model(ModelSpec(name=MODEL, dtype=given.dtype), device=given.device)
    if given.device == "cpu" and not given.forward:
        leave_out_forward(model)
    with tempfile.TemporaryDirectory() as folder:
        if given.warm_up:  # compiled layers, the tokenizer's first call
            measure(Path(folder) / "before", model, given.warm_up, given.batch_tokens)
        found = measure(Path(folder) / "run", model, given.prompts, given.batch_tokens)
    aim = {f"≥ {RATE:,} prompts/s": found.ours >= RATE} if given.device == "cuda" else {}
    if given.device == "cuda":
        found = replace(found, notes=[*found.notes, drift_of(given.device)])
    left_out = "" if given.device == "cuda" or given.forward else ", the forward pass left out"
    work = f"shift test, {found.work}, {MODEL}, {given.device}{left_out}"
    tell([replace(found, work=work, targets=aim)], to=given.json, device=given.device)


def drift_of(device: str, *, prompts: int = 512) -> str:
    """How far bfloat16 is from float32: the log-odds of the two labels, which decide."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(COMMON.split(), k=rng.choice((10, 30, 60)))) + "." for _ in range(prompts)]
    asked = [Fill(text=TEMPLATE, context=text, words=("great", "terrible")) for text in texts]
    odds = [
        [one - other for one, other in (answer.logprobs for answer in model.fill(asked))]
        for dtype in ("bfloat16", "float32")
        for model in (load_model(ModelSpec(name=MODEL, dtype=dtype), device=device),)
    ]
    apart = [mine - exact for mine, exact in zip(*odds, strict=True)]
    return drift(apart, "the labels' log-odds", where="on a CPU" * (device == "cpu"))


def measure(folder: Path, model: Any, prompts: int, batch_tokens: int) -> Row:
    """Ask, record and join one stage of about so many prompts."""
    folder.mkdir()
    plan = Plan(options=options_for(folder, prompts), seed=0, model=replace(model.info, name=MODEL))
    run = RunFolder.create(folder / "run", spec="version = 1\n", provenance={}, models=[plan.model])
    records = Recorded(run)
    executor = Counted(LocalExecutor(model))
    worker = Worker(model=model, executor=executor, batch_tokens=batch_tokens)
    identity = RequestIdentity(plan.model)

    def ask(questions: Any, key: StageKey) -> None:
        run_stage(
            questions,
            run=run,
            key=key,
            done=run.done(key),
            identity=identity,
            worker=lambda: worker,
            cache=None,
            progress=Silent(),
        )

    vocabulary = PROBE.stages(plan)[0]
    ask(PROBE.questions(vocabulary, plan, records), key_of(vocabulary.name))
    key = key_of("shift")
    executor.prompts = executor.batches = 0
    wall, cpu = time.perf_counter(), time.process_time()
    with Looks() as looks:
        ask(shift_prompts(plan, records, templates=[TEMPLATE]), key)
        asked_wall, asked_cpu = time.perf_counter() - wall, time.process_time() - cpu
        run.compact(key)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    files = list((folder / "run" / "records").rglob("*.parquet"))
    size = sum(file.stat().st_size for file in files) / executor.prompts
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    shares = [f"{share:.0%} {where}" for where, share in looks.shares().items()]
    return Row(
        work=f"{executor.prompts:,} prompts",
        unit="prompts/s",
        ours=executor.prompts / wall,
        notes=[
            f"{executor.prompts / cpu:,.0f} prompts in a second of CPU time; {wall:.1f} s, {cpu:.1f} s of it",
            f"of these, to join parts: {wall - asked_wall:.1f} s, {cpu - asked_cpu:.1f} s of CPU time",
            f"{executor.batches:,} batches, {size:.1f} bytes for each prompt on disk, {peak:.1f} GB of memory",
            "threads were found in: " + ", ".join(shares),
        ],
    )


def key_of(stage: str) -> StageKey:
    """Return the name of a stage in the run."""
    return StageKey(probe=PROBE.name, model=MODEL, stage=stage)


def options_for(folder: Path, prompts: int) -> Options:
    """Write word list and reviews, and return the options that ask about so many prompts of them."""
    rng = random.Random(0)
    syllables = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
    words = dict.fromkeys("".join(rng.choices(syllables, k=rng.choice((2, 2, 3)))) for _ in range(4 * WORDS))
    with open(folder / "words.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["word", "label"])
        writer.writerows([word, "neutral"] for word in list(words)[:WORDS])
        writer.writerows([word, "positive"] for word in ("great", "good"))
        writer.writerows([word, "negative"] for word in ("terrible", "bad"))
    reviews = max(20, round(prompts / (WORDS * len(KS))))
    with open(folder / "reviews.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(2 * (reviews // 2) + 2):
            length = min(220, max(5, round(rng.lognormvariate(3.4, 0.6))))
            text = " ".join(rng.choices(COMMON.split(), k=length)) + f" {number}."
            writer.writerow([text, ("positive", "negative")[number % 2]])
    return Options(
        words_file=str(folder / "words.csv"),
        reviews_file=str(folder / "reviews.csv"),
        reviews_per_class=max(10, reviews // 2),
        templates=(TEMPLATE,),
        ks=KS,
    )


@dataclass
class Recorded:
    """What a probe sees of earlier stages."""

    run: RunFolder

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the records of a stage."""
        return self.run.table(key_of(stage), columns=columns)

    def batches(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the records of a stage."""
        return self.run.batches(key_of(stage), columns=columns)


@dataclass
class Counted:
    """An executor that counts what it is given."""

    executor: LocalExecutor
    prompts: int = 0
    batches: int = 0

    def run(self, batches: Any) -> Any:
        """Pass on and count."""

        def counted() -> Any:
            for batch in batches:
                self.prompts += len(batch.requests)
                self.batches += 1
                yield batch

        return self.executor.run(counted())


def leave_out_forward(model: Any) -> None:
    """Let the readout see the same made-up states in every batch; everything before and after is as it is."""
    matrix = model._model.get_output_embeddings()
    states = torch.randn(65_536, matrix.weight.shape[1], generator=torch.Generator().manual_seed(0))

    def project(self: Any, ids: Any, attention: Any, blanks: Any) -> tuple[Projection, int]:
        return linear_projection(states[: len(ids)], matrix.weight, matrix.bias), matrix.weight.shape[0]

    MaskedModel._project = project  # type: ignore[method-assign]


@dataclass
class Looks:
    """Looks at every thread every few milliseconds and notes the innermost line of ours that it is in."""

    found: Counter[str] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Looks:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def shares(self, most: int = 20) -> dict[str, float]:
        """Return the share of looks that found each function of ours; waiting counts where it happens."""
        looks = max(1, self.found.pop("looks", 1))
        return {where: round(count / looks, 3) for where, count in self.found.most_common(most)}

    def _look(self) -> None:
        ours = str(Path(clinometer.__file__).parent)
        own = threading.get_ident()
        while not self._stop.wait(_EVERY):
            self.found["looks"] += 1
            for ident, frame in sys._current_frames().items():
                at: Any = frame
                while ident != own and at is not None:
                    code = at.f_code
                    if code.co_filename.startswith(ours):
                        self.found[f"{Path(code.co_filename).relative_to(ours)} {code.co_qualname}"] += 1
                        break
                    at = at.f_back


if __name__ == "__main__":
    main()
