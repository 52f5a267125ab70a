"""The steps of a training, by the `Trainer` of transformers, so that a killed one ends in the same weights.

What the Trainer saves for itself are pickles, so it saves nothing here: after a step, weights and optimiser go
into one safetensors file (`work.py`). No generator is saved at all, because every random choice depends on the
seed and the step alone. So a resumed training is simply a Trainer that is given the weights, the optimiser's
state and the rows that are left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from clinometer.engine.progress import Progress
from clinometer.errors import InputError, ModelError
from clinometer.models.local.loading import quiet
from clinometer.train.base import BaseModel
from clinometer.train.checkpoints import Saved, WorkFolder
from clinometer.train.processes import (
    is_main_process,
    mean_over_processes,
    process_count,
    process_place,
)
from clinometer.train.randomness import own_randomness, seed_at

_WEIGHT, _BEST, _OPTIMISER = "weight.", "best.", "optimiser."
IGNORED = -100  # the label of a token that is not asked for
_SAVING_SHARE = 0.05  # of the time, at most: a large model is saved less often than asked

Row = Mapping[str, Any]
Batch = dict[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What is trained: rows in their order, how they become a batch, and the loss of a batch."""

    label: str
    rows: int
    row_at: Callable[[int], Row]  # the row at a place of the training, the same at every call
    collate: Callable[[Sequence[Row]], Batch]
    loss: Callable[[Any, Batch], Tensor]  # the loss, or its terms: first the loss itself, then what to keep of it
    batch: int  # rows in a step, on all devices together
    learning_rate: float
    seed: int
    accumulate: int = 1  # parts in which the rows of a step are computed, one after the other
    # the weights with the highest score (the first, if equal) are the result; without a score, the last ones
    score: Callable[[Any], float] | None = None
    score_every: int = 0

    @property
    def steps(self) -> int:
        """The number of steps."""
        return math.ceil(self.rows / self.batch)


