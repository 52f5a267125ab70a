"""`clinometer annotate`: write sheets for raters, and read them back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clinometer.cli.terminal import show
from clinometer.errors import DataError

if TYPE_CHECKING:
    from clinometer.annotation import Agreement, Item, ItemKind, Merged
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
    from clinometer.annotation import (
        items_from_run,
        read_items,
        read_new_items,
        refuse_existing,
        sheet_csv,
        shuffled,
        write_new,
    )

    each: ItemKind = "word" if kind == "words" else "sentence"
    names = _choices(choices, each)
    text_beside = _guideline(guideline, each, names, own=not choices)
    beside = out.with_name(f"{out.stem}.guideline.md")
    refuse_existing(out, beside)
    items: Sequence[Item]
    if source.is_dir():
        from clinometer.store import RunFolder

        items = items_from_run(RunFolder.open(source), kind=each, probe=probe, stage=stage, model=model)
    else:
        if given := [
            name for name, value in (("--probe", probe), ("--stage", stage), ("--model", model)) if value
        ]:
            raise DataError(f"{given[0]} chooses from a run, and '{source}' is not a folder; leave it out")
        items = read_new_items(source, kind=each)
    if without is not None:
        rated = {item.id for item in read_items(without, kind=each)}
        items = [item for item in items if item.id not in rated]
    if not items:
        raise DataError(f"'{source}' has no {kind} to rate; give another source, or leave out --without")
    if limit and each == "word":
        items = items[:limit]
    items = shuffled(items, seed=seed)[: limit or None]
    write_new(out, sheet_csv(items, kind=each))
    write_new(beside, text_beside, mark=False)
    show(f"{len(items):,} {kind} to rate: {', '.join(names)}")
    show(f"sheet      {out}")
    show(f"guideline  {beside}")


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
    from clinometer.annotation import (
        measure_agreement,
        merge_ratings,
        merged_csv,
        ratings_csv,
        read_items,
        read_sheet,
        refuse_existing,
        sheet_kind,
        unresolved_csv,
        write_new,
    )

    if len(sheets) < 2:
        raise DataError("found one sheet; give the sheets of two or more raters")
    raters = [sheet.stem for sheet in sheets]
    if repeated := [name for name in raters if raters.count(name) > 1]:
        raise DataError(
            f"two sheets are called '{repeated[0]}'; a sheet's file name is its rater's name: rename one"
        )
    refuse_existing(*(path for path in (unresolved, out, ratings) if path is not None))
    kind = sheet_kind(sheets[0])
    names = _choices(choices, kind)
    listed = read_items(items or sheets[0], kind=kind)
    rated = [read_sheet(sheet, kind=kind, choices=names, items=listed) for sheet in sheets]
    decided = read_sheet(resolved, kind=kind, choices=names, items=listed) if resolved else None
    merged = merge_ratings(listed, rated, rule=rule, resolved=decided)
    _print_agreement(measure_agreement(listed, rated), total=len(listed))
    _print_merged(merged)
    if unresolved is not None and merged.unresolved:
        write_new(unresolved, unresolved_csv(merged.unresolved, rated, kind=kind))
        show(f"to resolve  {unresolved}")
    if ratings is not None:
        write_new(ratings, ratings_csv(listed, rated, kind=kind))
        show(f"ratings     {ratings}")
    if out is not None:
        if not merged.settled:
            raise DataError("the raters agree on no item; there is nothing to write")
        write_new(out, merged_csv(merged, rated, kind=kind))
        show(f"list        {out}")


def _choices(given: str, kind: ItemKind) -> tuple[str, ...]:
    from clinometer.data import RATINGS

    names = tuple(name.strip() for name in given.split(",") if name.strip())
    if not given and kind == "word":
        return RATINGS
    if len({name.lower() for name in names}) < max(2, len(names)):
        found = f"--choices {given!r}" if given else "no --choices"
        raise DataError(
            f"found {found}; give two or more different ratings, such as --choices relevant,irrelevant"
        )
    return names


def _guideline(given: Path | None, kind: ItemKind, names: Sequence[str], *, own: bool) -> str:
    from clinometer.data import packaged, read_text

    if given is not None:
        return read_text(given)
    if kind == "word" and own:
        return read_text(packaged("stigma", "guideline.md"))
    return (
        f"# How to rate a {kind}\n\nWrite one of these into the column `rating`: {', '.join(names)}.\n"
        "Judge on your own. Rate every item; if you are not sure, decide, and say so in the column `note`.\n"
    )


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
