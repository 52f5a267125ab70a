"""Collecting human stereotypes: ask search engines for suggestions, clean them, let a person judge the rest."""
