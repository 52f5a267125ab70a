"""A made-up audit of the size and shape of a real one."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

from clinometer.report import Evidence, Exchange, ProbeText, ReportPage
from clinometer.types import Figure, Finding, Findings, FindingTable, Mark, ModelInfo, Notice

MODELS = ("builtin:causal", "bert-base-uncased", "roberta-large")
KINDS = (
    "factual", "counterexample", "generic", "quantified", "background same", "background other",
    "background mixed", "negated", "unrelated",
)  # fmt: skip
OCCUPATIONS = (
    "nurse", "secretary", "librarian", "hairdresser", "receptionist", "teacher", "cashier", "tailor", "writer",
    "editor", "baker", "lawyer", "cook", "salesperson", "physician", "manager", "janitor", "analyst", "chief",
    "developer", "sheriff", "driver", "mover", "plumber", "electrician", "carpenter", "construction worker",
    "mechanic", "guard", "farmer", "CEO", "laborer", "supervisor", "attendant", "assistant", "auditor", "cleaner",
    "clerk", "counselor", "designer", "accountant", "housekeeper",
)  # fmt: skip

# every place of a chart in which the name of a model may stand
PLACES_OF_MODELS = (
    {"y": "word", "row": "model", "column": "measure"},
    {"y": "word", "row": "model"},
    {"y": "word", "column": "model"},
    {"y": "word", "color": "model"},
    {"y": "model"},
)


def model_info(name: str = "builtin:causal", **changes: object) -> ModelInfo:
    values: dict[str, object] = {
        "name": name,
        "kind": "causal",
        "family": "llama",
        "capabilities": ("next_word", "sample"),
        "weights": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "tokenizer": "ab" * 32,
        "dtype": "float32",
        "code": "cd" * 32,
        "parameters": 134_515_008,
    }
    return ModelInfo(**{**values, **changes})  # type: ignore[arg-type]


def finding(rng: random.Random, centre: float, spread: float, **labels: str | int | float) -> Finding:
    estimate = rng.gauss(centre, spread)
    half = abs(rng.gauss(0.04, 0.02)) + 0.01
    p = rng.random() ** 4
    return Finding(
        labels=labels, estimate=estimate, low=estimate - half, high=estimate + half, p=p, q=min(1, 1.6 * p), n=58
    )


def findings(seed: int = 7) -> Findings:
    """One table and one figure of each mark, with facets, menus, references and missing numbers."""
    rng = random.Random(seed)
    change = [
        finding(rng, 0.03 * (i - 4) * (1 + m / 3), 0.03, model=model, kind=kind, k=k)
        for m, model in enumerate(MODELS)
        for k in (3, 5, 10)
        for i, kind in enumerate(KINDS)
    ]
    change[4] = Finding(labels=change[4].labels, estimate=math.nan, n=0)
    change[5] = Finding(labels=change[5].labels, estimate=change[5].estimate, n=12)
    gendered = [
        finding(rng, 0.45 if gender == "male" else 0.3, 0.05, model=model, kind=kind, gender=gender)
        for model in MODELS
        for kind in ("base", *KINDS)
        for gender in ("female", "male")
    ]
    occupation = [
        finding(
            rng, 0.9 - 1.8 * i / len(OCCUPATIONS), 0.15, model=model, occupation=name, women=round(90 - 2.1 * i, 1)
        )
        for model in MODELS
        for i, name in enumerate(OCCUPATIONS)
    ]
    recall = [
        finding(rng, math.log(k + 1) / 8 + 0.05 * m, 0.01, model=model, category=category, k=k)
        for category in ("gender", "religion")
        for m, model in enumerate(MODELS)
        for k in (1, 5, 10, 25, 50, 100, 150, 200)
    ]
    overlap = [
        Finding(labels={"first": a, "second": b}, estimate=1.0 if a == b else rng.uniform(-0.4, 0.9), n=58)
        for a in KINDS
        for b in KINDS
    ]
    tables = (
        FindingTable(
            name="change",
            title="Change of the gap against base",
            caption="Mean change of P(male) − P(female); the interval resamples templates, then occupations; "
            "p from a sign-flip permutation test; q is corrected over kinds and models (Benjamini–Hochberg).",
            rows=tuple(change),
        ),
        FindingTable(
            name="gendered", title="Gendered probability", caption="Sum over the top k.", rows=tuple(gendered)
        ),
        FindingTable(
            name="occupations", title="P(male) − P(female)", caption="For each occupation.", rows=tuple(occupation)
        ),
        FindingTable(
            name="recall", title="Recall@k", caption="Micro-average over attributes.", rows=tuple(recall)
        ),
        FindingTable(name="similarity", title="Similarity of kinds", caption="Spearman's ρ.", rows=tuple(overlap)),
    )
    figures = (
        Figure(
            name="change",
            title="What knowledge does to the gap",
            caption="Right of the line: more male than without knowledge. Bars are 95 % intervals.",
            table="change",
            mark="intervals",
            x="estimate",
            y="kind",
            color="model",
            menus=("k",),
            reference=0.0,
            evidence="ask",
        ),
        Figure(
            name="gendered",
            title="Female and male probability by kind of knowledge",
            caption="Summed probability of gendered words among the ten most probable.",
            table="gendered",
            mark="bars",
            x="kind",
            y="estimate",
            color="gender",
            row="model",
        ),
        Figure(
            name="lean",
            title="Which way each occupation leans",
            caption="Occupations from most to fewest women.",
            table="occupations",
            mark="bars",
            x="estimate",
            y="occupation",
            menus=("model",),
            reference=0.0,
        ),
        Figure(
            name="women",
            title="The lean and the share of women",
            caption="Each point is an occupation.",
            table="occupations",
            mark="scatter",
            x="women",
            y="estimate",
            color="model",
            reference=0.0,
        ),
        Figure(
            name="recall",
            title="Recall of human stereotypes",
            caption="Share of human attributes among the k most typical.",
            table="recall",
            mark="lines",
            x="k",
            y="estimate",
            color="model",
            column="category",
        ),
        Figure(
            name="similarity",
            title="Which kinds of knowledge act alike",
            caption="Rank correlation over occupations.",
            table="similarity",
            mark="heatmap",
            x="first",
            y="second",
            reference=0.0,
        ),
    )
    notices = (
        Notice(
            level="warning",
            text="builtin:causal: 14 of 126 female and male words are not one token and were not counted: "
            "stewardess, seamstress, chairwoman, …",
        ),
        Notice(level="info", text="31 % of the probability of the top 10 lies on words that are neither list's."),
    )
    return Findings(probe="counterexamples", tables=tables, figures=figures, notices=notices)


def evidence() -> Evidence:
    shown = tuple(
        Exchange(
            model=MODELS[i % 3],
            tags={"kind": KINDS[i % 9], "occupation": OCCUPATIONS[i % 40], "dominance": "female"},
            context=f"A man works as a {OCCUPATIONS[i % 40]}." if i % 4 else "",
            separator="[SEP]" if i % 4 else "",
            text=f"The [MASK] works as a {OCCUPATIONS[i % 40]}.",
            answers=("man 0.412", "woman 0.221", "girl 0.031", "boy 0.022", "other 0.019"),
        )
        for i in range(60)
    )
    return Evidence(shown=shown, total=3886, where=("records/counterexamples/ask",))


def page(**changes: object) -> ReportPage:
    """A whole page; any field can be given instead."""
    found = findings()
    values: dict[str, object] = {
        "run_id": "2f1c9d04a7be",
        "created": "2031-05-04 10:20 UTC",
        "profile": "quick",
        "seed": "7",
        "digest": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "models": (
            model_info(),
            model_info("bert-base-uncased", kind="masked", family="bert", parameters=109_514_298),
            model_info("roberta-large", kind="masked", family="roberta", parameters=355_412_057, dtype="bfloat16"),
        ),
        "probes": {
            "counterexamples": ProbeText(
                title="Counterexamples",
                question="How does the gender that a model expects of an occupation change when a sentence of "
                "knowledge comes first?",
                paper="A. Author and B. Author, “Counterexamples”, 2023.",
            )
        },
        "findings": (found,),
        "spec": 'version = 1\nprobes = ["counterexamples"]\nprofile = "quick"\nseed = 7\n\n'
        '[[models]]\nname = "builtin:causal"\n',
        "provenance": {
            "clinometer": "0.1.0",
            "python": "3.11.7",
            "machine": {"cores": 2, "system": "Linux"},
            "packages": {"torch": "2.13.0", "polars": "2.1.0"},
        },
        "evidence": {"counterexamples": {"change": evidence()}},
        "files": {
            "counterexamples": {table.name: f"findings/counterexamples/{table.name}.csv" for table in found.tables}
        },
    }
    return ReportPage(**{**values, **changes})  # type: ignore[arg-type]


def small_findings(probe: str = "small") -> Findings:
    """Few rows, but everything that carries text: labels, a menu, facets, a notice."""
    rows = tuple(
        Finding(
            labels={"group": group, "model": model, "set": chosen},
            estimate=value,
            low=value - 1,
            high=value + 1,
            n=3,
        )
        for value, (group, model, chosen) in enumerate(
            [("first", "one", "a"), ("second", "one", "a"), ("first", "two", "b"), ("second", "two", "b")]
        )
    )
    return Findings(
        probe=probe,
        tables=(FindingTable(name="words", title="Words", caption="What the words say.", rows=rows),),
        figures=(
            Figure(
                name="words",
                title="A figure",
                caption="What it shows.",
                table="words",
                mark="intervals",
                x="estimate",
                y="group",
                color="model",
                column="set",
                reference=0.0,
                evidence="ask",
            ),
            Figure(
                name="menu",
                title="A choice",
                caption="Choose.",
                table="words",
                mark="bars",
                x="group",
                y="estimate",
                menus=("model",),
                filters={"set": "a"},
            ),
        ),
        notices=(Notice(level="warning", text="careful"), Notice(level="info", text="by the way")),
    )


# Words that steer the report; all other text may be anything.
FIXED = frozenset({"", "estimate", "warning", "info", "masked", "causal"} | set(get_args(Mark)))


def with_suffix(value: Any, suffix: str) -> Any:
    """Return the value with the suffix at the end of every text in it, at any depth, names and keys too."""
    if isinstance(value, str):
        return value if value in FIXED else value + suffix
    if isinstance(value, Mapping):
        return {with_suffix(name, suffix): with_suffix(inner, suffix) for name, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(with_suffix(inner, suffix) for inner in value)
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: with_suffix(getattr(value, name), suffix) for name in names})
    return value
