"""What a child process does in tests that kill it: it audits a slow fake model, from the start or resumed.

The fake is as treacherous as a real model: the last digits of an answer depend on the whole batch it was computed
in. So findings come out equal only if a resumed run makes the same batches.
"""

from __future__ import annotations

import functools
import hashlib
import math
import time
from pathlib import Path

import clinometer.probes.counterexamples
import clinometer.report  # noqa: F401
from clinometer.models.fake import FakeModel
from clinometer.store import RunFolder
from clinometer.types import AuditSpec, ModelSpec, WordAnswer
from clinometer.workflows import Execution
from clinometer.workflows.checks import check_spec
from clinometer.workflows.plans import probes_of
from tests.runs import resume_audit, start_audit

WORDS = ("he", "she", "man", "woman", "worker", "boy", "girl", "father", "mother", "person")


def treacherous(seconds_per_batch: float) -> FakeModel:
    """A fake whose answers differ in their last digits from batch to batch."""

    class Treacherous:
        def __init__(self):
            self._fake = FakeModel(answer=lambda request: WordAnswer(words=(), logprobs=()), version="1")
            self.info = self._fake.info

        def cost(self, requests):
            return self._fake.cost(requests)

        def fill(self, batch):
            time.sleep(seconds_per_batch)
            whole = fraction(repr(batch))
            return [
                WordAnswer(
                    words=request.words or WORDS,
                    logprobs=tuple(
                        math.log(0.02 + 0.05 * ((asked + fraction(word)) % 1) + 1e-5 * whole)
                        for word in request.words or WORDS
                    ),
                )
                for request in batch
                for asked in (fraction(request.context + request.text),)
            ]

    return Treacherous()


@functools.lru_cache(maxsize=1000)  # the same words are asked for at every prompt
def fraction(text: str) -> float:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big") / 2**48


def spec(seed: int = 0) -> AuditSpec:
    return AuditSpec(
        probes=("counterexamples",),
        models=(ModelSpec(name="fake"),),
        profile="quick",
        seed=seed,
        options={"counterexamples": {"occupations": "winobias", "backgrounds": 1, "ks": [5], "draws": 100}},
    )


def audit_slowly(tell, folder: Path, seconds_per_batch: float) -> None:
    """Audit the fake into a folder, or resume there; tell when the work begins."""
    RunFolder.writer = functools.partialmethod(RunFolder.writer, flush_seconds=0.05)
    models = {"fake": treacherous(seconds_per_batch)}
    execution = Execution(batch_tokens=600)
    check_spec(spec(), probes_of(spec()))
    tell("working")  # whoever waits to kill may begin to count
    if folder.exists():
        resume_audit(RunFolder.open(folder), loaded=models, execution=execution)
    else:
        start_audit(spec(), folder, loaded=models, execution=execution)
