"""The share of reviews that are called rightly, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from clinometer.stats import share_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """So many right out of so many."""

    right: int
    n: int

    @property
    def share(self) -> float:
        """The share that is right."""
        return self.right / self.n

    def figures(self) -> dict[str, float]:
        """Return the share with its 95 % Wilson interval, as a card holds it.

        >>> {name: round(value, 3) for name, value in Accuracy(right=8, n=10).figures().items()}
        {'accuracy': 0.8, 'low': 0.49, 'high': 0.943, 'n': 10}
        """
        interval = share_interval(self.share, self.n)
        return {"accuracy": self.share, "low": float(interval.low), "high": float(interval.high), "n": self.n}
