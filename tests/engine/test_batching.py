from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinometer.engine.batching import default_budget, plan_batches

costs_and_budget = given(
    st.lists(st.integers(min_value=0, max_value=300), max_size=200), st.integers(min_value=1, max_value=1000)
)


@costs_and_budget
def test_every_position_stands_in_exactly_one_batch(costs, budget):
    batches = plan_batches(costs, budget=budget)
    assert sorted(position for batch in batches for position in batch) == list(range(len(costs)))


@costs_and_budget
def test_a_padded_batch_stays_within_the_budget_unless_it_is_a_single_request(costs, budget):
    for batch in plan_batches(costs, budget=budget):
        padded = max(costs[position] for position in batch) * len(batch)
        assert padded <= budget or len(batch) == 1


def test_longest_first_and_ties_in_order():
    # 9 alone (9 × 2 > 16); then 4, 4, 4, 1 padded to 4 make exactly 16; 1 is left
    assert plan_batches([4, 9, 1, 4, 4, 1], budget=16) == [[1], [0, 3, 4, 2], [5]]


def test_a_large_batch_ends_where_the_length_changes():
    # 400 rows of 100 make 40,000 tokens, which is enough; of 50 and 49 it takes both to fill 32,768
    costs = [100] * 400 + [50] * 400 + [49] * 400
    assert [len(batch) for batch in plan_batches(costs, budget=262_144)] == [400, 800]
    costs = [100] * 400 + [50] * 700 + [49] * 400
    assert [len(batch) for batch in plan_batches(costs, budget=262_144)] == [400, 700, 400]
    # on a CPU, 256 of 2,048 are enough: 16 rows of 16, then 15s and 14s until there are as many
    costs = [16] * 16 + [15] * 10 + [14] * 30 + [13] * 5
    assert [len(batch) for batch in plan_batches(costs, budget=2_048)] == [16, 40, 5]


def test_full_batches_have_an_even_number_of_rows():
    # 20,000 / 30 = 666 rows, of which 640 are a multiple of 64
    assert [len(batch) for batch in plan_batches([30] * 1_000, budget=20_000)] == [640, 360]


def test_nothing_to_plan():
    assert plan_batches([], budget=10) == []


def test_requests_without_length_still_fill_batches_to_the_budget():
    # a cost of 0 counts as 1, else a budget would hold any number of them
    assert [len(batch) for batch in plan_batches([0] * 5, budget=2)] == [2, 2, 1]


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_a_machine_without_a_gpu_gets_small_batches(device, monkeypatch):
    if "torch" in sys.modules:
        monkeypatch.setattr(sys.modules["torch"].cuda, "is_available", lambda: False)
    assert default_budget(device) == 2048