@dataclass(slots=True, kw_only=True)
class History:
    """What has happened so far: every loss, every score, and what was measured before the first step."""

    terms: list[list[float]] = field(default_factory=list)  # of every step
    scores: dict[int, float] = field(default_factory=dict)  # by step
    before: dict[str, Any] = field(default_factory=dict)

    @property
    def losses(self) -> list[float]:
        """The loss of every step."""
        return [terms[0] for terms in self.terms]

    def loss_figures(self) -> dict[str, float]:
        """Return the mean loss of the first and of the last tenth of the steps, as a card has it."""
        tenth = max(1, len(self.terms) // 10)
        parts = {"first": self.losses[:tenth], "last": self.losses[-tenth:]}
        return {f"loss_of_{part}_tenth": float(np.mean(losses)) for part, losses in parts.items()}

    @property
    def best_step(self) -> int:
        """The step with the highest score, the first of equals; 0 where nothing was scored."""
        return max(self.scores, key=lambda step: (self.scores[step], -step), default=0)


def train(
    base: BaseModel,
    recipe: Recipe,
    work: WorkFolder,
    *,
    save_seconds: float,
    progress: Progress,
    measure_before: Callable[[], dict[str, Any]] = dict,
) -> History:
    """Train the base model in place, from the last saved step on; afterwards it holds the weights to keep."""
    saved = work.load(progress)
    if saved is None:
        state = _State(base.model, History(before=measure_before()))
    else:
        state = _State.restored(base.model, saved)
    progress.begin(recipe.label, total=recipe.steps, done=state.step, unit="step")
    if state.step < recipe.steps:
        with own_randomness(), quiet():
            _run(base, recipe, state, _Saver(state, work, save_seconds, last=recipe.steps), progress)
    progress.end()
    if state.best:
        state.put(state.best)
    base.model.eval()
    return state.history


def _run(base: BaseModel, recipe: Recipe, state: _State, saver: _Saver, progress: Progress) -> None:
    start = state.step
    trained = [weight for weight in base.model.parameters() if weight.requires_grad]
    on_gpu = base.device.type == "cuda"
    optimiser = torch.optim.AdamW(trained, lr=recipe.learning_rate, weight_decay=0.0, fused=on_gpu)
    arguments = TrainingArguments(
        output_dir=str(saver.work.path),
        per_device_train_batch_size=_rows_at_once(recipe),
        gradient_accumulation_steps=recipe.accumulate,
        num_train_epochs=1,  # the rows of several epochs are one list here
        max_grad_norm=1.0,
        use_cpu=not on_gpu,
        save_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,  # it would read every loss, and that stalls a GPU
        report_to="none",
        disable_tqdm=True,
        train_sampling_strategy="sequential",  # the order is the recipe's
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        seed=recipe.seed % (1 << 32),
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # several GPUs would change what a batch is
    losses = _Losses(state.history)
    trainer = _LossTrainer(
        model=_Objective(base.model, recipe.loss),
        args=arguments,
        train_dataset=_Rows(recipe, first=start * recipe.batch),
        data_collator=recipe.collate,
        optimizers=(optimiser, LambdaLR(optimiser, lambda step: max(0.0, 1 - (start + step) / recipe.steps))),
        callbacks=[_Watcher(base.model, recipe, state, losses, saver, progress)],
    )
    trainer.losses = losses
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def _rows_at_once(recipe: Recipe) -> int:
    """Return how many rows one device computes at a time; the batch must come out even."""
    parts = recipe.accumulate * process_count()
    if recipe.batch % parts:
        raise InputError(
            f"a batch of {recipe.batch} cannot be divided into {recipe.accumulate} accumulated parts on"
            f" {process_count()} devices; give a batch that is a multiple of {parts}"
        )
    return recipe.batch // parts


@final
class _Objective(nn.Module):
    """The model with its loss as one module, so that what wraps a module for several GPUs sees every pass."""

    accepts_loss_kwargs = False  # parts of a step are averaged by the Trainer

    def __init__(self, model: Any, loss: Callable[[Any, Batch], Tensor]) -> None:
        super().__init__()
        self.model, self._loss = model, loss

    def forward(self, batch: Batch) -> Tensor:
        """Return the terms of the loss."""
        return self._loss(self.model, batch).reshape(-1)


@final
class _Losses:
    """The terms of each step's loss, on the device until they are needed, because reading them stalls a GPU."""

    _AT_MOST = 50  # steps

    def __init__(self, history: History) -> None:
        self._history = history
        self._parts: list[Tensor] = []
        self._steps: list[Tensor] = []

    def add(self, terms: Tensor) -> None:
        """Take the terms of a part of a step."""
        self._parts.append(terms.detach())

    def end_step(self) -> None:
        """The parts so far are one step."""
        self._steps.append(mean_over_processes(torch.stack(self._parts).mean(dim=0)))
        self._parts = []
        if len(self._steps) >= self._AT_MOST:
            self.read()

    def read(self) -> None:
        """Move the losses into the history; ModelError where a loss is not a finite number."""
        if self._steps:
            found = torch.stack(self._steps).float().cpu()
            self._steps = []
            for terms in found.tolist():
                self._history.terms.append(terms)
                if not math.isfinite(terms[0]):
                    raise ModelError(
                        f"the loss of step {len(self._history.terms)} is {terms[0]}: the training has diverged;"
                        " give a lower --learning-rate and another --out"
                    )


@final
class _LossTrainer(Trainer):  # type: ignore[misc]
    """The Trainer with a loss of our own, every value of which is kept."""

    losses: _Losses

    def compute_loss(
        self, model: Any, inputs: Batch, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        terms: Tensor = model(inputs)
        self.losses.add(terms)
        return terms[0]


@final
class _Rows(Dataset[Row]):
    """The rows that are left to train on."""

    def __init__(self, recipe: Recipe, *, first: int) -> None:
        self._recipe, self._first = recipe, first

    def __len__(self) -> int:
        return self._recipe.rows - self._first

    def __getitem__(self, index: int) -> Row:
        return self._recipe.row_at(self._first + index)


@final
class _State:
    """The model in training: its weights, its optimiser once there is one, and its history."""

    def __init__(self, model: Any, history: History, *, step: int = 0) -> None:
        self.model, self.history, self.step = model, history, step
        self.optimiser: Any = None
        self.best: dict[str, Tensor] = {}
        self._optimiser_tensors: dict[str, Tensor] = {}

    @classmethod
    def restored(cls, model: Any, saved: Saved) -> _State:
        """Put saved weights into the model."""
        notes = saved.notes
        scores = {int(step): score for step, score in notes["scores"].items()}
        state = cls(model, History(terms=notes["terms"], scores=scores, before=notes["before"]), step=saved.step)
        state.put(_without(_WEIGHT, saved.tensors))
        state.best = _without(_BEST, saved.tensors)
        state._optimiser_tensors = _without(_OPTIMISER, saved.tensors)
        return state

    def attach(self, optimiser: Any) -> None:
        """Take the optimiser, and give it the saved state where there is one."""
        self.optimiser = optimiser
        if self._optimiser_tensors:
            states: dict[int, dict[str, Tensor]] = {}
            for name, tensor in self._optimiser_tensors.items():
                index, _, part = name.partition(".")
                states.setdefault(int(index), {})[part] = tensor
            # groups hold the learning rate, which the schedule sets
            optimiser.load_state_dict({"state": states, "param_groups": optimiser.state_dict()["param_groups"]})
            self._optimiser_tensors = {}

    def weights(self) -> dict[str, Tensor]:
        """Return the trained parameters; a matrix that is used twice is there once."""
        return {name: weight.detach() for name, weight in self._trained()}

    @torch.no_grad()
    def put(self, weights: Mapping[str, Tensor]) -> None:
        """Set the parameters."""
        for name, weight in self._trained():
            weight.copy_(weights[name])

    def _trained(self) -> list[tuple[str, Any]]:
        return [(name, weight) for name, weight in self.model.named_parameters() if weight.requires_grad]

    def saved(self) -> Saved:
        """Return everything that is needed to resume."""
        moments = {
            f"{index}.{part}": tensor
            for index, parts in self.optimiser.state_dict()["state"].items()
            for part, tensor in parts.items()
        }
        groups = ((_WEIGHT, self.weights()), (_BEST, self.best), (_OPTIMISER, moments))
        tensors = {f"{prefix}{name}": tensor for prefix, group in groups for name, tensor in group.items()}
        history = self.history
        notes = {"terms": history.terms, "scores": history.scores, "before": history.before}
        return Saved(step=self.step, tensors=tensors, notes=notes)


@final
class _Saver:
    """Saves the state every so many seconds, and after the last step."""

    def __init__(self, state: _State, work: WorkFolder, seconds: float, *, last: int) -> None:
        self.work = work
        self._state, self._seconds, self._last_step = state, seconds, last
        self._since = time.monotonic()

    def due(self) -> bool:
        """Tell whether it is time to save; one of several processes does it for all."""
        late = time.monotonic() - self._since >= self._seconds or self._state.step >= self._last_step
        return late and is_main_process()

    def save(self) -> None:
        """Save the state."""
        began = time.monotonic()
        self.work.save(self._state.saved())
        self._since = time.monotonic()
        if self._seconds:
            self._seconds = max(self._seconds, (self._since - began) / _SAVING_SHARE)


@final
class _Watcher(TrainerCallback):  # type: ignore[misc]
    """Seeds every step; after it, scores, saves and reports."""

    def __init__(
        self,
        model: Any,
        recipe: Recipe,
        state: _State,
        losses: _Losses,
        saver: _Saver,
        progress: Progress,
    ) -> None:
        self._model, self._recipe, self._state, self._losses = model, recipe, state, losses
        self._saver, self._progress = saver, progress

    def on_train_begin(self, *_: Any, optimizer: Any, **__: Any) -> None:
        self._state.attach(optimizer)

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        torch.manual_seed(seed_at(self._recipe.seed, "dropout", self._state.step, *process_place()))

    def on_step_end(self, *_: Any, **__: Any) -> None:
        state, recipe = self._state, self._recipe
        state.step += 1
        self._losses.end_step()
        if recipe.score and (state.step % recipe.score_every == 0 or state.step == recipe.steps):
            self._score(recipe.score)
        self._progress.advance(1)
        tenth = max(1, recipe.steps // 10)
        saving = self._saver.due()
        if saving or state.step % tenth == 0:
            self._losses.read()
        if state.step % tenth == 0:
            recent = sum(state.history.losses[-tenth:]) / tenth
            score = state.history.scores.get(state.step)
            scored = "" if score is None else f", {score:.1%} right on the development set"
            self._progress.note(
                f"{recipe.label}: step {state.step:,} of {recipe.steps:,}, loss {recent:.3f}{scored}"
            )
        if saving:
            self._saver.save()

    def _score(self, score: Callable[[Any], float]) -> None:
        state = self._state
        self._model.eval()
        state.history.scores[state.step] = score(self._model)
        if state.history.best_step == state.step:
            state.best = {name: weight.cpu().clone() for name, weight in state.weights().items()}


def _without(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
