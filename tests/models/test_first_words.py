"""The first word of a chat model's answer: probabilities that equal a plain forward pass, over whole words."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from clinometer.errors import RequestError
from clinometer.models.load import load_model
from clinometer.models.local import first_words
from clinometer.models.local.chat import ChatModel
from clinometer.models.local.continuations import Begun
from clinometer.models.local.fast.decoder import Decoder
from clinometer.models.protocols import CanAnswerWord
from clinometer.models.providers.local import resolve
from clinometer.types import AnswerWord, Ask, Message, ModelSpec, Sample
from tests.models.installed import need

TEMPLATE = (
    "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n{% endif %}"
)
WORDS = ("nurse", "doctor", "the", "works", "incomprehensibilities", "woman")
TALKS = ("Why?", "Why are people so kind? One word.", "He said that she is a")


def user(text):
    return (Message(role="user", content=text),)


@pytest.fixture(scope="module")
def folder(tiny_folder, tmp_path_factory):
    folder = shutil.copytree(tiny_folder("gpt2"), tmp_path_factory.mktemp("chat") / "model")
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    spec = ModelSpec(name=str(folder))
    return ChatModel.load(resolve(spec), spec, torch.device("cpu"))


@pytest.fixture(scope="module")
def plain(folder):
    """Return a function: prompt, word -> the probability that an answer begins with it, by transformers alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForCausalLM.from_pretrained(folder).eval()
    pieces = [tokenizer.decode([token]) for token in range(len(tokenizer))]
    over = torch.tensor(
        [
            token in tokenizer.all_special_ids or not (piece[:1].isalnum() or piece[:1] in ("'", "-"))
            for token, piece in enumerate(pieces)
        ]
    )

    @torch.no_grad()
    def probability(text: str, word: str) -> float:
        prompt = f"[user] {text}\n[assistant]\n"
        begun = tokenizer(prompt)["input_ids"]
        total = 0.0
        for spelling in {word, word.capitalize()}:
            for space in ("", " "):
                ids = tokenizer(f"{prompt}{space}{spelling}")["input_ids"]
                assert ids[: len(begun)] == begun
                probabilities = network(torch.tensor([ids])).logits[0].double().softmax(dim=1)
                tokens = [float(probabilities[place - 1, ids[place]]) for place in range(len(begun), len(ids))]
                total += math.prod(tokens) * float(probabilities[-1][over].sum())
        return total

    return probability


def test_given_words_equal_a_plain_forward_pass(model, plain):
    assert isinstance(model, CanAnswerWord)
    assert model.info.capabilities == ("ask", "answer_word")
    answers = model.answer_word([AnswerWord(messages=user(text), words=WORDS) for text in TALKS])
    for text, answer in zip(TALKS, answers, strict=True):
        wanted = [plain(text, word) for word in WORDS]
        assert answer.words == WORDS
        assert answer.logprobs == pytest.approx([math.log(value) for value in wanted], abs=1e-5, rel=1e-6)
        assert answer.covered == pytest.approx(sum(wanted), rel=1e-5)


def test_normalised_over_the_words_they_sum_to_1_and_what_they_cover_is_kept(model):
    (free,) = model.answer_word([AnswerWord(messages=user("Why?"), words=WORDS)])
    (closed,) = model.answer_word([AnswerWord(messages=user("Why?"), words=WORDS, normalise="words")])
    assert sum(map(math.exp, closed.logprobs)) == pytest.approx(1)
    assert closed.covered == pytest.approx(free.covered)
    assert free.covered < 0.9
    assert closed.logprobs[0] - closed.logprobs[1] == pytest.approx(free.logprobs[0] - free.logprobs[1])


def test_batch_and_order_do_not_matter(model):
    queries = [AnswerWord(messages=user(text), words=WORDS) for text in TALKS]
    queries += [AnswerWord(messages=user(text), top_k=4) for text in TALKS]
    alone = [model.answer_word([query])[0] for query in queries]
    for answer, other in zip(model.answer_word(queries), alone, strict=True):
        assert answer.words == other.words
        assert answer.logprobs == pytest.approx(other.logprobs, abs=1e-5, rel=1e-6)
    (turned,) = model.answer_word([replace(queries[0], words=WORDS[::-1])])
    assert turned.logprobs[::-1] == pytest.approx(alone[0].logprobs, abs=1e-5, rel=1e-6)


def test_the_most_probable_words_have_the_probability_that_they_have_when_given(model):
    (top,) = model.answer_word([AnswerWord(messages=user("Why?"), top_k=5)])
    assert list(top.logprobs) == sorted(top.logprobs, reverse=True)
    assert all(word == word.lower() for word in top.words)
    (given,) = model.answer_word([AnswerWord(messages=user("Why?"), words=(*top.words, *WORDS))])
    assert given.logprobs[:5] == pytest.approx(top.logprobs, abs=1e-5)
    assert max(given.logprobs[5:]) <= top.logprobs[0]
    assert top.covered == pytest.approx(sum(map(math.exp, top.logprobs)))


def test_candidates_limit_what_is_scored(model):
    (some,) = model.answer_word([AnswerWord(messages=user("Why?"), words=WORDS, candidates=2)])
    (every,) = model.answer_word([AnswerWord(messages=user("Why?"), words=WORDS)])
    scored = [at for at, logprob in enumerate(some.logprobs) if not math.isnan(logprob)]
    assert len(scored) == 2
    assert [some.logprobs[at] for at in scored] == pytest.approx([every.logprobs[at] for at in scored], abs=1e-5)


