"""What a run compares: the attributes with the values and templates that were chosen, and their prefixes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TypeVar

import numpy as np

from clinometer.data import Attribute, Value, fill_template, load_attribute, read_attribute
from clinometer.errors import DataError
from clinometer.probes.counterfactual.options import Options

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """An attribute as it is asked about; its prefixes are numbered on from `first`, template by template."""

    attribute: Attribute  # with the chosen values and templates
    whole: Attribute  # as it stands in its file
    first: int

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    @property
    def shape(self) -> tuple[int, int]:
        """How many templates and values there are."""
        return len(self.attribute.templates), len(self.attribute.values)

    @property
    def prefixes(self) -> int:
        """How many prefixes there are."""
        templates, values = self.shape
        return templates * values


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """One beginning of a sentence, and what it is about."""

    number: int
    attribute: str
    template: str
    value: Value
    text: str


def chosen_attributes(options: Options, *, seed: int) -> tuple[Chosen, ...]:
    """Return the attributes of a run; where values or templates are limited, the seed draws them."""
    whole = [load_attribute(name) for name in options.attributes]
    if options.attribute_file:
        own = read_attribute(options.attribute_file)
        if own.name.lower() in options.attributes:  # the charts' names do not tell "Country" from "country"
            raise DataError(
                f"'{options.attribute_file}': the name '{own.name}' is taken by an attribute of this audit; "
                "give it another one, or leave that out of `attributes`"
            )
        whole.append(own)
    found: list[Chosen] = []
    for each in whole:
        limited = replace(
            each,
            values=_some_values(each, options.max_values, seed=seed),
            templates=_some(each.templates, options.max_templates, seed=seed, what=f"{each.name} templates"),
        )
        first = found[-1].first + found[-1].prefixes if found else 0
        found.append(Chosen(attribute=limited, whole=each, first=first))
    return tuple(found)


def prefixes_of(chosen: Chosen) -> tuple[Prefix, ...]:
    """Return the prefixes of an attribute, template by template."""
    return tuple(
        Prefix(
            number=chosen.first + at,
            attribute=chosen.name,
            template=template,
            value=value,
            text=fill_template(template, value),
        )
        for at, (template, value) in enumerate(
            (template, value) for template in chosen.attribute.templates for value in chosen.attribute.values
        )
    )


def _some_values(attribute: Attribute, most: int, *, seed: int) -> tuple[Value, ...]:
    """Draw values, from each subgroup in turn, so that every subgroup stays."""
    groups = [
        [value for value in attribute.values if value.subgroup == name] for name in attribute.subgroups or ("",)
    ]
    shuffled = [_shuffled(group, seed=seed, what=f"{attribute.name} values") for group in groups]
    in_turn = [value for value in chain.from_iterable(zip_longest(*shuffled)) if value is not None]
    kept = {value.text for value in in_turn[: max(most, len(groups)) if most else None]}
    return tuple(value for value in attribute.values if value.text in kept)


def _some(items: Sequence[T], most: int, *, seed: int, what: str) -> tuple[T, ...]:
    order = _shuffled(range(len(items)), seed=seed, what=what)[: most or None]
    return tuple(items[at] for at in sorted(order))


def _shuffled(items: Sequence[T], *, seed: int, what: str) -> list[T]:
    """Shuffle by seed and name alone: a smaller number of items is the beginning of a larger one."""
    number = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "big")
    return [items[at] for at in np.random.default_rng([seed, number]).permutation(len(items))]
