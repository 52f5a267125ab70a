"""Budgets: counted before every attempt, settled after it, and never exceeded."""

from __future__ import annotations

import pytest

from clinometer.engine.budget import Budget, Limits
from clinometer.errors import SpecError, StoppedError
from clinometer.models.protocols import Call, Reply

CALL = Call(path="/completions", body={"prompt": "x", "max_tokens": 10, "n": 2}, reads="texts", tokens=30)


def answered(given, made):
    return Reply(content={}, source={"tokens_in": given, "tokens_out": made})


def test_requests_are_counted_with_every_attempt():
    budget = Budget(Limits(requests=2))
    meter = budget.meter({})
    meter.reserve(CALL)
    meter.settle(CALL, None)  # it was told to wait: a request, but no tokens
    meter.reserve(CALL)
    with pytest.raises(StoppedError, match="--max-requests 2 is used up"):
        meter.reserve(CALL)
    assert (budget.spent.requests, budget.spent.tokens) == (2, 0)


def test_what_is_in_the_air_counts_for_all_that_it_could_cost():
    budget = Budget(Limits(tokens=75))
    meter = budget.meter({})
    meter.reserve(CALL)
    meter.reserve(CALL)
    with pytest.raises(StoppedError):  # 30 + 30 + 30 > 75
        meter.reserve(CALL)
    meter.settle(CALL, answered(8, 4))
    meter.reserve(CALL)  # 12 + 30 + 30
    assert budget.spent.tokens == 12


def test_an_answer_that_was_lost_counts_in_full_because_it_may_be_charged():
    budget = Budget(Limits(tokens=100))
    meter = budget.meter({"input": 1.0, "output": 10.0})
    meter.reserve(CALL)
    meter.settle(CALL, Reply(content={}))
    # 20 of the 30 tokens are those of the answers: (10 × 1 + 20 × 10) / 1,000,000
    assert (budget.spent.tokens, budget.spent.cost) == (30, pytest.approx(210e-6))
    assert (budget.reserved.tokens, budget.reserved.cost) == (0, pytest.approx(0))


def test_cost_is_bounded_by_the_price():
    budget = Budget(Limits(cost=0.0005))
    meter = budget.meter({"input": 1.0, "output": 10.0})
    meter.reserve(CALL)
    meter.settle(CALL, answered(10, 20))
    meter.reserve(CALL)
    with pytest.raises(StoppedError, match="--max-cost"):  # 0.00021 + 0.00021 + 0.00021
        meter.reserve(CALL)
    with pytest.raises(SpecError, match="--price"):
        budget.meter({})
