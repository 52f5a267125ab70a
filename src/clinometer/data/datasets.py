"""Data sets that may not be packaged: what each is, how it is checked, where it can be downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clinometer.data.counting import counted
from clinometer.data.files import Source
from clinometer.errors import DataError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One data set that a user can add. `check` reads the file strictly and says in words what it holds."""

    name: str
    about: str
    terms: str
    page: str  # where a person finds it
    check: Callable[[Source], str]
    url: str = ""  # where it can be downloaded without asking anyone, if anywhere …
    sha256: str = ""  # … and what must arrive


def _stereotypes(source: Source) -> str:
    from clinometer.data.human_stereotypes import read_human_stereotypes

    rows = read_human_stereotypes(source)
    groups, categories = {row.group for row in rows}, {row.category for row in rows}
    return (
        f"{counted(len(rows), 'stereotype')} about {counted(len(groups), 'group')} in "
        f"{counted(len(categories), 'category', 'categories')}"
    )


def _nrc(source: Source) -> str:
    from clinometer.data.emotions import read_emotions

    lexicon = read_emotions(source)
    labelled = sum(bool(emotions) for emotions in lexicon.words.values())
    return f"{counted(len(lexicon.words), 'word')}, {labelled:,} of them with at least one emotion"


def _mpqa(source: Source) -> str:
    from clinometer.data.labelled_words import read_mpqa

    return counted(len(read_mpqa(source)), "neutral word")


def _stigma_ratings(source: Source) -> str:
    from clinometer.data.attitude_words import read_attitudes

    return counted(len(read_attitudes(source)), "rated word")


DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="stereotypes",
            about="human stereotypes from search-engine suggestions, one word each (Choenni et al. 2021)",
            terms="MIT",
            page="https://github.com/RochelleChoenni/stereotypes_in_lms",
            check=_stereotypes,
            url="https://raw.githubusercontent.com/RochelleChoenni/stereotypes_in_lms/"
            "fbaba95f5d3dfa5f6d8ab1dbda8138f5c36b1440/"
            "data_collection/stereo_dataset/single_word_stereo_dataset.csv",
            sha256="b49b7b60c0e894db50b30be7827e57effd1840131b724b745337e41b581538f2",
        ),
        Dataset(
            name="nrc",
            about="NRC emotion lexicon, word level, also the words without an emotion (Mohammad & Turney 2013)",
            terms="research use only; commercial use by licence of the NRC",
            page="http://saifmohammad.com/WebPages/NRC-Emotion-Lexicon.htm",
            check=_nrc,
        ),
        Dataset(
            name="mpqa",
            about="MPQA subjectivity clues (Wilson et al. 2005)",
            terms="research use; see its page",
            page="https://mpqa.cs.pitt.edu/lexicons/subj_lexicon/",
            check=_mpqa,
        ),
        Dataset(
            name="stigma-ratings",
            about="words rated by the attitude that they express, for the stigma audit",
            terms="MIT",
            page="https://github.com/Mooniem/MLMs_bias_stigmas",
            check=_stigma_ratings,
        ),
    )
}


def get_dataset(name: str) -> Dataset:
    """Return the data set of a name; raise DataError with the nearest name for one that is not known."""
    if name not in DATASETS:
        raise DataError(f"no data set {name!r}; {nearest(name, DATASETS)}")
    return DATASETS[name]
