"""The key of a request: a hash of what can change its answer, and nothing else."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from clinometer.models.protocols import METHODS
from clinometer.store.schema import KEY_BYTES
from clinometer.types import ModelInfo, Request

# Raised when the same request gets another key. A run records the version of its keys.
KEY_VERSION = 2
_KEPT_CONTEXTS = 1_024
_ALL_BUT_CONTEXT: dict[type, Callable[[Any], Any]] = {
    kind: attrgetter(*(field.name for field in dataclasses.fields(kind) if field.name != "context"))
    for kind in METHODS
}


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
        digest.update(f"{kind.__name__}{_ALL_BUT_CONTEXT[kind](request)!r}".encode("utf-8", "surrogatepass"))
        return digest.digest()

    def _begin(self, context: str) -> hashlib.blake2b:
        written = context.encode("utf-8", "surrogatepass")
        digest = self._model.copy()
        digest.update(b"%d:" % len(written) + written)  # its length says where it ends
        return digest
