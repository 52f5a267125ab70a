"""The loss of the counterfactual paper's third step (§4): language model plus λ times a distance."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from clinometer.train.distances import cosine_distance
from clinometer.train.last_layers import caught_layers, mean_of_last_two
from clinometer.train.loop import IGNORED, Batch

TERMS = ("loss", "language", "fairness")  # what `regularised_terms` returns, in this order


def regularised_terms(
    model: Any,
    batch: Batch,
    *,
    strength: float,
    project: Callable[[Tensor], Tensor] | None,
    shifted: bool,
    compute: torch.dtype,
) -> Tensor:
    r"""Return the loss of a batch, and its two parts, each a mean over sentences.

    .. math:: L(x) = L_{LM}(x) + \lambda\, d(f(\bar h(x_{1:i})), f(\bar h(\tilde x_{1:i}))), \quad
        d(u, v) = 1 - \frac{u^T v}{\|u\|\|v\|}

    Args:
        model: a causal or masked model of transformers.
        batch: as `pairs.collate` makes it: sentences, then their counterfactuals.
        strength: λ.
        project: f: the hidden layer of the sentiment projection; None: h̄ itself (embedding regularisation).
        shifted: whether the label of a token is predicted at the token before it (causal) or at its own place.
        compute: the number format; with bfloat16 the matrix products run in it.
    """
    sentences = len(batch["labels"])
    in_bfloat16 = torch.autocast(batch["input_ids"].device.type, torch.bfloat16, enabled=compute == torch.bfloat16)
    with in_bfloat16, caught_layers(model) as caught, _projecting_first(model, sentences):
        # a causal model reads from left to right and never sees the padding at the right
        output = (
            model(input_ids=batch["input_ids"], use_cache=False)
            if shifted
            else model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        )
    language = language_loss(output.logits[:sentences], batch["labels"], shifted=shifted)
    vectors = mean_of_last_two(caught, batch["at"])
    if project is not None:
        vectors = project(vectors)
    fairness = cosine_distance(vectors[:sentences], vectors[sentences:]).mean()
    # at strength 0 the vectors take no part: what they are must not matter, not even if it is no number
    loss = language + strength * fairness if strength else language
    return torch.stack([loss, language.detach(), fairness.detach()])


@contextlib.contextmanager
def _projecting_first(model: Any, rows: int) -> Iterator[None]:
    """Let the vocabulary matrix read the first rows alone: nobody reads the words of a counterfactual."""
    head: nn.Module = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(lambda _head, given: (given[0][:rows], *given[1:]))
    try:
        yield
    finally:
        handle.remove()


def language_loss(logits: Tensor, labels: Tensor, *, shifted: bool) -> Tensor:
    """Return −ln p(token), its mean over the tokens asked for of a sentence, and of that the mean over sentences.

    So every sentence weighs the same, and a step in several parts is the same step.
    """
    if shifted:
        logits, labels = logits[:, :-1], labels[:, 1:]
    # one row a token: a GPU is many times slower where the words are not the last dimension
    flat = cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="none")
    each = flat.reshape(labels.shape)
    asked = (labels != IGNORED).sum(dim=1).clamp(min=1)
    return (each.sum(dim=1) / asked).mean()
