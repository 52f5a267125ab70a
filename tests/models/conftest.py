from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from clinometer.models.load import load_model
from tests.models.causal_models import FAMILIES, ODD
from tests.models.tiny import CAUSAL, tiny


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


# ---------------------------------------------------------------------------------------------------------
# Causal models, for the tests of next words and of continuations


@pytest.fixture(scope="session")
def folder_of(tiny_folder, tmp_path_factory):
    made = {}

    def folder(family):
        if family in CAUSAL:
            return tiny_folder(family)
        if family not in made:
            made[family] = tmp_path_factory.mktemp(family)
            tokenizer = AutoTokenizer.from_pretrained(tiny_folder("gpt2"))
            tokenizer.save_pretrained(made[family])
            config = ODD[family](len(tokenizer))
            config.bos_token_id = config.eos_token_id = config.pad_token_id = 0
            torch.manual_seed(1)
            model = AutoModelForCausalLM.from_config(config)
            with torch.no_grad():
                for name, weight in model.named_parameters():
                    if "embed" in name or "lm_head" in name:
                        weight.normal_(0.0, 0.2 if family == "mamba" else 0.7)
            model.save_pretrained(made[family])
        return made[family]

    return folder


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture
def model(family, folder_of):
    return load_model(str(folder_of(family)), device="cpu")


@pytest.fixture
def tokenizer(family, folder_of):
    return AutoTokenizer.from_pretrained(folder_of(family))


@pytest.fixture
def network(family, folder_of):
    return AutoModelForCausalLM.from_pretrained(folder_of(family)).eval()


@pytest.fixture
def plain(network, tokenizer):
    """Return a function: text -> log-probabilities (tokens × vocabulary), by nothing but transformers."""

    @torch.no_grad()
    def logprobs(text):
        return network(**tokenizer(text, return_tensors="pt")).logits[0].log_softmax(dim=1)

    return logprobs
