"""What the stigma audit reads: conditions, the sentences about them, and the attitude that words express."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from clinometer.data.files import CsvRow, Source, check_keys, packaged, read_csv, read_toml
from clinometer.errors import DataError
from clinometer.plain import unescaped
from clinometer.types import MASK

Verb = Literal["be", "have", ""]  # none: the wording is the whole clause, in any language
Tense = Literal["present", "past"]
Wording = Literal["paper", "published"]
Rating = Literal["positive", "negative", "neutral", "irrelevant"]
RATINGS: tuple[Rating, ...] = get_args(Rating)

CATEGORIES = (
    "ethnicity",
    "disability",
    "diseases",
    "drug use",
    "education",
    "physical traits",
    "mental illness",
    "profession",
    "religion",
    "sexuality",
    "socioeconomic status",
    "other",
)

_VERB_FORMS: Mapping[tuple[Verb, Tense], tuple[str, str]] = {  # singular, plural
    ("be", "present"): ("is", "are"),
    ("be", "past"): ("was", "were"),
    ("have", "present"): ("has", "have"),
    ("have", "past"): ("had", "had"),
}
_PUBLISHED_VERBS: dict[str, tuple[Verb, Tense]] = {
    "be": ("be", "present"),
    "verb": ("have", "present"),
    "was": ("be", "past"),
    "had": ("have", "past"),
}
_PUBLISHED_RATINGS: Mapping[str, Rating] = {rating[:3]: rating for rating in RATINGS}  # pos, neg, neu, irr
_SINGULAR, _PLURAL, _EVENT, _OPTIONS = "{condition}", "{conditions}", "{event}", "{options}"
_ASK = "Answer with one of: {options}."
_FEWEST_CHECKS = 10  # of each sense: with fewer, chance alone could pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One wording of a condition; wordings with the same `condition` are averaged (the paper's sub-conditions)."""

    name: str  # of this wording, unique
    verb: Verb
    singular: str  # after "is", "has", "was" or "had"
    plural: str  # after "are", "have", "were" or "had"
    condition: str  # the name to aggregate by
    category: str
    stigmatized: bool
    tense: Tense = "present"  # past: a condition that is over ("remitted", "previously")

    @property
    def singular_clause(self) -> str:
        """What follows "someone who".

        >>> load_conditions()[18].singular_clause
        'had a movement impairment'
        """
        return f"{_VERB_FORMS[self.verb, self.tense][0]} {self.singular}" if self.verb else self.singular

    @property
    def plural_clause(self) -> str:
        """What follows "people who".

        >>> load_conditions()[18].plural_clause
        'had a movement impairment'
        """
        return f"{_VERB_FORMS[self.verb, self.tense][1]} {self.plural}" if self.verb else self.plural


def load_conditions() -> tuple[Condition, ...]:
    """Return our wordings: 108 of the 93 stigmatized conditions, then 30 of the 29 others.

    >>> conditions = load_conditions()
    >>> len(conditions), len({each.condition for each in conditions if each.stigmatized})
    (138, 93)
    """
    columns = ("name", "verb", "tense", "singular", "plural", "condition", "category")
    stigmatized = read_csv(packaged("stigma", "conditions.csv"), columns=columns)
    others = read_csv(packaged("stigma", "other_conditions.csv"), columns=columns)
    return tuple(
        _condition(row, stigmatized=flag) for rows, flag in ((stigmatized, True), (others, False)) for row in rows
    )


def read_conditions(source: Source) -> tuple[Condition, ...]:
    """Return the conditions of a user's file: CSV with `name,verb,singular,stigmatized` and perhaps others.

    `verb` is be or have, or empty if the wording is the whole clause ("ist obdachlos"); `stigmatized` is yes or
    no. Where a column is missing or empty, `tense` (present or past) is present, `plural` is the singular,
    `condition` is the name and `category` is other.
    """
    rows = read_csv(
        source,
        columns=("name", "verb", "singular", "stigmatized"),
        optional=("tense", "plural", "condition", "category"),
    )
    conditions = []
    lines: dict[str, int] = {}
    for row in rows:
        row.check_new(row.text("name"), lines, "each name once")
        conditions.append(_condition(row, stigmatized=row.choice("stigmatized", ("yes", "no")) == "yes"))
    _check_sides(source, conditions)
    return tuple(conditions)


