"""`clinometer mitigate`: reduce a lean by training, and measure what that did and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinometer.cli import arguments
from clinometer.cli.terminal import show

if TYPE_CHECKING:
    from clinometer.train import Checkpoint
    from clinometer.workflows.checkpoints import Tuned


def mitigate(
    model: Annotated[
        str,
        typer.Argument(
            help="A causal or masked model: a hub id, a folder or a built-in name.", show_default=False
        ),
    ],
    corpus: Annotated[
        list[Path],
        typer.Option(
            help="Files of texts (.txt, .jsonl; also .xz, .gz); several are one corpus.", metavar="FILE…"
        ),
    ],
    attribute: Annotated[str, typer.Option(help="country, occupation or name.")] = "occupation",
    attribute_file: Annotated[
        Path | None,
        typer.Option(help="An attribute of your own instead (TOML, see the docs).", show_default=False),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="embedding, sentiment, swapped, counterexamples; one or several.",
            show_default="embedding",
            metavar="METHOD…",
        ),
    ] = None,
    strength: Annotated[
        list[str] | None,
        typer.Option(
            help="λ of embedding and sentiment; one checkpoint for each. 0: a control, the same training without"
            " the fairness loss.",
            show_default="10",
            metavar="λ…",
        ),
    ] = None,
    unit: Annotated[
        str, typer.Option(help="What is read as one text: sentence, or window (consecutive sentences).")
    ] = "sentence",
    ordinary: Annotated[
        float, typer.Option(help="The share of each batch that is text of the corpus without a value.")
    ] = 0.0,
    steps: Annotated[int, typer.Option(help="Steps of training.")] = 1000,
    batch: Annotated[int, typer.Option(help="Sentences or windows in a step, on all GPUs together.")] = 32,
    accumulate: Annotated[int, typer.Option(help="Compute a step in this many parts, to need less memory.")] = 1,
    learning_rate: arguments.LearningRateOption = 2.5e-5,
    window: Annotated[
        int,
        typer.Option(
            help="Tokens of a sentence or window, at most.", show_default="128 of a sentence, 512 of a window"
        ),
    ] = 0,
    hidden: Annotated[
        float,
        typer.Option(
            help="Masked models: the share of the asked tokens that become [MASK]; others stay or change."
        ),
    ] = 0.8,
    lora: Annotated[int, typer.Option(help="Train low-rank matrices of this rank; 0: the weights.")] = 0,
    dtype: arguments.DtypeOption = "auto",
    held_out: Annotated[int, typer.Option(help="Documents kept apart to measure perplexity on.")] = 100,
    max_articles: Annotated[int, typer.Option(help="Train on at most this many articles; 0: no limit.")] = 0,
    labels_from: Annotated[
        str, typer.Option(help="sentiment: the classifier that labels sentences for the projection.")
    ] = "builtin:sentiment",
    labelled: Annotated[int, typer.Option(help="sentiment: sentences to label.")] = 10_000,
    threshold: Annotated[float, typer.Option(help="sentiment: how far from 0 a score (−1 to 1) must be.")] = 0.7,
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            help="Classifiers that score the texts of the audit; at least two.",
            show_default=False,
            metavar="MODEL…",
        ),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="The encoder that compares texts in the audit.", show_default=False)
    ] = None,
    label_map: Annotated[
        list[str] | None,
        typer.Option(
            help="What the labels of a scorer mean: MODEL:LABEL_0=negative,LABEL_1=positive.",
            show_default=False,
        ),
    ] = None,
    seed: arguments.SeedOption = 0,
    seeds: arguments.SeedsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where checkpoints and audit go.", show_default="tuned/<model>-<attribute>-mitigated"),
    ] = None,
    audit: arguments.AuditOption = True,
    profile: arguments.ProfileOption = "standard",
    set_: arguments.SettingsOption = None,
    device: arguments.DeviceOption = "auto",
    quiet: arguments.QuietOption = False,
) -> None:
    """Reduce how much a model's text depends on an attribute, and audit it before and after.

    The same command resumes. On several GPUs: accelerate launch --multi_gpu -m clinometer mitigate …
    """
    # heavy imports below: `clinometer --help` must not wait for them
    from clinometer.cli.tuned import checkpoint_audit, numbers, tune_and_print
    from clinometer.cli.tuned import seeds as read_seeds
    from clinometer.train import CorpusSettings, LabellingSettings, MitigationSettings
    from clinometer.workflows import Execution
    from clinometer.workflows.mitigate import MitigateRequest, run_mitigation

    request = MitigateRequest(
        model=model,
        corpus=tuple(corpus),
        attribute="" if attribute_file else attribute,
        attribute_file=attribute_file,
        methods=tuple(arguments.comma_separated(method or ["embedding"])),
        strengths=numbers("--strength", strength, such_as="0 1 10 100 1000") if strength else None,
        settings=MitigationSettings(
            unit=unit,  # type: ignore[arg-type]  # what it may be is checked there
            ordinary=ordinary,
            steps=steps,
            batch=batch,
            accumulate=accumulate,
            learning_rate=learning_rate,
            window=window,
            hidden=hidden,
            lora=lora,
            dtype=dtype,
            seed=seed,
        ),
        seeds=read_seeds(seeds),
        corpus_settings=CorpusSettings(
            held_out=held_out,
            at_most=max_articles,
            labelling=LabellingSettings(scorer=labels_from, sentences=labelled, threshold=threshold, seed=seed),
        ),
        out=out,
        audit=checkpoint_audit(
            profile=profile,
            settings=set_,
            roles={"scorer": scorer, "encoder": [encoder] if encoder else None},
            label_maps=label_map,
        )
        if audit
        else None,
        execution=Execution(device=device),
    )
    tune_and_print(lambda progress: run_mitigation(request, progress=progress), _print, quiet=quiet)


def _print(tuned: Tuned, checkpoint: Checkpoint) -> None:
    figures, tuning = checkpoint.figures, checkpoint.tuning
    show(checkpoint.folder)
    distance = (
        f", distance to the counterfactual {_first_to_last(figures, 'fairness')}"
        if "fairness_of_first_tenth" in figures
        else ""
    )
    show(
        f"  {figures['steps']:,} steps; language-model loss {_first_to_last(figures, 'language')}{distance} (first"
        " tenth to last)"
    )
    if "projection" in figures:
        projection = figures["projection"]
        show(
            f"  sentiment projection right on {projection['accuracy']:.1%} [{projection['low']:.1%},"
            f" {projection['high']:.1%}] of {projection['n']:,} held-out sentences"
        )
    if "quality" in tuning:
        show(f"  {tuning['quality']}")
    show(
        f"  {figures['weights_changed']:,} of {figures['weights']:,} weights changed; SHA-256"
        f" {tuning['base'][:12]}… before, {tuned.weights_of(checkpoint)[:12]}… after"
    )


def _first_to_last(figures: Mapping[str, Any], term: str) -> str:
    return f"{figures[f'{term}_of_first_tenth']:.4f} to {figures[f'{term}_of_last_tenth']:.4f}"
