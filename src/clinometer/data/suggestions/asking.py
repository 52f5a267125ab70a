"""Asking one search engine politely: not too often, again after a while when it is busy, and not for ever."""

from __future__ import annotations

import datetime
import email.utils
import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clinometer.data.downloads import http_opener, user_agent
from clinometer.data.suggestions.engines import Engine, OtherFormat

_BUSY = {408, 425, 429, 500, 502, 503, 504}  # worth asking again later; any other refusal is an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How an engine is treated. Seconds; a retry waits `delay` × 1, 2, 4, … and up to half as much again."""

    delay: float = 1.0  # between the end of one request and the start of the next
    timeout: float = 10.0
    attempts: int = 5
    longest_wait: float = 120.0  # a server that wants a longer pause is left alone until the next time
    most_bytes: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of one question: the decoded JSON, or why there is none."""

    answer: Any = None
    failure: str = ""
    leave_alone: bool = False  # the server asks for a long pause: no other question either


class _Busy(Exception):
    """Ask again later; the server may say when."""

    def __init__(self, reason: str, *, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _Refused(Exception):
    """Asking again would bring nothing else."""


class Asker:
    """Asks one engine, question after question."""

    def __init__(
        self,
        engine: Engine,
        *,
        manners: Manners,
        rng: random.Random,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine = engine
        self._manners, self._rng, self._sleep, self._now = manners, rng, sleep, now
        self._opener = http_opener()
        self._free_at = now()

    def ask(self, question: str) -> Reply:
        """Return the engine's answer, or the reason why it has none after all attempts."""
        reason = ""
        for attempt in range(self._manners.attempts):
            self._wait_until(self._free_at)
            try:
                return Reply(answer=self._request(question))
            except _Refused as refused:
                return Reply(failure=str(refused))
            except _Busy as busy:
                reason = str(busy)
                # the jitter keeps many collections from coming back in step
                wait = self._manners.delay * 2**attempt * (1 + self._rng.random() / 2)
                # a long delay is the user's wish, its multiples are not
                wait = min(wait, max(self._manners.longest_wait, self._manners.delay))
                asked_for = busy.wait or 0.0
                if asked_for > self._manners.longest_wait:
                    return Reply(failure=f"{reason}; it asks for a pause of {asked_for:,.0f} s", leave_alone=True)
                wait = max(wait, asked_for)
            finally:
                self._free_at = self._now() + self._manners.delay
            self._free_at = self._now() + wait
        return Reply(failure=f"{reason}, {self._manners.attempts} times")

    def _wait_until(self, moment: float) -> None:
        if (left := moment - self._now()) > 0:
            self._sleep(left)

    def _request(self, question: str) -> Any:
        # the space asks for the next word instead of other endings of the last one
        url = self.engine.url(question + " ")
        headers = {"User-Agent": user_agent(), "Accept": "application/json, text/javascript"}
        request = urllib.request.Request(url, headers=headers)
        deadline = self._now() + 3 * self._manners.timeout
        try:
            with self._opener.open(request, timeout=self._manners.timeout) as response:
                raw = b""
                while piece := response.read1(65536):
                    raw += piece
                    if len(raw) > self._manners.most_bytes:
                        raise _Refused(f"more than {self._manners.most_bytes:,} bytes")
                    if self._now() > deadline:
                        raise _Busy("too slow")
                charset = response.headers.get_content_charset() or "utf-8"
                length = response.headers.get("Content-Length", "")
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"{error.code} {' '.join(str(error.reason).split())}"
            if error.code in _BUSY:
                raise _Busy(reason, wait=_retry_after(error.headers.get("Retry-After", ""))) from None
            raise _Refused(reason) from None
        except (OSError, http.client.HTTPException) as error:  # no network, no answer in time, a cut connection
            cause = getattr(error, "reason", error)
            if isinstance(cause, TimeoutError):
                raise _Busy(f"no answer within {self._manners.timeout:g} s") from None
            raise _Busy(" ".join(str(cause).split()) or type(cause).__name__) from None
        if length.isdecimal() and len(raw) < int(length):
            raise _Busy(f"broke off after {len(raw)} of {length} bytes")
        return self._decoded(raw, charset)

    def _decoded(self, raw: bytes, charset: str) -> Any:
        try:
            answer = json.loads(raw.decode(charset))
            self.engine.read(answer)
        except (ValueError, LookupError, RecursionError):
            raise _Refused(f"no JSON but {raw[:40]!r}") from None
        except OtherFormat as error:
            raise _Refused(f"other JSON: {error}") from None
        return answer


def _retry_after(header: str) -> float | None:
    """Return the seconds that a server wants us to wait: it gives a number or a date.

    >>> _retry_after("7"), _retry_after("soon"), _retry_after("Wed, 21 Oct 2015 07:28:00 GMT")
    (7.0, None, 0.0)
    """
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return max(0.0, (moment - datetime.datetime.now(datetime.UTC)).total_seconds())
