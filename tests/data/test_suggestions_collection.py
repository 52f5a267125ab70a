"""A collection: stopped anywhere it goes on, and nothing answered is asked twice."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from tests.local_server import Script, serve
from tests.suggestion_server import BAKERS, POETS, answering, asked

from clinometer.data import Group, Templates, load_groups, load_templates
from clinometer.data.suggestions.asking import Asker, Manners, get_engine
from clinometer.data.suggestions.collection import (
    Entry,
    Question,
    ask_about,
    collect,
    open_journal,
    open_questions,
)
from clinometer.errors import DataError


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def askers(server, *engines):
    return [
        Asker(
            replace(get_engine(engine), address=f"{server.url}/{engine}"),
            manners=Manners(delay=0.0, attempts=1),
            rng=random.Random(0),
        )
        for engine in engines
    ]


def test_every_question_of_the_paper():
    questions = ask_about(load_groups(), load_templates())
    # 373 groups × 5 templates, none of them twice
    assert len(questions) == len({question.prompt for question in questions}) == 1865
    assert Question(prompt="why is the netherlands so", group="the netherlands", category="country") in questions
    assert Question(prompt="why are all black people so", group="black people", category="race") in questions


def test_a_question_that_an_engine_cannot_complete():
    templates = Templates(
        people=("So [MASK]: why are {group} like that?",), country=("Why is {group} so [MASK]?",)
    )
    with pytest.raises(DataError, match=r"put \{group\} first"):
        ask_about([Group(name="poets", category="x", kind="people")], templates)


def test_each_engine_gets_each_question_once(tmp_path):
    path = tmp_path / "new" / "answers.jsonl"
    with serve(answering({"google": ["sad"], "yahoo": ["poor"]})) as server:
        with open_journal(path) as journal:
            assert open_questions([POETS, BAKERS], ["google", "yahoo"], journal) == 4
            seen = []
            done = collect(
                [POETS, BAKERS], askers(server, "google", "yahoo"), journal, on_reply=lambda: seen.append(1)
            )
        assert (done.answered, done.failed, done.left_alone, len(seen)) == (4, 0, (), 4)
        # in turn: while one rests the other is asked
        assert [asked(path)[0] for path in server.asked] == ["google", "yahoo", "google", "yahoo"]
        with open_journal(path) as journal:
            again = collect([POETS, BAKERS], askers(server, "google", "yahoo"), journal)
            assert open_questions([POETS, BAKERS], ["google", "yahoo"], journal) == 0
        assert again.answered == 0
        assert len(server.asked) == 4
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert first["engine"] == "google"
    assert first["prompt"] == "why are poets so"
    assert first["answer"][1] == ["why are poets so sad"]  # as it came


def test_a_killed_collection_goes_on(tmp_path):
    path = tmp_path / "answers.jsonl"
    with serve(answering({"google": ["sad"]})) as server:
        calls = []

        def killed_at_the_second():
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt

        questions = [replace(POETS, prompt=f"why are poets {n} so") for n in range(4)]
        with pytest.raises(KeyboardInterrupt), open_journal(path) as journal:
            collect(questions, askers(server, "google"), journal, on_reply=killed_at_the_second)
        # the third answer was being written when the process died
        whole = path.read_bytes()
        path.write_bytes(whole + b'{"engine": "google", "prompt": "why are poets 2 so", "gro')
        with open_journal(path) as journal:
            assert path.read_bytes() == whole
            assert collect(questions, askers(server, "google"), journal).answered == 2
        prompts = [asked(path)[1] for path in server.asked]
    assert prompts == [f"why are poets {n} so " for n in range(4)]
    assert len(path.read_text(encoding="utf-8").splitlines()) == 4


def test_a_failure_is_recorded_and_asked_again_next_time(tmp_path):
    path = tmp_path / "answers.jsonl"
    with serve(lambda _: Script(b"<html>", status=200)) as server, open_journal(path) as journal:
        done = collect([POETS], askers(server, "google"), journal)
        assert (done.answered, done.failed) == (0, 1)
        assert open_questions([POETS], ["google"], journal) == 1
    assert "not JSON" in json.loads(path.read_text(encoding="utf-8"))["failure"]
    with serve(answering({"google": ["sad"]})) as server, open_journal(path) as journal:
        assert collect([POETS], askers(server, "google"), journal).answered == 1
        assert open_questions([POETS], ["google"], journal) == 0


def test_an_engine_that_fails_again_and_again_is_left_alone(tmp_path):
    def one_is_broken(path):
        engine, _ = asked(path)
        return Script(status=403) if engine == "yahoo" else answering({})(path)

    questions = [replace(POETS, prompt=f"why are poets {n} so") for n in range(8)]
    with serve(one_is_broken) as server, open_journal(tmp_path / "answers.jsonl") as journal:
        done = collect(questions, askers(server, "google", "yahoo"), journal)
        engines = [asked(path)[0] for path in server.asked]
    assert (engines.count("google"), engines.count("yahoo")) == (8, 5)
    assert (done.answered, done.failed) == (8, 5)
    assert done.left_alone == ("yahoo (403 Forbidden)",)


def test_an_engine_that_wants_a_long_pause_is_left_alone_at_once(tmp_path):
    questions = [replace(POETS, prompt=f"why are poets {n} so") for n in range(8)]
    pause = Script(status=429, headers={"Retry-After": "3600"})
    with serve(lambda _: pause) as server, open_journal(tmp_path / "answers.jsonl") as journal:
        done = collect(questions, askers(server, "google"), journal)
        assert len(server.asked) == 1
    (reason,) = done.left_alone
    assert "it asks for a pause of 3,600 s" in reason


def test_an_occasional_failure_does_not_count_as_in_a_row(tmp_path):
    answers = [Script(status=403) if n % 5 != 4 else Script(b'["q", []]') for n in range(20)]
    questions = [replace(POETS, prompt=f"why are poets {n} so") for n in range(20)]
    with serve(lambda _: answers.pop(0)) as server, open_journal(tmp_path / "answers.jsonl") as journal:
        done = collect(questions, askers(server, "google"), journal)
    assert (done.answered, done.failed, done.left_alone) == (4, 16, ())


def test_two_collections_in_one_folder(tmp_path):
    with (
        open_journal(tmp_path / "answers.jsonl"),
        pytest.raises(DataError, match="in use by another collection"),
        open_journal(tmp_path / "answers.jsonl"),
    ):
        pass


def entry(**changes):
    whole = {"engine": "google", "prompt": "p", "group": "g", "category": "c", "time": "t", "answer": ["p", []]}
    return json.dumps(whole | {"failure": ""} | changes).encode()


@pytest.mark.parametrize(
    "line",
    [b"x", b"[]", b"{}", b"", b"\xff", entry(engine="bing"), entry(answer={}), entry(prompt=3), entry(more=1)],
)
def test_a_damaged_line_in_the_middle_is_named(tmp_path, line):
    path = tmp_path / "answers.jsonl"
    whole = entry() + b"\n" + line + b"\n" + entry() + b"\n"
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r"answers\.jsonl', line 2 is not an answer"), open_journal(path):
        pass
    assert path.read_bytes() == whole


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(DataError, match="--out"), open_journal(tmp_path / "file" / "answers.jsonl"):
        pass


def test_half_a_character_in_a_suggestion_is_kept_as_it_came(tmp_path):
    path = tmp_path / "answers.jsonl"
    odd = Entry(
        engine="google", prompt="p", group="g", category="c", time="t", answer=["p", ["p \udc80 é \U0001f600"]]
    )
    with open_journal(path) as journal:
        journal.append(odd)
    with open_journal(path) as journal:
        assert journal.entries == [odd]
