"""`clinometer data collect-stereotypes`: ask search engines, clean up, and read a person's judgement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli.arguments import QuietOption
from clinometer.cli.terminal import show
from clinometer.errors import DataError

if TYPE_CHECKING:
    from clinometer.data.suggestions import Engine, Question

# seconds between two questions to an engine's own public address, at least
_LEAST_DELAY = 0.5


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
    from clinometer.data.suggestions import ask_about

    questions = ask_about(
        read_groups(groups) if groups else load_groups(),
        read_templates(templates) if templates else load_templates(),
    )
    engines = _engines(engine or [], address or [], delay=delay)
    _collect(questions, engines, delay=delay, folder=out or Path("collected-stereotypes"), quiet=quiet)


def _collect(
    questions: tuple[Question, ...], engines: list[Engine], *, delay: float, folder: Path, quiet: bool
) -> None:
    import random

    from clinometer.cli.progress import show_progress
    from clinometer.data.suggestions import (
        Asker,
        Manners,
        clean,
        collect,
        open_journal,
        open_questions,
        read_sheet,
        write_sheet,
    )
    from clinometer.data.wording import counted

    sheet = folder / "review.csv"
    if sheet.exists():
        read_sheet(sheet)  # complain about a mistake in it before asking anyone
    askers = [Asker(engine, manners=Manners(delay=delay), rng=random.Random()) for engine in engines]
    names = [engine.name for engine in engines]
    with open_journal(folder / "answers.jsonl") as journal:
        total = len(questions) * len(engines)
        still = open_questions(questions, names, journal)
        try:
            with show_progress(quiet=quiet) as progress:
                progress.begin(", ".join(names), total=total, done=total - still)
                done = collect(questions, askers, journal, on_reply=lambda: progress.advance(1))
                progress.end()
        except KeyboardInterrupt:
            show(error=True)
            show(f"clinometer: stopped; the same command resumes in {folder}", error=True)
            raise typer.Exit(130) from None
        cleaned = clean(journal.entries)
        still = open_questions(questions, names, journal)
    for reason in done.left_alone:
        show(f"not asked any more this time: {reason}")
    show(
        f"{counted(done.answered, 'question')} answered, {done.failed:,} failed, {still:,} of {total:,} still open"
    )
    for reason, count in cleaned.dropped.items():
        show(f"{counted(count, 'suggestion')} dropped: {reason}")
    if not cleaned.candidates:
        raise DataError(
            f"no completion in {counted(total - still, 'answer')}; nothing to review (answers: {folder})"
        )
    # read only now: a person may have judged in the meantime
    write_sheet(sheet, cleaned.candidates, judged=read_sheet(sheet) if sheet.exists() else ())
    open_rows = sum(not row.keep for row in read_sheet(sheet))
    show(f"{counted(len(cleaned.candidates), 'completion')}, {open_rows:,} of them to judge: {sheet}")
    show(f"then: clinometer data collect-stereotypes --read-back {sheet} --out FILE")
    if still:
        show("run the same command again later to ask what is still open")
        raise typer.Exit(1)


def _engines(names: list[str], addresses: list[str], *, delay: float) -> list[Engine]:
    """Return the engines to ask, each once, with the addresses that the user gives."""
    from dataclasses import replace
    from urllib.parse import urlsplit

    from clinometer.data.downloads import check_address
    from clinometer.data.suggestions import ENGINES, get_engine

    given: dict[str, str] = {}
    for setting in addresses:
        name, equals, url = setting.partition("=")
        if not equals:
            raise DataError(f"--address {setting!r}; expected engine=URL, such as google=http://localhost:8000/")
        given[get_engine(name).name] = check_address(url)
    chosen = list(dict.fromkeys(get_engine(name).name for name in names)) or list(ENGINES)
    for name in given:
        if name not in chosen:
            raise DataError(f"--address for {name!r}, which is not asked; asked: {', '.join(chosen)}")
    engines = [replace(ENGINES[name], address=given.get(name, ENGINES[name].address)) for name in chosen]
    public = {urlsplit(engine.address).hostname for engine in ENGINES.values()}
    for engine in engines:
        if delay < _LEAST_DELAY and urlsplit(engine.address).hostname in public:
            raise DataError(
                f"--delay {delay:g} is too fast for {engine.name}; expected at least {_LEAST_DELAY:g} seconds"
            )
    return engines


def _write_dataset(sheet: Path, file: Path) -> None:
    from clinometer.data.suggestions import judged_stereotypes, write_stereotypes
    from clinometer.data.wording import counted

    kept = judged_stereotypes(sheet)
    write_stereotypes(file, kept)
    groups = {row.group for row in kept}
    show(f"{file}: {counted(len(kept), 'stereotype')} about {counted(len(groups), 'group')}")
    if several := sum(" " in row.attribute for row in kept):
        show(f"{several:,} of them have several words, which no audit can find")
    show(f"to use it: clinometer data add stereotypes {file}")
