"""Opens a GGUF file, answered in this process by llama.cpp: `model.gguf`."""

from __future__ import annotations

import functools
import importlib.metadata
import mmap
from dataclasses import replace
from pathlib import Path
from typing import final

from clinometer.errors import ModelError
from clinometer.models.builtin import absent_packages
from clinometer.models.endpoint.model import EndpointModel, capabilities_of, endpoint_info, run_in_loop
from clinometer.models.endpoint.offer import ASSUMED, Offer, discover
from clinometer.models.files import checksum
from clinometer.types import ModelSpec

SUFFIX = ".gguf"
_MAGIC = b"GGUF"
_TEMPLATE = b"tokenizer.chat_template"
_HEADER = 64 << 20  # bytes in which the names and the vocabulary are


@final
class GgufFiles:
    """The provider of GGUF files, as llama.cpp, Ollama and LM Studio use them."""

    name = "GGUF files"

    def claims(self, name: str) -> bool:
        """Tell whether a name ends in `.gguf`."""
        return name.lower().endswith(SUFFIX)

    def check(self, spec: ModelSpec) -> None:
        """Raise ModelError for a file that is not there or is not GGUF, and where llama.cpp is missing."""
        path = Path(spec.name).expanduser()
        try:
            with path.open("rb") as file:
                begins = file.read(len(_MAGIC))
        except OSError as error:
            raise ModelError(f"{spec.name!r} cannot be read: {error.strerror}; give a GGUF file") from None
        if begins != _MAGIC:
            raise ModelError(f"{spec.name!r} is not a GGUF file: it begins with {begins!r}, expected {_MAGIC!r}")
        if absent_packages("xllamacpp"):
            raise ModelError(f'{spec.name!r} needs llama.cpp: pip install "clinometer[gguf]"')

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what the file can be asked: as a chat if it has a chat template."""
        self.check(spec)
        return capabilities_of(_restricted(ASSUMED, spec))

    def load(self, spec: ModelSpec, *, device: str) -> EndpointModel:
        """Load the file with llama.cpp and find out what it offers."""
        self.check(spec)
        path = Path(spec.name).expanduser().resolve()
        from clinometer.models.endpoint.in_process import LlamaTransport

        transport = LlamaTransport(path, device=device)
        found = run_in_loop(discover(transport, path.name, where=spec.name))
        version = importlib.metadata.version("xllamacpp")
        told = {"model": path.name, "fingerprint": f"xllamacpp {version}"}
        offer = replace(_restricted(found, spec), told=told, requests=0)
        info = endpoint_info(spec.name, served=path.name, where=spec.name, offer=offer, weights=checksum(path))
        info = replace(info, family="gguf", settings={**info.settings, "llama.cpp": version})
        return EndpointModel(info=info, transport=transport, offer=offer, served=path.name, where=spec.name)


def _restricted(offer: Offer, spec: ModelSpec) -> Offer:
    """Return the offer as the spec wants the model asked; a file without a chat template has no chat."""
    path = Path(spec.name).expanduser()
    status = path.stat()
    has_chat = _has_template(path, status.st_size, status.st_mtime_ns)
    if spec.kind == "chat" and not has_chat:
        raise ModelError(f"{spec.name!r} has no chat template; leave out --as chat")
    return replace(offer, chat=offer.chat if has_chat else None).asked_as(spec.kind)


@functools.lru_cache(maxsize=64)
def _has_template(path: Path, size: int, modified: int) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(_TEMPLATE, 0, min(size, _HEADER)) >= 0
