"""Reasoning models think aloud between two marks before they answer; the thought is not the answer. No torch."""

from __future__ import annotations

import re
from dataclasses import dataclass

BEGIN, END = "<think>", "</think>"
_THOUGHT = re.compile(rf"\s*{re.escape(BEGIN)}(.*?)(?:{re.escape(END)}|\Z)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """What a model said, and what it thought aloud before that."""

    answer: str
    reasoning: str


def begins_thinking(prompt: str) -> bool:
    """Tell whether a prompt has begun the thought already: some chat templates write the first mark themselves.

    >>> begins_thinking("<|assistant|><think>\\n"), begins_thinking("<think>\\n\\n</think>\\n\\n")
    (True, False)
    """
    return prompt.rstrip().endswith(BEGIN)


def apart(text: str, *, begun: bool = False) -> Parted:
    """Part an answer from the thought before it; a thought that does not end leaves no answer.

    A text that begins with neither mark is an answer, whatever it says later. `begun`: the prompt wrote the first
    mark.

    >>> apart("<think>She asks for one word.</think>\\n\\nKind.")
    Parted(answer='Kind.', reasoning='She asks for one word.')
    >>> apart("Kind.")
    Parted(answer='Kind.', reasoning='')
    """
    found = _THOUGHT.match(f"{BEGIN}{text}" if begun else text)
    if found is None:
        return Parted(answer=text, reasoning="")
    rest = (f"{BEGIN}{text}" if begun else text)[found.end() :]
    return Parted(answer=rest, reasoning=found[1].strip())
