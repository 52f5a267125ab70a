"""The loss of the counterfactual paper's third step (§4): language model plus λ times a distance."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from clinometer.errors import ModelError
from clinometer.train.loop import IGNORED, Batch

TERMS = ("loss", "language", "fairness")  # what `regularised_terms` returns, in this order
_NOTHING = 1e-24  # squared length below which a vector has no direction; keeps gradients, of order 1/‖a‖, finite


def regularised_terms(
    model: Any,
    batch: Batch,
    *,
    strength: float,
    project: Callable[[Tensor], Tensor] | None,
    shifted: bool,
    compute: torch.dtype,
) -> Tensor:
    r"""Return the loss of a batch, and its two parts, each a mean over texts.

    .. math:: L(x) = L_{LM}(x) + \frac{\lambda}{|I|} \sum_{i \in I}
        d(f(\bar h(x_{1:i})), f(\bar h(\tilde x_{1:i}))), \quad d(u, v) = 1 - \frac{u^T v}{\|u\|\|v\|}

    I are the sensitive tokens of x that are compared; of ordinary text, which has none, L is the language-model
    loss alone. Where the counterfactual has labels, too, L_LM is the mean of both.

    Args:
        model: a causal or masked model of transformers.
        batch: as `pairs.collate` makes it: texts, then their counterfactuals.
        strength: λ.
        project: f: the hidden layer of the sentiment projection; None: h̄ itself (embedding regularisation).
        shifted: whether the label of a token is predicted at the token before it (causal) or at its own place.
        compute: the number format; with bfloat16 the matrix products run in it.
    """
    asked = len(batch["labels"])
    in_bfloat16 = torch.autocast(batch["input_ids"].device.type, torch.bfloat16, enabled=compute == torch.bfloat16)
    with in_bfloat16, caught_layers(model) as caught, _projecting_first(model, asked):
        # a causal model reads from left to right and never sees the padding at the right
        output = (
            model(input_ids=batch["input_ids"], use_cache=False)
            if shifted
            else model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        )
    language = language_loss(output.logits[:asked], batch["labels"], shifted=shifted, weights=batch["weights"])
    vectors = mean_of_last_two(caught, batch["at"].flatten(), rows=batch["rows"].flatten())
    if project is not None:
        vectors = project(vectors)
    places = batch["at"].shape[1]
    distances = cosine_distance(vectors[:places], vectors[places:])
    fairness = (distances * batch["shares"]).sum() / batch["weights"].sum()  # there are as many rows as weight
    # at strength 0 the vectors must not matter, not even if they are not numbers
    loss = language + strength * fairness if strength else language
    return torch.stack([loss, language.detach(), fairness.detach()])


@contextlib.contextmanager
def _projecting_first(model: Any, rows: int) -> Iterator[None]:
    """Project only the first rows to the vocabulary: words of a counterfactual without labels are not needed."""
    head: nn.Module = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(lambda _head, given: (given[0][:rows], *given[1:]))
    try:
        yield
    finally:
        handle.remove()


def language_loss(logits: Tensor, labels: Tensor, *, shifted: bool, weights: Tensor | None = None) -> Tensor:
    """Return −ln p(token), averaged over the tokens asked for of each text, then over texts by their weights.

    So every text has its weight, whatever its length, and a step in several parts is the same step.
    """
    if shifted:
        logits, labels = logits[:, :-1], labels[:, 1:]
    # one row a token: a GPU is many times slower where the words are not the last dimension
    flat = cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="none")
    each = flat.reshape(labels.shape)
    asked = (labels != IGNORED).sum(dim=1).clamp(min=1)
    of_texts = each.sum(dim=1) / asked
    return of_texts.mean() if weights is None else (of_texts * weights).sum() / weights.sum()


def cosine_distance(a: Tensor, b: Tensor) -> Tensor:
    r"""Return the cosine distance of each pair of rows.

        d(a, b) = 1 − a·b / (‖a‖ ‖b‖)

    Huang et al. 2020, Reducing Sentiment Bias in Language Models via Counterfactual Evaluation, §4. A hidden layer
    with ReLU can be all zeros, where the formula is 0/0. Two zero vectors are equal, so their distance is 0; a
    zero vector shares no direction with any other, so its distance to one is 1, as if they were orthogonal.
    Computed in float32 at least, also where autocast makes the vectors bfloat16: close vectors differ by less than
    its rounding.

    Args:
        a: of shape (n, d).
        b: of shape (n, d).

    Returns:
        distances from 0 to 2, of shape (n,).

    >>> a, b = torch.tensor([[1.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 2.0], [4.0, 3.0]])
    >>> [round(distance, 3) for distance in cosine_distance(a, b).tolist()]
    [1.0, 0.04]
    """
    a, b = (vectors.to(torch.promote_types(vectors.dtype, torch.float32)) for vectors in (a, b))
    square_a, square_b = (a * a).sum(-1), (b * b).sum(-1)
    none_a, none_b = square_a < _NOTHING, square_b < _NOTHING
    # 1 in place of a zero length, before the root: the root's gradient at 0 is infinite, and times 0 it is NaN
    lengths = square_a.masked_fill(none_a, 1.0).sqrt() * square_b.masked_fill(none_b, 1.0).sqrt()
    return (1 - (a * b).sum(-1) / lengths).masked_fill(none_a & none_b, 0.0)


@contextlib.contextmanager
def caught_layers(model: Any) -> Iterator[list[Tensor]]:
    """Catch what the last two layers give while the model is called: each rows × places × width."""
    caught: list[Tensor] = []

    def catch(_layer: nn.Module, _given: Any, result: Any) -> None:
        caught.append(result[0] if isinstance(result, tuple) else result)

    handles = [layer.register_forward_hook(catch) for layer in layers_of(model)[-2:]]
    try:
        yield caught
    finally:
        for handle in handles:
            handle.remove()


def mean_of_last_two(caught: list[Tensor], at: Tensor, *, rows: Tensor | None = None) -> Tensor:
    """Return h̄, by which the paper compares two prefixes, at places of rows, in float32 (places × width).

    Without `rows`, there is one place in each row, in their order.

    It is the mean of what the last two layers themselves give. What transformers calls the last hidden state has
    gone through one more normalisation in most families: in SmolLM2 it is then 15 times shorter than that of the
    layer before, and a mean of the two would depend on that other layer alone.
    """
    before, last = caught
    if rows is None:
        rows = torch.arange(len(at), device=at.device)
    return (before[rows, at].float() + last[rows, at].float()) / 2


def layers_of(model: Any) -> nn.ModuleList:
    """Return the layers of a model, in order: a list as long as its config says."""
    config = model.config.get_text_config()
    for module in () if config.is_encoder_decoder else model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == config.num_hidden_layers >= 2:
            return module
    raise ModelError(
        f"the layers of this {config.model_type} model cannot be told apart (it has fewer than two, uses one"
        " several times, or encodes and decodes); choose another model to mitigate"
    )
