"""`clinometer replicate`: a paper's printed numbers beside ours, from its authors' outputs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli.terminal import show

if TYPE_CHECKING:
    from clinometer.replication import Cell
    from clinometer.workflows.replicate import ReplicatedItem

MOST_ABSENT, MOST_MISSING = 3, 3  # cells and files that are named one by one
PathOption = Path | None


def replicate(
    paper: Annotated[
        str, typer.Argument(help="The paper, by its audit; see `clinometer probes`.", show_default=False)
    ],
    item: Annotated[str, typer.Option(help="One item only, such as table-4.", show_default="all")] = "",
    folder: Annotated[
        PathOption, typer.Option(help="A copy of the authors' repository.", show_default="download what is needed")
    ] = None,
    nrc: Annotated[
        PathOption, typer.Option(help="The full NRC emotion lexicon.", show_default="the one you added, if any")
    ] = None,
    ratings: Annotated[
        PathOption, typer.Option(help="The authors' ratings of words.", show_default="those you added, or ours")
    ] = None,
    json: Annotated[
        PathOption, typer.Option("--json", help="Also write every cell to this JSON file.", show_default=False)
    ] = None,
) -> None:
    """Recompute a paper's numbers from what its authors published, with our code; needs no model."""
    from clinometer.workflows.replicate import ReplicateRequest, run_replicate

    found = run_replicate(
        ReplicateRequest(paper=paper, item=item, folder=folder, nrc=nrc, ratings=ratings), on_file=_show_files
    )
    show(found.title)
    if not found.repository:
        show("its authors published no outputs to recompute from; docs/replication.md says what there is instead")
    else:
        show(f"outputs: {found.repository} at {found.commit[:7]}, in {found.folder}")
    for each in found.items:
        _show_item(each)
    if found.items:
        show()
        show(_summary(len(found.compared), found.agreeing, found.not_found))
    if json is not None:
        _write(json, found.as_json())
        show(json)


def _write(path: Path, found: object) -> None:
    import json

    from clinometer.data.files import write_whole
    from clinometer.errors import InputError, reason

    try:
        with write_whole(path) as file:
            file.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise InputError(f"'{path}' cannot be written ({reason(error)}); name another file with --json") from None


def _show_item(item: ReplicatedItem) -> None:
    show()
    show(f"{item.name}: {item.about}")
    width = max((len(cell.name) for cell in item.cells if cell.found), default=4)
    show(f"  {'cell':<{width}}  {'printed':>8}  {'ours':>8}  {'difference':>10}")
    for cell in item.cells:
        if cell.found:
            show(f"  {cell.name:<{width}}  {cell.printed or '—':>8}  {_number(cell):>8}  {_difference(cell)}")
    if absent := [cell for cell in item.cells if not cell.found]:
        names = "; ".join(cell.name for cell in absent[:MOST_ABSENT])
        show(f"  not found: {names}{_more(len(absent) - MOST_ABSENT)}")
    for note in dict.fromkeys(cell.note for cell in item.cells if cell.note):
        show(f"  note: {note}")
    if item.missing:
        show(
            f"  files not there: {', '.join(item.missing[:MOST_MISSING])}{_more(len(item.missing) - MOST_MISSING)}"
        )


def _more(left: int) -> str:
    return f" and {left} more" if left > 0 else ""


def _number(cell: Cell) -> str:
    return f"{cell.ours:.0f}" if _counts(cell) else f"{cell.ours:.4f}"


def _counts(cell: Cell) -> bool:
    return bool(cell.printed) and "." not in cell.printed


def _difference(cell: Cell) -> str:
    if not cell.printed:
        return f"{'—':>10}"
    written = f"{cell.difference:+.0f}" if _counts(cell) else f"{round(cell.difference, 4) + 0.0:+.4f}"  # never −0
    return f"{written:>10}{'' if cell.agrees else '  differs'}"


def _summary(compared: int, agreeing: int, not_found: int) -> str:
    said = f"{agreeing} of {compared} printed numbers agree within the rounding of their digits"
    cells = "1 cell takes" if not_found == 1 else f"{not_found} cells take"
    return said + (f"; {cells} files that are not there" if not_found else "")


def _show_files(done: int, total: int) -> None:
    """Update one line on a terminal; print nothing elsewhere."""
    if sys.stderr.isatty():
        show(f"  {done} of {total} files", end="\n" if done == total else "\r", error=True)
