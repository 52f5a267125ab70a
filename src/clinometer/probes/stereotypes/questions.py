"""What is asked: every group in every template, the prompts of the data set, and both with the group hidden."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from clinometer.data.stereotypes_data import Group, HumanStereotype, match_groups
from clinometer.probes.kit.chat import (
    ask_word,
    chosen_instructions,
    draws_of,
    gives_probabilities,
    phrasing_count,
    word_messages,
)
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stereotypes.options import Options
from clinometer.types import HIDDEN, MASK, AnswerWord, Fill, Item, Message, ModelInfo, NextWord

WordRequest = Fill | NextWord | AnswerWord

POSTERIOR, PRIOR, DRAWN = "posterior", "prior", "drawn"  # the stages
GROUP = "{group}"
EVERYONE = "{every group}"  # in the place of what is hidden: the prior is the mean over all groups
# the authors use this one prior for every question, without a question mark
PUBLISHED_PRIOR = f"Why are {GROUP} so {MASK}"
NEUTRAL = {"people": "people", "country": "this country"}  # in the place of a group, where the prior is "people"
CHUNK = 500  # words asked for at a time: a prior may need thousands …
LARGE_CHUNK = 5000  # … and where it is asked for every group, each chunk asks all of them again
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


def asked_of(plan: Plan) -> tuple[Question, ...]:
    """Return the questions that one model is asked: all, or of a chat model those about some of each category.

    The draw depends on the seed and on the groups of the category; a smaller number gives a part of a larger one.
    """
    options: Options = plan.options
    every, n = questions(options), options.chat_groups
    if not is_chat(plan.model) or n == 0 or options.human_file:
        return every
    kept: set[Group] = set()
    for category in dict.fromkeys(question.group.category for question in every):
        groups = {question.group for question in every if question.group.category == category}
        members = sorted(groups, key=lambda group: group.name)
        number = int.from_bytes(hashlib.sha256(category.encode()).digest()[:8], "big")
        order = np.random.default_rng([plan.seed, number]).permutation(len(members))
        kept.update(members[place] for place in order[:n])
    return tuple(question for question in every if question.group in kept)


def top_k_of(plan: Plan) -> int:
    """Return how many words a model is asked for."""
    options: Options = plan.options
    fewer = is_chat(plan.model) and not options.human_file
    return min(options.top_k, options.chat_top_k) if fewer else options.top_k


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


def word_request(plan: Plan, text: str, *, words: tuple[str, ...] = (), top_k: int = 0) -> WordRequest:
    """Return the question for the word at the blank.

    A causal model is asked what follows the text before it, and so is a chat model, in words: for its first word
    where it says how probable that is.
    """
    if "fill" in plan.model.capabilities:
        return Fill(text=text, words=words, top_k=top_k)
    if not is_chat(plan.model):
        return NextWord(text=before_blank(text), words=words, top_k=top_k)
    return AnswerWord(messages=conversation(plan, text), words=words, top_k=top_k)


def is_chat(model: ModelInfo) -> bool:
    """Tell whether a model can only be asked in words."""
    return not {"fill", "next_word"} & set(model.capabilities)


def is_drawn(model: ModelInfo) -> bool:
    """Tell whether all that is known of a model's words are the answers that were drawn."""
    return is_chat(model) and not gives_probabilities(model)


def before_blank(text: str) -> str:
    """Return the question up to its blank."""
    return text[: text.index(MASK)].rstrip()


def conversation(plan: Plan, text: str) -> tuple[Message, ...]:
    """Return the messages that ask a chat model to continue the question; each wording has its own phrasing."""
    instructions, start = chosen_instructions(plan.options.instructions_file), before_blank(text)
    # by the words around the group, so that all groups are asked alike
    templates = plan.options.chosen_templates()
    around = [before_blank(each).split(GROUP) for each in (*templates.people, *templates.country)]
    fitting = (i for i, (first, last) in enumerate(around) if start.startswith(first) and start.endswith(last))
    phrasing = next(fitting, 0) % phrasing_count(start, instructions)
    return word_messages(start, instructions=instructions, phrasing=phrasing)


