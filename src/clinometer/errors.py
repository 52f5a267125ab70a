"""Every error that a user can meet.

ClinometerError
├── InputError            what the user gave is wrong: exit code 2, nothing was written
│   ├── SpecError         a key, a profile, a probe or an option of the audit spec
│   ├── DataError         a word list, a template file, a corpus
│   ├── SettingError      a setting of a training
│   ├── RequestError      a text that cannot be asked: no mask, two masks, too long
│   └── ModelError        no such model, no safe weights, a missing package, a missing capability
├── WorkerError           workers of a cluster die: exit code 1, answers so far are kept
│   └── PoisonedError     some batches killed every worker that had them; all else is answered
├── EndpointError         an endpoint does not answer, or not usefully: exit code 1, answers so far are kept
├── StoppedError          a budget is used up, or answers are awaited: exit code 5, answers so far are kept
└── StoreError            the run folder: exit code 1, nothing earlier was damaged
    ├── RunLockedError    another process holds the run
    ├── RecordsError      records are missing or damaged
    └── DiskFullError     no space left while writing

Each message says what was found, what was expected and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class ClinometerError(Exception):
    """Base of every error that Clinometer raises on purpose."""

    exit_code = 1


class InputError(ClinometerError):
    """What the user gave is wrong."""

    exit_code = 2


class SpecError(InputError):
    """The audit spec is wrong."""


class DataError(InputError):
    """A data file is missing, unreadable or malformed."""


class SettingError(InputError):
    """A setting of a training is not valid; `on_command_line` calls it by its flag."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name} = {value} is not valid; expected {expected}")
        flag = {"at_most": "max-articles", "sentences": "labelled"}.get(name, name.replace("_", "-"))
        self.on_command_line = f"--{flag} {value} is not valid; expected {expected}"


class RequestError(InputError):
    """A text cannot be asked as it is."""


class ModelError(InputError):
    """A model cannot be found, loaded safely, or asked what a probe needs."""


class WorkerError(ClinometerError):
    """The workers of a cluster cannot do what they are asked."""


class PoisonedError(WorkerError):
    """Batches killed every worker that had them. All else is answered and recorded."""


class EndpointError(ClinometerError):
    """A model behind an address does not answer, or not so that it can be used."""


class StoppedError(ClinometerError):
    """The run stopped as it was told to, before its end: by a budget, or because answers are awaited."""

    exit_code = 5


class AwaitedError(StoppedError):
    """Answers are awaited that only the owner of a model can give; `calls` are the questions."""

    def __init__(self, calls: tuple[Any, ...]) -> None:
        super().__init__(f"{len(calls):,} questions are not answered yet")
        self.calls = calls


class StoreError(ClinometerError):
    """The run folder cannot be used."""


class RunLockedError(StoreError):
    """Another process is working on the run."""


class RecordsError(StoreError):
    """Records are missing or damaged."""


class DiskFullError(StoreError):
    """No space was left while writing; what was written earlier is intact."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a hint: the nearest valid name, or all of them if none is near.

    >>> nearest("counterexample", ["counterexamples", "stigma"])
    "did you mean 'counterexamples'?"
    >>> nearest("xyz", ["quick", "paper"])
    'valid: paper, quick'
    """
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"valid: {', '.join(names)}" if names else "none are valid here"


_LONGEST_REASON = 200  # characters: some libraries list all that they know


def reason(error: BaseException) -> str:
    """Return what another library says went wrong as one short line, with the kind of error where that helps.

    >>> reason(ValueError("the sizes\\n   differ"))
    'the sizes differ'
    >>> reason(KeyError("gelo"))
    "KeyError: 'gelo'"
    """
    text = " ".join(str(error).split())
    if len(text) > _LONGEST_REASON:
        text = f"{text[:_LONGEST_REASON]} …"
    if isinstance(error, LookupError) or not text:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text
