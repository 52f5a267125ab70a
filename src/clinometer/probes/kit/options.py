"""Constraints that the options of several audits share; `spec.build` enforces them.

An options class is a frozen dataclass whose fields carry their limits: `draws: Draws = 1999`. What depends on two
options at once is checked in `__post_init__`, which raises `wrong_option`.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field

from clinometer.errors import SpecError

T = TypeVar("T")


def _each_once(values: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(values)) < len(values):
        raise ValueError("a value is given twice; give each once")
    return values


Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Draws = Annotated[int, Field(ge=100, le=100_000)]  # of a bootstrap
# at least one value, none of them twice: `Annotated[tuple[Positive, ...], *Listed]`
Listed = (Field(min_length=1), AfterValidator(_each_once))


def wrong_option(probe: str, option: str, value: object, hint: str) -> SpecError:
    """Return the error to raise for an option that cannot be used; `hint` says what was expected."""
    return SpecError(f"{probe}: {option} = {value!r} is not valid; {hint}")
