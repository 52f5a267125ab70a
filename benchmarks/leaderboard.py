"""How large and how fast the page of many models is: 50 models × 5 audits, made from one finished run.

    python benchmarks/leaderboard.py RUN OUT [MODELS]

RUN is a run of `make audit`. Its masked model, and for the counterfactual audit its causal one, are copied under
other names, each with noise and a lean of its own; then they are compared, and the page is opened in Chromium.
"""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from clinometer.store import RunFolder
from clinometer.types import Finding, Findings
from clinometer.workflows.compare import CompareRequest, findings_of, run_compare

FROM = {"counterfactual": "builtin:causal"}  # the others: builtin:masked
SPEC = 'version = 1\nprobes = [{probes}]\nmodels = [{{name = "{name}"}}]\nprofile = "quick"\nseed = 0\n'


def copied(found: Findings, name: str, rng: np.random.Generator) -> Findings:
    """Return the findings of one model of a run under another name, with noise."""
    source = FROM.get(found.probe, "builtin:masked")
    lean = float(rng.normal(0, 0.05))

    def moved(row: Finding) -> Finding:
        labels = {**row.labels, "model": name}
        if "called" in labels and rng.random() < 0.1:
            labels["called"] = "positive" if labels["called"] == "none" else "none"
        for label in ("gap", "margin"):
            if label in labels:
                labels[label] = float(labels[label]) + float(rng.normal(lean, 0.05))
        inside = row.labels.get("group") == "stigmatized" or "occupation" in row.labels or "scorer" in row.labels
        by = lean * inside + float(rng.normal(0, 0.02))
        return replace(row, labels=labels, estimate=row.estimate + by, low=row.low + by, high=row.high + by)

    return replace(
        found,
        tables=tuple(
            replace(table, rows=tuple(moved(row) for row in table.rows if row.labels.get("model") == source))
            for table in found.tables
        ),
        figures=(),
        verdicts=tuple(replace(each, model=name) for each in found.verdicts if each.model == source),
    )


def make_runs(run: Path, out: Path, models: int) -> list[Path]:
    """Write one run for each model."""
    original = RunFolder.open(run)
    found = findings_of(original, {})
    infos = {info.name: info for info in original.models}
    places = []
    for number in range(models):
        name, place = f"org/model-{number:02}", out / f"run-{number:02}"
        info = replace(infos["builtin:masked"], name=name, capabilities=("fill", "sample"))
        probes = ", ".join(f'"{audit}"' for audit in found)
        made = RunFolder.create(
            place,
            spec=SPEC.format(probes=probes, name=name),
            provenance={"questions": original.provenance.get("questions", {})},
            models=[info],
        )
        rng = np.random.default_rng(number)
        for audit in found.values():
            made.write_findings(copied(audit, name, rng))
        places.append(place)
    return places


def opened_in(page: Path) -> float:
    """Return after how many seconds Chromium has loaded the page."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    browser.get(page.as_uri())
    loaded = browser.execute_script(
        "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd - t.startTime"
    )
    browser.quit()
    return float(loaded) / 1000


def main(run: Path, out: Path, models: int) -> None:
    """Print time and size."""
    places = make_runs(run, out, models)
    start = time.perf_counter()
    compared = run_compare(CompareRequest(sources=tuple(places)))
    page = compared.write_page(out / "comparison.html")
    took = time.perf_counter() - start
    print(f"{models} models × {len(compared.audits)} audits: {took:.1f} s to compare and write")
    print(f"{page.stat().st_size / 1e6:.2f} MB; opened in {opened_in(page):.2f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 50)
