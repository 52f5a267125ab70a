"""The counterfactual paper's third step: training that draws a sentence and its counterfactual together.

One model is usually mitigated several times: every method with every strength, and a control. What those
trainings have in common (the sentiment projection, the pairs of sentences and their check) is made once.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clinometer.data import load_statements
from clinometer.engine.progress import Progress, Silent
from clinometer.errors import InputError, ModelError, nearest
from clinometer.probes.kit.before_after import SHARED_SETTINGS
from clinometer.probes.kit.numbers import signed
from clinometer.train.base import BaseModel, KeptBase, add_adapter, merge_adapter
from clinometer.train.checked import Checked, CheckedPairs
from clinometer.train.checkpoints import Checkpoint, WorkFolder, finish, finished
from clinometer.train.loop import History, Recipe, train
from clinometer.train.material import Material
from clinometer.train.pairs import collate
from clinometer.train.processes import join_processes
from clinometer.train.quality import MaskedTexts, perplexity_figures
from clinometer.train.randomness import rng_at
from clinometer.train.regularisers import TERMS, layers_of, regularised_terms
from clinometer.train.sentiment import SentimentProjection, fit_projection
from clinometer.train.settings import (
    METHODS,
    WITH_STRENGTH,
    LabellingSettings,
    MitigationMethod,
    MitigationSettings,
    card_settings,
)
from clinometer.types import ModelKind

_PROJECTION = "sentiment-projection.safetensors"
_USUAL_STRENGTH = 10.0
_OCCUPATION = "occupation"  # the attribute that counterexamples are known for
_LIMITS = (
    "Measured, not cured: what this model writes about the attribute was drawn together on one corpus and for the"
    " values listed in the attribute. Other words, other attributes and other prompts may lean as before. Audit it"
    " before use."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One of the checkpoints to make: its folder's name and its settings."""

    name: str
    settings: MitigationSettings


def variants(
    methods: Sequence[str],
    strengths: Sequence[float] | None,
    *,
    model: str,
    attribute: str,
    common: MitigationSettings,
) -> tuple[Variant, ...]:
    """Return what is to be trained, by method and strength; strength 0 is one control for all methods.

    Without strengths, methods that have one get 10. A method without a fairness loss is trained once.

    >>> chosen = ["embedding", "swapped"]
    >>> found = variants(chosen, [0, 10], model="gpt2", attribute="name", common=MitigationSettings())
    >>> [each.name for each in found]
    ['gpt2-name-control', 'gpt2-name-embedding-10', 'gpt2-name-swapped']
    """
    usual = [method for method in METHODS if method != "control"]
    chosen: list[MitigationMethod] = []
    for method in methods:
        known: Mapping[str, MitigationMethod] = {name: name for name in usual}
        if method not in known:
            raise InputError(f"no method {method!r}; {nearest(method, usual)}; the control is --strength 0")
        chosen.append(known[method])
    without = [method for method in chosen if method not in WITH_STRENGTH]
    if strengths is None:
        strengths = () if len(without) == len(chosen) and chosen else (_USUAL_STRENGTH,)
    elif any(strengths) and len(without) == len(chosen):
        raise InputError(
            f"--strength {', '.join(f'{each:g}' for each in strengths if each)} weighs a fairness loss, and"
            f" {' and '.join(without)} has none; leave it out, or give --strength 0 for a control"
        )
    elif strengths and not any(strengths) and 0 < len(without) < len(chosen):
        regularised = " and ".join(method for method in chosen if method in WITH_STRENGTH)
        raise InputError(
            f"--strength 0 is the control, and {regularised} would not be trained; give a strength for it, too,"
            f" such as --strength 0 {_USUAL_STRENGTH:g}, or leave {regularised} out"
        )
    if not chosen or not (strengths or without):
        raise InputError("name at least one method and one strength, such as --method embedding --strength 10")
    shown = collections.Counter(f"{strength:g}" for strength in set(strengths))
    if repeated := [strength for strength, count in shown.items() if count > 1]:
        raise InputError(f"several strengths are written {repeated[0]}; give strengths that differ more")
    stem = f"{model}-{re.sub(r'[^A-Za-z0-9._]+', '-', attribute)}"
    control = [Variant(name=f"{stem}-control", settings=replace(common, method="control", strength=0.0))]
    return (
        *(control if 0 in strengths else []),
        *(
            Variant(
                name=f"{stem}-{method}-{strength:g}" if strength else f"{stem}-{method}",
                settings=replace(common, method=method, strength=strength),
            )
            for method in dict.fromkeys(chosen)
            for strength in ([0.0] if method in without else sorted(set(strengths) - {0}))
        ),
    )


