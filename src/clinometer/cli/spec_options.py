"""Turns the options of a command into the spec of an audit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from clinometer.errors import SpecError, nearest
from clinometer.limits import parse_toml
from clinometer.models.endpoint.address import trust
from clinometer.spec import with_folders
from clinometer.types import AskedAs, AuditSpec, Dtype, ModelSpec

ADDRESSED = ("openai:",)  # how the names of models behind an address begin


def spec_from_options(
    *,
    models: Sequence[str],
    probes: Sequence[str] | None,
    profile: str,
    seed: int,
    dtype: str,
    settings: Sequence[str],
    shortcuts: Mapping[str, Mapping[str, Any]],
    roles: Mapping[str, Sequence[str] | None],
    label_maps: Sequence[str],
    trusted: Sequence[str],
    endpoint: Mapping[str, str | None] | None = None,
    ways: Sequence[str] = (),
) -> AuditSpec:
    """Return the spec that the options describe; `shortcuts` are options of audits that have their own flag.

    `endpoint` has what is said of models behind an address: their base_url and price. `ways` say how models are
    asked: "chat", or NAME=chat for one of several.
    """
    from clinometer.workflows.specs import asked_as, describe_audit

    given = list(dict.fromkeys([*models, *(name for players in roles.values() for name in players or ())]))
    aliases = dict(map(parse_alias, given))  # as given -> alias, name
    everyone = [alias or name for alias, name in aliases.values()]
    for name in trusted:
        if name not in everyone:
            raise SpecError(f"--trust-remote-code {name}: not a model of this audit; {nearest(name, everyone)}")
    maps = parse_label_maps(label_maps, everyone)
    addressed = [name for _, name in aliases.values() if name.startswith(ADDRESSED)]
    endpoint = endpoint or {}
    if any(endpoint.values()) and not addressed:
        raise SpecError("--base-url and --price are for models behind an address; name one, such as openai:NAME")
    base_url, price = endpoint.get("base_url") or "", parse_price(endpoint.get("price") or "")
    if base_url:  # before it is written anywhere: it might carry a key
        base_url = trust(base_url).url

    def described(text: str) -> ModelSpec:
        alias, name = aliases[text]
        return ModelSpec(
            name=name,
            dtype=cast(Dtype, dtype),  # checked with the rest of the spec
            trust_remote_code=(alias or name) in trusted,
            label_map=maps.get(alias or name, {}),
            alias=alias,
            base_url=base_url if name in addressed else "",
            price=price if name in addressed else {},
        )

    described_audit = describe_audit(
        asked_as([described(name) for name in models], ways),
        probes=probes or None,
        profile=profile,
        seed=seed,
        options=parse_settings(settings, shortcuts),
        roles={role: [described(name) for name in players] for role, players in roles.items() if players},
        where="command line",
    )
    return described_audit.spec


def require_trust(spec: AuditSpec, trusted: Sequence[str]) -> None:
    """Raise SpecError for a model of a spec file whose own code would run, unless the command line names it, too.

    A spec may come from anybody; who may run code here is said by whoever runs the command.
    """
    for model in (*spec.models, *(model for players in spec.roles.values() for model in players)):
        if model.trust_remote_code and not {model.name, model.alias} & set(trusted):
            name = model.alias or model.name
            raise SpecError(
                f"the spec wants to run code that comes with {name}: read it, and if you trust it, say so "
                f"yourself with --trust-remote-code {name}"
            )


def parse_alias(given: str) -> tuple[str, tuple[str, str]]:
    """Read NAME=MODEL, a model with the name that it has in the run; a folder may have an equals sign in its name.

    >>> parse_alias("mine=models/a"), parse_alias("gpt2")
    (('mine=models/a', ('mine', 'models/a')), ('gpt2', ('', 'gpt2')))
    """
    alias, equals, name = given.partition("=")
    if not equals or Path(given).exists():
        return given, ("", given)
    if not alias.strip() or not name or not alias.isprintable() or len(alias) > 60:
        raise SpecError(f"{given!r}: expected NAME=MODEL, with a name of 1 to 60 printable characters")
    return given, (alias.strip(), name)


def with_answers(spec: AuditSpec, written: Sequence[str]) -> AuditSpec:
    """Return the spec with files of answers in place of its models, asked in the way that the spec says."""
    if not written:
        return spec
    kind: AskedAs = next((model.kind for model in spec.models), "")
    named = [parse_alias(each)[1] for each in written]
    models = tuple(ModelSpec(name=name, alias=alias, kind=kind) for alias, name in named)
    return with_folders(replace(spec, models=models), base=Path.cwd())


def parse_price(text: str) -> dict[str, float]:
    """Read INPUT/OUTPUT, the prices of a million tokens.

    >>> parse_price("0.15/0.60")
    {'input': 0.15, 'output': 0.6}
    """
    if not text:
        return {}
    given, slash, made = text.partition("/")
    try:
        prices = {"input": float(given), "output": float(made)}
    except ValueError:
        prices = {}
    if not slash or not all(0 <= value < math.inf for value in prices.values()) or not prices:
        raise SpecError(f"--price {text!r}: expected INPUT/OUTPUT for a million tokens, such as 0.15/0.60")
    return prices


def parse_settings(
    settings: Sequence[str], shortcuts: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Read probe.option=value, as --set gives it, and add the options that have their own flag."""
    options: dict[str, dict[str, Any]] = {}
    for setting in settings:
        target, equals, value = setting.partition("=")
        probe, dot, option = target.partition(".")
        if not (equals and dot and probe and option):
            raise SpecError(
                f"--set {setting!r}: expected probe.option=value, such as counterexamples.backgrounds=3"
            )
        options.setdefault(probe, {})[option] = _toml_value(value)
    for probe, given in shortcuts.items():
        for option, value in given.items():
            if value is None:
                continue
            if option in options.get(probe, {}):
                raise SpecError(f"{probe}.{option} is given twice, by --set and by its own flag; give it once")
            options.setdefault(probe, {})[option] = value
    return options


def parse_label_maps(given: Sequence[str], models: Sequence[str]) -> dict[str, dict[str, str]]:
    """Read MODEL:LABEL=class,LABEL=class; the model may be left out if there is only one."""
    maps: dict[str, dict[str, str]] = {}
    for text in given:
        before, equals, _ = text.partition("=")
        named, colon, _ = before.rpartition(":")
        if not equals:
            raise SpecError(f"--label-map {text!r}: expected MODEL:LABEL_0=negative,LABEL_1=positive")
        if not colon and len(models) > 1:
            raise SpecError(f"--label-map {text!r}: say which model it is for, one of {', '.join(models)}")
        model = named if colon else models[0]
        if model not in models:
            raise SpecError(
                f"--label-map {text!r}: {model!r} is not a model of this audit; {nearest(model, models)}"
            )
        for pair in text[len(named) + len(colon) :].split(","):
            label, equals, meaning = pair.rpartition("=")
            if not (equals and label and meaning):
                raise SpecError(f"--label-map {text!r}: {pair!r} is not LABEL=class; expected LABEL_0=negative")
            maps.setdefault(model, {})[label.strip()] = meaning.strip()
    return maps


def _toml_value(text: str) -> Any:
    """Read a value as TOML does; a bare word is a string."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
