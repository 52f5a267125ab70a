"""What can go wrong with one call. The sender decides what follows: wait, send again, record, or stop.

Fault
├── Busy        the endpoint asks for patience (429, or any answer with Retry-After); wait, then send again
├── Broken      no answer came (5xx, a redirect, a cut connection, a time-out); send again
├── Unanswered  nobody has answered yet, and nobody can be asked; the question is written down
├── Malformed   an answer came that is not what the interface promises; send again, in the end record it as such
└── Refused     the endpoint will never answer this (400, 401, 404 …); stop

Messages say what happened in a few words and never hold a key: the transport takes it out of all that arrives.
"""

from __future__ import annotations


class Fault(Exception):
    """A call without a usable answer. `may_have_cost`: the endpoint may have worked on it, and charge for it."""

    may_have_cost = True


class Busy(Fault):
    """The endpoint asks for patience; `wait` is for how many seconds, 0 if it does not say."""

    may_have_cost = False

    def __init__(self, message: str, *, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class Broken(Fault):
    """No answer came."""


class Malformed(Fault):
    """An answer came that cannot be read."""


class Unanswered(Fault):
    """There is no answer, and nobody to ask."""

    may_have_cost = False


class Refused(Fault):
    """The endpoint will not answer; `status` is its HTTP status, `parameter` what it objects to, where it says.

    `filtered`: a filter for content objects to the question, which is an answer of a kind.
    """

    may_have_cost = False

    def __init__(self, message: str, *, status: int = 400, parameter: str = "", filtered: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.parameter = parameter
        self.filtered = filtered
