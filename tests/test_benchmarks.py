"""The page of speed figures follows from the results that are kept, and names scripts that are there."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a benchmark."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    yield importlib.import_module
    for name in ("tables", "measured", "every"):
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
