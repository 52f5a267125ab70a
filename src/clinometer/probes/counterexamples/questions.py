"""What the counterexamples audit asks: every occupation, alone and after each kind of knowledge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from clinometer.data import Gender, Occupation, Sentences
from clinometer.data.wording import fill_fields, with_article
from clinometer.errors import ModelError, SpecError
from clinometer.probes.counterexamples.options import Options
from clinometer.probes.protocol import Plan
from clinometer.types import Fill, Item, ModelInfo, NextWord, Request

LISTED_BACKGROUNDS = (
    2  # of each background kind for which the listed words are asked too: they cost a question each
)

_PERSON: dict[Gender, str] = {"female": "woman", "male": "man"}
_OTHER: dict[Gender, Gender] = {"female": "male", "male": "female"}


def prompts(plan: Plan) -> Iterator[Item]:
    """Yield every prompt of the audit, occupation by occupation, in the paper's order of kinds."""
    options: Options = plan.options
    return _prompts(plan, backgrounds=options.backgrounds, top_k=max(options.ks))


def word_questions(plan: Plan) -> Iterator[Item]:
    """Yield the questions how probable each listed word is, however far down the model's list it comes.

    They are asked at every prompt, but for few backgrounds, and in lower case and with a capital, because offered
    words are counted in any case: a model may know "Mary" and not "mary".
    """
    options: Options = plan.options
    spellings = dict.fromkeys(form for word in options.chosen_verbalizer() for form in (word, word.capitalize()))
    return _prompts(plan, backgrounds=min(options.backgrounds, LISTED_BACKGROUNDS), words=tuple(spellings))


def _prompts(plan: Plan, *, backgrounds: int, words: tuple[str, ...] = (), top_k: int = 0) -> Iterator[Item]:
    options: Options = plan.options
    sentences = options.chosen_sentences()
    occupations = options.chosen_occupations()
    pools = pools_of(occupations)
    for target in occupations:
        drawn = sample_backgrounds(target, pools, n=backgrounds, seed=plan.seed)
        for kind in sentences.kinds:
            for background in drawn if kind.has_background else (None,):
                fields = _sentence_fields(target, background)
                knowledge = fill_fields(kind.knowledge, fields)
                yield Item(
                    request=_request(plan.model, sentences, fields, knowledge=knowledge, words=words, top_k=top_k),
                    tags={
                        "kind": kind.name,
                        "occupation": target.name,
                        "dominance": target.dominance,
                        "background": background.name if background else "",
                        "percent": target.percent_female,
                    },
                )


def number_of_prompts(options: Options, *, listed: bool = False) -> int:
    """Return how many prompts, or questions about the listed words, there are, without making them."""
    kinds = options.chosen_sentences().kinds
    backgrounds = min(options.backgrounds, LISTED_BACKGROUNDS) if listed else options.backgrounds
    for_each = sum(backgrounds if kind.has_background else 1 for kind in kinds)
    return for_each * len(options.chosen_occupations())


def pools_of(occupations: Sequence[Occupation]) -> Mapping[Gender, Sequence[Occupation]]:
    """Return the occupations that each gender dominates, in the order of their names."""
    in_order = sorted(occupations, key=lambda each: each.name)
    return {gender: [each for each in in_order if each.dominance == gender] for gender in _OTHER}


def sample_backgrounds(
    target: Occupation, pools: Mapping[Gender, Sequence[Occupation]], *, n: int, seed: int
) -> tuple[Occupation, ...]:
    """Return n occupations that the other gender dominates, drawn without replacement.

    The draw depends on the seed, the target's name and the *set* of candidates: not on the order of the list, nor
    on what was drawn for other targets. A smaller n gives the beginning of a larger one.
    """
    other = _OTHER[target.dominance]
    pool = pools[other]
    if n > len(pool):
        raise SpecError(
            f"counterexamples: backgrounds = {n}, but only {len(pool)} of the occupations are {other}-dominated; "
            f"set backgrounds to {len(pool)} or less, or add {other}-dominated occupations"
        )
    name_number = int.from_bytes(hashlib.sha256(target.name.encode()).digest()[:8], "big")
    order = np.random.default_rng([seed, name_number]).permutation(len(pool))
    return tuple(pool[position] for position in order[:n])


def _sentence_fields(target: Occupation, background: Occupation | None) -> dict[str, str]:
    """Return what the {fields} of the sentences mean; knowledge.toml explains them."""
    pro, counter = target.dominance, _OTHER[target.dominance]
    fields = {
        "target": target.name,
        "a_target": with_article(target.name, article=target.article),
        "pro_person": _PERSON[pro],
        "counter_person": _PERSON[counter],
        "pro_gender": pro,
        "counter_gender": counter,
    }
    if background is not None:
        fields["background"] = background.name
        fields["a_background"] = with_article(background.name, article=background.article)
    return fields


def _request(
    model: ModelInfo,
    sentences: Sentences,
    fields: Mapping[str, str],
    *,
    knowledge: str = "",
    words: tuple[str, ...] = (),
    top_k: int = 0,
) -> Request:
    if "fill" in model.capabilities:
        blank = fill_fields(sentences.blank, fields)
        return Fill(text=blank, context=knowledge, join="separator", words=words, top_k=top_k)
    if "next_word" in model.capabilities:
        prefix = fill_fields(sentences.prefix, fields)
        return NextWord(text=prefix, context=knowledge, words=words, top_k=top_k)
    raise ModelError(
        f"'{model.name}' offers {', '.join(model.capabilities) or 'nothing'}; counterexamples needs a model that "
        "fills a blank or continues a text"
    )
