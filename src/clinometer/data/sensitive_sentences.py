"""The sentences of a corpus that mention a value of a sensitive attribute: what mitigation trains on.

Sentences that contain a prompt of the evaluation are left out: a model is not trained on what it is evaluated on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clinometer.data.attributes import Attribute, fill_template
from clinometer.data.substitution import mention_finder, substitutes
from clinometer.data.wording import split_sentences, with_article
from clinometer.errors import DataError

_ARTICLE = re.compile(r"(?<!\w)an? $")


@dataclass(frozen=True, slots=True)
class _Search:
    template: str
    piece: str  # part of every match: looking for it first saves most searches
    pattern: re.Pattern[str]


def template_finder(attribute: Attribute, templates: Sequence[str] | None = None) -> Callable[[str], str | None]:
    """Return a function that names the longest template that a text contains, filled with any value, or None.

    A filled template may be anywhere in the text, at word boundaries; capitals and white space do not matter. It
    is found with every value's words, even with the wrong article or another value's pronoun: "Emma said he feels"
    becomes a filled template when Emma is replaced by Jake. So a text without a template has none after a
    substitution either, nor has any beginning of it that ends with a whole word.

    Args:
        attribute: whose values they are.
        templates: the templates of the evaluation; by default those of the attribute.

    >>> from clinometer.data.attributes import load_attribute
    >>> template_in = template_finder(load_attribute("country"))
    >>> template_in("In summer, people from  Chile are away."), template_in("Chileans are away.")
    ('People from {value} are', None)
    """
    either = {group: _either(group) for group in set(substitutes(attribute).values())}
    in_place = {_plain(token): either[group] for token, group in substitutes(attribute).items()}
    tokens = re.compile(rf"(?<!\w)(?:{_either(in_place)})(?!\w)")
    listed = attribute.templates if templates is None else templates
    found: dict[str, _Search] = {}
    # the longest first: "{value} is" is also part of others
    for template in sorted(listed, key=len, reverse=True):
        for value in attribute.values:
            expression, piece = _expression(_plain(fill_template(template, value)), tokens, in_place)
            if expression not in found:  # most values give the same
                found[expression] = _Search(template, piece, re.compile(expression))
    return _first_of(tuple(found.values()))


def frame_finder(prompts: Sequence[str]) -> Callable[[str], str | None]:
    """Return a function that names the first prompt whose frame a text contains, whatever fills it, or None.

    For prompts about other groups than the attribute's values: a field or a [MASK] inside matches one to six words
    of any kind. What follows the prompt's last word does not matter, nor do capitals and white space.

    >>> found_in = frame_finder(["Why are {group} so [MASK]?"])
    >>> found_in("He asked why are old nurses  so kind."), found_in("Why are nurses kind?")
    ('Why are {group} so [MASK]?', None)
    """
    return _first_of([_frame(prompt) for prompt in dict.fromkeys(prompts)])


def _first_of(searches: Sequence[_Search]) -> Callable[[str], str | None]:
    def found_in(text: str) -> str | None:
        plain = _plain(text)
        for search in searches:
            if search.piece in plain and search.pattern.search(plain):
                return search.template
        return None

    return found_in


def _frame(prompt: str) -> _Search:
    parts = [_plain(part) for part in re.split(r"{\w+}|\[MASK\]", prompt)]
    fixed = [part for part in parts if re.search(r"\w", part)]  # not the question mark after the last blank
    expression = r" (?:\S+ ){1,6}?".join(map(re.escape, fixed))
    return _Search(prompt, max(fixed, key=len), re.compile(rf"(?<!\w){expression}(?!\w)"))


def _expression(filled: str, tokens: re.Pattern[str], in_place: Mapping[str, str]) -> tuple[str, str]:
    """Return a filled template as a pattern, open for other tokens and articles, and its longest fixed part."""
    expression, fixed, done = "", [], 0
    for token in tokens.finditer(filled):
        part = filled[done : token.start()]
        article = _ARTICLE.search(part)
        fixed.append(part[: article.start()] if article else part)
        expression += re.escape(fixed[-1]) + ("an? " if article else "")
        expression += f"(?:{in_place[token[0]]})"
        done = token.end()
    fixed.append(filled[done:])
    expression += re.escape(fixed[-1])
    before, after = (r"(?<!\w)" if filled[0].isalnum() else ""), (r"(?!\w)" if filled[-1].isalnum() else "")
    return before + expression + after, max(fixed, key=len)


def _either(words: Iterable[str]) -> str:
    plain = sorted({_plain(word) for word in words}, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word) for word in plain)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True)
class SensitiveSentence:
    """A sentence and its first mention: `text[start:end]` is a sensitive token of the value."""

    text: str
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveSentences:
    """The sentences to train on, in the order of the corpus, and how many others with a mention were left out.

    `seen` = the sentences + `repeated` + `too_short` + `too_long` + the sum of `with_template`.
    """

    sentences: tuple[SensitiveSentence, ...]
    documents: int  # how many were read
    seen: int  # sentences with a mention
    repeated: int  # exact copies of an earlier one
    too_short: int
    too_long: int
    with_template: Mapping[str, int]  # template of the evaluation -> sentences that contain it

    def require_some(self, attribute: Attribute, *, corpus: str) -> None:
        """Raise DataError if there is no sentence to train on."""
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
    """Collect the sentences that mention a value of the attribute, without the evaluation's templates.

    Step 3 of the counterfactual paper (§4) continues training on the part of the corpus that contains a sensitive
    token, and never on a template (§5.4). A sentence with a filled template is left out (`template_finder`): there
    is none in the sentences, nor in what they become by substitution.

    Args:
        documents: the texts, read once.
        attribute: whose values are looked for, as `mention_finder` finds them.
        templates: the templates of the evaluation; by default those of the attribute.
        prompts: further prompts of the evaluation, about other groups, as `frame_finder` finds them.
        shortest: the fewest characters of a sentence; shorter ones are headings and pieces of lists.
        longest: the most characters; longer ones are tables and lists without full stops.

    >>> from clinometer.data.attributes import load_attribute
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
            if next(mentions(line), None) is None:  # most lines, which need not be split
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
