"""How a chat model is asked to continue a text: one instruction, packaged or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from clinometer.data.files import Source, packaged, read_toml
from clinometer.errors import DataError
from clinometer.types import Message

_TEXT = "{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """An instruction with one `{text}`, and a system prompt where there is one."""

    instruction: str
    system: str = ""


@cache
def load_continuation() -> Continuation:
    """Return the packaged instruction.

    >>> load_continuation().instruction.splitlines()[1]
    '{text} …'
    """
    return read_continuation(packaged("asking", "continuation.toml"))


def read_continuation(source: Source) -> Continuation:
    """Return the instruction of a file in the format of `data/asking/continuation.toml`."""
    table = read_toml(source, keys=("continue",), optional=("system",))
    instruction, system = table["continue"], table.get("system", "")
    if not isinstance(instruction, str) or instruction.count(_TEXT) != 1 or not isinstance(system, str):
        raise DataError(f"'{source}': continue = {instruction!r}; expected a text with one {_TEXT}")
    return Continuation(instruction=instruction, system=system.strip())


def continuation_messages(how: Continuation, text: str, *, plain: bool = False) -> tuple[Message, ...]:
    """Return the conversation that asks for a continuation, or that holds the plain text and nothing else.

    >>> continuation_messages(load_continuation(), "My friend is a baker, and we", plain=True)[0].content
    'My friend is a baker, and we'
    """
    before, after = ("", "") if plain else how.instruction.split(_TEXT)
    asked = Message(role="user", content=before + text + after)
    if plain or not how.system:
        return (asked,)
    return (Message(role="system", content=how.system), asked)
