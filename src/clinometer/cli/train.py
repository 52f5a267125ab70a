"""`clinometer train`: train a causal model on a corpus, to audit or mitigate it afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli.arguments import DeviceOption, DtypeOption, QuietOption, SeedOption
from clinometer.cli.terminal import show
from clinometer.errors import InputError

if TYPE_CHECKING:
    from clinometer.train import Checkpoint


def train(
    model: Annotated[
        str, typer.Argument(help="A causal model: a hub id, a folder or a built-in name.", show_default=False)
    ],
    corpus: Annotated[
        list[Path],
        typer.Option(
            help="Files of texts (.txt, .jsonl; also .xz, .gz); several are one corpus.", metavar="FILE…"
        ),
    ],
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Begin with random weights of the same architecture.")
    ] = False,
    epochs: Annotated[int, typer.Option(help="How often each text is read.")] = 1,
    steps: Annotated[int, typer.Option(help="Stop after this many steps instead; 0: epochs decide.")] = 0,
    fraction: Annotated[float, typer.Option(help="Share of the corpus to train on.")] = 1.0,
    max_articles: Annotated[int, typer.Option(help="Cut the corpus to this many articles; 0: no limit.")] = 0,
    held_out: Annotated[int, typer.Option(help="Articles not to train on, to measure perplexity.")] = 100,
    learning_rate: Annotated[
        float,
        typer.Option(
            help="Highest learning rate; it falls to 0.", show_default="2.5e-5; 2.5e-4 with --from-scratch"
        ),
    ] = 0.0,
    batch: Annotated[int, typer.Option(help="Pieces of text in a step.")] = 16,
    accumulate: Annotated[int, typer.Option(help="Compute a step in this many parts, to need less memory.")] = 1,
    window: Annotated[int, typer.Option(help="Tokens in a piece of text.")] = 512,
    seed: SeedOption = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Where the checkpoint goes.", show_default="tuned/<model>-<corpus>"),
    ] = None,
    dtype: DtypeOption = "auto",
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
) -> None:
    """Train a causal model on a corpus by next-token prediction. The same command resumes.

    On several GPUs: accelerate launch --multi_gpu -m clinometer train …
    """
    # heavy imports below: `clinometer --help` must not wait for them
    from clinometer.cli.tuned import training
    from clinometer.data.corpora import corpus_name
    from clinometer.models.providers.local import built_as, resolve
    from clinometer.train import CausalSettings, train_causal
    from clinometer.train.processes import end_processes, is_main_process
    from clinometer.types import ModelSpec
    from clinometer.workflows.checkpoints import check_corpora, short_name

    settings = CausalSettings(
        from_scratch=from_scratch,
        fraction=fraction,
        at_most=max_articles,
        held_out=held_out,
        epochs=epochs,
        steps=steps,
        learning_rate=learning_rate,
        batch=batch,
        accumulate=accumulate,
        window=window,
        dtype=dtype,
        seed=seed,
    )
    check_corpora(corpus)
    if built_as(resolve(ModelSpec(name=model))) == "masked":
        raise InputError(
            f"{model!r} is a masked model; train a causal one here, such as builtin:causal, and masked ones with"
            " clinometer shift MODEL --corpus FILE --no-audit"
        )
    if out is None:
        names = [short_name(model), *map(corpus_name, corpus), *(["from-scratch"] if from_scratch else [])]
        out = Path("tuned") / "-".join(names)
    with training(quiet=quiet) as progress:
        checkpoint = train_causal(model, corpus, out=out, settings=settings, device=device, progress=progress)
    end_processes()
    if is_main_process():
        _print(checkpoint)


def _print(checkpoint: Checkpoint) -> None:
    figures, folder = checkpoint.figures, checkpoint.folder
    before, after = (_interval(figures["held_out_perplexity"][name], ",.2f") for name in ("before", "after"))
    ratio = _interval(figures["held_out_perplexity"]["ratio"], ".3g")
    show(folder)
    show(
        f"  {figures['documents']:,} of {figures['documents_in_corpus']:,} texts with {figures['tokens']:,}"
        f" tokens; {figures['tokens_read']:,} tokens read in {figures['steps']:,} steps"
    )
    show(
        f"  perplexity of {figures['documents_held_out']:,} held-out texts: {before} before,"
        f" {after} after, or {ratio} times as high"
    )
    show(f"next: clinometer audit {folder}")
    show(f"  or: clinometer mitigate {folder} --attribute occupation --method embedding --corpus FILE")


def _interval(figure: dict[str, float], form: str) -> str:
    return f"{figure['estimate']:{form}} [{figure['low']:{form}}, {figure['high']:{form}}]"
