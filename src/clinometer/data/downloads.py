"""Downloading one file: limited in time and size, checked against its SHA-256, complete or not at all."""

from __future__ import annotations

import functools
import hashlib
import http.client
import io
import math
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clinometer.errors import DataError

_PIECE = 64 * 1024

# bytes so far, bytes in all (0: the server does not say)
OnBytes = Callable[[int, int], None]


def http_opener(*, deadline: Callable[[], float] | None = None) -> urllib.request.OpenerDirector:
    """Return an opener for http and https only: no file: or ftp:, not even by a redirect.

    `deadline` says until when (in `time.monotonic`) an answer may take in all, headers included: a server that
    sends a byte now and then would outlast every limit on its silence.
    """
    opener = urllib.request.OpenerDirector()
    until = deadline or (lambda: math.inf)
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        lambda: _Http(until),
        lambda: _Https(until),
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


class _TooLate(TimeoutError):
    """The answer took longer than it may in all."""


class _Stream(io.RawIOBase):
    """Reads a socket until a moment, however often it sends a byte."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._socket, self._until, self._silence = sock, until, sock.gettimeout()
        self._raw = sock.makefile("rb", buffering=0)  # the socket stays open as long as this is

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise _TooLate
        silence = self._silence if self._silence is not None else left
        self._socket.settimeout(min(silence, left) if math.isfinite(left) else self._silence)
        try:
            return self._raw.readinto(buffer) or 0
        except TimeoutError:
            if time.monotonic() >= self._until:
                raise _TooLate from None
            raise

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer that is read by `_Stream`."""

    def __init__(self, sock: socket.socket, *args: Any, until: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        usual, self.fp = self.fp, io.BufferedReader(_Stream(sock, until))
        usual.close()


class _Http(urllib.request.HTTPHandler):
    def __init__(self, until: Callable[[], float]) -> None:
        super().__init__()
        self._until = until

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connected(http.client.HTTPConnection, self._until()), request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, until: Callable[[], float]) -> None:
        super().__init__()
        self._until = until

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connected(http.client.HTTPSConnection, self._until()), request)


def _connected(kind: type[http.client.HTTPConnection], until: float) -> Any:
    """Return what makes a connection whose answers end at a moment."""

    def make(host: str, **options: Any) -> http.client.HTTPConnection:
        connection = kind(host, **options)
        connection.response_class = functools.partial(_Response, until=until)  # type: ignore[assignment]
        return connection

    return make


def user_agent() -> str:
    """Return the name that Clinometer gives to a server."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"clinometer/{version('clinometer')}"
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "clinometer"


def check_address(url: str) -> str:
    """Return an http or https address unchanged; raise DataError for anything else."""
    try:
        parts = urllib.parse.urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, a port that is none
        sound = False
    if not sound or re.search(r"[\s\x00-\x1f]", url):
        raise DataError(f"{url!r} is not an address; expected http://… or https://…")
    return url


def length_of(header: str) -> int:
    """Return how many bytes a server announces; 0 where it says nothing that can be one.

    >>> length_of("1234"), length_of("many"), length_of("9" * 6000)
    (1234, 0, 0)
    """
    return int(header) if header.isascii() and header.isdecimal() and len(header) < 19 else 0


def download(
    url: str,
    target: Path,
    *,
    sha256: str = "",
    most_bytes: int = 500_000_000,
    stalled_after: float = 30.0,
    most_seconds: float = 1800.0,
    on_bytes: OnBytes | None = None,
) -> None:
    """Download an address to `target`; on any failure raise DataError and leave no file.

    `stalled_after` is how long the server may stay silent; `most_seconds` how long everything may take.
    """
    check_address(url)
    if sha256 and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise DataError(f"{sha256!r} is not a SHA-256; expected 64 hexadecimal digits")
    try:
        found = _fetch(url, target, most_bytes, stalled_after, time.monotonic() + most_seconds, on_bytes)
        if sha256 and found != sha256.lower():
            raise DataError(
                f"'{url}' sent a file with SHA-256 {found}, expected {sha256.lower()}; nothing was kept: "
                "look at what is at that address, and give --sha256 if it is what you want"
            )
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _fetch(
    url: str, target: Path, most_bytes: int, stalled_after: float, deadline: float, on_bytes: OnBytes | None
) -> str:
    request = urllib.request.Request(url, headers={"User-Agent": user_agent()})
    digest, done = hashlib.sha256(), 0
    try:
        opener = http_opener(deadline=lambda: deadline)
        with opener.open(request, timeout=stalled_after) as response, open(target, "wb") as file:
            total = length_of(response.headers.get("Content-Length", ""))
            # read1 returns what has arrived: a server that sends a byte now and then cannot outlast the deadline
            while piece := response.read1(_PIECE):
                done += len(piece)
                if done > most_bytes:
                    raise DataError(f"'{url}' sends more than {most_bytes:,} bytes; nothing was kept")
                if time.monotonic() > deadline:
                    raise DataError(
                        f"'{url}' is too slow: {done:,} bytes so far; nothing was kept: try again later"
                    )
                digest.update(piece)
                file.write(piece)
                if on_bytes is not None:
                    on_bytes(done, total)
    except urllib.error.HTTPError as error:
        error.close()
        loop = "infinite loop" in str(error.reason)
        reason = "redirects in a circle" if loop else f"answers {error.code} {error.reason}"
        raise DataError(f"'{url}' {reason}; check the address, or give another with --url") from None
    except _TooLate:
        raise DataError(f"'{url}' is too slow: {done:,} bytes so far; nothing was kept: try again later") from None
    except TimeoutError:
        raise DataError(
            f"'{url}' was silent for {stalled_after:g} s after {done:,} bytes; nothing was kept: try again later"
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, ValueError) as error:
        if isinstance(getattr(error, "reason", None), _TooLate):
            raise DataError(f"'{url}' is too slow: its headers never end; try again later") from None
        if isinstance(getattr(error, "reason", None), TimeoutError):
            raise DataError(f"'{url}' did not answer within {stalled_after:g} s; try again later") from None
        raise DataError(
            f"'{url}' cannot be downloaded ({_reason(error)}); check the network, or download it elsewhere and "
            "use clinometer data add"
        ) from None
    except OSError as error:
        raise DataError(f"'{url}' cannot be downloaded to '{target}' ({_reason(error)})") from None
    if total and done < total:  # http.client does not report a closed connection when it is read piece by piece
        raise DataError(f"'{url}' broke off after {done:,} of {total:,} bytes; nothing was kept: try again")
    return digest.hexdigest()


def _reason(error: Exception) -> str:
    """Return the cause on one line."""
    reason = getattr(error, "reason", error)
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return " ".join(str(text).split())
