"""What a user sees of a cluster: who works on what, and how fast."""

from __future__ import annotations

import time
from collections.abc import Iterable

from clinometer.engine.cluster.hands import Hand


def worker_lines(hands: Iterable[Hand]) -> list[str]:
    """Return a line for each worker."""
    now = time.monotonic()
    return [_line(hand, now) for hand in hands]


def _line(hand: Hand, now: float) -> str:
    if hand.arrived is None:
        return f"worker {hand.number}: starting, or waiting for room in the cluster"
    at_work = hand.tasks[0].kind if hand.tasks else ""
    doing = {"load": "loading a model", "answer": hand.label, "hello": "starting"}.get(at_work, "idle")
    rate = hand.rate(now)
    fast = f", {rate:,.1f}/s" if rate else ""
    return f"worker {hand.number} ({hand.arrived.machine}): {doing}{fast}"
