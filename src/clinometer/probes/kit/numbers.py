"""What the audits share on the way from arrays of estimates to rows of findings."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clinometer.stats import benjamini_hochberg, share_interval, share_p
from clinometer.types import Finding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Label = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Estimates of one shape, with whatever is known of how sure they are."""

    estimate: Floats
    n: Ints
    low: Floats | None = None
    high: Floats | None = None
    p: Floats | None = None

    def transformed(self, function: Callable[[Floats], Floats]) -> Numbers:
        """Return the estimates and intervals through a rising function; p, of the same question, stays."""
        low, high = (None if part is None else function(part) for part in (self.low, self.high))
        return replace(self, estimate=function(self.estimate), low=low, high=high)

    def as_share(self) -> Numbers:
        """Return shares and probabilities within 0 to 1, which a studentized interval may leave."""
        return self.transformed(lambda share: np.clip(share, 0.0, 1.0))

    def finding(self, at: tuple[int, ...], labels: Mapping[str, Label]) -> Finding:
        """Return the numbers at one place as a finding."""
        low, high, p = (math.nan if part is None else float(part[at]) for part in (self.low, self.high, self.p))
        return Finding(
            labels=labels, estimate=float(self.estimate[at]), low=low, high=high, p=p, n=int(self.n[at])
        )


def with_q(rows: Iterable[Finding]) -> list[Finding]:
    """Return the rows with their q-values, corrected over all of the given rows that have a p-value."""
    given = list(rows)
    q = benjamini_hochberg([row.p for row in given])
    return [replace(row, q=float(value)) for row, value in zip(given, q, strict=True)]


def share_finding(labels: Mapping[str, Label], hits: int, n: int, *, expected: float = 0.5) -> Finding:
    """Return a share of n items with Wilson's interval, and p for "the share is as expected"; NaN for no item.

    >>> found = share_finding({}, 9, 10)
    >>> found.estimate, round(found.low, 3), round(found.p, 4)
    (0.9, 0.596, 0.0215)
    """
    if not n:
        return Finding(labels=labels, estimate=math.nan)
    limits, p = share_interval(hits / n, n), share_p(hits, n, expected=expected)
    return Finding(labels=labels, estimate=hits / n, low=float(limits.low), high=float(limits.high), p=p, n=n)


def select(rows: Iterable[Finding], **labels: Label) -> list[Finding]:
    """Return the rows that have all of these labels."""
    return [row for row in rows if all(row.labels[name] == value for name, value in labels.items())]


def model_rng(seed: int, model: str) -> np.random.Generator:
    """Return the generator for one model's numbers: adding a model to a run changes no other model's.

    >>> int(model_rng(0, "bert").integers(100)) == int(model_rng(0, "bert").integers(100))
    True
    """
    name_number = int.from_bytes(hashlib.sha256(model.encode()).digest()[:8], "big")
    return np.random.default_rng([seed, name_number])
