"""The charts of the counterfactual audit; what is about one attribute has a chart for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from clinometer.probes.counterfactual.requests import SAMPLES
from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.tables.costs import RATIO
from clinometer.probes.counterfactual.tables.distances import EXCESS
from clinometer.probes.counterfactual.tables.guards import ALL_VALUES
from clinometer.probes.counterfactual.tables.mitigation import SIMILAR_PERCENT
from clinometer.probes.counterfactual.tunings import METHODS
from clinometer.types import Figure


def figures(
    attributes: Sequence[Chosen], tables: frozenset[str], *, models: int, bases: int
) -> tuple[Figure, ...]:
    """Return the figures whose table has rows; one model alone needs no menu and no row of its own.

    `bases`: how many models checkpoints were made of.
    """
    every = (
        *_mitigation(several=bases > 1, perplexity="perplexity" in tables),
        *_overview(),
        *(figure for chosen in attributes for figure in _of_attribute(chosen)),
        *_guards(),
    )
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


def _mitigation(*, several: bool, perplexity: bool) -> Iterator[Figure]:
    """Yield what a mitigation did and what it cost: the paper's Figures 4 and 6."""
    yield Figure(
        name="tradeoff",
        title="What evenness costs: I.F. beside similarity to the prefix",
        caption=(
            "Up (I.F. is less; the axis is reversed) and right (more continuations similar to their prefix) is "
            "better. Each point is a model, the number at it λ; a line joins the λ of one method. Error bars hold "
            "the distance itself, which I.F. as measured overstates, and are those of each model alone: whether "
            "one differs from another is in the figures below."
        ),
        table="mitigation",
        mark="scatter",
        x=SIMILAR_PERCENT,
        y="estimate",
        color="method",
        colors=METHODS,
        row="base" if several else "",
        column="scorer",
        menus=("attribute",),
        measure="I.F.",
        reversed="estimate",
        text="strength",
        joined="strength",
        evidence=SAMPLES,
    )
    yield Figure(
        name="reduction",
        title="How much of the excess is gone",
        caption=(
            "Percent of the excess over chance, by λ. Right of 0 it was reduced. Choose what it is set against: "
            "the model before, or the same training without the fairness loss."
        ),
        table="reduction",
        mark="intervals",
        x="estimate",
        y="strength",
        color="method",
        colors=METHODS,
        column="scorer",
        menus=("against", "measure", "attribute"),
        reference=0.0,
        evidence=SAMPLES,
    )
    if perplexity:
        yield Figure(
            name="costs",
            title="What it costs: perplexity of held-out text",
            caption="Perplexity after / before, by λ. Right of 1 the model predicts the text worse.",
            table="costs",
            mark="intervals",
            x="estimate",
            y="strength",
            color="method",
            colors=METHODS,
            column="of",
            filters={"quantity": RATIO},
            menus=("against",),
            measure="Perplexity: after / before",
            reference=1.0,
            evidence="perplexity",
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
