from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer
from transformers.utils import logging

from clinometer.models.load import load_model
from tests.models.tiny import tiny


@pytest.fixture(scope="session", autouse=True)
def _quiet():
    logging.disable_progress_bar()
    torch.set_num_threads(1)  # tiny matrices: more threads only wait for each other


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Give the folder of a family's tiny model; built on first use."""

    @cache
    def folder(family: str, head: str) -> Path:
        return tiny(family, tmp_path_factory.mktemp(family), head=head)

    return lambda family, head="": folder(family, head)


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_folder: Callable[..., Path]) -> Callable[[str], Any]:
    """Give the tokenizer of a family's tiny model; not to be changed."""
    return cache(lambda family: AutoTokenizer.from_pretrained(tiny_folder(family)))


@pytest.fixture(scope="session")
def tiny_model(tiny_folder: Callable[..., Path]) -> Callable[..., Any]:
    """Give a family's tiny model, loaded by its adapter on the CPU."""

    @cache
    def model(family: str, head: str) -> Any:
        return load_model(str(tiny_folder(family, head)), device="cpu")

    return lambda family, head="": model(family, head)
