"""`clinometer shift`: fine-tune a model on growing shares of corpora, and audit how its stereotypes shift."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli.arguments import DeviceOption, QuietOption
from clinometer.errors import InputError

if TYPE_CHECKING:
    from clinometer.train import Checkpoint

_PROBE = "stereotypes"
_LOCK = "shift.lock"


def shift(
    model: Annotated[
        str, typer.Argument(help="A masked model: a hub id, a folder or a built-in name.", show_default=False)
    ],
    corpus: Annotated[
        list[Path],
        typer.Option(help="Files of texts (.txt, .jsonl; also .xz, .gz): one series each.", metavar="FILE…"),
    ],
    fraction: Annotated[
        list[str] | None,
        typer.Option(help="Shares of a corpus to train on.", show_default="0.1 0.25 0.5 1", metavar="SHARE…"),
    ] = None,
    epochs: Annotated[int, typer.Option(help="How often each text is read.")] = 1,
    learning_rate: Annotated[float, typer.Option(help="Highest learning rate; it falls to 0.")] = 5e-5,
    batch: Annotated[int, typer.Option(help="Pieces of text in a step.")] = 8,
    max_articles: Annotated[
        int, typer.Option(help="Cut a corpus to so many articles before shares are taken; 0: no limit.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Where checkpoints and audit go.", show_default="tuned/<model>-shift"),
    ] = None,
    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Audit the model before and after.")] = True,
    profile: Annotated[str, typer.Option(help="Of the audit: quick, standard or paper.")] = "standard",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="An option of the audit: stereotypes.option=value.", show_default=False),
    ] = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
) -> None:
    """Fine-tune a masked model on shares of corpora; audit how its stereotypes shift. The same command resumes."""
    # heavy imports below: `clinometer --help` must not wait for them
    from clinometer.cli.tuned import audit_spec, audit_together, check_audit, short_name, training, working_in
    from clinometer.data.corpora import corpus_name
    from clinometer.train import MaskedSettings, tune_masked

    all_settings = [
        MaskedSettings(
            fraction=share,
            at_most=max_articles,
            epochs=epochs,
            learning_rate=learning_rate,
            batch=batch,
            seed=seed,
        )
        for share in _shares(fraction or ["0.1", "0.25", "0.5", "1"])
    ]
    names = [corpus_name(file) for file in corpus]
    (name, count), *_ = collections.Counter(names).most_common(1)
    if count > 1:
        raise InputError(f"{count} corpora are called {name!r}; give each file once, under a name of its own")
    for file in corpus:
        if not file.is_file():
            raise InputError(f"no corpus '{file}'; give the path of a file .txt or .jsonl, also as .xz or .gz")
    place = out if out is not None else Path("tuned") / f"{short_name(model)}-shift"
    plan = [
        (file, settings, place / f"{short_name(model)}-{name}-{settings.fraction:g}")
        for file, name in zip(corpus, names, strict=True)
        for settings in all_settings
    ]
    spec = audit_spec(
        model,
        [folder for _, _, folder in plan],
        probes=[_PROBE],
        profile=profile,
        seed=seed,
        settings=set_ or [],
        options={},
    )
    if audit:
        check_audit(spec, place, device=device)
    with working_in(place, lock=_LOCK):
        checkpoints = []
        with training(quiet=quiet) as progress:
            for file, settings, folder in plan:
                checkpoints.append(
                    tune_masked(model, file, out=folder, settings=settings, device=device, progress=progress)
                )
        for checkpoint in checkpoints:
            _print(checkpoint)
        if audit:
            audit_together(spec, place, device=device, quiet=quiet)


def _shares(given: list[str]) -> list[float]:
    from clinometer.cli.arguments import comma_separated

    shares = []
    for part in comma_separated(given):
        try:
            shares.append(float(part))
        except ValueError:
            raise InputError(f"--fraction {part!r} is no number; expected shares such as 0.1 0.25 0.5 1") from None
    return sorted(set(shares))


def _print(checkpoint: Checkpoint) -> None:
    figures = checkpoint.figures
    print(checkpoint.folder)
    print(
        f"  {figures['documents']:,} of {figures['documents_in_corpus']:,} texts, {figures['tokens']:,} tokens,"
        f" {figures['steps']:,} steps, loss {figures['loss_of_first_tenth']:.3f} in the first tenth,"
        f" {figures['loss_of_last_tenth']:.3f} in the last"
    )
