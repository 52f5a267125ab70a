"""Opens a model by its name: the providers are asked in order, and the first that claims the name opens it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, final

from clinometer.errors import ModelError, reason
from clinometer.models.protocols import Model
from clinometer.models.providers.answers import AnswerFiles
from clinometer.models.providers.gguf import GgufFiles
from clinometer.models.providers.local import CAPABILITIES, BuiltInModels, FolderOrHub, kind_of
from clinometer.models.providers.openai import OpenAIEndpoints
from clinometer.models.providers.opinion_words import OpinionWordScorers
from clinometer.models.providers.protocol import CanIdentify, CanInspect, HasFiles, Provider
from clinometer.models.providers.vllm import VllmModels
from clinometer.plugins import MODELS
from clinometer.types import ModelSpec

__all__ = [
    "CAPABILITIES",
    "Providers",
    "capabilities_of",
    "check_model",
    "files_of",
    "identity_of",
    "inspect_model",
    "kind_of",
    "load_model",
    "weight_bytes",
]

logger = logging.getLogger("clinometer")

# in the order in which they are asked; each claims names of its own
_OURS: tuple[Provider, ...] = (
    OpinionWordScorers(), BuiltInModels(), OpenAIEndpoints(), GgufFiles(), AnswerFiles(), VllmModels(),
)  # fmt: skip


@final
class Providers:
    """Who opens a name. Asked in order: `first`, our own, those of other packages, and folder or hub for the rest.

    Other packages are imported only for a name that none of ours claims. One that cannot be used is named in a
    warning and left out; a name that begins with it and a colon is refused, and every other name opens as before.

    >>> Providers().of("builtin:masked").name
    'built-in models'
    """

    def __init__(self, *first: Provider) -> None:
        self._first = (*first, *_OURS)

    def of(self, name: str) -> Provider:
        """Return the provider that opens models of that name."""
        for provider in self._first:
            if provider.claims(name):
                return provider
        for point, other in _others():
            if isinstance(other, str):
                if name.startswith(f"{point.name}:"):
                    raise ModelError(f"{name!r} cannot be opened: {other}")
            elif _claims(other, name, point):
                return other
        return FolderOrHub()


def load_model(spec: ModelSpec | str, *, device: str = "auto", providers: Providers | None = None) -> Model:
    """Load a model by name: a hub id, a folder, a built-in name, or a name that an installed provider claims."""
    spec = ModelSpec(name=spec) if isinstance(spec, str) else spec
    return (providers or Providers()).of(spec.name).load(spec, device=device)


def inspect_model(spec: ModelSpec, *, device: str = "auto", providers: Providers | None = None) -> Model:
    """Return a model that can describe itself and measure requests; without its weights where that is possible."""
    provider = (providers or Providers()).of(spec.name)
    opened = provider.inspect if isinstance(provider, CanInspect) else provider.load
    return opened(spec, device=device)


def weight_bytes(spec: ModelSpec, *, providers: Providers | None = None) -> int:
    """Return about how much memory the weights of a model need; 0 where its provider does not say."""
    provider = (providers or Providers()).of(spec.name)
    return provider.weight_bytes(spec) if isinstance(provider, CanInspect) else 0


def files_of(spec: ModelSpec) -> str:
    """Return the folder on this machine with all that a model is loaded from; "": it comes with a package."""
    provider = Providers().of(spec.name)
    return str(provider.folder(spec)) if isinstance(provider, HasFiles) else ""


def check_model(spec: ModelSpec, *, providers: Providers | None = None) -> None:
    """Raise ModelError or DataError for a model that is not there or cannot be loaded safely; loads no weights."""
    (providers or Providers()).of(spec.name).check(spec)


def identity_of(spec: ModelSpec, *, providers: Providers | None = None) -> Mapping[str, Any]:
    """Return what a model's files tell about who it is: fields of its `ModelInfo`; loads nothing, runs no code.

    Providers that cannot tell without loading have no method `identity`.
    """
    provider = (providers or Providers()).of(spec.name)
    return provider.identity(spec) if isinstance(provider, CanIdentify) else {}


def capabilities_of(spec: ModelSpec, *, providers: Providers | None = None) -> tuple[str, ...]:
    """Return what a model will offer once it is loaded; loads no weights."""
    return (providers or Providers()).of(spec.name).capabilities(spec)


def _claims(provider: Provider, name: str, point: EntryPoint) -> bool:
    try:
        return provider.claims(name)
    except Exception as error:
        what = f"the provider {point.name!r} ({point.value}) failed on the name {name!r} ({reason(error)})"
        _warn_once(what)
        return False


def _others() -> Iterator[tuple[EntryPoint, Provider | str]]:
    """Yield the providers of other packages, by the names of their entry points; a text says what is wrong."""
    for point in sorted(entry_points(group=MODELS), key=lambda point: (point.name, point.value)):
        yield point, _opened(point)


@functools.cache
def _opened(point: EntryPoint) -> Provider | str:
    """Return the provider of an entry point; a text, after a warning, where there is none."""
    package = point.dist.name if point.dist else ""
    try:
        found = point.load()
        if isinstance(found, type) or not isinstance(found, Provider):
            found = found()
        if not isinstance(found, Provider):
            raise TypeError(f"{type(found).__name__} lacks one of: name, claims, check, capabilities, load")
    except Exception as error:  # whatever goes wrong in code of other people
        wrong = (
            f"the provider {point.name!r} ({point.value}) cannot be used ({reason(error)}); "
            f"repair the package that registers it, or remove it: pip uninstall {package or 'PACKAGE'}"
        )
        _warn_once(wrong)
        return wrong
    return found


@functools.cache
def _warn_once(what: str) -> None:
    logger.warning("%s", what)
