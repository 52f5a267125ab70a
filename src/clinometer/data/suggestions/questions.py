"""The questions put to search engines: the audit's templates up to the attribute, in lower case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clinometer.data.social_groups import Group, Templates
from clinometer.errors import DataError
from clinometer.types import MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The beginning of a question about a group, as people would type it."""

    prompt: str  # without the space that follows it
    group: str
    category: str


def ask_about(groups: Iterable[Group], templates: Templates) -> tuple[Question, ...]:
    """Return every template for every group, each beginning once.

    >>> templates = Templates(people=("Why are {group} so [MASK]?",), country=("Why is {group} so [MASK]?",))
    >>> ask_about([Group(name="Asians", category="race", kind="people")], templates)
    (Question(prompt='why are asians so', group='asians', category='race'),)
    """
    questions: dict[str, Question] = {}
    for group in groups:
        for template in templates.of(group.kind):
            beginning = template.partition(MASK)[0]
            if "{group}" not in beginning:
                raise DataError(
                    f"{template!r} names the group after {MASK}; a search engine completes a question from its "
                    "beginning: put {group} first"
                )
            prompt = " ".join(beginning.replace("{group}", group.name).lower().split())
            questions.setdefault(
                prompt, Question(prompt=prompt, group=group.name.lower(), category=group.category)
            )
    return tuple(questions.values())
