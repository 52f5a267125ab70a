"""Asking search engines for suggestions: how each is asked, how it answers, and how to be polite about it.

The three engines are those of the paper's Appendix B.
"""

from __future__ import annotations

import datetime
import email.utils
import http.client
import json
import math
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clinometer.data.downloads import check_address, http_opener, length_of, user_agent
from clinometer.errors import DataError, nearest

# seconds between two questions to an engine's own public address, at least
_LEAST_DELAY = 0.5


class OtherFormat(Exception):
    """The engine answered, but not with suggestions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A public address for suggestions. `read` takes them out of the decoded JSON, or raises OtherFormat."""

    name: str
    address: str
    parameter: str  # the one that carries the question
    settings: Mapping[str, str]
    read: Callable[[Any], tuple[str, ...]]

    def url(self, question: str) -> str:
        """Return the address that asks for completions of a question.

        >>> get_engine("duckduckgo").url("why are poets so ")
        'https://duckduckgo.com/ac?q=why+are+poets+so+'
        """
        parts = urllib.parse.urlsplit(self.address)
        query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
        query += [*self.settings.items(), (self.parameter, question)]
        return urllib.parse.urlunsplit(parts._replace(query=urllib.parse.urlencode(query)))


def _google(answer: Any) -> tuple[str, ...]:
    """`["question", ["suggestion", …], …]`."""
    if isinstance(answer, list) and len(answer) > 1 and isinstance(answer[1], list):
        return _texts(answer[1])
    raise OtherFormat('expected ["question", ["suggestion", …]]')


def _yahoo(answer: Any) -> tuple[str, ...]:
    """`{"gossip": {"results": [{"key": "suggestion"}, …]}}`."""
    results = answer.get("gossip", {}) if isinstance(answer, dict) else None
    results = results.get("results") if isinstance(results, dict) else None
    if isinstance(results, list):
        return _texts([_field(entry, "key") for entry in results])
    raise OtherFormat('expected {"gossip": {"results": [{"key": "suggestion"}, …]}}')


def _duckduckgo(answer: Any) -> tuple[str, ...]:
    """`[{"phrase": "suggestion"}, …]`."""
    if isinstance(answer, list):
        return _texts([_field(entry, "phrase") for entry in answer])
    raise OtherFormat('expected [{"phrase": "suggestion"}, …]')


def _field(entry: Any, name: str) -> Any:
    return entry.get(name) if isinstance(entry, dict) else None


def _texts(values: list[Any]) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str):
            raise OtherFormat(f"expected suggestions as text, not {str(value)[:40]!r}")
    return tuple(values)


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            name="google",
            address="http://suggestqueries.google.com/complete/search",
            parameter="q",
            settings={"client": "firefox", "hl": "en", "oe": "utf-8"},
            read=_google,
        ),
        Engine(
            name="yahoo",
            address="http://sugg.search.yahoo.net/sg",
            parameter="command",
            settings={"output": "json", "nresults": "10"},
            read=_yahoo,
        ),
        Engine(
            name="duckduckgo", address="https://duckduckgo.com/ac", parameter="q", settings={}, read=_duckduckgo
        ),
    )
}


def get_engine(name: str) -> Engine:
    """Return the engine of this name; raise DataError with the nearest name for an unknown one."""
    if name not in ENGINES:
        raise DataError(f"no search engine {name!r}; {nearest(name, ENGINES)}")
    return ENGINES[name]


_BUSY = {408, 425, 429, 500, 502, 503, 504}  # worth asking again later; any other refusal is final


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How an engine is treated, in seconds; a retry waits `delay` × 1, 2, 4, … and up to half as long again."""

    delay: float = 1.0  # between the end of one request and the start of the next
    timeout: float = 10.0
    attempts: int = 5
    longest_wait: float = 120.0  # a server that asks for a longer pause is left alone until the next collection
    most_bytes: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of one question: the decoded JSON, or why there is none."""

    answer: Any = None
    failure: str = ""
    leave_alone: bool = False  # the server asks for a long pause: ask it nothing else