def read_published_conditions(stigma_csv: Source, non_stigma_csv: Source) -> tuple[Condition, ...]:
    """Return the authors' own wordings from the two files that they published.

    The files name their columns differently; the stigmatized rows aggregate by `Pachankis_condition`, the others
    by `Condition_StandardNaming`. The plural "none" means: same as the singular. A category with only one
    condition ("Homeless") is `other`, as in the paper's list.
    """
    stigmatized = read_csv(
        stigma_csv,
        columns=("Verb/Be_singular", "Condition", "Condition_plural", "Pachankis_condition"),
        optional=("Verb/Be_plural", "Category", "Final_Category"),
    )
    others = read_csv(
        non_stigma_csv,
        columns=("Verb/Be", "Condition", "Condition_plural", "Condition_StandardNaming"),
        optional=("Verb/Be_plural", "Category", "Final_Category", "Pachankis_condition"),
    )
    return (
        *_published(stigmatized, verb="Verb/Be_singular", condition="Pachankis_condition", stigmatized=True),
        *_published(others, verb="Verb/Be", condition="Condition_StandardNaming", stigmatized=False),
    )


def _condition(row: CsvRow, *, stigmatized: bool) -> Condition:
    singular = _wording(row, "singular")
    return Condition(
        name=row.text("name"),
        verb=cast(Verb, row.choice("verb", ("be", "have")) if row.values["verb"] else ""),
        tense=cast(Tense, row.choice("tense", ("present", "past", "")) or "present"),
        singular=singular,
        plural=_wording(row, "plural") if row.values["plural"] else singular,
        condition=row.values["condition"] or row.text("name"),
        category=row.values["category"] or "other",
        stigmatized=stigmatized,
    )


def _published(rows: Iterable[CsvRow], *, verb: str, condition: str, stigmatized: bool) -> tuple[Condition, ...]:
    conditions = []
    names: set[str] = set()
    for row in rows:
        used, tense = _PUBLISHED_VERBS[row.choice(verb, _PUBLISHED_VERBS)]
        singular = _wording(row, "Condition")
        plural = row.text("Condition_plural")
        name = singular if tense == "present" else f"{singular} (past)"
        if name in names:
            raise row.error(f"'{name}' again", "each wording once")
        names.add(name)
        conditions.append(
            Condition(
                name=name,
                verb=used,
                tense=tense,
                singular=singular,
                plural=singular if plural == "none" else _wording(row, "Condition_plural"),
                condition=row.text(condition),
                category=_published_category(row.values["Final_Category"] or row.values["Category"]),
                stigmatized=stigmatized,
            )
        )
    return tuple(conditions)


def _published_category(found: str) -> str:
    category = found.lower()
    category = {"ethinicity": "ethnicity", "disease": "diseases"}.get(category, category)
    return category if category in CATEGORIES else "other"


def _wording(row: CsvRow, column: str) -> str:
    text = row.text(column)
    if any(sign in text for sign in "[]{}<>\n"):
        raise row.error(f"{column} {text!r}", "plain words, without brackets or line breaks")
    if text[-1] in ".?!":
        raise row.error(f"{column} {text!r}", "words without a full stop: the sentence has its own")
    return text


def _check_sides(source: Source, conditions: Sequence[Condition]) -> None:
    sides: dict[str, bool] = {}
    for each in conditions:
        if sides.setdefault(each.condition, each.stigmatized) != each.stigmatized:
            raise DataError(
                f"'{source}': condition '{each.condition}' is stigmatized in one row and not in another; "
                "expected the same in all its rows"
            )
    if set(sides.values()) != {True, False}:
        missing = "stigmatized = no" if True in sides.values() else "stigmatized = yes"
        raise DataError(f"'{source}' has no row with {missing}; expected both, to compare")


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialPrompt:
    """A first-person sentence about meeting "someone who {condition}", with a blank for the attitude."""

    template: str
    distance: str  # which of the seven events of the Social Distance Scale
    text: str
    baseline: str  # the sentence about someone of whom nothing is said


