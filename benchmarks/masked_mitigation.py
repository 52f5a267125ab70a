"""Compare the ways of mitigating a masked model: what each changes beyond its control, and what it costs.

    python benchmarks/masked_mitigation.py --corpus news.jsonl.xz [--minutes 9] [--runs FOLDER] [--out FILE.json]

A cell is one `clinometer mitigate`: control, embedding with λ = 1 and 10, swapped and counterexamples, each with
three seeds, and the audits stereotypes, stigma and counterexamples of all of them. Cells differ in what is trained
(all weights, or low-rank matrices), the learning rate, and the share of ordinary text. The result has a row for
each arm: the verdicts against the control and against the model as given, the change of the perplexity of masked
tokens with its interval over documents and trainings, and whether that is at most 3 %; as JSON, and beside it as
CSV.

Give a corpus that the model has not read: `builtin:masked` has read Wikipedia, any training makes it forget what
it knows by heart, and perplexity would show that alone.

The result is written after every cell; what is finished is not run again (RUNS/CELL.json has its rows: that small
file is enough to go on from on another machine). `--minutes` stops what runs then: exit code 75, and the same
command goes on.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from full_size import NOT_DONE, Stopped, run
from measured import machine

import clinometer
from clinometer.probes.kit.asking import CONTROL
from clinometer.probes.kit.before_after import arms_of
from clinometer.stats import critical_value, training_noise, with_training_noise
from clinometer.stats.paired import Sure

MOST = 3.0  # percent that perplexity may rise


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What the arms of one command have in common."""

    lora: int
    learning_rate: float
    ordinary: float

    @property
    def name(self) -> str:
        """The name of its folder."""
        trained = f"lora-{self.lora}" if self.lora else "full"
        return f"{trained}-rate-{self.learning_rate:g}-ordinary-{self.ordinary:g}"


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """Return the cells in the order in which they are run: the cheapest differences last."""
    chosen = itertools.product(options.learning_rate, options.ordinary, options.lora)
    return [Cell(lora=lora, learning_rate=rate, ordinary=share) for rate, share, lora in chosen]


def command_of(cell: Cell, options: argparse.Namespace, folder: Path) -> list[str]:
    """Return the words after `clinometer`."""
    words: list[object] = ["mitigate", options.model, "--attribute", "occupation", "--corpus", *options.corpus]
    words += ["--method", *options.method, "--strength", 0, *options.strength, "--seeds", options.seeds]
    words += [
        "--lora",
        cell.lora,
        "--learning-rate",
        f"{cell.learning_rate:g}",
        "--ordinary",
        f"{cell.ordinary:g}",
    ]
    words += [
        "--hidden",
        f"{options.hidden:g}",
        "--unit",
        options.unit,
        "--window",
        options.window,
        "--steps",
        options.steps,
    ]
    words += ["--batch", options.batch, "--held-out", options.held_out, "--max-articles", options.max_articles]
    words += ["--profile", options.profile, "--device", options.device, "--out", folder, "--quiet"]
    if options.set:
        words += ["--set", *options.set]
    return [str(word) for word in words]


