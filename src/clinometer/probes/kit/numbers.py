"""Numbers on their way to the reader: as rows of findings, in tables with a caption, and in sentences."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clinometer.stats import benjamini_hochberg, share_interval, share_p
from clinometer.types import ChangeVerdict, Finding, FindingTable, Notice, Verdict

Sure = Finding | Verdict | ChangeVerdict  # what has an interval, p and q
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Label = str | int | float

LEVEL = 0.05  # of q
NO_INTERVAL = "no interval"
NOT_TESTED = "not tested"
ABSENT = "–"  # in a label


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
    return [  # `replace` takes five times as long, and there are tens of thousands of rows
        Finding(labels=row.labels, estimate=row.estimate, low=row.low, high=row.high, p=row.p, q=value, n=row.n)
        for row, value in zip(given, q.tolist(), strict=True)
    ]


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


# ---------------------------------------------------------------------------------------------------------
# Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The name of a table, its title, what its numbers are, and which version of its estimator made them.

    Raise `version` whenever the same records give other numbers; not for a change of words.
    """

    name: str
    title: str
    text: str
    version: int = 1


def tables_of(captions: Iterable[Caption], rows: Mapping[str, Sequence[Finding]]) -> tuple[FindingTable, ...]:
    """Return the tables in the order of their captions; a caption without rows gives an empty table."""
    return tuple(
        FindingTable(
            name=caption.name,
            title=caption.title,
            caption=caption.text,
            rows=tuple(rows.get(caption.name, ())),
            version=caption.version,
        )
        for caption in captions
    )


# ---------------------------------------------------------------------------------------------------------
# Sentences


def signed(value: float, places: int = 3) -> str:
    """Write a number with its sign, but no sign for what rounds to nothing.

    >>> signed(0.1234), signed(-0.1234), signed(-0.0001)
    ('+0.123', '−0.123', '0.000')
    """
    text = f"{value:+.{places}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def written(value: float, places: int = 2) -> str:
    """Write a number with a sign only where it is below 0.

    >>> written(0.126), written(-0.126), written(-0.001)
    ('0.13', '−0.13', '0.00')
    """
    return signed(value, places).removeprefix("+")


def q_value(q: float) -> str:
    """Write a corrected p-value.

    >>> q_value(0.0213), q_value(0.0002), q_value(math.nan)
    ('q = 0.021', 'q < 0.001', 'not tested')
    """
    if math.isnan(q):
        return NOT_TESTED
    return "q < 0.001" if q < 0.001 else f"q = {q:.3f}"


def interval(row: Sure, *, write: Callable[[float], str] = signed) -> str:
    """Write the 95 % interval of a finding, or that it has none.

    >>> interval(Finding(labels={}, estimate=0.2, low=0.1, high=0.3))
    '95 % interval +0.100 to +0.300'
    """
    if math.isnan(row.low) or math.isnan(row.high):
        return NO_INTERVAL
    return f"95 % interval {write(row.low)} to {write(row.high)}"


def certainty(row: Sure, *, write: Callable[[float], str] = signed, null: float = 0.0) -> str:
    """Write the interval and the q-value of a finding; `null` is its value where there is no lean.

    Where the one test finds something and all tests together do not, the two are told apart.

    >>> certainty(Finding(labels={}, estimate=0.2, low=0.1, high=0.3, q=0.0004))
    '95 % interval +0.100 to +0.300, q < 0.001'
    >>> certainty(Finding(labels={}, estimate=0.2, low=0.1, high=0.3, p=0.01, q=0.107))
    '95 % interval of this one test +0.100 to +0.300, q over all tests = 0.107'
    """
    if row.p < LEVEL <= row.q and (row.low > null or row.high < null):
        told = interval(row, write=write).replace("interval", "interval of this one test")
        return f"{told}, {q_value(row.q).replace('q', 'q over all tests')}"
    return f"{interval(row, write=write)}, {q_value(row.q)}"


def written_limits(low: float, high: float, *, places: int = 0) -> str:
    """Write the limits of an interval, or that there is none."""
    return NO_INTERVAL if math.isnan(low) else f"{written(low, places)} to {written(high, places)}"


def percent(share: float, places: int = 1) -> str:
    """Write a share in percent.

    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * share:.{places}f} %"


def percent_interval(row: Finding, places: int = 1) -> str:
    """Write a share with its interval, in percent.

    >>> percent_interval(Finding(labels={}, estimate=0.123, low=0.1, high=0.15))
    '12.3 % (95 % interval 10.0 % to 15.0 %)'
    """
    return f"{percent(row.estimate, places)} ({interval(row, write=lambda share: percent(share, places))})"


def info(text: str) -> Notice:
    """Return what a reader may want to know before the numbers."""
    return Notice(level="info", text=text)


def warning(text: str) -> Notice:
    """Return what a reader must know before the numbers."""
    return Notice(level="warning", text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The rows of a table as units × variants."""

    names: tuple[str, ...]
    variants: tuple[str, ...]
    values: Floats
    parts: tuple[str, ...]


def cells_of(
    rows: Iterable[Finding],
    *,
    unit: str,
    variant: str = "",
    part: str = "",
    value: Callable[[Finding], float] = lambda row: row.estimate,
) -> Cells:
    """Return rows by the labels that name their unit, variant and part; what has no row is missing.

    >>> rows = [Finding(labels={"word": w, "t": t}, estimate=x) for w, t, x in (("a", "1", 3.0), ("b", "2", 4.0))]
    >>> found = cells_of(rows, unit="word", variant="t")
    >>> found.names, found.variants, found.values.tolist()
    (('a', 'b'), ('1', '2'), [[3.0, nan], [nan, 4.0]])
    """
    given = list(rows)
    names = {str(row.labels[unit]): "" for row in given}
    variants = tuple(dict.fromkeys(str(row.labels[variant]) if variant else "" for row in given)) or ("",)
    place = {name: at for at, name in enumerate(names)}
    values = np.full((len(names), len(variants)), np.nan)
    for row in given:
        name = str(row.labels[unit])
        names[name] = str(row.labels[part]) if part else ""
        values[place[name], variants.index(str(row.labels[variant]) if variant else "")] = value(row)
    return Cells(names=tuple(names), variants=variants, values=values, parts=tuple(names.values()))