def drawn_items(plan: Plan) -> Iterator[Item]:
    """Yield the questions as a chat model is asked them, several answers each."""
    options: Options = plan.options
    n = draws_of(plan.model, options.answers)
    for question in asked_of(plan):
        request = ask_word(conversation(plan, question.text), n=n, seed=plan.seed)
        yield Item(request=request, tags=_tags(question))


def posterior_items(plan: Plan) -> Iterator[Item]:
    """Yield the questions, each asking for its most probable words."""
    for question in asked_of(plan):
        yield Item(request=word_request(plan, question.text, top_k=top_k_of(plan)), tags=_tags(question))


def _tags(question: Question) -> dict[str, str]:
    return {
        "group": question.group.name,
        "category": question.group.category,
        "kind": question.group.kind,
        "template": question.template,
        "origin": question.origin,
    }


def prior_items(plan: Plan, records: Records) -> Iterator[Item]:
    """Yield the questions with their group hidden, each asking for the words that the model offered.

    Where the prior is the mean over groups, each question of a template is asked again for the words of all of
    them. Pieces of words are left out: they are not a token after a space, so they have no prior.
    """
    options: Options = plan.options
    asked = asked_of(plan)
    answers = records.table(model=plan.model.name, stage="posterior", columns=["index", "got_words"])
    word = pl.col("got_words")
    offered = (
        answers.with_columns(pl.col("index").cast(pl.Int64))
        .join(prior_keys(asked, plan), on="index")
        .explode("got_words")
        .filter(is_attribute(word, options) & ~is_piece(word))
        .group_by("template", "hidden")
        .agg(word.unique().sort())
        .sort("template", "hidden")
    )
    groups: dict[str, dict[str, None]] = {}
    for question in asked:
        if question.origin == "template":
            groups.setdefault(question.template, {})[question.written] = None
    for template, hidden, words in offered.iter_rows():
        texts = [template.replace(GROUP, f"{HIDDEN[:-1]}:{hidden}]" if hidden else HIDDEN)]
        if hidden in NEUTRAL.values():
            texts = [template.replace(GROUP, hidden)]
        elif hidden == EVERYONE:
            texts = [template.replace(GROUP, group) for group in groups[template]]
        size = CHUNK if len(texts) == 1 else LARGE_CHUNK
        for chunk, start in enumerate(range(0, len(words), size)):
            for text in texts:
                yield Item(
                    request=word_request(plan, text, words=tuple(words[start : start + size])),
                    tags={"template": template, "hidden": hidden, "chunk": chunk},
                )


def prior_keys(asked: tuple[Question, ...], plan: Plan) -> pl.DataFrame:
    """Return which prior belongs to which question, by its `index`.

    Questions share a prior when they have the same `template` and the same `hidden` text: one whose tokens are
    masked ("": one mask), one of the `NEUTRAL` ones in the place of the group, or `EVERYONE`. A prompt of the data
    set is asked about one group, so there a mean over groups would be its own: it has the neutral prior.
    """
    options: Options = plan.options
    prior = options.prior_of(plan.model)

    def hidden(question: Question) -> str:
        if prior in ("groups", "people"):
            of_all = prior == "groups" and question.origin == "template"
            return EVERYONE if of_all else NEUTRAL[question.group.kind]
        return question.written if options.prior_masks == "tokens" else ""

    published = prior == "published"
    return pl.DataFrame(
        {
            "index": range(len(asked)),
            "template": [PUBLISHED_PRIOR if published else question.template for question in asked],
            "hidden": [hidden(question) for question in asked],
        },
        schema={"index": pl.Int64, "template": pl.String, "hidden": pl.String},
    )


def prior_in_words(plan: Plan) -> str:
    """Say what each question is compared with."""
    options: Options = plan.options
    prior = options.prior_of(plan.model)
    masks = "one mask" if options.prior_masks == "one" else "as many masks as it has tokens"
    if prior == "published":
        question = PUBLISHED_PRIOR.replace(GROUP, HIDDEN)
        return f"replaced by '{question}', as in the authors' code, with {masks} for the group"
    if prior == "groups":
        return "about each of the groups, on average: typical means typical compared with these groups"
    if prior == "people":
        return "about 'people' ('this country'): typical means typical compared with people in general"
    return f"with its group hidden by {masks}"


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