def mitigate_all(
    model: str,
    material: Material,
    wanted: Sequence[Variant],
    *,
    out: str | os.PathLike[str],
    labelling: LabellingSettings | None = None,
    device: str = "auto",
    save_seconds: float = 60.0,
    progress: Progress | None = None,
) -> tuple[Checkpoint, ...]:
    """Train every variant into a folder of its own below `out`, or resume where that was interrupted."""
    place, progress = Path(out), progress or Silent()
    base, projection, pairs = KeptBase(model), None, CheckedPairs(material)
    sentiment = [each.settings for each in wanted if each.settings.method == "sentiment"]
    if sentiment:
        projection = fit_projection(
            base,
            material,
            out=place / _PROJECTION,
            settings=labelling,
            device=device,
            dtype=sentiment[0].dtype,
            progress=progress,
        )
    return tuple(
        mitigate(
            base,
            material,
            out=place / each.name,
            settings=each.settings,
            projection=projection if each.settings.method == "sentiment" else None,
            pairs=pairs,
            device=device,
            save_seconds=save_seconds,
            progress=progress,
        )
        for each in wanted
    )


def mitigate(
    model: str | KeptBase,
    material: Material,
    *,
    out: str | os.PathLike[str],
    settings: MitigationSettings | None = None,
    projection: SentimentProjection | None = None,
    pairs: CheckedPairs | None = None,
    device: str = "auto",
    save_seconds: float = 60.0,
    progress: Progress | None = None,
) -> Checkpoint:
    """Train a model further with the fairness loss and save it as a model folder of its own.

    `model` is a causal or a masked model: a hub id, a folder, a built-in name, or a kept one. The method
    "sentiment" needs the `projection` that `fit_projection` makes of the same model. A checkpoint that is there
    already is returned as it is; an interrupted training is resumed, on a CPU to the same bytes. Trainings on the
    same material may share their `pairs`. A training that changes no weight is a ModelError.
    """
    settings, progress = settings or MitigationSettings(), progress or Silent()
    place = Path(out)
    join_processes()
    kept = model if isinstance(model, KeptBase) else KeptBase(model)
    base = kept.copy(device=device, dtype=settings.dtype, kinds=("causal", "masked"))
    _check_method(base, settings, projection, attribute=material.attribute.name)
    described: dict[str, str | int | float | bool] = {
        "base": base.info.weights,
        "attribute": material.attribute.name,
        "texts": material.digest,
        "dtype": base.computes_in,
        "projection": projection.digest if projection else "",
        **card_settings(settings),
        "window": settings.tokens,
    }
    if settings.unit != "sentence" or settings.ordinary:  # which read more than the sentences with a value
        described["documents"] = material.split.training.digest
    if settings.method == "counterexamples":
        texts = "\0".join(each.text for each in load_statements())
        described["statements"] = hashlib.sha256(texts.encode()).hexdigest()
    if there := finished(place, described):
        return there
    rows = settings.steps * settings.batch
    trained_on = (pairs or CheckedPairs(material)).of(base, settings)
    work = WorkFolder(place)
    with work.hold(described):
        adapter = add_adapter(base.model, rank=settings.lora, seed=settings.seed) if settings.lora else None
        recipe = Recipe(
            label=f"training {place.name}",
            rows=rows,
            row_at=trained_on.pairs.row_at,
            collate=functools.partial(collate, pad_id=base.pad_id),
            loss=functools.partial(
                regularised_terms,
                strength=settings.strength,
                project=projection.on(base.device) if projection else None,
                shifted=base.kind == "causal",
                compute=base.compute,
            ),
            batch=settings.batch,
            accumulate=settings.accumulate,
            learning_rate=settings.learning_rate,
            seed=settings.seed,
        )
        # a causal model's perplexity is part of its audit; the audits of masked models have nothing of that kind
        quality = (
            MaskedTexts(base, material.split.held_out, share=settings.masked_share, seed=settings.seed)
            if base.kind == "masked"
            else None
        )
        history = train(
            base,
            recipe,
            work,
            save_seconds=save_seconds,
            progress=progress,
            measure_before=functools.partial(quality.measure, progress, when="before training")
            if quality
            else dict,
        )
        if adapter is not None:
            merge_adapter(adapter)
        filling: dict[str, Any] = {}
        if quality:
            after = quality.measure(progress, when="after training")
            filling = perplexity_figures(history.before, after, rng=rng_at(settings.seed, "quality"))
        changed, weights = kept.changed_in(base)
        if not changed:
            raise ModelError(
                f"the training of {place.name} changed none of {weights:,} weights; give a higher --learning-rate"
                " or more --steps, and another --out"
            )
        return finish(
            work,
            base,
            title=_title(base, material, settings),
            tuning={
                "base": base.info.weights,
                "method": settings.method,
                "attribute": material.attribute.name,
                "data": material.corpus,
                **_strength(settings),
                "seed": str(settings.seed),
                **_unusual(settings),
                "changed": str(changed),
                "weights": str(weights),
                **_quality(filling),
            },
            settings=described,
            figures={
                **_figures(material, trained_on, settings),
                **_term_figures(history, settings),
                "weights_changed": changed,
                "weights": weights,
                **({"projection": dict(projection.figures)} if projection else {}),
                **({"perplexity_of_masked_tokens": filling} if filling else {}),
            },
            limits=_LIMITS,
        )


