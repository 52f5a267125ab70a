"""Letters for many things compared in pairs: two share one where they cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from string import ascii_lowercase

MOST_SETS = 12  # of a letter display: more cannot be read, and then only neighbours share letters


def letters_of(apart: Sequence[Sequence[bool]]) -> list[tuple[str, ...]]:
    """Return letters so that two share one only where they cannot be told apart; rows come in order.

    Up to `MOST_SETS` letters they share one wherever that is so. Where more were needed, runs of neighbours share
    one: some that cannot be told apart then have none in common.

    Piepho, An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons (2004): begin with one set
    of all; split each set that holds two that are apart; drop sets that are parts of others.

    >>> letters_of([[False, False, True], [False, False, False], [True, False, False]])
    [('a',), ('a', 'b'), ('b',)]
    """
    sets = [frozenset(range(len(apart)))]
    for i, j in combinations(range(len(apart)), 2):
        if not apart[i][j]:
            continue
        split = []
        for each in sets:
            split += [each - {i}, each - {j}] if {i, j} <= each else [each]
        unique = sorted(set(split), key=len, reverse=True)
        sets = []
        for each in unique:
            if not any(each < kept for kept in sets):
                sets.append(each)
        if len(sets) > MOST_SETS:
            sets = _neighbours(apart)
            break
    ordered = sorted(sets, key=sorted)
    named = {each: _letter(number) for number, each in enumerate(ordered)}
    return [tuple(named[each] for each in ordered if i in each) for i in range(len(apart))]


def _neighbours(apart: Sequence[Sequence[bool]]) -> list[frozenset[int]]:
    """Return the longest runs of neighbours of which no two are apart: coarser than letters, but few."""
    runs: list[frozenset[int]] = []
    for start in range(len(apart)):
        end = start + 1
        while end < len(apart) and not any(apart[end][i] for i in range(start, end)):
            end += 1
        run = frozenset(range(start, end))
        if not any(run <= known for known in runs):
            runs.append(run)
    return runs


def _letter(number: int) -> str:
    """Return a, b, …, z, aa, ab, …

    >>> _letter(0), _letter(25), _letter(26)
    ('a', 'z', 'aa')
    """
    return (_letter(number // 26 - 1) if number >= 26 else "") + ascii_lowercase[number % 26]
