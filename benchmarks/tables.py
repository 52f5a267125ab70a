"""Writes the tables of docs/speed.md, between their markers, from the results in docs/results/speed/.

python benchmarks/tables.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measured import figure, times

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "speed"
DOCS = ROOT / "docs" / "speed.md"
BEGIN, END = "<!-- {}: written by benchmarks/tables.py -->", "<!-- end of {} -->"
# in the order of the page; a file that is not there is a table, or a row, less
PARTS = {
    "cpu": (
        "fill-short", "fill-reviews", "fill-reviews-256", "rescoring", "sampling", "fairness", "findings",
        "findings-lean", "counterfactual", "opinion-words", "start", "records", "endpoint",
    ),
    "gpu": (
        "fill-short-h200", "fill-reviews-h200", "fill-reviews-256-h200", "sampling-gpt2-h200",
        "sampling-smollm2-h200", "sampling-many-h200", "rescoring-h200", "counterfactual-h200", "shift-h200",
    ),
    "growth": ("growth",),
}  # fmt: skip


def main() -> None:
    """Write every table for which there are results."""
    DOCS.write_text(with_tables(DOCS.read_text(encoding="utf-8")), encoding="utf-8")


def with_tables(page: str) -> str:
    """Return the page with its tables made from the results."""
    known = {each for names in PARTS.values() for each in names}
    if unknown := {path.stem for path in RESULTS.glob("*.json")} - known:
        raise SystemExit(f"in no table: {', '.join(sorted(unknown))}; name them in benchmarks/tables.py")
    for part, names in PARTS.items():
        found = [json.loads(path.read_text(encoding="utf-8")) for path in map(_file, names) if path.exists()]
        lines = _growth(found) if part == "growth" else _table(found)
        page = _put(page, part, "\n".join(lines) or "Not measured yet.")
    return page


def _file(name: str) -> Path:
    return RESULTS / f"{name}.json"


def _put(page: str, part: str, text: str) -> str:
    begin, end = BEGIN.format(part), END.format(part)
    before, found, rest = page.partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"docs/speed.md has no place for the table {part!r}: {begin} … {end}")
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"


def _table(results: list[dict[str, Any]]) -> list[str]:
    if not results:
        return []
    lines = ["| work | ours | usual tool | ratio | to reach | |", "|---|---|---|---|---|---|"]
    commands: list[str] = []
    for result in results:
        for row in result["rows"]:
            others = "<br>".join(f"{name}: {_number(value, row)}" for name, value in row["others"].items()) or "–"
            ratio = times(row["ratio"]) if row["ratio"] is not None else "–"
            aims = "<br>".join(row["targets"]) or "–"
            met = "<br>".join("reached" if each else "**not reached**" for each in row["targets"].values())
            lines.append(f"| {row['work']} | {_number(row['ours'], row)} | {others} | {ratio} | {aims} | {met} |")
        commands.append(f"- `{result['command']}`, {_machine(result['machine'])}")
        commands += [f"  - {note}" for row in result["rows"] for note in row["notes"]]
    return [*lines, "", "Measured by:", "", *commands]


def _growth(results: list[dict[str, Any]]) -> list[str]:
    if not results:
        return []
    (result,) = results
    lines = ["| cost against | exponent | to reach | | from … to |", "|---|---|---|---|---|"]
    for row in result["rows"]:
        ((aim, met),) = row["targets"].items()
        what = row["work"].removeprefix("cost against ")
        told = "reached" if met else "**not reached**"
        lines.append(f"| {what} | {row['ours']:.2f} | {aim} | {told} | {row['notes'][0]} |")
    return [*lines, "", f"Measured by `{result['command']}`, {_machine(result['machine'])}."]


def _number(value: float, row: dict[str, Any]) -> str:
    return f"{figure(value)} {row['unit']}"


def _machine(machine: dict[str, Any]) -> str:
    where = machine.get("gpu") or f"{machine['cores']} cores of {machine['processor']}"
    libraries = [f"{name} {machine[name]}" for name in ("torch", "transformers") if name in machine]
    load = [f"load {machine['load_before']:.1f} before"] if "load_before" in machine else []
    return ", ".join([where, *libraries, *load])


if __name__ == "__main__":
    main()
