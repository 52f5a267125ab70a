"""Many parts of a finished stage become few, with the same records, whatever happens on the way."""

from __future__ import annotations

import itertools
import os

import pytest
from store_samples import KEY, append, new_run, parts, rows

from clinometer.store import RunFolder, compacting


@pytest.fixture
def run(tmp_path):
    run = new_run(tmp_path / "run")
    for start in range(0, 60, 2):
        append(run, start, start + 2)
    append(run, 4, 6, salt=" later")  # of two records the later counts
    return run


def test_the_records_are_the_same(run):
    before = run.table(KEY)
    run.compact(KEY)
    assert len(parts(run)) == 1
    for opened in (run, RunFolder.open(run.path)):
        assert opened.table(KEY).equals(before)
        assert opened.table(KEY).schema == before.schema
        assert len(opened.done(KEY)) == 60
        assert opened.check() == ()
    assert before.filter(before["index"] == 4)["ask_text"][0].endswith("later")


def test_a_stage_of_few_parts_is_left_alone(tmp_path):
    run = new_run(tmp_path / "run")
    for start in range(compacting.FEW):
        append(run, start, start + 1)
    before = parts(run)
    run.compact(KEY)
    assert parts(run) == before


def test_the_size_of_a_joined_part_is_limited(run, monkeypatch):
    monkeypatch.setattr(compacting, "ROWS", 20)
    before = run.table(KEY)
    run.compact(KEY)
    assert 3 <= len(parts(run)) <= 4
    assert run.table(KEY).equals(before)


def test_parts_by_different_hands_are_not_joined(tmp_path):
    run = new_run(tmp_path / "run")
    for hand, start in enumerate(range(0, 40, 20)):
        with run.writer(KEY, by=lambda hand=hand: {"release": str(hand)}, max_rows=1) as writer:
            for index in range(start, start + 20):
                writer.append(rows(index, index + 1))
    before = run.table(KEY)
    run.compact(KEY)
    assert len(parts(run)) == 2
    assert run.table(KEY).equals(before)
    assert [by["release"] for _, by in run._parts.computed_by()] == ["0", "1"]


@pytest.mark.parametrize("moment", range(12))
def test_a_kill_at_any_moment_loses_and_changes_nothing(run, monkeypatch, moment):
    """Every rename and every removal may be the last thing that happens."""
    monkeypatch.setattr(compacting, "ROWS", 15)
    before = run.table(KEY)
    left = itertools.count()

    def or_die(action):
        def act(*arguments, **options):
            if next(left) == moment:
                raise KeyboardInterrupt
            return action(*arguments, **options)

        return act

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", or_die(os.replace))
        patched.setattr("pathlib.Path.unlink", or_die(type(run.path).unlink))
        with pytest.raises(KeyboardInterrupt):
            run.compact(KEY)
    again = RunFolder.open(run.path)
    assert again.table(KEY).equals(before)
    again.compact(KEY)
    assert again.table(KEY).equals(before)


def test_a_finished_stage_of_a_run_is_joined(tmp_path, monkeypatch):
    from tests.attacks.samples import tiny_run, verify

    from clinometer.store import run as store_run

    monkeypatch.setattr(store_run, "FEW", 0)
    called = []
    monkeypatch.setattr(store_run, "compact", lambda parts, **_: called.append(len(list(parts))))
    run = tiny_run(tmp_path / "run")
    assert called == [1]
    assert verify(run.path).problems == ()
