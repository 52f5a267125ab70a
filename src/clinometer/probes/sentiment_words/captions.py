"""The finding tables of the sentiment-words audit: names, titles and how to read them."""

from __future__ import annotations

from dataclasses import dataclass

from clinometer.probes.sentiment_words.chance import SHUFFLES
from clinometer.probes.sentiment_words.tables.methods import TOP
from clinometer.probes.sentiment_words.tables.words import SHOWN
from clinometer.probes.sentiment_words.verdicts import LEVEL

_INTERPRETABLE = (
    "interpretable: 'no' where the model shows no sense of sentiment (see the first two tables); such rows mean "
    "nothing."
)
_REVIEWS = "Intervals: 95 %, bootstrap over reviews, positive and negative ones apart. n: reviews."
_WILSON = "Intervals: 95 %, Wilson, as if the words were a sample of such words."
_RULES = (
    f"rule: 'paper' is the paper's rule alone; 'q ≤ {LEVEL}' demands the q-value too, and is what we call biased."
)
_FLIPS = (
    "p: sign flips of the reviews' values, two-sided: does the word move labels one way at all? q: "
    "Benjamini–Hochberg over the words of the same class."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The name of a table, its title and what its numbers are."""

    name: str
    title: str
    text: str


CAPTIONS = (
    Caption(
        name="sense",
        title="Positive minus negative words after a review",
        text=(
            "Mean probability of the positive words minus that of the negative words at the mask (§4.2), "
            "averaged over reviews; last, the difference between positive and negative reviews, which must be "
            "above 0 with p < 0.05 for anything else here to be interpreted. Intervals: 95 %, bootstrap over "
            "reviews. p: sign flips of reviews for one class, shuffled labels between the classes; not "
            f"corrected. n: reviews. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="accuracy",
        title="Share of reviews that get their label",
        text=(
            "A review is called positive where the positive label word is more probable at the mask than the "
            "negative one, without any appended word. The interval over all reviews must lie above 0.5 for "
            "anything found with that template and those label words to be interpreted (what names no label words "
            "takes the main ones). Intervals: 95 %, Wilson. "
            f"Nothing is tested (p and q are empty). n: reviews. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="biased_words",
        title="Share called biased",
        text=(
            "Share of the neutral words: the % columns of Tables 1 and 2, with the main template and label "
            "words. association: the word's mean probability in one class of reviews lies more than m standard "
            "deviations above that of the other. shift: the label moves one way when the word is appended; 'all "
            "K' is the sign of the strength, 'truly neutral' (§4.3) that both accuracies rise or both fall. "
            f"shift against average: the strength differs from that of the average neutral word. {_RULES} "
            f"{_WILSON} reviews: 'labels shuffled' is what chance gives in the association test, the mean of "
            f"{SHUFFLES} shuffles with the range of 95 % of them (n: shuffles); p: how often a shuffle calls as "
            "many words biased. Shuffled labels cannot change the shift test, whose chance is in the q-values of "
            f"its words. q: Benjamini–Hochberg over the tested rows of a model. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="ranked_words",
        title="Strength of the neutral words",
        text=(
            f"The {SHOWN} most positive and the {SHOWN} most negative neutral words of the shift test, by "
            "strength; 'against the average word' is the strength minus that of the other neutral words, since "
            f"appending any word may move labels one way. {_REVIEWS} {_FLIPS} {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="association",
        title="Association test: effect of every word",
        text=(
            "Mean probability of the word after positive reviews minus that after negative ones, in standard "
            "deviations of the class with the smaller mean: at threshold m a word is positive where it is above "
            "m, negative where it is below −m (columns m …: the paper's rule). called: the verdict at the middle "
            f"m where also q ≤ {LEVEL}. {_REVIEWS} p: shuffled labels of the reviews, two-sided: do the two means "
            "differ? It does not depend on m. q: Benjamini–Hochberg over the words of the same class and "
            f"template. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="shift",
        title="Shift test: strength of every appended word",
        text=(
            "The paper's q, here called strength: (1/n) Σ_K (Neg_Diff − Pos_Diff)/K², accuracies as shares; "
            "above 0 the word makes labels positive. Compare ranks, not values, with the paper. rank: among "
            f"neutral words, the most positive first. called: the sign where also q ≤ {LEVEL}. {_REVIEWS} "
            f"{_FLIPS} {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="relative_shift",
        title="Shift test: strength against the average neutral word",
        text=(
            "Strength minus the mean strength of the other neutral words: appending any word may move labels one "
            f"way, and this is what sets a word apart. {_REVIEWS} {_FLIPS} {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="shift_by_k",
        title="Shift test: Neg_Diff − Pos_Diff for each K",
        text=(
            "neg_diff and pos_diff: accuracy on negative and on positive reviews before minus after the word was "
            "appended K times; moves: 'both the same way' is what the paper calls truly neutral, else the sign. "
            f"{_REVIEWS} {_FLIPS} Corrected for each K on its own. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="verification",
        title="Positive and negative words by the same tests",
        text=(
            "Share of the words that people call positive or negative that the test calls positive or negative: "
            "it should find many with their own sign and few with the other. The shift test is here when "
            f"shift_words = 'all'. {_RULES} {_WILSON} n: words. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="both_tests",
        title="Strength in the shift test",
        text=(
            "Neutral words that both tests were asked about: strength (shift), beside the effect of the "
            f"association test. called_by: which of the tests calls the word biased (q ≤ {LEVEL}, association at "
            f"the middle m). {_REVIEWS} p: as in the shift test. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="overlap",
        title="Words of one test that the other finds too",
        text=(
            "Share of the neutral words called biased by one test that the other calls biased with the same "
            "sign; 'all models together' takes the union over models first (the paper's footnote 3). Only words "
            f"that both tests were asked about. {_RULES} {_WILSON} n: words of the test named last. "
            f"{_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="top_words",
        title="Strongest and weakest words of the shift test that the association test finds too",
        text=(
            f"The {TOP} strongest and the {TOP} weakest of the words that the shift test calls biased with a sign "
            f"(with fewer than {2 * TOP}: the stronger and the weaker half); share of them that the association "
            "test calls biased with that sign (§4.4). If strength measures anything, the strongest agree more "
            f"often. {_RULES} {_WILSON} n: words. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="shared_words",
        title="Biased words that at least two models share",
        text=(
            "Of the words that at least one model leans on, the share on which at least two do, with the same "
            f"sign (§4.3). {_RULES} words: the first ten shared ones. {_WILSON} n: words of any model. Needs two "
            f"models. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="tuning",
        title="Change in the share of biased words after fine-tuning",
        text=(
            "For each checkpoint of this run that was tuned from another model of it: share of the neutral words "
            "called biased after minus before. before, after, kept: words; lost, gained: how many and which. "
            "growth_percent: growth of the number of words; for 'either' the mean of positive and negative, as "
            f"in the paper's footnote 2; empty where there were none before. {_RULES} Intervals: 95 %, Bonett "
            "and Price. p: sign flips of the words' changes. q: Benjamini–Hochberg over all rows. n: words. "
            f"{_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="variants",
        title="Verdicts with another template or other label words",
        text=(
            "same verdict: share of the neutral words whose verdict (positive, negative, none) stays when the "
            "template or the label words become the ones named here; kappa: the same beyond chance. Intervals: "
            f"95 %, Wilson; for kappa the large-sample one. {_RULES} changed_words: the ten strongest that "
            f"changed. Needs a second entry in the options templates or labels. n: words. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="curves",
        title="Positive minus negative words, review by review",
        text=(
            "Figures 3 and 4: reviews of each class in order of their difference (mean probability of positive "
            "minus that of negative words). share_of_reviews: the share of the class with a smaller difference. "
            f"Single reviews: no interval, no test. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="vocabulary",
        title="Listed words that are one token",
        text=(
            "Only words that are one token of the model after a space can be scored. used: the words of the "
            "association test; shift_test: those that are appended. A count, not an estimate: no interval and no "
            f"test. n: listed words. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="dropped_words",
        title="Listed words that are not one token",
        text=(
            "Words that would have been used, were they one token of the model. The estimate is the word's score "
            f"in VADER (−4 to +4), missing for words of other lists. {_INTERPRETABLE}"
        ),
    ),
)
