"""Step 2 of the curriculum: training a sentiment projection on the hidden states of labelled sentences."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from clinometer.errors import ModelError
from clinometer.train.accuracy import Accuracy
from clinometer.train.projection import Projection
from clinometer.train.seeds import own_randomness, seed_at

_EPOCHS = 40  # at most
_PATIENCE = 5  # epochs without a lower validation loss, after which the training ends
_BATCH = 128
_LEARNING_RATE, _WEIGHT_DECAY = 1e-3, 1e-2  # 1e-4 to 1e-3, 0.01 to 1: no measurable difference
_CONSTANT = 1e-6  # a dimension whose spread is a smaller part of its size than this says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Hidden states of shape (n, d) and their labels of shape (n,): 1 positive, 0 negative."""

    states: Tensor
    labels: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedProjection:
    """A projection whose weights are frozen, and how good it is.

    `figures`: accuracy with its 95 % interval (low, high) on the n test examples; the majority share, which is the
    accuracy of always giving the test examples' more frequent label; the number of training examples and how many
    of them are positive and negative; the number of validation examples, and the epoch that they chose.
    """

    projection: Projection
    figures: dict[str, float]


def train_projection(training: Examples, validation: Examples, test: Examples, *, seed: int) -> TrainedProjection:
    """Train by cross-entropy with AdamW; the epoch with the least validation loss is the result.

    The test examples decide nothing, so that their accuracy is not flattered by the choice of the epoch.
    Dimensions are standardised by the training examples, because one of a language model's may be as long as all
    the others together; the scaling is then taken into the first layer, so the result reads hidden states as they
    are. Trained on one core, in seconds, so that the weights do not depend on how many there are.

    Args:
        training: examples to learn from; both labels must occur.
        validation: examples that choose the epoch.
        test: examples that accuracy is measured on.
        seed: of the first weights and the order of the examples.
    """
    training, validation, test = (_on_cpu(part) for part in (training, validation, test))
    labels = training.labels
    positive = int(labels.sum())
    if not 0 < positive < len(labels):
        raise ModelError(
            f"{positive} of {len(labels)} training examples are positive; expected both positive and negative ones"
        )
    mean, scale = _scaling(training.states)
    states, held = ((part.states - mean) * scale for part in (training, validation))
    with own_randomness(), _one_thread():
        torch.manual_seed(seed_at(seed, "projection"))
        projection = Projection(states.shape[1])
        optimiser = torch.optim.AdamW(projection.parameters(), lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
        best, best_epoch, best_weights = float("inf"), 0, copy.deepcopy(projection.state_dict())
        for epoch in range(1, _EPOCHS + 1):
            for rows in torch.split(torch.randperm(len(labels)), _BATCH):
                optimiser.zero_grad()
                cross_entropy(projection(states[rows]), labels[rows]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            with torch.no_grad():
                loss = float(cross_entropy(projection(held), validation.labels))
            if loss < best:
                best, best_epoch, best_weights = loss, epoch, copy.deepcopy(projection.state_dict())
            elif epoch - best_epoch >= _PATIENCE:
                break
    projection.load_state_dict(best_weights)
    projection.take_in_scaling(mean, scale)
    projection.requires_grad_(False).eval()
    right = int((projection(test.states).argmax(dim=1) == test.labels).sum())
    of_test = float(test.labels.double().mean())
    figures = Accuracy(right=right, n=len(test.labels)).figures() | {
        "majority": max(of_test, 1 - of_test),
        "training": len(labels),
        "positive": positive,
        "negative": len(labels) - positive,
        "validation": len(validation.labels),
        "epoch": best_epoch,
    }
    return TrainedProjection(projection=projection, figures=figures)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one core: sums come in one order, and threads on a busy machine do not wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _on_cpu(part: Examples) -> Examples:
    states = part.states.detach().to("cpu", torch.float32)
    if not states.isfinite().all():
        wrong = int((~states.isfinite().all(dim=1)).sum())
        raise ModelError(
            f"the hidden states of {wrong} of {len(states)} sentences are not finite; expected numbers: compute"
            " them in float32 or bfloat16"
        )
    return Examples(states=states, labels=part.labels.detach().to("cpu", torch.int64))


def _scaling(states: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and 1/standard deviation of each dimension; 0 for a constant one, which is so ignored."""
    spread, mean = torch.std_mean(states.double(), dim=0, correction=0)
    constant = spread <= _CONSTANT * mean.abs()
    scale = torch.where(constant, 0.0, 1 / spread.masked_fill(constant, 1.0))
    return mean.float(), scale.float()
