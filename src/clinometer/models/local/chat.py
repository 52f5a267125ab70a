"""Models that were taught to answer: conversations go through the template that comes with the tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM

from clinometer.errors import ModelError, RequestError
from clinometer.models.local.continuations import Continuations
from clinometer.models.local.fast.decoder import Decoder
from clinometer.models.local.fast.draw import Prompt
from clinometer.models.local.fast.products import speed_up_products
from clinometer.models.local.fast.sampling import Sampler, stop_tokens
from clinometer.models.local.first_words import FirstWords
from clinometer.models.local.loading import load_tokenizer, load_with
from clinometer.models.local.text import Ids, Tokens
from clinometer.models.providers.local import ModelSource
from clinometer.models.reasoning import END, apart, begins_thinking
from clinometer.types import (
    Answer,
    AnswerWord,
    Ask,
    Message,
    ModelInfo,
    ModelSpec,
    Request,
    TextAnswer,
    WordAnswer,
)


@final
class ChatModel:
    """A causal model that was taught to answer. What a template adds, such as a system message, is kept."""

    def __init__(self, *, info: ModelInfo, model: Any, tokenizer: Any) -> None:
        self.info = info
        self._tokens = Tokens(tokenizer)
        decoder = Decoder(model)
        stop = stop_tokens(model, tokenizer)
        self._sampler = Sampler(decoder, tokenizer=tokenizer, stop=stop, window=info.window)
        self._first_words = FirstWords(Continuations(decoder), self._tokens)

    @classmethod
    def load(cls, source: ModelSource, spec: ModelSpec, device: torch.device) -> ChatModel:
        """Load the model and its tokenizer on the device; a tokenizer without a chat template is an error."""
        tokenizer = load_tokenizer(source.tokenizer_folder, trust_remote_code=spec.trust_remote_code)
        if not tokenizer.chat_template:
            raise ModelError(
                f"the tokenizer of {source.name!r} has no chat template, so it is not known how it reads a"
                " conversation; choose an instruction-tuned model, or ask it as a causal one (--as causal)"
            )
        loaded = load_with(tokenizer, AutoModelForCausalLM, source, spec, device, kind="chat")
        speed_up_products(loaded.model)
        return cls(info=loaded.info, model=loaded.model, tokenizer=loaded.tokenizer)

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return a quarter of the tokens of each conversation and its answers; RequestError for a wrong one.

        For an `AnswerWord`, the tokens that run: the conversation, and the words that are tried after it.
        """
        return [self._cost_of(request) for request in requests]

    def ask(self, batch: Sequence[Ask]) -> list[TextAnswer]:
        """Answer each conversation n times; temperature 0 always takes the most probable token.

        What a model thinks aloud before its answer is kept apart: `TextAnswer.reasoning`.
        """
        prompts = [self._prompt(one) for one in batch]
        return [
            _answer(prompt, texts) for prompt, texts in zip(prompts, self._sampler.texts(prompts), strict=True)
        ]

    def answer_word(self, batch: Sequence[AnswerWord]) -> list[WordAnswer]:
        """Answer with which word each answer begins, by its probability."""
        texts = [self._at_once(query.messages) for query in batch]
        return self._first_words.answers(batch, [self._ids(text) for text in texts], texts)

    @property
    def runs_in_background(self) -> bool:
        """Whether tokens become text while the next batch runs: on a GPU."""
        return self._sampler.on_gpu

    def launch(self, batch: Sequence[Request]) -> Callable[[], Sequence[Answer]]:
        """Answer a batch; the texts are ready when they are read."""
        asked = [request for request in batch if isinstance(request, Ask)]
        if not asked:
            answers = self.answer_word([request for request in batch if isinstance(request, AnswerWord)])
            return lambda: answers
        prompts = [self._prompt(one) for one in asked]
        read = self._sampler.begin(prompts)
        return lambda: [_answer(prompt, texts) for prompt, texts in zip(prompts, read(), strict=True)]

    def _cost_of(self, request: Request) -> int:
        if isinstance(request, Ask):
            return self._sampler.cost(self._prompt(request))
        if isinstance(request, AnswerWord):
            self._first_words.check(request)
            ids = self._ids(self._at_once(request.messages))
            if self.info.window and len(ids) + 1 > self.info.window:
                raise RequestError(
                    f"a conversation of {len(ids)} tokens leaves no room for an answer in the model's window of"
                    f" {self.info.window}; shorten it"
                )
            return self._first_words.cost(request, ids)
        raise RequestError(
            f"a chat model answers Ask and AnswerWord requests, not {type(request).__name__}; choose another model"
        )

    def _prompt(self, asked: Ask) -> Prompt:
        text = self._rendered(asked.messages)
        return Prompt(
            ids=self._ids(text),
            text=text,
            n=asked.n,
            first=0,
            max_new_tokens=asked.max_new_tokens,
            temperature=asked.temperature,
            seed=asked.seed,
        )

    def _at_once(self, messages: Sequence[Message]) -> str:
        """Return a conversation up to where the answer begins; a model that would think first is told not to."""
        text = self._rendered(
            messages, enable_thinking=False
        )  # the templates that know this word write an empty thought
        return f"{text.rstrip()}\n\n{END}\n\n" if begins_thinking(text) else text

    def _rendered(self, messages: Sequence[Message], **options: bool) -> str:
        """Return a conversation as its template writes it, up to where the answer begins."""
        if not any(message.role == "user" for message in messages):
            raise RequestError("a conversation without a message of the user cannot be answered; add one")
        # a message must not be able to end its own turn
        turns = [{"role": turn.role, "content": self._tokens.as_text(turn.content)} for turn in messages]
        try:
            text: str = self._tokens.tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True, **options
            )
        except TemplateError as error:
            raise RequestError(
                f"the chat template of {self.info.name!r} refuses the conversation: {error}"
            ) from error
        return text

    def _ids(self, text: str) -> Ids:
        # the template writes the special tokens itself
        return np.asarray(self._tokens.tokenizer(text, add_special_tokens=False)["input_ids"], np.int32)


def _answer(prompt: Prompt, texts: Sequence[str]) -> TextAnswer:
    """Part answers from what the model thought aloud before them."""
    parts = [apart(text, begun=begins_thinking(prompt.text)) for text in texts]
    thought = any(part.reasoning for part in parts)
    return TextAnswer(
        texts=tuple(part.answer for part in parts),
        reasoning=tuple(part.reasoning for part in parts) if thought else (),
    )
