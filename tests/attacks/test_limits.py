"""Files that ask too much of a machine end in one sentence and exit code 2, soon, and in little memory."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import time

import pytest

from tests.cli.test_bad_input import refuses

SPEC = 'version = 1\nprobes = ["counterexamples"]\nmodels = [{name = "builtin:masked"}]\n'
_MEASURED = """
import re, sys
from clinometer.cli.main import main
sys.argv = ["clinometer", *sys.argv[1:]]
try:
    main()
finally:  # not getrusage: that begins with the peak of the parent
    print("peak", re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""
posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


def peak_of(*arguments: object) -> tuple[int, str, float]:
    """Run a command in a child: exit code, what it said, and its peak in megabytes."""
    said = subprocess.run(
        [sys.executable, "-c", _MEASURED, *map(str, arguments)],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    *lines, peak = said.stderr.strip().splitlines()
    return said.returncode, "\n".join(lines), int(peak.split()[1]) / 1024


# -- files that unpack to far more than they are


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the peak from /proc")
@pytest.mark.parametrize("suffix", [".xz", ".gz"])
def test_a_small_file_that_unpacks_to_a_large_one(tmp_path, suffix):
    """Forty megabytes of lines in a few kilobytes; three gigabytes would take 75 times as many."""
    bomb = tmp_path / f"words.csv{suffix}"
    with (lzma.open if suffix == ".xz" else gzip.open)(bomb, "wb") as file:
        for _ in range(40):
            file.write(b"word,neutral\n" * 80_000)
    assert bomb.stat().st_size < 200_000
    code, said, peak = peak_of("audit", "--probe", "sentiment_words", "--neutral", bomb)
    assert code == 2
    assert "unpacks to more than" in said
    assert said.count("\n") == 0
    assert peak < 1000, peak  # libraries alone take most of it


def test_a_packed_corpus_that_never_ends(tmp_path):
    from clinometer.data.corpora import read_corpus
    from clinometer.errors import DataError

    bomb = tmp_path / "corpus.txt.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as file:
        for _ in range(40):
            file.write(b"a" * 1_000_000)  # one line
    with pytest.raises(DataError, match="unpacks to more than"):
        list(read_corpus([bomb]))


def test_a_packed_text_of_ordinary_size_is_read(tmp_path):
    from clinometer.data.files import read_text

    file = tmp_path / "words.txt.xz"
    file.write_bytes(lzma.compress(b"word\n" * 1_000_000))
    assert len(read_text(file)) == 5_000_000


def test_a_file_of_more_lines_than_any_list_has(tmp_path, monkeypatch, clinometer):
    from clinometer import limits

    monkeypatch.setattr(limits, "LINES", 10)
    (tmp_path / "words.csv").write_text("word,label\n" + "a,neutral\n" * 20)
    refuses(clinometer("audit", "--probe", "sentiment_words", "--neutral", "words.csv"), "more than 10 lines")


def test_a_parquet_file_that_unpacks_to_a_large_one(tmp_path, monkeypatch, clinometer):
    import polars as pl

    from clinometer import limits

    monkeypatch.setattr(limits, "VALUES", 500)
    pl.DataFrame({"text": ["good " * 100] * 1000, "label": ["positive"] * 1000}).write_parquet(
        tmp_path / "reviews.parquet", compression="zstd"
    )
    said = clinometer("audit", "--probe", "sentiment_words", "--reviews", "reviews.parquet")
    refuses(said, "reviews.parquet", "1,000 values")


# -- devices, pipes and holes

GIVEN = {
    "spec": ("audit", "--spec"),
    "words": ("audit", "--probe", "sentiment_words", "--neutral"),
    "reviews": ("audit", "--probe", "sentiment_words", "--reviews"),
    "data": ("data", "add", "mpqa"),
    "human": ("audit", "--probe", "stereotypes", "--set"),
    "sheet": ("annotate", "export"),
}


def given(kind: str, file: object) -> list[str]:
    *before, last = GIVEN[kind]
    if kind == "human":
        return [*before, last, f'stereotypes.human_file="{file}"']
    return [*before, last, str(file), *(["--out", "sheet.csv"] if kind == "sheet" else [])]


@posix
@pytest.mark.parametrize("kind", sorted(GIVEN))
@pytest.mark.parametrize("what", ["device", "pipe", "holes"])
def test_no_file_is_read_without_end(clinometer, tmp_path, kind, what):
    suffix = ".jsonl" if kind == "reviews" else ".txt" if kind == "sheet" else ".csv"
    file = tmp_path / f"file{suffix}"
    if what == "device":
        file.symlink_to("/dev/zero")
    elif what == "pipe":
        os.mkfifo(file)
    else:
        with file.open("wb") as opened:
            opened.truncate(50_000_000_000)  # takes no room on disk
    begun = time.monotonic()
    refuses(clinometer(*given(kind, file)), "file")
    assert time.monotonic() - begun < 5


@posix
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "card.toml"])
@pytest.mark.parametrize("what", ["device", "pipe"])
def test_a_model_folder_with_a_device_or_a_pipe(clinometer, tmp_path, name, what):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForMaskedLM"]}')
    (folder / "model.safetensors").write_bytes(b"")
    (folder / name).unlink(missing_ok=True)
    if what == "device":
        (folder / name).symlink_to("/dev/zero")
    else:
        os.mkfifo(folder / name)
    refuses(clinometer("audit", folder, "--probe", "counterexamples"), name, "not an ordinary file")


