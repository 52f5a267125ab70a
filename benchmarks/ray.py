"""What Ray costs: efficiency of a second worker, overhead of a batch, memory of the driver.

    python benchmarks/ray.py [efficiency] [overhead] [memory] [--requests 5000000] [--seconds 20] [--rounds 2]

efficiency  a masked model on one and on two single-thread workers, in turns; requests a second from the first
            answers on, so that neither Ray's start nor loading counts. 100 %: two are twice as fast as one. The
            local executor with one thread, in this process, is timed for comparison.
overhead    a model that answers at once, in batches of 16 requests: what is left is sending and receiving.
memory      the driver's resident memory while a whole stage goes by: questions made, hashed, planned, sent to a
            worker that answers at once, received and recorded in a run folder, whose parts are joined at the end;
            then what it takes to open that stage again, as a resume does. Processor time of this process is
            printed, too, because other programs disturb it less than the rate.

Other programs on the machine disturb all of it: the load is printed, and the rounds are shown one by one. They
disturb least the share of time in which workers are at work: what is missing to 100 % is what Ray and driver cost.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.pop(0)  # this folder: `import ray` must not find this file

from clinometer.engine import Batch, ClusterSettings, LocalExecutor, RequestIdentity, Silent, Worker, run_stage
from clinometer.engine.batching import plan_batches
from clinometer.engine.cluster.executor import RayExecutors
from clinometer.models.fake import FakeModel
from clinometer.models.load import load_model
from clinometer.store import RunFolder, StageKey
from clinometer.types import Fill, Item, ModelInfo, ModelSpec, Request, WordAnswer

MODEL = "builtin:masked"
TOKENS = 2_048  # in a batch: what a CPU is given


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["efficiency", "overhead", "memory"])
    parser.add_argument("--requests", type=int, default=5_000_000, help="of the memory measurement")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each round of the efficiency measurement")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    cores = os.cpu_count()
    print(f"{cores} cores, load {os.getloadavg()[0]:.1f} before anything was begun")
    if "efficiency" in options.what:
        efficiency(options.seconds, options.rounds)
    if "overhead" in options.what:
        overhead()
    if "memory" in options.what:
        memory(options.requests)


def efficiency(seconds: float, rounds: int) -> None:
    """Compare two workers with one."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _, workers in itertools.product(range(rounds), (1, 2)):
        factory = RayExecutors(ClusterSettings(workers=workers, threads=1), release="benchmark")
        try:
            model = load_model(ModelSpec(name=MODEL), device="cpu")
            executor = factory(model, spec=ModelSpec(name=MODEL), device="cpu")
            rate, busy, at_work = _rate(executor.run(_questions(model)), seconds, warm=workers, factory=factory)
        finally:
            factory.close()
        rates[workers].append(rate)
        load = os.getloadavg()[0]
        told = (
            f"workers at work {at_work / workers:4.0%} of the time, driver {busy:4.0%} of a core, load {load:.1f}"
        )
        print(f"  {workers} worker(s): {rate:8.1f} requests/s, {told}", flush=True)
    import torch

    torch.set_num_threads(1)
    local, _, _ = _rate(LocalExecutor(model).run(_questions(model)), seconds, warm=1)
    one, two = (statistics.median(rates[workers]) for workers in (1, 2))
    print(f"  local, one thread: {local:8.1f} requests/s; one worker reaches {one / local:.0%} of it")
    print(f"efficiency from 1 to 2 workers: {two / (2 * one):.0%} (medians of {rounds} rounds)")


def overhead() -> None:
    """Time batches that cost nothing."""
    local = _empty_batches(None)
    there = _empty_batches(RayExecutors(ClusterSettings(workers=1), release="benchmark"))
    print(f"overhead: {1e3 * (there - local):.2f} ms a batch with Ray ({1e3 * local:.2f} ms without)")


def _empty_batches(factory: RayExecutors | None) -> float:
    model = FakeModel(answer=_at_once, name="empty")
    spec = ModelSpec(name="empty")
    executor = factory.carry(model, spec=spec, device="cpu") if factory else LocalExecutor(model)
    requests = [Fill(text=f"Number {number} is [MASK].", words=("he", "she")) for number in range(16)]
    try:
        answered = executor.run(Batch(number, requests) for number in itertools.count())
        for _ in range(50):
            next(answered)
        began = time.perf_counter()
        for _ in range(1000):
            next(answered)
        return (time.perf_counter() - began) / 1000
    finally:
        if factory is not None:
            factory.close()


