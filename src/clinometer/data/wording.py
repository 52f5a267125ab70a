"""Small rules of English and of templates that several audits share."""

from __future__ import annotations

import re
from collections.abc import Mapping

from clinometer.errors import DataError, nearest

# Words whose first letter misleads: "a university", "an hour". A user's file can name the article instead.
_A_BEFORE_VOWEL = re.compile(
    r"(uni(?!n|m|d)|us[aeu]|us\b|u\.s|ur[aeiou]|ut[eio]|uk\b|ukr|uku|uga|eu|ewe|one\b|once\b)", re.IGNORECASE
)
_AN_BEFORE_H = re.compile(r"(hour|honest|hono|heir)", re.IGNORECASE)
_FIELD = re.compile(r"\{(\w+)\}")


def article_of(noun: str) -> str:
    """Return "a" or "an", as the spelling of the noun suggests.

    >>> article_of("nurse"), article_of("architect"), article_of("hourly worker")
    ('a', 'an', 'an')
    """
    vowel = noun[:1].lower() in "aeiou" and not _A_BEFORE_VOWEL.match(noun)
    return "an" if vowel or _AN_BEFORE_H.match(noun) else "a"


def with_article(noun: str, *, article: str = "") -> str:
    """Return the noun after "a" or "an": the given article, or the one that its spelling suggests.

    >>> with_article("nurse"), with_article("architect"), with_article("usher"), with_article("university dean")
    ('a nurse', 'an architect', 'an usher', 'a university dean')
    >>> with_article("MRI technician", article="an")
    'an MRI technician'
    """
    return f"{article or article_of(noun)} {noun}"


def fill_fields(template: str, fields: Mapping[str, str]) -> str:
    """Return the template with each {field} replaced; nothing else in braces is understood.

    >>> fill_fields("The {target} can be a {gender}.", {"target": "nurse", "gender": "male"})
    'The nurse can be a male.'
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in fields:
            raise DataError(f"unknown field '{{{name}}}' in template '{template}'; {nearest(name, fields)}")
        return fields[name]

    return _FIELD.sub(value, template)
