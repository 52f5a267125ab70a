"""Checksums of a model's files: read once per process, and again when a file has changed."""

from __future__ import annotations

import hashlib
import os

import pytest

from clinometer.models.files import checksum, weights_checksum
from clinometer.models.load import load_model

OLD = (1_000_000_000, 1_000_000_000)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def opened(monkeypatch):
    """Count which files are read."""
    from pathlib import Path

    real, names = Path.open, []

    def count(path, *args, **options):
        names.append(path.name)
        return real(path, *args, **options)

    monkeypatch.setattr(Path, "open", count)
    return names


def written(path, data, time=OLD):
    path.write_bytes(data)
    os.utime(path, time)
    return path


def test_an_unchanged_file_is_read_once(tmp_path, opened):
    file = written(tmp_path / "model.safetensors", b"weights")
    opened.clear()
    assert {checksum(file), checksum(file), weights_checksum(tmp_path)} == {sha256(b"weights")}
    assert opened == ["model.safetensors"]


def test_a_file_that_looks_different_is_read_again(tmp_path):
    file = written(tmp_path / "a", b"first")
    assert checksum(file) == sha256(b"first")
    written(file, b"other", time=(1, 2))  # as long as before, at another time
    assert checksum(file) == sha256(b"other")
    written(file, b"longer text", time=(1, 2))  # at the same time, of another length
    assert checksum(file) == sha256(b"longer text")
    written(tmp_path / "b", b"other words", time=(1, 2)).replace(file)  # same length and time, but another file
    assert checksum(file) == sha256(b"other words")


def test_a_file_written_a_moment_ago_is_not_trusted_to_look_different(tmp_path):
    """Two writes may fall into one tick of the file system's clock."""
    file = tmp_path / "a"
    file.write_bytes(b"first")
    before = file.stat()
    assert checksum(file) == sha256(b"first")
    file.write_bytes(b"other")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert checksum(file) == sha256(b"other")


def test_names_count_where_a_folder_is_given(tmp_path):
    (tmp_path / "below").mkdir()
    files = [written(tmp_path / "below" / "a", b"1"), written(tmp_path / "b", b"2")]
    assert checksum(*files) == sha256(b"12")
    assert checksum(*files, below=tmp_path) == sha256(b"below/a\0" + b"1" + b"b\0" + b"2")


def test_loading_a_model_twice_reads_its_weights_for_the_checksum_once(tiny_folder, opened):
    folder = tiny_folder("bert")
    for file in folder.iterdir():
        os.utime(file, OLD)
    opened.clear()
    first, second = (load_model(str(folder), device="cpu").info for _ in range(2))
    assert first == second
    assert opened.count("model.safetensors") == 1
