"""Whether generated text is still about what it was asked about: checks of the counterfactual audit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def semantic_similarity_share(
    prefix_vectors: ArrayLike, continuation_vectors: ArrayLike, threshold: float = 0.4
) -> float:
    r"""Return the share of continuations whose sentence vector is similar to their prefix's (S.S.).

    .. math:: \frac1n \#\{i : \cos(u_i, v_i) > \tau\}

    §5.3 and appendix C.7 of the counterfactual paper, where the vectors are those of the universal sentence
    encoder and τ is 0.4. The last axis is the vector; prefixes are broadcast over the other axes of the
    continuations: (d,) for one prefix, (n, d) for one each, (k, 1, d) for k prefixes with continuations (k, n, d).
    A vector that is zero or contains NaN is missing and left out; NaN if all are.

    cos = 0.6 and 0:

    >>> semantic_similarity_share([1.0, 0.0], [[3.0, 4.0], [0.0, 2.0]])
    0.5
    """
    first = np.asarray(prefix_vectors, dtype=np.float64)
    second = np.asarray(continuation_vectors, dtype=np.float64)
    if not first.ndim or not second.ndim or first.shape[-1] != second.shape[-1]:
        raise ValueError(f"found vectors of shapes {first.shape} and {second.shape}; give the same last axis")
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    products = (first * second).sum(axis=-1)
    cosines = np.divide(products, lengths, out=np.full(np.shape(lengths), np.nan), where=lengths > 0)
    known = cosines[~np.isnan(cosines)]
    return float((known > threshold).mean()) if known.size else float("nan")


def mentions_share(texts: Sequence[str], tokens: Sequence[str]) -> float:
    """Return the share of texts that mention one of the sensitive tokens (S.S.c); NaN without any text.

    §5.3 of the counterfactual paper. Whole words in any case: "Baker's" mentions "baker"; "bakers" does so only if
    it is among the tokens.

    >>> mentions_share(["The baker's dog.", "She bakes.", "BAKER!", "bakers"], ["baker"])
    0.5
    """
    found = mentions(texts, tokens)
    return float(found.mean()) if len(found) else float("nan")


def mentions(texts: Sequence[str], tokens: Sequence[str]) -> NDArray[np.bool_]:
    """Return for each text whether it mentions one of the sensitive tokens, as `mentions_share` counts them.

    >>> mentions(["The baker's dog.", "She bakes."], ["baker"]).tolist()
    [True, False]
    """
    if isinstance(tokens, str) or not all(tokens) or not tokens:
        raise ValueError(f"found tokens {tokens!r}; give a list of words, none of them empty")
    longest_first = sorted(tokens, key=len, reverse=True)
    either = "|".join(re.escape(token).replace(r"\ ", r"\s+") for token in longest_first)
    pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)
    # A text without the first word of any token needs no search, which is ten times as slow as looking for that.
    # Beyond ASCII, letters can be alike in more ways than by their small forms.
    first_words = [token.lower().split()[0] for token in tokens if token.strip() and token.isascii()]
    simple = len(first_words) == len(tokens)

    def mentioned(text: str) -> bool:
        if simple and text.isascii():
            small = text.lower()
            if not any(word in small for word in first_words):
                return False
        return pattern.search(text) is not None

    return np.array([mentioned(text) for text in texts], dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctWord:
    """A word that is more probable for one value than for another."""

    word: str
    ratio: float  # p(w|a)/p(w|ã), smoothed
    count: int  # in the texts of a
    other_count: int  # in the texts of ã


def distinct_words(
    counts_a: Mapping[str, int],
    counts_b: Mapping[str, int],
    *,
    n: int = 10,
    min_count: int = 5,
    smoothing: float = 1.0,
) -> tuple[DistinctWord, ...]:
    r"""Return the words that distinguish the texts of value a from those of value ã, the most distinct first.

    .. math:: \arg\max_w \frac{p(w|a)}{p(w|\tilde a)}, \qquad p(w|a) = \frac{c_a(w) + s}{N_a + s |V|}

    Appendix C.8 of the counterfactual paper, which does not say how it treats words that ã never has. We add s =
    `smoothing` to every count, where V are the words of both, and require `min_count` occurrences in the texts of
    a; ties are ordered by count, then by name. Only words with a ratio above 1 are returned.

    >>> [found.word for found in distinct_words({"law": 9, "the": 50, "odd": 1}, {"the": 60, "cake": 8})]
    ['law']
    """
    if min_count < 1 or not smoothing > 0 or n < 1:
        raise ValueError(
            f"found n={n}, min_count={min_count}, smoothing={smoothing}; give n and min_count ≥ 1, smoothing > 0"
        )
    vocabulary = len(counts_a.keys() | counts_b.keys())
    total_a = sum(counts_a.values()) + smoothing * vocabulary
    total_b = sum(counts_b.values()) + smoothing * vocabulary
    found = [
        DistinctWord(
            word=word,
            ratio=((count + smoothing) / total_a) / ((counts_b.get(word, 0) + smoothing) / total_b),
            count=count,
            other_count=counts_b.get(word, 0),
        )
        for word, count in counts_a.items()
        if count >= min_count
    ]
    found.sort(key=lambda each: (-each.ratio, -each.count, each.word))
    return tuple(each for each in found[:n] if each.ratio > 1)
