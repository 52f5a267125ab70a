"""The content identity of a request: what can change its answer, and nothing else."""

from __future__ import annotations

import hashlib
import json

from clinometer.types import ModelInfo, Request

KEY_BYTES = 16


class RequestIdentity:
    """Gives the 16-byte key of each request to one model.

    Two requests share a key when weights, tokenizer, dtype, adapter code, settings, text and wanted words are the
    same. Batch size, worker and device are left out: they may not change an answer.
    """

    def __init__(self, info: ModelInfo) -> None:
        fields = (info.weights, info.tokenizer, info.dtype, info.code, sorted(info.settings.items()))
        self._model = hashlib.blake2b(json.dumps(fields).encode(), digest_size=KEY_BYTES)

    def key(self, request: Request) -> bytes:
        """Return the key; a frozen dataclass prints all of its fields, quoted, so its repr is its content."""
        digest = self._model.copy()
        digest.update(repr(request).encode("utf-8", "surrogatepass"))
        return digest.digest()
