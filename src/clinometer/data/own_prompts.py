"""A user's own prompts: beginnings with a field for the value, or text in which sensitive words are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clinometer.data.attributes import SENSITIVE_LISTS, Attribute, fill_template, load_sensitive_list
from clinometer.data.files import read_text
from clinometer.data.substitution import find_values
from clinometer.errors import DataError

_VALUE = ("{value}", "{a_value}", "{Value}", "{A_value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPrompts:
    """The plain prompts that name exactly one value of a list, and that value; the list as an attribute."""

    attribute: Attribute  # its templates are the prompts as they were written
    found: Mapping[str, str]  # prompt -> the value that is in it


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPrompts:
    """What a file of prompts holds."""

    templates: tuple[str, ...]  # with a field for the value
    found: tuple[FoundPrompts, ...]
    unused: tuple[str, ...]  # plain prompts without a sensitive word
    ambiguous: tuple[str, ...]  # those with two values of one list, and so without a counterfactual


def read_prompts(file: str, *, lists: Sequence[str] = SENSITIVE_LISTS) -> OwnPrompts:
    """Read prompts, one on each line, and look for the words of the lists in those without a field.

    A prompt with "{value}" is a template of every attribute that is asked. In any other, the words of one value of
    a list (a country, a name, a religion, all words of one gender) are what is exchanged. DataError where there is
    nothing to exchange at all.
    """
    lines = tuple(dict.fromkeys(line.strip() for line in read_text(file).splitlines() if line.strip()))
    if not lines:
        raise DataError(f"'{file}' is empty; expected one prompt on each line")
    templates = tuple(line for line in lines if any(field in line for field in _VALUE))
    plain = [line for line in lines if line not in templates]
    found: list[FoundPrompts] = []
    ambiguous: list[str] = []
    used: set[str] = set()
    for name in lists:
        attribute = load_sensitive_list(name)
        values = {line: find_values(line, attribute) for line in plain}
        single = {line: each[0] for line, each in values.items() if len(each) == 1}
        ambiguous += [line for line, each in values.items() if len(each) > 1]
        used |= single.keys()
        if single:
            asked = replace(attribute, name=f"{name} in your prompts", templates=tuple(single))
            found.append(FoundPrompts(attribute=asked, found=single))
    if not templates and not found:
        raise DataError(
            f"'{file}': no prompt has {{value}} in it, and none contains exactly one of the words of "
            f"{', '.join(lists)}: there is nothing to exchange and so nothing to compare; write {{value}} where "
            "the word belongs"
        )
    return OwnPrompts(
        templates=templates,
        found=tuple(found),
        unused=tuple(line for line in plain if line not in used and line not in ambiguous),
        ambiguous=tuple(dict.fromkeys(line for line in ambiguous if line not in used)),
    )


def with_templates(attribute: Attribute, templates: tuple[str, ...], *, file: str) -> Attribute:
    """Return the attribute with other templates; DataError for one with a field that its values do not have."""
    for template in templates:
        try:
            fill_template(template, attribute.values[0])
        except DataError as error:
            raise DataError(f"'{file}', for {attribute.name}: {error}") from error
    return replace(attribute, templates=templates)
