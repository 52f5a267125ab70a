"""Runs made by hand for comparisons: the stigma audit of one model, with a value for each condition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clinometer import __version__
from clinometer.store import RunFolder
from clinometer.types import Finding, Findings, FindingTable, RowReference, Verdict
from tests.report.samples import model_info

ASPECT = "attitude to stigmatized conditions"
SPEC = """version = 1
probes = ["stigma"]
models = [{{name = "{model}"}}]
profile = "quick"
seed = 0
[options.stigma]
{options}
"""


def stigma_findings(model, values, *, gate="", state="none found", template="for me"):
    """Findings as the audit stores them: 40 stigmatized conditions, then 20 others."""
    rows = tuple(
        Finding(
            labels={
                "model": model,
                "template": template,
                "condition": f"condition {i}",
                "category": "c",
                "group": "stigmatized" if i < 40 else "other",
            },
            estimate=float(value),
            n=7,
        )
        for i, value in enumerate(values)
    )
    verdict = Verdict(
        audit="stigma",
        model=model,
        aspect=ASPECT,
        state="cannot tell" if gate else state,
        estimate=0.01,
        low=-0.1,
        high=0.1,
        p=0.5,
        q=0.5,
        n=60,
        detectable=0.1,
        size="",
        sentence=f"{model} shows nothing.",
        reason=gate,
        rows=(RowReference(table="condition_templates", labels={"model": model}),),
    )
    table = FindingTable(name="condition_templates", title="t", caption="c", rows=() if gate else rows)
    return Findings(probe="stigma", tables=(table,), figures=(), verdicts=(verdict,), release=__version__)


def stigma_run(path, model, *, lean=0.0, level=0.3, seed=0, options="", **more):
    """A run of one masked model whose stigmatized conditions are more negative by the lean."""
    common = np.random.default_rng(99).normal(0, 0.03, size=60)
    own = np.random.default_rng(seed).normal(0, 0.01, size=60)
    values = level + common + own + lean * (np.arange(60) < 40)
    info = replace(model_info(model), capabilities=("fill",))
    run = RunFolder.create(
        path,
        spec=SPEC.format(model=model, options=options),
        provenance={"questions": {"stigma": 1}},
        models=[info],
    )
    run.write_findings(stigma_findings(model, values, **more))
    return run.path
