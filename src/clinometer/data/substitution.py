"""Counterfactual text: every sensitive token of one value replaced by its counterpart of another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from clinometer.data.attributes import Attribute
from clinometer.data.wording import article_of, capitalised

_POSSESSIVE = "his"
_PRONOUNS = ("he", "him", _POSSESSIVE, "hers", "himself")

# "her" becomes "his" before something owned and "him" elsewhere; "his" becomes "her" or "hers" likewise. Something
# is owned unless the sentence ends or one of these words follows.
_OWNED = re.compile(
    r"\s+(?!(?:a|about|after|again|all|along|already|although|always|am|an|and|any|are|around|as|at|away|back|be"
    r"|because|been|before|but|by|can|could|did|do|does|down|during|either|ever|every|for|from|had|has|have|he|here"
    r"|how|i|if|in|into|is|it|just|like|may|might|must|near|never|nor|not|now|of|off|often|on|once|or|out|over|quite"
    r"|shall|she|should|since|so|some|than|that|the|their|them|then|there|these|they|this|those|though|through|to"
    r"|today|together|tomorrow|tonight|too|towards?|under|until|up|upon|very|was|we|were|what|when|where|whether"
    r"|which|while|who|why|will|with|within|without|would|yesterday|yet|you)\b)[\w'’\"“‘(]",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\b(an?)\s+$", re.IGNORECASE)
_SENTENCE_START = re.compile(r"(?:^|\n|[.!?][\"'”’)]*\s)\s*[\"'“‘(]*$")
_NEAR = 16  # characters in front of a token that are searched for its article or the end of a sentence


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a value of an attribute is mentioned: `text[start:end]` is one of its sensitive tokens."""

    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """A sensitive token, `text[start:end]`, and what took its place, `other[other_start:other_end]`."""

    start: int
    end: int
    other_start: int
    other_end: int


@dataclass(frozen=True, slots=True)
class Substitution:
    """A counterfactual text, and every token that was replaced, in the order of the text."""

    text: str
    replaced: tuple[Replaced, ...]


def counterfactual(text: str, attribute: Attribute, a: str, b: str, *, articles: bool = True) -> str:
    """Return cf(x, a, ã): the text with all sensitive tokens of value `a` replaced by those of value `b`.

    §3 of the counterfactual paper: all occurrences of each token of φ(a) become the corresponding token of φ(ã),
    and everything else stays, including tokens of `b` that were there before. A value's tokens are the value
    itself, its plural, its pronouns and further words, as its file says (`read_attribute`); the packaged
    attributes have the plurals of occupations and no pronouns.

    - Whole words only: "Iran" is not in "Iranian", nor "Connor" in "O'Connor". A hyphen joins two words. A
      possessive keeps its ending: "the nurse's" becomes "the baker's".
    - Case is kept: "Nurse" and "NURSE" become "Baker" and "BAKER". A token with a capital letter in the file is
      found as written there and in capitals, never in lower case: "chile" and "raven" are other words.
    - "her" becomes "his" before something owned and "him" elsewhere, "his" becomes "her" or "hers" likewise; the
      words that follow decide, which is sometimes wrong.

    Args:
        text: running text of any length.
        attribute: whose values they are.
        a: the value to replace.
        b: the value to put there.
        articles: whether "a" or "an" right before a replaced token is adapted to the new word; the paper's
            definition leaves all other words as they are, as does `articles=False`.

    >>> from clinometer.data.attributes import load_attribute
    >>> occupation = load_attribute("occupation")
    >>> counterfactual("A nurse met two nurses, and a Nurse's friend.", occupation, "nurse", "accountant")
    "An accountant met two accountants, and an Accountant's friend."
    """
    return substitution(text, attribute, {a: b}, articles=articles).text


def substitution(
    text: str, attribute: Attribute, others: Mapping[str, str], *, articles: bool = True
) -> Substitution:
    """Replace several values at once, each by its own other value, and tell where; as `counterfactual` does one.

    A word that was put there is not replaced again: "nurse" and "baker" can change places. A token that several of
    the values share (a pronoun) follows the first of them.

    >>> from clinometer.data.attributes import load_attribute
    >>> occupation = load_attribute("occupation")
    >>> found = substitution("A nurse met a baker.", occupation, {"nurse": "baker", "baker": "editor"})
    >>> found.text, [found.text[each.other_start : each.other_end] for each in found.replaced]
    ('A baker met an editor.', ['baker', 'editor'])
    """
    owner: dict[str, str] = {}
    for value in others:
        for token in attribute.value(value).sensitive_tokens.values():
            owner.setdefault(token, value)
    tokens = tuple(owner)
    spellings = _spellings(tokens)
    pieces: list[str] = []
    replaced: list[Replaced] = []
    done = length = 0
    for match in _pattern(tokens).finditer(text):
        found = " ".join(match[0].split())
        token = spellings[found]
        old, new = attribute.value(owner[token]).sensitive_tokens, attribute.value(others[owner[token]])
        words = new.sensitive_tokens
        role = _role(token, old, words, owned=_OWNED.match(text, match.end()) is not None)
        start = match.start()
        first = found == token and _SENTENCE_START.search(text, max(0, start - _NEAR), start) is not None
        replacement = _in_case(found, token, words[role], first=first)
        pieces.append(text[done:start])
        if articles and role not in _PRONOUNS:
            article = _ARTICLE.search(text, max(done, start - _NEAR), start)
            if article:
                chosen = (new.article if role == "value" else "") or article_of(words[role])
                in_capitals = found == token.upper() != token  # "A CEO" is not
                kept = text[done : article.start()] + _article_in_case(article[1], chosen, in_capitals=in_capitals)
                pieces[-1] = kept + text[article.end(1) : start]
        begins = length + len(pieces[-1])
        length = begins + len(replacement)
        replaced.append(Replaced(start, match.end(), begins, length))
        pieces.append(replacement)
        done = match.end()
    return Substitution("".join([*pieces, text[done:]]), tuple(replaced))


