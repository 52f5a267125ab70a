"""How the answers of chat models were read: options of the scale, refusals, and neither."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.probes.stigma.chat import ChatView
from clinometer.probes.stigma.groups import mean_interval
from clinometer.types import Finding


def reading_rows(view: ChatView) -> Iterator[Finding]:
    """Yield the share of answers that were read as each option, as a refusal or as neither, by group."""
    answers = view.counts.sum(axis=(1, 2), keepdims=True)
    shares = (view.counts / np.maximum(answers, 1)).sum(axis=1)  # (wordings, readings)
    for group, members in view.roster.members().items():
        chosen = np.flatnonzero(members[view.roster.condition_of])
        numbers = mean_interval(
            shares[chosen], clusters=view.roster.condition_of[chosen], rng=view.rng, draws=view.draws
        ).as_share()
        for at, reading in enumerate(view.readings):
            yield numbers.finding((at,), {"model": view.model, "group": group, "reading": reading})
