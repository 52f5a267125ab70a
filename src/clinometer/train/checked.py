"""The rows that trainings on one material read: chosen, and searched for evaluation templates, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from clinometer.errors import DataError
from clinometer.models.local.text import Tokens
from clinometer.train.base import BaseModel
from clinometer.train.material import Material
from clinometer.train.pairs import Pairs
from clinometer.train.settings import WITH_STRENGTH, MitigationMethod, MitigationSettings
from clinometer.train.units import (
    Unit,
    Units,
    ordinary_sentences,
    ordinary_windows,
    sensitive_windows,
    sentence_units,
    statement_units,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Rows without a template of the evaluation, and how many texts were left out, as a card tells it."""

    pairs: Pairs
    left_out: Mapping[str, int]


@final
class CheckedPairs:
    """What trainings on one material read; what a strength decides nothing about is shared by all of them."""

    def __init__(self, material: Material) -> None:
        self._material = material
        self._made: dict[tuple[str, str, MitigationSettings], Checked] = {}
        self._windows: dict[tuple[str, int], Units] = {}
        self._ordinary: dict[tuple[str, MitigationSettings], tuple[Unit, ...]] = {}

    def of(self, base: BaseModel, settings: MitigationSettings) -> Checked:
        """Return the rows; DataError where a template of the evaluation appears in what would be trained on."""
        method: MitigationMethod = "control" if settings.method in WITH_STRENGTH else settings.method
        key = (base.kind, base.info.tokenizer, replace(settings, method=method, strength=0.0))
        if key not in self._made:
            units, left_out = self._chosen(base, settings)
            shared = (key[1], replace(key[2], method="control"))
            if shared not in self._ordinary:
                self._ordinary[shared] = self._some_ordinary(base, settings)
            pairs = Pairs(base, units, self._material.attribute, settings, ordinary=self._ordinary[shared])
            self._check(pairs, rows=settings.steps * settings.batch)
            self._made[key] = Checked(pairs=pairs, left_out=left_out)
        return self._made[key]

    def _chosen(self, base: BaseModel, settings: MitigationSettings) -> tuple[tuple[Unit, ...], dict[str, int]]:
        found = self._material.found
        if settings.method == "counterexamples":
            return statement_units(), {}
        if settings.unit == "sentence":
            return sentence_units(found.sentences), {
                "left_out_with_a_template": sum(found.with_template.values()),
                "left_out_too_short_too_long_repeated": found.too_short + found.too_long + found.repeated,
            }
        key = (base.info.tokenizer, self._size(base, settings))
        if key not in self._windows:  # the seed decides nothing about them
            self._windows[key] = sensitive_windows(self._material, Tokens(base.tokenizer), size=key[1])
        windows = self._windows[key]
        return windows.kept, {
            "left_out_with_a_template": windows.with_template,
            "left_out_repeated": windows.repeated,
        }

    def _some_ordinary(self, base: BaseModel, settings: MitigationSettings) -> tuple[Unit, ...]:
        enough = settings.steps * settings.ordinary_rows
        if not enough:
            return ()
        if settings.unit == "sentence":
            return ordinary_sentences(self._material, at_most=enough, seed=settings.seed)
        size = self._size(base, settings)
        return ordinary_windows(
            self._material, Tokens(base.tokenizer), size=size, at_most=enough, seed=settings.seed
        )

    def _size(self, base: BaseModel, settings: MitigationSettings) -> int:
        tokens = Tokens(base.tokenizer)
        return min(settings.tokens, base.info.window or settings.tokens) - len(tokens.start) - len(tokens.end)

    def _check(self, pairs: Pairs, *, rows: int) -> None:
        template_in = self._material.template_finder()
        for place in range(rows):
            for text in pairs.texts_at(place):
                if template := template_in(text):
                    raise DataError(
                        f"the evaluation template {template!r} appears in the training text {text[:200]!r}; take"
                        " that sentence out of the corpus"
                    )
