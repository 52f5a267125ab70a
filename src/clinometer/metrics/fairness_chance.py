"""What is observed against what chance gives, with no more shuffles than tell something (counterfactual audit).

Where many things are tested at once, each with as many shuffles as a small p needs, most shuffles would go to what
is plainly no different. So they are made in turns, and a test that has seen `ENOUGH` shuffles as large as what was
observed has no part in the next one (Besag & Clifford, Sequential Monte Carlo p-values, 1991).

p = (1 + as large)/(1 + shuffles) stays exact. For any α let j be the first turn after which `ENOUGH` shuffles as
large would give p ≤ α. What stopped before it has p > α. So what ends with p ≤ α took part in turn j, and had
p ≤ α after it: either it stopped there, or it had fewer than `ENOUGH`. And j depends on α alone: where nothing is
different, p ≤ α after it in at most a share α of the cases. This holds for what stops by its own count; pairs that
`settle` ends look at others, too (see `pair_null`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from clinometer.metrics.means import Floats

Item = TypeVar("Item")
Rows = NDArray[np.floating[Any]]

ENOUGH = 50  # shuffles as large as what was observed: p is known within a seventh
_FIRST = 4  # the part of all shuffles that everything gets
_SMALL_Q = 0.01  # well below what a finding needs
_TIE = 1e-10  # relative: two sums of the same numbers in another order count as equal


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstChance:
    """A distance and what chance gives; each field has the shape of the distance, a scalar for a single one."""

    estimate: Floats
    null: Floats  # mean over the shuffles
    null_low: Floats  # 2.5 % of the shuffles are below
    null_high: Floats  # 97.5 % are
    excess: Floats  # estimate − null
    p: Floats  # (1 + shuffles that are as large)/(1 + shuffles)


class Turn(NamedTuple):
    """Some of the shuffles, between two looks at what needs more."""

    first: int
    last: int

    @property
    def shuffles(self) -> int:
        """How many there are."""
        return self.last - self.first


def turns(draws: int, further: int = 0) -> list[Turn]:
    """Return when to look: after a quarter of the shuffles, then each time that there are twice as many.

    >>> [(turn.first, turn.last) for turn in turns(1999)]
    [(0, 499), (499, 998), (998, 1996), (1996, 1999)]
    >>> [(turn.first, turn.last) for turn in turns(1000, 3000)]
    [(0, 250), (250, 500), (500, 1000), (1000, 2000), (2000, 3000)]
    """
    ends = [0, max(1, draws // _FIRST)]
    for end in (draws, further):
        while ends[-1] < end:
            ends.append(min(2 * ends[-1], end))
    return [Turn(*each) for each in pairwise(ends)]


class Tally:
    """Counts for several statistics at once how many shuffles are as large as what was observed."""

    def __init__(self, observed: Rows, *, least: Rows | None = None) -> None:
        """Take what was observed, NaN where it was not; `least` is what counts as being as large."""
        self.observed: Rows = np.asarray(observed)
        self.least: Rows = self.observed - _TIE * np.abs(self.observed) if least is None else least
        self.unsure = ~np.isnan(self.observed)  # has fewer than `ENOUGH`, so that more would tell more
        self._as_large, self._sums, self._tried = (np.zeros(self.observed.shape) for _ in range(3))
        self._rows: list[Rows] = []
        self._limits = [np.full(self.observed.shape, np.nan)] * 2
        self._looked = False

    def add(self, rows: Rows) -> None:
        """Count some shuffles, (shuffles, …); what is sure may be NaN in them."""
        as_large = (rows >= self.least).view(np.uint8).sum(axis=0, dtype=np.uint32)
        self.add_counts((), as_large, rows.sum(axis=0, dtype=np.float64), len(rows))
        if not self._looked:
            self._rows.append(rows)

    def add_counts(
        self, where: tuple[Any, ...], as_large: NDArray[np.uint32], sums: Floats, shuffles: int
    ) -> None:
        """Count shuffles of some of the statistics: how many were as large, and the sum of all."""
        unsure = self.unsure[where]
        self._as_large[where] += np.where(unsure, as_large, 0)
        self._sums[where] += np.where(unsure, sums, 0.0)
        self._tried[where] += np.where(unsure, shuffles, 0)

    def look(self) -> None:
        """See, after a turn, what needs no more shuffles."""
        self.unsure = self.unsure & (self._as_large < ENOUGH)
        if self._rows:
            self._limits = _quantiles(np.concatenate(self._rows), [0.025, 0.975])
            self._rows = []
        self._looked = True

    def settle(self, shuffles: int) -> None:
        """Ask for no more where so many may differ that a small q is within reach of so many shuffles.

        Of m tests, k are unsure and have at best p = 1/shuffles, so q = m/(k · shuffles). A single one needs many
        shuffles to be seen, many need few: altogether about as many for each test, however many there are.
        """
        if self.unsure.sum() * shuffles * _SMALL_Q >= (~np.isnan(self.observed)).sum():
            self.unsure = np.zeros_like(self.unsure)

    def against_chance(self, *, estimate: Floats | None = None) -> AgainstChance:
        """Return what was found; `estimate` has what was observed, where that was rounded for the count."""
        observed: Floats = np.asarray(self.observed if estimate is None else estimate, dtype=np.float64)
        tried = self._tried > 0
        with np.errstate(invalid="ignore"):
            null = np.where(tried, self._sums / self._tried, np.nan)
            p = np.where(tried, (1 + self._as_large) / (1 + self._tried), np.nan)
        low, high = self._limits
        return AgainstChance(
            estimate=observed[()],
            null=null[()],
            null_low=low[()],
            null_high=high[()],
            excess=(observed - null)[()],
            p=p[()],
        )


def against_chance(rows: Rows) -> AgainstChance:
    """Compare the first row with all others."""
    tally = Tally(rows[0])
    tally.add(rows[1:])
    tally.look()
    return tally.against_chance()


def ahead(items: Iterator[Item], pool: ThreadPoolExecutor) -> Iterator[Item]:
    """Yield each item while the next one is made."""
    following = pool.submit(next, items, None)
    while (item := following.result()) is not None:
        following = pool.submit(next, items, None)
        yield item


def _quantiles(rows: Rows, shares: Sequence[float]) -> list[Floats]:
    """Return quantiles of each column as `np.quantile` does, which is slower than to sort everything."""
    ordered = np.ascontiguousarray(rows.T)
    ordered.sort(axis=-1)  # NaN goes last
    found = []
    for share in shares:
        whole, part = divmod(share * (len(rows) - 1), 1)
        below, above = (ordered[..., min(int(whole) + more, len(rows) - 1)].astype(np.float64) for more in (0, 1))
        # from the nearer side, so that the end of a step is met exactly
        between = below + part * (above - below) if part < 0.5 else above - (1 - part) * (above - below)
        found.append(np.where(np.isnan(ordered[..., -1]), np.nan, between))
    return found
