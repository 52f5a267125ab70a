"""An endpoint on 127.0.0.1 that answers at once: well, or as badly as anything on the way to a model can.

Its answers depend on the question alone, so a bad server gives the same findings as a good one, in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Answerer = Callable[[str, dict[str, Any]], list[str]]


def scale_answer(path: str, body: dict[str, Any]) -> list[str]:
    """Answer with a digit, or words, by the hash of question and seed: the same ones each time."""
    asked = json.dumps([body.get("messages"), body.get("prompt"), body.get("seed")])
    digest = hashlib.blake2b(asked.encode()).digest()
    return [f"{digest[number] % 4} is my answer" for number in range(body.get("n", 1))]


@dataclass
class Endpoint:
    """What the server is, and what happened to it."""

    answer: Answerer = scale_answer
    bad: float = 0.0  # how often it misbehaves
    seed: int = 0
    chat: bool = True
    plain: bool = True
    many: bool = True  # whether it gives n answers
    key: str = ""  # what it expects, and then repeats where it can
    die_after: int = 0  # requests; then the port is closed
    fingerprint: Callable[[int], str] = lambda number: "fp-1"
    huge: int = 17 << 20
    remembers: bool = True  # what it was asked; not in a benchmark
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)  # body -> how often it was sent
    answered: Counter[str] = field(default_factory=Counter)  # body -> how often it was answered well
    mischief: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys_seen: set[str] = field(default_factory=set)
    number: int = 0
    _last: bytes = b""

    def good(self, path: str, body: dict[str, Any]) -> bytes:
        texts = self.answer(path, body)
        choices = []
        for index, text in enumerate(texts[: None if self.many else 1]):
            shape = {"message": {"role": "assistant", "content": text}} if "chat" in path else {"text": text}
            choices.append({"index": index, "finish_reason": "stop", **shape})
        ids = f"cmpl-{next(_ids)}"
        usage = {"prompt_tokens": 10, "completion_tokens": 4 * len(choices)}
        return json.dumps(
            {
                "id": ids,
                "object": "chat.completion",
                "model": body.get("model"),
                "system_fingerprint": self.fingerprint(self.number),
                "choices": choices,
                "usage": usage,
            }
        ).encode()


_ids = itertools.count()
MISCHIEF = (
    "429", "429", "429 wait", "500", "500", "503", "503 wait", "cut", "cut inside", "truncated", "not json",
    "no choices", "wrong count", "same index", "old answer", "html", "redirect", "slow", "absurd usage", "list",
    "huge",
)  # fmt: skip


@contextlib.contextmanager
def serve_endpoint(endpoint: Endpoint | None = None, *, port: int = 0) -> Iterator[Endpoint]:
    """Run the server in a thread until the block ends."""
    served = endpoint or Endpoint()
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    rng = random.Random(served.seed)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _one(served, rng, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", port)
        served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        while not (served.die_after and served.number >= served.die_after) and not stop.is_set():
            await asyncio.sleep(0.01)
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # the connections are closed

    stop = threading.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield served
    finally:
        stop.set()
        thread.join(5)
        loop.close()


async def _one(
    served: Endpoint, rng: random.Random, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Answer one request; return whether the connection stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    path = first.split()[1]
    served.keys_seen.add(headers.get("authorization", ""))
    served.number += 1
    if path.endswith("/models"):
        _write(writer, 404, b"{}")
        return True
    if served.key and headers.get("authorization") != f"Bearer {served.key}":
        told = {"error": {"message": f"wrong key {headers.get('authorization')}", "code": "invalid_api_key"}}
        _write(writer, 401, json.dumps(told).encode())
        return True
    if not (served.chat if "chat" in path else served.plain):
        _write(writer, 404, b'{"error": {"message": "no such path"}}')
        return True
    body = json.loads(raw)
    name = raw.decode()
    if served.remembers:
        served.bodies.append(body)
        served.asked[name] += 1
    good = served.good(path, body)
    if rng.random() >= served.bad:
        if served.remembers:
            served.answered[name] += 1
        served._last = good
        _write(writer, 200, good)
        await writer.drain()
        return True
    kind = rng.choice(MISCHIEF)
    served.mischief[kind] += 1
    return await _misbehave(kind, served, good, name, writer)


async def _misbehave(kind: str, served: Endpoint, good: bytes, name: str, writer: asyncio.StreamWriter) -> bool:
    document = json.loads(good)
    match kind:
        case "429" | "500" | "503":
            _write(writer, int(kind), json.dumps({"error": {"message": f"no, {served.key}"}}).encode())
        case "429 wait" | "503 wait":
            _write(writer, int(kind[:3]), b"{}", {"Retry-After": "0.01"})
        case "cut":
            return False
        case "cut inside":
            _write(writer, 200, good[: len(good) // 2], {"Content-Length": str(len(good))})
            return False
        case "truncated":
            _write(writer, 200, good[: len(good) // 2])
        case "not json":
            _write(writer, 200, b'{"choices": [' + b"[" * 5_000)
        case "no choices":
            _write(writer, 200, b'{"choices": []}')
        case "wrong count":
            _write(writer, 200, json.dumps({**document, "choices": document["choices"] * 2}).encode())
        case "same index":
            twice = [document["choices"][0], document["choices"][0]]
            _write(writer, 200, json.dumps({**document, "choices": twice}).encode())
        case "old answer":
            _write(writer, 200, served._last or b"{}")
        case "html":
            _write(writer, 200, b"<html>Sign in</html>", {"Content-Type": "text/html"})
        case "redirect":
            _write(writer, 307, b"", {"Location": f"{served.url}/chat/completions"})
        case "list":
            _write(writer, 200, b"[1, 2]")
        case "huge":
            _write(writer, 200, b" " * served.huge + good)
            await writer.drain()
        case _:  # odd, but an answer
            if kind == "slow":
                await asyncio.sleep(0.05)
            served.answered[name] += 1
            usage = {"prompt_tokens": -5, "completion_tokens": "many"}
            _write(writer, 200, json.dumps({**document, "usage": usage}).encode())
    return True


def _write(writer: asyncio.StreamWriter, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    whole = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in whole.items())
    writer.write(f"HTTP/1.1 {status} x\r\nServer: test\r\n{lines}\r\n".encode() + body)
