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
models = [{models}]
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
    info = replace(model_info(model), capabilities=("fill",))
    return _run(path, [info], [stigma_findings(model, _values(lean, seed, level), **more)], options=options)


def trained_run(path, **leans):
    """A run of `given`, and of trainings of it with seeds 0, 1, …: of each method, the lean that each has."""
    base = replace(model_info("given"), capabilities=("fill",))
    models, found = [base], [stigma_findings("given", _values(0.0, 1))]
    for method, each in leans.items():
        for seed, lean in enumerate(each):
            tuning = {"base": base.weights, "method": method, "attribute": "occupation", "amount": "10"}
            tuning |= {"data": "text", "seed": str(seed)} | ({"amount": "0"} if method == "control" else {})
            name = f"given-{method}-seed-{seed}"
            models.append(replace(base, name=name, weights=name, tuning=tuning))
            found.append(stigma_findings(name, _values(lean, 10 + len(models)), state="lean"))
    return _run(path, models, found)


def _values(lean, seed, level=0.3):
    common = np.random.default_rng(99).normal(0, 0.03, size=60)
    own = np.random.default_rng(seed).normal(0, 0.01, size=60)
    return level + common + own + lean * (np.arange(60) < 40)


def _run(path, models, found, *, options=""):
    names = ", ".join(f'{{name = "{each.name}"}}' for each in models)
    run = RunFolder.create(
        path,
        spec=SPEC.format(models=names, options=options),
        provenance={"questions": {"stigma": 1}},
        models=models,
    )
    (table,) = {each.tables[0].name: each.tables[0] for each in found}.values()
    table = replace(table, rows=tuple(row for each in found for row in each.tables[0].rows))
    verdicts = tuple(verdict for each in found for verdict in each.verdicts)
    run.write_findings(replace(found[0], tables=(table,), verdicts=verdicts))
    return run.path
