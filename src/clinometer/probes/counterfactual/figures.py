"""How the report shows the tables: the caption of each, and the charts drawn from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from clinometer.metrics.fairness_epsilon import WORST_DRAWS
from clinometer.probes.counterfactual.answers import FEWEST_RATED
from clinometer.probes.counterfactual.checkpoints import RATIO, SIMILAR_PERCENT
from clinometer.probes.counterfactual.measures import FEWEST_TEMPLATES
from clinometer.probes.counterfactual.questions import PERPLEXITY, SAMPLES, AskedAttribute
from clinometer.probes.counterfactual.tables import (
    ALL_VALUES,
    DIGITS,
    EXCESS,
    FURTHEST_PAIRS,
    SHOWN_SAMPLES,
    WORDS,
)
from clinometer.probes.counterfactual.words import PRINTED_COSTS, before_in_paper
from clinometer.probes.kit import Caption
from clinometer.probes.kit.before_after import METHODS
from clinometer.probes.kit.refusals import CAPTION as REFUSALS
from clinometer.probes.kit.trainings import NOISE
from clinometer.types import Figure

_JACKKNIFE = (
    f"a jackknife that leaves out one template at a time, or, with fewer than {FEWEST_TEMPLATES} templates, a "
    "twentieth of the samples: the interval then holds for these templates alone"
)
_SAMPLES = "a jackknife that leaves out a twentieth of the samples at a time; it holds for these templates"
_RESAMPLED = "samples are drawn anew from those of every prefix; it holds for these templates"
_DISTANCE = (
    "estimate: W1 as measured. by_chance: its mean under shuffled labels, rounded. Interval (95 %): for the "
    f"distance between the distributions themselves, by {_SAMPLES}."
)


CAPTIONS = (
    Caption(
        name="mitigation",
        title="Models side by side: I.F.",
        text="One row for each model and scorer, as in the paper's Table 1: the model as given, then the "
        "checkpoints made from it; strength is λ. estimate: I.F. as measured; its interval (95 %) holds the "
        f"distance between the distributions themselves ({_RESAMPLED}). To compare two rows, use the tables "
        "below, whose intervals are paired, not whether these overlap. PPL, PPL^s: perplexity of held-out text "
        "and of its passages about the attribute. S.S. and S.S.c in percent. excess: that of I.F. over chance."
        f"{NOISE} n: texts.",
        version=6,
    ),
    Caption(
        name="weights",
        title="Share of the weights that changed",
        text=f"As the checkpoint's card counts them. checksum: the first {DIGITS} digits of the SHA-256 of the "
        "weight files, before and after. Each row is one training. An exact count has no interval. n: weights "
        "that changed.",
    ),
    Caption(
        name="change",
        title="Change of the sentiment distance",
        text="A checkpoint minus another model on the same prompts with the same seeds; below 0 the distance "
        "shrank. against: before is the model that the checkpoint began with; control is the same training "
        "without the fairness loss (λ = 0), because training alone changes sentiment, too. Read the excess: here "
        "it is over the mean of shuffles in closed form, within about 1 % of the shuffles themselves. before, "
        f"after, reduced_by (percent of the excess): rounded. Intervals (95 %): paired, {_JACKKNIFE}; both "
        "models leave out the same. p: of no change, two-sided, from the same jackknife. q: Benjamini–Hochberg "
        f"over the excess rows of a model against one other.{NOISE} n: texts of both.",
        version=2,
    ),
    Caption(
        name="reduction",
        title="Excess reduced by, %",
        text="How much of the excess over chance is gone: 100 · (1 − after/before). Below 0 it grew; above 100 "
        "less is left than chance gives. This is more than the reduction of the distance between the "
        "distributions themselves: the excess understates small distances most, and near chance it goes with "
        "their square, so half of the distance takes three quarters of the excess with it. Read before and after "
        "as measured, too. Interval (95 %): Fieller's for a ratio, from the jackknife of the changes; it leaves "
        "out 0 exactly where the interval of the change does. Not computed where the excess before is not "
        f"clearly above 0: there is nothing to reduce.{NOISE} n: texts of both.",
        version=2,
    ),
    Caption(
        name="costs",
        title="Perplexity: after / before; S.S., S.S.c: after − before",
        text="What a change costs. Perplexity: a ratio; above 1 the model predicts the held-out text worse. "
        "Passages are resampled (bootstrap, on the scale of logarithms), before and after together. S.S. and "
        "S.S.c: a difference of shares; below 0 the texts are further from the point. Templates and then "
        f"prefixes are resampled, or prefixes alone with fewer than {FEWEST_TEMPLATES} templates, before and "
        f"after together. Intervals: 95 %, studentized. p: of no change. before, after: rounded.{NOISE} n: "
        "passages, or continuations of both.",
        version=2,
    ),
    PRINTED_COSTS,
    Caption(
        name="fairness",
        title="Sentiment distance",
        text="I.F. (Eq. 3): mean Wasserstein-1 distance between the score distributions of two values in the "
        "same template. G.F. (Eq. 4): mean distance of a subgroup from everything, templates pooled. Demographic "
        "disparity: mean difference in the share of texts above the threshold. 0 is even. measured: the value as "
        "the paper prints it; its interval holds the distance between the distributions themselves. by chance: "
        "mean with the labels shuffled within each template, and 95 % range of the first quarter of the "
        "shuffles. Finite samples lie apart even when nothing is there, so read the excess: measured minus by "
        "chance; it is missing where the texts are off "
        f"topic. Intervals (95 %): of I.F. and disparity, {_RESAMPLED}; of G.F., {_SAMPLES}. p: how often "
        "shuffled labels lie as far apart; no more are shuffled once 50 did. q: Benjamini–Hochberg over I.F. and "
        "G.F. by all scorers of one attribute; over disparity apart. I.F. of names averages all pairs, of one "
        "gender and of two (with pairs = 'across', of two alone); G.F. compares the genders. n: texts.",
        version=5,
    ),
    Caption(
        name="other_templates",
        title="Excess, for templates like these",
        text="The same excess with an interval (95 %) that leaves out one template at a time: what other "
        "templates of this kind would give. It holds 0 where a few templates carry the whole excess: "
        "read that as “cannot be told”. Nothing is tested here. n: texts.",
    ),
    Caption(
        name="values",
        title="Mean score of a value minus that of all values",
        text="Above 0 the texts about this value are more positive than the texts about all values of its "
        "attribute in the same template; mean over templates, and in each. Intervals (95 %): from the spread of "
        "the samples of every prefix; they hold for these templates. p (over all templates only): samples of "
        "one value and the rest shuffled within their template, two-sided; compared is the difference over its "
        "error, so that more spread alone is not a finding. q: Benjamini–Hochberg over the values of one "
        "attribute and scorer. Missing where the texts are off topic. n: texts.",
        version=4,
    ),
    Caption(
        name="subgroup_difference",
        title="Mean score of one subgroup minus another's",
        text="Above 0 the texts about the first are more positive, in the same template; mean over templates, and "
        "in each. The values of a subgroup count alike. Intervals (95 %): from the spread of the samples; they "
        "hold for these values and templates. p (over all templates only): the samples of the two subgroups "
        "shuffled within their template, two-sided, over the error. q: Benjamini–Hochberg over the "
        "pairs of subgroups of one scorer. n: texts of both.",
        version=3,
    ),
    Caption(
        name="pairs",
        title="W1 between two values",
        text=f"Mean over templates. {_DISTANCE} by_chance and p: the samples of these two values shuffled within "
        "each template, how often they lie as far apart. q: Benjamini–Hochberg over the pairs of one attribute "
        "and scorer. n: texts of both.",
        version=4,
    ),
    Caption(
        name="pair_templates",
        title="W1 between two values in one template",
        text="As in the paper's Figure 1, furthest first. estimate: W1 as measured. by_chance and p: the samples "
        "of these two values shuffled. q: Benjamini–Hochberg over the pairs and templates of one attribute and "
        "scorer. No interval. Not listed for checkpoints. n: texts of both.",
        version=3,
    ),
    Caption(
        name="subgroups",
        title="W1 of a subgroup from everything",
        text=f"The terms of G.F. {_DISTANCE} p: the samples of the subgroup and of the rest shuffled within each "
        "template, how often it lies as far out. q: Benjamini–Hochberg over the subgroups of one scorer. "
        "n: texts.",
        version=4,
    ),
    Caption(
        name="templates",
        title="I.F. within one template",
        text="Mean W1 over the pairs of values. estimate: as measured. by_chance: its mean under shuffled "
        f"labels, rounded. Interval (95 %): for the distance between the distributions themselves; {_RESAMPLED}. "
        "p: labels shuffled. q: Benjamini–Hochberg over the templates of one attribute and scorer. n: texts.",
        version=4,
    ),
    Caption(
        name="verdict",
        title="Equation 2: is every pair below ε?",
        text="A model is counterfactually fair at ε if W1 of every two values in every template is below it; the "
        "worst pair and its template are named. The "
        "paper names no ε; ours is an option. The worst of many distances is large by chance alone: by_chance is "
        f"the mean of {WORST_DRAWS} shuffles, rounded, and p says how often their worst pair is as far apart. No "
        "interval: a verdict is not an estimate. n: pairs in templates.",
        version=4,
    ),
    Caption(
        name="outputs",
        title="How different the texts are as texts",
        text="Mean cosine of the sentence vectors of two texts about one value (within) minus that of two about "
        "different values in the same template (between); words that name a value were replaced by X before. 0: "
        "the value does not matter; it says nothing of who is written about better. Interval (95 %): over "
        "templates. p: labels shuffled within each template, one-sided. q: Benjamini–Hochberg over the attributes "
        "of a model. No verdict rests on it. n: texts.",
        version=3,
    ),
    Caption(
        name="distributions",
        title="Share of texts with at most this score",
        text="The distribution function of the scores of each value (and of each subgroup), templates pooled, "
        "beside that of all values. Where a line lies higher, there are more texts with low scores. Intervals: "
        "95 %, Wilson. Nothing is tested here. n: texts.",
    ),
    Caption(
        name="scorers",
        title="What the scorers make of the texts",
        text="mean score: 0 is negative, 1 positive. positive texts: those above the threshold. texts without an "
        "opinion word: they score 0.5 with opinion words, whatever they say. Intervals (95 %): as for that many "
        "independent texts. n: texts.",
    ),
    Caption(
        name="relevance",
        title="Share of continuations",
        text="S.S.: share of continuations whose sentence vector has a cosine above the threshold with that of "
        "the prefix. S.S.c: share that mention the value (its sensitive tokens, whole words, any case). A model "
        f"that ignores the value is even and useless: read these beside I.F. {before_in_paper('S.S.', 'S.S.c')} "
        "Its encoder is another, so compare S.S. within a run. Intervals: 95 %, Wilson. n: continuations "
        "compared.",
    ),
    Caption(
        name="perplexity",
        title="Perplexity of held-out text",
        text="exp of the mean negative log-probability of a token. Blank lines separate passages; one that is "
        "longer than the model's window is read in windows that overlap by half. The paper's PPL^s: passages "
        f"with a sensitive token of the attribute. {before_in_paper('PPL', 'PPL^s')} Compare only models with the "
        "same tokenizer, on the same text. Intervals (95 %): bootstrap over passages. n: passages.",
    ),
    Caption(
        name="words",
        title="Words that set two values apart",
        text=f"p(w | value) / p(w | other), smoothed by one, of words that occur five times or more: the {WORDS} "
        f"largest of each direction, for the {FURTHEST_PAIRS} pairs of each attribute that lie furthest apart "
        "(appendix C.8). Nothing is tested here. n: occurrences in the texts about the value.",
        version=4,
    ),
    Caption(
        name="texts",
        title="Texts side by side",
        text=f"The first {SHOWN_SAMPLES} continuations of every value, drawn with one seed, in the template "
        "whose values lie furthest apart by the first scorer. The random numbers depend on the prefix as well, "
        "so equal texts are not an accident. estimate: mean score over the scorers.",
        version=3,
    ),
    Caption(
        name="human_agreement",
        title="Agreement of raters (Cohen's kappa)",
        text="Over the sentences that both rated. Interval: 95 %, large-sample. n: sentences.",
    ),
    Caption(
        name="human_correlation",
        title="Spearman correlation with human judgement",
        text="Over rated sentences, with the mean of the raters: sentiment 0, 0.5, 1 (a sentence that any rater "
        "calls mixed is dropped), relevance −1, 0, 1. Interval: 95 %, Fisher, on ranks. p: of no correlation. q: "
        "Benjamini–Hochberg over the rows of a model. n: sentences.",
    ),
    Caption(
        name="human_fairness",
        title="I.F. from human scores",
        text="As I.F., with the raters' mean score, over templates in which two values or more have "
        f"{FEWEST_RATED} rated sentences each. by_chance and excess: labels shuffled, rounded. p: how often "
        "shuffled labels lie as far apart. No interval: there are too few sentences. n: sentences.",
        version=3,
    ),
    REFUSALS,
)

_INTERVALS = partial(Figure, mark="intervals", x="estimate", evidence=SAMPLES)


def figures(
    attributes: Sequence[AskedAttribute],
    tables: frozenset[str],
    *,
    models: int,
    bases: int,
    evidence: str = SAMPLES,
) -> tuple[Figure, ...]:
    """Return the figures whose table has rows; one model alone needs no menu and no row of its own.

    `bases`: how many models checkpoints were made of. `evidence`: the stage whose prompts are behind them.
    """
    every = (
        *_mitigation(several=bases > 1, perplexity="perplexity" in tables),
        *_overview(),
        *(figure for asked in attributes for figure in _of_attribute(asked)),
        *_guards(),
    )
    shown = [
        replace(figure, evidence=evidence) if figure.evidence == SAMPLES else figure
        for figure in every
        if figure.table in tables
    ]
    if models > 1:
        return tuple(shown)
    return tuple(
        replace(
            figure,
            menus=tuple(name for name in figure.menus if name != "model"),
            row=figure.row.replace("model", ""),
            column=figure.column.replace("model", ""),
            color=figure.color.replace("model", ""),
        )
        for figure in shown
    )


def _mitigation(*, several: bool, perplexity: bool) -> Iterator[Figure]:
    """Yield what a mitigation did and what it cost: the paper's Figures 4 and 6."""
    yield Figure(
        name="tradeoff",
        title="What evenness costs: I.F. beside similarity to the prefix",
        caption="Up (I.F. is less; the axis is reversed) and right (more continuations similar to their prefix) "
        "is better. Each point is a model, labelled with its λ; a line joins the λ of one method (of its means, "
        "or of one seed). Error bars hold the distance itself, which I.F. as measured overstates, and are those "
        "of each model alone: the figures below show whether one differs from another.",
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
    by_strength = partial(_INTERVALS, y="strength", color="method", colors=METHODS)
    yield by_strength(
        name="reduction",
        title="How much of the excess is gone",
        caption="Percent of the excess over chance, by λ. Right of 0 it was reduced. Choose what it is compared "
        "with: the model before, or the same training without the fairness loss. Seeds of one training have "
        "colours of their own beside their mean.",
        table="reduction",
        column="scorer",
        menus=("against", "measure", "attribute"),
        reference=0.0,
    )
    if perplexity:
        yield by_strength(
            name="costs",
            title="What it costs: perplexity of held-out text",
            caption="Perplexity after / before, by λ. Right of 1 the model predicts the text worse.",
            table="costs",
            column="of",
            filters={"quantity": RATIO},
            menus=("against",),
            measure="Perplexity: after / before",
            reference=1.0,
            evidence=PERPLEXITY,
        )


def _overview() -> Iterator[Figure]:
    of_attributes = partial(_INTERVALS, table="fairness", y="attribute", row="model", reference=0.0, sure=True)
    yield of_attributes(
        name="excess",
        title="How much further apart than by chance",
        caption="Right of 0 the sentiment depends on the value; each colour is a scorer.",
        color="scorer",
        column="measure",
        filters={"quantity": EXCESS},
    )
    yield of_attributes(
        name="measured",
        title="As the paper prints it, beside chance",
        caption="measured is I.F. or G.F. itself, beside what shuffled labels give.",
        color="quantity",
        column="scorer",
        menus=("measure",),
    )


def _of_attribute(asked: AskedAttribute) -> Iterator[Figure]:
    filters = {"attribute": asked.name}
    name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in asked.name.lower())
    title = asked.name.capitalize()
    yield _INTERVALS(
        name=f"values_{name}",
        title=f"{title}: each value against the whole",
        caption="Right of 0 the texts about this value are more positive than those about all values.",
        table="values",
        y="value",
        color="subgroup" if asked.attribute.subgroups else "",
        column="scorer",
        filters=filters,
        menus=("template", "model"),
        reference=0.0,
    )
    yield Figure(
        name=f"distributions_{name}",
        title=f"{title}: distribution of the scores",
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
        name=f"pairs_{name}",
        title=f"{title}: distance between every two values",
        caption="Number: W1 as measured, mean over templates. Colour: how much that is beyond what chance alone "
        "gives for this pair. The table has chance, interval and q of each.",
        table="pairs",
        chance="by_chance",
        mark="heatmap",
        x="value",
        y="other",
        filters=filters,
        menus=("scorer", "model"),
        evidence=SAMPLES,
    )
    yield Figure(
        name=f"pair_templates_{name}",
        title=f"{title}: distance between every two values in one template",
        caption="Number: W1 as measured; choose a template. Colour: how much that is beyond what chance alone "
        "gives for this pair. The table has chance and q of each.",
        table="pair_templates",
        chance="by_chance",
        mark="heatmap",
        x="value",
        y="other",
        filters=filters,
        menus=("template", "scorer", "model"),
        evidence=SAMPLES,
    )
    if asked.attribute.subgroups:
        yield _INTERVALS(
            name=f"subgroup_difference_{name}",
            title=f"{title}: one subgroup minus another",
            caption="Right of 0 the texts about the first subgroup are more positive.",
            table="subgroup_difference",
            y="template",
            color="scorer",
            column="subgroup",
            row="other",
            filters=filters,
            menus=("model",),
            reference=0.0,
        )
    yield _INTERVALS(
        name=f"templates_{name}",
        title=f"{title}: I.F. in each template",
        caption="As measured; the table has what chance gives.",
        table="templates",
        y="template",
        color="scorer",
        filters=filters,
        menus=("model",),
    )


def _guards() -> Iterator[Figure]:
    yield _INTERVALS(
        name="relevance",
        title="Does the text speak of what it was asked about?",
        caption="A model that ignores the value is even and useless.",
        table="relevance",
        y="attribute",
        color="measure",
        column="model",
        filters={"value": ALL_VALUES},
    )
    yield _INTERVALS(
        name="perplexity",
        title="Perplexity of held-out text",
        caption="Lower is better; compare only models with the same tokenizer.",
        table="perplexity",
        y="part",
        color="model",
        evidence=PERPLEXITY,
    )
    yield _INTERVALS(
        name="human_correlation",
        title="Automatic measures and human judgement",
        caption="Spearman's correlation over the sentences that people rated.",
        table="human_correlation",
        y="measure",
        color="model",
        column="question",
        reference=0.0,
        evidence="",
    )
