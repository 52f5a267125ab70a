"""The charts of the sentiment-words audit."""

from __future__ import annotations

from clinometer.probes.sentiment_words.calls import ASSOCIATION, SHIFT
from clinometer.probes.sentiment_words.verdicts import SURE
from clinometer.types import Figure

# only where a run holds a model and a checkpoint tuned from it
TUNING = Figure(
    name="tuning",
    title="What fine-tuning does to the share of biased words",
    caption=(
        f"Share of the neutral words called biased ({SURE}) after fine-tuning minus before, by test, threshold m "
        "and repetitions K: right of 0 there are more."
    ),
    table="tuning",
    mark="intervals",
    x="estimate",
    y="m_or_k",
    color="sign",
    column="test",
    filters={"rule": SURE},
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
        evidence="association",
    ),
    Figure(
        name="biased_words_association",
        title="Neutral words that the association test calls biased, and how many chance would call",
        caption="By threshold m. Where both bars are as long, the paper's rule has found nothing but chance.",
        table="biased_words",
        mark="bars",
        x="estimate",
        y="m_or_k",
        color="reviews",
        column="rule",
        filters={"test": ASSOCIATION, "sign": "either"},
        menus=("model",),
        evidence="association",
    ),
    Figure(
        name="biased_words_signs",
        title="Positive and negative neutral words",
        caption=f"Share of the neutral words with each sign ({SURE}), by test, threshold m and repetitions K.",
        table="biased_words",
        mark="bars",
        x="estimate",
        y="m_or_k",
        color="sign",
        filters={"rule": SURE, "reviews": "as labelled"},
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
        evidence="association",
    ),
)
