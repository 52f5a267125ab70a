"""What the stereotypes audit asks: every group in every template, and the prompts of the human data set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from clinometer.data.human_stereotypes import HumanStereotype, match_groups
from clinometer.data.social_groups import Group
from clinometer.probes.stereotypes.options import Options
from clinometer.types import HIDDEN, MASK, Fill, Item

GROUP = "{group}"
# the authors' one prior for every question, without a question mark
PUBLISHED_PRIOR = f"Why are {GROUP} so {MASK}"

Origin = Literal["template", "data set"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about one group."""

    group: Group
    written: str  # the group as the question writes it: the data set has its own spelling and case
    template: str  # the question with {group} in the place of the group
    origin: Origin

    @property
    def text(self) -> str:
        """The question as the model reads it."""
        return self.template.replace(GROUP, self.written)


@dataclass(frozen=True, slots=True, order=True)
class PriorKey:
    """Which questions share a prior: those with the same text around the group, and the same masks for it."""

    template: str
    hidden: str  # the text whose tokens are masked; empty: one mask

    @property
    def text(self) -> str:
        """The question with the group hidden, too."""
        return self.template.replace(GROUP, f"{HIDDEN[:-1]}:{self.hidden}]" if self.hidden else HIDDEN)


def questions(options: Options) -> tuple[Question, ...]:
    """Return every question in the order asked: group by group, then the distinct prompts of the data set."""
    groups, templates = options.chosen_groups(), options.chosen_templates()
    asked = [
        Question(group=group, written=group.name, template=template, origin="template")
        for group in groups
        for template in templates.of(group.kind)
    ]
    asked += dict.fromkeys(each for each, _ in human_questions(options))
    return tuple(asked)


def human_questions(options: Options) -> Iterator[tuple[Question, HumanStereotype]]:
    """Yield each human stereotype about a chosen group, with the question that its own prompt asks."""
    rows = options.chosen_stereotypes()
    groups = {group.name: group for group in options.chosen_groups()}
    matched = match_groups(rows, groups.values()).matched
    for row in rows:
        if row.group in matched:
            yield _human_question(row, groups[matched[row.group]]), row


def _human_question(row: HumanStereotype, group: Group) -> Question:
    whole = re.search(rf"\b{re.escape(row.group)}\b", row.prompt, re.IGNORECASE)
    found = whole or re.search(re.escape(row.group), row.prompt, re.IGNORECASE)
    assert found is not None, "the reader refuses prompts without their group"
    before, written, after = row.prompt[: found.start()], found.group(), row.prompt[found.end() :]
    return Question(group=group, written=written, template=f"{before}{GROUP}{after} {MASK}?", origin="data set")


def posterior_items(options: Options) -> Iterator[Item]:
    """Yield the questions, each for its most probable words."""
    for question in questions(options):
        yield Item(
            request=Fill(text=question.text, top_k=options.top_k),
            tags={
                "group": question.group.name,
                "category": question.group.category,
                "kind": question.group.kind,
                "template": question.template,
                "origin": question.origin,
            },
        )


def prior_key(question: Question, options: Options) -> PriorKey:
    """Return which prior belongs to a question."""
    template = question.template if options.prior == "template" else PUBLISHED_PRIOR
    return PriorKey(template=template, hidden=question.written if options.prior_masks == "tokens" else "")
