"""Emotions in the attributes of a group (stereotypes audit)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# the order of the paper's emotion vectors (Section 5)
EMOTIONS = (
    "fear",
    "joy",
    "sadness",
    "trust",
    "surprise",
    "anticipation",
    "disgust",
    "anger",
    "negative",
    "positive",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmotionProfile:
    """Shares of the covered words that have each emotion, and how many words are covered."""

    vector: NDArray[np.float64]  # (emotions,)
    covered: int


def emotion_profile(
    words: Iterable[str], lexicon: Mapping[str, Collection[str]], *, emotions: Sequence[str] = EMOTIONS
) -> EmotionProfile:
    r"""Return which share of a group's attributes has each emotion.

    .. math:: s_{emo}(TGT) = \frac{1}{|W_{TGT}|} \sum_{w \in W_{TGT}} \mathrm{NRC}_{emo}(w)

    Equation 4 of the stereotypes paper (Section 5): W is the set of distinct attributes, in lower case, that the
    lexicon covers. `lexicon` maps every covered word (in lower case), also one without an emotion, to its
    emotions. NaN where no word is covered.

    >>> lexicon = {"selfish": {"anger", "disgust", "negative"}, "vocal": set()}
    >>> profile = emotion_profile(["Selfish", "vocal", "selfish", "blorp"], lexicon, emotions=("anger", "joy"))
    >>> profile.vector.tolist(), profile.covered
    ([0.5, 0.0], 2)
    """
    covered = [lexicon[word] for word in dict.fromkeys(word.strip().lower() for word in words) if word in lexicon]
    if not covered:
        return EmotionProfile(vector=np.full(len(emotions), np.nan), covered=0)
    has = np.array([[emotion in labels for emotion in emotions] for labels in covered], dtype=np.float64)
    return EmotionProfile(vector=has.mean(axis=0), covered=len(covered))
