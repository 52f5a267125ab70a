"""How cost grows: processor time against words, reviews, groups, samples, models and model size, with exponents.

    python benchmarks/growth.py [--json FILE] [--chart docs/images/growth.svg]

Everything else is held fixed while one number doubles. The exponent is the slope of log time over log size by
least squares over the larger half of the sizes, where fixed costs weigh little: 1 is linear. Findings are
measured on drawn answers; words, reviews and groups also cost questions, whose number grows in proportion by
definition and is not measured here. Model size is measured on one batch of BERT's layers. What compares every
two values or groups is pairwise by definition, so above 1 in values; it is measured, too, and said.
"""

from __future__ import annotations

import gc
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from findings import DrawnRecords, draw_records, model
from measured import Row, arguments, tell

from clinometer.metrics import fairness_nulls, pair_null
from clinometer.probes import get_probe
from clinometer.probes.counterfactual.measures import pair_draws
from clinometer.probes.protocol import Plan

LINEAR = 1.15  # fitted exponents vary by so much
_FOLDER = tempfile.TemporaryDirectory()


def main() -> None:
    """Measure, fit, draw, tell."""
    parser = arguments(__doc__)
    parser.add_argument("--chart", type=Path)
    options = parser.parse_args()
    rows, points = [], []
    for name, (sizes, run, pairwise) in curves().items():
        seconds = []
        for size in sizes:
            work = run(size)
            gc.collect()
            start = time.process_time()
            work()
            seconds.append(time.process_time() - start)
        half = len(sizes) // 2
        slope = _slope(sizes[half - 1 :], seconds[half - 1 :])
        points += [{"cost of": name, "size": s, "seconds": t} for s, t in zip(sizes, seconds, strict=True)]
        print(f"{name}: {slope:.2f}", [f"{s}: {t:.2f} s" for s, t in zip(sizes, seconds, strict=True)], flush=True)
        aim = "≤ 2, pairwise by definition" if pairwise else "at most linear"
        rows.append(
            Row(
                work=f"cost against {name}",
                unit="exponent",
                ours=slope,
                targets={aim: slope <= (2 + LINEAR - 1 if pairwise else LINEAR)},
                notes=[
                    f"{sizes[0]:,} to {sizes[-1]:,}: {seconds[0]:.2f} to {seconds[-1]:.2f} s of processor time"
                ],
            )
        )
    tell(rows, to=options.json)
    if options.chart:
        _draw(points, options.chart)


Curve = tuple[list[int], Callable[[int], Callable[[], object]], bool]


def curves() -> dict[str, Curve]:
    """Return for each number its sizes, what makes the work of a size, and whether it is pairwise."""
    return {
        "words of a class": ([50, 100, 200, 400], lambda n: _words(words=n, reviews=20), False),
        "reviews of a class": ([25, 50, 100, 200], lambda n: _words(words=50, reviews=n), False),
        "groups": ([45, 90, 180, 373], _groups, False),
        "samples": ([25, 50, 100, 200], lambda n: _texts(models=1, samples=n), False),
        "models": ([1, 2, 4, 8], lambda n: _texts(models=n, samples=25), False),
        "layers of a model": ([3, 6, 12, 24], _layers, False),
        "values, I.F. and G.F.": ([8, 16, 32, 64], _values, False),
        "values, tests of every pair": ([8, 16, 32, 64], _pairs, True),
        "values, tests of every pair where all differ": ([8, 16, 32, 64], _different_pairs, True),
    }


def _slope(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit([math.log(size) for size in sizes], [math.log(each) for each in seconds], 1)[0])


def _concluded(name: str, models: int, capabilities: tuple[str, ...], **options: object) -> Callable[[], object]:
    """Return what makes the findings of drawn answers."""
    probe = get_probe(name)
    roles = {}
    if name == "counterfactual":
        roles = {
            "scorer": (model("opinions", "classify", family="opinion-words"),),
            "encoder": (model("encoder", "embed"),),
        }
    plans = [
        Plan(options=probe.options(**options), seed=0, model=model(f"model-{n}", *capabilities), roles=roles)
        for n in range(models)
    ]
    records = DrawnRecords()
    for seed, plan in enumerate(plans):
        draw_records(probe, plan, records, seed)
    return lambda: probe.findings(plans, records)


def _words(*, words: int, reviews: int) -> Callable[[], object]:
    return _concluded("sentiment_words", 1, ("fill",), words_per_class=words, reviews_per_class=reviews)


def _groups(groups: int) -> Callable[[], object]:
    every = get_probe("stereotypes").options().chosen_groups()
    some = [every[number * len(every) // groups] for number in range(groups)]
    file = Path(_FOLDER.name, f"groups-{groups}.csv")  # findings read it, too
    lines = [f"{group.name},{group.category},{group.kind}" for group in some]
    file.write_text("\n".join(["group,category,kind", *lines]), encoding="utf-8")
    return _concluded("stereotypes", 1, ("fill",), groups_file=str(file))


def _texts(*, models: int, samples: int) -> Callable[[], object]:
    more = {"similarity_samples": min(samples, 20), "draws": 499, "attributes": ("occupation",), "max_values": 10}
    return _concluded("counterfactual", models, ("sample", "log_likelihood"), samples=samples, **more)


def _layers(layers: int) -> Callable[[], object]:
    from shapes import save_bert
    from transformers.utils import logging

    from clinometer.models.load import load_model
    from clinometer.types import Fill

    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        loaded = load_model(str(save_bert(Path(name), layers=layers)), device="cpu")
    requests = [Fill(text=f"Why are the {number} nurses so [MASK]?", top_k=200) for number in range(32)]
    loaded.fill(requests)
    return lambda: loaded.fill(requests)


def _values(values: int) -> Callable[[], object]:
    scores = np.random.default_rng(0).random((5, values, 100))
    return lambda: fairness_nulls([scores], rng=np.random.default_rng(1), draws=500)


def _pairs(values: int) -> Callable[[], object]:
    return _every_pair(np.random.default_rng(0).random((5, values, 100)))


def _different_pairs(values: int) -> Callable[[], object]:
    return _every_pair(np.random.default_rng(0).random((5, values, 100)) + np.arange(values)[:, None])


def _every_pair(scores: npt.NDArray[np.float64]) -> Callable[[], object]:
    return lambda: pair_null(
        scores, rng=np.random.default_rng(1), draws=500, further=pair_draws(scores.shape[1], 500)
    )


def _draw(points: list[dict[str, object]], to: Path) -> None:
    import altair

    chart = (
        altair.Chart(altair.Data(values=points))
        .mark_line(point=True)
        .encode(
            x=altair.X("size:Q", scale=altair.Scale(type="log"), title="size"),
            y=altair.Y("seconds:Q", scale=altair.Scale(type="log"), title="processor time (s)"),
            color=altair.Color("cost of:N", title="cost against"),
        )
        .properties(width=560, height=360)
    )
    to.parent.mkdir(parents=True, exist_ok=True)
    chart.save(str(to))


if __name__ == "__main__":
    main()
