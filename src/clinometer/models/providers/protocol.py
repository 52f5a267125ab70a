"""A provider opens the models whose names belong to it. No torch here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

from clinometer.errors import SpecError
from clinometer.models.protocols import Model
from clinometer.types import ModelSpec


@runtime_checkable
class Provider(Protocol):
    """Opens the models whose names it claims; docs/extending.md walks through one.

    Another package adds a provider by an entry point of the group `clinometer.models`: the provider itself, or a
    class or function without arguments that returns one.
    """

    @property
    def name(self) -> str:
        """What to call the provider when something is wrong with it."""
        ...

    def claims(self, name: str) -> bool:
        """Tell whether a model of this name belongs here; asked of every name, so it must be quick."""
        ...

    def check(self, spec: ModelSpec) -> None:
        """Raise ModelError or DataError for a model that cannot be opened; loads no weights."""
        ...

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what the model can be asked (the values of `protocols.METHODS`); loads no weights."""
        ...

    def load(self, spec: ModelSpec, *, device: str) -> Model:
        """Return the model, ready to answer; `info.name` is the name by which it was asked for."""
        ...


@runtime_checkable
class CanPlan(Protocol):
    """Providers whose models are elsewhere: what would be asked of one can be seen before anything is sent."""

    def planned(self, spec: ModelSpec) -> Model:
        """Return the model as most of its kind are, without a connection."""
        ...


@runtime_checkable
class CanInspect(Protocol):
    """Providers whose models can be described, and can measure requests, before their weights are loaded.

    A provider without these methods is asked to load a model in order to describe it.
    """

    def inspect(self, spec: ModelSpec, *, device: str) -> Model:
        """Return what `load` would return on that device, except that it cannot answer."""
        ...

    def weight_bytes(self, spec: ModelSpec) -> int:
        """Return about how much memory the weights need."""
        ...


@runtime_checkable
class HasFiles(Protocol):
    """Providers whose models are folders, which can be brought to another machine."""

    def folder(self, spec: ModelSpec) -> Path:
        """Return the folder with all that the model is loaded from."""
        ...


def models_by_name(models: Iterable[Model]) -> dict[str, Model]:
    """Return models in memory by the names in their `info`; SpecError for one without a name of its own."""
    named: dict[str, Model] = {}
    for model in models:
        if not hasattr(model, "info"):
            raise SpecError(
                f"{model!r} is not a model; give a name, a ModelSpec or an adapter, and wrap a function that"
                " scores texts in clinometer.models.callable_scorer.CallableScorer"
            )
        # one name for two of them would let one answer for both
        if named.setdefault(model.info.name, model) is not model:
            raise SpecError(f"two models in memory are named {model.info.name!r}; give each a name of its own")
    return named


@runtime_checkable
class CanIdentify(Protocol):
    """Providers that can tell who a model is before they load it, so that a changed one is never loaded."""

    def identity(self, spec: ModelSpec) -> Mapping[str, Any]:
        """Return those fields of the model's `ModelInfo` that its files tell; runs no code that comes with it."""
        ...


@final
class GivenModels:
    """The provider of models that are already in memory: each is known by the name in its `info`.

    >>> from clinometer.models.fake import FakeModel
    >>> from clinometer.types import ModelSpec
    >>> given = GivenModels(models_by_name([FakeModel(answer=print, name="mine")]))
    >>> given.claims("mine"), given.claims("gpt2"), given.capabilities(ModelSpec(name="mine"))
    (True, False, ('fill',))
    """

    name = "given models"

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models

    def claims(self, name: str) -> bool:
        """Tell whether a model of that name is in memory."""
        return name in self._models

    def check(self, spec: ModelSpec) -> None:
        """Accept every model: it is there already."""

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what the model offers."""
        return self._models[spec.name].info.capabilities

    def identity(self, spec: ModelSpec) -> Mapping[str, Any]:
        """Return what identifies the model, which is there already."""
        info = self._models[spec.name].info
        return {name: getattr(info, name) for name in ("weights", "tokenizer", "dtype")}

    def load(self, spec: ModelSpec, *, device: str) -> Model:
        """Return the model itself, wherever it runs."""
        return self._models[spec.name]
