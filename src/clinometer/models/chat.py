"""Chat models: answers to a conversation, through the model's own chat template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM

from clinometer.errors import ModelError, RequestError
from clinometer.models.decoder import Decoder
from clinometer.models.rows import Prompt
from clinometer.models.sampling import Sampler, stop_tokens
from clinometer.models.source import ModelSource, describe
from clinometer.models.text import window_of
from clinometer.models.tokens import Tokens, load_tokenizer
from clinometer.models.weights import load_weights
from clinometer.types import Answer, Ask, ModelInfo, ModelSpec, Request, TextAnswer


@final
class ChatModel:
    """A causal model that was taught to answer. What a template adds, such as a system message, is kept."""

    def __init__(self, *, info: ModelInfo, model: Any, tokenizer: Any) -> None:
        self.info = info
        self._tokens = Tokens(tokenizer)
        self._sampler = Sampler(
            Decoder(model), tokenizer=tokenizer, stop=stop_tokens(model, tokenizer), window=info.window
        )

    @classmethod
    def load(cls, source: ModelSource, spec: ModelSpec, device: torch.device) -> ChatModel:
        """Load the model and its tokenizer on the device; a tokenizer without a chat template is an error."""
        tokenizer = load_tokenizer(source.folder, trust_remote_code=spec.trust_remote_code)
        if not tokenizer.chat_template:
            raise ModelError(
                f"the tokenizer of {source.name!r} has no chat template, so it is not known how it reads a"
                " conversation; choose an instruction-tuned model, or ask it as a causal one"
            )
        model = load_weights(AutoModelForCausalLM, source, spec, device)
        info = describe(
            source,
            kind="chat",
            capabilities=("ask",),
            dtype=model.dtype,
            parameters=model.num_parameters(),
            window=window_of(tokenizer, source.config),
        )
        return cls(info=info, model=model, tokenizer=tokenizer)

    def cost(self, requests: Sequence[Request]) -> list[int]:
        """Return a quarter of the tokens of each conversation and its answers; RequestError for a wrong one."""
        return [self._sampler.cost(self._prompt(request)) for request in requests]

    def ask(self, batch: Sequence[Ask]) -> list[TextAnswer]:
        """Answer each conversation n times; temperature 0 always takes the most probable token."""
        return [TextAnswer(texts=texts) for texts in self._sampler.texts([self._prompt(one) for one in batch])]

    @property
    def works_alone(self) -> bool:
        """Whether tokens become text while the next batch runs: on a GPU."""
        return self._sampler.on_gpu

    def launch(self, batch: Sequence[Request]) -> Callable[[], Sequence[Answer]]:
        """Answer a batch; the texts are ready when they are read."""
        read = self._sampler.begin([self._prompt(one) for one in batch])
        return lambda: [TextAnswer(texts=texts) for texts in read()]

    def _prompt(self, request: Request) -> Prompt:
        if not isinstance(request, Ask):
            raise RequestError(
                f"a chat model answers Ask requests, not {type(request).__name__}; choose another model"
            )
        if not any(message.role == "user" for message in request.messages):
            raise RequestError("a conversation without a message of the user cannot be answered; add one")
        tokenizer = self._tokens.tokenizer
        # a message must not be able to end its own turn
        turns = [{"role": turn.role, "content": self._tokens.as_text(turn.content)} for turn in request.messages]
        try:
            text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            raise RequestError(
                f"the chat template of {self.info.name!r} refuses the conversation: {error}"
            ) from error
        return Prompt(
            # the template writes the special tokens itself
            ids=np.asarray(tokenizer(text, add_special_tokens=False)["input_ids"], np.int32),
            text=text,
            n=request.n,
            first=0,
            max_new_tokens=request.max_new_tokens,
            temperature=request.temperature,
            seed=request.seed,
        )
