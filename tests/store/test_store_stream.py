"""A stage is read in tables of bounded size: the rows of one table, each once, in the order of the items."""

import dataclasses
import random

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from store_samples import KEY, append, parts, rows

from clinometer.errors import RecordsError
from clinometer.store import parts as part_files


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(part_files, "BATCH_ROWS", 50)


def streamed(run, columns=None):
    batches = list(run.batches(KEY, columns=columns))
    assert all(len(batch) for batch in batches)
    assert all(batch.schema == batches[0].schema for batch in batches)
    return batches


@pytest.mark.parametrize("columns", [None, ["index", "got_logprobs"], ["tag_turn"]])
def test_the_batches_together_are_the_table(run, columns):
    # windows of 40 items whose batches of 8 are written in any order, as the engine does; 3 batches in a part
    starts = [
        start
        for window in range(0, 400, 40)
        for start in random.Random(window).sample(range(window, window + 40, 8), 5)
    ]
    for at in range(0, len(starts), 3):
        with run.writer(KEY) as writer:
            for start in starts[at : at + 3]:
                writer.append(rows(start, start + 8))
    batches = streamed(run, columns)
    assert_frame_equal(pl.concat(batches), run.table(KEY, columns=columns))
    # 50 rows that wait, the part that makes them more, and what overlaps with the next one
    assert len(batches) >= 4
    assert max(map(len, batches)) < 50 + 24 + 40


def test_of_two_records_of_one_index_the_later_counts(run):
    append(run, 0, 100, salt="first")
    append(run, 60, 200, salt="second")
    append(run, 30, 40, salt="third")  # a damaged part, asked again much later
    append(run, 35, 70, salt="fourth")
    table = pl.concat(streamed(run))
    assert_frame_equal(table, run.table(KEY))
    assert table["index"].to_list() == list(range(200))
    salts = table["ask_text"].str.extract(r"\.(\w+)$").to_list()
    assert salts == ["first"] * 30 + ["third"] * 5 + ["fourth"] * 35 + ["second"] * 130


def test_columns_that_differ_between_parts_have_the_types_of_the_table(run):
    # a tag that only later items have, and one that is a whole number in some parts
    for start, tags in ((0, {"n": 1}), (60, {"n": 1.5}), (120, {"n": 2, "late": "x"})):
        with run.writer(KEY) as writer:
            writer.append(
                [
                    dataclasses.replace(row, item=dataclasses.replace(row.item, tags=tags))
                    for row in rows(start, start + 60)
                ]
            )
    batches = streamed(run)
    assert len(batches) == 3
    assert_frame_equal(pl.concat(batches), run.table(KEY))


def test_what_cannot_be_read_is_named(run):
    with pytest.raises(RecordsError, match="no records for"):
        next(run.batches(KEY))
    append(run, 0, 60)
    with pytest.raises(RecordsError, match="no column 'got_logprob'"):
        next(run.batches(KEY, columns=["got_logprob"]))
    append(run, 60, 120)
    reading = run.batches(KEY)
    next(reading)
    path = parts(run)[1]
    path.write_bytes(path.read_bytes()[:-1])  # damaged while the stage is being read
    with pytest.raises(RecordsError, match="damaged record"):
        next(reading)
