"""`clinometer annotate`: write sheets for raters, and read them back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clinometer.cli.terminal import show

if TYPE_CHECKING:
    from clinometer.annotation.items import Item
    from clinometer.annotation.merging import Agreement, Merged
    from clinometer.stats import RaterPair

annotate = typer.Typer(
    help="Let people judge words or sentences: write sheets, read them back, measure agreement.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

ChoicesOption = Annotated[
    str,
    typer.Option(
        help="The ratings to choose from, separated by commas. Default for words: positive,negative,neutral,"
        "irrelevant.",
        show_default=False,
    ),
]
_NAMED = 8  # items that a message names


@annotate.command()
def export(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A run folder, or a text or CSV file.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The sheet to write; it must not exist.", show_default=False)],
    kind: Annotated[Literal["words", "sentences"], typer.Option(help="What to rate.")] = "words",
    choices: ChoicesOption = "",
    guideline: Annotated[
        Path | None,
        typer.Option(
            help="Your guideline, copied next to the sheet. Default for words: ours.", show_default=False
        ),
    ] = None,
    probe: Annotated[str, typer.Option(help="For a run: the audit.", show_default=False)] = "",
    stage: Annotated[str, typer.Option(help="For a run: the stage.", show_default=False)] = "",
    model: Annotated[str, typer.Option(help="For a run: one model instead of all.", show_default=False)] = "",
    without: Annotated[
        Path | None, typer.Option(help="Leave out what this list already rates.", show_default=False)
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            min=0,
            help="How many at most: the most probable words (for a file: the first), or random sentences; 0: all.",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order.")] = 0,
) -> None:
    """Write a sheet for raters, in random order, with a guideline next to it."""
    from clinometer.annotation.exchange import SheetRequest, write_sheet

    written = write_sheet(
        SheetRequest(
            source=source,
            out=out,
            kind="word" if kind == "words" else "sentence",
            choices=choices,
            guideline=guideline,
            probe=probe,
            stage=stage,
            model=model,
            without=without,
            limit=limit,
            seed=seed,
        )
    )
    show(f"{written.items:,} {kind} to rate: {', '.join(written.choices)}")
    show(f"sheet      {out}")
    show(f"guideline  {written.guideline}")


@annotate.command()
def read(
    sheets: Annotated[
        list[Path], typer.Argument(metavar="SHEET...", help="The raters' sheets, two or more.", show_default=False)
    ],
    choices: ChoicesOption = "",
    items: Annotated[
        Path | None,
        typer.Option(help="The sheet as it was exported. Default: the first rater's.", show_default=False),
    ] = None,
    rule: Annotated[
        Literal["majority", "unanimous"], typer.Option(help="How many raters must agree on an item.")
    ] = "majority",
    unresolved: Annotated[
        Path | None, typer.Option(help="Write the items to resolve here.", show_default=False)
    ] = None,
    resolved: Annotated[
        Path | None, typer.Option(help="The items to resolve, filled in.", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the merged list here.", show_default=False)] = None,
    ratings: Annotated[
        Path | None, typer.Option(help="Write each rater's rating of each item here.", show_default=False)
    ] = None,
) -> None:
    """Read raters' sheets, measure how well they agree, and merge them."""
    from clinometer.annotation.exchange import RatingsRequest, read_ratings, write_ratings

    request = RatingsRequest(
        sheets=tuple(sheets),
        choices=choices,
        items=items,
        rule=rule,
        resolved=resolved,
        unresolved=unresolved,
        ratings=ratings,
        out=out,
    )
    found = read_ratings(request)
    _print_agreement(found.agreement, total=len(found.items))
    _print_merged(found.merged)
    for what, file in write_ratings(request, found):
        show(f"{what:<12}{file}")


def _print_agreement(agreement: Agreement, *, total: int) -> None:
    for pair in agreement.pairs:
        show(f"{pair.first} and {pair.second}: {_kappa(pair)}")
    for rater, missing in agreement.missing.items():
        show(f"{rater} left out {len(missing):,} of {total:,}: {_some(missing)}")


def _kappa(pair: RaterPair) -> str:
    kappa = pair.kappa
    if kappa.n == 0:
        return "they rated no item in common"
    agree = f"agree on {kappa.observed:.1%} of {kappa.n:,}"
    if math.isnan(kappa.estimate):
        return f"{agree}; kappa is not defined, because both always use the same rating"
    interval = (
        "no interval, because they never disagree"
        if math.isnan(kappa.low)
        else f"{kappa.low:.2f} to {kappa.high:.2f}"
    )
    return f"kappa {kappa.estimate:.2f} ({interval}), {agree}"


def _print_merged(merged: Merged) -> None:
    counts = {
        how: sum(each.decision == how for each in merged.settled) for how in ("all agree", "majority", "resolved")
    }
    settled = f"all raters agree on {counts['all agree']:,} items"
    settled += f", most on {counts['majority']:,}" if counts["majority"] else ""
    settled += f", {counts['resolved']:,} were resolved" if counts["resolved"] else ""
    show(f"{settled}, {len(merged.unresolved):,} are unresolved")
    if merged.unresolved:
        show(f"unresolved: {_some(merged.unresolved)}")


def _some(items: Sequence[Item]) -> str:
    shown = ", ".join(
        f"'{item.text if len(item.text) <= 60 else item.text[:60] + '…'}'" for item in items[:_NAMED]
    )
    return shown + (f" and {len(items) - _NAMED:,} more" if len(items) > _NAMED else "")
