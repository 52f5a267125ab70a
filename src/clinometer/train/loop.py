"""The steps of a training, by the `Trainer` of transformers, so that a killed one goes on to the same weights.

What the Trainer saves for itself are pickles, so it saves nothing here: after a step, weights and optimiser go
into one safetensors file (`work.py`). No generator is saved at all, because every random choice depends on the
seed and the step alone. So a training that goes on is simply a Trainer that is given the weights, the optimiser's
state and the rows that are left.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

from clinometer.errors import ModelError
from clinometer.train.base import BaseModel
from clinometer.train.progress import TrainingProgress
from clinometer.train.seeds import own_randomness, seed_at
from clinometer.train.work import Saved, WorkFolder

_WEIGHT, _BEST, _OPTIMISER = "weight.", "best.", "optimiser."
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
    loss: Callable[[Any, Batch], Tensor]
    batch: int
    learning_rate: float
    seed: int
    # the weights with the highest score (the first of equals) are the result; without a score, the last ones
    score: Callable[[Any], float] | None = None
    score_every: int = 0

    @property
    def steps(self) -> int:
        """The number of steps."""
        return math.ceil(self.rows / self.batch)


@dataclass(slots=True, kw_only=True)
class History:
    """What has happened so far: every loss, every score, and what was measured before the first step."""

    losses: list[float] = field(default_factory=list)
    scores: dict[int, float] = field(default_factory=dict)  # by step
    before: dict[str, Any] = field(default_factory=dict)

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
    progress: TrainingProgress,
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


def _run(base: BaseModel, recipe: Recipe, state: _State, saver: _Saver, progress: TrainingProgress) -> None:
    start = state.step
    optimiser = torch.optim.AdamW(base.model.parameters(), lr=recipe.learning_rate, weight_decay=0.0)
    arguments = TrainingArguments(
        output_dir=str(saver.work.path),
        per_device_train_batch_size=recipe.batch,
        num_train_epochs=1,  # the rows of several epochs are one list here
        max_grad_norm=1.0,
        use_cpu=base.device.type == "cpu",
        use_cache=getattr(base.model.config, "use_cache", False),  # the Trainer writes this into the config
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        train_sampling_strategy="sequential",  # the order is the recipe's
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        seed=recipe.seed % (1 << 32),
    )
    arguments._n_gpu = min(arguments.n_gpu, 1)  # several GPUs would change what a batch is
    trainer = _LossTrainer(
        model=base.model,
        args=arguments,
        train_dataset=_Rows(recipe, first=start * recipe.batch),
        data_collator=recipe.collate,
        optimizers=(optimiser, LambdaLR(optimiser, lambda step: max(0.0, 1 - (start + step) / recipe.steps))),
        callbacks=[_Watcher(base.model, recipe, state, saver, progress)],
    )
    trainer.loss_of, trainer.losses = recipe.loss, state.history.losses
    trainer.remove_callback(PrinterCallback)
    trainer.train()


@final
class _LossTrainer(Trainer):  # type: ignore[misc]
    """The Trainer with a loss of our own, every value of which is kept."""

    loss_of: Callable[[Any, Batch], Tensor]
    losses: list[float]

    def compute_loss(
        self, model: Any, inputs: Batch, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        loss = self.loss_of(model, inputs)
        self.losses.append(float(loss.detach()))
        if not math.isfinite(self.losses[-1]):
            raise ModelError(
                f"the loss of step {len(self.losses)} is {self.losses[-1]}: the training has come apart;"
                " give a lower --learning-rate and another --out"
            )
        return loss


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
        state = cls(model, History(losses=notes["losses"], scores=scores, before=notes["before"]), step=saved.step)
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
        return {name: weight.detach() for name, weight in self.model.named_parameters()}

    @torch.no_grad()
    def put(self, weights: Mapping[str, Tensor]) -> None:
        """Set the parameters."""
        for name, weight in self.model.named_parameters():
            weight.copy_(weights[name])

    def saved(self) -> Saved:
        """Return all that is needed to go on."""
        moments = {
            f"{index}.{part}": tensor
            for index, parts in self.optimiser.state_dict()["state"].items()
            for part, tensor in parts.items()
        }
        groups = ((_WEIGHT, self.weights()), (_BEST, self.best), (_OPTIMISER, moments))
        tensors = {f"{prefix}{name}": tensor for prefix, group in groups for name, tensor in group.items()}
        history = self.history
        notes = {"losses": history.losses, "scores": history.scores, "before": history.before}
        return Saved(step=self.step, tensors=tensors, notes=notes)


@final
class _Saver:
    """Saves the state every so many seconds, and after the last step."""

    def __init__(self, state: _State, work: WorkFolder, seconds: float, *, last: int) -> None:
        self.work = work
        self._state, self._seconds, self._last_step = state, seconds, last
        self._since = time.monotonic()

    def maybe(self) -> None:
        """Save if it is time."""
        began = time.monotonic()
        if began - self._since < self._seconds and self._state.step < self._last_step:
            return
        self.work.save(self._state.saved())
        self._since = time.monotonic()
        if self._seconds:
            self._seconds = max(self._seconds, (self._since - began) / _SAVING_SHARE)


@final
class _Watcher(TrainerCallback):  # type: ignore[misc]
    """Seeds every step; after it, scores, saves and tells."""

    def __init__(
        self, model: Any, recipe: Recipe, state: _State, saver: _Saver, progress: TrainingProgress
    ) -> None:
        self._model, self._recipe, self._state = model, recipe, state
        self._saver, self._progress = saver, progress

    def on_train_begin(self, *_: Any, optimizer: Any, **__: Any) -> None:
        self._state.attach(optimizer)

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        torch.manual_seed(seed_at(self._recipe.seed, "dropout", self._state.step))

    def on_step_end(self, *_: Any, **__: Any) -> None:
        state, recipe = self._state, self._recipe
        state.step += 1
        if recipe.score and (state.step % recipe.score_every == 0 or state.step == recipe.steps):
            self._score(recipe.score)
        self._progress.advance(1)
        tenth = max(1, recipe.steps // 10)
        if state.step % tenth == 0:
            recent = sum(state.history.losses[-tenth:]) / tenth
            score = state.history.scores.get(state.step)
            scored = "" if score is None else f", {score:.1%} right on the development set"
            self._progress.note(
                f"{recipe.label}: step {state.step:,} of {recipe.steps:,}, loss {recent:.3f}{scored}"
            )
        self._saver.maybe()

    def _score(self, score: Callable[[Any], float]) -> None:
        state = self._state
        self._model.eval()
        state.history.scores[state.step] = score(self._model)
        if state.history.best_step == state.step:
            state.best = {name: weight.cpu().clone() for name, weight in state.weights().items()}


def _without(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from printing bars and logs of its own."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