class _Busy(Exception):
    """The server is busy and may say when to ask again."""

    def __init__(self, reason: str, *, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _Refused(Exception):
    """Asking again would change nothing."""


class Asker:
    """Asks one engine, one question after another."""

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
        self._deadline = math.inf
        self._opener = http_opener(deadline=lambda: self._deadline)
        self._free_at = now()

    def ask(self, question: str) -> Reply:
        """Return the engine's answer, or why there is none after all attempts."""
        reason = ""
        for attempt in range(self._manners.attempts):
            self._wait_until(self._free_at)
            try:
                return Reply(answer=self._request(question))
            except _Refused as refused:
                return Reply(failure=str(refused))
            except _Busy as busy:
                reason = str(busy)
                # the jitter keeps several collections from returning at the same time
                wait = self._manners.delay * 2**attempt * (1 + self._rng.random() / 2)
                # the user may want a long delay, but not its multiples
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
        self._deadline = time.monotonic() + 3 * self._manners.timeout
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
                length = length_of(response.headers.get("Content-Length", ""))
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"{error.code} {' '.join(str(error.reason).split())}"
            if error.code in _BUSY:
                raise _Busy(reason, wait=_retry_after(error.headers.get("Retry-After", ""))) from None
            raise _Refused(reason) from None
        # no network, no answer in time, a broken connection, a redirect to half an address
        except (OSError, http.client.HTTPException, ValueError) as error:
            cause = getattr(error, "reason", error)
            if isinstance(cause, TimeoutError):
                raise _Busy(f"no answer within {self._manners.timeout:g} s") from None
            raise _Busy(" ".join(str(cause).split()) or type(cause).__name__) from None
        if len(raw) < length:
            raise _Busy(f"broke off after {len(raw)} of {length} bytes")
        return self._decoded(raw, charset)

    def _decoded(self, raw: bytes, charset: str) -> Any:
        try:
            answer = json.loads(raw.decode(charset))
            self.engine.read(answer)
        except (ValueError, LookupError, RecursionError):
            raise _Refused(f"not JSON but {raw[:40]!r}") from None
        except OtherFormat as error:
            raise _Refused(f"other JSON: {error}") from None
        return answer


def _retry_after(header: str) -> float | None:
    """Return how many seconds a server wants us to wait; it gives a number or a date.

    >>> _retry_after("7"), _retry_after("soon"), _retry_after("Wed, 21 Oct 2015 07:28:00 GMT")
    (7.0, None, 0.0)
    """
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = email.utils.parsedate_to_datetime(header)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return max(0.0, (moment - datetime.datetime.now(datetime.UTC)).total_seconds())


def choose_engines(names: Sequence[str], addresses: Sequence[str], *, delay: float) -> list[Engine]:
    """Return the engines to ask, each once, with the addresses (`engine=URL`) that the user gives."""
    given: dict[str, str] = {}
    for setting in addresses:
        name, equals, url = setting.partition("=")
        if not equals:
            raise DataError(f"--address {setting!r}; expected engine=URL, such as google=http://localhost:8000/")
        given[get_engine(name).name] = check_address(url)
    chosen = list(dict.fromkeys(get_engine(name).name for name in names)) or list(ENGINES)
    for name in given:
        if name not in chosen:
            raise DataError(f"--address for {name!r}, which is not asked; asked: {', '.join(chosen)}")
    engines = [replace(ENGINES[name], address=given.get(name, ENGINES[name].address)) for name in chosen]
    public = {urllib.parse.urlsplit(engine.address).hostname for engine in ENGINES.values()}
    for engine in engines:
        if delay < _LEAST_DELAY and urllib.parse.urlsplit(engine.address).hostname in public:
            raise DataError(
                f"--delay {delay:g} is too fast for {engine.name}; expected at least {_LEAST_DELAY:g} seconds"
            )
    return engines