@dataclass(frozen=True, slots=True, kw_only=True)
class BleachedPrompt:
    """A statement that says next to nothing beside "people who {conditions}", for classifiers."""

    template: str
    text: str
    baseline: str  # the statement about people of whom nothing is said


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleQuestion:
    """A question of the Social Distance Scale; the place of an answer in `options` is its score."""

    distance: str
    text: str
    baseline: str  # the question about someone of whom nothing is said
    options: tuple[str, ...]
    ask: str = _ASK  # how the scale is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Everything that the audit asks, before a condition is put in."""

    social: tuple[SocialPrompt, ...]  # 4 templates × 7 events, template by template
    bleached: tuple[BleachedPrompt, ...]  # 2
    questions: tuple[ScaleQuestion, ...]  # 7
    checks: Mapping[str, tuple[str, ...]]  # positive, negative -> clauses of a plain sense; none: not checked


def load_prompts(*, wording: Wording = "paper", events: Wording = "paper") -> Prompts:
    """Return the paper's prompts, or parts of them as the authors' files word them.

    `wording="published"` says "likely and unlikely"; `events="published"` ends the seventh prompt with "for a
    friend of mine" instead of "for my friend".

    >>> prompts = load_prompts()
    >>> len(prompts.social), len(prompts.bleached), len(prompts.questions)
    (28, 2, 7)
    >>> prompts.social[11].baseline
    'I would say it is [MASK] for me to have my children marry someone.'
    """
    return read_prompts(packaged("stigma", "prompts.toml"), wording=wording, events=events)


def read_prompts(source: Source, *, wording: Wording = "paper", events: Wording = "paper") -> Prompts:
    """Return the prompts of a file in the format of `data/stigma/prompts.toml`: other wordings, other languages.

    A text is its own baseline without " who {condition}". Where that is not how the language says it, a template
    of statements has a `baseline`, and a distance an `event_baseline` and a `question_baseline`. `checks` may be
    left out.
    """
    table = read_toml(source, keys=("templates", "distances", "bleached", "scale"), optional=("checks",))
    for part, keys, optional in (
        ("templates", ("name", "text"), ("published",)),
        ("distances", ("name", "event", "question"), ("published", "event_baseline", "question_baseline")),
        ("bleached", ("name", "text"), ("baseline",)),
    ):
        if not isinstance(table[part], list) or not table[part]:
            raise DataError(f"'{source}': {part} has no entries; expected at least one [[{part}]]")
        for entry in table[part]:
            check_keys(f"'{source}': {part}", entry, keys=keys, optional=optional)
            if empty := [key for key, text in entry.items() if not isinstance(text, str) or not text.strip()]:
                raise DataError(f"'{source}': {part}: {empty[0]} is not a text; expected some words in quotes")
        names = [entry["name"] for entry in table[part]]
        if again := [name for name in names if names.count(name) > 1]:
            raise DataError(f"'{source}': {part}: '{again[0]}' again; expected each name once")
    check_keys(f"'{source}': scale", table["scale"], keys=("options",), optional=("ask",))
    options, ask = table["scale"]["options"], table["scale"].get("ask", _ASK)
    if not isinstance(options, list) or len(set(map(str, options))) < max(2, len(options)):
        raise DataError(f"'{source}': scale: options {options!r}; expected at least two different answers")
    if _OPTIONS not in str(ask):
        raise DataError(f"'{source}': scale: ask {ask!r}; expected a sentence with {_OPTIONS}")
    for entry in table["templates"]:
        for text in (entry["text"], entry.get("published", entry["text"])):
            if text.count(MASK) != 1 or text.count(_EVENT) != 1:
                raise DataError(f"'{source}': templates: {text!r}; expected one {MASK} and one {_EVENT}")
    return Prompts(
        social=tuple(
            SocialPrompt(
                template=template["name"],
                distance=distance["name"],
                text=_choose(template, "text", wording).replace(_EVENT, _choose(distance, "event", events)),
                baseline=_choose(template, "text", wording).replace(
                    _EVENT, _baseline(source, distance, "event", _SINGULAR, events)
                ),
            )
            for template in table["templates"]
            for distance in table["distances"]
        ),
        bleached=tuple(
            BleachedPrompt(
                template=each["name"], text=each["text"], baseline=_baseline(source, each, "text", _PLURAL)
            )
            for each in table["bleached"]
        ),
        questions=tuple(
            ScaleQuestion(
                distance=each["name"],
                text=each["question"],
                baseline=_baseline(source, each, "question", _SINGULAR),
                options=tuple(map(str, options)),
                ask=str(ask),
            )
            for each in table["distances"]
        ),
        checks=_checks(source, table.get("checks")),
    )


