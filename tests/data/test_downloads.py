"""Downloading from a server that misbehaves in every way we know: one clear sentence, and no file is left."""

from __future__ import annotations

import hashlib
import socket
import threading
import time

import pytest
from tests.local_server import Script, serve

from clinometer.data.downloads import download, http_opener
from clinometer.errors import DataError

BODY = b"word\n" * 40_000  # more than one piece
CHECKSUM = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def scripts(path):
    return {
        "/good": Script(BODY),
        "/unsized": Script(BODY, length=-1),
        "/moved": Script(status=302, headers={"Location": "/good"}),
        "/circle": Script(status=302, headers={"Location": "/circle"}),
        "/to-file": Script(status=302, headers={"Location": "file:///etc/passwd"}),
        "/to-ftp": Script(status=302, headers={"Location": "ftp://127.0.0.1/x"}),
        "/cut": Script(BODY[:1000], length=len(BODY)),
        "/silent": Script(b"word", length=100, stall=True),
        "/error": Script(b"sorry", status=500),
    }.get(path, Script(b"<html>not here</html>", status=404))


@pytest.fixture(scope="module")
def server():
    with serve(scripts) as server:
        yield server


def test_a_whole_file(server, tmp_path):
    target, seen = tmp_path / "file", []
    download(server.url + "/good", target, sha256=CHECKSUM.upper(), on_bytes=lambda *n: seen.append(n))
    assert target.read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert server.agents[-1].startswith("clinometer")


@pytest.mark.parametrize("path", ["/unsized", "/moved"])
def test_a_size_unknown_and_a_redirect(server, tmp_path, path):
    download(server.url + path, tmp_path / "file", sha256=CHECKSUM)
    assert (tmp_path / "file").read_bytes() == BODY


@pytest.mark.parametrize(
    ("path", "options", "complaint"),
    [
        ("/good", {"sha256": "0" * 64}, f"SHA-256 {CHECKSUM}, expected {'0' * 64}"),
        ("/good", {"most_bytes": 100_000}, "more than 100,000 bytes"),
        ("/good", {"most_seconds": -1.0}, "is too slow"),
        ("/missing", {}, "answers 404 Not Found"),
        ("/error", {}, "answers 500"),
        ("/circle", {}, "redirects in a circle"),
        ("/to-file", {}, "answers 302"),
        ("/to-ftp", {}, "unknown url type: ftp"),
        ("/cut", {}, "broke off after 1,000 of 200,000 bytes"),
        ("/silent", {"stalled_after": 0.1}, "was silent for 0.1 s after 4 bytes"),
    ],
)
def test_a_bad_download_leaves_nothing(server, tmp_path, path, options, complaint):
    with pytest.raises(DataError) as caught:
        download(server.url + path, tmp_path / "file", **options)
    assert complaint in str(caught.value)
    assert server.url + path in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def listening(behave):
    """A bare socket for what no HTTP server does on purpose."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        with listener:
            connection, _ = listener.accept()
            with connection:
                behave(connection)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/x", thread


def test_a_server_that_never_answers(tmp_path):
    release = threading.Event()
    url, thread = listening(lambda _: release.wait(30))
    try:
        with pytest.raises(DataError, match=r"silent|did not answer"):
            download(url, tmp_path / "file", stalled_after=0.1)
    finally:
        release.set()
        thread.join()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_sends_a_byte_now_and_then(tmp_path):
    done = threading.Event()

    def drip(connection):
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not done.wait(0.02):
            try:
                connection.sendall(b"x")
            except OSError:
                return

    url, thread = listening(drip)
    start = time.monotonic()
    try:
        with pytest.raises(DataError, match="is too slow"):
            download(url, tmp_path / "file", stalled_after=5.0, most_seconds=0.2)
    finally:
        done.set()
        thread.join()
    assert time.monotonic() - start < 5.0  # the deadline ended it, not the silence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (b"hello\r\n\r\n", "cannot be downloaded"),
        (b"", "cannot be downloaded"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf",
            "cannot be downloaded (IncompleteRead",
        ),
    ],
)
def test_what_is_not_http(tmp_path, reply, complaint):
    def answer(connection):
        connection.recv(1000)
        connection.sendall(reply)

    url, thread = listening(answer)
    with pytest.raises(DataError) as caught:
        download(url, tmp_path / "file", stalled_after=5.0)
    thread.join()
    assert complaint in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_nobody_listens(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(DataError, match=r"Connection refused.*clinometer data add"):
        download(f"http://127.0.0.1:{port}/x", tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "x", "", "http://", "http://a b/"]
)
def test_other_addresses_are_refused_before_anything_is_opened(tmp_path, url):
    with pytest.raises(DataError, match="is not an address"):
        download(url, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("checksum", ["abc", "z" * 64, "0" * 63])
def test_a_checksum_that_is_none(tmp_path, checksum):
    with pytest.raises(DataError, match="64 hexadecimal digits"):
        download("http://127.0.0.1:1/x", tmp_path / "file", sha256=checksum)


def test_a_place_that_cannot_be_written(server, tmp_path):
    with pytest.raises(DataError, match="cannot be downloaded to"):
        download(server.url + "/good", tmp_path / "no-such-folder" / "file")


def test_an_interrupt_leaves_nothing(server, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(server.url + "/good", tmp_path / "file", on_bytes=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_the_opener_knows_http_only():
    schemes = set(http_opener().handle_open)
    assert {"http", "https", "unknown"} <= schemes
    assert not {"file", "ftp", "data"} & schemes
