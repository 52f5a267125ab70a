"""How the finding tables are presented: their captions, and the charts of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from clinometer.probes.kit import Caption, refusals
from clinometer.probes.kit.trainings import NOISE
from clinometer.probes.stereotypes.measures import FEWEST_GROUPS, FEWEST_WORDS, HEADLINE_K, SHOWN, TOP, Tuning
from clinometer.types import Figure

CAPTIONS = (
    Caption(
        name="ranking",
        title="Attributes before and after re-ranking",
        text=(
            f"The first {SHOWN} attributes of each group by probability and by typicality. Both are means over "
            "the templates; a template that does not offer a word counts as 0. The estimate is the share of "
            "words that appear in both lists. A description: no interval and no test. n: words listed."
        ),
    ),
    Caption(
        name="spread",
        title="Spread of negativity between groups, beyond chance",
        text=(
            "How far the groups' negativity (share of negative minus share of positive attributes) lies apart, as "
            "a standard deviation, counting only what repeats itself from one wording to the next: 0 where all "
            "groups are described alike, 1 at most. There is none for a single wording. Groups are compared with "
            "those asked in the same words. Intervals: 95 %, bootstrap over groups. p: negativities shuffled over "
            "the groups within each wording, one-sided; q is the same, a family of one question. detectable: the "
            "spread that would be found four times in five. n: groups."
        ),
    ),
    Caption(
        name="category_negativity",
        title="Negativity of a category, minus that of other groups",
        text=(
            "Mean negativity of the groups of a category minus that of all other groups asked in the same words: "
            "countries are asked in other words than people, so they are compared with nothing. Above 0, the "
            "category's attributes are more negative. Intervals and p: 95 %, bootstrap over the groups of either "
            f"side; none for fewer than {FEWEST_GROUPS}. q: Benjamini–Hochberg over the categories of a model. "
            "detectable: the difference that would be found four times in five. n: groups of the category."
        ),
    ),
    Caption(
        name="unique_attributes",
        title="Attributes unique to a group",
        text=(
            f"The distinct words that are among the first {TOP} of a template by typicality for this group and "
            "for no other, the most typical first. The estimate is the share of the group's words. A description: "
            "no interval and no test. n: words of the group."
        ),
    ),
    Caption(
        name="chosen_emotions",
        title="Share with the emotion, chosen groups",
        text=(
            "Rows of the emotion profiles for the groups named by chart_groups, or else the three most negative "
            "and the three most positive ones over all models. Intervals: 95 %, Wilson. Nothing is tested. n: "
            "covered attributes."
        ),
    ),
    Caption(
        name="prompt_ranking",
        title="Each prompt of the human data set, before and after re-ranking",
        text=(
            f"The first {SHOWN} words at each prompt by probability and by typicality (the paper's Table 2). "
            "human found: the human stereotypes that the model offers there, with their position by typicality; "
            "human missed: those that it does not offer. The estimate is the share of words that appear in both "
            "lists. A description: no interval and no test. n: words listed."
        ),
    ),
    Caption(
        name="recall",
        title="Recall@k of human stereotypes",
        text=(
            "Share of the human stereotypes that appear among the first k words of the prompt they were collected "
            "with; spelling must match, case does not matter. by typicality: re-ranked (the paper's Figure 1); by "
            "probability: as the model ranks them. 'all' gives every stereotype the same weight. Intervals: 95 %, "
            f"bootstrap over groups, then over their stereotypes; none for fewer than {FEWEST_GROUPS} groups; "
            "Wilson where none or all are found. Nothing is tested (p and q are empty). n: human stereotypes."
        ),
    ),
    Caption(
        name="category_emotions",
        title="Mean share with the emotion",
        text=(
            "Emotions by category: the mean of the emotion profiles of its groups. Intervals: 95 %, bootstrap "
            f"over groups; none for fewer than {FEWEST_GROUPS}. Nothing is tested. n: groups with a profile."
        ),
    ),
    Caption(
        name="emotions",
        title="Share with the emotion",
        text=(
            "Emotion profile (Eq. 4): among the distinct attributes that the templates bring up and the lexicon "
            "covers, the share that has the emotion. attributes: those that have it, the most typical first. "
            "Intervals: 95 %, Wilson, as if attributes were drawn independently. Nothing is tested; for positive "
            "and negative see the table of negativity. n: covered attributes."
        ),
    ),
    Caption(
        name="negativity",
        title="Negativity: difference from the mean of the groups",
        version=2,
        text=(
            "negativity: share of negative minus share of positive attributes, among those that the lexicon "
            "covers. The estimate is that of a list minus the mean of all groups asked in the same words, on "
            "average over the wordings: above 0, the model's attributes for the group are more negative than for "
            "others. Intervals (95 %) and p: Student, with the group's variance from wording to wording drawn "
            "towards that of all groups, at least their mean. detectable: what would be found four times in five. "
            "q: Benjamini–Hochberg over all groups of a model. With a single wording: all groups are compared; "
            "intervals by Bonett and Price, as if attributes were drawn independently, and p by shuffling the "
            "attributes of all groups, two-sided; a list that varies by itself is then called too often. No "
            f"interval and no test for fewer than {FEWEST_WORDS} covered attributes. n: covered attributes."
        ),
    ),
    Caption(
        name="similarity",
        title="Similarity of models (ρ)",
        text=(
            "Representational similarity: cosines between the groups' emotion profiles within a model, Spearman "
            "correlation of each group's cosines between two models, mean over groups. by_chance: the mean when "
            "the groups of one model are shuffled; it is above 0, most of all for few groups, when a group's "
            "similarity to itself is kept, as the paper's authors do. Intervals: 95 %, jackknife over groups. p: "
            "that shuffle, one-sided. q: Benjamini–Hochberg over the pairs of models, category by category. "
            "n: groups that have a profile in every model."
        ),
    ),
    Caption(
        name="shift",
        title="Shift by tuning (Δρ)",
        text=(
            "Similarity of a tuned model with the model it began with, minus 1 (the paper's Table 4): 0 is no "
            "change. amount: the part of the corpus it was tuned on, or, for a mitigated model, λ, the weight "
            "of the fairness loss; λ = 0 is the control, trained the same way without that loss. Where no "
            "relation is left, the shift is by_chance of the similarity table minus 1. Intervals: 95 %, "
            f"jackknife over groups.{NOISE} Nothing is tested. n: groups that have a profile in every model."
        ),
        version=2,
    ),
    Caption(
        name="shift_mean",
        title="Shift by tuning (Δρ), mean over categories",
        text=(
            "The mean of a tuned model's shifts in the single categories, each with the same weight, and their "
            "standard deviation (the paper's Figure 5). The row 'all' of the shift table compares all groups with "
            "each other instead. Intervals: 95 %, bootstrap over categories; none for fewer than "
            f"{FEWEST_GROUPS}.{NOISE} Nothing is tested. n: categories."
        ),
        version=2,
    ),
    Caption(
        name="recall_change",
        title="Change of recall@k by tuning",
        text=(
            "Recall@k of the tuned model minus that of its base, lists re-ranked by typicality (the paper's "
            "Figure 4). Intervals: 95 %, bootstrap over groups, then over their stereotypes; Bonett and Price "
            "where nothing changes. p: sign flips of whole groups, two-sided. q: Benjamini–Hochberg over all rows "
            f"of a tuned model (categories and k).{NOISE} n: human stereotypes."
        ),
        version=2,
    ),
    Caption(
        name="negativity_change",
        title="Change of negativity by tuning",
        text=(
            "A tuned model minus the model it began with, over the same groups. negativity: share of negative "
            "minus share of positive attributes. distance from the mean: how far a group's negativity is from "
            "the mean of all groups, in either direction; the smaller it is on average, the more alike the "
            "groups are described. It includes differences by chance, before and after. before, after: the "
            "means themselves. A change that the control shows as well is not due to the mitigation. Intervals: "
            "95 %, bootstrap over groups, as if the mean of all groups were known; none for fewer than "
            f"{FEWEST_GROUPS} groups. p: sign flips of groups, two-sided. q: Benjamini–Hochberg over all rows of "
            f"a tuned model (categories and measures).{NOISE} n: groups with a covered attribute before and after."
        ),
        version=2,
    ),
    Caption(
        name="attribute_shift",
        title="Attributes added, removed and kept by tuning",
        text=(
            f"The distinct words among the first {TOP} of each template, by typicality, before and after tuning "
            "(the paper's Figure 7), the most typical first. The estimate is the share of the base's words that "
            "was kept. A description of each training: no interval and no test. n: words of the base."
        ),
    ),
    Caption(
        name="coverage",
        title="What became of the words that were offered",
        text=(
            "Of the words offered over all questions: the share that are pieces of words, and the share that are "
            "numbers, marks or single letters. Of the words offered at the templates: the share in the emotion "
            "lexicon; a model with too few is not judged. Of the remaining attributes: the share without a prior "
            "(no typicality). Of the attributes of profiles: the share that the emotion lexicon covers. Counts: "
            "no interval and no test. n: words out of which the share is taken."
        ),
        version=2,
    ),
    refusals.CAPTION,
)

MOST_LINES = 8  # colours that a chart has

_AT_TEMPLATES = partial(Figure, evidence="posterior", evidence_filter={"origin": "template"})
_INTERVALS = partial(_AT_TEMPLATES, mark="intervals", x="estimate", reference=0.0)
_HEATMAP = partial(_AT_TEMPLATES, mark="heatmap")

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
    _INTERVALS(
        name="spread",
        title="How unequally negative the groups' attributes are",
        caption="0 where all groups are described alike. What chance alone spreads is subtracted.",
        table="spread",
        y="model",
    ),
    _INTERVALS(
        name="category_negativity",
        title="Categories by the negativity of their groups' attributes",
        caption="Right of 0, the category's attributes are more negative than those of other groups asked alike.",
        table="category_negativity",
        y="category",
        menus=("model",),
    ),
    _HEATMAP(
        name="chosen_emotions",
        title="Emotions of chosen groups in all models",
        caption="Choose the groups with chart_groups. Point at a cell to see the attributes behind it.",
        table="chosen_emotions",
        x="model",
        y="group",
        menus=("emotion",),
    ),
    _HEATMAP(
        name="category_emotions",
        title="Emotions by category of groups",
        caption="The mean profile of each category: the share of its groups' attributes that has the emotion.",
        table="category_emotions",
        x="emotion",
        y="category",
        menus=("model",),
    ),
    _INTERVALS(
        name="negativity",
        title="Groups by the negativity of their attributes",
        caption=(
            "Right of 0, a group's attributes are more negative than the mean of the groups that were asked in "
            "the same words. Check q before you call a difference found."
        ),
        table="negativity",
        y="group",
        menus=("model", "category"),
    ),
    _HEATMAP(
        name="emotions",
        title="Emotion profiles of groups",
        caption="As in the paper's Figure 2. Point at a cell to see the attributes behind it.",
        table="emotions",
        x="emotion",
        y="group",
        menus=("model", "category"),
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
        caption="By amount of text, for each corpus and category. 0: no change. Seeds have thin lines.",
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
        name="shift_mean",
        title="How far tuning moves the emotion profiles, on average over categories",
        caption=(
            "As in the paper's Figure 5: by amount of text, for each corpus. 0 means no change. Seeds have lines "
            "of their own."
        ),
        table="shift_mean",
        mark="lines",
        x="amount",
        y="estimate",
        color="corpus",
        column="base",
        reference=0.0,
    ),
    _INTERVALS(
        name="negativity_change",
        title="What tuning does to the negativity of the groups' attributes",
        caption=(
            "Left of 0, the attributes became less negative (negativity), or the groups more alike "
            "(distance from the mean)."
        ),
        table="negativity_change",
        y="model",
        color="measure",
        menus=("category",),
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
    refusals.refusal_figure(evidence="drawn"),
)


def figures_of(
    tables: Collection[str], tunings: Sequence[Tuning], *, models: int, top_k: int
) -> tuple[Figure, ...]:
    """Return the figures of these tables.

    Shifts are drawn by strength where a model was mitigated. The recall of many models is drawn at one k: there
    are not so many colours, and nobody can follow so many lines.
    """
    mitigated = any(tuning.labels.get("attribute") for tuning in tunings)
    figures = []
    for figure in FIGURES:
        if figure.table not in tables:
            continue
        if mitigated and figure.name in ("shift", "shift_mean"):
            figures.append(_by_strength(figure))
        elif models > MOST_LINES and figure.name == "recall":
            figures.append(_at_one_k(figure, k=min(HEADLINE_K, top_k)))
        else:
            figures.append(figure)
    return tuple(figures)


def _at_one_k(recall: Figure, *, k: int) -> Figure:
    return replace(
        recall,
        title=f"How many human stereotypes the model recalls among its first {k} words",
        caption="With the lists re-ranked by typicality and as the model ranks them; other k are in the table.",
        mark="intervals",
        x="estimate",
        y="model",
        color="ranking",
        column="",
        filters={"k": k},
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
        menus=tuple(menu for menu in ("category", "corpus") if menu in (*shift.menus, "corpus")),
    )
