"""What is asked: every group in every template, the prompts of the data set, and both with the group hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from clinometer.data.stereotypes_data import Group, HumanStereotype, match_groups
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stereotypes.options import Options
from clinometer.types import HIDDEN, MASK, Fill, Item

GROUP = "{group}"
# the authors use this one prior for every question, without a question mark
PUBLISHED_PRIOR = f"Why are {GROUP} so {MASK}"
CHUNK = 500  # words asked for at a time: a prior may need thousands
_PIECE = "##"  # begins every token that is a piece of a word, in every model family
_WORD = r"^\p{L}+(?:['’\-]\p{L}+)*$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about one group."""

    group: Group
    written: str  # the group as the question writes it: the data set has its own spelling and case
    template: str  # the question with {group} in the place of the group
    origin: Literal["template", "data set"]

    @property
    def text(self) -> str:
        """The question as the model reads it."""
        return self.template.replace(GROUP, self.written)


def questions(options: Options) -> tuple[Question, ...]:
    """Return every question in the order asked: group by group, then the distinct prompts of the data set."""
    templates = options.chosen_templates()
    asked = [
        Question(group=group, written=group.name, template=template, origin="template")
        for group in options.chosen_groups()
        for template in templates.of(group.kind)
    ]
    asked += dict.fromkeys(question for question, _ in human_questions(options))
    return tuple(asked)


def human_questions(options: Options) -> Iterator[tuple[Question, HumanStereotype]]:
    """Yield each human stereotype about a chosen group, with the question that its own prompt asks."""
    rows = options.chosen_stereotypes()
    groups = {group.name: group for group in options.chosen_groups()}
    matched = match_groups(rows, groups.values()).matched
    for row in rows:
        if row.group in matched:
            yield _human_question(row, groups[matched[row.group]]), row


def _human_question(row: HumanStereotype, group: Group) -> Question:
    whole = re.search(rf"\b{re.escape(row.group)}\b", row.prompt, re.IGNORECASE)
    found = whole or re.search(re.escape(row.group), row.prompt, re.IGNORECASE)
    assert found is not None, "the reader refuses prompts without their group"
    before, written, after = row.prompt[: found.start()], found.group(), row.prompt[found.end() :]
    return Question(group=group, written=written, template=f"{before}{GROUP}{after} {MASK}?", origin="data set")


def posterior_items(options: Options) -> Iterator[Item]:
    """Yield the questions, each asking for its most probable words."""
    for question in questions(options):
        yield Item(
            request=Fill(text=question.text, top_k=options.top_k),
            tags={
                "group": question.group.name,
                "category": question.group.category,
                "kind": question.group.kind,
                "template": question.template,
                "origin": question.origin,
            },
        )


def prior_items(plan: Plan, records: Records) -> Iterator[Item]:
    """Yield the questions with their group hidden, each asking for the words that the model offered.

    Pieces of words are left out: they are not a token after a space, so they have no prior.
    """
    options: Options = plan.options
    answers = records.table(model=plan.model.name, stage="posterior", columns=["index", "got_words"])
    word = pl.col("got_words")
    offered = (
        answers.with_columns(pl.col("index").cast(pl.Int64))
        .join(prior_keys(questions(options), options), on="index")
        .explode("got_words")
        .filter(is_attribute(word, options) & ~is_piece(word))
        .group_by("template", "hidden")
        .agg(word.unique().sort())
        .sort("template", "hidden")
    )
    for template, hidden, words in offered.iter_rows():
        text = template.replace(GROUP, f"{HIDDEN[:-1]}:{hidden}]" if hidden else HIDDEN)
        for chunk, start in enumerate(range(0, len(words), CHUNK)):
            yield Item(
                request=Fill(text=text, words=tuple(words[start : start + CHUNK])),
                tags={"template": template, "hidden": hidden, "chunk": chunk},
            )


def prior_keys(asked: tuple[Question, ...], options: Options) -> pl.DataFrame:
    """Return which prior belongs to which question, by its `index`.

    Questions share a prior when they have the same `template` and the same `hidden` text, whose tokens are masked
    ("": one mask).
    """
    own, tokens = options.prior == "template", options.prior_masks == "tokens"
    return pl.DataFrame(
        {
            "index": range(len(asked)),
            "template": [question.template if own else PUBLISHED_PRIOR for question in asked],
            "hidden": [question.written if tokens else "" for question in asked],
        },
        schema={"index": pl.Int64, "template": pl.String, "hidden": pl.String},
    )


def is_piece(word: pl.Expr) -> pl.Expr:
    """Tell whether a token is only a piece of a word."""
    return word.str.starts_with(_PIECE)


def is_word(word: pl.Expr) -> pl.Expr:
    """Tell whether a token is a word: two letters or more, perhaps with an apostrophe or a hyphen inside.

    >>> pl.select(is_word(pl.Series(["rich", "d'accord", "##ly", "2", "!", "s", "Ärzte"])))[""].to_list()
    [True, True, False, False, False, False, True]
    """
    return ~is_piece(word) & word.str.contains(_WORD) & (word.str.len_chars() > 1)


def is_attribute(word: pl.Expr, options: Options) -> pl.Expr:
    """Tell whether the option `filter` keeps a token."""
    return is_word(word) if options.filter == "words" else pl.lit(True)
