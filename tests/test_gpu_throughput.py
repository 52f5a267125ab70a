"""The hours of docs/cluster.md: texts have the stated lengths, and the arithmetic is as worked by hand."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import pytest

_FILE = Path(__file__).parents[1] / "benchmarks" / "gpu_throughput.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_throughput", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_throughput"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["bert-base", "roberta-large", "gpt2", "7b", "classifier"])
def test_prompts_have_the_lengths_that_are_stated(benchmark: ModuleType, name: str) -> None:
    model, _ = benchmark._built(name, device="cpu", tiny=True)
    cells = benchmark._cells(benchmark.SHAPES[name], tiny=False)
    for cell in cells.keys() & {"prompts_64", "prompts_256", "texts_64"}:
        requests = list(itertools.islice(cells[cell][0](3), 3))
        assert model.cost(requests) == 3 * [int(cell.partition("_")[2])]


def test_a_model_of_each_kind_answers_every_cell(benchmark: ModuleType) -> None:
    for name in ("roberta-large", "7b", "classifier"):
        model, _ = benchmark._built(name, device="cpu", tiny=True)
        for requests, _, units in benchmark._cells(benchmark.SHAPES[name], tiny=True).values():
            found = benchmark._rate(model, requests, units, device="cpu", seconds=0.0, first=1)
            assert found["rate"] > 0
            assert found["requests"] == 1


def test_hours_are_counts_over_rates(benchmark: ModuleType) -> None:
    rates = {
        "gpt2": {
            "prompts_256": {"rate": 1_000.0},
            "prompts_64": {"rate": 5_065.0},
            "rescored": {"rate": 62_289.65},
            "sampled": {"rate": 36_500.0},
        },
        "classifier": {"texts_64": {"rate": 2_190.0}},
        "bert-base": {"prompts_256": {"rate": 1_000.0}, "prompts_64": {"rate": 8_957.0}},
    }
    # 4,804 s of long prompts, 1 s of short ones; for GPT-2 also 1,000 s each of rescoring, sampling and reading
    assert benchmark.hours_of("bert-base", "paper", rates) == pytest.approx(4_805 / 3600)
    assert benchmark.hours_of("gpt2", "paper", rates) == pytest.approx(7_805 / 3600)


def test_the_driver_bounds_the_hours(benchmark: ModuleType) -> None:
    # 4,812,957 requests at 15,000 a second are 321 s
    assert benchmark.driver_hours("bert-base", "paper") == pytest.approx(4_812_957 / 15_000 / 3600)
    assert benchmark._bounded(0.02, 0.089) == "0.09*"
    assert benchmark._bounded(0.2, 0.089) == "0.20"


def test_the_page_states_the_counts_that_are_multiplied(benchmark: ModuleType) -> None:
    page = benchmark.DOCS.read_text(encoding="utf-8")
    assert benchmark.BEGIN in page
    assert benchmark.END in page
    for profile in benchmark.PROFILES:
        masked, causal = (benchmark.WORK[kind][profile] for kind in ("masked", "causal"))
        for count in (masked.long, masked.short, causal.long, causal.short, *_causal_only(causal)):
            assert not count or f"{count:,}" in page


def _causal_only(work: object) -> list[int]:
    return [getattr(work, name) for name in ("sampled", "rescored", "texts")]
