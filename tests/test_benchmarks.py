"""The page of speed figures follows from the results that are kept, and names scripts that are there."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import re
import sys
from pathlib import Path

import pytest

from clinometer.types import Finding, FindingTable, ModelInfo

ROOT = Path(__file__).parents[1]
GIVEN = ModelInfo(
    name="m", kind="causal", family="x", capabilities=("sample",), weights="w", tokenizer="t", dtype="d", code="c"
)


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a benchmark."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    yield importlib.import_module
    for name in ("tables", "measured", "every", "full_size", "masked_mitigation", "causal_mitigation"):
        sys.modules.pop(name, None)


def test_the_tables_of_speed_are_those_that_the_results_give(script):
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert script("tables").with_tables(page) == page, "run `python benchmarks/tables.py`"


def test_every_script_that_a_page_names_is_there():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {
        name for page in pages for name in re.findall(r"benchmarks/(\w+\.\w+)", page.read_text(encoding="utf-8"))
    }
    speed = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8").partition("## Which script")[2]
    named |= set(re.findall(r"`(\w+\.py)", speed))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / "benchmarks" / name).is_file()] == []


def test_make_bench_runs_scripts_that_are_there_and_in_a_table(script):
    every, tables = script("every"), script("tables")
    for name, command in every.COMMANDS.items():
        assert (ROOT / "benchmarks" / command.split()[0]).is_file()
        assert name in {*tables.PARTS["cpu"], *tables.PARTS["growth"]}


def test_the_ratio_is_to_the_best_of_the_others_whichever_way_is_better(script):
    row = script("measured").Row
    assert row(work="w", unit="texts/s", ours=60.0, others={"a": 20.0, "b": 30.0}).ratio == 2
    assert row(work="w", unit="s", ours=2.0, others={"a": 20.0, "b": 30.0}).ratio == 10
    assert row(work="w", unit="s", ours=2.0).ratio is None


def test_times_are_taken_in_turns_and_the_first_does_not_count(script):
    ran: list[str] = []
    seconds = script("measured").seconds_in_turns(
        {"a": lambda: ran.append("a"), "b": lambda: ran.append("b")}, repeats=2
    )
    assert sorted(ran[:2]) == sorted(ran[2:4]) == sorted(ran[4:]) == ["a", "b"]
    assert {name: len(each) for name, each in seconds.items()} == {"a": 2, "b": 2}


def test_the_comparison_of_masked_mitigations_asks_for_every_cell_and_a_control(script):
    comparison = script("masked_mitigation")
    options = comparison.options_of(["--corpus", "a.txt", "b.txt", "--lora", "8", "0", "--learning-rate", "1e-5"])
    cells = comparison.cells_of(options)
    assert [each.name for each in cells] == [
        "lora-8-rate-1e-05-ordinary-0.5",
        "full-rate-1e-05-ordinary-0.5",
        "lora-8-rate-1e-05-ordinary-0",
        "full-rate-1e-05-ordinary-0",
    ]
    command = " ".join(comparison.command_of(cells[0], options, Path("runs/x")))
    assert "--corpus a.txt b.txt --method embedding swapped counterexamples --strength 0 1 10 --seeds 3" in command
    assert "--lora 8 --learning-rate 1e-05 --ordinary 0.5" in command


def test_the_cost_of_an_arm_holds_what_documents_and_trainings_differ_in(script):
    """Trainings at ln 1.00, 1.02 and 1.04: s = 0.0196; documents alone give ±0.01, so u = 0.0051."""
    changes = script("masked_mitigation").perplexity_changes
    spread = [{"estimate": each, "low": each / 1.01, "high": each * 1.01} for each in (1.0, 1.02, 1.04)]
    calm = [{"estimate": 1.02, "low": 1.02 / 1.01, "high": 1.02 * 1.01}] * 3
    (alone,) = changes([spread])
    centre = 100 * ((1.0 * 1.02 * 1.04) ** (1 / 3) - 1)
    assert alone["perplexity_change"] == pytest.approx(centre)
    # e² = u² + s²/3 = 0.0124², and with two degrees of freedom, or a few more, more than twice that
    assert alone["perplexity_high"] - centre > 100 * 2 * 0.0124
    assert (alone["perplexity_at_most_3_percent"], alone["perplexity_surely_at_most_3_percent"]) == (True, False)
    # what one arm shows of the noise between trainings counts for the other, too
    together = changes([spread, calm])
    assert together[1]["perplexity_high"] > 3.02 * 1.01
    (once,) = changes([calm[:1]])
    assert once["perplexity_high"] == pytest.approx(100 * (1.02 * 1.01 - 1))


def test_the_result_has_a_row_for_each_arm(script, tmp_path):
    verdict = {"against": "control", "audit": "stigma", "measure": "m", "state": "better", "estimate": -0.01}
    verdict |= {"low": -0.02, "high": -0.001}
    arms = [
        {"lora": 8, "method": "control", "verdicts": [{**verdict, "against": "as given", "state": "worse"}]},
        {"lora": 8, "method": "swapped", "verdicts": [verdict, {**verdict, "against": "as given"}]},
    ]
    script("masked_mitigation").write(tmp_path / "r.json", arms, {"command": "c"})
    assert json.loads((tmp_path / "r.json").read_text())["arms"] == arms
    assert (tmp_path / "r.csv").read_text().splitlines() == [
        "lora,method,stigma: m",
        '8,control,"worse -0.0100 [-0.0200, -0.0010]"',
        '8,swapped,"better -0.0100 [-0.0200, -0.0010]"',
    ]


def test_a_cell_of_other_options_is_not_taken_for_this_one(script, tmp_path, monkeypatch):
    comparison = script("masked_mitigation")
    (tmp_path / "full-rate-1e-05-ordinary-0.json").write_text(json.dumps({"asked": ["other"], "rows": []}))
    chosen = {"--corpus": "a.txt", "--lora": "0", "--learning-rate": "1e-5", "--ordinary": "0"}
    words = [word for pair in {**chosen, "--runs": str(tmp_path)}.items() for word in pair]
    monkeypatch.setattr("sys.argv", ["masked_mitigation.py", *words])
    with pytest.raises(SystemExit, match="made with other options; give another --runs"):
        comparison.main()


def test_causal_mitigations_are_asked_for_with_a_control_and_seeds(script):
    comparison = script("causal_mitigation")
    options = comparison.options_of(["--corpus", "a.txt", "--unit", "window"])
    assert options.attribute == ["occupation", "country", "name"]
    command = " ".join(comparison.command_of("country", options, Path("runs/x")))
    assert "--attribute country --corpus a.txt --method embedding sentiment --strength 0 10 --seeds 3" in command
    assert "--unit window --steps 120 --batch 64" in command
    assert command.endswith("--set counterfactual.samples=200 counterfactual.similarity_samples=50 "
                            "counterfactual.draws=500")  # fmt: skip
    # windows are another training, and have a folder of their own
    assert comparison.folder_of("country", options) == "mitigation-country-window"


def test_the_table_of_causal_mitigations_has_a_row_for_each_kind_of_training(script):
    def model(name, **tuning):
        return dataclasses.replace(GIVEN, name=name, weights=name, tuning=tuning)

    seeds = [
        model(f"m-{method}-seed-{seed}", base="given", method=method, amount=amount, attribute="x", seed=str(seed))
        for method, amount in (("sentiment", "10"), ("control", "0"), ("embedding", "10"))
        for seed in (0, 1)
    ]

    def rows(estimates, **labels):
        return tuple(
            Finding(
                labels={"model": name, **labels}, estimate=value, low=value - 0.01, high=value + 0.01, q=q, n=9
            )
            for name, value, q in estimates
        )

    arm = "m-control (2 trainings)"
    levels = {"scorer": "builtin:opinion-words", "PPL": 17.44, "S.S. %": 14.83, "S.S.c %": 6.67}
    gone = {"scorer": "builtin:opinion-words", "measure": "I.F."}
    tables = {
        "mitigation": rows([("given", 0.0594, math.nan), (arm, 0.0508, math.nan)], **levels),
        "costs": rows([(arm, 0.9517, math.nan)], against="before", guard="perplexity", of="whole text"),
        "reduction": rows([(arm, 38.2, math.nan)], against="before", **gone),
        "change": rows([(arm, -0.0086, 0.2), ("m-embedding (2 trainings)", -0.0131, 0.01)],
                       against="control", quantity="excess", **gone),
    }  # fmt: skip
    tables = {
        name: FindingTable(name=name, title="", caption="", rows=of_table) for name, of_table in tables.items()
    }
    given = model("given")
    lines = script("causal_mitigation").table_of(tables, [given, *seeds]).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| as given", "| control", "| embedding 10", "| sentiment 10",
    ]  # fmt: skip
    cells = [line.strip("| ").split(" | ") for line in lines]
    assert cells[2][:5] == ["as given", "17.4", "14.8", "6.7", "0.059"]
    assert cells[3][1] == "17.4 (−4.8)"
    assert cells[3][6] == "38 [38, 38]"
    assert cells[3][8] == "−8.6 [−18.6, +1.4]"
    assert cells[4][8] == "−13.1 [−23.1, −3.1]*"
