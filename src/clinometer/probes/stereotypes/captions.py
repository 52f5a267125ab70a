"""The finding tables and figures of the stereotypes audit: names, titles and how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clinometer.probes.stereotypes.tables import emotions, negativity, ranking, recall, shift
from clinometer.probes.stereotypes.tunings import Tuning
from clinometer.types import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The name of a table, its title and what its numbers are."""

    name: str
    title: str
    text: str


CAPTIONS = (
    Caption(
        name="ranking",
        title="Attributes before and after re-ranking",
        text=(
            f"The first {ranking.SHOWN} attributes of each group by probability and by typicality. Both are "
            "means over the templates; a template that does not offer a word counts as 0. The "
            "estimate is the share of words that both lists have. A description: no interval and no test. "
            "n: words listed."
        ),
    ),
    Caption(
        name="prompt_ranking",
        title="Each prompt of the human data set, before and after re-ranking",
        text=(
            f"The first {ranking.SHOWN} words of the very prompt by probability and by typicality (the paper's "
            "Table 2). human found: the human stereotypes that the model offers there, with their place by "
            "typicality; human missed: those that it does not. The estimate is the share of words that both lists "
            "have. A description: no interval and no test. n: words listed."
        ),
    ),
    Caption(
        name="recall",
        title="Recall@k of human stereotypes",
        text=(
            "Share of the human stereotypes that stand among the first k words of the prompt that they were found "
            "with, in lower case and letter by letter; by typicality: re-ranked (the paper's Figure 1), by "
            "probability: as the model ranks them. 'all' weighs every stereotype the same. Intervals: 95 %, "
            f"bootstrap over groups, then over their stereotypes; none for fewer than {recall.FEWEST} groups; "
            "Wilson where none or all are found. "
            "Nothing is tested (p and q are empty). n: human stereotypes."
        ),
    ),
    Caption(
        name="category_emotions",
        title="Mean share with the emotion",
        text=(
            "Emotions by category: the mean of the emotion profiles of its groups. Intervals: 95 %, bootstrap "
            f"over groups; none for fewer than {emotions.FEWEST}. Nothing is tested. n: groups with a profile."
        ),
    ),
    Caption(
        name="emotions",
        title="Share with the emotion",
        text=(
            "Emotion profile (Eq. 4): of the distinct attributes that the templates bring up and the lexicon "
            "covers, the share that has the emotion. attributes: those that have it, the most typical first. "
            "Intervals: 95 %, Wilson, as if attributes were drawn independently. Nothing is tested; for positive "
            "and negative see the table of negativity. n: covered attributes."
        ),
    ),
    Caption(
        name="negativity",
        title="Negativity: difference from the mean of all groups",
        text=(
            "negativity: share of negative minus share of positive attributes, among those that the lexicon "
            "covers. The estimate is that minus the mean over all groups of the audit: right of 0 the model's "
            "attributes for the group are more negative than for others. Intervals: 95 %, Bonett and Price, as if "
            "attributes were drawn independently and the mean of all groups were known. p: attributes of all "
            "groups shuffled over the groups, two-sided. q: Benjamini–Hochberg over all groups of a model. No "
            f"interval and no test for fewer than {negativity.FEWEST} covered attributes. n: covered attributes."
        ),
    ),
    Caption(
        name="similarity",
        title="Similarity of models (ρ)",
        text=(
            "Representational similarity: cosines between the groups' emotion profiles within a model, Spearman "
            "correlation of each group's cosines between two models, mean over groups. by_chance: the mean when "
            "the groups of one model are shuffled; with a group's similarity to itself kept, as the paper's "
            "authors do, it lies above 0, most of all for few groups. Intervals: 95 %, jackknife over groups. p: "
            "that shuffle, one-sided. q: Benjamini–Hochberg over the pairs of models, category by category. "
            "n: groups that have a profile in every model."
        ),
    ),
    Caption(
        name="shift",
        title="Shift by tuning (Δρ)",
        text=(
            "Similarity of a tuned model with the model it began with, minus 1 (the paper's Table 4): 0 is no "
            "change. amount: the part of the corpus it was tuned on; of a mitigated model λ, the weight of the "
            "fairness loss, and λ = 0 is the control, trained alike without that loss. Where no relation is left "
            "it is the table of similarities' by_chance minus 1. Intervals: 95 %, jackknife over groups. Nothing "
            "is tested. n: groups that have a profile in every model."
        ),
    ),
    Caption(
        name="recall_change",
        title="Change of recall@k by tuning",
        text=(
            "Recall@k of the tuned model minus that of its base, lists re-ranked by typicality (the paper's "
            "Figure 4). Intervals: 95 %, bootstrap over groups, then over their stereotypes; Bonett and Price "
            "where nothing changes. p: sign flips of whole groups, two-sided. q: Benjamini–Hochberg over "
            "all rows of a tuned model (categories and k). "
            "n: human stereotypes."
        ),
    ),
    Caption(
        name="negativity_change",
        title="Change of negativity by tuning",
        text=(
            "A tuned model minus the model it began with, over the same groups. negativity: share of negative "
            "minus share of positive attributes. distance from the mean: how far a group's negativity "
            "lies from the mean of all groups, whichever way; the smaller on average, the more alike the groups "
            "are spoken of. It holds differences by chance, too, before as after. before, after: the means "
            "themselves. What a control changes as well is not the mitigation's doing. Intervals: 95 %, "
            "bootstrap over groups, as if the mean of all groups were known; none for fewer than "
            f"{emotions.FEWEST} groups. p: sign flips of groups, two-sided. q: Benjamini–Hochberg over all rows "
            "of a tuned model (categories and measures). n: groups with a covered attribute before and after."
        ),
    ),
    Caption(
        name="attribute_shift",
        title="Attributes added, removed and kept by tuning",
        text=(
            f"The distinct words among the first {shift.TOP} of each template, by typicality, before and after "
            "tuning (the paper's Figure 7), the most typical first. The estimate is the share of the base's words "
            "that was kept. A description: no interval and no test. n: words of the base."
        ),
    ),
    Caption(
        name="coverage",
        title="What became of the words that were offered",
        text=(
            "Share of the words offered over all questions that are pieces of words, or numbers, marks and single "
            "letters; of the attributes that are left, those without a prior (no typicality); and of the "
            "attributes of profiles, those that the emotion lexicon covers. Counts: no interval and no test. "
            "n: words out of which the share is taken."
        ),
    ),
)

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
        caption="The mean profile of each category: which share of its groups' attributes has the emotion.",
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
            "Right of 0 the attributes are more negative than those of the mean of all groups. Read q before "
            "calling a group's difference found."
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
        caption="As in the paper's Figure 10. 1: the same relations between groups; compare with by chance.",
        table="similarity",
        mark="heatmap",
        x="model",
        y="other_model",
        menus=("category",),
    ),
    Figure(
        name="shift",
        title="How far tuning moves the emotion profiles",
        caption="As in the paper's Figure 5: by the amount of text, for each corpus. 0: no change.",
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
            "Left of 0 the attributes became less negative (negativity), or the groups more alike in that "
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
        caption="Left of 0 the tuned model recalls fewer of them than its base.",
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


def figures_of(tunings: Sequence[Tuning]) -> tuple[Figure, ...]:
    """Return the figures; shifts lie along the amount of text, or the strength where a model is mitigated."""
    if not any(tuning.attribute for tuning in tunings):
        return FIGURES
    return tuple(
        replace(
            figure,
            caption=(
                "By λ, the weight of the fairness loss, for each method; control (λ = 0) is the same training "
                "without it. 0: no change."
            ),
            color="method",
            row="base",
            column="attribute",
            menus=("category", "corpus"),
        )
        if figure.name == "shift"
        else figure
        for figure in FIGURES
    )
