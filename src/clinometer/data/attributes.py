"""Sensitive attributes of the counterfactual audit: their values, subgroups and templates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clinometer.data.files import Source, check_keys, packaged, read_toml
from clinometer.data.people import read_people
from clinometer.data.wording import capitalised, check_fields, fill_fields, plural_of, with_article
from clinometer.errors import DataError, nearest

ATTRIBUTES = ("country", "occupation", "name")
SENSITIVE_LISTS = ("gender", "name", "country", "religion")  # whose words are looked for in plain prompts

_OWN_FIELDS = ("value", "a_value")


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a sensitive attribute: the text for the template, and the words that go with it."""

    text: str
    subgroup: str = ""
    article: str = ""  # "a" or "an"; "": guessed from the spelling
    pronouns: Mapping[str, str] = field(default_factory=dict)  # field of a template -> word: {"he": "she"}
    # the paper's φ(a) without the value itself: role -> word, {"husband": "wife"}; counterparts share a role
    tokens: Mapping[str, str] = field(default_factory=dict)

    @property
    def sensitive_tokens(self) -> dict[str, str]:
        """The paper's φ(a), role -> word; the value itself has the role "value"."""
        return {"value": self.text, **self.tokens}


@dataclass(frozen=True, slots=True)
class Attribute:
    """A sensitive attribute, its values in order, its subgroups (none: each value is its own) and templates."""

    name: str
    values: tuple[Value, ...]
    subgroups: tuple[str, ...]
    templates: tuple[str, ...]

    def value(self, text: str) -> Value:
        """Return the value with this text."""
        for each in self.values:
            if each.text == text:
                return each
        hint = nearest(text, (each.text for each in self.values))
        raise DataError(f"no value '{text}' of the attribute '{self.name}'; {hint}")

    @property
    def value_subgroups(self) -> tuple[str, ...] | None:
        """The subgroup of each value, or None if each value is its own."""
        return tuple(value.subgroup for value in self.values) if self.subgroups else None


def load_attribute(name: str) -> Attribute:
    """Return a sensitive attribute of the paper's Appendix A: "country", "occupation" or "name".

    >>> occupation = load_attribute("occupation")
    >>> len(occupation.values), len(occupation.templates)
    (29, 10)
    >>> fill_template(occupation.templates[3], occupation.value("accountant"))
    'My friend is an accountant, and we'
    """
    if name not in ATTRIBUTES:
        raise DataError(f"no attribute '{name}' comes with Clinometer; {nearest(name, ATTRIBUTES)}")
    return read_attribute(packaged("counterfactual", f"{name}.toml"))


def load_sensitive_list(name: str) -> Attribute:
    """Return words that are looked for in plain prompts, as an attribute: "gender", "name", "country", "religion".

    >>> [value.text for value in load_sensitive_list("gender").values]
    ['man', 'woman']
    """
    if name not in SENSITIVE_LISTS:
        raise DataError(f"no list '{name}' comes with Clinometer; {nearest(name, SENSITIVE_LISTS)}")
    return read_attribute(packaged("counterfactual", f"{name}.toml"))


def fill_template(template: str, value: Value) -> str:
    """Return the prefix about one value: {value}, {a_value} with its article, and the value's pronouns and tokens.

    A field with a capital letter, {A_value} or {He}, gives a word with a capital letter.

    >>> emma = load_attribute("name").value("Emma")
    >>> fill_template("{value} is known for {his}", emma), fill_template("{He} is {value}", emma)
    ('Emma is known for her', 'She is Emma')
    """
    words = {
        **value.pronouns,
        **value.sensitive_tokens,
        "a_value": with_article(value.text, article=value.article),
    }
    return fill_fields(template, words | {capitalised(role): capitalised(word) for role, word in words.items()})


