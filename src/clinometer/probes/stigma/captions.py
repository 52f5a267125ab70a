"""The finding tables of the stigma audit: names, titles and how to read them."""

from __future__ import annotations

from dataclasses import dataclass

from clinometer.probes.stigma.groups import FEWEST

_CONDITIONS = (
    f"Intervals: 95 %, bootstrap over conditions (fewer than {FEWEST} give none; those of the baseline resample "
    "its prompts)."
)
_DISTANCES = f"Intervals: 95 %, bootstrap over the social distances (fewer than {FEWEST} give none)."
_SHUFFLED = (
    "p: which conditions are stigmatized is shuffled, and the difference is divided by its standard error "
    f"(two-sided; none where a group has fewer than {FEWEST} conditions)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The name of a table, its title and what its numbers are."""

    name: str
    title: str
    text: str


CAPTIONS = (
    Caption(
        name="change",
        title="Change of the negative attitude by tuning",
        text=(
            "Negative attitude of a tuned model minus that of the model it began with, towards the same "
            "conditions: mean over the stigmatized ones, over the others, and the difference of the two. 'all' "
            "is the mean of the templates. before, after: the numbers themselves. Below 0 the tuned model speaks "
            "less ill of them, or less unequally. Where a control is in the run (the same training without the "
            "fairness loss), what it changes as well is not the mitigation's doing. Intervals: 95 %, bootstrap "
            f"over conditions; that of the difference is made of those of the two groups; fewer than {FEWEST} "
            "conditions give none. p: sign flips of conditions for a group; for the difference, which conditions "
            "are stigmatized is shuffled, studentized; two-sided. q: Benjamini–Hochberg over all rows of a tuned "
            "model. n: conditions."
        ),
    ),
    Caption(
        name="difference",
        title="Difference stigmatized − other",
        text=(
            "Mean over the stigmatized conditions minus mean over the others; above 0 the model speaks worse of "
            "stigmatized people. negative attitude: share of the rated probability that lies on negative words, 0 "
            "to 1. negative classification: share of sentences that come out negative, 0 to 1. social distance: "
            "mean score, 0 (definitely willing) to 3 (definitely unwilling). The interval is made of those of the "
            f"two groups. {_CONDITIONS} {_SHUFFLED} q: Benjamini–Hochberg over all rows of a model. n: conditions."
        ),
    ),
    Caption(
        name="levels",
        title="Negative attitude by group",
        text=(
            "Mean over the conditions of a group (the paper's Figure 2, as means); baseline is the same prompt "
            "without a condition. 'all' is the mean of the templates. A prompt's negative attitude is the "
            "negative share of its rated words; prompts, then sub-conditions, then templates, then models are "
            f"averaged (§4.3). {_CONDITIONS} Differences are tested in the table of differences. n: conditions, "
            "or prompts of the baseline."
        ),
    ),
    Caption(
        name="categories",
        title="Excess over the non-stigmatized conditions, by category",
        text=(
            "Mean negative attitude of a category's stigmatized conditions minus the mean of all non-stigmatized "
            "conditions, whatever their category: most categories have only one or two of these. "
            "negative_attitude: the category's own mean; conditions: how many it has. The interval is made of "
            f"those of the two groups. {_CONDITIONS} {_SHUFFLED} q: Benjamini–Hochberg over the categories of a "
            "model. n: conditions of both."
        ),
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
            "Negative attitude towards a condition minus the mean of the non-stigmatized ones (for one of these: "
            f"of the others of its kind). {_DISTANCES} p asks another question than the interval: whether a "
            "non-stigmatized condition would lie so far from the mean of its kind, given how much they differ "
            "among each other (Crawford & Howell 1998, two-sided; it takes them to be normally distributed). q: "
            "Benjamini–Hochberg over the conditions of a model. A condition is singled out only when q is small; "
            "an interval without 0 says merely that its prompts agree. n: social distances."
        ),
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
            "What a template shows minus what the other templates show on average, condition by condition: for "
            "the difference stigmatized − other, and for the level of all conditions. rank 1 moves it most. "
            f"{_CONDITIONS} p: shuffled groups for the difference, sign flips of conditions for the level. q: "
            "Benjamini–Hochberg over all rows of a model in this table. n: conditions."
        ),
    ),
    Caption(
        name="coverage",
        title="Probability that the ratio speaks for",
        text=(
            "Where the probability of the blank lies: in the ratio (rated positive, negative or neutral), "
            "irrelevant, unrated, or beyond the words read. These four add up to 1. The last part counts prompts "
            "with less than 0.5 in the ratio; the paper reads words that hold at least 0.5 (its Figure 5). "
            f"{_CONDITIONS} n: conditions."
        ),
    ),
    Caption(
        name="classes",
        title="Outcomes of the statements",
        text=(
            "Share of sentences whose most probable class is this (figures 4, 8 and 9). A class that a classifier "
            "does not have is empty; undecided: two classes are equally probable. baseline: the sentence without "
            "a condition, a single outcome for each template. Intervals: 95 %, bootstrap over conditions, then "
            "over their sentences (Wilson's where a class never or always comes). n: conditions, or sentences of "
            "the baseline."
        ),
    ),
    Caption(
        name="condition_classes",
        title="Share of negative outcomes by condition",
        text=(
            "Negative outcomes among all outcomes of a condition's sentences (figures 10 to 12). Over all "
            f"classifiers the interval resamples classifiers, of which it needs {FEWEST}, and n counts them; for "
            "one classifier it is a count of n sentences, without an interval."
        ),
    ),
    Caption(
        name="correlation",
        title="Correlation of the two measures",
        text=(
            "Pearson correlation, over conditions, of the negative attitude (mean over masked models) with the "
            "share of negative outcomes (over classifiers), §5.3. 'all' mixes the difference between the groups "
            "with what happens within them; the other rows are within a group. Interval: Fisher, 95 %. p: of no "
            "correlation. q: Benjamini–Hochberg over the three. n: conditions."
        ),
    ),
    Caption(
        name="both_measures",
        title="Share of negative outcomes",
        text=(
            "The two measures of each condition: negative_attitude is the mean over masked models, the estimate "
            "is the share of negative outcomes over classifiers. One pair for each condition: no interval and no "
            "test."
        ),
    ),
    Caption(
        name="distance_levels",
        title="Social distance by group",
        text=(
            "Mean score of the answers on the scale over the conditions of a group, 0 (definitely willing) to 3 "
            f"(definitely unwilling); baseline is the question about someone without a condition. {_CONDITIONS} "
            "The difference is tested in the table of differences. n: conditions, or questions of the baseline."
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
            "Cohen's kappa over the words that both lists rate: of the four ratings, and of each against the "
            "rest. agreement: share of the words on which they agree. given, ours: words in each list. Interval: "
            "large sample, 95 %. n: words in both."
        ),
    ),
    Caption(
        name="words",
        title="Words that carry the probability",
        text=(
            "The words with the most probability among the words read, as the mean over all prompts about a "
            "condition, by rating. Unrated words are in no other table but coverage: look here for words that the "
            "ratings lack. n: prompts that offer the word."
        ),
    ),
)
