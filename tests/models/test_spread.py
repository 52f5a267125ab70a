"""Models too large for one GPU: their layers are spread over all that a worker has. No such machine is here."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from clinometer.errors import ModelError
from clinometer.models.load import load_model
from clinometer.models.local import loading
from clinometer.models.local.masked import MaskedModel
from clinometer.models.providers import vllm as vllm_provider
from clinometer.models.providers.local import resolve
from clinometer.models.providers.vllm import VllmModels
from clinometer.types import Fill, ModelSpec


def test_several_gpus_are_one_device_over_which_transformers_spreads_the_layers():
    cuda = torch.device("cuda")
    assert loading._placed(cuda, quantised=False, spread=True) == {"device_map": "auto"}
    assert loading._placed(cuda, quantised=False, spread=False) == {}
    assert loading._placed(torch.device("meta"), quantised=False, spread=True) == {"device_map": "meta"}


def test_a_spread_model_is_left_where_it_was_put_and_answers_the_same(tiny_folder):
    """Where there is no GPU, "auto" is the CPU: what is tested is that we do not move it, and read the same."""
    spec = ModelSpec(name=str(tiny_folder("bert")))
    source = replace(resolve(spec), spread=True)
    spread = MaskedModel.load(source, spec, torch.device("cpu"))
    question = [Fill(text="the nurse is [MASK].", top_k=5)]
    (found,), (plain,) = spread.fill(question), load_model(spec, device="cpu").fill(question)
    assert found.words == plain.words
    # a GPU, where there is one, rounds in its own way
    assert found.logprobs == pytest.approx(plain.logprobs, abs=1e-5 if torch.cuda.is_available() else 0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_several_are_refused(tiny_folder):
    with pytest.raises(ModelError, match="finds no GPU"):
        load_model(str(tiny_folder("bert")), device="gpus")


def test_vllm_gets_all_gpus_of_its_worker(monkeypatch):
    given = {}

    class Vllm:
        SamplingParams = dict

        @staticmethod
        def LLM(**options):
            given.update(options)
            return "engine"

    monkeypatch.setitem(sys.modules, "vllm", Vllm)
    monkeypatch.setattr(vllm_provider, "absent_packages", lambda *_: ())
    monkeypatch.setattr(vllm_provider, "_visible_gpus", lambda: 4)
    monkeypatch.setattr(vllm_provider.importlib.metadata, "version", lambda _: "0.15.0")
    spec = ModelSpec(name="vllm:org/big")
    loaded = VllmModels().load(spec, device="gpus")
    assert given["tensor_parallel_size"] == 4
    given.clear()
    VllmModels().load(spec, device="cuda")
    assert "tensor_parallel_size" not in given
    assert VllmModels().inspect(spec, device="cpu").info == loaded.info