def rows_of(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each arm of a finished cell."""
    found = clinometer.open_run(folder / "audit")
    models = found.models
    arms = arms_of(models)
    costs = perplexity_changes([[_ratio(folder / models[pair.after].name) for pair in arm.pairs] for arm in arms])
    methods = {arm.name: models[arm.pairs[0].after].tuning for arm in arms}
    (control,) = (arm.name for arm in arms if methods[arm.name]["method"] == CONTROL)
    rows = []
    for arm, cost in zip(arms, costs, strict=True):
        verdicts = [
            {
                "against": "control" if each.before == control else "as given",
                **{name: getattr(each, name) for name in _OF_A_VERDICT},
            }
            for each in found.changes
            if each.after == arm.name
        ]
        against = [each["state"] for each in verdicts if each["against"] == "control"]
        rows.append(
            {
                **asdict(cell),
                "method": methods[arm.name]["method"],
                "strength": methods[arm.name].get("amount", ""),
                "trainings": len(arm.pairs),
                **cost,
                "better_than_control": against.count("better"),
                "worse_than_control": against.count("worse"),
                "verdicts": verdicts,
            }
        )
    return rows


_OF_A_VERDICT = ("audit", "measure", "state", "estimate", "low", "high", "q", "lean_before", "lean_after", "n")


def _ratio(checkpoint: Path) -> Mapping[str, float]:
    figures = tomllib.loads((checkpoint / "card.toml").read_text(encoding="utf-8"))["figures"]
    ratio: Mapping[str, float] = figures["perplexity_of_masked_tokens"]["ratio"]
    return ratio


def perplexity_changes(ratios: Sequence[Sequence[Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Return the change of perplexity of each arm in percent, of its trainings' ratios after/before.

    Logarithms are averaged over trainings; the interval holds what documents and trainings differ in, as those of
    verdicts do (docs/tuning.md, Several trainings).

    >>> one = {"estimate": 1.02, "low": 1.01, "high": 1.03}
    >>> (found,) = perplexity_changes([[one]])
    >>> round(found["perplexity_change"], 6), found["perplexity_at_most_3_percent"]
    (2.0, True)
    """
    logs = np.log([[[each[part] for part in ("estimate", "low", "high")] for each in of_arm] for of_arm in ratios])
    estimate, low, high = np.moveaxis(logs.mean(axis=1), 1, 0)
    trainings = logs.shape[1]
    if trainings > 1:
        errors = (high - low) / (2 * critical_value(0.975))
        noise = training_noise(logs[:, None, :, 0], errors[:, None])
        given = Sure(estimate=estimate, low=low, high=high, p=np.full(len(estimate), np.nan))
        sure = with_training_noise(given, noise.variance[:, 0], freedom=noise.freedom, trainings=noise.trainings)
        low, high = sure.low, sure.high
    percent = 100 * (np.exp(np.stack([estimate, low, high], axis=1)) - 1)
    return [
        {
            "perplexity_change": each[0],
            "perplexity_low": each[1],
            "perplexity_high": each[2],
            "perplexity_at_most_3_percent": each[0] <= MOST,
            "perplexity_surely_at_most_3_percent": each[2] <= MOST,
        }
        for each in percent.tolist()
    ]


def write(path: Path, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> None:
    """Write the rows as JSON, and as a table beside it: every verdict against the control as one cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**about, "arms": rows}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    flat = []
    for row in rows:
        measures = {
            f"{each['audit']}: {each['measure']}": _in_short(each)
            for each in row["verdicts"]
            if each["against"] == "control" or row["method"] == CONTROL
        }
        plain = {name: _rounded(value) for name, value in row.items() if name != "verdicts"}
        flat.append({**plain, **measures})
    columns = list(dict.fromkeys(name for row in flat for name in row))
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(flat)


def _in_short(verdict: Mapping[str, Any]) -> str:
    return f"{verdict['state']} {verdict['estimate']:+.4f} [{verdict['low']:+.4f}, {verdict['high']:+.4f}]"


def _rounded(value: object) -> object:
    return round(value, 2) if isinstance(value, float) and abs(value) >= 0.01 else value


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+", required=True)
    parser.add_argument("--model", default="builtin:masked")
    parser.add_argument("--method", nargs="+", default=["embedding", "swapped", "counterexamples"])
    parser.add_argument("--strength", nargs="*", default=["1", "10"], help="λ of embedding; none without it")
    parser.add_argument("--lora", type=int, nargs="+", default=[8, 0])
    parser.add_argument("--learning-rate", type=float, nargs="+", default=[2.5e-5, 1e-4])
    parser.add_argument("--ordinary", type=float, nargs="+", default=[0.5, 0.0])
    parser.add_argument("--hidden", type=float, default=0.8)
    parser.add_argument("--unit", default="sentence")
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--held-out", type=int, default=200)
    parser.add_argument("--max-articles", type=int, default=0)
    parser.add_argument("--profile", default="standard")
    parser.add_argument("--set", nargs="+", default=[], help="audit.option=value, for a trial")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--runs", type=Path, default=Path("runs/masked-mitigation"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/masked-mitigation.json"))
    return parser.parse_args(arguments)


def main() -> int:
    """Run the cells that have no rows yet, and write the rows of all that have."""
    began = time.monotonic()
    options = options_of()
    options.runs.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    about = {"command": " ".join(["python", *sys.argv]), "machine": machine(options.device)}
    for cell in cells_of(options):
        folder = options.runs / cell.name
        kept = options.runs / f"{cell.name}.json"
        asked = command_of(cell, options, Path(cell.name))
        if kept.exists() and json.loads(kept.read_text(encoding="utf-8"))["asked"] != asked:
            raise SystemExit(f"{kept} was made with other options; give another --runs")
        if not kept.exists():
            try:
                with (options.runs / f"{cell.name}.log").open("ab") as log:  # its findings are long
                    run(command_of(cell, options, folder), until=began + 60 * options.minutes, stdout=log)
            except Stopped:
                print(f"{cell.name}: time is up; the same command goes on from there")
                return NOT_DONE
            kept.write_text(json.dumps({"asked": asked, "rows": rows_of(cell, folder)}), encoding="utf-8")
            print(f"{cell.name}: done after {time.monotonic() - began:.0f} s", flush=True)
        rows += json.loads(kept.read_text(encoding="utf-8"))["rows"]
        write(options.out, rows, about)
    return 0


if __name__ == "__main__":
    sys.exit(main())
