"""Whether the prefixes of an evaluation stand in a text: what a model is evaluated on, it is not trained on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clinometer.data.fairness import Attribute, fill_template
from clinometer.data.substitution import substitutes

_ARTICLE = re.compile(r"(?<!\w)an? $")


@dataclass(frozen=True, slots=True)
class _Search:
    template: str
    piece: str  # what every match holds: one quick look for it spares most searches
    pattern: re.Pattern[str]


def template_finder(attribute: Attribute, templates: Sequence[str] | None = None) -> Callable[[str], str | None]:
    """Return a function that names the longest template that stands in a text, filled with any value, or None.

    A filled template is looked for anywhere in the text, at the bounds of words; capitals and the kind and amount
    of white space do not matter. It is found with every value's words, and with the wrong article or another's
    pronoun, too: "Emma said he feels" becomes a filled template where Emma is replaced by Jake. So a text without
    any has none after a substitution either, and no beginning of such a text, up to the end of a word, has one.

    Args:
        attribute: whose values they are.
        templates: the templates of the evaluation; None: those of the attribute.

    >>> from clinometer.data.fairness import load_attribute
    >>> template_in = template_finder(load_attribute("country"))
    >>> template_in("In summer, people from  Chile are away."), template_in("Chileans are away.")
    ('People from {value} are', None)
    """
    either = {group: _either(group) for group in set(substitutes(attribute).values())}
    in_place = {_plain(token): either[group] for token, group in substitutes(attribute).items()}
    tokens = re.compile(rf"(?<!\w)(?:{_either(in_place)})(?!\w)")
    listed = attribute.templates if templates is None else templates
    found: dict[str, _Search] = {}
    # the longest first: "{value} is" stands in others, too
    for template in sorted(listed, key=len, reverse=True):
        for value in attribute.values:
            expression, piece = _expression(_plain(fill_template(template, value)), tokens, in_place)
            if expression not in found:  # most values give the same
                found[expression] = _Search(template, piece, re.compile(expression))
    return _first_of(tuple(found.values()))


def frame_finder(prompts: Sequence[str]) -> Callable[[str], str | None]:
    """Return a function that names the first prompt whose frame stands in a text, whatever fills it, or None.

    For prompts about other groups than the attribute's values: a field or a [MASK] within is one to six words of
    any kind, and what follows the prompt's last word does not matter. Neither do capitals and white space.

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
    fixed = [part for part in parts if re.search(r"\w", part)]  # not the question mark behind the last blank
    expression = r" (?:\S+ ){1,6}?".join(map(re.escape, fixed))
    return _Search(prompt, max(fixed, key=len), re.compile(rf"(?<!\w){expression}(?!\w)"))


def _expression(filled: str, tokens: re.Pattern[str], in_place: Mapping[str, str]) -> tuple[str, str]:
    """Return a filled template, its tokens and the articles before them left open, and its longest fixed part."""
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
