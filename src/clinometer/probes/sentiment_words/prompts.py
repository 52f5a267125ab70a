"""What the sentiment-words audit asks: the vocabulary, every review, and every review with words appended."""

from __future__ import annotations

from collections.abc import Iterator

from clinometer.probes.protocol import Plan, Records
from clinometer.probes.sentiment_words.options import Options
from clinometer.probes.sentiment_words.words import choose_words, vocabulary_words
from clinometer.types import Fill, Item


def vocabulary_question(plan: Plan) -> Item:
    """Return the question which of the listed words are one token of the model."""
    options: Options = plan.options
    words = vocabulary_words(options, seed=plan.seed)
    return Item(request=Fill(text=options.main_template, words=words), tags={"template": options.main_template})


def association_prompts(plan: Plan, records: Records) -> Iterator[Item]:
    """Yield every review with every template: how probable is each word after it?

    The review is the context: it alone is cut where both are longer than the model's window.
    """
    options: Options = plan.options
    words = choose_words(plan, records).asked
    reviews = options.chosen_reviews(plan.seed)
    for template in options.templates:
        for number, review in enumerate(reviews):
            yield Item(
                request=Fill(text=template, context=review.text, words=words),
                tags={"template": template, "review": number, "label": review.label, "source": review.source},
            )


def shift_prompts(plan: Plan, records: Records) -> Iterator[Item]:
    """Yield every review with every word appended k times: which label word does the model prefer now?

    Millions of requests at the paper's size, so nothing is held but the reviews and one text for each word and k.
    Words change fastest and reviews come by length, so that requests near each other cost about the same.
    """
    options: Options = plan.options
    words = choose_words(plan, records)
    label_words = words.label_words  # one object for all requests: the store then writes it once
    reviews = options.chosen_reviews(plan.seed)
    for template in options.asked_shift_templates:
        texts = [(word, k, appended(word, k, template)) for word in words.shift for k in options.ks]
        for number, review in enumerate(reviews):
            for word, k, text in texts:
                yield Item(
                    request=Fill(text=text, context=review.text, words=label_words, normalise="words"),
                    tags={"template": template, "word": word, "k": k, "review": number},
                )


def appended(word: str, k: int, template: str) -> str:
    """Return the prompt with a word before it, k times.

    >>> appended("shone", 3, "It was [MASK]")
    'shone shone shone It was [MASK]'
    """
    return " ".join([word] * k + [template])
