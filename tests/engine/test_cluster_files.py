"""Weights on their way to another machine: once, whole, or not at all."""

from __future__ import annotations

import threading

import pytest

from clinometer.engine.cluster import files
from clinometer.engine.cluster.files import FileServer, fetched
from clinometer.errors import ModelError


@pytest.fixture
def server(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    (folder / "config.json").write_text("{}")
    (folder / "1_Pooling" / "config.json").write_text("{1}")
    (folder / "empty").write_bytes(b"")
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "there")
    monkeypatch.setattr(files, "PIECE", 1000)
    return FileServer(str(folder))


def test_a_model_is_brought_once_however_many_workers_want_it(server, tmp_path):
    pieces, found = [], []

    def piece(name, start):
        pieces.append((name, start))
        return server.piece(name, start)

    threads = [
        threading.Thread(target=lambda: found.append(fetched("abc", files=server.files, piece=piece)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(pieces) == len(set(pieces)) == 11 + 2, "ten thousand bytes in pieces of one thousand, and two files"
    here = tmp_path / "model"
    brought = {path.relative_to(found[0]): path.read_bytes() for path in found[0].rglob("*") if path.is_file()}
    assert brought == {path.relative_to(here): path.read_bytes() for path in here.rglob("*") if path.is_file()}


def test_what_is_cut_short_leaves_nothing(server, tmp_path):
    def piece(name, start):
        return b"" if start >= 3000 else server.piece(name, start)

    with pytest.raises(ModelError, match=r"model\.safetensors was cut short"):
        fetched("abc", files=server.files, piece=piece)
    assert [path.name for path in (tmp_path / "there" / "cluster").iterdir()] == ["abc.lock"]


def test_a_server_gives_out_nothing_else(server, tmp_path):
    (tmp_path / "secret").write_text("key")
    for name in ("../secret", str(tmp_path / "secret"), "absent"):
        with pytest.raises(ModelError, match="is not a file of this model"):
            server.piece(name, 0)