# -- brackets within brackets, and numbers of thousands of digits

DEEP_JSON, DEEP_TOML = "[" * 200_000, "a = " + "[" * 20_000
HUGE = "1" * 6000


@pytest.mark.parametrize("text", [DEEP_TOML, f"version = {HUGE}", "a." * 2000 + "b = 1", "a = {b = " * 5000])
def test_a_deep_spec(clinometer, tmp_path, text):
    (tmp_path / "spec.toml").write_text(text)
    refuses(clinometer("audit", "--spec", "spec.toml"), "spec.toml")


@pytest.mark.parametrize("value", ["[" * 20_000, HUGE, "1" + "0" * 400])
def test_a_deep_setting(clinometer, value):
    refuses(clinometer("audit", "--probe", "counterexamples", "--set", f"counterexamples.backgrounds={value}"))


@pytest.mark.parametrize("text", [DEEP_JSON, '{"model_type": ' + "[" * 200_000, f'{{"a": {HUGE}}}'])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
def test_deep_json_in_a_model(clinometer, tmp_path, name, text):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForMaskedLM"]}')
    (folder / ("model.safetensors" if name == "config.json" else name)).write_text("{}")
    (folder / name).write_text(text)
    refuses(clinometer("audit", folder, "--probe", "counterexamples"), "model")


@pytest.mark.parametrize(("kind", "suffix"), [("reviews", ".jsonl"), ("human", ".csv"), ("human", ".json")])
def test_deep_json_in_data(clinometer, tmp_path, kind, suffix):
    file = tmp_path / f"file{suffix}"
    file.write_text(DEEP_JSON)
    refuses(clinometer(*given(kind, file)), "file")


def test_deep_json_in_a_corpus(tmp_path):
    from clinometer.data.corpora import read_corpus
    from clinometer.errors import DataError

    (tmp_path / "corpus.jsonl").write_text(DEEP_JSON)
    with pytest.raises(DataError, match="not JSON"):
        list(read_corpus([tmp_path / "corpus.jsonl"]))


# -- models of a million layers


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_hidden_layers", 10**6),
        ("num_hidden_layers", -1),
        ("num_hidden_layers", 10**30),
        ("hidden_size", 10**9),
        ("vocab_size", 10**12),
        ("max_position_embeddings", 10**12),
        ("max_position_embeddings", 10**7),
    ],
)
def test_a_config_of_enormous_size(tmp_path, field, value):
    from clinometer.errors import ModelError
    from clinometer.models.load import load_model
    from tests.models.tiny import tiny

    folder = tiny("bert", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, field: value}))
    begun = time.monotonic()
    with pytest.raises(ModelError, match=r"config\.json"):
        load_model(str(folder), device="cpu")
    assert time.monotonic() - begun < 20


# -- records


def _run_with_part(folder, columns: dict):
    """A run of one part that a stranger made: its checksum and its owner are right."""
    import hashlib

    import pyarrow as pa
    import pyarrow.parquet as pq

    from tests.store.store_samples import KEY, new_run

    run = new_run(folder)
    place = run.path / "records" / KEY.folder
    place.mkdir(parents=True)
    owner = {"run_id": run.run_id, "probe": KEY.probe, "model": KEY.model, "stage": KEY.stage}
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pq.ParquetWriter(sink, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"clinometer": json.dumps(owner)})
    data = bytes(sink.getvalue())
    (place / f"part-000001-{hashlib.sha256(data).hexdigest()[:32]}.parquet").write_bytes(data)
    return run, KEY


def _keys(count: int):
    import pyarrow as pa

    return pa.array([bytes(16)] * count, pa.binary(16))


