"""What a mitigation is trained and measured on: the part of a corpus that mentions a value, held-out documents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clinometer.data import (
    Attribute,
    SensitiveSentences,
    frame_finder,
    load_occupations,
    load_prompts,
    load_templates,
    mention_finder,
    sensitive_sentences,
    split_sentences,
    template_finder,
)
from clinometer.data.corpora import CorpusSplit, as_passages, corpus_name, split_corpus
from clinometer.data.wording import with_article
from clinometer.errors import DataError
from clinometer.train.randomness import rng_at
from clinometer.train.settings import CorpusSettings

_AT_WORK = "works as {a_value}"  # a prompt of the counterexamples audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The part of a corpus that mentions an attribute, and what is kept for measuring."""

    attribute: Attribute
    corpus: str  # its name
    split: CorpusSplit
    found: SensitiveSentences
    templates: tuple[str, ...]  # of the evaluation: they appear in no sentence …
    prompts: tuple[str, ...]  # … and neither do these, whoever they are about

    def template_finder(self) -> Callable[[str], str | None]:
        """Return a function that names a template or prompt of the evaluation that appears in a text, or None."""
        template_in, frame_in = template_finder(self.attribute, self.templates), frame_finder(self.prompts)
        return lambda text: template_in(text) or frame_in(text)

    @property
    def digest(self) -> str:
        """The SHA-256 of the sentences, where their mentions are, and what can take their place."""
        digest = hashlib.sha256(repr([value.sensitive_tokens for value in self.attribute.values]).encode())
        for each in self.found.sentences:
            digest.update(f"{each.start},{each.end},{each.value}\0{each.text}\0".encode())
        return digest.hexdigest()

    @property
    def held_out_text(self) -> str:
        """The documents that nothing is trained on, as a text file of passages."""
        return as_passages(self.split.held_out)

    def any_sentences(self, *, at_most: int, seed: int, ordinary: bool = False) -> list[str]:
        """Return random sentences of the training documents, whatever they are about: each once, not too short.

        Sentences with a template of the evaluation are left out here, too. Documents are taken in random order
        until there are enough sentences. `ordinary` ones mention no value of the attribute.
        """
        documents = self.split.training.documents
        template_in = self.template_finder()  # the paper has no template at any step (§4)
        mentions = mention_finder(self.attribute)
        kept: dict[str, None] = {}
        for index in rng_at(seed, "sentences").permutation(len(documents)):
            for line in documents[index].text.splitlines():
                fitting = (each for each in split_sentences(line) if 40 <= len(each) <= 400)
                if ordinary:
                    fitting = (each for each in fitting if next(mentions(each), None) is None)
                kept |= dict.fromkeys(each for each in fitting if template_in(each) is None)
            if len(kept) >= at_most:
                break
        return list(kept)[:at_most]


def read_material(
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    attribute: Attribute,
    *,
    held_out: int = 100,
    at_most: int = 0,
    seed: int = 0,
) -> Material:
    """Read a corpus of one or more files; DataError where no sentence of it mentions the attribute."""
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    CorpusSettings(held_out=held_out, at_most=at_most)  # which checks them
    if len(attribute.values) < 2:
        raise DataError(f"the attribute '{attribute.name}' has one value; expected two or more, to exchange them")
    split = split_corpus(paths, held_out=held_out, at_most=at_most, seed=seed)
    templates = (*attribute.templates, _AT_WORK)
    prompts = _prompts_of_masked_audits()  # a causal model loses next to nothing by leaving them out
    found = sensitive_sentences(
        (document.text for document in split.training.documents), attribute, templates=templates, prompts=prompts
    )
    found.require_some(attribute, corpus=", ".join(Path(path).name for path in paths))
    return Material(
        attribute=attribute,
        corpus="+".join(corpus_name(path) for path in paths),
        split=split,
        found=found,
        templates=templates,
        prompts=prompts,
    )


def _prompts_of_masked_audits() -> tuple[str, ...]:
    """Return the prompts that masked models are measured with, whoever they are about."""
    questions = load_templates()
    jobs = (with_article(each.name, article=each.article) for each in load_occupations())
    return (
        *questions.people,
        *questions.country,
        *(prompt.text for prompt in load_prompts().social),
        *(_AT_WORK.format(a_value=job) for job in jobs),
    )
