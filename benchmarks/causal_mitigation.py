"""Mitigate a causal model on every attribute, each kind of training several times, and keep what docs show of it.

    python benchmarks/causal_mitigation.py --corpus wikipedia-1.txt.xz [--minutes 9] [--runs FOLDER] [--out FOLDER]

One `clinometer mitigate` for each attribute: the control and both methods at each λ, each with three seeds, 200
continuations of every prefix by every model. OUT/mitigation-ATTRIBUTE gets the tables of changes, reductions and
costs as CSV, the charts as SVG, `about.json` (command, machine, seconds, headlines, verdicts) and `table.md`: the
table of docs/mitigation-results.md, a row for each kind of training.

`--unit window` trains on packed windows instead of sentences; its folders end in `-window`. What has its
`about.json` is not run again. `--minutes` stops what runs then: exit code 75, and the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from full_size import NOT_DONE, Stopped, computed_on, run

import clinometer
from clinometer.probes.kit.before_after import AS_GIVEN, METHODS, arms_of
from clinometer.types import Finding, FindingTable, ModelInfo

ATTRIBUTES = ("occupation", "country", "name")
BATCH = {"occupation": 128, "country": 64, "name": 128}  # countries have the fewest sentences
TABLES = ("mitigation", "change", "reduction", "costs", "documents", "training_changes", "trainings")
SCORERS = {"builtin:opinion-words": "words", "builtin:sentiment": "classifier"}


def command_of(attribute: str, options: argparse.Namespace, folder: Path) -> list[str]:
    """Return the words after `clinometer`."""
    words: list[object] = ["mitigate", options.model, "--attribute", attribute, "--corpus", *options.corpus]
    words += ["--method", *options.method, "--strength", *options.strength, "--seeds", options.seeds]
    words += ["--unit", options.unit, "--steps", options.steps, "--batch", options.batch or BATCH[attribute]]
    words += ["--learning-rate", options.learning_rate, "--labelled", options.labelled]
    words += ["--held-out", options.held_out, "--max-articles", options.max_articles]
    words += ["--profile", options.profile, "--device", options.device, "--out", folder, "--quiet"]
    words += ["--set", *(f"counterfactual.{each}" for each in options.set)]
    return [str(word) for word in words]


def folder_of(attribute: str, options: argparse.Namespace) -> str:
    """Return the name of the folder of results, and of the run."""
    return f"mitigation-{attribute}" + ("-window" if options.unit == "window" else "")


def keep(folder: Path, out: Path, about: dict[str, Any]) -> None:
    """Write what is kept of a finished mitigation."""
    found = clinometer.open_run(folder / "audit")
    audit = found["counterfactual"]
    out.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        if name in audit:
            audit[name].to_polars().write_csv(out / f"{name}.csv", float_precision=6)
    audit["mitigation"].plot("tradeoff").save(out / "tradeoff.svg")
    if any(math.isfinite(row.estimate) for row in audit["reduction"].rows):  # else there was nothing to reduce
        audit["reduction"].plot("reduction", against="control").save(out / "reduction-against-control.svg")
    tables = {table.name: table for table in audit.findings.tables}
    (out / "table.md").write_text(table_of(tables, found.models), encoding="utf-8")
    changes = [
        {
            name: getattr(each, name)
            for name in ("measure", "before", "after", "state", "estimate", "low", "high", "q")
        }
        for each in found.changes
    ]
    about |= {"digest": found.digest, "headlines": audit.headlines, "notices": audit.warnings, "changes": changes}
    text = json.dumps(about, indent=1, ensure_ascii=False)
    (out / "about.json").write_text(text + "\n", encoding="utf-8")


# -- the table of the page


def table_of(tables: dict[str, FindingTable], models: Sequence[ModelInfo]) -> str:
    """Return a row for the model as given and for each kind of training, as Markdown."""
    head = ["model, λ", "PPL (change, %)", "S.S.", "S.S.c"]
    for title in ("I.F. {}", "gone, {}", "against control, {}"):
        head += [title.format(short) for short in SCORERS.values()]
    arms = sorted(arms_of(models), key=lambda arm: _order(models[arm.pairs[0].after]))
    bases = dict.fromkeys(models[arm.pairs[0].before].name for arm in arms)
    lines = [_row(tables, base, AS_GIVEN) for base in bases]
    for arm in arms:
        tuning = models[arm.pairs[0].after].tuning
        strength = "" if tuning["method"] == "control" else f" {tuning.get('amount', '')}"
        lines.append(_row(tables, arm.name, f"{tuning['method']}{strength}".strip()))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *lines)) + "\n"


def _order(model: ModelInfo) -> tuple[int, float]:
    amount = model.tuning.get("amount", "")
    return METHODS.index(model.tuning["method"]), float(amount or 0)


def _row(tables: dict[str, FindingTable], name: str, title: str) -> list[str]:
    def first(table: str, **labels: object) -> Finding | None:
        rows = tables[table].rows if table in tables else ()
        return next((row for row in rows if row.labels.items() >= {"model": name, **labels}.items()), None)

    level = first("mitigation")
    cost = first("costs", against="before", guard="perplexity", of="whole text")
    perplexity = _number(level and float(level.labels["PPL"]), 1)
    change = f" ({_signed(100 * (cost.estimate - 1), 1)})" if cost else ""
    cells = [title, perplexity + change]
    cells += [_number(level and float(level.labels[each]), 1) for each in ("S.S. %", "S.S.c %")]
    cells += [_number(row and row.estimate, 3) for row in (first("mitigation", scorer=each) for each in SCORERS)]
    for scorer in SCORERS:
        gone = first("reduction", scorer=scorer, against="before", measure="I.F.")
        cells.append(_gone(gone) if gone and math.isfinite(gone.estimate) else "")
    for scorer in SCORERS:
        beyond = first("change", scorer=scorer, against="control", measure="I.F.", quantity="excess")
        cells.append(_against(beyond) if beyond else "")
    return cells


def _gone(row: Finding) -> str:
    return f"{_number(row.estimate, 0)} [{_number(row.low, 0)}, {_number(row.high, 0)}]"


def _against(row: Finding) -> str:
    """Write a change of the excess in thousandths, with a star where it is measurable."""
    star = "*" if row.q < 0.05 and (row.low > 0 or row.high < 0) else ""
    estimate, low, high = (_signed(1000 * each, 1) for each in (row.estimate, row.low, row.high))
    return f"{estimate} [{low}, {high}]{star}"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def _signed(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:+.{digits}f}".replace("-", "−")


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+", required=True)
    parser.add_argument("--model", default="builtin:causal")
    parser.add_argument("--attribute", nargs="+", choices=ATTRIBUTES, default=list(ATTRIBUTES))
    parser.add_argument("--method", nargs="+", default=["embedding", "sentiment"])
    parser.add_argument("--strength", nargs="+", default=["0", "10"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--unit", default="sentence")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=0, help="0: 128, of country 64")
    parser.add_argument("--learning-rate", default="3e-4")
    parser.add_argument("--labelled", type=int, default=30000)
    parser.add_argument("--held-out", type=int, default=100)
    parser.add_argument("--max-articles", type=int, default=0)
    parser.add_argument("--profile", default="standard")
    parser.add_argument(
        "--set",
        nargs="+",
        default=["samples=200", "similarity_samples=50", "draws=500"],
        help="options of the audit",
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--runs", type=Path, default=Path("runs/causal-mitigation"))
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    return parser.parse_args(arguments)


def main() -> int:
    """Mitigate on every attribute that has no result yet."""
    began = time.monotonic()
    options = options_of()
    options.runs.mkdir(parents=True, exist_ok=True)
    for attribute in options.attribute:
        name = folder_of(attribute, options)
        if (options.out / name / "about.json").exists():
            print(f"{name}: there already")
            continue
        folder, spent = options.runs / name, options.runs / f"{name}.seconds"
        before = float(spent.read_text()) if spent.exists() else 0.0
        started = time.monotonic()
        command = command_of(attribute, options, folder)
        try:
            with (options.runs / f"{name}.log").open("ab") as log:
                memory, on_gpu = run(command, until=began + 60 * options.minutes, stdout=log)
        except Stopped:
            print(f"{name}: time is up; the same command goes on from there")
            return NOT_DONE
        finally:
            seconds = before + time.monotonic() - started
            spent.write_text(f"{seconds:.1f}\n")
        about = {
            "command": " ".join(["clinometer", *command_of(attribute, options, Path(name))]),
            "machine": computed_on(gpu=on_gpu > 0),
            "seconds": round(seconds, 1),
            "peak_memory_gib": round(memory, 2),
            "peak_gpu_memory_gib": round(on_gpu, 2),
        }
        keep(folder, options.out / name, about)
        print(f"{name}: done after {seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
