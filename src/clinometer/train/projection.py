"""The sentiment projection: a small network from the hidden states of a language model to sentiment."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from clinometer.errors import ModelError, StoreError
from clinometer.train.checkpoints import WorkFolder
from clinometer.train.quality import Accuracy
from clinometer.train.randomness import own_randomness, seed_at

WIDTH = 128
_EPOCHS = 40  # at most
_PATIENCE = 5  # epochs without a lower validation loss, after which the training ends
_BATCH = 128
_LEARNING_RATE, _WEIGHT_DECAY = 1e-3, 1e-2  # 1e-4 to 1e-3, 0.01 to 1: no measurable difference
_CONSTANT = 1e-6  # a dimension whose spread is a smaller part of its size than this says nothing


@final
class Projection(nn.Module):
    """A 3-layer perceptron of width 128 that distinguishes positive (1) from negative (0) hidden states.

        hidden(x) = ReLU(W₂ ReLU(W₁ x + b₁) + b₂),   logits = W₃ hidden(x) + b₃

    Huang et al. 2020, Reducing Sentiment Bias in Language Models via Counterfactual Evaluation, §4 and appendix B.
    Computed in the precision of its weights, also under autocast.
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.first = nn.Linear(dimensions, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, 2)

    def hidden(self, states: Tensor) -> Tensor:
        """Return the last hidden layer, which the sentiment regulariser compares: (…, d) to (…, 128)."""
        with torch.autocast(states.device.type, enabled=False):
            inner = self.first(states.to(self.first.weight.dtype)).relu()
            return self.second(inner).relu()  # type: ignore[no-any-return]

    def forward(self, states: Tensor) -> Tensor:
        """Return the logits of negative and positive: (…, d) to (…, 2)."""
        hidden = self.hidden(states)
        with torch.autocast(states.device.type, enabled=False):
            return self.last(hidden)  # type: ignore[no-any-return]

    @torch.no_grad()
    def take_in_scaling(self, mean: Tensor, scale: Tensor) -> None:
        """Change the first layer so that it reads x as it read (x − mean) · scale before."""
        weight = self.first.weight.double() * scale.double()
        self.first.bias.copy_(self.first.bias.double() - weight @ mean.double())
        self.first.weight.copy_(weight)


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
    Dimensions are standardised by the training examples, because one of a language model may be as long as all the
    others together; the scaling is then taken into the first layer, so the result reads hidden states as they
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
    """Return the mean and 1/standard deviation of each dimension; 0 for a constant one, which is then ignored."""
    spread, mean = torch.std_mean(states.double(), dim=0, correction=0)
    constant = spread <= _CONSTANT * mean.abs()
    scale = torch.where(constant, 0.0, 1 / spread.masked_fill(constant, 1.0))
    return mean.float(), scale.float()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedProjection:
    """A projection as it was saved, frozen and on the CPU, with its notes."""

    projection: Projection
    notes: dict[str, Any]


def save_projection(path: Path, projection: Projection, notes: Mapping[str, Any]) -> None:
    """Write a projection and its notes (as JSON has them); the file takes its name when it is whole and synced.

    The same projection and notes give the same bytes.
    """
    weights = {name: weight.detach().cpu().contiguous() for name, weight in projection.state_dict().items()}
    written = json.dumps(dict(notes), sort_keys=True)
    # one entry: several would come in an order that changes from run to run
    header = json.dumps({"notes": written, "checksum": _checksum(weights, written)}, sort_keys=True)
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        with WorkFolder(path).explained("the sentiment projection"):
            with temporary.open("wb") as file:
                file.write(save(weights, metadata={"projection": header}))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load_projection(path: Path) -> SavedProjection:
    """Read what `save_projection` wrote; StoreError for a file that is missing, damaged or something else."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read the sentiment projection {path}: {error.strerror}") from None
    try:
        weights = load(data)
        length = int.from_bytes(data[:8], "little")  # safetensors: the length of its JSON header, then the header
        header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["projection"])
        intact = header["checksum"] == _checksum(weights, header["notes"])
        notes = json.loads(header["notes"])
        with torch.device("meta"):  # no random first weights, which would use up the global generator
            projection = Projection(weights["first.weight"].shape[1])
        projection.load_state_dict(weights, assign=True)
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError, RuntimeError):
        intact = False
    if not intact:
        raise StoreError(f"{path} is damaged or not a sentiment projection; remove it to train a new one")
    return SavedProjection(projection=projection.requires_grad_(False).eval(), notes=notes)


def _checksum(weights: Mapping[str, Tensor], notes: str) -> str:
    digest = hashlib.sha256(notes.encode())
    for name, weight in sorted(weights.items()):
        digest.update(f"{name} {tuple(weight.shape)}".encode() + weight.contiguous().numpy().tobytes())
    return digest.hexdigest()
