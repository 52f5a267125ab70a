"""`clinometer mitigate`: train a model to lean less, and measure what that did and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clinometer.cli.arguments import DeviceOption, QuietOption
from clinometer.errors import InputError

if TYPE_CHECKING:
    from clinometer.data import SensitiveSentences
    from clinometer.train import Checkpoint


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
        typer.Option(help="embedding, sentiment, or both.", show_default="embedding", metavar="METHOD…"),
    ] = None,
    strength: Annotated[
        list[str] | None,
        typer.Option(
            help="λ; one checkpoint for each. 0: a control, the same training without the fairness loss.",
            show_default="10",
            metavar="λ…",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of training.")] = 1000,
    batch: Annotated[int, typer.Option(help="Sentences in a step, on all GPUs together.")] = 32,
    accumulate: Annotated[int, typer.Option(help="Compute a step in so many parts, to need less memory.")] = 1,
    learning_rate: Annotated[float, typer.Option(help="Highest learning rate; it falls to 0.")] = 2.5e-5,
    window: Annotated[int, typer.Option(help="Tokens of a sentence, at most.")] = 128,
    lora: Annotated[int, typer.Option(help="Train low-rank matrices of this rank; 0: the weights.")] = 0,
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"],
        typer.Option(help="The numbers to compute in; bfloat16 is mixed precision. auto: bfloat16 on a GPU."),
    ] = "auto",
    held_out: Annotated[int, typer.Option(help="Documents kept apart to measure perplexity on.")] = 100,
    max_articles: Annotated[int, typer.Option(help="Train on at most so many articles; 0: no limit.")] = 0,
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
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Where checkpoints and audit go.", show_default="tuned/<model>-<attribute>-mitigated"),
    ] = None,
    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Audit the model before and after.")] = True,
    profile: Annotated[str, typer.Option(help="Of the audit: quick, standard or paper.")] = "standard",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="An option of the audit: counterfactual.samples=200.", show_default=False),
    ] = None,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
) -> None:
    """Reduce how a model's text depends on an attribute, and prove it by an audit before and after.

    The same command resumes. On several GPUs: accelerate launch --multi_gpu -m clinometer mitigate …
    """
    strengths = _numbers(strength or ["10"])
    for file in corpus:
        if not file.is_file():
            raise InputError(f"no corpus '{file}'; give the path of a file .txt or .jsonl, also as .xz or .gz")

    # heavy imports below: `clinometer --help` must not wait for them
    from clinometer.cli.arguments import comma_separated
    from clinometer.cli.tuned import audit_spec, audit_together, check_audit, short_name, training, working_in
    from clinometer.data import load_attribute, read_attribute
    from clinometer.front import MITIGATION_LOCK, MITIGATION_PROBES, mitigation_options, write_held_out
    from clinometer.models.load import kind_of
    from clinometer.models.source import resolve
    from clinometer.train import LabellingSettings, MitigationSettings, mitigate_all, read_material, variants
    from clinometer.train.processes import end_processes, is_main_process, join_processes, wait_for_all
    from clinometer.types import ModelSpec

    sensitive = read_attribute(attribute_file) if attribute_file else load_attribute(attribute)
    wanted = variants(
        comma_separated(method or ["embedding"]),
        strengths,
        model=short_name(model),
        attribute=sensitive.name,
        common=MitigationSettings(
            steps=steps,
            batch=batch,
            accumulate=accumulate,
            learning_rate=learning_rate,
            window=window,
            lora=lora,
            seed=seed,
        ),
    )
    labelling = LabellingSettings(scorer=labels_from, sentences=labelled, threshold=threshold, seed=seed)
    kind = kind_of(resolve(ModelSpec(name=model)))
    if kind not in MITIGATION_PROBES:
        raise InputError(
            f"{model!r} is a {kind} model; causal and masked models can be mitigated, such as builtin:causal"
        )
    if kind == "masked" and any(each.settings.method == "sentiment" for each in wanted):
        raise InputError(
            f"the method sentiment is for causal models, and {model!r} is a masked one; give --method embedding"
        )
    place = (
        out if out is not None else Path("tuned") / f"{short_name(model)}-{short_name(sensitive.name)}-mitigated"
    )
    spec = audit_spec(
        model,
        [place / each.name for each in wanted],
        probes=MITIGATION_PROBES[kind],
        profile=profile,
        seed=seed,
        settings=set_ or [],
        options=mitigation_options(kind, sensitive.name, attribute_file, place),
        roles={"scorer": scorer, "encoder": [encoder] if encoder else None},
        label_maps=label_map or [],
    )
    quiet = quiet or not is_main_process()
    join_processes()
    with working_in(place, lock=MITIGATION_LOCK):
        with training(quiet=quiet) as progress:
            progress.note(f"reading {', '.join(file.name for file in corpus)}")
            material = read_material(corpus, sensitive, held_out=held_out, at_most=max_articles, seed=seed)
            progress.note(_told(material.found))
        if is_main_process():
            write_held_out(place, material.held_out_text)
        wait_for_all()
        if audit and is_main_process():
            check_audit(spec, place, device=device)
        with training(quiet=quiet) as progress:
            checkpoints = mitigate_all(
                model,
                material,
                wanted,
                out=place,
                labelling=labelling,
                device=device,
                dtype=dtype,
                progress=progress,
            )
        end_processes()
        if not is_main_process():
            return
        for checkpoint in checkpoints:
            _print(checkpoint)
        if audit:
            audit_together(spec, place, device=device, quiet=quiet)


def _numbers(given: list[str]) -> list[float]:
    from clinometer.cli.arguments import comma_separated

    found = []
    for part in comma_separated(given):
        try:
            found.append(float(part))
        except ValueError:
            raise InputError(f"--strength {part!r} is no number; expected such as 0 1 10 100 1000") from None
    return found


def _told(found: SensitiveSentences) -> str:
    templates = sum(found.with_template.values())
    return (
        f"{len(found.sentences):,} sentences to train on; {templates:,} were left out because a template of the"
        " evaluation stands in them"
    )


def _print(checkpoint: Checkpoint) -> None:
    from clinometer.models.source import weights_checksum

    figures, tuning = checkpoint.figures, checkpoint.tuning
    print(checkpoint.folder)
    print(
        f"  {figures['steps']:,} steps; language-model loss {_first_to_last(figures, 'language')}, distance to the"
        f" counterfactual {_first_to_last(figures, 'fairness')} (first tenth to last)"
    )
    if "projection" in figures:
        projection = figures["projection"]
        print(
            f"  sentiment projection right on {projection['accuracy']:.1%} [{projection['low']:.1%},"
            f" {projection['high']:.1%}] of {projection['n']:,} held-out sentences"
        )
    if "quality" in tuning:
        print(f"  {tuning['quality']}")
    print(
        f"  {figures['weights_changed']:,} of {figures['weights']:,} weights changed; SHA-256"
        f" {tuning['base'][:12]}… before, {weights_checksum(checkpoint.folder)[:12]}… after"
    )


def _first_to_last(figures: Mapping[str, Any], term: str) -> str:
    return f"{figures[f'{term}_of_first_tenth']:.4f} to {figures[f'{term}_of_last_tenth']:.4f}"
