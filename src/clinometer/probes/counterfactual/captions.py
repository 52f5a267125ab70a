"""The finding tables of the counterfactual audit: names, titles and how to read them."""

from __future__ import annotations

from dataclasses import dataclass

from clinometer.probes.counterfactual.measures import FEWEST_TEMPLATES
from clinometer.probes.counterfactual.shuffles import WORST_DRAWS
from clinometer.probes.counterfactual.tables.human import FEWEST
from clinometer.probes.counterfactual.tables.texts import PAIRS, SAMPLES, WORDS

_JACKKNIFE = (
    "a jackknife that leaves out one template at a time, or, with fewer than "
    f"{FEWEST_TEMPLATES} templates, a twentieth of the samples: the interval then speaks of these templates alone"
)
_DISTANCE = (
    "estimate: W1 as measured. by_chance: its mean under shuffled labels, rounded. Interval (95 %): for the "
    f"distance between the distributions themselves, by {_JACKKNIFE}. p: labels shuffled within each template, "
    "how often chance alone lies as far apart."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The name of a table, its title and what its numbers are."""

    name: str
    title: str
    text: str


CAPTIONS = (
    Caption(
        name="mitigation",
        title="Models side by side: I.F.",
        text=(
            "One row for each model and scorer, as in the paper's Table 1: the model as given, then the "
            "checkpoints that were made of it; strength is λ. estimate: I.F. as measured; its interval (95 %) "
            f"holds the distance between the distributions themselves ({_JACKKNIFE}). Two rows are compared by "
            "the tables below, whose intervals are paired, not by whether these overlap. PPL, PPL^s: perplexity "
            "of held-out text and of its passages about the attribute. S.S. and S.S.c in percent. excess: that "
            "of I.F. over chance. n: texts."
        ),
    ),
    Caption(
        name="weights",
        title="Share of the weights that changed",
        text=(
            "As the card of the checkpoint counts them. checksum: the first 12 digits of the SHA-256 of the "
            "weight files, of the model before and of the checkpoint. An exact count has no interval. n: weights "
            "that changed."
        ),
    ),
    Caption(
        name="change",
        title="Change of the sentiment distance",
        text=(
            "Of a checkpoint minus that of another model on the same prompts with the same seeds; below 0 the "
            "distance shrank. against: before is the model that the checkpoint began with; control is the same "
            "training without the fairness loss (λ = 0), for training alone changes sentiment, too. Read the "
            "excess. It is over the mean of shuffles in closed form here, which is within about 1 % of the "
            "shuffles themselves. before, after, reduced_by (percent of the excess): rounded. Intervals (95 %): "
            f"paired, {_JACKKNIFE}; both models leave out the same. p: of no change, two-sided, from the same "
            "jackknife. q: Benjamini–Hochberg over the excess rows of a model against one other. n: texts of both."
        ),
    ),
    Caption(
        name="reduction",
        title="Excess reduced by, %",
        text=(
            "How much of the excess over chance is gone: 100 · (1 − after/before). Below 0 it grew; above 100 "
            "less is left than chance gives. This is more than the reduction of the distance between the "
            "distributions themselves: the excess understates small distances most, and near chance goes with "
            "their square, so that half of the distance takes three quarters of the excess with it. Read before "
            "and after as measured, too. Interval (95 %): Fieller's for a ratio, from the jackknife of the "
            "changes; it leaves out 0 exactly where the interval of the change does. Not computed where the "
            "excess before is not clearly above 0: there is nothing to reduce. n: texts of both."
        ),
    ),
    Caption(
        name="costs",
        title="Perplexity: after / before; S.S., S.S.c: after − before",
        text=(
            "What a change costs. Perplexity: ratio, above 1 the model predicts the held-out text worse; "
            "resampled (bootstrap, on the scale of logarithms) are passages, before and after together. S.S. and "
            "S.S.c: difference of shares, below 0 the texts are further from the point; resampled are templates "
            f"and then prefixes, or prefixes alone with fewer than {FEWEST_TEMPLATES} templates, before and after "
            "together. Intervals: 95 %, studentized. p: of no change. before, after: rounded. n: passages, or "
            "continuations of both."
        ),
    ),
    Caption(
        name="fairness",
        title="Sentiment distance",
        text=(
            "I.F. (Eq. 3): mean Wasserstein-1 distance between the score distributions of two values in the same "
            "template. G.F. (Eq. 4): mean distance of a subgroup from everything, templates pooled. Demographic "
            "disparity: mean difference in the share of texts above the threshold. 0 is even. measured: the value "
            "as the paper prints it; its interval holds the distance between the distributions themselves. by "
            "chance: mean and 95 % range with the labels shuffled within each template. Finite samples lie apart "
            "even when nothing is there, so read the excess: measured minus by chance. Intervals (95 %): "
            f"{_JACKKNIFE}. p: how often shuffled labels lie as far apart. q: Benjamini–Hochberg over all excess "
            "rows of a model. n: texts."
        ),
    ),
    Caption(
        name="values",
        title="Mean score of a value minus that of all values",
        text=(
            "Above 0 the texts about this value are more positive than the texts about all values of its "
            "attribute in the same template; mean over templates, and in each. Intervals (95 %): from the spread "
            "of the samples of every prefix; they hold for these templates. p (over all templates only): samples "
            "shuffled over the values of their template, two-sided. q: Benjamini–Hochberg over the values of one "
            "attribute and scorer. n: texts."
        ),
    ),
    Caption(
        name="pairs",
        title="W1 between two values",
        text=(
            f"Mean over templates. {_DISTANCE} q: Benjamini–Hochberg over the pairs of one attribute and scorer. "
            "n: texts of both."
        ),
    ),
    Caption(
        name="subgroups",
        title="W1 of a subgroup from everything",
        text=f"The terms of G.F. {_DISTANCE} q: Benjamini–Hochberg over the subgroups of one scorer. n: texts.",
    ),
    Caption(
        name="templates",
        title="I.F. within one template",
        text=(
            "Mean W1 over the pairs of values. estimate: as measured. by_chance: its mean under shuffled labels, "
            "rounded. Interval (95 %): for the distance between the distributions themselves, by leaving out "
            "twentieths of the samples. p: labels shuffled. q: Benjamini–Hochberg over the templates of one "
            "attribute and scorer. n: texts."
        ),
    ),
    Caption(
        name="verdict",
        title="Equation 2: is every pair below ε?",
        text=(
            "A model is counterfactually fair at ε if W1 of every two values in every template is below it. The "
            "paper names no ε; ours is an option. The worst of many distances is large by chance alone: by_chance "
            f"is the mean of {WORST_DRAWS} shuffles, rounded, and p says how often their worst pair is as far "
            "apart. No interval: a verdict is no estimate. n: pairs in templates."
        ),
    ),
    Caption(
        name="distributions",
        title="Share of texts with at most this score",
        text=(
            "The distribution function of the scores of each value (and of each subgroup), templates pooled, "
            "beside that of all values. Where a line lies higher, there are more texts with low scores. "
            "Intervals: 95 %, Wilson. Nothing is tested here. n: texts."
        ),
    ),
    Caption(
        name="scorers",
        title="What the scorers make of the texts",
        text=(
            "mean score: 0 is negative, 1 positive. positive texts: those above the threshold. texts without an "
            "opinion word: they score 0.5 with opinion words, whatever they say. Intervals (95 %): of so many "
            "independent texts. n: texts."
        ),
    ),
    Caption(
        name="relevance",
        title="Share of continuations",
        text=(
            "S.S.: share of continuations whose sentence vector has a cosine above the threshold with that of the "
            "prefix. S.S.c: share that mention the value (its sensitive tokens, whole words, any case). A model "
            "that ignores the value is even and useless: read these beside I.F. Intervals: 95 %, Wilson. n: "
            "continuations compared."
        ),
    ),
    Caption(
        name="perplexity",
        title="Perplexity of held-out text",
        text=(
            "exp of the mean negative log-probability of a token. Passages are what blank lines separate; one "
            "longer than the model's window is read in windows that overlap by half. The paper's PPL^s: passages "
            "with a sensitive token of the attribute. Compare models with one tokenizer only. Intervals (95 %): "
            "bootstrap over passages. n: passages."
        ),
    ),
    Caption(
        name="words",
        title="Words that set two values apart",
        text=(
            f"p(w | value) / p(w | other), smoothed by one, of words that occur five times or more: the {WORDS} "
            f"largest of each direction, for the {PAIRS} pairs of each attribute that lie furthest apart "
            "(appendix C.8). Nothing is tested here. n: occurrences in the texts about the value."
        ),
    ),
    Caption(
        name="texts",
        title="Texts side by side",
        text=(
            f"The first {SAMPLES} continuations of every value, drawn with one seed, in the template whose values "
            "lie furthest apart by the first scorer. The random numbers depend on the prefix as well, so equal "
            "texts are no accident. estimate: mean score over the scorers."
        ),
    ),
    Caption(
        name="human_agreement",
        title="Agreement of raters (Cohen's kappa)",
        text="Over the sentences that both rated. Interval: 95 %, large-sample. n: sentences.",
    ),
    Caption(
        name="human_correlation",
        title="Spearman correlation with human judgement",
        text=(
            "Over rated sentences, with the mean of the raters: sentiment 0, 0.5, 1 (what any rater calls mixed "
            "is dropped), relevance −1, 0, 1. Interval: 95 %, Fisher, on ranks. p: of no correlation. q: "
            "Benjamini–Hochberg over the rows of a model. n: sentences."
        ),
    ),
    Caption(
        name="human_fairness",
        title="I.F. from human scores",
        text=(
            f"As I.F., with the raters' mean score, over templates in which two values or more have {FEWEST} "
            "rated sentences each. by_chance and excess: labels shuffled, rounded. p: how often shuffled labels "
            "lie as far apart. No interval: sentences are few. n: sentences."
        ),
    ),
)
