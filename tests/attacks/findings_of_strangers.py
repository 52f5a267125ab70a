"""A run folder whose findings say what a stranger wants them to say."""

from __future__ import annotations

from pathlib import Path

from clinometer.store import RunFolder
from clinometer.types import Figure, Finding, Findings, FindingTable, ModelInfo, Notice


def run_with(
    folder: Path, *, label: str = "nurse", headline: str = "Nothing found.", notice: str = "", model: str = "mine"
) -> RunFolder:
    """Make a run with one table, one figure and the given texts."""
    info = ModelInfo(
        name=model, kind="masked", family="bert", capabilities=("fill",), weights="0", tokenizer="1",
        dtype="float32", code="2",
    )  # fmt: skip
    spec = 'version = 1\nprobes = ["theirs"]\nmodels = [{name = "mine"}]\n'
    run = RunFolder.create(folder, spec=spec, provenance={"seed": 0}, models=[info])
    rows = tuple(
        Finding(labels={"word": word, "place": place}, estimate=-0.5, low=-0.75, high=-0.25, p=0.1, q=0.2, n=4)
        for place, word in enumerate((label, "pilot"))
    )
    table = FindingTable(name="lean", title="Lean", caption="", rows=rows)
    figure = Figure(name="lean", title="Lean", caption="", table="lean", mark="bars", x="estimate", y="word")
    run.write_findings(
        Findings(
            probe="theirs",
            tables=(table,),
            figures=(figure,),
            notices=(Notice(level="warning", text=notice),) if notice else (),
            headlines=(headline,),
        )
    )
    return RunFolder.open(folder)
