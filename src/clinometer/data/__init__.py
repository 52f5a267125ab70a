"""Word lists, occupations and templates with a source card each, and strict readers for the user's own files."""

from clinometer.data.card import Card, load_card
from clinometer.data.files import packaged, read_text
from clinometer.data.knowledge import Kind, Sentences, load_sentences, read_sentences
from clinometer.data.occupations import Gender, Occupation, load_occupations, read_occupations
from clinometer.data.tables import CsvRow, check_keys, read_csv, read_toml
from clinometer.data.verbalizer import Verbalizer, load_verbalizer, read_verbalizer

__all__ = [
    "Card",
    "CsvRow",
    "Gender",
    "Kind",
    "Occupation",
    "Sentences",
    "Verbalizer",
    "check_keys",
    "load_card",
    "load_occupations",
    "load_sentences",
    "load_verbalizer",
    "packaged",
    "read_csv",
    "read_occupations",
    "read_sentences",
    "read_text",
    "read_toml",
    "read_verbalizer",
]