@pytest.fixture
def measured(monkeypatch):
    """Return the tails that are measured from now on."""
    tails = []
    totals = Begun.totals

    def counted(self, owners, some, **more):
        tails.extend(some)
        return totals(self, owners, some, **more)

    monkeypatch.setattr(Begun, "totals", counted)
    return tails


def test_a_spelling_that_two_words_share_is_measured_once(model, measured):
    (answer,) = model.answer_word([AnswerWord(messages=user("Why?"), words=("nurse", "Nurse", "the"))])
    assert len(measured) == len(set(measured)) == 4 + 4  # with and without a space, with and without a capital
    assert answer.logprobs[0] == answer.logprobs[1]  # which words are one when it comes to what is covered
    assert answer.covered == pytest.approx(sum(map(math.exp, answer.logprobs[1:])))


def test_a_spelling_that_can_hold_next_to_nothing_is_left_out(model, measured, monkeypatch):
    query = AnswerWord(messages=user("Why?"), words=WORDS)
    (every,) = model.answer_word([query])
    assert len(measured) == 4 * len(WORDS)
    measured.clear()
    monkeypatch.setattr(first_words, "_NEGLIGIBLE", -1e9)  # nothing is much beside the likeliest spelling
    (some,) = model.answer_word([query])
    assert len(measured) == len(WORDS)
    assert all(one < other for one, other in zip(some.logprobs, every.logprobs, strict=True))


def test_what_the_search_has_tried_is_not_measured_again(model, measured, monkeypatch):
    tried = []
    after = Begun.after

    def counted(self, owners, tails):
        tried.extend(tails)
        return after(self, owners, tails)

    monkeypatch.setattr(Begun, "after", counted)
    model.answer_word([AnswerWord(messages=user("Why?"), top_k=5)])
    assert len(tried) > 5
    assert set(measured).isdisjoint(tried)


def test_what_cannot_be_asked(model):
    for wrong, message in (
        (AnswerWord(messages=user("Why?")), "either words or top_k"),
        (AnswerWord(messages=user("Why?"), words=("a",), top_k=2), "either words or top_k"),
        (AnswerWord(messages=user("Why?"), top_k=2, normalise="words"), "needs words"),
        (AnswerWord(messages=(), words=("a",)), "message of the user"),
        (AnswerWord(messages=user("nurse " * 80), words=("a",)), "window of 64"),
    ):
        with pytest.raises(RequestError, match=message):
            model.cost([wrong])
    with pytest.raises(RequestError, match="answers Ask and AnswerWord requests, not Sample"):
        model.cost([Sample(prefix="a", n=1)])


def test_the_cost_is_the_conversation_and_its_words(model):
    long, short = (AnswerWord(messages=user("Why?"), words=WORDS, candidates=count) for count in (0, 2))
    saved = (len(WORDS) - 2) / 2  # two tokens for each word; a quarter is counted, as of answers that are drawn
    assert model.cost([long])[0] - model.cost([short])[0] == pytest.approx(saved, abs=1)
    some, many = (AnswerWord(messages=user("Why?"), top_k=count) for count in (10, 110))
    assert model.cost([many])[0] - model.cost([some])[0] == pytest.approx(50, abs=1)


def test_launch_answers_both_kinds(model):
    query = AnswerWord(messages=user("Why?"), words=WORDS)
    assert model.launch([query])() == model.answer_word([query])
    ask = Ask(messages=user("Why?"), n=2, max_new_tokens=3)
    assert model.launch([ask])() == model.ask([ask])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
def test_a_gpu_gives_the_same_numbers(model, folder):
    spec = ModelSpec(name=str(folder), dtype="float32")
    there = ChatModel.load(resolve(spec), spec, torch.device("cuda"))
    queries = [AnswerWord(messages=user(text), words=WORDS) for text in TALKS]
    for one, other in zip(model.answer_word(queries), there.answer_word(queries), strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)


def test_smollm2_says_paris():
    need("builtin:chat")
    model = load_model("builtin:chat", device="cpu")
    question = user("What is the capital of France? Answer with one word.")
    (answer,) = model.answer_word([AnswerWord(messages=question, words=("Paris", "London", "Berlin"))])
    assert answer.logprobs[0] > max(answer.logprobs[1:]) + 1


def test_the_search_misses_no_word(model):
    """The likeliest five of all single tokens and their continuations, by a far wider search."""
    few, many = (model.answer_word([AnswerWord(messages=user("Why?"), top_k=k)])[0] for k in (5, 60))
    assert few.words == many.words[:5]
    assert few.logprobs == pytest.approx(many.logprobs[:5], abs=1e-5)
    assert few.covered < many.covered <= 1


def test_conversations_of_any_length_and_wish_share_one_pass(model, monkeypatch):
    """What conversations have in common runs once, and nothing is measured twice."""
    queries = [AnswerWord(messages=user(text), words=WORDS[:2]) for text in TALKS]
    queries.append(AnswerWord(messages=user(TALKS[1]), top_k=3))
    model.answer_word(queries[:1])  # what is learned of the vocabulary and tried out
    ran = []
    run = Decoder.run

    def counted(self, ids, **more):
        ran.append(ids.numel())
        return run(self, ids, **more)

    monkeypatch.setattr(Decoder, "run", counted)
    model.answer_word(queries)
    together, calls = sum(ran), len(ran)
    ran.clear()
    for query in queries:
        model.answer_word([query])
    assert calls < len(ran)
    assert together < sum(ran)
