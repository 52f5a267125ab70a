"""The key of a request: a hash of what can change its answer, and nothing else."""

from __future__ import annotations

import functools
import hashlib
import json
from operator import attrgetter
from typing import Any

from clinometer.models.protocols import METHODS
from clinometer.questions import Requests, names_of, spelled
from clinometer.store.schema import KEY_BYTES
from clinometer.types import ModelInfo, Request

# Raised when the same request gets another key. A run records the version of its keys.
KEY_VERSION = 2
_KEPT_CONTEXTS = 1_024
_ALL_BUT_CONTEXT: dict[type, tuple[str, ...]] = {
    kind: tuple(name for name in names_of(kind) if name != "context") for kind in METHODS
}
_READ = {kind: attrgetter(*names) for kind, names in _ALL_BUT_CONTEXT.items()}


class RequestIdentity:
    """Gives each request to one model its 16-byte key.

    Two requests share a key when weights, tokenizer, dtype, adapter code, settings, text and wanted words are the
    same. Batch size, worker and device are left out: they must not change an answer.
    """

    def __init__(self, info: ModelInfo, *, version: int = KEY_VERSION) -> None:
        self.told = info.told  # what an endpoint said it is; not part of the key, but a change is reported
        fields: list[Any] = [info.weights, info.tokenizer, info.dtype, info.code, sorted(info.settings.items())]
        if version > 1:
            fields.insert(0, version)
        self._model = hashlib.blake2b(json.dumps(fields).encode(), digest_size=KEY_BYTES)
        # thousands of texts share one context, which is longer than they are: hash it once
        self._begun = functools.lru_cache(maxsize=_KEPT_CONTEXTS)(self._begin)

    def key(self, request: Request) -> bytes:
        """Return the key; repr quotes the fields, so that no text can pass for another field."""
        kind = type(request)
        digest = self._begun(getattr(request, "context", "")).copy()
        digest.update(f"{kind.__name__}{_READ[kind](request)!r}".encode("utf-8", "surrogatepass"))
        return digest.digest()

    def keys(self, requests: Requests) -> list[bytes]:
        """Return the key of each request, as `key` does; what rows share is written and hashed once."""
        written = _written(requests)
        context = requests.columns.get("context")
        if context is None:
            begun = self._begun("")
            return [_continued(begun, each) for each in written]
        contexts = [self._begun(value) for value in context.values]
        return [
            _continued(contexts[code], each) for code, each in zip(context.codes.tolist(), written, strict=True)
        ]

    def _begin(self, context: str) -> hashlib.blake2b:
        written = context.encode("utf-8", "surrogatepass")
        digest = self._model.copy()
        digest.update(b"%d:" % len(written) + written)  # its length says where it ends
        return digest


def _continued(begun: hashlib.blake2b, written: bytes) -> bytes:
    digest = begun.copy()
    digest.update(written)
    return digest.digest()


def _written(requests: Requests) -> list[bytes]:
    """Return what is hashed of each request beside its context: its kind, and its fields in one tuple."""
    first, *others = _ALL_BUT_CONTEXT[requests.kind]
    columns = requests.columns
    parts = [columns[first], *(part for name in others for part in (", ", columns[name]))]
    name = requests.kind.__name__
    return spelled([f"{name}(", *parts, ")"] if others else [name, *parts], rows=len(requests))