def find_values(text: str, attribute: Attribute) -> tuple[str, ...]:
    """Return the values of an attribute that occur in a text, in the attribute's order.

    A value occurs where one of its sensitive tokens does, found as `counterfactual` finds it. Tokens shared by
    several values (the pronouns of all male names) do not say which of them occurs and are ignored.

    >>> from clinometer.data.attributes import load_attribute
    >>> find_values("Italy played Iran; Iranian and Danish fans met.", load_attribute("country"))
    ('Iran', 'Italy')
    """
    owner, pattern = _unshared(attribute)
    spellings = _spellings(tuple(owner))
    found = {" ".join(each.split()) for each in set(pattern.findall(text))}
    occurring = {owner[spellings[each]] for each in found}
    return tuple(value.text for value in attribute.values if value.text in occurring)


def mention_finder(attribute: Attribute) -> Callable[[str], Iterator[Mention]]:
    """Return a function that yields every mention in a text, in order, found as `find_values` finds them.

    >>> from clinometer.data.attributes import load_attribute
    >>> mentions = mention_finder(load_attribute("country"))
    >>> next(mentions("Iranian fans met in Italy and Chile."))
    Mention(value='Italy', start=20, end=25)
    """
    owner, pattern = _unshared(attribute)
    spellings = _spellings(tuple(owner))

    def mentions(text: str) -> Iterator[Mention]:
        for match in pattern.finditer(text):
            yield Mention(owner[spellings[" ".join(match[0].split())]], match.start(), match.end())

    return mentions


def substitutes(attribute: Attribute) -> dict[str, frozenset[str]]:
    """Return each sensitive token of an attribute with all words that substitutions can put in its place.

    This includes several substitutions in a row: "him" becomes "her", and "her" may become "his".

    >>> from clinometer.data.attributes import load_attribute
    >>> sorted(substitutes(load_attribute("country"))["Chile"])[:3]
    ['Chile', 'Denmark', 'Finland']
    """
    groups: list[frozenset[str]] = []
    for role in attribute.values[0].sensitive_tokens:
        group = frozenset(value.sensitive_tokens[role] for value in attribute.values)
        group = group.union(
            *(each for each in groups if each & group)
        )  # "her" is both him and his, which joins these roles
        groups = [each for each in groups if not each & group] + [group]
    return {token: group for group in groups for token in group}


@lru_cache(maxsize=4096)
def _spellings(tokens: tuple[str, ...]) -> dict[str, str]:
    """How each token can be written -> the token; of two with one spelling, the one that the file writes so."""
    others = {token.upper(): token for token in tokens}
    for token in tokens:
        if token[:1].islower():
            others[capitalised(token)] = token
            others[_title(token)] = token
    return others | {token: token for token in tokens}


@lru_cache(maxsize=4096)
def _pattern(tokens: tuple[str, ...]) -> re.Pattern[str]:
    """One expression that finds every spelling of the tokens, as whole words, the longest first."""
    spellings = sorted(_spellings(tokens), key=lambda each: (-len(each), each))
    by_first: dict[str, list[str]] = {}
    for each in spellings:
        by_first.setdefault(each[0], []).append(re.escape(each[1:]).replace(r"\ ", r"\s+"))
    # a look at the first letter saves most of the work
    either = "|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in by_first.items())
    first = "".join(sorted(re.escape(letter) for letter in by_first))
    # not after a letter, nor after a letter and an apostrophe: O'Connor
    return re.compile(rf"(?=[{first}])(?<!\w)(?<!\w['’])(?:{either})(?!\w)")


def _unshared(attribute: Attribute) -> tuple[dict[str, str], re.Pattern[str]]:
    """The tokens that belong to one value alone -> that value, and the expression that finds them."""
    owner = _owners(tuple((value.text, tuple(value.sensitive_tokens.values())) for value in attribute.values))
    return owner, _pattern(tuple(owner))


@lru_cache(maxsize=64)
def _owners(values: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, str]:
    """The tokens that belong to one value alone -> that value."""
    owners: dict[str, set[str]] = {}
    for value, tokens in values:
        for token in tokens:
            owners.setdefault(token, set()).add(value)
    return {token: min(of) for token, of in owners.items() if len(of) == 1}


def _role(token: str, old: Mapping[str, str], new: Mapping[str, str], *, owned: bool) -> str:
    """The role of a token of the old value; what follows decides if its roles have different counterparts."""
    roles = [role for role, word in old.items() if word == token]
    if len({new[role] for role in roles}) > 1 and _POSSESSIVE in roles and not owned:
        roles.remove(_POSSESSIVE)
        return roles[0]
    return _POSSESSIVE if _POSSESSIVE in roles else roles[0]


def _in_case(found: str, token: str, new: str, *, first: bool) -> str:
    if found == token:  # as in the files, except for a word that lost its capital at the start of a sentence
        return capitalised(new) if first and not token[:1].islower() else new
    if found == token.upper():
        return new.upper()
    return _title(new) if found == _title(token) else capitalised(new)


def _article_in_case(found: str, article: str, *, in_capitals: bool) -> str:
    if found[0].islower():
        return article
    return article.upper() if in_capitals else capitalised(article)


def _title(words: str) -> str:
    return " ".join(capitalised(word) for word in words.split())
