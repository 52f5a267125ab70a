"""Questions with a biased, an unbiased and a "can't tell" answer, from a user's file.

CSV with `question`, `biased` and perhaps `unbiased`, `cant_tell`, `condition` and `category`. The file of
SocialStigmaQA (Nagireddy et al. 2024), which asks about the same 93 conditions, has `prompt`, `biased_answer` and
`stigma` instead of the first, second and fifth.
"""

from __future__ import annotations

from dataclasses import dataclass

from clinometer.data.files import CsvRow, Source, read_csv
from clinometer.errors import DataError

CANT_TELL = "can't tell"
_NAMES = {
    "question": ("question", "prompt"),
    "biased": ("biased", "biased_answer"),
    "condition": ("condition", "stigma"),
}
_OPPOSITE = {"yes": "no", "no": "yes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceQuestion:
    """A question and its three answers."""

    text: str
    biased: str
    unbiased: str
    cant_tell: str
    condition: str  # what it is about; questions about one condition are one unit
    category: str

    @property
    def options(self) -> tuple[str, str, str]:
        """The answers that may be given: biased, unbiased, can't tell."""
        return self.biased, self.unbiased, self.cant_tell


def read_choices(source: Source) -> tuple[ChoiceQuestion, ...]:
    """Return the questions of a file; where only a biased yes or no is given, the other one is not biased."""
    rows = read_csv(
        source,
        columns=(),
        optional=(*(name for names in _NAMES.values() for name in names), "unbiased", "cant_tell", "category"),
        others=True,
    )
    questions = []
    for at, row in enumerate(rows):
        text, biased = _value(row, "question"), _value(row, "biased").lower()
        if not text or not biased:
            raise row.error(
                "no question, or no biased answer", "the columns question and biased (or prompt, biased_answer)"
            )
        unbiased = row.values["unbiased"].lower() or _OPPOSITE.get(biased, "")
        if not unbiased or unbiased == biased:
            raise row.error(
                f"biased {biased!r}, unbiased {unbiased!r}", "two different answers, or a biased yes or no"
            )
        questions.append(
            ChoiceQuestion(
                text=text,
                biased=biased,
                unbiased=unbiased,
                cant_tell=row.values["cant_tell"].lower() or CANT_TELL,
                condition=_value(row, "condition") or f"question {at + 1}",
                category=row.values["category"].lower() or "all",
            )
        )
    if not questions:
        raise DataError(
            f"'{source}' has no questions; expected the columns question and biased, and a row for each"
        )
    return tuple(questions)


def _value(row: CsvRow, field: str) -> str:
    return next((row.values[name] for name in _NAMES[field] if row.values[name]), "")
