"""Asking search engines: three formats, politely, and what happens when they answer badly or not at all."""

from __future__ import annotations

import datetime
import email.utils
import json
import random
import socket
from dataclasses import replace

import pytest
from tests.local_server import Script, serve
from tests.suggestion_server import answering, asked, in_format

from clinometer.data.suggestions.asking import ENGINES, Asker, Manners, get_engine
from clinometer.errors import DataError

MANNERS = Manners(delay=1.0, timeout=5.0, attempts=4)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


class Clock:
    """Time that passes only when someone sleeps."""

    def __init__(self):
        self.time, self.slept = 1000.0, []

    def now(self):
        return self.time

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds


class NoJitter(random.Random):
    def random(self):
        return 0.0


def asker(server_url, *, engine="google", clock=None, manners=MANNERS, rng=None):
    clock = clock or Clock()
    there = replace(get_engine(engine), address=f"{server_url}/{engine}")
    return Asker(there, manners=manners, rng=rng or NoJitter(), sleep=clock.sleep, now=clock.now)


@pytest.mark.parametrize("engine", list(ENGINES))
def test_each_engine_is_asked_and_read_in_its_own_format(engine):
    with serve(answering({engine: ["sad", "poor?"]})) as server:
        reply = asker(server.url, engine=engine).ask("why are poets so")
    assert reply.failure == ""
    assert ENGINES[engine].read(reply.answer) == ("why are poets so sad", "why are poets so poor?")
    assert asked(server.asked[0]) == (engine, "why are poets so ")  # the space asks for the next word
    assert server.agents[0].startswith("clinometer")


def test_the_addresses_of_appendix_b():
    assert get_engine("google").url("a b ") == (
        "http://suggestqueries.google.com/complete/search?client=firefox&hl=en&oe=utf-8&q=a+b+"
    )
    assert (
        get_engine("yahoo").url("a&b") == "http://sugg.search.yahoo.net/sg?output=json&nresults=10&command=a%26b"
    )
    assert get_engine("duckduckgo").url("ä") == "https://duckduckgo.com/ac?q=%C3%A4"
    with pytest.raises(DataError, match="did you mean 'google'"):
        get_engine("gogle")


def test_an_address_of_one_s_own_keeps_its_parameters():
    mine = replace(get_engine("duckduckgo"), address="http://127.0.0.1:1/ac?kl=us-en")
    assert mine.url("a") == "http://127.0.0.1:1/ac?kl=us-en&q=a"


def test_questions_are_a_delay_apart():
    clock = Clock()
    with serve(answering({})) as server:
        ask = asker(server.url, clock=clock).ask
        for _ in range(3):
            assert ask("why are poets so").failure == ""
    assert clock.slept == [1.0, 1.0]  # nothing before the first


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_engine_is_asked_again_after_longer_and_longer(status):
    clock, answers = (
        Clock(),
        [Script(status=status), Script(status=status), Script(in_format("google", "q", ["q x"]))],
    )
    with serve(lambda _: answers.pop(0)) as server:
        reply = asker(server.url, clock=clock).ask("q")
    assert reply.failure == ""
    assert clock.slept == [1.0, 2.0]
    assert len(server.asked) == 3


def test_jitter_is_up_to_half_as_much_again():
    clock = Clock()
    with serve(lambda _: Script(status=503)) as server:
        asker(server.url, clock=clock, rng=random.Random(1)).ask("q")
    for slept, least in zip(clock.slept, (1.0, 2.0, 4.0), strict=True):
        assert least < slept < 1.5 * least


def test_a_long_delay_grows_to_the_longest_wait_and_is_not_taken_for_the_server_s_wish():
    clock = Clock()
    with serve(lambda _: Script(status=503)) as server:
        reply = asker(server.url, clock=clock, manners=replace(MANNERS, delay=50.0, longest_wait=120.0)).ask("q")
    assert clock.slept == [50.0, 100.0, 120.0]
    assert (reply.failure, reply.leave_alone) == ("503 Service Unavailable, 4 times", False)


def test_it_gives_up_and_says_why():
    clock = Clock()
    with serve(lambda _: Script(status=500)) as server:
        ask = asker(server.url, clock=clock)
        assert ask.ask("q").failure == "500 Internal Server Error, 4 times"
        assert len(server.asked) == 4
        assert clock.slept == [1.0, 2.0, 4.0]
        ask.ask("another")
    assert clock.slept[3] == 8.0  # the engine is left in peace before the next question, too


