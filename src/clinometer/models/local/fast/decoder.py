"""Runs a causal model and projects on the vocabulary only what is read."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import NewGELUActivation

from clinometer.models.local.fast.products import is_plain, product

# What some families do to the logits after the vocabulary matrix, by the field of their config that says so.
_FINISHES: dict[str, Callable[..., Tensor]] = {
    "final_logit_softcapping": lambda logits, by: torch.tanh(logits / by) * by,  # Gemma
    "logit_scale": lambda logits, by: logits * by,  # Cohere
    "logits_scaling": lambda logits, by: logits / by,  # Granite
}


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """What a pass leaves behind: something to project at each position, and the cache for the next tokens."""

    project: Callable[[Tensor, Tensor, Tensor | None], Tensor]
    cache: Any  # None: the model keeps none, and wants the whole text again

    def logits(self, rows: Tensor, places: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Return float32 logits (positions × tokens) at the given places of the given rows; None: every token."""
        return self.project(rows, places, tokens).float()

    def last(self, ids: Tensor, *, as_computed: bool = False) -> Tensor:
        """Return the logits at the last place of every row of the ids that were run; float32, or as computed."""
        rows = torch.arange(len(ids), device=ids.device)
        logits = self.project(rows, torch.full_like(rows, ids.shape[1] - 1), None)
        return logits if as_computed else logits.float()


class Decoder:
    """A causal model and its head, taken apart where that gives the same logits.

    Rows are padded at the right: a token never sees what comes after it, so padding is harmless in every family,
    recurrent ones included, and positions need no correction.
    """

    def __init__(self, model: Any) -> None:
        _fuse_activations(model)
        self.model = model
        self._head = model.get_output_embeddings()
        self.config: Any = model.config
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        self.size, self._finish = self._try_out()
        self.vocabulary: int = model.get_input_embeddings().num_embeddings  # tokens it reads, which may be fewer
        self._weight = self._aligned_weight() if self._finish else None

    @torch.inference_mode()
    def run(
        self,
        ids: Tensor,
        *,
        attention: Tensor | None = None,
        positions: Tensor | None = None,
        cache: Any = None,
        keep_cache: bool = False,
    ) -> States:
        """Run the model over rows of token ids; with a cache, the ids are those that follow the cached ones."""
        options: dict[str, Any] = {"input_ids": ids, "attention_mask": attention, "use_cache": keep_cache}
        if positions is not None:
            options["position_ids"] = positions
        if cache is not None:
            options["past_key_values"] = cache
        if self._finish is None:  # the whole projection, as the model itself does it
            output = self.model(**options)
            return States(project=_from_table(output.logits), cache=getattr(output, "past_key_values", None))
        with _without(self._head) as caught:
            output = self.model(**options)
        return States(
            project=_from_hidden(caught[0], self._head, self._finish, self._weight),
            cache=getattr(output, "past_key_values", None),
        )

    @property
    def projects(self) -> bool:
        """Whether what the model does after its last layer is understood, so that `project` can do it."""
        return self._finish is not None

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits, as computed, of hidden states (rows × size) that are ready for the head."""
        assert self._finish is not None, "ask `projects` first"
        return _logits(hidden, None, self._head, self._finish, self._weight)

    def _aligned_weight(self) -> Tensor | None:
        """Return the vocabulary matrix with a round number of rows: a GPU multiplies an odd number far slower."""
        missing = -self.size % 64
        if self.device.type != "cuda" or self.size % 8 == 0 or self._head.bias is not None:
            return None
        return nn.functional.pad(self._head.weight.detach(), (0, 0, 0, missing))

    @torch.inference_mode()
    def _try_out(self) -> tuple[int, Callable[[Tensor], Tensor] | None]:
        """Return the number of logits, and what the model does to them after its head; None: not understood."""
        model = self.model
        if self.device.type == "meta":  # without weights: to measure requests, not to answer them
            return int(model.config.get_text_config().vocab_size), None
        raw: list[Tensor] = []
        plain_head = is_plain(self._head)
        if plain_head:
            handle = self._head.register_forward_hook(lambda _module, _given, result: raw.append(result))
        try:
            logits = model(input_ids=torch.tensor([[0, 1, 2, 3]], device=model.device), use_cache=False).logits
        finally:
            if plain_head:
                handle.remove()
        size = int(logits.shape[-1])
        if len(raw) != 1:  # the model projects by other means
            return size, None
        config = model.config.get_text_config()
        finishes: list[Callable[[Tensor], Tensor]] = [
            functools.partial(finish, by=value)
            for field, finish in _FINISHES.items()
            if (value := getattr(config, field, None))
        ]
        rounding = 4 * torch.finfo(raw[0].dtype).eps
        for finish in (*finishes, _as_it_is):
            if torch.allclose(finish(raw[0].float()), logits.float(), rtol=rounding, atol=rounding):
                return size, finish
        return size, None


def _fuse_activations(model: Any) -> None:
    """Let PyTorch compute in one pass what transformers writes as eight: GPT-2's activation, the same formula."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is NewGELUActivation:
                setattr(module, name, nn.GELU(approximate="tanh"))


def _as_it_is(logits: Tensor) -> Tensor:
    return logits


def _from_table(table: Tensor) -> Callable[[Tensor, Tensor, Tensor | None], Tensor]:
    def project(rows: Tensor, places: Tensor, tokens: Tensor | None) -> Tensor:
        logits = table[rows, places]
        return logits if tokens is None else logits[:, tokens]

    return project


def _from_hidden(
    hidden: Tensor, head: nn.Linear, finish: Callable[[Tensor], Tensor], aligned: Tensor | None
) -> Callable[[Tensor, Tensor, Tensor | None], Tensor]:
    return lambda rows, places, tokens: _logits(hidden[rows, places], tokens, head, finish, aligned)


def _logits(
    hidden: Tensor,
    tokens: Tensor | None,
    head: nn.Linear,
    finish: Callable[[Tensor], Tensor],
    aligned: Tensor | None,
) -> Tensor:
    if tokens is None and aligned is not None:
        logits = nn.functional.linear(hidden, aligned)[:, : len(head.weight)]
    else:
        weight = head.weight if tokens is None else head.weight[tokens]
        bias = head.bias if head.bias is None or tokens is None else head.bias[tokens]
        logits = product(hidden, weight, bias)
    return logits if finish is _as_it_is else finish(logits.float())


@contextlib.contextmanager
def _without(head: nn.Linear) -> Iterator[list[Tensor]]:
    """Catch what a model hands to its head, and let it go on with next to nothing."""
    caught: list[Tensor] = []

    def catch(hidden: Tensor) -> Tensor:
        caught.append(hidden)
        return hidden[..., :1]

    head.forward = catch  # type: ignore[assignment, method-assign]
    try:
        yield caught
    finally:
        del head.forward