class AtOnce:
    """A model that answers a blank with the same two numbers, so that all time goes into sending and recording."""

    info = ModelInfo(
        name="at-once",
        kind="masked",
        family="none",
        capabilities=("fill",),
        weights="none",
        tokenizer="none",
        dtype="float32",
        code="none",
    )

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return one length for all."""
        return [8] * len(requests)

    def fill(self, batch: Sequence[Fill]) -> list[WordAnswer]:
        """Return the same answer for all."""
        return [WordAnswer(words=request.words, logprobs=(-1.0, -2.0)) for request in batch]


class Watched(Silent):
    """Prints the memory of this process each time so many answers are recorded."""

    def __init__(self, every: int) -> None:
        self.every, self.count, self.next = every, 0, every
        self.began, self.busy = time.perf_counter(), time.process_time()

    def advance(self, count: int) -> None:
        """Count."""
        self.count += count
        if self.count >= self.next:
            self.next += self.every
            taken, busy = time.perf_counter() - self.began, time.process_time() - self.busy
            told = f"{self.count / taken:,.0f} requests/s, {1e6 * busy / self.count:.0f} µs of this process each"
            print(f"  {self.count:>9,} requests: {_resident():4.0f} MiB, {told}", flush=True)


def memory(requests: int) -> None:
    """Watch the driver's memory while many requests go by."""
    model, spec, key = AtOnce(), ModelSpec(name="at-once"), StageKey(probe="benchmark", model="m", stage="s")
    words = ("he", "she")  # one object, as audits have it
    items = (
        Item(request=Fill(text=f"Number {number} is [MASK].", words=words), tags={"number": number})
        for number in range(requests)
    )
    factory = RayExecutors(ClusterSettings(workers=1), release="benchmark")
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder.create(Path(folder) / "run", spec="", provenance={}, models=[])
        try:
            executor = factory.carry(model, spec=spec, device="cpu")
            worker = Worker(model=model, executor=executor, batch_tokens=TOKENS)
            print(f"memory of the driver: {_resident():4.0f} MiB before the first question")
            run_stage(
                items,
                run=run,
                key=key,
                done=run.done(key),
                identity=RequestIdentity(model.info),
                worker=lambda: worker,
                cache=None,
                progress=Watched(max(1, requests // 10)),
            )
        finally:
            factory.close()
        parts = len(list(run.stage_folder(key).glob("*.parquet")))
        run.compact(key)
        joined = len(list(run.stage_folder(key).glob("*.parquet")))
        print(f"  {parts:,} parts joined to {joined:,}: {_resident():4.0f} MiB", flush=True)
        done = run.done(key)
        assert len(done) == requests, f"{len(done):,} of {requests:,} answers are recorded"
        print(f"  opened again, with the keys of {len(done):,} answers: {_resident():4.0f} MiB", flush=True)


def _questions(model: object) -> Iterator[Batch]:
    """Yield batches of prompts of many lengths, as a window of an audit has them, for ever."""
    fillers = ("", "of this town ", "who live and work in the old part of this town ")
    texts = [f"The {number} people {fillers[number % 3]}are said to be [MASK]." for number in range(4096)]
    requests = [Fill(text=text, top_k=50) for text in texts]
    plan = plan_batches(model.cost(requests), budget=TOKENS)  # type: ignore[attr-defined]
    for number, places in enumerate(itertools.cycle(plan)):
        yield Batch(number, [requests[place] for place in places])


def _rate(
    answered: Iterable[object], seconds: float, *, warm: int, factory: RayExecutors | None = None
) -> tuple[float, float, float]:
    """Return requests a second once every worker is warm, how busy this process was, and how many workers were."""

    def worked() -> float:
        return sum(hand.worked for hand in factory.driver().hands()) if factory else 0.0

    count, began, cpu, before = 0, 0.0, 0.0, 0.0
    for number, each in enumerate(answered):
        if number == 8 * warm:
            began, cpu, before = time.perf_counter(), time.process_time(), worked()
        elif number > 8 * warm:
            count += len(each.answers)  # type: ignore[attr-defined]
            if time.perf_counter() - began > seconds:
                break
    taken = time.perf_counter() - began
    return count / taken, (time.process_time() - cpu) / taken, (worked() - before) / taken


def _at_once(request: Fill) -> WordAnswer:
    return WordAnswer(words=request.words, logprobs=(-1.0, -2.0))


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
