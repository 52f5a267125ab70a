from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers.utils import logging

from tests.models.tiny import tiny
from tests.train.samples import PLANTED


@pytest.fixture(scope="session", autouse=True)
def _quiet():
    logging.disable_progress_bar()
    torch.set_num_threads(1)  # tiny matrices: more threads only wait for each other


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Give the folder of a family's tiny model; built on first use."""
    return cache(lambda family: tiny(family, tmp_path_factory.mktemp(family)))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "planted.txt"
    file.write_text("\n".join(PLANTED), encoding="utf-8")
    return file
