"""How the fake models of the cluster tests answer. Workers import this file, so it imports little."""

from __future__ import annotations

import hashlib
import os
import signal
import time

from clinometer.models.fake import FakeModel
from clinometer.types import WordAnswer


class Treacherous:
    """Answers as hashes say, a little slowly; the last digits depend on the whole batch, as a real model's do.

    A text with KILL in it kills the worker, unless the model is calm.
    """

    def __init__(self, name, *, calm=False):
        self._fake = FakeModel(answer=print, name=name)
        self._calm = calm
        self.info = self._fake.info

    def cost(self, requests):
        return self._fake.cost(requests)

    def fill(self, batch):
        texts = [request.text for request in batch]
        if any("KILL" in text for text in texts) and not self._calm:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.002 * len(texts))
        whole = fraction("\n".join(texts))
        return [
            WordAnswer(
                words=request.words,
                logprobs=tuple(-1.0 - fraction(request.text + word) - 1e-6 * whole for word in request.words),
            )
            for request in batch
        ]


def fraction(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48
