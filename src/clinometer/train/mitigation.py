"""The counterfactual paper's third step: training that draws a sentence and its counterfactual together."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from clinometer.errors import DataError, InputError, ModelError
from clinometer.train.base import BaseModel, load_base
from clinometer.train.checkpoints import Checkpoint, finish, finished
from clinometer.train.last_layers import layers_of
from clinometer.train.loop import History, Recipe, train
from clinometer.train.lora import add_adapter, merge_adapter
from clinometer.train.masked_quality import MaskedTexts
from clinometer.train.material import Material
from clinometer.train.pairs import Pairs, collate
from clinometer.train.perplexity import perplexity_figures
from clinometer.train.processes import join_processes
from clinometer.train.progress import Quiet, TrainingProgress
from clinometer.train.regularised import TERMS, regularised_terms
from clinometer.train.seeds import rng_at
from clinometer.train.sentiment_step import SentimentProjection
from clinometer.train.settings import MitigationSettings
from clinometer.train.work import WorkFolder
from clinometer.types import Dtype

_LIMITS = (
    "Measured, not cured: what this model writes about the attribute was drawn together on one corpus and for the"
    " values listed in the attribute. Other words, other attributes and other prompts may lean as before. Audit it"
    " before use."
)


def mitigate(
    model: str,
    material: Material,
    *,
    out: str | os.PathLike[str],
    settings: MitigationSettings | None = None,
    projection: SentimentProjection | None = None,
    device: str = "auto",
    dtype: Dtype = "auto",
    save_seconds: float = 60.0,
    progress: TrainingProgress | None = None,
) -> Checkpoint:
    """Train a model further with the fairness loss and save it as a model folder of its own.

    `model` is a causal or a masked model: a hub id, a folder or a built-in name. The method "sentiment" needs the
    `projection` that `fit_projection` makes of the same model. Where `out` is such a checkpoint already, it is
    returned as it is; where its training was interrupted, it goes on, on a CPU to the same bytes. A training that
    changes no weight is a ModelError.
    """
    settings, progress = settings or MitigationSettings(), progress or Quiet()
    place = Path(out)
    join_processes()
    base = load_base(model, device=device, dtype=dtype, kinds=("causal", "masked"))
    check_method(base, settings, projection)
    described: dict[str, str | int | float | bool] = {
        "base": base.info.weights,
        "attribute": material.attribute.name,
        "texts": material.digest,
        "dtype": str(base.compute).removeprefix("torch."),
        "projection": projection.digest if projection else "",
        **dataclasses.asdict(settings),
    }
    if there := finished(place, described):
        return there
    before = {name: weight.detach().cpu().clone() for name, weight in base.model.named_parameters()}
    work = WorkFolder(place)
    with work.hold(described):
        pairs = Pairs(
            base,
            material.found.sentences,
            material.attribute,
            batch=settings.batch,
            window=settings.window,
            seed=settings.seed,
            masked_share=settings.masked_share,
        )
        rows = settings.steps * settings.batch
        _check_templates(pairs, material, rows)
        adapter = add_adapter(base.model, rank=settings.lora, seed=settings.seed) if settings.lora else None
        recipe = Recipe(
            label=f"training {place.name}",
            rows=rows,
            row_at=pairs.row_at,
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
        changed, weights = _changed(before, base.model)
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
                "amount": f"{settings.strength:g}",
                "seed": str(settings.seed),
                "changed": str(changed),
                "weights": str(weights),
                **_quality(filling),
            },
            settings=described,
            figures={
                **_figures(material, pairs, rows),
                **_term_figures(history),
                "weights_changed": changed,
                "weights": weights,
                **({"projection": dict(projection.figures)} if projection else {}),
                **({"perplexity_of_masked_tokens": filling} if filling else {}),
            },
            limits=_LIMITS,
        )


def check_method(base: BaseModel, settings: MitigationSettings, projection: SentimentProjection | None) -> None:
    """Refuse what cannot be trained, before anything long begins."""
    layers_of(base.model)
    if settings.method == "sentiment":
        if base.kind == "masked":
            raise InputError(
                "the method sentiment is for causal models, whose vector at a word stands for what they write"
                " next; a masked model can be mitigated with --method embedding"
            )
        if projection is None:
            raise InputError("the method sentiment needs a projection; make one with fit_projection()")
        if projection.base != base.info.weights:
            raise InputError("the projection was made of another model; make one of this model")
    elif projection is not None:
        raise InputError(f"the method {settings.method} takes no projection; leave it out")


def _check_templates(pairs: Pairs, material: Material, rows: int) -> None:
    """See that no template of the evaluation stands in what is really trained on."""
    template_in = material.template_finder()
    for place in range(rows):
        for text in pairs.texts_at(place):
            if template := template_in(text):
                raise DataError(
                    f"the evaluation template {template!r} stands in the training text {text[:200]!r}; take that"
                    " sentence out of the corpus"
                )


def _changed(before: Mapping[str, Tensor], model: Any) -> tuple[int, int]:
    """Return how many single weights differ from what they were, and how many there are."""
    pairs = [(before[name], weight.detach().cpu()) for name, weight in model.named_parameters()]
    changed = sum(int((was != now).sum()) for was, now in pairs)
    return changed, sum(now.numel() for _, now in pairs)


def _title(base: BaseModel, material: Material, settings: MitigationSettings) -> str:
    if settings.is_control:
        return (
            f"{base.name} after continued training on sentences about {material.attribute.name} (control, λ = 0)"
        )
    return (
        f"{base.name}, {material.attribute.name} mitigated by {settings.method} regularisation,"
        f" λ = {settings.strength:g}"
    )


def _figures(material: Material, pairs: Pairs, rows: int) -> dict[str, Any]:
    found = material.found
    return {
        "documents": found.documents,
        "documents_held_out": len(material.split.held_out),
        "sentences": len(pairs),
        "sentences_read": rows,
        "left_out_with_a_template": sum(found.with_template.values()),
        "left_out_too_short_too_long_repeated": found.too_short + found.too_long + found.repeated,
    }


def _quality(filling: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    """Return what a card tells the audits of how well a masked model still fills in text."""
    if not filling:
        return {}
    return {"quality": _in_words(filling), "quality_ratio": f"{filling['ratio']['low']:.4f}"}


def _in_words(filling: Mapping[str, Mapping[str, float]]) -> str:
    """Tell what became of the perplexity of masked tokens, for a reader of the audits.

    >>> ratio = {"estimate": 1.02, "low": 0.99, "high": 1.05}
    >>> _in_words({"before": {"estimate": 9.5}, "after": {"estimate": 9.69}, "ratio": ratio})
    'perplexity of masked tokens of held-out text 9.50 before, 9.69 after: +2.0 % (95 % interval −1.0 to +5.0 %)'
    """
    before, after = (filling[when]["estimate"] for when in ("before", "after"))
    ratio = filling["ratio"]
    change, low, high = (
        f"{(ratio[part] - 1) * 100:+.1f}".replace("-", "−") for part in ("estimate", "low", "high")
    )
    return (
        f"perplexity of masked tokens of held-out text {before:.2f} before, {after:.2f} after: {change} %"
        f" (95 % interval {low} to {high} %)"
    )


def _term_figures(history: History) -> dict[str, float]:
    terms = np.array(history.terms)
    tenth = max(1, len(terms) // 10)
    return {
        "steps": len(terms),
        **{
            f"{name}_of_{part}_tenth": float(some[:, index].mean())
            for index, name in enumerate(TERMS)
            for part, some in (("first", terms[:tenth]), ("last", terms[-tenth:]))
        },
    }
