"""Everything that one report shows. Frozen, no logic: whoever has these values can render the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clinometer.types import Findings, ModelInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeText:
    """How a probe introduces itself to the reader."""

    title: str
    question: str  # what was asked, in one sentence
    paper: str  # who asked it first: authors, title, year
    data: str = ""  # where its words and sentences come from, in a sentence or two


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question and what the model said, as text."""

    model: str
    tags: Mapping[str, str]
    context: str = ""
    separator: str = ""  # what stands between context and text: nothing or a separator token
    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Examples of the prompts behind a figure, and where all of them are."""

    shown: tuple[Exchange, ...]
    total: int
    where: tuple[str, ...]  # record folders, relative to the run folder


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """What the report of one run shows."""

    run_id: str
    created: str
    profile: str
    seed: str
    digest: str  # SHA-256 over all findings
    models: tuple[ModelInfo, ...]
    probes: Mapping[str, ProbeText]
    findings: tuple[Findings, ...]
    spec: str
    provenance: Mapping[str, Any]
    assistants: tuple[ModelInfo, ...] = ()  # models that take part without being audited
    roles: Mapping[str, str] = field(default_factory=dict)  # model -> the parts that it plays: "scorer", …
    evidence: Mapping[str, Mapping[str, Evidence]] = field(default_factory=dict)  # probe -> figure -> prompts
    files: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # probe -> table -> its file in the run folder
