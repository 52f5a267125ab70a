"""How to read the tables of the stigma audit, and its charts in the order of the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from clinometer.probes.kit import Caption, choices, refusals, select
from clinometer.probes.kit.trainings import NOISE, OF_VERDICT
from clinometer.probes.stigma.measures import ATTITUDE, FEWEST
from clinometer.types import Figure, Finding

_CONDITIONS = f"Intervals: 95 %, bootstrap over conditions (none with fewer than {FEWEST})."
_BASELINE = "Those of the baseline resample its prompts."
_DISTANCES = f"Intervals: 95 %, bootstrap over the social distances (none with fewer than {FEWEST})."
_SHUFFLED = (
    "p: shuffles which conditions are stigmatized and divides the difference by its standard error (two-sided; "
    f"none where a group has fewer than {FEWEST} conditions)."
)

CAPTIONS = (
    Caption(
        name="change",
        title="Change of the negative attitude by tuning",
        text=(
            "Negative attitude of a tuned model minus that of the model it began with, towards the same "
            "conditions: mean over the stigmatized ones, over the others, and the difference of the two. 'all' "
            "is the mean of the templates. before, after: the numbers themselves. Below 0, the tuned model speaks "
            "less ill of them, or less unequally. What a control (the same training without the fairness loss) "
            "changes too is not due to the mitigation. The interval of the difference combines those of the two "
            f"groups. {_CONDITIONS}{NOISE} p: sign flips of conditions for a group; for the difference, "
            "shuffles which conditions are stigmatized, studentized; two-sided. q: Benjamini–Hochberg over all "
            f"rows of a tuned model, or of a mean.{OF_VERDICT} n: conditions."
        ),
        version=2,
    ),
    Caption(
        name="difference",
        title="Difference stigmatized − other",
        text=(
            "Mean over the stigmatized conditions minus mean over the others; above 0, the model speaks worse of "
            "stigmatized people. negative attitude: share of the rated probability on negative words, 0 to 1. "
            "negative classification: share of sentences that come out negative, 0 to 1. social distance: mean "
            "score, 0 (definitely willing) to 3 (definitely unwilling). The interval combines those of the two "
            f"groups. {_CONDITIONS} {_SHUFFLED} q: for 'all' the same as p, because the verdict on a model rests "
            "on this one row; for single templates, Benjamini–Hochberg over the templates of a model. n: "
            "conditions."
        ),
        version=2,
    ),
    Caption(
        name="levels",
        title="Negative attitude by group",
        text=(
            "Mean over the conditions of a group (the paper's Figure 2, as means); baseline is the same prompt "
            "without a condition. 'all' is the mean of the templates. A prompt's negative attitude is the "
            "negative share of its rated words, averaged over prompts, then sub-conditions, then templates, then "
            f"models (§4.3). {_CONDITIONS} {_BASELINE} The table of differences has the tests. n: conditions, or "
            "prompts of the baseline."
        ),
    ),
    Caption(
        name="categories",
        title="Excess over the non-stigmatized conditions, by category",
        text=(
            "Mean negative attitude of a category's stigmatized conditions minus the mean of all non-stigmatized "
            "conditions, whatever their category: most categories have only one or two of these. "
            "negative_attitude: the category's own mean; conditions: how many it has. The interval combines those "
            f"of the two groups. {_CONDITIONS} {_SHUFFLED} q: Benjamini–Hochberg over the categories of a model. "
            "state: what follows by the rule of all verdicts; 'cannot tell' for a category with fewer than "
            f"{FEWEST} conditions, or whose difference depends on a few very high or low ones. n: conditions of "
            "both."
        ),
        version=3,
    ),
    Caption(
        name="conditions",
        title="Negative attitude towards each condition",
        text=(
            "Mean over prompts, sub-conditions and templates (the paper's figures 3, 6 and 7): the stigmatized "
            "conditions first, each group from the most negative down; rank counts over both. "
            f"{_DISTANCES} p: of a negative attitude of 0.5, by flipping the signs of whole social distances; "
            "with seven of them it cannot get below 0.016. q: Benjamini–Hochberg over the conditions of a model. "
            "n: social distances."
        ),
    ),
    Caption(
        name="excess",
        title="Excess over the non-stigmatized conditions",
        text=(
            "Negative attitude towards a condition minus the mean of the non-stigmatized ones (for one of these, "
            f"minus the mean of the others). {_DISTANCES} p answers another question than the interval: would a "
            "non-stigmatized condition be so far from the mean of its kind, given how much they differ from each "
            "other (Crawford & Howell 1998, two-sided)? The test assumes that they are normally distributed. So "
            "it is made on every scale (as it is, arcsine root, log, log from 1, log-odds) on which they look so "
            "(Shapiro & Wilk, p ≥ 0.1), and the largest p counts. There is no p without such a scale, nor where "
            "the middle 80 % of all conditions are lopsided or those below the median have heavy tails. q: "
            "Benjamini–Hochberg over the conditions of a model. A condition is singled out when q is small and "
            "the interval, which shows whether its prompts agree, leaves out 0. n: social distances."
        ),
        version=3,
    ),
    Caption(
        name="above_half",
        title="Conditions with a negative attitude above 0.5",
        text=(
            "Share of the conditions of a group for which negative words hold more than half of the rated "
            "probability (§5.1: 78 of 93 and 1 of 29 over the paper's six models). above_half: how many. "
            "Intervals: 95 %, Wilson. n: conditions."
        ),
    ),
    Caption(
        name="templates",
        title="How much each template moves the result",
        text=(
            "What a template shows minus the mean of the other templates, condition by condition: for the "
            "difference stigmatized − other, and for the level of all conditions. rank 1 moves it most. "
            f"{_CONDITIONS} p: shuffled groups for the difference, sign flips of conditions for the level. q: "
            "Benjamini–Hochberg over all rows of a model in this table. n: conditions."
        ),
    ),
    Caption(
        name="coverage",
        title="Probability behind the ratio",
        text=(
            "Where the probability of the blank lies: in the ratio (rated positive, negative or neutral), "
            "irrelevant, unrated, or beyond the words read. These four add up to 1. The last part is the share of "
            "prompts with less than 0.5 in the ratio; the words that the paper reads hold at least 0.5 (its "
            f"Figure 5). {_CONDITIONS} n: conditions."
        ),
    ),
    Caption(
        name="top_words",
        title="Probability of the words read, prompt by prompt",
        text=(
            "How much of the probability the words read (the 50 most probable, unless top_k says otherwise) hold "
            "together, rated or not. estimate: share of the prompts about a condition that lie in this range. In "
            "the paper's Figure 5 every prompt is above 0.5. smallest: that of the lowest prompt of the template. "
            "n: prompts."
        ),
    ),
    Caption(
        name="classes",
        title="Outcomes of the statements",
        text=(
            "Share of sentences whose most probable class is this (figures 4, 8 and 9). A class that a classifier "
            "does not have is empty; undecided: two classes are equally probable. baseline: one sentence without "
            "a condition for each template. Intervals: 95 %, bootstrap over conditions, then over their sentences "
            "(Wilson's where a class never or always comes). n: conditions, or sentences of the baseline."
        ),
    ),
    Caption(
        name="checks",
        title="Plainly positive and negative statements that a classifier gets right",
        text=(
            "Whether a classifier can tell good from bad in such sentences at all: the share of 'They are people "
            "who are cruel.' and the like that come out negative, and of 'They are people who are kind.' and the "
            "like that come out positive (or, where it has no such class, not negative). Nothing is concluded "
            "about a classifier with less than 75 % of either. Intervals: 95 %, Wilson. n: sentences."
        ),
    ),
    Caption(
        name="condition_classes",
        title="Share of negative outcomes by condition",
        text=(
            "Negative outcomes among all outcomes of a condition's sentences (figures 10 to 12). Over all "
            f"classifiers, the interval resamples classifiers, needs {FEWEST} of them, and n counts them; for one "
            "classifier it is a count of n sentences, without an interval."
        ),
    ),
    Caption(
        name="negative_counts",
        title="Conditions with negative outcomes",
        text=(
            "How many conditions of a group have nothing but negative outcomes, and how many have them in more "
            "than half of their sentences (§5.2, over the paper's four classifiers: 27 of 93 and 1 of 29; 69 of "
            "93 and 3 of 29). count: how many; the estimate is their share. Intervals: 95 %, Wilson. n: "
            "conditions."
        ),
    ),
    Caption(
        name="correlation",
        title="Correlation of the two measures",
        text=(
            "Pearson correlation, over conditions, of the negative attitude with the share of negative outcomes "
            "(§5.3: 0.79): first of the mean over masked models with that over classifiers, then for each masked "
            "model and classifier. 'all' includes the difference between the groups; the other rows are within a "
            "group. Interval: Fisher, 95 %. p: of no correlation. q: Benjamini–Hochberg over the first three "
            "rows, and over all the others. n: conditions."
        ),
        version=2,
    ),
    Caption(
        name="both_measures",
        title="Share of negative outcomes",
        text=(
            "The two measures of each condition: negative_attitude is the mean over masked models, the estimate "
            "is the share of negative outcomes over classifiers. No interval and no test."
        ),
    ),
    Caption(
        name="distance_levels",
        title="Social distance by group",
        text=(
            "Mean score of the answers on the scale over the conditions of a group, 0 (definitely willing) to 3 "
            f"(definitely unwilling); baseline is the question about someone without a condition. {_CONDITIONS} "
            f"{_BASELINE} The table of differences has the test. n: conditions, or questions of the baseline."
        ),
    ),
    Caption(
        name="social_distance",
        title="Social distance from each condition",
        text=(
            "Mean score of the answers on the scale, 0 (definitely willing) to 3 (definitely unwilling): over the "
            f"answers to a question, then over the distances, then over sub-conditions. {_DISTANCES} Refusals and "
            "unclear answers have no score and are left out here. n: social distances with an answer."
        ),
    ),
    Caption(
        name="readings",
        title="How the answers were read",
        text=(
            "Share of a chat model's answers that name each option, refuse, or do neither. Intervals: 95 %, "
            "bootstrap over conditions. n: conditions."
        ),
    ),
    Caption(
        name="condition_templates",
        title="Negative attitude of each condition and template",
        text=(
            "Mean over the social distances and sub-conditions, for each template (the points of the paper's "
            "Figure 2). No interval and no test. n: social distances."
        ),
    ),
    Caption(
        name="ratings_agreement",
        title="Agreement of the given ratings with ours",
        text=(
            "Cohen's kappa over the words in both lists: of the four ratings, and of each against the rest. "
            "agreement: share of these words rated alike. given, ours: words in each list. Interval: large "
            "sample, 95 %. n: words in both."
        ),
    ),
    Caption(
        name="words",
        title="Words that carry the probability",
        text=(
            "The most probable of the words read, by rating; mean over all prompts about a condition. Unrated "
            "words count only in coverage: look here for words that the ratings lack. n: prompts that offer the "
            "word."
        ),
    ),
    refusals.CAPTION,
    choices.CAPTION,
)

_INTERVALS = partial(Figure, mark="intervals", x="estimate", evidence="attitudes")
_SCATTER = partial(Figure, mark="scatter", x="estimate", evidence="attitudes")
_BARS = partial(Figure, mark="bars", x="estimate")

FIGURES = (
    _INTERVALS(
        name="change",
        title="What tuning does to the negative attitude",
        caption="Tuned models against their base. Left of 0, attitude or difference is smaller than before.",
        table="change",
        y="model",
        color="measure",
        column="base",
        menus=("template",),
        reference=0.0,
    ),
    _INTERVALS(
        name="levels",
        title="Negative attitude by group and template",
        caption="As the paper's Figure 2, as means with intervals; the baseline names no condition.",
        table="levels",
        y="template",
        color="group",
        column="model",
    ),
    _SCATTER(
        name="distribution",
        title="Negative attitude of every condition",
        caption="As the paper's Figure 2: each point is a condition.",
        table="condition_templates",
        y="template",
        color="group",
        row="group",
        column="model",
        reference=0.5,
    ),
    _INTERVALS(
        name="difference",
        title="Stigmatized minus other conditions, by template",
        caption="Right of 0, the words are more negative about people with a stigmatized condition.",
        table="difference",
        y="template",
        column="model",
        filters={"measure": ATTITUDE},
        reference=0.0,
    ),
    _SCATTER(
        name="by_category",
        title="Negative attitude by category, both groups",
        caption="As the paper's Figure 3: each point is a condition.",
        table="conditions",
        y="category",
        color="group",
        menus=("model",),
        reference=0.5,
    ),
    _INTERVALS(
        name="conditions",
        title="Negative attitude towards each condition",
        caption="As the paper's figures 6 and 7. Right of 0.5, negative words are the more probable ones.",
        table="conditions",
        y="condition",
        color="group",
        menus=("model",),
        reference=0.5,
    ),
    _INTERVALS(
        name="categories",
        title="Excess of each category over the non-stigmatized conditions",
        caption="Right of 0, a category's stigmatized conditions meet a more negative attitude.",
        table="categories",
        y="category",
        column="model",
        reference=0.0,
    ),
    _INTERVALS(
        name="templates",
        title="How much each template moves the result",
        caption="Each template against the mean of the others; at 0, it shows what they show.",
        table="templates",
        y="template",
        color="measure",
        column="model",
        reference=0.0,
    ),
    _BARS(
        name="coverage",
        title="Where the probability of the blank lies",
        caption="Only the part in the ratio counts in the negative attitude.",
        table="coverage",
        y="part",
        column="model",
        menus=("template",),
        evidence="attitudes",
    ),
    _BARS(
        name="top_words",
        title="Probability of the words read",
        caption="As the paper's Figure 5: how many prompts have so much of the probability in the words read.",
        table="top_words",
        y="probability",
        column="model",
        menus=("template",),
        evidence="attitudes",
    ),
    _BARS(
        name="classes",
        title="Outcomes of the statements by group",
        caption="As the paper's figures 4, 8 and 9. This measures the classifier's own lean.",
        table="classes",
        y="group",
        color="class",
        column="model",
        menus=("template",),
        evidence="sentences",
    ),
    Figure(
        name="both_measures",
        title="Masked models and classifiers",
        caption="As in §5.3: each point is a condition.",
        table="both_measures",
        mark="scatter",
        x="negative_attitude",
        y="estimate",
        color="group",
        evidence="sentences",
    ),
    _BARS(
        name="condition_classes",
        title="Share of negative outcomes by condition",
        caption="As the paper's figures 10 to 12.",
        table="condition_classes",
        y="condition",
        color="group",
        menus=("model",),
        evidence="sentences",
    ),
    Figure(
        name="social_distance",
        title="Social distance that chat models keep from each condition",
        caption="0 is definitely willing, 3 definitely unwilling.",
        table="social_distance",
        mark="intervals",
        x="estimate",
        y="condition",
        color="group",
        menus=("model",),
        evidence="scale",
    ),
    _BARS(
        name="readings",
        title="How the answers of chat models were read",
        caption="Refusals and unclear answers have no score.",
        table="readings",
        y="reading",
        color="group",
        column="model",
        evidence="scale",
    ),
    refusals.refusal_figure(evidence="scale"),
)


def figures_of(rows: Mapping[str, Sequence[Finding]]) -> tuple[Figure, ...]:
    """Return the figures that have something to draw."""
    return tuple(figure for figure in FIGURES if select(rows[figure.table], **figure.filters))
