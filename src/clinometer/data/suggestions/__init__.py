"""Collecting human stereotypes: ask search engines for suggestions, clean them, let a person judge the rest."""

from clinometer.data.suggestions.asking import ENGINES, Asker, Engine, Manners, get_engine
from clinometer.data.suggestions.cleaning import Candidate, Cleaned, clean
from clinometer.data.suggestions.collection import (
    Collected,
    Entry,
    Journal,
    Question,
    ask_about,
    collect,
    open_journal,
    open_questions,
)
from clinometer.data.suggestions.sheet import judged_stereotypes, read_sheet, write_sheet, write_stereotypes

__all__ = [
    "ENGINES",
    "Asker",
    "Candidate",
    "Cleaned",
    "Collected",
    "Engine",
    "Entry",
    "Journal",
    "Manners",
    "Question",
    "ask_about",
    "clean",
    "collect",
    "get_engine",
    "judged_stereotypes",
    "open_journal",
    "open_questions",
    "read_sheet",
    "write_sheet",
    "write_stereotypes",
]
