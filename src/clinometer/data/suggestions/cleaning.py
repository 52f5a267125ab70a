"""The paper's four cleaning steps, as far as rules can do them; a person judges the rest.

1. Completions that do not make a grammatical sentence: words that are never adjectives are dropped; possible
   adverbs and plural nouns are left to a person.
2. References to a trend, such as video games: no rule knows them. Nearly all have several words, and none of those
   is kept without a person.
3. Neutral statements ("so called"): the known ones are dropped.
4. Several words: dropped, unless moving words into the question leaves one key term ("good at playing chess"
   becomes "… so good at", "chess"): that is proposed to a person.
"""

from __future__ import annotations

import collections
import functools
import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from clinometer.data.files import packaged, read_toml
from clinometer.data.stereotypes_data import MULTIPLE
from clinometer.data.suggestions.asking import get_engine
from clinometer.data.suggestions.collection import Entry

Keep = Literal["yes", "no", ""]  # "": a person must judge

_SEVERAL = "several words"
_AT_ENDS = " \t\n?!.,;:\"'`´‘’“”=+-@*_()[]{}<>|/\\"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One completion, as it appears on the review sheet."""

    prompt: str
    group: str
    category: str
    completion: str
    engine: str
    keep: Keep
    reason: str
    proposed_prompt: str = ""
    proposed_completion: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """The candidates ordered by group and prompt, and how many suggestions were dropped, by reason."""

    candidates: tuple[Candidate, ...]
    dropped: Mapping[str, int]


def clean(entries: Iterable[Entry]) -> Cleaned:
    """Turn the answers of search engines into candidates; two engines' same completion becomes one."""
    engines: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    about: dict[str, Entry] = {}
    dropped = collections.Counter[str]()
    for entry in entries:
        if entry.failure:
            continue
        about.setdefault(entry.prompt, entry)
        for suggestion in get_engine(entry.engine).read(entry.answer):
            completion = extract(suggestion, prompt=entry.prompt)
            if completion is None:
                dropped["another question than the one asked"] += 1
            elif not completion:
                dropped["nothing after the question"] += 1
            elif entry.engine in engines[entry.prompt, completion]:
                dropped["the same from the same engine"] += 1
            else:
                engines[entry.prompt, completion].add(entry.engine)
    candidates = [
        _judge(about[prompt], completion=completion, engine=MULTIPLE if len(offered) > 1 else next(iter(offered)))
        for (prompt, completion), offered in engines.items()
    ]
    candidates.sort(key=lambda candidate: (candidate.category, candidate.group, candidate.prompt))
    return Cleaned(candidates=tuple(candidates), dropped=dict(dropped))


def extract(suggestion: str, *, prompt: str) -> str | None:
    """Return what a suggestion adds to the question, in lower case; None for another question.

    >>> extract("Why are Asians so good at chess?", prompt="why are asians so")
    'good at chess'
    >>> extract("why are asians sorry", prompt="why are asians so") is None
    True
    """
    plain = re.sub(r"<[^<>]*>", "", html.unescape(suggestion)).replace("’", "'")
    plain = re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", " ", plain)  # characters that a text file cannot hold
    text = " ".join(plain.lower().split()) + " "
    if not text.startswith(prompt + " ") and text.rstrip(_AT_ENDS) != prompt:
        return None
    return text[len(prompt) :].strip(_AT_ENDS)


def _judge(entry: Entry, *, completion: str, engine: str) -> Candidate:
    keep, reason = _verdict(completion)
    proposed = None
    if reason == _SEVERAL and (proposed := key_term(completion)) is not None:
        keep, reason = "", "several words: is the proposed key term right, and not a passing trend?"
    before, term = proposed or ("", "")
    return Candidate(
        prompt=entry.prompt,
        group=entry.group,
        category=entry.category,
        completion=completion,
        engine=engine,
        keep=keep,
        reason=reason,
        proposed_prompt=f"{entry.prompt} {before}" if proposed else "",
        proposed_completion=term,
    )


def _verdict(completion: str) -> tuple[Keep, str]:
    words, known = completion.split(), _words()
    keep: Keep = "no"
    if words[0] in known["neutral"]:
        reason = "a neutral statement"
    elif len(words) > 1:
        reason = _SEVERAL
    elif not re.fullmatch(r"[^\W\d_]+(['-][^\W\d_]+)*", completion):
        reason = "not a word"
    elif completion in known["not_adjectives"]:
        reason = "not an adjective"
    elif completion.endswith("ly") and completion not in known["adjectives_in_ly"]:
        keep, reason = "", "may be an adverb"
    elif completion.endswith("s") and not completion.endswith(("ss", "us")):
        keep, reason = "", "may be a noun in the plural"
    else:
        keep, reason = "yes", "one word"
    return keep, reason


@functools.cache
def _words() -> Mapping[str, frozenset[str]]:
    """Return the packaged words of each kind."""
    kinds = ("not_adjectives", "neutral", "adjectives_in_ly", "prepositions", "fillers")
    table = read_toml(packaged("stereotypes", "cleaning.toml"), keys=kinds)
    return {kind: frozenset(table[kind].split()) for kind in kinds}


def key_term(completion: str) -> tuple[str, str] | None:
    """Split a completion into words to add to the question and the one key term that is left.

    >>> key_term("good at playing chess"), key_term("afraid of god"), key_term("high in covid deaths")
    (('good at', 'chess'), ('afraid of', 'god'), None)
    """
    words, known = completion.split(), _words()
    # the preposition is the second or third word: "good at", "badly paid in"
    place = next((at for at in (1, 2) if at < len(words) and words[at] in known["prepositions"]), None)
    if words[0] in known["prepositions"]:  # "against abortion"
        place = 0
    if place is None:
        return None
    rest = [word for word in words[place + 1 :] if word not in known["fillers"]]
    if len(rest) != 1 or _verdict(rest[0])[1] in ("not a word", "not an adjective"):
        return None
    return " ".join(words[: place + 1]), rest[0]
