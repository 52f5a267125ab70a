"""The charts of the counterfactual audit; what is about one attribute has a chart for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from clinometer.probes.counterfactual.requests import SAMPLES
from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.tables.distances import EXCESS
from clinometer.probes.counterfactual.tables.guards import ALL_VALUES
from clinometer.types import Figure


def figures(attributes: Sequence[Chosen], tables: frozenset[str], *, models: int) -> tuple[Figure, ...]:
    """Return the figures whose table has rows; one model alone needs no menu and no row of its own."""
    every = (*_overview(), *(figure for chosen in attributes for figure in _of_attribute(chosen)), *_guards())
    shown = [figure for figure in every if figure.table in tables]
    if models > 1:
        return tuple(shown)
    return tuple(
        replace(
            figure,
            menus=tuple(name for name in figure.menus if name != "model"),
            row="" if figure.row == "model" else figure.row,
            column="" if figure.column == "model" else figure.column,
            color="" if figure.color == "model" else figure.color,
        )
        for figure in shown
    )


def _overview() -> Iterator[Figure]:
    yield Figure(
        name="excess",
        title="How much further apart than by chance",
        caption="Right of 0 the sentiment depends on the value; each colour is a scorer.",
        table="fairness",
        mark="intervals",
        x="estimate",
        y="attribute",
        color="scorer",
        column="measure",
        row="model",
        filters={"quantity": EXCESS},
        reference=0.0,
        evidence=SAMPLES,
    )
    yield Figure(
        name="measured",
        title="As the paper prints it, beside chance",
        caption="measured is I.F. or G.F. itself; what shuffled labels give lies beside it.",
        table="fairness",
        mark="intervals",
        x="estimate",
        y="attribute",
        color="quantity",
        column="scorer",
        row="model",
        menus=("measure",),
        reference=0.0,
        evidence=SAMPLES,
    )


def _of_attribute(chosen: Chosen) -> Iterator[Figure]:
    filters = {"attribute": chosen.name}
    yield Figure(
        name=f"values_{_plain(chosen.name)}",
        title=f"{chosen.name.capitalize()}: each value against the whole",
        caption="Right of 0 the texts about this value are more positive than those about all values.",
        table="values",
        mark="intervals",
        x="estimate",
        y="value",
        color="subgroup" if chosen.attribute.subgroups else "",
        column="scorer",
        filters=filters,
        menus=("template", "model"),
        reference=0.0,
        evidence=SAMPLES,
    )
    yield Figure(
        name=f"distributions_{_plain(chosen.name)}",
        title=f"{chosen.name.capitalize()}: distribution of the scores",
        caption="Share of texts with at most this score: choose a value. Higher means more negative texts.",
        table="distributions",
        mark="lines",
        x="score",
        y="estimate",
        color="line",
        column="scorer",
        filters=filters,
        menus=("value", "model"),
        evidence=SAMPLES,
    )
    yield Figure(
        name=f"pairs_{_plain(chosen.name)}",
        title=f"{chosen.name.capitalize()}: distance between every two values",
        caption="W1, mean over templates, as measured; the table has chance, interval and q of each.",
        table="pairs",
        mark="heatmap",
        x="value",
        y="other",
        filters=filters,
        menus=("scorer", "model"),
        evidence=SAMPLES,
    )
    yield Figure(
        name=f"templates_{_plain(chosen.name)}",
        title=f"{chosen.name.capitalize()}: I.F. in each template",
        caption="As measured; the table has what chance gives.",
        table="templates",
        mark="intervals",
        x="estimate",
        y="template",
        color="scorer",
        filters=filters,
        menus=("model",),
        evidence=SAMPLES,
    )


def _guards() -> Iterator[Figure]:
    yield Figure(
        name="relevance",
        title="Does the text speak of what it was asked about?",
        caption="A model that ignores the value is even and useless.",
        table="relevance",
        mark="intervals",
        x="estimate",
        y="attribute",
        color="measure",
        column="model",
        filters={"value": ALL_VALUES},
        evidence=SAMPLES,
    )
    yield Figure(
        name="perplexity",
        title="Perplexity of held-out text",
        caption="Lower is better; compare models with one tokenizer only.",
        table="perplexity",
        mark="intervals",
        x="estimate",
        y="part",
        color="model",
        evidence="perplexity",
    )
    yield Figure(
        name="human_correlation",
        title="Automatic measures and human judgement",
        caption="Spearman's correlation over the sentences that people rated.",
        table="human_correlation",
        mark="intervals",
        x="estimate",
        y="measure",
        color="model",
        column="question",
        reference=0.0,
    )


def _plain(name: str) -> str:
    """Return a name for a figure: letters, digits and underscores."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in name.lower())