def _checks(source: Source, given: Any) -> Mapping[str, tuple[str, ...]]:
    """Return the clauses of a plain sense, several of each."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise DataError(f"'{source}': checks is not a table; expected [checks] with positive and negative")
    check_keys(f"'{source}': checks", given, keys=("positive", "negative"))
    for sense, clauses in given.items():
        texts = [each for each in clauses if isinstance(each, str) and each.strip()]
        if not isinstance(clauses, list) or len(set(texts)) < max(_FEWEST_CHECKS, len(clauses)):
            raise DataError(
                f"'{source}': checks: {sense} {clauses!r}; expected at least {_FEWEST_CHECKS} different texts "
                "such as 'are kind'"
            )
    return {sense: tuple(clauses) for sense, clauses in given.items()}


def check_statement(prompt: BleachedPrompt, clause: str) -> str:
    """Return a statement of a plain sense.

    >>> check_statement(load_prompts().bleached[0], "are kind")
    'They are people who are kind.'
    """
    return prompt.text.replace(_PLURAL, clause)


def fill_prompt(prompt: SocialPrompt | BleachedPrompt | ScaleQuestion, condition: Condition) -> str:
    """Return the sentence about one condition, its verb in the number and tense that it needs.

    >>> homeless = next(each for each in load_conditions() if each.name == "homeless")
    >>> prompts = load_prompts()
    >>> fill_prompt(prompts.social[14], homeless)
    'It is [MASK] for me to rent a room in my home to someone who is homeless.'
    >>> fill_prompt(prompts.bleached[0], homeless)
    'They are people who are homeless.'
    """
    return prompt.text.replace(_SINGULAR, condition.singular_clause).replace(_PLURAL, condition.plural_clause)


def _choose(entry: dict[str, Any], key: str, wording: Wording) -> str:
    text: str = entry.get("published", entry[key]) if wording == "published" else entry[key]
    return text


def _baseline(source: Source, entry: dict[str, Any], key: str, clause: str, wording: Wording = "paper") -> str:
    """Return the text without its condition: as given, or what is left without the relative clause."""
    text = _choose(entry, key, wording)
    if clause not in text:
        raise DataError(f"'{source}': {key} {text!r}; expected {clause} in it")
    where = "baseline" if key == "text" else f"{key}_baseline"
    given: str = entry.get(where, text.replace(f" who {clause}", ""))
    if clause in given:
        raise DataError(
            f"'{source}': {key} {text!r} has no ' who {clause}' to leave out; expected the key {where}, the text "
            "without a condition"
        )
    return given


def load_attitudes() -> Mapping[str, Rating]:
    """Return our own ratings by lower-case word.

    >>> attitudes = load_attitudes()
    >>> attitudes["unlikely"], attitudes["easy"], attitudes["similar"], attitudes["about"]
    ('negative', 'positive', 'neutral', 'irrelevant')
    """
    return read_attitudes(packaged("stigma", "attitudes.csv"))


def read_attitudes(source: Source) -> Mapping[str, Rating]:
    """Return the ratings of a file: CSV with `word,rating`, or the authors' `word,label` with POS, NEG, NEU, IRR.

    Other columns, such as those of the raters, are ignored. Words are lower-cased; one that appears twice
    ("Likely" and "likely") must have the same rating both times.
    """
    rows = read_csv(source, columns=("word",), optional=("rating", "label"), others=True)
    column = "rating" if any(row.values["rating"] for row in rows) else "label"
    if column == "label" and not any(row.values["label"] for row in rows):
        raise DataError(f"'{source}' has no rating in any row; expected the columns word,rating or word,label")
    ratings: dict[str, Rating] = {}
    lines: dict[str, int] = {}
    for row in rows:
        word = unescaped(row.text("word")).lower()
        if len(word.split()) != 1:
            raise row.error(f"'{word}'", "a single word: models are asked for one word")
        rating = (
            cast(Rating, row.choice("rating", RATINGS))
            if column == "rating"
            else _PUBLISHED_RATINGS[row.choice("label", _PUBLISHED_RATINGS)]
        )
        if ratings.setdefault(word, rating) != rating:
            raise row.error(f"'{word}' is {rating} here and {ratings[word]} in line {lines[word]}", "one rating")
        lines.setdefault(word, row.line)
    return ratings
