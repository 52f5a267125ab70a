"""Do conditions that masked models speak ill of come out negative in classifiers, too?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from clinometer.metrics.attitude import Floats
from clinometer.probes.kit.numbers import with_q
from clinometer.probes.stigma.roster import Roster
from clinometer.stats import pearson_interval
from clinometer.types import Finding


def scatter_rows(attitude: Floats, shares: Floats, roster: Roster) -> Iterator[Finding]:
    """Yield both measures of each condition."""
    for c in range(len(roster.names)):
        yield Finding(
            labels={**roster.labels(c), "negative_attitude": float(attitude[c])}, estimate=float(shares[c]), n=1
        )


def correlation_rows(attitude: Floats, shares: Floats, roster: Roster) -> list[Finding]:
    """Return Pearson's correlation over all conditions (§5.3), and within each group."""
    parts = {"all": np.ones(len(attitude), dtype=np.bool_), **roster.members()}
    found = {name: pearson_interval(attitude[members], shares[members]) for name, members in parts.items()}
    return with_q(
        Finding(labels={"conditions": name}, estimate=r.estimate, low=r.low, high=r.high, p=r.p, n=r.n)
        for name, r in found.items()
    )
