"""Which of the words that a model offers count as attributes."""

from __future__ import annotations

import polars as pl

PIECE = "##"  # how the name of a token begins that is a piece of a word, in every family
_WORD = r"^\p{L}+(?:['’\-]\p{L}+)*$"


def is_piece(word: pl.Expr) -> pl.Expr:
    """Tell whether a token is only a piece of a word."""
    return word.str.starts_with(PIECE)


def is_word(word: pl.Expr) -> pl.Expr:
    """Tell whether a token is a word: two letters or more, perhaps with an apostrophe or a hyphen inside.

    >>> pl.select(is_word(pl.Series(["rich", "d'accord", "##ly", "2", "!", "s", "Ärzte"])))[""].to_list()
    [True, True, False, False, False, False, True]
    """
    return ~is_piece(word) & word.str.contains(_WORD) & (word.str.len_chars() > 1)


def counts_as_attribute(word: pl.Expr, *, words_only: bool) -> pl.Expr:
    """Tell whether a token is kept by the option `filter`."""
    return is_word(word) if words_only else pl.lit(True)
