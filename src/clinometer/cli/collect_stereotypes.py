"""`clinometer data collect-stereotypes`: ask search engines, clean up, and read a person's judgement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli.arguments import QuietOption
from clinometer.cli.terminal import show
from clinometer.errors import DataError

if TYPE_CHECKING:
    from clinometer.data.suggestions.asking import Engine
    from clinometer.data.suggestions.collection import Question


def collect_stereotypes(
    groups: Annotated[
        Path | None, typer.Option(help="CSV: group,category[,kind]. Default: the paper's.", show_default=False)
    ] = None,
    templates: Annotated[
        Path | None, typer.Option(help="TOML: people, country. Default: the paper's.", show_default=False)
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(help="google, yahoo or duckduckgo; repeatable. Default: all three.", show_default=False),
    ] = None,
    address: Annotated[
        list[str] | None,
        typer.Option(help="engine=URL: another address for an engine; repeatable.", show_default=False),
    ] = None,
    delay: Annotated[float, typer.Option(min=0, help="Seconds between two questions to one engine.")] = 1.0,
    read_back: Annotated[
        Path | None,
        typer.Option(help="A review sheet that a person has filled in: write the data set.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the collection; with --read-back, the data set's file.",
            show_default="collected-stereotypes",
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Ask search engines for stereotypes; the same command resumes a collection."""
    if read_back is not None:
        if groups or templates or engine or address:
            raise DataError(
                "--read-back only reads a sheet; leave out --groups, --templates, --engine and --address"
            )
        _write_dataset(read_back, out or Path("collected-stereotypes.tsv"))
        return

    from clinometer.data.stereotypes_data import load_groups, load_templates, read_groups, read_templates
    from clinometer.data.suggestions.asking import choose_engines
    from clinometer.data.suggestions.collection import ask_about

    questions = ask_about(
        read_groups(groups) if groups else load_groups(),
        read_templates(templates) if templates else load_templates(),
    )
    engines = choose_engines(engine or [], address or [], delay=delay)
    _collect(questions, engines, delay=delay, folder=out or Path("collected-stereotypes"), quiet=quiet)


def _collect(
    questions: tuple[Question, ...], engines: list[Engine], *, delay: float, folder: Path, quiet: bool
) -> None:
    from clinometer.cli.progress import show_progress
    from clinometer.data.suggestions.review import collect_into, write_review
    from clinometer.data.wording import counted

    names = ", ".join(engine.name for engine in engines)
    try:
        with show_progress(quiet=quiet) as progress:
            found = collect_into(
                folder,
                questions,
                engines,
                delay=delay,
                on_begin=lambda total, done: progress.begin(names, total=total, done=done),
                on_reply=lambda: progress.advance(1),
            )
            progress.end()
    except KeyboardInterrupt:
        show(error=True)
        show(f"clinometer: stopped; the same command resumes in {folder}", error=True)
        raise typer.Exit(130) from None
    for reason in found.asked.left_alone:
        show(f"not asked any more this time: {reason}")
    show(
        f"{counted(found.asked.answered, 'question')} answered, {found.asked.failed:,} failed,"
        f" {found.still:,} of {found.total:,} still open"
    )
    for reason, count in found.cleaned.dropped.items():
        show(f"{counted(count, 'suggestion')} dropped: {reason}")
    open_rows = write_review(found)
    show(f"{counted(len(found.cleaned.candidates), 'completion')}, {open_rows:,} of them to judge: {found.sheet}")
    show(f"then: clinometer data collect-stereotypes --read-back {found.sheet} --out FILE")
    if found.still:
        show("run the same command again later to ask what is still open")
        raise typer.Exit(1)


def _write_dataset(sheet: Path, file: Path) -> None:
    from clinometer.data.suggestions.sheet import judged_stereotypes, write_stereotypes
    from clinometer.data.wording import counted

    kept = judged_stereotypes(sheet)
    write_stereotypes(file, kept)
    groups = {row.group for row in kept}
    show(f"{file}: {counted(len(kept), 'stereotype')} about {counted(len(groups), 'group')}")
    if several := sum(" " in row.attribute for row in kept):
        show(f"{several:,} of them have several words, which no audit can find")
    show(f"to use it: clinometer data add stereotypes {file}")
