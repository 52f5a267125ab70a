"""The sentences of the counterexamples audit: the prompt, and the kinds of knowledge put before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clinometer.data.files import packaged
from clinometer.data.tables import check_keys, read_toml

Expected = Literal["larger", "smaller", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of knowledge; its sentence has {target}-style fields."""

    name: str
    knowledge: str
    expected: Expected  # what the paper expects of the margin between the genders

    @property
    def has_background(self) -> bool:
        """Whether the sentence is about another occupation than the target."""
        return "background}" in self.knowledge


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentences:
    """The two forms of the prompt, and the base with the nine kinds of knowledge, in the paper's order."""

    blank: str  # for models that fill a blank
    prefix: str  # for models that continue a text
    kinds: tuple[Kind, ...]


def load_sentences() -> Sentences:
    """Return the sentences of the paper's Table 2.

    >>> load_sentences().kinds[-1].knowledge
    'The dog is in a chair.'
    """
    file = packaged("counterexamples", "knowledge.toml")
    table = read_toml(file, keys=("blank", "prefix", "kinds"))
    for kind in table["kinds"]:
        check_keys(f"'{file}'", kind, keys=("name", "knowledge", "expected"))
    kinds = tuple(Kind(**kind) for kind in table["kinds"])
    return Sentences(blank=table["blank"], prefix=table["prefix"], kinds=kinds)
