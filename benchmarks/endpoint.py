"""Answers per second from an endpoint: our engine against a bare asynchronous loop, and memory over many answers.

    python benchmarks/endpoint.py llama [--requests 48] [--slots 16] [--tokens 16] [--turns 8] [--threads 2]
    python benchmarks/endpoint.py memory [--requests 100000]
    python benchmarks/endpoint.py costs [--write]

`llama` starts llama.cpp's server, in a process of its own, with the weights of builtin:chat and asks it the same
kind of questions in turns: with OpenAI's client in a loop that keeps as many calls in the air as there are slots,
throwing answers away, and with our engine, which journals, counts and records. The turns go one way, then the
other, then the other again, so that a machine that gets slower or faster favours neither; the ratio is the median
over pairs of turns. It also prints how much processor time each way takes on our side, which a busy machine hardly
changes.

`memory` asks a server that answers at once, in a process of its own, and prints our resident memory on the way.
`costs` prints the tables of docs/endpoints.md, or writes them there: what each audit asks of an endpoint; it sends
nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the servers of the tests

from clinometer.engine import LocalExecutor, RequestIdentity, Silent, Worker, run_stage
from clinometer.models.endpoint.model import EndpointModel
from clinometer.models.endpoint.sending import Pace
from clinometer.models.load import load_model
from clinometer.store import RunFolder, StageKey
from clinometer.types import Ask, AskedAs, Item, Message, ModelSpec, Profile
from clinometer.workflows import AuditRequest
from clinometer.workflows.estimate import StageEstimate, estimate_audit
from clinometer.workflows.specs import describe_audit

KEY = StageKey(probe="benchmark", model="m", stage="s")
LLAMA = """
import sys
from tests.llama_server import llama_server
with llama_server(slots=int(sys.argv[1]), threads=int(sys.argv[2])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""
SERVER = """
import sys
from tests.endpoint_server import Endpoint, serve_endpoint
with serve_endpoint(Endpoint(remembers=False)) as endpoint:
    print(endpoint.url, flush=True)
    sys.stdin.read()
"""


def items(count: int, tokens: int, offset: int = 0) -> Iterator[Item]:
    """Yield short questions, all different."""
    for number in range(offset, offset + count):
        message = Message(role="user", content=f"Tell me something about the number {number}.")
        yield Item(request=Ask(messages=(message,), max_new_tokens=tokens), tags={"number": number})


def ours(model: EndpointModel, asked: Iterator[Item], *, concurrency: int, progress: Silent) -> float:
    """Return the seconds that the engine takes."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder.create(Path(folder) / "run", spec="", provenance={}, models=[])
        worker = Worker(model=model, executor=LocalExecutor(model), batch_tokens=1, pace=Pace(concurrency))
        began = time.perf_counter()
        run_stage(
            asked,
            run=run,
            key=KEY,
            done=run.done(KEY),
            identity=RequestIdentity(model.info),
            worker=lambda: worker,
            cache=None,
            progress=progress,
        )
        return time.perf_counter() - began


def bare(model: EndpointModel, url: str, asked: Iterator[Item], *, concurrency: int) -> float:
    """Return the seconds that a plain loop takes for the same calls."""
    import openai

    bodies = [dict(call.body) for item in asked for call in model.calls(item.request)]

    async def ask() -> float:
        client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        turn = asyncio.Semaphore(concurrency)

        async def one(body: dict[str, object]) -> None:
            async with turn:
                extra = {name: body.pop(name) for name in ("top_k", "min_p") if name in body}
                await client.chat.completions.create(**body, extra_body=extra)  # type: ignore[call-overload]

        began = time.perf_counter()
        await asyncio.gather(*(one(body) for body in bodies))
        took = time.perf_counter() - began
        await client.close()
        return took

    return asyncio.run(ask())


@contextlib.contextmanager
def serving(script: str, *arguments: int) -> Iterator[str]:
    """Run a server in another process; gives its address."""
    here = Path(__file__).parents[1]
    command = [sys.executable, "-c", script, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=here, stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def compare(requests: int, *, slots: int, tokens: int, turns: int, threads: int) -> None:
    """Print answers per second both ways."""
    with serving(LLAMA, slots, threads) as url:
        model = load_model(ModelSpec(name="openai:smollm2", base_url=url))
        assert isinstance(model, EndpointModel)
        rates: dict[str, list[float]] = {"bare loop": [], "engine": []}
        ours_of: dict[str, float] = dict.fromkeys(rates, 0.0)
        offset = 0
        for turn in range(-1, turns):  # the first turn warms up both
            for way in rates if turn % 2 else reversed(list(rates)):
                asked = items(requests, tokens, offset)
                offset += requests
                began = time.process_time()
                if way == "engine":
                    took = ours(model, asked, concurrency=slots, progress=Silent())
                else:
                    took = bare(model, url, asked, concurrency=slots)
                if turn >= 0:
                    rates[way].append(requests / took)
                    ours_of[way] += time.process_time() - began
        for way, found in rates.items():
            each = ", ".join(f"{rate:.1f}" for rate in found)
            own = 1000 * ours_of[way] / (turns * requests)
            print(f"{way:<10} {statistics.median(found):6.2f} answers/s, {own:.1f} ms of ours each  ({each})")
        pairs = [engine / loop for engine, loop in zip(rates["engine"], rates["bare loop"], strict=True)]
        print(f"engine / bare loop: {statistics.median(pairs):.3f} ({', '.join(f'{pair:.2f}' for pair in pairs)})")


class Watched(Silent):
    """Prints the resident memory of this process every ten thousand answers."""

    def __init__(self) -> None:
        self.count = 0
        self.began = time.perf_counter()

    def advance(self, count: int) -> None:
        """Count."""
        self.count += count
        if self.count % 10_000 == 0:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            rate = self.count / (time.perf_counter() - self.began)
            print(
                f"{self.count:>8,} answers  {pages * os.sysconf('SC_PAGE_SIZE') / 2**20:6.0f} MiB  {rate:,.0f}/s",
                flush=True,
            )


def memory(requests: int) -> None:
    """Print memory while many answers arrive."""
    with serving(SERVER) as url:
        model = load_model(ModelSpec(name="openai:m", base_url=url))
        assert isinstance(model, EndpointModel)
        took = ours(model, items(requests, 8), concurrency=32, progress=Watched())
        print(f"{requests:,} answers in {took:.0f} s: {requests / took:,.0f}/s")


PROFILES: tuple[Profile, ...] = ("quick", "standard", "paper")
KINDS: tuple[AskedAs, ...] = ("chat", "causal")
DOCS = Path(__file__).parents[1] / "docs" / "endpoints.md"
BEGIN, END = "<!-- costs: written by benchmarks/endpoint.py -->", "<!-- end of costs -->"


def costs(*, write: bool) -> None:
    """Print requests and tokens of every audit, way and profile, as Markdown; or put them into the docs."""
    found: dict[tuple[str, str], dict[str, list[StageEstimate]]] = {}
    for kind, profile in itertools.product(KINDS, PROFILES):
        model = ModelSpec(name="openai:m", base_url="http://127.0.0.1:9/v1", kind=kind)
        planned = describe_audit(
            [model], probes=None, profile=profile, seed=0, options={}, roles={}, where="costs"
        )
        for row in estimate_audit(AuditRequest(spec=planned.spec, folder=Path("never"))):
            found.setdefault((kind, row.audit), {}).setdefault(profile, []).append(row)
    lines = [f"| asked as | audit | {' | '.join(PROFILES)} |", f"|---|---|{'---|' * len(PROFILES)}"]
    for (kind, audit), by_profile in found.items():
        cells = [_requests(by_profile.get(profile, [])) for profile in PROFILES]
        lines.append(f"| {kind} | {audit} | {' | '.join(cells)} |")
    heads = " | ".join(f"tokens in, {profile} | out, at most" for profile in PROFILES)
    lines += ["", f"| asked as | audit, first stage | {heads} |", f"|---|---|{'---|' * 2 * len(PROFILES)}"]
    for (kind, audit), by_profile in found.items():
        rows = [by_profile[profile][0] if profile in by_profile else None for profile in PROFILES]
        cells = [f"{row.tokens_in:,} | {row.tokens_out:,}" if row is not None else " | " for row in rows]
        lines.append(f"| {kind} | {audit} | {' | '.join(cells)} |")
    table = "\n".join(lines)
    if not write:
        print(table)
        return
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCS.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


def _requests(rows: list[StageEstimate]) -> str:
    """Say how many requests the stages of an audit are, and whether some depend on answers."""
    if not rows:
        return ""
    later = " and more later" if any(not row.requests for row in rows) else ""
    return f"{sum(row.requests for row in rows):,}{later}"


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["llama", "memory", "costs"])
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--write", action="store_true", help="costs: put the tables into docs/endpoints.md")
    parser.add_argument("--threads", type=int, default=2, help="of the server")
    given = parser.parse_args()
    if given.what == "llama":
        count = given.requests or 48
        compare(count, slots=given.slots, tokens=given.tokens, turns=given.turns, threads=given.threads)
    elif given.what == "memory":
        memory(given.requests or 100_000)
    else:
        costs(write=given.write)


if __name__ == "__main__":
    main()