def read_attribute(source: Source) -> Attribute:
    """Read a user's own attribute, strictly.

        name = "religion"
        values = ["Buddhist", { text = "heir", article = "an", tokens = { place = "estate" } }]
        templates = ["My friend is {a_value}, and we"]
        plurals = true                # optional: the plural of a value is also a sensitive token
        substitute_pronouns = true    # optional: so are the pronouns

    An attribute with subgroups has [[subgroups]] instead of `values`, each with a `name`, its own `values`, and
    perhaps `pronouns` and `tokens` for all of them, as in the packaged name.toml. `pronouns` are fields for the
    templates; `he`, `him`, `his` (his book), `hers` (the book is his) and `himself` are distinguished in running
    text. `tokens` are further words that belong to a value, such as husband and wife. All values must have the
    same fields.

    A file that ends in .csv holds groups of people (`data.people`), for sentences such as "My friend is {a_value},
    and we"; where each has a subgroup, these are compared, too.
    """
    if str(source).lower().endswith(".csv"):
        return _people(source)
    table = read_toml(
        source,
        keys=("name", "templates"),
        optional=("values", "subgroups", "plurals", "substitute_pronouns"),
    )
    where = f"'{source}'"
    if not isinstance(table["name"], str) or not table["name"].strip():
        raise DataError(f"{where}: name = {table['name']!r}; expected a text")
    for option in ("plurals", "substitute_pronouns"):
        if not isinstance(table.get(option, False), bool):
            raise DataError(f"{where}: {option} = {table[option]!r}; expected true or false")
    if ("values" in table) == ("subgroups" in table):
        raise DataError(f"{where}: expected either values or [[subgroups]] with their values")
    if "values" in table:
        subgroups: tuple[str, ...] = ()
        values = _values(f"{where}: values", table["values"], table, subgroup={})
    else:
        listed = _subgroups(where, table["subgroups"])
        subgroups = tuple(each["name"] for each in listed)
        values = [
            value
            for each in listed
            for value in _values(f"{where}: subgroup '{each['name']}'", each["values"], table, subgroup=each)
        ]
    _check_values(where, values)
    templates = _templates(f"{where}: templates", table["templates"], values[0])
    return Attribute(name=table["name"].strip(), values=tuple(values), subgroups=subgroups, templates=templates)


def _people(source: Source) -> Attribute:
    groups = [group for group in read_people(source) if group.category != "country"]  # "a Norway" is nobody
    subgroups = tuple(dict.fromkeys(group.subgroup for group in groups))
    if "" in subgroups or len(subgroups) < 2:
        subgroups = ()
    values = [
        Value(group.singular, group.subgroup if subgroups else "", group.article, tokens={"plural": group.plural})
        for group in groups
    ]
    _check_values(f"'{source}'", values)
    table = read_toml(packaged("counterfactual", "people.toml"), keys=("templates",))
    return Attribute(name="group", values=tuple(values), subgroups=subgroups, templates=tuple(table["templates"]))


def _subgroups(where: str, listed: Any) -> list[dict[str, Any]]:
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed) or len(listed) < 2:
        raise DataError(f"{where}: subgroups is not a list of two or more tables; expected [[subgroups]] entries")
    for number, each in enumerate(listed, start=1):
        entry = f"{where}: subgroups, entry {number}"
        check_keys(entry, each, keys=("name", "values"), optional=("pronouns", "tokens"))
        if not isinstance(each["name"], str) or not each["name"].strip():
            raise DataError(f"{entry}: name = {each['name']!r}; expected a text")
    if repeated := _repeated(each["name"] for each in listed):
        raise DataError(f"{where}: the subgroup '{repeated}' appears twice; expected each once")
    return listed


def _values(where: str, listed: Any, table: Mapping[str, Any], *, subgroup: Mapping[str, Any]) -> list[Value]:
    if not isinstance(listed, list) or not listed:
        raise DataError(f'{where}: values is not a list with entries; expected texts such as "nurse"')
    values = []
    for number, listed_value in enumerate(listed, start=1):
        entry = f"{where}, value {number}"
        given = {"text": listed_value} if isinstance(listed_value, str) else listed_value
        if not isinstance(given, dict):
            raise DataError(f'{entry}: found {given!r}; expected a text, or a table with text = "…"')
        check_keys(entry, given, keys=("text",), optional=("article", "plural", "pronouns", "tokens"))
        text = _word(f"{entry}: text", given["text"])
        article = given.get("article", "")
        if article not in ("", "a", "an"):
            raise DataError(f'{entry}: article = {article!r}; expected "a" or "an"')
        pronouns = _words(entry, "pronouns", subgroup, given)
        tokens = _words(entry, "tokens", subgroup, given)
        if shared := set(pronouns) & set(tokens):
            raise DataError(f"{entry}: '{min(shared)}' is among pronouns and tokens; expected it in one of them")
        if table.get("plurals", False):
            tokens = {"plural": _word(f"{entry}: plural", given.get("plural", plural_of(text))), **tokens}
        elif "plural" in given:
            raise DataError(
                f"{entry}: a plural without plurals = true; add that line to the file, or remove the plural"
            )
        if table.get("substitute_pronouns", False):
            tokens = {**tokens, **pronouns}
        values.append(
            Value(text=text, subgroup=subgroup.get("name", ""), article=article, pronouns=pronouns, tokens=tokens)
        )
    return values


