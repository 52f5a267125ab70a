"""`clinometer audit`: ask, record, conclude, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinometer.cli import arguments
from clinometer.cli.outcome import (
    AllowOption,
    FailOnOption,
    JsonOption,
    LimitsOption,
    MarkdownOption,
    Outcome,
    settle,
)
from clinometer.cli.progress import finish_run
from clinometer.errors import SpecError


def audit(
    model: Annotated[
        list[str] | None,
        typer.Argument(
            help="Hub ids, folders or built-in names (see `clinometer models`); NAME=FOLDER calls it NAME in the "
            "report. Default: a built-in model.",
            show_default=False,
        ),
    ] = None,
    named: Annotated[
        list[str] | None,
        typer.Option("--model", help="The same as MODEL; repeatable.", metavar="[NAME=]MODEL", show_default=False),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(help="An audit; repeatable. Default: all that can ask the models.", show_default=False),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="quick, standard or paper. Default: standard.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every random choice.", show_default="0")] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="auto, float32, bfloat16 or float16. auto: bfloat16 on a GPU.", show_default=False),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="probe.option=value, such as counterexamples.backgrounds=3.", show_default=False
        ),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(
            help="sentiment_words: a prompt with [MASK]; repeat to compare several.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(help="sentiment_words: label words, such as great/terrible; repeatable.", show_default=False),
    ] = None,
    reviews: Annotated[
        str | None, typer.Option(help="sentiment_words: a file of labelled reviews.", show_default=False)
    ] = None,
    neutral: Annotated[
        str | None,
        typer.Option(help="sentiment_words: neutral words (MPQA .tff, or CSV word,label).", show_default=False),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="stereotypes, stigma, counterfactual: your own groups of people (CSV name,category and perhaps "
            "plural, singular, verb, subgroup, article).",
            show_default=False,
        ),
    ] = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option(help="counterfactual: a classifier that scores the texts; at least two.", show_default=False),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="counterfactual: the encoder that compares texts.", show_default=False),
    ] = None,
    as_: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            help="How to ask a model that continues text: chat or causal (NAME=chat for one of several); give "
            "both to compare. Default: chat where its tokenizer has a chat template.",
            metavar="[NAME=]chat|causal",
            show_default=False,
        ),
    ] = None,
    label_map: Annotated[
        list[str] | None,
        typer.Option(
            help="What a classifier's labels mean: MODEL:LABEL_0=negative,LABEL_1=positive; repeatable.",
            show_default=False,
        ),
    ] = None,
    trust_remote_code: arguments.TrustOption = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Where openai:NAME is, such as http://127.0.0.1:8080/v1. The key is read from the environment: "
            "CLINOMETER_API_KEY, for OpenAI itself OPENAI_API_KEY.",
            show_default=False,
        ),
    ] = None,
    price: Annotated[
        str | None,
        typer.Option(
            help="What openai:NAME charges for a million tokens: INPUT/OUTPUT, such as 0.15/0.60.",
            show_default=False,
        ),
    ] = None,
    spec: Annotated[
        Path | None, typer.Option(help="A TOML spec instead of the options above.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The run folder, or s3://BUCKET/RUN; it must not exist.",
            show_default="runs/<date>-<model>-<profile>",
        ),
    ] = None,
    device: arguments.DeviceOption = "auto",
    batch_tokens: arguments.BatchTokensOption = 0,
    cache: arguments.CacheOption = None,
    executor: arguments.ExecutorOption = "local",
    ray_address: arguments.RayAddressOption = None,
    workers: arguments.WorkersOption = 0,
    worker_resources: arguments.WorkerResourcesOption = None,
    ray_logs: arguments.RayLogsOption = False,
    concurrency: arguments.ConcurrencyOption = 8,
    max_requests: arguments.MaxRequestsOption = 0,
    max_tokens: arguments.MaxTokensOption = 0,
    max_cost: arguments.MaxCostOption = 0.0,
    accept_missing: arguments.AcceptMissingOption = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print how many requests and tokens each audit needs, and stop; sends and writes nothing.",
        ),
    ] = False,
    quiet: arguments.QuietOption = False,
    json: JsonOption = None,
    markdown: MarkdownOption = None,
    fail_on: FailOnOption = "",
    limits: LimitsOption = None,
    allow_cannot_tell: AllowOption = False,
) -> None:
    """Audit language models and write a report."""
    outcome = Outcome(
        json=json, markdown=markdown, fail_on=fail_on, allow_cannot_tell=allow_cannot_tell, limits_file=limits
    )
    described = {
        "MODEL": model, "--model": named, "--probe": probe, "--profile": profile, "--seed": seed,
        "--dtype": dtype, "--set": set_,
        "--template": template, "--labels": labels, "--reviews": reviews, "--neutral": neutral,
        "--groups": groups,
        "--scorer": scorer, "--encoder": encoder, "--as": as_, "--label-map": label_map,
        "--base-url": base_url, "--price": price,
    }  # fmt: skip
    # the answers of a model that only its owner can call belong to the spec that asked for them
    written = [name for name in model or [] if spec is not None and "answers:" in name]
    both = [name for name, value in described.items() if value not in (None, [], written)]
    if spec is not None and both:
        raise SpecError(f"--spec replaces the other options; leave out {', '.join(both)}, or put it into {spec}")

    # imported here, so that `clinometer --help` does not wait for them
    from clinometer.cli.spec_options import require_trust, spec_from_options, with_answers
    from clinometer.engine import Limits
    from clinometer.spec import read_spec
    from clinometer.workflows import AuditRequest, Execution, run_audit
    from clinometer.workflows.places import with_places
    from clinometer.workflows.specs import default_models, new_run_folder, with_groups

    if spec is not None:
        # the spec of a run names folders by their labels; places.json beside it says where they are
        wanted = with_places(with_answers(read_spec(spec), written), spec.parent)
        require_trust(wanted, trust_remote_code or [])
    else:
        wanted = spec_from_options(
            models=[*(model or []), *(named or [])] or default_models(probe),
            probes=probe,
            profile=profile or "standard",
            seed=seed or 0,
            dtype=dtype or "auto",
            settings=set_ or [],
            shortcuts={
                "sentiment_words": {
                    "templates": template or None,
                    "labels": labels or None,
                    "reviews_file": reviews or None,
                    "neutral_file": neutral or None,
                }
            },
            roles={"scorer": scorer, "encoder": [encoder] if encoder else None},
            label_maps=label_map or [],
            trusted=trust_remote_code or [],
            endpoint={"base_url": base_url, "price": price},
            ways=as_ or [],
        )
        wanted = with_groups(wanted, groups) if groups else wanted

    place = out if out is not None else new_run_folder(wanted)
    budget = Limits(requests=max_requests, tokens=max_tokens, cost=max_cost)
    execution = Execution(
        device=device,
        batch_tokens=batch_tokens,
        cache=cache,
        executor=executor,
        cluster=arguments.cluster_of(executor, ray_address, workers, worker_resources, ray_logs),
        concurrency=concurrency,
        limits=budget,
        accept_missing=accept_missing,
    )
    request = AuditRequest(spec=wanted, folder=place, execution=execution, cohort=spec is not None)
    if dry_run:
        from clinometer.cli.estimate import print_estimate
        from clinometer.engine.executor import check_executor

        check_executor(executor)
        print_estimate(request)
        return
    run = finish_run(place, lambda progress: run_audit(request, progress=progress), quiet=quiet)
    settle(run, outcome)
