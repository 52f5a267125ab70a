"""Source cards: where the entries of a data folder come from, and on what terms they may be used."""

from __future__ import annotations

from dataclasses import dataclass

from clinometer.data.files import packaged
from clinometer.data.tables import read_toml
from clinometer.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a reader must know about packaged data before trusting it."""

    title: str
    source: str
    licence: str
    retrieved: str
    notes: str


def load_card(folder: str) -> Card:
    """Return the card of a packaged data folder.

    >>> load_card("counterexamples").title
    'Occupations, knowledge sentences and gendered words'
    """
    file = packaged(folder, "card.toml")
    fields = ("title", "source", "licence", "retrieved", "notes")
    table = read_toml(file, keys=fields)
    for field in fields:
        if not isinstance(table[field], str) or not table[field].strip():
            raise DataError(f"'{file}': {field} is not a text; expected a sentence")
    return Card(**{field: table[field].strip() for field in fields})
