"""What can happen between here and an endpoint, as faults."""

from __future__ import annotations

import asyncio
import datetime
import email.utils

import pytest

from clinometer.models.endpoint import transport as transport_module
from clinometer.models.endpoint.address import Address, Key
from clinometer.models.endpoint.faults import Broken, Busy, Malformed, Refused
from clinometer.models.endpoint.transport import HttpTransport, seconds_to_wait
from tests.local_server import Script

pytest.importorskip("openai", reason="not installed: openai; see `make setup`")

SECRET = "sk-planted-0123456789"


def post(script, *, seconds=5.0):
    """Send one call to a server that answers as the script says."""
    answers = {}

    async def handle(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        answers["head"] = head
        lines = "".join(f"{name}: {value}\r\n" for name, value in script.headers.items())
        length = len(script.body) if script.length is None else script.length
        writer.write(f"HTTP/1.1 {script.status} x\r\nContent-Length: {length}\r\n{lines}\r\n".encode())
        writer.write(script.body)
        try:
            await asyncio.sleep(5 if script.stall else 0)
        finally:
            writer.close()

    async def story():
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        transport = HttpTransport(Address.of(url), Key(SECRET), seconds=seconds)
        try:
            return await transport.post("/chat/completions", {"model": "m"})
        finally:
            await transport.close()
            server.close()
            handlers = asyncio.all_tasks() - {asyncio.current_task()}
            for each in handlers:
                each.cancel()
            await asyncio.gather(*handlers, return_exceptions=True)
            await asyncio.sleep(0)

    return asyncio.run(story()), answers["head"]


def test_a_json_object_arrives_with_those_headers_that_say_who_answered():
    arrived, head = post(Script(body=b'{"a": 1}', headers={"Server": "x/1", "X-Other": "y"}))
    assert arrived.body == {"a": 1}
    assert dict(arrived.headers) == {"server": "x/1"}
    assert f"Bearer {SECRET}" in head
    assert "ccept-encoding: identity" in head.lower()


@pytest.mark.parametrize(
    ("script", "fault", "says"),
    [
        (Script(status=429, headers={"Retry-After": "7"}), Busy, "429"),
        (Script(status=503, headers={"Retry-After": "7"}), Busy, "503"),
        (Script(status=503, body=b"down"), Broken, "503"),
        (Script(status=500, body=b'{"error": {"message": "oops"}}'), Broken, "500 oops"),
        (Script(status=307, headers={"Location": "http://127.0.0.1:1/"}), Broken, "a redirect"),
        (Script(status=400, body=b'{"error": {"message": "no n", "param": "n"}}'), Refused, "400 no n"),
        (Script(status=422, body=b'{"detail": "bad"}'), Refused, "422 bad"),
        (Script(body=b"<html>", headers={"Content-Type": "text/html"}), Malformed, "not JSON .text/html"),
        (Script(body=b"[1]"), Malformed, "not an object but list"),
        (Script(body=b"[" * 100_000), Malformed, "not JSON"),
        (Script(body=b'{"a": 1', length=99), Broken, "RemoteProtocolError"),
        (Script(body=b"x", headers={"Content-Encoding": "gzip"}), Broken, "compressed"),
        (Script(body=b" " * 5_000), Broken, "more than 0 MiB"),
    ],
)
def test_trouble_becomes_a_fault(script, fault, says, monkeypatch):
    if len(script.body) == 5_000:
        monkeypatch.setattr(transport_module, "LARGEST_BODY", 4_096)
    with pytest.raises(fault, match=says) as caught:
        post(script)
    assert getattr(caught.value, "wait", 7) == 7


def test_an_answer_that_never_ends_is_given_up():
    with pytest.raises(Broken, match=r"no whole answer within 0.2 s"):
        post(Script(body=b'{"a":', length=50, stall=True), seconds=0.2)


def test_the_key_is_taken_out_of_all_that_arrives():
    echo = f'{{"text": "{SECRET}"}}'.encode()
    arrived, _ = post(Script(body=echo, headers={"Server": SECRET}))
    assert SECRET not in str(arrived)
    with pytest.raises(Refused) as caught:
        post(Script(status=400, body=b'{"error": {"message": "' + SECRET.encode() + b'"}}'))
    assert str(caught.value) == "400 [key]"


def test_retry_after_may_be_a_date():
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=30)
    assert 25 < seconds_to_wait({"retry-after": email.utils.format_datetime(soon)}) <= 30
