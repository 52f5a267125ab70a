"""The rule by which a sentence calls something found. It is decided here and nowhere else."""

from __future__ import annotations

from clinometer.types import Finding

LEVEL = 0.05  # of q
RULE = f"q < {LEVEL} and an interval without 0"


def is_found(finding: Finding) -> bool:
    """Tell whether a finding is called one: q is small, and the interval does not hold 0.

    >>> is_found(Finding(labels={}, estimate=0.2, low=0.1, high=0.3, q=0.01))
    True
    >>> is_found(Finding(labels={}, estimate=0.2, low=-0.1, high=0.5, q=0.01))
    False
    """
    return finding.q < LEVEL and (finding.low > 0 or finding.high < 0)
