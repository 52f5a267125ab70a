"""What a reasoning model thinks aloud is kept, and is not its answer."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from clinometer.models.local.chat import ChatModel
from clinometer.models.providers.local import resolve
from clinometer.models.reasoning import apart
from clinometer.types import AnswerWord, Ask, Message, ModelSpec

PLAIN = (
    "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n"
)
BEGUN = PLAIN + "<think>\n{% endif %}"
CHOICE = (
    PLAIN
    + "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
TALK = (Message(role="user", content="Why?"),)


@pytest.mark.parametrize(
    ("text", "begun", "answer", "reasoning"),
    [
        ("Kind.", False, "Kind.", ""),
        ("<think>a\nb</think>\n\nKind.", False, "Kind.", "a\nb"),
        ("\n<think>\n\n</think>\n\nKind.", False, "Kind.", ""),
        ("a b</think>Kind.", True, "Kind.", "a b"),
        ("<think>it never ends", False, "", "it never ends"),
        ("never ends", True, "", "never ends"),
        # a mark inside an answer is part of the answer
        ("The tag <think> begins a thought.</think>", False, "The tag <think> begins a thought.</think>", ""),
    ],
)
def test_thought_and_answer_are_parted(text, begun, answer, reasoning):
    found = apart(text, begun=begun)
    assert (found.answer, found.reasoning) == (answer, reasoning)


@pytest.fixture
def chat(tiny_folder, tmp_path):
    def make(template, *, special=False):
        folder = shutil.copytree(tiny_folder("gpt2"), tmp_path / "model")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        if special:  # as many as the model has rows for: two words of the corpus become marks
            tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
        tokenizer.save_pretrained(folder)
        (folder / "chat_template.jinja").write_text(template)
        spec = ModelSpec(name=str(folder))
        return ChatModel.load(resolve(spec), spec, torch.device("cpu"))

    return make


def says(model, monkeypatch, *texts):
    monkeypatch.setattr(model._sampler, "texts", lambda prompts: [texts for _ in prompts])


def test_answers_come_without_what_was_thought(chat, monkeypatch):
    model = chat(PLAIN + "{% endif %}")
    says(model, monkeypatch, "<think>hm</think>Kind.", "Angry.")
    (answer,) = model.ask([Ask(messages=TALK, n=2)])
    assert answer.texts == ("Kind.", "Angry.")
    assert answer.reasoning == ("hm", "")
    says(model, monkeypatch, "Kind.", "Angry.")
    (plain,) = model.ask([Ask(messages=TALK, n=2)])
    assert plain.reasoning == ()


def test_a_template_that_begins_the_thought(chat, monkeypatch):
    model = chat(BEGUN)
    says(model, monkeypatch, "hm</think>Kind.")
    assert model.ask([Ask(messages=TALK)])[0].texts == ("Kind.",)
    # the first word of the answer is read after the thought is ended
    assert model._at_once(TALK).endswith("<think>\n\n</think>\n\n")
    (answer,) = model.answer_word([AnswerWord(messages=TALK, words=("nurse", "doctor"))])
    assert np.isfinite(answer.logprobs).all()


def test_a_template_that_can_be_told_not_to_think(chat):
    model = chat(CHOICE)
    assert model._at_once(TALK).endswith("[assistant]\n<think>\n\n</think>\n\n")
    assert model._prompt(Ask(messages=TALK)).text.endswith("[assistant]\n")


def test_marks_that_are_special_tokens_are_still_seen(chat):
    model = chat(PLAIN + "{% endif %}", special=True)
    tokenizer = model._tokens.tokenizer
    begin, end = tokenizer.convert_tokens_to_ids(["<think>", "</think>"])
    thought, answer = (tokenizer(text)["input_ids"] for text in (" great film", " nurse"))
    row = [begin, *thought, end, *answer, tokenizer.eos_token_id]
    assert model._sampler._texts_of([row, answer]) == ["<think> great film</think> nurse", " nurse"]
