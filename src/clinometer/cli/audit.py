"""`clinometer audit`: ask, record, conclude, report."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinometer.cli.arguments import BatchTokensOption, CacheOption, DeviceOption, QuietOption
from clinometer.errors import SpecError
from clinometer.types import SPEC_VERSION

if TYPE_CHECKING:
    from clinometer.types import AuditSpec

# who is audited when nobody is named, by what the audits need
DEFAULT_MODELS = {"fill": "builtin:masked", "sample": "builtin:causal"}


def audit(
    model: Annotated[
        list[str] | None,
        typer.Argument(
            help="Hub ids, folders or built-in names (see `clinometer models`). Default: a built-in model.",
            show_default=False,
        ),
    ] = None,
    probe: Annotated[
        list[str] | None, typer.Option(help="An audit to run; repeatable. Default: all.", show_default=False)
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
    trust_remote_code: Annotated[
        list[str] | None,
        typer.Option(help="Run the code that this model brings; name the model; repeatable.", show_default=False),
    ] = None,
    spec: Annotated[
        Path | None, typer.Option(help="A TOML spec instead of the options above.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run folder; it must not exist.", show_default="runs/<date>-<model>-<profile>"),
    ] = None,
    device: DeviceOption = "auto",
    batch_tokens: BatchTokensOption = 0,
    cache: CacheOption = None,
    quiet: QuietOption = False,
) -> None:
    """Audit language models and write a report."""
    described = {
        "MODEL": model, "--probe": probe, "--profile": profile, "--seed": seed, "--dtype": dtype, "--set": set_,
        "--trust-remote-code": trust_remote_code,
    }  # fmt: skip
    both = [name for name, value in described.items() if value not in (None, [])]
    if spec is not None and both:
        raise SpecError(f"--spec says it all; leave out {', '.join(both)} or put it into {spec}")

    # heavy imports below: `clinometer --help` must not wait for them
    from clinometer.spec import read_spec

    if spec is not None:
        wanted = read_spec(spec)
    else:
        wanted = _spec_from_options(
            models=model or _default_models(probe),
            probes=probe,
            profile=profile or "standard",
            seed=seed or 0,
            dtype=dtype or "auto",
            settings=set_ or [],
            trusted=trust_remote_code or [],
        )

    from clinometer.auditing import Execution, start_audit
    from clinometer.cli.finish import finish_run
    from clinometer.front import run_name

    place = out if out is not None else Path("runs") / run_name(wanted)
    execution = Execution(device=device, batch_tokens=batch_tokens, cache=cache)
    finish_run(
        place, lambda progress: start_audit(wanted, place, execution=execution, progress=progress), quiet=quiet
    )


def _default_models(names: list[str] | None) -> list[str]:
    """Return the built-in models that the audits can ask, each once."""
    from clinometer.probes import PROBES, get_probe

    chosen: dict[str, None] = {}
    for name in names or sorted(PROBES):
        capabilities = get_probe(name).capabilities
        chosen |= dict.fromkeys(model for need, model in DEFAULT_MODELS.items() if need in capabilities)
    return list(chosen)


def _spec_from_options(
    *,
    models: list[str],
    probes: list[str] | None,
    profile: str,
    seed: int,
    dtype: str,
    settings: list[str],
    trusted: list[str],
) -> AuditSpec:
    from clinometer.probes import PROBES
    from clinometer.spec import build
    from clinometer.types import AuditSpec

    for name in trusted:
        if name not in models:
            raise SpecError(f"--trust-remote-code {name}: this model is not audited; audited: {', '.join(models)}")
    values: dict[str, Any] = {
        "version": SPEC_VERSION,
        "probes": probes or sorted(PROBES),
        "models": [{"name": name, "dtype": dtype, "trust_remote_code": name in trusted} for name in models],
        "profile": profile,
        "seed": seed,
        "options": {},
    }
    for setting in settings:
        target, equals, value = setting.partition("=")
        probe, dot, option = target.partition(".")
        if not (equals and dot and probe and option):
            raise SpecError(
                f"--set {setting!r}: expected probe.option=value, such as counterexamples.backgrounds=3"
            )
        values["options"].setdefault(probe, {})[option] = _toml_value(value)
    return build(AuditSpec, values, where="command line")


def _toml_value(text: str) -> Any:
    """Read a value as TOML does; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
