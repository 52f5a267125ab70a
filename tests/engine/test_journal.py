"""The journal: what was appended is there again, what is damaged is dropped and counted."""

from __future__ import annotations

import errno

import pytest

from clinometer.engine import journal as journal_module
from clinometer.engine.journal import NAME, Journal, Place
from clinometer.errors import DiskFullError
from clinometer.models.protocols import Reply

REPLIES = {
    Place(bytes([number]) * 16, 0): Reply(content={"texts": [f"é {number}"]}, source={"model": "m", "tries": 1})
    for number in range(5)
}


def filled(folder):
    journal = Journal(folder, run=folder)
    for place, reply in REPLIES.items():
        journal.append(place, reply)
    journal.close()
    return folder / NAME


def read(folder):
    journal = Journal(folder, run=folder)
    return journal.read(), journal.damaged


def test_what_was_appended_is_read_again(tmp_path):
    filled(tmp_path)
    assert read(tmp_path) == (REPLIES, 0)


@pytest.mark.parametrize("kept", [0, 1, 30, -1])
def test_a_line_that_was_cut_is_dropped(tmp_path, kept):
    file = filled(tmp_path)
    *whole, last = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(whole) + last[:kept])
    assert read(tmp_path) == (dict(list(REPLIES.items())[:4]), 0)
    # and what comes next is not spoiled by it
    journal = Journal(tmp_path, run=tmp_path)
    journal.append(*list(REPLIES.items())[4])
    journal.close()
    assert read(tmp_path) == (REPLIES, 0)


def test_a_flipped_byte_costs_its_line_and_no_other(tmp_path):
    file = filled(tmp_path)
    data = bytearray(file.read_bytes())
    middle = data.index(b"\n") + 30
    data[middle] ^= 1
    file.write_bytes(data)
    replies, damaged = read(tmp_path)
    assert damaged == 1
    assert replies == {place: reply for number, (place, reply) in enumerate(REPLIES.items()) if number != 1}


def test_a_journal_can_be_cut_down_and_goes_when_it_is_empty(tmp_path):
    file = filled(tmp_path)
    journal = Journal(tmp_path, run=tmp_path)
    some = dict(list(REPLIES.items())[:1])
    journal.replace(some)
    assert read(tmp_path) == (some, 0)
    journal.replace({})
    assert not file.exists()


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch):
    file = filled(tmp_path)
    before = file.read_bytes()

    class Full:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def write(self, data):
            self.inner.write(data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")

    real = journal_module._write_whole
    monkeypatch.setattr(journal_module, "_write_whole", lambda file, line: real(Full(file), line))
    journal = Journal(tmp_path, run=tmp_path)
    with pytest.raises(DiskFullError, match="resume"):
        journal.append(*next(iter(REPLIES.items())))
    journal.close()
    assert file.read_bytes() == before
