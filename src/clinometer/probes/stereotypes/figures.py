"""The charts of the finding tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from clinometer.probes.stereotypes.measures import Tuning
from clinometer.types import Figure

FIGURES = (
    Figure(
        name="recall",
        title="How many human stereotypes the model recalls among its first k words",
        caption="As in the paper's Figure 1, with the lists re-ranked by typicality and as the model ranks them.",
        table="recall",
        mark="lines",
        x="k",
        y="estimate",
        color="model",
        column="ranking",
        menus=("category",),
        evidence="posterior",
        evidence_filter={"origin": "data set"},
    ),
    Figure(
        name="category_emotions",
        title="Emotions by category of groups",
        caption="The mean profile of each category: the share of its groups' attributes that has the emotion.",
        table="category_emotions",
        mark="heatmap",
        x="emotion",
        y="category",
        menus=("model",),
        evidence="posterior",
        evidence_filter={"origin": "template"},
    ),
    Figure(
        name="negativity",
        title="Groups by the negativity of their attributes",
        caption=(
            "Right of 0, a group's attributes are more negative than the mean of all groups. Check q before you "
            "call a difference found."
        ),
        table="negativity",
        mark="intervals",
        x="estimate",
        y="group",
        menus=("model", "category"),
        reference=0.0,
        evidence="posterior",
        evidence_filter={"origin": "template"},
    ),
    Figure(
        name="emotions",
        title="Emotion profiles of groups",
        caption="As in the paper's Figure 2. Point at a cell to see the attributes behind it.",
        table="emotions",
        mark="heatmap",
        x="emotion",
        y="group",
        menus=("model", "category"),
        evidence="posterior",
        evidence_filter={"origin": "template"},
    ),
    Figure(
        name="similarity",
        title="How alike the models see the groups",
        caption="As in the paper's Figure 10. 1 means the same relations between groups; compare with by_chance.",
        table="similarity",
        mark="heatmap",
        x="model",
        y="other_model",
        menus=("category",),
    ),
    Figure(
        name="shift",
        title="How far tuning moves the emotion profiles",
        caption="As in the paper's Figure 5: by amount of text, for each corpus. 0 means no change.",
        table="shift",
        mark="lines",
        x="amount",
        y="estimate",
        color="corpus",
        column="base",
        menus=("category",),
        reference=0.0,
    ),
    Figure(
        name="negativity_change",
        title="What tuning does to the negativity of the groups' attributes",
        caption=(
            "Left of 0, the attributes became less negative (negativity), or the groups more alike "
            "(distance from the mean)."
        ),
        table="negativity_change",
        mark="intervals",
        x="estimate",
        y="model",
        color="measure",
        menus=("category",),
        reference=0.0,
        evidence="posterior",
        evidence_filter={"origin": "template"},
    ),
    Figure(
        name="recall_change",
        title="What tuning does to the recall of human stereotypes",
        caption="Left of 0, the tuned model recalls fewer of them than its base.",
        table="recall_change",
        mark="intervals",
        x="estimate",
        y="model",
        menus=("category", "k"),
        reference=0.0,
        evidence="posterior",
        evidence_filter={"origin": "data set"},
    ),
)


def figures_of(tables: Collection[str], tunings: Sequence[Tuning]) -> tuple[Figure, ...]:
    """Return the figures of these tables; shifts are drawn by strength where a model was mitigated."""
    mitigated = any(tuning.labels.get("attribute") for tuning in tunings)
    return tuple(
        _by_strength(figure) if mitigated and figure.name == "shift" else figure
        for figure in FIGURES
        if figure.table in tables
    )


def _by_strength(shift: Figure) -> Figure:
    return replace(
        shift,
        caption=(
            "By λ, the weight of the fairness loss, for each method; control (λ = 0) is the same training without "
            "it. 0 means no change."
        ),
        color="method",
        row="base",
        column="attribute",
        menus=("category", "corpus"),
    )
