"""`clinometer shift`: fine-tune a model on growing shares of corpora, and audit how its stereotypes shift."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli import arguments
from clinometer.cli.terminal import show

if TYPE_CHECKING:
    from clinometer.train import Checkpoint
    from clinometer.workflows.checkpoints import Tuned


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
    learning_rate: arguments.LearningRateOption = 5e-5,
    batch: Annotated[int, typer.Option(help="Pieces of text in a step.")] = 8,
    max_articles: Annotated[
        int, typer.Option(help="Cut a corpus to this many articles before taking shares; 0: no limit.")
    ] = 0,
    seed: arguments.SeedOption = 0,
    seeds: arguments.SeedsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where checkpoints and audit go.", show_default="tuned/<model>-shift"),
    ] = None,
    audit: arguments.AuditOption = True,
    profile: arguments.ProfileOption = "standard",
    set_: arguments.SettingsOption = None,
    device: arguments.DeviceOption = "auto",
    quiet: arguments.QuietOption = False,
) -> None:
    """Fine-tune a masked model on shares of corpora; audit how its stereotypes shift. The same command resumes."""
    # heavy imports below: `clinometer --help` must not wait for them
    from clinometer.cli.tuned import checkpoint_audit, numbers, tune_and_print
    from clinometer.cli.tuned import seeds as read_seeds
    from clinometer.train import MaskedSettings
    from clinometer.workflows import Execution
    from clinometer.workflows.shift import ShiftRequest, run_shift

    request = ShiftRequest(
        model=model,
        corpora=tuple(corpus),
        fractions=numbers("--fraction", fraction or ["0.1", "0.25", "0.5", "1"], such_as="0.1 0.25 0.5 1"),
        settings=MaskedSettings(
            at_most=max_articles, epochs=epochs, learning_rate=learning_rate, batch=batch, seed=seed
        ),
        seeds=read_seeds(seeds),
        out=out,
        audit=checkpoint_audit(profile=profile, settings=set_) if audit else None,
        execution=Execution(device=device),
    )
    tune_and_print(lambda progress: run_shift(request, progress=progress), _print, quiet=quiet)


def _print(_: Tuned, checkpoint: Checkpoint) -> None:
    figures = checkpoint.figures
    show(checkpoint.folder)
    show(
        f"  {figures['documents']:,} of {figures['documents_in_corpus']:,} texts, {figures['tokens']:,} tokens,"
        f" {figures['steps']:,} steps, loss {figures['loss_of_first_tenth']:.3f} in the first tenth,"
        f" {figures['loss_of_last_tenth']:.3f} in the last"
    )
