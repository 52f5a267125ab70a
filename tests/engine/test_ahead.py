"""A thread that works ahead: the same things in the same order, its errors in their turn, and an end."""

from __future__ import annotations

import threading
import time

import pytest

from clinometer.engine.ahead import ahead


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "clinometer-ahead"]


def test_everything_comes_in_order():
    assert list(ahead(iter(range(1000)), by=3)) == list(range(1000))
    assert not threads()


def test_it_is_ahead_and_not_further():
    made = []

    def source():
        for number in range(100):
            made.append(number)
            yield number

    taken = ahead(source(), by=2)
    assert next(taken) == 0
    deadline = time.monotonic() + 10
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    assert len(made) == 4  # one is taken, two wait, and one is held until there is room
    taken.close()
    assert not threads()


def test_an_error_comes_after_what_was_made_before_it():
    def source():
        yield 1
        yield 2
        raise LookupError("the third")

    found = []
    with pytest.raises(LookupError, match="the third"):
        found.extend(ahead(source(), by=5))
    assert found == [1, 2]
    assert not threads()


def test_whoever_stops_early_leaves_no_thread_and_closes_the_source():
    closed = threading.Event()

    def source():
        try:
            yield from range(10**9)
        finally:
            closed.set()

    for number in (taken := ahead(source(), by=2)):
        if number == 5:
            break
    taken.close()
    assert closed.is_set()
    assert not threads()
