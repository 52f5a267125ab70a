from __future__ import annotations

import math
import sqlite3

import pytest

from clinometer.engine import AnswerCache
from clinometer.errors import StoreError
from clinometer.types import (
    Classify,
    ClassifyAnswer,
    Embed,
    EmbedAnswer,
    Fill,
    LogLikelihood,
    LogLikelihoodAnswer,
    Sample,
    TextAnswer,
    WordAnswer,
)

KNOWN = {
    b"1" * 16: (Fill(text="[MASK]"), WordAnswer(words=("é", "b"), logprobs=(-0.1, math.nan))),
    b"2" * 16: (Sample(prefix="a", n=2), TextAnswer(texts=("x\n", ""))),
    b"3" * 16: (LogLikelihood(text="a"), LogLikelihoodAnswer(logprob=-1.5, tokens=3)),
    b"4" * 16: (Classify(text="a"), ClassifyAnswer(negative=0.25, neutral=math.nan, positive=0.75)),
    b"5" * 16: (Embed(text="a"), EmbedAnswer(vector=(0.6, -0.8))),
}


def fill(cache):
    cache.add(list(KNOWN), [answer for _, answer in KNOWN.values()])


def test_every_kind_of_answer_comes_back_as_it_was(tmp_path):
    cache = AnswerCache(tmp_path)
    fill(cache)
    cache.close()
    again = AnswerCache(tmp_path)
    found = again.look_up({key: request for key, (request, _) in KNOWN.items()})
    again.close()
    assert repr(found) == repr({key: (answer, {}) for key, (_, answer) in KNOWN.items()})  # repr: NaN equals NaN


def test_what_is_not_known_is_not_answered(tmp_path):
    cache = AnswerCache(tmp_path)
    fill(cache)
    assert cache.look_up({b"9" * 16: Embed(text="a")}) == {}
    cache.close()


def test_more_keys_than_one_statement_takes(tmp_path):
    cache = AnswerCache(tmp_path)
    keys = [number.to_bytes(16, "big") for number in range(1201)]
    cache.add(keys, [EmbedAnswer(vector=(float(number),)) for number in range(1201)])
    found = cache.look_up(dict.fromkeys(keys, Embed(text="a")))
    assert [found[key][0].vector[0] for key in keys] == list(range(1201))
    cache.close()


def test_a_damaged_value_is_asked_again_not_believed(tmp_path):
    cache = AnswerCache(tmp_path)
    fill(cache)
    cache.close()
    with sqlite3.connect(tmp_path / "answers.sqlite") as db:
        (value,) = db.execute("SELECT value FROM answers WHERE key = ?", (b"3" * 16,)).fetchone()
        db.execute("UPDATE answers SET value = ? WHERE key = ?", (value.replace(b"1.5", b"1.6"), b"3" * 16))
    db.close()
    cache = AnswerCache(tmp_path)
    assert cache.look_up({key: KNOWN[key][0] for key in (b"3" * 16, b"2" * 16)}).keys() == {b"2" * 16}
    cache.close()


def test_a_damaged_file_is_a_clear_error(tmp_path):
    cache = AnswerCache(tmp_path)
    cache.add([number.to_bytes(16, "big") for number in range(5000)], [EmbedAnswer(vector=(1.0,))] * 5000)
    cache.close()
    file = tmp_path / "answers.sqlite"
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)
    cache = AnswerCache(tmp_path)
    with pytest.raises(StoreError, match="delete it, or run without --cache"):
        cache.look_up({number.to_bytes(16, "big"): Embed(text="a") for number in range(5000)})
    cache.close()


def test_a_folder_that_cannot_be_used_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="cannot use the cache folder"):
        AnswerCache(tmp_path / "file")
    (tmp_path / "answers.sqlite").write_bytes(b"this is not a database, whatever its name says" * 40)
    with pytest.raises(StoreError, match="cannot use the cache folder"):
        AnswerCache(tmp_path)
