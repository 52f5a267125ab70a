"""Collecting human stereotypes: ask search engines for suggestions, clean them, let a person judge the rest."""

from clinometer.data.suggestions.asking import Asker, Manners
from clinometer.data.suggestions.cleaning import Candidate, Cleaned, clean
from clinometer.data.suggestions.collection import Collected, collect, open_questions
from clinometer.data.suggestions.engines import ENGINES, Engine, get_engine
from clinometer.data.suggestions.journal import Entry, Journal, open_journal
from clinometer.data.suggestions.questions import Question, ask_about
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
