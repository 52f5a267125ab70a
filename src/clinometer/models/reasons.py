"""Puts what another library says was wrong into the sentence that we say."""

from __future__ import annotations

LONGEST = 200  # characters: some libraries list all that they know


def reason(error: BaseException) -> str:
    """Return what went wrong as one short line, with the kind of error where its text alone says little.

    >>> reason(ValueError("the sizes\\n   differ"))
    'the sizes differ'
    >>> reason(KeyError("gelo"))
    "KeyError: 'gelo'"
    """
    text = " ".join(str(error).split())
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} …"
    if isinstance(error, LookupError) or not text:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text