def test_a_record_at_a_place_beyond_all_others(tmp_path):
    """Seventeen bytes for each place up to the billionth would be 17 GB."""
    from clinometer.errors import InputError

    run, key = _run_with_part(tmp_path / "run", {"index": [0, 10**9], "key": _keys(2)})
    with pytest.raises(InputError, match="place 1,000,000,000"):
        run.done(key)


@pytest.mark.parametrize("index", [[-1, 0], ["0", "1"], [0.5, 1.5], [None, 1]])
def test_a_record_at_no_place(tmp_path, index):
    run, key = _run_with_part(tmp_path / "run", {"index": index, "key": _keys(2)})
    (damaged,) = run.done(key).damaged
    assert "cannot be read" in damaged.reason


@pytest.mark.parametrize("columns", [{"index": [0]}, {"key": _keys(1)}, {"index": [0], "key": ["x"]}])
def test_records_without_their_columns(tmp_path, columns):
    run, key = _run_with_part(tmp_path / "run", columns)
    assert len(run.done(key).damaged) == 1


def test_records_that_unpack_to_more_than_the_memory(tmp_path, monkeypatch):
    """A column may repeat one value a hundred million times in a few bytes; here a hundred thousand times."""
    import numpy as np
    import pyarrow as pa

    many = pa.ListArray.from_arrays(pa.array([0, 100_000], pa.int32()), pa.array(np.zeros(100_000, np.float32)))
    run, key = _run_with_part(tmp_path / "run", {"index": [0], "key": _keys(1), "got_logprobs": many})
    monkeypatch.setattr("clinometer.limits.VALUES", 99_999)
    assert sum(path.stat().st_size for path in run.path.rglob("*.parquet")) < 10_000
    (damaged,) = run.done(key).damaged
    assert "values" in damaged.reason


# -- servers


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://[::1]:99999/", "http://x:0/", "http://x:y/", "http://"]
)
def test_half_an_address(clinometer, address):
    refuses(clinometer("data", "get", "stereotypes", "--url", address), "is not an address")
    said = clinometer(
        "data", "collect-stereotypes", "--engine", "google", "--address", f"google={address}", "--out", "x"
    )
    refuses(said, "is not an address")


def _raw_server(answer):
    """A server that sends what it likes, byte by byte, until the client leaves."""
    import contextlib
    import socket
    import threading

    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                with client, contextlib.suppress(OSError):
                    client.recv(65536)
                    answer(client)

    threading.Thread(target=serve, daemon=True).start()
    return listening, f"http://127.0.0.1:{listening.getsockname()[1]}"


def _drip_headers(client) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
    for _ in range(600):
        client.sendall(b"a")
        time.sleep(0.05)


def test_headers_that_never_end(tmp_path):
    from clinometer.data.downloads import download
    from clinometer.errors import DataError

    listening, url = _raw_server(_drip_headers)
    begun = time.monotonic()
    with listening, pytest.raises(DataError, match="too slow"):
        download(url, tmp_path / "file", stalled_after=0.5, most_seconds=0.6)
    assert time.monotonic() - begun < 3
    assert not (tmp_path / "file").exists()


def test_headers_of_a_search_engine_that_never_end():
    import random
    from dataclasses import replace

    from clinometer.data.suggestions.asking import Asker, Manners, get_engine

    listening, url = _raw_server(_drip_headers)
    begun = time.monotonic()
    with listening:
        manners = Manners(delay=0, timeout=0.2, attempts=1)
        reply = Asker(replace(get_engine("google"), address=url), manners=manners, rng=random.Random(0)).ask("why")
    assert "too slow" in reply.failure or "no answer within" in reply.failure
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize("length", ["9" * 6000, "-5", "²", "1e9", ""])
def test_a_length_that_is_not_a_number(tmp_path, length):
    from clinometer.data.downloads import download

    def answer(client) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\nhello"
        client.sendall(head.encode("latin-1", "replace"))

    listening, url = _raw_server(answer)
    with listening:
        download(url, tmp_path / "file", stalled_after=2, most_seconds=5)
    assert (tmp_path / "file").read_bytes() == b"hello"


def test_a_redirect_to_half_an_address(tmp_path):
    from clinometer.data.downloads import download
    from clinometer.errors import DataError

    def answer(client) -> None:
        client.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n")

    listening, url = _raw_server(answer)
    with listening, pytest.raises(DataError, match="cannot be downloaded"):
        download(url, tmp_path / "file", stalled_after=2, most_seconds=5)
