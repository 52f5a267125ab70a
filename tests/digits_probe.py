"""A small audit of chat models, for tests of how they are asked: which digit does a model answer with?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from clinometer.probes.protocol import Plan, Records, Role, Stage
from clinometer.types import Ask, Finding, Findings, FindingTable, Item, Message, Questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    questions: int = 84
    answers: int = 1
    then: int = 0  # questions of a second stage, which depend on the answers of the first; −1: it asks nothing


class Digits:
    """Asks so many questions, each so many times, and counts."""

    name = "digits"
    title = "Digits"
    question = "Which digit does a model answer with?"
    paper = "none"
    sources = "none"
    capabilities = ("ask",)
    roles: tuple[Role, ...] = ()
    options = Options
    user_data: dict[str, str] = {}  # noqa: RUF012
    profiles = {"quick": {}, "standard": {}, "paper": {}}  # noqa: RUF012

    def check(self, options):
        pass

    def stages(self, plan: Plan) -> tuple[Stage, ...]:
        first = Stage(name="first", size=plan.options.questions)
        return (first, Stage(name="then", size=plan.options.then)) if plan.options.then else (first,)

    def questions(self, stage: Stage, plan: Plan, records: Records) -> Questions:
        if stage.name == "first":
            for number in range(plan.options.questions):
                yield _item(f"Question {number}: which digit?", number, plan)
            return
        seen = records.table(model=plan.model.name, stage="first", columns=["got_texts"])["got_texts"]
        for number in range(plan.options.then):
            said = seen[number][0] if len(seen[number]) else ""  # of a file of answers, some may be missing
            yield _item(f"You said {said!r} to question {number}. And now?", number, plan)

    def findings(self, plans: Sequence[Plan], records: Records) -> Findings:
        rows = []
        for plan in plans:
            for stage in self.stages(plan)[: None if plan.options.then >= 0 else 1]:
                texts = records.table(model=plan.model.name, stage=stage.name, columns=["got_texts"])["got_texts"]
                counts = Counter(text[:1] for row in texts for text in row)
                for digit, count in sorted(counts.items()):
                    labels = {"model": plan.model.name, "stage": stage.name, "digit": digit or "none"}
                    rows.append(Finding(labels=labels, estimate=count / counts.total(), n=count))
        table = FindingTable(name="digits", title="Digits", caption="How often", rows=tuple(rows))
        return Findings(probe=self.name, tables=(table,), figures=())


def _item(text: str, number: int, plan: Plan) -> Item:
    message = Message(role="user", content=text)
    request = Ask(messages=(message,), n=plan.options.answers, max_new_tokens=8, seed=plan.seed)
    return Item(request=request, tags={"number": number})
