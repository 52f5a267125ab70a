"""What endpoints did that a reader must know before believing a number, read from the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from clinometer.probes.protocol import Plan, Probe
from clinometer.store import RunFolder, StageKey
from clinometer.types import Notice

_WHO = ("from_model", "from_fingerprint", "from_headers")
MISSING = "missing"  # how a text ended that nobody wrote
_ODD = {
    "length": "cut off at the limit of tokens",
    "refusal": "refused",
    "content filter": "stopped by a content filter",
    "empty": "empty",
    "malformed": "unreadable after several attempts",
    MISSING: "missing",
}


def endpoint_notices(probe: Probe, plans: Sequence[Plan], run: RunFolder) -> tuple[Notice, ...]:
    """Return what is to be said of the endpoints that an audit asked, from their records."""
    return tuple(notice for plan in plans for notice in _of_plan(probe, plan, run))


def _of_plan(probe: Probe, plan: Plan, run: RunFolder) -> Iterator[Notice]:
    if not plan.model.told:  # only an endpoint says who it is
        return
    name = plan.model.name
    if "rescore" in probe.capabilities and "rescore" not in plan.model.capabilities:
        yield Notice(
            level="info",
            text=f"{name}: it scores no prompts, so blanks are not filled by rescoring; it is asked for one "
            "word, as an answer or as the next word",
        )
    for stage in probe.stages(plan):
        key = StageKey(probe=probe.name, model=name, stage=stage.name)
        # a later stage may have nothing to ask; where records are missing, the audit itself says so
        if stage.by or run.is_empty(key):
            continue
        present = set(run.column_names(key))
        columns = [column for column in (*_WHO, "got_endings", "got_told", "got_draws") if column in present]
        if not columns:
            continue
        table = run.table(key, columns=columns)
        # a file says who answered, but not who would answer now
        yield from _who(name, table, now=plan.model.told if plan.model.family == "endpoint" else {})
        if "got_endings" in columns:
            yield from _endings(name, stage.name, table["got_endings"])
        if "got_told" in columns:
            yield from _told(name, stage.name, table)


def _who(name: str, table: pl.DataFrame, *, now: Mapping[str, str]) -> Iterator[Notice]:
    """Report an endpoint that said it was one model, then another, and answers of a cache that another one gave.

    `now` is what it said when the run began.
    """
    columns = [column for column in _WHO if column in table.columns]
    if not columns:
        return
    filled = table.select(pl.col(columns).fill_null(""))
    said = filled.group_by(columns).len().sort("len", *columns, descending=True).to_dicts()
    who = {_line(row): row["len"] for row in said if _line(row)}
    if len(who) > 1:
        told = "; ".join(f"{line} ({count:,} answers)" for line, count in list(who.items())[:5])
        yield Notice(
            level="warning",
            text=f"{name}: the endpoint said it was {len(who)} different models; their answers are mixed: {told}",
        )
    elif any(_differs(row, now) for row in said):
        began = _line({column: now.get(column.removeprefix("from_"), "") for column in _WHO})
        yield Notice(
            level="warning",
            text=f"{name}: its answers came from an endpoint that said it was {', '.join(who)}; when this run "
            f"began, it said it was {began}",
        )


def _line(row: Mapping[str, str]) -> str:
    return ", ".join(row[column] for column in _WHO if row.get(column))


def _differs(row: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Tell whether the two say different things of the same; some paths of a server say less than others.

    >>> _differs({"from_model": "m"}, {"model": "m", "fingerprint": "fp"})
    False
    >>> _differs({"from_model": "m"}, {"model": "n"})
    True
    """
    told = ((row.get(column, ""), now.get(column.removeprefix("from_"), "")) for column in _WHO)
    return any(one and other and one != other for one, other in told)


def _endings(name: str, stage: str, endings: pl.Series) -> Iterator[Notice]:
    """Count answers that are not what was hoped for."""
    counts = {row["ending"]: row["count"] for row in endings.explode().rename("ending").value_counts().to_dicts()}
    odd = [f"{counts[ending]:,} {words}" for ending, words in _ODD.items() if counts.get(ending)]
    if odd:
        whole = sum(counts.values())
        text = f"{name}, {stage}: of {whole:,} answers {', '.join(odd)}"
        absent = counts.get(MISSING, 0)
        if absent:  # the probes do not see them
            yield Notice(level="warning", text=f"{text}; what is missing is in no share and no mean")
        else:
            yield Notice(level="info", text=text)


def _told(name: str, stage: str, table: pl.DataFrame) -> Iterator[Notice]:
    """Say of truncated and drawn probabilities what they are."""
    draws = int(table["got_draws"].max() or 0) if "got_draws" in table.columns else 0  # type: ignore[arg-type]
    mean = table["got_told"].mean()
    if draws:
        text = f"shares of {draws} drawn words, each known to about ±{0.5 / draws**0.5:.0%}"
    elif isinstance(mean, float) and mean < 1:
        text = f"those of the tokens that the endpoint tells, which hold {mean:.1%} of the probability on average"
    else:
        return
    yield Notice(
        level="info",
        text=f"{name}, {stage}: probabilities are {text}; a word that is not among them has none. Compare them "
        "with exact probabilities of another model only where they are ratios of words that both have",
    )