def _word(where: str, given: Any) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"\w(.*\w)?", given) or re.search(r"[\[\]{}\n]", given):
        raise DataError(
            f"{where} = {given!r}; expected a word or words, without braces, brackets or surrounding spaces"
        )
    return given


def _words(entry: str, kind: str, *tables: Mapping[str, Any]) -> dict[str, str]:
    """Return the words of one kind by role; those of the value itself replace its subgroup's."""
    found: dict[str, str] = {}
    for table in tables:
        given = table.get(kind, {})
        if not isinstance(given, dict):
            raise DataError(f'{entry}: {kind} = {given!r}; expected a table such as {{ he = "she" }}')
        for role, word in given.items():
            if not re.fullmatch(r"[a-z_]+", role) or role in (*_OWN_FIELDS, "plural"):
                raise DataError(
                    f"{entry}: {kind}: '{role}' cannot name a field; expected another name in lower-case letters"
                )
            found[role] = _word(f"{entry}: {kind}: {role}", word)
    return found


def _check_values(where: str, values: list[Value]) -> None:
    if len(values) < 2:
        raise DataError(f"{where}: only one value; expected two or more, to compare")
    if repeated := _repeated(value.text for value in values):
        raise DataError(f"{where}: the value '{repeated}' appears twice; expected each once")
    first = values[0]
    for value in values:
        _check_roles(where, value)
        for kind in ("pronouns", "tokens"):
            here, there = getattr(value, kind), getattr(first, kind)
            if odd := sorted(set(here) ^ set(there)):
                lacking = value if odd[0] in there else first
                raise DataError(
                    f"{where}: '{lacking.text}' has no '{odd[0]}' among its {kind}; expected it, as others have it"
                )


def _check_roles(where: str, value: Value) -> None:
    """Raise DataError if a word of a value has two roles that cannot be distinguished in running text."""
    roles: dict[str, list[str]] = {}
    for role, word in value.sensitive_tokens.items():
        roles.setdefault(word, []).append(role)
    for word, several in roles.items():
        if len(several) > 1 and sorted(several) not in (["him", "his"], ["hers", "his"]):
            both = " and ".join(several)
            raise DataError(f"{where}: '{word}' is both {both} of '{value.text}'; expected one role per word")


def _templates(where: str, listed: Any, value: Value) -> tuple[str, ...]:
    if not isinstance(listed, list) or not listed or not all(isinstance(text, str) for text in listed):
        raise DataError(
            f"{where} is not a list of texts; expected prefixes such as 'My friend is {{a_value}}, and we'"
        )
    fields = {*_OWN_FIELDS, *value.pronouns, *value.tokens}
    fields |= {capitalised(name) for name in fields}
    for number, text in enumerate(listed, start=1):
        entry = f"{where}, entry {number}"
        check_fields(entry, text, fields)
        if not {name.lower() for name in re.findall(r"{(\w+)}", text)} & set(_OWN_FIELDS):
            raise DataError(f"{entry}: {text!r} does not name the value; expected {{value}} or {{a_value}}")
        if text != text.strip():
            raise DataError(
                f"{entry}: {text!r} begins or ends with a space; expected none, because the model adds its own"
            )
    if repeated := _repeated(listed):
        raise DataError(f"{where}: {repeated!r} appears twice; expected each template once")
    return tuple(listed)


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, times in Counter(names).items() if times > 1), None)
