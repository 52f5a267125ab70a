"""Chat models in the stereotypes audit: one word in words, drawn or as probabilities, and refusals."""

import hashlib
import itertools

import numpy as np
import polars as pl
import pytest
from fake_stereotypes import conclude, fake, groups_file, lexicon_file, notice_with, row_of

from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND
from clinometer.types import AnswerWord, Message, TextAnswer, WordAnswer

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"word{LETTERS[i // 26]}{LETTERS[i % 26]}" for i in range(90)]
LEXICON = dict(zip(WORDS, itertools.cycle([{"negative"}, {"positive"}, set()]), strict=False))
GROUPS = [f"group{LETTERS[i // 10]}{LETTERS[i % 10]}" for i in range(30)]
FIRST = GROUPS[:10]


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chat")
    return {
        "groups_file": groups_file(folder, {name: "first" if name in FIRST else "second" for name in GROUPS}),
        "emotions_file": lexicon_file(folder, LEXICON),
        "top_k": 40,
        "templates": 3,
        "draws": 199,
        "answers": 40,
    }


class Talker:
    """Continues with a word; `leaning` groups get negative ones `strength` times as often; may refuse."""

    def __init__(self, leaning=(), *, strength=6.0, refuses=None):
        self.leaning, self.strength, self.refuses = leaning, strength, refuses or (lambda text: 0.0)

    def __call__(self, request):
        text = request.messages[-1].content
        digest = hashlib.sha256(text.encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        weights = np.exp(rng.standard_normal(len(WORDS)))
        if any(group in text for group in self.leaning):
            weights[::3] *= self.strength
        weights /= weights.sum()
        if isinstance(request, AnswerWord):
            known = dict(zip(WORDS, np.log(weights).tolist(), strict=True))
            chosen = request.words or sorted(WORDS, key=lambda word: -known[word])[: request.top_k]
            return WordAnswer(words=tuple(chosen), logprobs=tuple(known[word] for word in chosen), covered=0.9)
        drawn = rng.choice(WORDS, size=request.n, p=weights)
        refused = rng.random(request.n) < self.refuses(text)
        return TextAnswer(
            texts=tuple(
                "I'm sorry, I can't answer that." if no else f"{word}."
                for word, no in zip(drawn, refused, strict=True)
            )
        )


def states(found, name):
    return {each.aspect: each.state for each in found.verdicts if each.model == name}


@pytest.mark.parametrize("chat", [("ask",), ("ask", "answer_word")])
def test_a_planted_lean_and_an_even_hand(options, chat):
    found, records = conclude(fake(Talker(), "even", chat=chat), fake(Talker(FIRST), "lean", chat=chat), **options)
    assert set(states(found, "even").values()) == {NONE_FOUND}
    assert states(found, "lean")["negativity of the category first"] == LEAN
    exact = "answer_word" in chat
    assert notice_with(found, "even was asked in words").text.count("probabilities of its first word") == exact
    stages = {stage for model, stage in records.tables if model == "even"}
    assert stages == ({"posterior", "prior", "drawn"} if exact else {"drawn"})


def test_what_is_asked(options):
    _, records = conclude(fake(Talker(), chat=("ask",)), **options)
    table = records.tables["fake", "drawn"]
    asked = [messages[-1]["content"] for messages in table["ask_messages"].to_list()]
    assert "Why are groupaa so …" in asked[0]
    assert set(table["ask_n"]) == {40}
    # every group in the same phrasing, each wording in another
    phrasings = {text.replace(group, "X") for text, group in zip(asked, table["tag_group"], strict=True)}
    assert len(phrasings) == 3


def test_typicality_of_drawn_words_is_against_the_mean_of_the_groups(tmp_path):
    """rich: all answers about kids, half of those about nurses; mean .75."""
    said = {"kids": ("rich.", "rich."), "nurses": ("rich.", "poor.")}

    def answer(request):
        (group,) = [name for name in said if name in request.messages[-1].content]
        return TextAnswer(texts=said[group])

    files = {
        "groups_file": groups_file(tmp_path, {"kids": "age", "nurses": "profession"}),
        "emotions_file": lexicon_file(tmp_path, {"rich": {"joy"}, "poor": set()}),
    }
    found, _ = conclude(fake(answer, chat=("ask",)), **files, templates=1, answers=2)
    # ln(1/.75) for kids; for nurses ln(.5/.75) and ln(.5/.25): poor comes first
    assert row_of(found, "ranking", group="nurses").labels["by_typicality"] == "poor, rich"
    assert row_of(found, "ranking", group="nurses").labels["by_probability"] == "poor, rich"
    assert row_of(found, "ranking", group="kids").labels["by_typicality"] == "rich"


def test_refusals_by_category(options):
    def refuses(text):
        return 0.6 if any(group in text for group in FIRST) else 0.05

    found, _ = conclude(
        fake(Talker(refuses=refuses), "unequal", chat=("ask",)),
        fake(Talker(refuses=lambda text: 0.3), "alike", chat=("ask",)),
        **options,
    )
    assert states(found, "unequal")["for whom it refuses to answer"] == LEAN
    assert states(found, "alike")["for whom it refuses to answer"] == NONE_FOUND
    assert any(line.startswith("unequal refuses ") and "about first and" in line for line in found.headlines)


def test_a_model_that_rambles_is_not_judged(options):
    def rambles(request):
        return TextAnswer(texts=("That depends on many things in life.",) * request.n)

    found, _ = conclude(fake(rambles, chat=("ask",)), **options)
    told = states(found, "fake")
    assert told.pop("for whom it refuses to answer") == NONE_FOUND
    assert set(told.values()) == {CANNOT_TELL}
    assert "it gives a word in 0 % of the answers" in found.headlines[0]


def test_a_quick_run_asks_about_some_groups_of_each_category_and_for_fewer_words(options):
    few = options | {"chat_groups": 4, "chat_top_k": 7}
    found, records = conclude(
        fake(Talker(), "chat", chat=("ask", "answer_word")), fake(Talker(), "other", chat=("ask",)), **few
    )
    asked = records.tables["chat", "posterior"]
    assert set(asked["ask_top_k"]) == {7}
    groups = {category: set() for category in ("first", "second")}
    for category, group in asked.select("tag_category", "tag_group").iter_rows():
        groups[category].add(group)
    assert [len(members) for members in groups.values()] == [4, 4]
    assert {*records.tables["other", "drawn"]["tag_group"]} == groups["first"] | groups["second"]
    # the prior is the mean over the groups that are asked about
    assert len(records.tables["chat", "prior"].filter(pl.col("tag_chunk") == 0)) == len(asked)
    assert "asked about 8 of the 30 groups" in notice_with(found, "chat was asked in words").text
    # a smaller number is a part of a larger one; another seed draws others
    _, fewer = conclude(fake(Talker(), "chat", chat=("ask",)), **options | {"chat_groups": 2})
    assert {*fewer.tables["chat", "drawn"]["tag_group"]} < groups["first"] | groups["second"]
    _, others = conclude(fake(Talker(), "chat", chat=("ask",)), seed=1, **options | {"chat_groups": 4})
    assert {*others.tables["chat", "drawn"]["tag_group"]} != groups["first"] | groups["second"]


def test_models_that_were_asked_about_other_groups_are_not_compared(options):
    def fills(request):
        every = Talker()(AnswerWord(messages=(Message(role="user", content=request.text),), words=tuple(WORDS)))
        known = dict(zip(WORDS, every.logprobs, strict=True))
        chosen = request.words or sorted(WORDS, key=lambda word: -known[word])[: request.top_k]
        return WordAnswer(words=tuple(chosen), logprobs=tuple(known[word] for word in chosen))

    masked = [fake(fills, name) for name in ("one", "two")]
    found, _ = conclude(*masked, fake(Talker(), "chat", chat=("ask",)), **options | {"chat_groups": 4})
    (similar,) = [table for table in found.tables if table.name == "similarity"]
    assert {row.labels["model"] for row in similar.rows} == {"one", "two"}
    assert {row.n for row in similar.rows if row.labels["category"] == "all"} == {30}
    (negativity,) = [table for table in found.tables if table.name == "negativity"]
    assert "chat" in {row.labels["model"] for row in negativity.rows}
