"""Turns what stands on the command line of `clinometer audit` into a spec."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from clinometer.errors import SpecError, nearest
from clinometer.types import SPEC_VERSION, AuditSpec, ModelSpec

# who is audited when nobody is named, by what the audits need; chat models are slow, and asked only by name
_DEFAULT_MODELS = {
    "fill": ("builtin:masked",),
    "sample": ("builtin:causal",),
    "classify": ("builtin:sentiment", "builtin:opinion-words"),
}


def default_models(probes: Sequence[str] | None) -> list[str]:
    """Return the built-in models that the audits can ask, each once."""
    from clinometer.probes import PROBES, get_probe

    chosen: dict[str, None] = {}
    for name in probes or sorted(PROBES):
        capabilities = get_probe(name).capabilities
        chosen |= dict.fromkeys(
            model for need, models in _DEFAULT_MODELS.items() if need in capabilities for model in models
        )
    return list(chosen)


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
) -> AuditSpec:
    """Return the spec that the options describe; `shortcuts`: an audit's options with a flag of their own."""
    from clinometer.spec import build
    from clinometer.workflows import probes_for

    everyone = list(dict.fromkeys([*models, *(name for players in roles.values() for name in players or ())]))
    for name in trusted:
        if name not in everyone:
            raise SpecError(f"--trust-remote-code {name}: this model takes no part; known: {', '.join(everyone)}")
    maps = parse_label_maps(label_maps, everyone)

    def described(name: str) -> dict[str, Any]:
        labels = {"label_map": maps[name]} if name in maps else {}
        return {"name": name, "dtype": dtype, "trust_remote_code": name in trusted, **labels}

    audited = [ModelSpec(name=name, trust_remote_code=name in trusted) for name in models]
    values: dict[str, Any] = {
        "version": SPEC_VERSION,
        "probes": probes or probes_for(audited),
        "models": [described(name) for name in models],
        "roles": {role: [described(name) for name in players] for role, players in roles.items() if players},
        "profile": profile,
        "seed": seed,
        "options": parse_settings(settings, shortcuts),
    }
    return build(AuditSpec, values, where="command line")


def parse_settings(
    settings: Sequence[str], shortcuts: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Read probe.option=value, each given by --set, beside options that have a flag of their own."""
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
    """Read MODEL:LABEL=class,LABEL=class; the model may be left out where there is only one."""
    maps: dict[str, dict[str, str]] = {}
    for text in given:
        before, equals, _ = text.partition("=")
        named, colon, _ = before.rpartition(":")
        if not equals:
            raise SpecError(f"--label-map {text!r}: expected MODEL:LABEL_0=negative,LABEL_1=positive")
        if not colon and len(models) > 1:
            raise SpecError(f"--label-map {text!r}: say of which model, one of {', '.join(models)}")
        model = named if colon else models[0]
        if model not in models:
            raise SpecError(f"--label-map {text!r}: {model!r} takes no part; {nearest(model, models)}")
        for pair in text[len(named) + len(colon) :].split(","):
            label, equals, meaning = pair.rpartition("=")
            if not (equals and label and meaning):
                raise SpecError(f"--label-map {text!r}: {pair!r} is not LABEL=class; expected LABEL_0=negative")
            maps.setdefault(model, {})[label.strip()] = meaning.strip()
    return maps


def _toml_value(text: str) -> Any:
    """Read a value as TOML does; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
