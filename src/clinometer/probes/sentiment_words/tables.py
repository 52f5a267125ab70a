"""What is tabulated and drawn: the rows of every finding table, and the charts made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from clinometer.probes.kit import Floats, Ints
from clinometer.probes.kit.asking import LABEL
from clinometer.probes.sentiment_words.answers import (
    NEGATIVE,
    POSITIVE,
    Classes,
    accuracy_finding,
    review_classes,
)
from clinometer.probes.sentiment_words.comparisons import (
    AS_LABELLED,
    SIGN_NAMES,
    count_rows,
    leading_rows,
    overlap_rows,
    scatter_rows,
    shared_rows,
    table_2_rows,
    top_words_rows,
    tuning_rows,
    variant_rows,
    verification_rows,
)
from clinometer.probes.sentiment_words.measures import (
    ASSOCIATION,
    PAPER_AND_Q,
    SHIFT,
    ModelMeasures,
    Shift,
    WordScores,
    signs_by_rule,
)
from clinometer.probes.sentiment_words.options import LABELS
from clinometer.types import Figure, Finding

NEAREST = 5  # words on each side of 0, as in Tables 3 and 8
SHOWN = 20  # words at each end of the ranking that the chart draws
ALONE, AGAINST = "alone", "against the average word"
_POINTS = 200  # of a curve, at most


def model_rows(measures: ModelMeasures) -> Mapping[str, list[Finding]]:
    """Return the rows of one model for each table that is made model by model."""
    counts = count_rows(measures)
    rows: dict[str, Iterable[Finding]] = {
        "sense": _sense_rows(measures),
        "accuracy": _accuracy_rows(measures),
        "curves": _curve_rows(measures),
        "association": _association_rows(measures),
        "shift": _shift_rows(measures, lambda shift: shift.strength),
        "relative_shift": _shift_rows(measures, lambda shift: shift.relative),
        "graded_shift": _graded_rows(measures),
        "shift_by_k": _shift_by_k_rows(measures),
        "leading_words": leading_rows(measures),
        "words_nearest_0": _nearest_rows(measures),
        "biased_words": counts,
        "table_2": table_2_rows(counts),
        "verification": verification_rows(measures),
        "both_tests": scatter_rows(measures),
        "top_words": top_words_rows(measures),
        "variants": variant_rows(measures),
        "vocabulary": _vocabulary_rows(measures),
        "dropped_words": _dropped_rows(measures),
    }
    return {name: list(each) for name, each in rows.items()}


def joint_rows(models: Sequence[ModelMeasures], *, seed: int) -> Mapping[str, list[Finding]]:
    """Return the rows of the tables that compare models, or sort their words together."""
    return {
        "ranked_words": _ranked_rows(models),
        "overlap": list(overlap_rows(models)),
        "shared_words": list(shared_rows(models)),
        "tuning": tuning_rows(models, seed=seed),
    }


def mark_interpretable(rows: Iterable[Finding], models: Mapping[str, ModelMeasures]) -> list[Finding]:
    """Return the rows with a label that says whether their numbers can be interpreted.

    Every model that a row names (or all, if it names none) must sense sentiment, with the template and the label
    words that the row names; a comparison with the main ones needs both.
    """
    marked = []
    for row in rows:
        names = [str(row.labels[name]) for name in ("model", "tuned") if row.labels.get(name) in models]
        asked = [(str(row.labels.get("template", "")) or None, str(row.labels.get("labels", "")) or None)]
        if "changed_words" in row.labels:
            asked.append((None, None))
        sensed = all(models[name].interpretable(*each) for name in names or models for each in asked)
        marked.append(replace(row, labels={**row.labels, "interpretable": "yes" if sensed else "no"}))
    return marked


# ---- does the model sense sentiment: Figures 3 and 4, and the accuracy of its labels


def _sense_rows(measures: ModelMeasures) -> Iterator[Finding]:
    for template, check in measures.checks.items():
        for name, row in check.means.items():
            yield replace(row, labels={"model": measures.model, "template": template, "reviews": name})


def _accuracy_rows(measures: ModelMeasures) -> Iterator[Finding]:
    answers = measures.answers
    classes = review_classes(answers)
    sources = {"all": np.ones(len(answers.positive), dtype=np.bool_)}
    names = np.unique(answers.source)
    if len(names) > 1:
        sources |= {str(name): answers.source == name for name in names}
    for template in measures.checks:
        for pair in answers.words.pairs:
            for source, of_source in sources.items():
                for name, of_class in classes.items():
                    labels = {"model": measures.model, "template": template, "labels": pair.name}
                    labels |= {"source": source, "reviews": name}
                    yield accuracy_finding(answers, template, pair.name, of_source & of_class, labels)


def _curve_rows(measures: ModelMeasures) -> Iterator[Finding]:
    """Yield the reviews of each class in order of their difference."""
    positive = measures.answers.positive
    for template, check in measures.checks.items():
        for name, chosen in ((POSITIVE, positive), (NEGATIVE, ~positive)):
            values = np.sort(check.difference[chosen])
            places = np.linspace(0, len(values) - 1, num=min(_POINTS, len(values))).round().astype(int)
            for place in np.unique(places):
                yield Finding(
                    labels={
                        "model": measures.model,
                        "template": template,
                        "reviews": name,
                        "share_of_reviews": round((float(place) + 0.5) / len(values), 6),
                    },
                    estimate=float(values[place]),
                    n=1,
                )


# ---- every word


def _association_rows(measures: ModelMeasures) -> Iterator[Finding]:
    words, classes = measures.answers.words.tested, measures.answers.classes
    for template, found in measures.associations.items():
        called = signs_by_rule(found.polarity[measures.options.main_m], found.effect.q, PAPER_AND_Q)
        for at in _order(found.effect.estimate, classes):
            yield found.effect.finding(
                (at,),
                {
                    "model": measures.model,
                    "template": template,
                    "word": words[at],
                    "listed_as": str(classes[at]),
                    **{f"m_{m:g}": SIGN_NAMES[int(signs[at])] for m, signs in found.polarity.items()},
                    "called": SIGN_NAMES[int(called[at])],
                },
            )


def _shift_rows(measures: ModelMeasures, score: Callable[[Shift], WordScores]) -> Iterator[Finding]:
    """Yield a score of every appended word; ranks count the neutral words, the strongest positive one first."""
    words, classes = measures.answers.words.shift, measures.answers.shift_classes
    for (template, pair), found in measures.shifts.items():
        scores = score(found)
        called = signs_by_rule(scores.signs, scores.q, PAPER_AND_Q)
        # neutral words come first, so their places are their ranks
        for rank, at in enumerate(_order(found.strength.estimate, classes), start=1):
            yield scores.finding(
                (at,),
                {
                    "model": measures.model,
                    "template": template,
                    "labels": pair,
                    "word": words[at],
                    "listed_as": str(classes[at]),
                    "rank": str(rank) if classes[at] == "neutral" else "",
                    "called": SIGN_NAMES[int(called[at])],
                },
            )


def _graded_rows(measures: ModelMeasures) -> Iterator[Finding]:
    """Yield the graded strength of every appended word, alone and against the average one, and the strength."""
    words, classes = measures.answers.words.shift, measures.answers.shift_classes
    for (template, pair), found in measures.shifts.items():
        for measure, scores in ((ALONE, found.graded), (AGAINST, found.relative_graded)):
            called = signs_by_rule(scores.signs, scores.q, PAPER_AND_Q)
            for rank, at in enumerate(_order(found.graded.estimate, classes), start=1):
                yield scores.finding(
                    (at,),
                    {
                        "model": measures.model,
                        "template": template,
                        "labels": pair,
                        "measure": measure,
                        "word": words[at],
                        "listed_as": str(classes[at]),
                        "rank": str(rank) if classes[at] == "neutral" else "",
                        "called": SIGN_NAMES[int(called[at])],
                        "strength": float(found.strength.estimate[at]),
                        "strength_contradicts": "yes" if found.contradicted[at] else "no",
                    },
                )


def _nearest_rows(measures: ModelMeasures) -> Iterator[Finding]:
    """Yield the neutral words whose strength is nearest to 0, on either side of it."""
    words, classes = measures.answers.words.shift, measures.answers.shift_classes
    for (template, pair), found in measures.shifts.items():
        strength = found.strength.estimate
        order = [at for at in np.argsort(np.abs(strength), kind="stable") if classes[at] == "neutral"]
        for side, above in (("above 0", True), ("0 or below", False)):
            for at in [at for at in order if (strength[at] > 0) == above][:NEAREST]:
                labels = {"model": measures.model, "template": template, "labels": pair}
                yield found.strength.finding((at,), labels | {"side": side, "word": words[at]})


def _shift_by_k_rows(measures: ModelMeasures) -> Iterator[Finding]:
    words, classes = measures.answers.words.shift, measures.answers.shift_classes
    for (template, pair), found in measures.shifts.items():
        signs, truly_neutral = found.by_k.signs, found.truly_neutral
        for at in _order(found.strength.estimate, classes):
            for place, k in enumerate(measures.options.ks):
                sign = SIGN_NAMES[int(signs[at, place])]
                yield found.by_k.finding(
                    (at, place),
                    {
                        "model": measures.model,
                        "template": template,
                        "labels": pair,
                        "word": words[at],
                        "listed_as": str(classes[at]),
                        "k": k,
                        "neg_diff": float(found.neg_diff[at, place]),
                        "pos_diff": float(found.pos_diff[at, place]),
                        "moves": "both the same way" if truly_neutral[at, place] else sign,
                    },
                )


def _ranked_rows(models: Sequence[ModelMeasures]) -> list[Finding]:
    """Return the neutral words at both ends of the ranking, with the main template and label words.

    Rows go by rank and then by model, so that a chart with a menu of models keeps each model's words in order.
    """
    rows: list[tuple[int, Finding]] = []
    for measures in models:
        found = measures.main_shift
        if found is None:
            continue
        words, classes = measures.answers.words.shift, measures.answers.shift_classes
        order = [at for at in _order(found.strength.estimate, classes) if classes[at] == "neutral"]
        for rank, at in enumerate(order, start=1):
            if SHOWN < rank <= len(order) - SHOWN:
                continue
            labels = {"model": measures.model, "rank_and_word": f"{rank}. {words[at]}"}
            for measure, scores in (("strength", found.strength), (AGAINST, found.relative)):
                rows.append((rank, scores.finding((at,), {**labels, "measure": measure})))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _order(estimate: Floats, classes: Classes) -> Ints:
    """Return the places of the words: neutral, positive, negative ones; in each the largest estimate first."""
    turn = {"neutral": 0, "positive": 1, "negative": 2}
    return np.lexsort((-estimate, np.array([turn[str(name)] for name in classes])))


# ---- which of the listed words a model can be asked about


def _vocabulary_rows(measures: ModelMeasures) -> Iterator[Finding]:
    words = measures.answers.words
    for label in LABELS if words.way is not LABEL else ():
        listed, scorable = words.listed[label], words.scorable[label]
        yield Finding(
            labels={
                "model": measures.model,
                "listed_as": label,
                "listed": listed,
                "one_token": scorable,
                "used": len(words.used[label]),
                "shift_test": int((measures.answers.shift_classes == label).sum()),
            },
            estimate=scorable / listed,
            n=listed,
        )


def _dropped_rows(measures: ModelMeasures) -> Iterator[Finding]:
    for label in LABELS:
        for each in measures.answers.words.dropped[label]:
            yield Finding(
                labels={"model": measures.model, "listed_as": label, "word": each.word}, estimate=each.score, n=1
            )


# ---- charts

_SENSED = {"interpretable": "yes"}  # nothing is drawn of a model whose numbers mean nothing

# only if a run has a model and a checkpoint tuned from it
TUNING = Figure(
    name="tuning",
    title="What fine-tuning does to the share of biased words",
    caption=(
        f"Share of the neutral words called biased ({PAPER_AND_Q}) after fine-tuning minus before, by test, "
        "threshold m and repetitions K: right of 0 there are more. Choose a kind of training, or one of its seeds."
    ),
    table="tuning",
    mark="intervals",
    x="estimate",
    y="m_or_k",
    color="sign",
    column="test",
    filters={"rule": PAPER_AND_Q, **_SENSED},
    menus=("tuned",),
    reference=0.0,
)

FIGURES = (
    Figure(
        name="curves",
        title="Does the model sense sentiment? Positive minus negative words after each review",
        caption=(
            "As in the paper's Figures 3 and 4: the curve of positive reviews should run above that of negative "
            "ones."
        ),
        table="curves",
        mark="lines",
        x="share_of_reviews",
        y="estimate",
        color="reviews",
        menus=("model", "template"),
        reference=0.0,
        evidence=ASSOCIATION,
    ),
    Figure(
        name="biased_words_association",
        title="Neutral words that the association test calls biased, and how many chance would call",
        caption="By threshold m. Where both bars are equally long, the paper's rule has found nothing but chance.",
        table="biased_words",
        mark="bars",
        x="estimate",
        y="m_or_k",
        color="reviews",
        column="rule",
        filters={"test": ASSOCIATION, "sign": "either", **_SENSED},
        menus=("model",),
        evidence=ASSOCIATION,
    ),
    Figure(
        name="biased_words_signs",
        title="Positive and negative neutral words",
        caption=(
            f"Share of the neutral words with each sign ({PAPER_AND_Q}), by test, threshold m and repetitions K."
        ),
        table="biased_words",
        mark="bars",
        x="estimate",
        y="m_or_k",
        color="sign",
        filters={"rule": PAPER_AND_Q, "reviews": AS_LABELLED, **_SENSED},
        menus=("model", "test"),
    ),
    Figure(
        name="ranked_words",
        title="Neutral words by their strength in the shift test",
        caption=(
            "Right of 0 the word makes labels positive, left of 0 negative; 'against the average word' takes "
            "away what any appended word does."
        ),
        table="ranked_words",
        mark="intervals",
        x="estimate",
        y="rank_and_word",
        color="measure",
        filters=_SENSED,
        menus=("model",),
        reference=0.0,
        evidence=SHIFT,
    ),
    Figure(
        name="both_tests",
        title="Association test and shift test",
        caption=(
            "Each point is a neutral word: its effect in the association test (standard deviations) and its "
            "strength in the shift test. Agreement lies along a rising line."
        ),
        table="both_tests",
        mark="scatter",
        x="association_effect",
        y="estimate",
        color="called_by",
        filters=_SENSED,
        menus=("model",),
        reference=0.0,
        evidence=SHIFT,
    ),
    Figure(
        name="accuracy",
        title="Reviews that get their label",
        caption="By source and class, without any appended word. At 0.5 a coin does as well.",
        table="accuracy",
        mark="intervals",
        x="estimate",
        y="source",
        color="reviews",
        column="model",
        menus=("template", "labels"),
        reference=0.5,
        evidence=ASSOCIATION,
    ),
)
