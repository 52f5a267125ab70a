"""Sending: patience that grows, waits that are asked for, fewer calls for a busy endpoint, and an end."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from clinometer.errors import EndpointError
from clinometer.models.endpoint import sending
from clinometer.models.endpoint.faults import Broken, Busy, Malformed, Refused
from clinometer.models.endpoint.model import EndpointModel, endpoint_info
from clinometer.models.endpoint.offer import ASSUMED
from clinometer.models.endpoint.sending import Pace, Patience, Sender
from clinometer.models.protocols import Call, Reply

CALL = Call(path="/chat/completions", body={"messages": [], "n": 2}, reads="texts")
FINE = Reply(content={"texts": ["a", "b"]})
HASTY = Patience(first=0.001, longest=0.01, tries=4)


class Scripted:
    """Raises what it is told to, then answers."""

    def __init__(self, *faults):
        self.faults = list(faults)
        self.sent = []

    async def send(self, call):
        self.sent.append(time.monotonic())
        if self.faults:
            raise self.faults.pop(0)
        return FINE


class Counting:
    """A meter that keeps its books."""

    def __init__(self):
        self.books = []

    def reserve(self, call):
        self.books.append("reserved")

    def settle(self, call, reply):
        self.books.append("free" if reply is None else "paid")


def send(*faults, patience=HASTY, pace=None):
    model, meter = Scripted(*faults), Counting()
    sender = Sender(model, "http://x", pace or Pace(4), patience, meter, random.Random(0))
    return asyncio.run(sender.send(CALL)), model, meter, sender


def test_a_call_is_sent_until_an_answer_comes_and_every_attempt_is_counted():
    reply, model, meter, sender = send(Broken("500"), Malformed("html"), Busy("429"))
    assert reply.content == FINE.content
    assert reply.source["tries"] == len(model.sent) == 4
    assert sender.resent == 3
    # being told to wait costs nothing; a broken or unreadable answer may be charged
    assert meter.books == ["reserved", "paid"] * 2 + ["reserved", "free"] + ["reserved", "paid"]


def test_it_waits_as_long_as_it_is_asked_to():
    _, model, _, _ = send(Busy("429", wait=0.08))
    assert model.sent[1] - model.sent[0] >= 0.08


def test_waits_double_with_jitter_up_to_a_limit():
    patience, rng = Patience(first=1.0, longest=8.0), random.Random(1)
    for attempt, expected in enumerate([1, 2, 4, 8, 8, 8], start=1):
        waits = [patience.wait(attempt, rng) for _ in range(200)]
        assert 0.5 * expected <= min(waits) < 0.7 * expected
        assert 1.3 * expected < max(waits) <= 1.5 * expected


def test_an_answer_that_stays_unreadable_is_recorded_as_that():
    reply, model, _, _ = send(*[Malformed("html")] * 9)
    assert len(model.sent) == 4
    assert reply.content["endings"] == ["malformed", "malformed"]
    assert reply.source["tries"] == 4


def test_an_endpoint_that_gives_no_answer_stops_the_run():
    with pytest.raises(EndpointError, match="http://x gave no answer in 4 attempts: 503"):
        send(*[Broken("503")] * 9)
    with pytest.raises(EndpointError, match="refused a question: 400 too long"):
        send(Refused("400 too long"))
    with pytest.raises(EndpointError, match="asks to wait 9,999 s"):
        send(Busy("429", wait=9_999))


def test_being_told_to_wait_is_not_a_failed_try(monkeypatch):
    assert len(send(*[Busy("429")] * 9)[1].sent) == 10
    # but an endpoint that only says so for a quarter of an hour is given up
    with pytest.raises(EndpointError, match="only says 429"):
        send(*[Busy("429")] * 9, patience=Patience(first=0.001, silence=0.0))


def test_a_busy_endpoint_gets_half_as_many_calls_and_slowly_more_again(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(sending.time, "monotonic", lambda: now[0])

    async def story():
        pace = Pace(8)
        pace.slow_down(0.0)
        pace.slow_down(0.0)  # refused together: once
        assert pace.limit == 4
        now[0] += 2
        pace.slow_down(0.0)
        assert pace.limit == 2
        for _ in range(3):  # 2 answers make it about 3
            await pace.enter()
            await pace.leave(answered=True)
        assert 3 < pace.limit < 3.5
        for _ in range(100):
            await pace.enter()
            await pace.leave(answered=True)
        assert pace.limit == 8

    asyncio.run(story())


def test_no_more_calls_are_in_the_air_than_allowed():
    most = 0
    flying = 0

    class Slow:
        async def send(self, call):
            nonlocal most, flying
            flying += 1
            most = max(most, flying)
            await asyncio.sleep(0.001)
            flying -= 1
            return FINE

    async def story():
        sender = Sender(Slow(), "http://x", Pace(3))
        await asyncio.gather(*(sender.send(CALL) for _ in range(20)))

    asyncio.run(story())
    assert most == 3


def test_what_a_content_filter_stops_is_an_answer():
    class Filtering:
        async def post(self, path, body):
            raise Refused("400 the policy", filtered=True)

    info = endpoint_info("m", served="m", where="x", offer=ASSUMED)
    model = EndpointModel(info=info, transport=Filtering(), offer=ASSUMED, served="m", where="x")
    reply = asyncio.run(model.send(CALL))
    assert reply.content["endings"] == ["content filter", "content filter"]
