"""A run so small that it is made in milliseconds, and what a stranger can do to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import clinometer
from clinometer.errors import ClinometerError
from clinometer.models.fake import FakeModel
from clinometer.probes.protocol import Stage
from clinometer.types import (
    Figure,
    Fill,
    Finding,
    Findings,
    FindingTable,
    Item,
    Notice,
    WordAnswer,
)

WORDS = ("nurse", "pilot", "clerk", "miner")
SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----"


@dataclass(frozen=True)
class Options:
    words_file: str = ""
    scale: float = 1.0

    def words(self) -> list[str]:
        return Path(self.words_file).read_text().split() if self.words_file else list(WORDS)


@dataclass(frozen=True)
class Tiny:
    """An audit of a few questions; `side` is a tag that decides the finding."""

    name: str = "tiny"
    title: str = "A tiny audit"
    question: str = "Does it work?"
    paper: str = "Nobody, 2026"
    sources: str = "None."
    capabilities: tuple[str, ...] = ("fill",)
    roles: tuple[Any, ...] = ()
    options: type[Options] = Options
    user_data: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: {"quick": {}, "standard": {}, "paper": {}}
    )
    flipped: bool = False  # whether the tags are exchanged

    def check(self, options: Options) -> None:
        if not options.words():
            raise ValueError("no words")

    def stages(self, plan):
        return (Stage(name="ask"),)

    def questions(self, stage, plan, records):
        for number, word in enumerate(plan.options.words()):
            side = "left" if (number % 2 == 0) != self.flipped else "right"
            request = Fill(text=f"The {word} is [MASK].", words=("he", "she"))
            yield Item(request=request, tags={"side": side, "word": word})

    def findings(self, plans, records):
        rows = []
        for plan in plans:
            table = records.table(model=plan.model.name, stage="ask")
            first = [row["got_logprobs"][0] for row in table.iter_rows(named=True) if row["tag_side"] == "left"]
            estimate = plan.options.scale * sum(first) / max(1, len(first))
            rows.append(Finding(labels={"model": plan.model.name}, estimate=estimate, n=len(first)))
        table = FindingTable(name="lean", title="Lean", caption="Mean of the left side.", rows=tuple(rows))
        figure = Figure(
            name="lean",
            title="Lean",
            caption="",
            table="lean",
            mark="bars",
            x="model",
            y="estimate",
            evidence="ask",
        )
        return Findings(
            probe=self.name,
            tables=(table,),
            figures=(figure,),
            notices=(Notice(level="info", text="Counted by hand."),),
            headlines=(f"The lean is {rows[0].estimate:.3f}.",),
        )


def answer(request: Fill) -> WordAnswer:
    words = request.words or ("he", "she")
    return WordAnswer(words=words, logprobs=tuple(-len(request.text) / 10 - place for place in range(len(words))))


def fake() -> FakeModel:
    return FakeModel(answer=answer, version="1", name="fake")


def tiny_run(folder: Path, *, probe: Tiny | None = None, **options: Any):
    """Audit the fake with the tiny audit."""
    return clinometer.audit(fake(), probes=[probe or Tiny()], options={"tiny": options}, folder=folder)


def resume(path: Path, *, probe: Tiny | None = None, **more: Any):
    return clinometer.resume(path, models=[fake()], probes=[probe or Tiny()], **more)


def verify(path: Path, *, probe: Tiny | None = None):
    return clinometer.verify(path, probes=[probe or Tiny()])


def told(path: Path) -> str:
    """What `verify` says; its errors are as good as its problems, for they are one line and an exit code."""
    try:
        return "\n".join(verify(path).problems)
    except ClinometerError as error:
        return str(error)


def parts(path: Path) -> list[Path]:
    return sorted(path.glob("records/*/*/*/*.parquet"))


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def everything(folder: Path) -> bytes:
    """Every byte below a folder, to search in."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
