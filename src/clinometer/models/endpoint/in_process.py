"""llama.cpp in this process: the server that llama.cpp, Ollama and LM Studio users know, without an address."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from clinometer.errors import ModelError, reason
from clinometer.models.endpoint.faults import Broken, Refused
from clinometer.models.endpoint.transport import Arrived

SLOTS = 4  # sequences at a time
_WINDOW = 2_048  # tokens of one sequence: the longest question of an audit and its answer have far fewer
_QUIET = -1


@final
class LlamaTransport:
    """Carries calls to a GGUF file that llama.cpp has loaded here."""

    def __init__(self, file: Path, *, device: str) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_parallel = SLOTS
        params.n_ctx = SLOTS * _WINDOW
        params.warmup = False
        params.verbosity = _QUIET
        params.n_gpu_layers = 0 if device == "cpu" else params.n_gpu_layers
        threads = os.environ.get("OMP_NUM_THREADS", "")
        if threads.isdigit() and int(threads):
            params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
        # it also listens on a port of this machine, which is nobody's business
        params.port = 0
        params.api_keys = [secrets.token_hex(16)]
        try:
            self._server = xllamacpp.Server(params)
        except Exception as error:  # a file that llama.cpp cannot read makes it raise anything
            raise ModelError(f"llama.cpp cannot load {str(file)!r} ({reason(error)}); try another file") from error
        self._threads = concurrent.futures.ThreadPoolExecutor(SLOTS, thread_name_prefix="llama")

    async def post(self, path: str, body: Mapping[str, Any]) -> Arrived:
        """Answer a call; raise a Fault as an endpoint would."""
        handle = self._server.handle_chat_completions if "chat" in path else self._server.handle_completions
        found = await asyncio.get_running_loop().run_in_executor(self._threads, handle, dict(body))
        if not isinstance(found, dict):
            raise Broken(f"llama.cpp answered with {type(found).__name__}")
        if error := found.get("error"):
            told = error if isinstance(error, dict) else {"message": error}
            code = told.get("code")
            if isinstance(code, int) and code >= 500:
                raise Broken(f"{code} {told.get('message')}")
            raise Refused(f"{code} {told.get('message')}", status=code if isinstance(code, int) else 400)
        return Arrived(body=found, headers={})

    async def get(self, path: str) -> Arrived:
        """Refuse: there is no list of models."""
        raise Refused("404", status=404)

    async def close(self) -> None:
        """Keep the model: the next stage asks it again."""

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):
            self._threads.shutdown(wait=False)
