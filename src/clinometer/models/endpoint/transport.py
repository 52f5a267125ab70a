"""Carries calls over HTTP with OpenAI's client, and turns all that can happen on the way into faults.

The client retries nothing and follows no redirect: the sender counts every attempt, and neither key nor question
may go to another address than the one that was given.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import email.utils
import json
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

from clinometer.errors import ModelError
from clinometer.models.builtin import absent_packages
from clinometer.models.endpoint.address import Address, Key
from clinometer.models.endpoint.faults import Broken, Busy, Fault, Malformed, Refused

if TYPE_CHECKING:
    import httpx2
    import openai
    from openai import AsyncOpenAI

LARGEST_BODY = 16 << 20  # bytes: a thousand log-probabilities for each of some hundred tokens
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 300.0  # for a whole answer, however slowly it drips

# Headers that say who answered; the others are about the connection.
_TELLING = ("server", "x-powered-by", "openai-version", "openai-organization", "x-model", "x-served-by", "via")
_LONGEST_HEADER = 80
_LONGEST_MESSAGE = 200
_FILTERS = ("content_filter", "content_policy_violation", "responsible_ai_policy_violation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """A JSON object from the endpoint, and those of its headers that say who answered."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]


class Transport(Protocol):
    """Carries calls to a model and answers back."""

    async def post(self, path: str, body: Mapping[str, Any]) -> Arrived:
        """Send a body; raise a Fault where no JSON object came back."""
        ...

    async def get(self, path: str) -> Arrived:
        """Fetch what is at a path; raise a Fault where that is not a JSON object."""
        ...

    async def close(self) -> None:
        """Close the connections of this event loop; the next call opens new ones."""
        ...


@final
class HttpTransport:
    """Carries calls to an address. The key is in the client's header and in no text that leaves this class."""

    def __init__(self, address: Address, key: Key, *, seconds: float = ANSWER_SECONDS) -> None:
        if absent_packages("openai"):
            raise ModelError('a model behind an address needs the package openai: pip install "clinometer[api]"')
        self._address = address
        self._key = key
        self._seconds = seconds
        self._open: AsyncOpenAI | None = None

    async def post(self, path: str, body: Mapping[str, Any]) -> Arrived:
        """Send a body; raise a Fault where no JSON object came back."""
        import httpx2

        async with _faults(self._key, self._seconds):
            return self._arrived(await self._client.post(path, cast_to=httpx2.Response, body=dict(body)))

    async def get(self, path: str) -> Arrived:
        """Fetch what is at a path; raise a Fault where that is not a JSON object."""
        import httpx2

        async with _faults(self._key, self._seconds):
            return self._arrived(await self._client.get(path, cast_to=httpx2.Response))

    async def close(self) -> None:
        """Close the connections of this event loop; the next call opens new ones."""
        if self._open is not None:
            await self._open.close()
            self._open = None

    @property
    def _client(self) -> AsyncOpenAI:
        if self._open is None:
            import httpx2
            import openai

            self._open = openai.AsyncOpenAI(
                base_url=self._address.url,
                api_key=self._key.value or "none",  # the client insists on one
                max_retries=0,
                timeout=httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS),
                # a compressed body could be a thousand times its size
                default_headers={"Accept-Encoding": "identity"},
                http_client=openai.DefaultAsyncHttpxClient(
                    follow_redirects=False,
                    limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
                    event_hooks={"response": [_limit_body]},
                ),
            )
            if not self._address.is_openai:  # read from the environment, and nobody else's business
                self._open.organization = self._open.project = None
        return self._open

    def _arrived(self, response: httpx2.Response) -> Arrived:
        text = self._key.hide(response.content.decode("utf-8", "replace"))
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            kind = response.headers.get("content-type", "no content type").partition(";")[0][:_LONGEST_HEADER]
            raise Malformed(f"a body that is not JSON ({kind}, {len(text):,} characters)") from None
        if not isinstance(body, dict):
            raise Malformed(f"JSON that is not an object but {type(body).__name__}")
        told = {name: response.headers[name] for name in _TELLING if name in response.headers}
        return Arrived(
            body=body, headers={name: self._key.hide(text)[:_LONGEST_HEADER] for name, text in told.items()}
        )


async def _limit_body(response: httpx2.Response) -> None:
    """Let a body end where it gets too large, before it is in memory."""
    import httpx2

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.ReadError("a compressed body, which was not asked for")

    class Limited(httpx2.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > LARGEST_BODY:
                    raise httpx2.ReadError(f"a body of more than {LARGEST_BODY >> 20} MiB")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    response.stream = Limited(response.stream)


@contextlib.asynccontextmanager
async def _faults(key: Key, seconds: float) -> AsyncIterator[None]:
    """Turn what the client raises within the block into faults, without a trace of the key."""
    import openai

    # "from None": the client's own errors hold the request, and with it the key
    try:
        async with asyncio.timeout(seconds):
            yield
    except (TimeoutError, openai.APITimeoutError):
        raise Broken(f"no whole answer within {seconds:g} s") from None
    except openai.APIStatusError as error:
        raise _status_fault(error, key) from None
    except Fault:
        raise
    except Exception as error:  # whatever goes wrong between here and the endpoint
        cause = error.__cause__ or error
        what = key.hide(" ".join(str(cause).split()))[:_LONGEST_MESSAGE]
        raise Broken(f"{type(cause).__name__}: {what}" if what else type(cause).__name__) from None


def _status_fault(error: openai.APIStatusError, key: Key) -> Fault:
    status = error.status_code
    told = _told(error.body)
    message = key.hide(f"{status} {told['message']}".strip())[:_LONGEST_MESSAGE]
    wait = seconds_to_wait(error.response.headers)
    if status == 429 or (wait > 0 and status >= 500):
        return Busy(message, wait=wait)
    if 300 <= status < 400:
        return Broken(f"{status}, a redirect, which is not followed")
    if status >= 500 or status in (408, 409, 425):
        return Broken(message)
    filtered = any(name in (told["code"], told["type"]) for name in _FILTERS)
    return Refused(message, status=status, parameter=told["param"], filtered=filtered)


def _told(body: object) -> dict[str, str]:
    """Read what an error says of itself, in whatever shape."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    fields = inner if isinstance(inner, dict) else {"message": inner or ""}
    found = {name: str(fields.get(name) or "") for name in ("message", "code", "type", "param")}
    if not found["message"] and isinstance(fields.get("detail"), str | list):  # FastAPI's way
        found["message"] = str(fields["detail"])
    found["message"] = " ".join(found["message"].split())
    return found


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """Read Retry-After, as seconds or as a date; 0 where there is none that can be read.

    >>> seconds_to_wait({"retry-after": "2"}), seconds_to_wait({"retry-after-ms": "500"}), seconds_to_wait({})
    (2.0, 0.5, 0.0)
    >>> seconds_to_wait({"retry-after": "nan"}), seconds_to_wait({"retry-after": "soon"})
    (0.0, 0.0)
    """
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / divisor
        except (KeyError, ValueError):
            continue
        return seconds if seconds > 0 and math.isfinite(seconds) else 0.0
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        return max(0.0, (date - datetime.datetime.now(datetime.UTC)).total_seconds())
    except (KeyError, ValueError, TypeError):
        return 0.0
