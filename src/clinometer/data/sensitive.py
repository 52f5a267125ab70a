"""The sentences of a corpus that mention a value of a sensitive attribute: what mitigation trains on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clinometer.data.evaluation_templates import frame_finder, template_finder
from clinometer.data.fairness import Attribute
from clinometer.data.sentences import split_sentences
from clinometer.data.substitution import mention_finder
from clinometer.data.wording import with_article
from clinometer.errors import DataError


@dataclass(frozen=True, slots=True)
class SensitiveSentence:
    """A sentence and its first mention: `text[start:end]` is a sensitive token of the value."""

    text: str
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveSentences:
    """The sentences to train on, in the order of the corpus, and what became of all others with a mention.

    `seen` = the sentences + `repeated` + `too_short` + `too_long` + the sum of `with_template`.
    """

    sentences: tuple[SensitiveSentence, ...]
    documents: int  # how many were looked through
    seen: int  # sentences with a mention
    repeated: int  # exact copies of an earlier one
    too_short: int
    too_long: int
    with_template: Mapping[str, int]  # template of the evaluation -> sentences left out because it stands in them

    def require_some(self, attribute: Attribute, *, corpus: str) -> None:
        """Raise DataError where there is no sentence to train on."""
        if self.sentences:
            return
        a_value = with_article(attribute.name)
        if not self.seen:
            first = ", ".join(value.text for value in attribute.values[:2])
            raise DataError(
                f"no sentence of '{corpus}' ({self.documents:,} documents) mentions {a_value} "
                f"({first}, … {len(attribute.values)} values); give a corpus that does"
            )
        raise DataError(
            f"none of the {self.seen:,} sentences of '{corpus}' that mention {a_value} can be trained on: "
            f"{self.too_short:,} are too short, {self.too_long:,} too long, {self.repeated:,} repeated, and "
            f"{sum(self.with_template.values()):,} hold a template of the evaluation; give a larger corpus"
        )


def sensitive_sentences(
    documents: Iterable[str],
    attribute: Attribute,
    *,
    templates: Sequence[str] | None = None,
    prompts: Sequence[str] = (),
    shortest: int = 20,
    longest: int = 1000,
) -> SensitiveSentences:
    """Collect the sentences that mention a value of the attribute, and leave the evaluation's templates out.

    Step 3 of the counterfactual paper (§4) continues training on the part of the corpus that contains any of the
    sensitive tokens, and never on a template (§5.4). A sentence in which a filled template stands is left out, as
    `template_finder` finds it: none is in the sentences, nor in what they become by substitution.

    Args:
        documents: the texts, read once.
        attribute: whose values are looked for, as `first_mention` finds them.
        templates: the templates of the evaluation; None: those of the attribute.
        prompts: further prompts of the evaluation, about other groups, as `frame_finder` finds them.
        shortest: the fewest characters of a sentence; shorter ones are headings and pieces of lists.
        longest: the most characters; longer ones are tables and lists without full stops.

    >>> from clinometer.data.fairness import load_attribute
    >>> text = "It rained. We went to Iceland that year. Italy is warm in winter."
    >>> found = sensitive_sentences([text], load_attribute("country"))
    >>> found.sentences
    (SensitiveSentence(text='We went to Iceland that year.', value='Iceland', start=11, end=18),)
    >>> found.seen, found.with_template
    (2, {'{value} is': 1})
    """
    mentions = mention_finder(attribute)
    template_in, frame_in = template_finder(attribute, templates), frame_finder(prompts)
    kept: list[SensitiveSentence] = []
    met: set[str] = set()
    read = seen = repeated = too_short = too_long = 0
    with_template: dict[str, int] = {}
    for document in documents:
        read += 1
        for line in document.splitlines():
            if next(mentions(line), None) is None:  # most lines: they need not be split
                continue
            for text in split_sentences(line):
                mention = next(mentions(text), None)
                if mention is None:
                    continue
                seen += 1
                if len(text) < shortest:
                    too_short += 1
                elif len(text) > longest:
                    too_long += 1
                elif text in met:
                    repeated += 1
                else:
                    met.add(text)
                    template = template_in(text) or frame_in(text)
                    if template is None:
                        kept.append(SensitiveSentence(text, mention.value, mention.start, mention.end))
                    else:
                        with_template[template] = with_template.get(template, 0) + 1
    return SensitiveSentences(
        sentences=tuple(kept),
        documents=read,
        seen=seen,
        repeated=repeated,
        too_short=too_short,
        too_long=too_long,
        with_template=with_template,
    )
