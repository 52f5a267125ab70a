"""`clinometer replicate`: a paper's printed numbers beside ours, from its authors' outputs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli.terminal import show

if TYPE_CHECKING:
    from clinometer.replication import Cell
    from clinometer.workflows.replicate import ReplicatedItem, Replication

MOST_ABSENT, MOST_MISSING, MOST_CHANGED = 3, 3, 10  # cells and files that are named one by one
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

    if json is not None:
        _check_place(json)
    found = run_replicate(
        ReplicateRequest(paper=paper, item=item, folder=folder, nrc=nrc, ratings=ratings), on_file=_show_files
    )
    show(found.title)
    if not found.repository:
        show("its authors published no outputs to recompute from; docs/replication.md says what there is instead")
    else:
        _show_origin(found)
    for each in found.items:
        _show_item(each)
    if found.items:
        show()
        show(_summary(found))
    if json is not None:
        _write(json, found.as_json())
        show(json)


def _check_place(path: Path) -> None:
    """Refuse before anything is computed what could not be written after it."""
    from clinometer.errors import InputError

    folder = path.absolute().parent
    if path.is_dir():
        raise InputError(f"'{path}' is a folder; name a file with --json")
    if not folder.is_dir():
        raise InputError(f"'{path}' cannot be written: no folder '{folder}'; name another file with --json")
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"'{path}' cannot be written: you may not write in '{folder}'; name another file with --json"
        )


def _write(path: Path, found: object) -> None:
    import json

    from clinometer.data.files import write_whole
    from clinometer.errors import InputError

    try:
        with write_whole(path) as file:
            file.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        # the error itself names the temporary file
        why = error.strerror or type(error).__name__
        raise InputError(f"'{path}' cannot be written ({why}); name another file with --json") from None


def _show_origin(found: Replication) -> None:
    """Say where the files are from: the authors' only as far as their checksums say so."""
    from clinometer.data.wording import counted

    origin, files = f"{found.repository} at {found.commit[:7]}", found.files
    if files.changed:
        show(f"outputs: in {found.folder}; not all as in {origin}")
        which = f"{', '.join(files.changed[:MOST_CHANGED])}{_more(len(files.changed) - MOST_CHANGED)}"
        differ, them = ("differs", "it") if len(files.changed) == 1 else ("differ", "them")
        show(
            f"warning: {len(files.changed)} of {counted(files.known, 'known file')} {differ} from the authors' "
            f"(another SHA-256), so numbers from {them} are not theirs: {which}"
        )
    elif files.known:
        checked = counted(files.known, "file")
        show(f"outputs: {origin}, in {found.folder} ({checked} checked by SHA-256)")
    else:
        show(f"outputs: in {found.folder}, a copy of {found.repository}")
    if files.unknown:
        which = f"{', '.join(files.unknown[:MOST_MISSING])}{_more(len(files.unknown) - MOST_MISSING)}"
        show(f"not checked, because their SHA-256 is not known here: {which}")


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
    return "." not in cell.printed if cell.printed else isinstance(cell.ours, int)


def _difference(cell: Cell) -> str:
    if not cell.printed:
        return f"{'—':>10}"
    written = f"{cell.difference:+.0f}" if _counts(cell) else f"{round(cell.difference, 4) + 0.0:+.4f}"  # never −0
    return f"{written:>10}{'' if cell.agrees else '  differs'}"


def _summary(found: Replication) -> str:
    if found.compared:
        said = (
            f"{found.agreeing} of {len(found.compared)} printed numbers agree within the rounding of their digits"
        )
    elif any(cell.printed for item in found.items for cell in item.cells):
        said = "none of the printed numbers could be compared"
    else:
        said = "nothing to compare: the paper prints no numbers here"
    cells = "1 cell takes" if found.not_found == 1 else f"{found.not_found} cells take"
    return said + (f"; {cells} files that are not there" if found.not_found else "")


def _show_files(done: int, total: int) -> None:
    """Update one line on a terminal; print nothing elsewhere."""
    if sys.stderr.isatty():
        show(f"  {done} of {total} files", end="\n" if done == total else "\r", error=True)