def check_methods(methods: Sequence[str], *, kind: ModelKind, model: str, attribute: str) -> None:
    """Refuse a method that does not fit a model of this kind, or this attribute; costs nothing."""
    if kind == "masked" and "sentiment" in methods:
        raise InputError(
            f"the method sentiment is for causal models, and {model!r} is a masked one; give --method embedding"
        )
    if "counterexamples" in methods and attribute != _OCCUPATION:
        raise InputError(
            f"the counterexamples are about occupations, and the attribute is '{attribute}'; give --attribute"
            f" {_OCCUPATION}, or --method swapped"
        )


def _check_method(
    base: BaseModel, settings: MitigationSettings, projection: SentimentProjection | None, *, attribute: str
) -> None:
    """Refuse what cannot be trained, before anything long begins."""
    layers_of(base.model)
    check_methods([settings.method], kind=base.kind, model=base.name, attribute=attribute)
    if settings.method == "sentiment":
        if projection is None:
            raise InputError("the method sentiment needs a projection; make one with fit_projection()")
        if projection.base != base.info.weights:
            raise InputError("the projection was made of another model; make one of this model")
    elif projection is not None:
        raise InputError(f"the method {settings.method} takes no projection; leave it out")


def _title(base: BaseModel, material: Material, settings: MitigationSettings) -> str:
    if settings.is_control:
        return (
            f"{base.name} after continued training on {settings.unit}s about {material.attribute.name} (control,"
            " λ = 0)"
        )
    if settings.method == "swapped":
        return f"{base.name}, {material.attribute.name} mitigated by training on text with values swapped"
    if settings.method == "counterexamples":
        return f"{base.name}, {material.attribute.name} mitigated by training on counterexamples"
    return (
        f"{base.name}, {material.attribute.name} mitigated by {settings.method} regularisation,"
        f" λ = {settings.strength:g}"
    )


def _strength(settings: MitigationSettings) -> dict[str, str]:
    """Return λ as a card tells it; a method that has none tells none."""
    has_one = settings.is_control or settings.method in WITH_STRENGTH
    return {"amount": f"{settings.strength:g}"} if has_one else {}


def _unusual(settings: MitigationSettings) -> dict[str, str]:
    """Return what a training was done with and is not usual, so that audits take no two ways for repetitions."""
    usual = MitigationSettings(unit=settings.unit)
    if settings.window == usual.tokens:  # said, but what it is anyway
        settings = replace(settings, window=0)
    chosen = {name: getattr(settings, name) for name in SHARED_SETTINGS}
    return {
        name: str(value)
        for name, value in chosen.items()
        if value != getattr(MitigationSettings() if name == "unit" else usual, name)
    }


def _figures(material: Material, trained_on: Checked, settings: MitigationSettings) -> dict[str, Any]:
    ordinary = settings.steps * settings.ordinary_rows
    read = "statement" if settings.method == "counterexamples" else settings.unit
    return {
        "documents": material.found.documents,
        "documents_held_out": len(material.split.held_out),
        f"{read}s": len(trained_on.pairs),
        f"{read}s_read": settings.steps * settings.batch - ordinary,
        **({"ordinary": trained_on.pairs.ordinary, "ordinary_read": ordinary} if ordinary else {}),
        **trained_on.left_out,
    }


def _quality(filling: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return what a card tells the audits about how well a masked model still fills in text."""
    if not filling:
        return {}
    return {"quality": _in_words(filling), "quality_ratio": f"{filling['ratio']['low']:.4f}"}


def _in_words(filling: Mapping[str, Mapping[str, float]]) -> str:
    """Say how the perplexity of masked tokens changed, for a reader of the audits.

    >>> ratio = {"estimate": 1.02, "low": 0.99, "high": 1.05}
    >>> _in_words({"before": {"estimate": 9.5}, "after": {"estimate": 9.69}, "ratio": ratio})
    'perplexity of masked tokens of held-out text 9.50 before, 9.69 after: +2.0 % (95 % interval −1.0 to +5.0 %)'
    """
    before, after = (filling[when]["estimate"] for when in ("before", "after"))
    ratio = filling["ratio"]
    change, low, high = (signed((ratio[part] - 1) * 100, 1) for part in ("estimate", "low", "high"))
    return (
        f"perplexity of masked tokens of held-out text {before:.2f} before, {after:.2f} after: {change} %"
        f" (95 % interval {low} to {high} %)"
    )


def _term_figures(history: History, settings: MitigationSettings) -> dict[str, float]:
    """Return the terms of the loss at both ends of the training; of the fairness loss, by text that has one."""
    terms = np.array(history.terms) / [1, 1, 1 - settings.ordinary_rows / settings.batch]
    tenth = max(1, len(terms) // 10)
    known = TERMS if settings.method != "counterexamples" else TERMS[:2]  # which compares nothing
    return {
        "steps": len(terms),
        **{
            f"{name}_of_{part}_tenth": float(some[:, index].mean())
            for index, name in enumerate(known)
            for part, some in (("first", terms[:tenth]), ("last", terms[-tenth:]))
        },
    }