def test_retry_after_in_seconds_is_honoured():
    clock = Clock()
    answers = [Script(status=429, headers={"Retry-After": "30"}), Script(in_format("google", "q", []))]
    with serve(lambda _: answers.pop(0)) as server:
        assert asker(server.url, clock=clock).ask("q").failure == ""
    assert clock.slept == [30.0]


def test_retry_after_as_a_date_is_honoured():
    clock = Clock()
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=60)
    header = {"Retry-After": email.utils.format_datetime(soon, usegmt=True)}
    answers = [Script(status=503, headers=header), Script(in_format("google", "q", []))]
    with serve(lambda _: answers.pop(0)) as server:
        assert asker(server.url, clock=clock).ask("q").failure == ""
    (slept,) = clock.slept
    assert 50 < slept <= 60


def test_a_pause_that_is_too_long_is_a_failure():
    clock = Clock()
    with serve(lambda _: Script(status=429, headers={"Retry-After": "86400"})) as server:
        reply = asker(server.url, clock=clock).ask("q")
    assert "asks for a pause of 86,400 s" in reply.failure
    assert reply.leave_alone
    assert clock.slept == []
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("engine", "script", "complaint"),
    [
        ("google", Script(b"<html>unusual traffic</html>"), "not JSON but b'<html>unusual traffic</html>'"),
        ("google", Script(b'["q", ["x"'), "not JSON"),
        ("google", Script(b""), "not JSON"),
        ("google", Script(b"\xff\xfe"), "not JSON"),
        ("google", Script(b"[" * 200_000), "not JSON"),
        ("google", Script(b"{}"), "other JSON"),
        ("google", Script(b'["q"]'), "other JSON"),
        ("google", Script(b'["q", "x"]'), "other JSON"),
        ("google", Script(b'["q", [1]]'), "other JSON: expected suggestions as text"),
        ("yahoo", Script(b"[]"), "other JSON"),
        ("yahoo", Script(b'{"gossip": []}'), "other JSON"),
        ("yahoo", Script(b'{"gossip": {"results": [{"k": "x"}]}}'), "other JSON"),
        ("duckduckgo", Script(b"{}"), "other JSON"),
        ("duckduckgo", Script(b'["x"]'), "other JSON"),
        ("google", Script(b"x", status=403), "403 Forbidden"),
        ("google", Script(b"x", status=404), "404 Not Found"),
        ("google", Script(b"x" * 2_000_000), "more than 1,000,000 bytes"),
    ],
)
def test_a_wrong_answer_is_not_asked_for_again(engine, script, complaint):
    clock = Clock()
    with serve(lambda _: script) as server:
        reply = asker(server.url, engine=engine, clock=clock).ask("q")
    assert complaint in reply.failure
    assert reply.answer is None
    assert len(server.asked) == 1
    assert clock.slept == []


def test_an_answer_in_another_charset():
    body = '["q", ["q café"]]'.encode("latin-1")
    script = Script(body, headers={"Content-Type": "text/javascript; charset=ISO-8859-1"})
    with serve(lambda _: script) as server:
        assert asker(server.url).ask("q").answer == ["q", ["q café"]]
    script.headers["Content-Type"] = "text/javascript; charset=no-such"
    with serve(lambda _: script) as server:
        assert "not JSON" in asker(server.url).ask("q").failure


def test_a_cut_answer_is_asked_for_again():
    whole = in_format("google", "q", ["q x"])
    answers = [Script(whole[:5], length=len(whole)), Script(whole)]
    with serve(lambda _: answers.pop(0)) as server:
        assert asker(server.url).ask("q").answer == json.loads(whole)


def test_an_engine_that_says_nothing():
    with serve(lambda _: Script(b"", length=10, stall=True)) as server:
        reply = asker(server.url, manners=Manners(timeout=0.05, attempts=2)).ask("q")
        assert reply.failure == "no answer within 0.05 s, 2 times"
        assert len(server.asked) == 2


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    reply = asker(f"http://127.0.0.1:{port}").ask("q")
    assert "Connection refused" in reply.failure
    assert reply.failure.endswith(", 4 times")
