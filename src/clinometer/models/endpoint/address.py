"""Where an endpoint is, and the key that it is sent. The key comes from the environment and goes nowhere else."""

from __future__ import annotations

import os
import urllib.parse
from dataclasses import dataclass, field
from typing import final

from clinometer.errors import ModelError

OPENAI = "https://api.openai.com/v1"
# The key of OpenAI is sent to OpenAI alone. The other one is sent to servers on this machine, and to the address
# that the user names: on the command line, or in the environment. A spec or a run folder of somebody else may name
# any address, and must not be able to draw a key.
OPENAI_KEY, OTHER_KEY, OTHER_ADDRESS = "OPENAI_API_KEY", "CLINOMETER_API_KEY", "CLINOMETER_API_URL"
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")

HIDDEN = "[key]"  # what is written where an endpoint repeats the key
_SHORTEST_SECRET = 8  # "none", "EMPTY" and the like are given to servers that want any key, and are not secret


@final
@dataclass(frozen=True, slots=True)
class Key:
    """A key that cannot be printed by mistake."""

    value: str = field(repr=False, default="")

    def hide(self, text: str) -> str:
        """Return the text without the key.

        >>> Key("sk-0123456789").hide("wrong key sk-0123456789"), Key("none").hide("none of it")
        ('wrong key [key]', 'none of it')
        """
        return text.replace(self.value, HIDDEN) if len(self.value) >= _SHORTEST_SECRET else text


@final
@dataclass(frozen=True, slots=True)
class Address:
    """The base of an endpoint's paths, as it may be written down anywhere."""

    url: str

    @classmethod
    def of(cls, base_url: str) -> Address:
        """Check an address; raise ModelError, without repeating it, where it carries a name, a password or a key.

        >>> Address.of("http://127.0.0.1:8080/v1/").url
        'http://127.0.0.1:8080/v1'
        """
        try:
            parts = urllib.parse.urlsplit(base_url or OPENAI)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise ModelError(_EXPECTED.format("cannot be read")) from None
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ModelError(
                f"--base-url carries a user name, a password or a key, which others can see in the list of "
                f"processes; give the bare address, and the key in the environment: {OTHER_KEY}=…"
            )
        if parts.scheme not in ("http", "https") or not host or not base_url.isprintable():
            raise ModelError(_EXPECTED.format("is not an address of a web server"))
        return cls(urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "")))

    @property
    def host(self) -> str:
        """The name of the server."""
        return urllib.parse.urlsplit(self.url).hostname or ""

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own."""
        return self.url.startswith("https://") and self.host == urllib.parse.urlsplit(OPENAI).hostname

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine."""
        return self.host in _THIS_MACHINE

    @property
    def is_named(self) -> bool:
        """Whether the user named it, on the command line or in the environment."""
        named = os.environ.get(OTHER_ADDRESS, "")
        return bool(named) and _origin(Address.of(named).url) == _origin(self.url)

    def key(self) -> Key:
        """Return the key for this address from the environment; an empty one where there is none for it."""
        if self.is_openai:
            return Key(os.environ.get(OPENAI_KEY, "").strip())
        return Key(os.environ.get(OTHER_KEY, "").strip()) if self.is_here or self.is_named else Key()


_EXPECTED = "--base-url {}; expected something like http://127.0.0.1:8080/v1"


def trust(base_url: str) -> Address:
    """Check an address that the user gave to this command: the key in the environment may be sent there."""
    address = Address.of(base_url)
    os.environ[OTHER_ADDRESS] = address.url
    return address


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc.lower()
