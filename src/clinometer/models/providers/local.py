"""Opens the models that run here, on torch and transformers: built-in names, folders and hub ids.

Torch and transformers are imported when a model is opened, not before: the core of Clinometer does without them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

from clinometer.errors import ModelError, reason
from clinometer.limits import parse_json, read_limited
from clinometer.models.builtin import PREFIX, absent_packages, entry, folder_of
from clinometer.models.files import (
    WEIGHTS,
    WEIGHTS_INDEX,
    has_chat_template,
    has_vocabulary,
    tuning_of,
    weight_files,
)
from clinometer.models.providers.adapters import base_of, files_identity, is_adapter
from clinometer.models.sizes import is_plain, require_few_layers
from clinometer.types import AskedAs, Dtype, ModelKind, ModelSpec

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

    from clinometer.models.protocols import Model

# What the extra `local` installs; sentencepiece is missed only by the few tokenizers that need it.
_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "huggingface_hub")

# What is fetched from the hub. Pickled weights are never fetched; Python files only with the user's permission.
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.codes", "*.tiktoken", "*.jinja"]
SEVERAL = "gpus"  # the device of a model that is too large for one GPU
_PICKLED = (".bin", ".pt", ".pth", ".ckpt")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")

# The adapter of each kind, in the room `local`, and what it can be asked.
ADAPTERS: dict[ModelKind, tuple[str, str]] = {
    "masked": ("masked", "MaskedModel"),
    "permuted": ("masked", "PermutedModel"),
    "causal": ("causal", "CausalModel"),
    "classifier": ("classifier", "ClassifierModel"),
    "encoder": ("encoder", "EncoderModel"),
    "chat": ("chat", "ChatModel"),
}
CAPABILITIES: dict[ModelKind, tuple[str, ...]] = {
    "masked": ("fill",),
    "permuted": ("fill",),
    "causal": ("next_word", "rescore", "sample", "log_likelihood"),
    "classifier": ("classify",),
    "encoder": ("embed",),
    "chat": ("ask", "answer_word"),
}

# What reads the checkpoints of each quantisation method, as pip knows it and as Python does. A method that is not
# here is left to transformers.
_QUANTISERS = {
    "aqlm": ("aqlm", "aqlm"),
    "awq": ("gptqmodel", "gptqmodel"),
    "bitsandbytes": ("bitsandbytes", "bitsandbytes"),
    "compressed-tensors": ("compressed-tensors", "compressed_tensors"),
    "eetq": ("eetq", "eetq"),
    "gptq": ("gptqmodel", "gptqmodel"),
    "hqq": ("hqq", "hqq"),
    "quanto": ("optimum-quanto", "optimum"),
    "torchao": ("torchao", "torchao"),
    "vptq": ("vptq", "vptq"),
}

_WAYS: dict[str, AskedAs] = {"causal": "causal", "chat": "chat"}  # how a model that continues text can be asked

# How an architecture's name ends tells its head; the first that fits decides.
_ENDINGS: dict[tuple[str, ...], ModelKind] = {
    ("XLNetLMHeadModel",): "permuted",
    ("ForMaskedLM", "BertForPreTraining", "AlbertForPreTraining"): "masked",
    ("ForCausalLM", "LMHeadModel"): "causal",
    ("ForSequenceClassification",): "classifier",
    ("Model",): "encoder",
}
# BART's published files name the bare model; its head is tied to the embeddings, so nothing is missing.
_BART = ("BartModel", "BartForConditionalGeneration")
_EXPECTED = (
    "…ForMaskedLM, XLNetLMHeadModel, …ForCausalLM, …LMHeadModel, …ForSequenceClassification or a bare …Model"
)


@final
class BuiltInModels:
    """The provider of the built-in models: weights that come inside packages."""

    name = "built-in models"

    def claims(self, name: str) -> bool:
        """Tell whether a name begins with `builtin:`."""
        return name.startswith(PREFIX)

    def check(self, spec: ModelSpec) -> None:
        """Raise ModelError for a name that is not in the catalogue, and for what is not installed."""
        model = entry(spec.name)
        require_packages(spec.name)
        if model.over:
            folder_of(spec.name)
            folder_of(model.over)
        else:
            kind_of(resolve(spec), spec.kind)

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what models of this kind can be asked."""
        return CAPABILITIES[_asked(spec.name, entry(spec.name).kind, spec.kind)]

    def load(self, spec: ModelSpec, *, device: str) -> Model:
        """Load the model with the adapter of its kind, or as an adapter over another built-in model."""
        return self._open(spec, device, weights=True)

    def inspect(self, spec: ModelSpec, *, device: str) -> Model:
        """Return the model without its weights."""
        return self._open(spec, device, weights=_needs_weights(spec))

    def weight_bytes(self, spec: ModelSpec) -> int:
        """Return how large its weight files are."""
        return _weight_bytes(folder_of(entry(spec.name).over or spec.name))

    def _open(self, spec: ModelSpec, device: str, *, weights: bool) -> Model:
        model = entry(spec.name)
        require_packages(spec.name)
        from clinometer.models.local.loading import pick_device

        where = pick_device(device)  # before the model is converted, which takes half a minute
        if not model.over:
            source = replace(resolve(spec), spread=device == SEVERAL)
            return _open_with_adapter(source, spec, where, weights=weights)
        from clinometer.models.local.sentiment import SentimentModel

        return SentimentModel.open(spec, where if weights else _nowhere())


@final
class FolderOrHub:
    """The provider of folders and hub ids. It is asked last, and claims every name that is left."""

    name = "folder or hub"

    def claims(self, name: str) -> bool:
        """Claim every name; `check` says what is wrong with one that is neither a folder nor on the hub."""
        return True

    def check(self, spec: ModelSpec) -> None:
        """Raise ModelError for a model that is not there, cannot be loaded safely or asked as the spec says."""
        kind_of(resolve(spec), spec.kind)

    def capabilities(self, spec: ModelSpec) -> tuple[str, ...]:
        """Return what the architecture in config.json can be asked."""
        return CAPABILITIES[kind_of(resolve(spec), spec.kind)]

    def folder(self, spec: ModelSpec) -> Path:
        """Return the folder, or where the hub's files are on this machine."""
        return _folder_of(spec)

    def identity(self, spec: ModelSpec) -> Mapping[str, Any]:
        """Return the checksums of the files, its own code among them; the configuration is hashed, not read."""
        folder = _folder_of(spec)
        try:
            adapter = folder if is_adapter(folder) else None
            if adapter is not None:
                folder = _folder_of(replace(spec, name=base_of(folder, spec.name)))
            _require_safe_weights(folder, spec.name)
            return files_identity(folder, adapter, own_code=spec.trust_remote_code)
        except OSError as error:
            raise _unreadable(folder, error) from error

    def load(self, spec: ModelSpec, *, device: str) -> Model:
        """Load the model with the adapter that its configuration calls for."""
        return self._open(spec, device, weights=True)

    def inspect(self, spec: ModelSpec, *, device: str) -> Model:
        """Return the model without its weights, where its code is that of transformers."""
        return self._open(spec, device, weights=_needs_weights(spec))

    def weight_bytes(self, spec: ModelSpec) -> int:
        """Return how large its weight files are."""
        return _weight_bytes(resolve(spec).folder)

    def _open(self, spec: ModelSpec, device: str, *, weights: bool) -> Model:
        source = replace(resolve(spec), spread=device == SEVERAL)
        from clinometer.models.local.loading import pick_device

        return _open_with_adapter(source, spec, pick_device(device), weights=weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """A model's files on this machine, and the configuration read from them."""

    name: str
    folder: Path
    config: PretrainedConfig
    adapter: Path | None = None  # the folder of a LoRA adapter that is merged into it
    kind: AskedAs = ""  # how it is asked unless the spec says otherwise; "": its chat template decides
    own_code: bool = False  # whether code that the model brings may run
    spread: bool = False  # whether its layers are put on all GPUs that this process sees

    @property
    def tokenizer_folder(self) -> Path:
        """Where its tokenizer is: an adapter may bring its own."""
        return self.adapter if self.adapter and has_vocabulary(self.adapter) else self.folder


def require_packages(name: str) -> None:
    """Raise ModelError, with the command to install them, where torch or its companions are not installed."""
    if absent := absent_packages(*_PACKAGES):
        raise ModelError(
            f"{name!r} runs on this machine, for which {', '.join(absent)} {'is' if len(absent) == 1 else 'are'}"
            ' needed and not installed: pip install "clinometer[local]"'
        )


def resolve(spec: ModelSpec) -> ModelSource:
    """Find the files of a model and check that they can be loaded safely; nothing is loaded yet."""
    folder = _folder_of(spec)
    try:
        adapter = is_adapter(folder)
        if not adapter:
            _require_safe_weights(folder, spec.name)
    except OSError as error:
        raise _unreadable(folder, error) from error
    if adapter:
        return _resolve_adapter(folder, spec)
    require_packages(spec.name)
    config = _read_config(folder, spec)
    _require_quantiser(config, spec.name)
    return ModelSource(
        name=spec.name,
        folder=folder,
        config=config,
        kind=_declared(spec.name),
        own_code=spec.trust_remote_code,
    )


def _unreadable(folder: Path, error: OSError) -> ModelError:
    return ModelError(f"{str(folder)!r} cannot be read: {error.strerror}; make it readable")


def _declared(name: str) -> AskedAs:
    """Return how the catalogue says that a built-in model is asked: one checkpoint may be in it twice."""
    return _WAYS.get(entry(name).kind, "") if name.startswith(PREFIX) else ""


def _resolve_adapter(folder: Path, spec: ModelSpec) -> ModelSource:
    base = base_of(folder, spec.name)
    try:
        source = resolve(replace(spec, name=base))
    except ModelError as error:
        raise ModelError(f"{spec.name!r} is an adapter, and its base model cannot be opened: {error}") from error
    if source.adapter is not None:
        raise ModelError(f"{spec.name!r} is an adapter over another adapter, {base!r}; merge that one first")
    return replace(source, name=spec.name, adapter=folder, kind="")


def kind_of(source: ModelSource, asked: AskedAs = "") -> ModelKind:
    """Return which adapter a model needs: its architecture decides, and where it continues text, how it is asked.

    That is `asked`, else what the catalogue says, else "chat" where the tokenizer has a chat template. A
    checkpoint that Clinometer trained is a causal model: it was trained to continue text.
    """
    found = _asked(source.name, built_as(source), asked)
    if found not in _WAYS:
        return found
    has_template = has_chat_template(source.tokenizer_folder)
    if asked == "chat" and not has_template:
        raise ModelError(
            f"the tokenizer of {source.name!r} has no chat template, so it is not known how it reads a"
            " conversation; choose an instruction-tuned model, or ask it as a causal one (--as causal)"
        )
    by_files: ModelKind = "chat" if has_template and not tuning_of(source.folder) else "causal"
    return asked or source.kind or by_files


def _asked(name: str, kind: ModelKind, asked: AskedAs) -> ModelKind:
    """Return the kind of a model that is to be asked in some way; ModelError where that is not possible."""
    if asked and kind not in _WAYS:
        raise ModelError(
            f"{name!r} is a {kind} model and cannot be asked as a {asked} one; only models that continue text can"
        )
    return asked or kind


def built_as(source: ModelSource) -> ModelKind:
    """Return what a model was built to be, however it is asked; `architectures` in its config.json decides."""
    # sentence-transformers leaves the architecture it started from in config.json, even where the head is gone
    if (source.folder / "modules.json").is_file():
        return "encoder"
    architecture = _architecture(source)
    if source.config.model_type == "bart" and architecture in _BART:
        return "masked"
    for endings, kind in _ENDINGS.items():
        if architecture.endswith(endings):
            return kind
    hint = (
        "; for ELECTRA take the generator, not the discriminator" if source.config.model_type == "electra" else ""
    )
    raise ModelError(
        f"config.json of {source.name!r} names the architecture {architecture!r}; expected {_EXPECTED}{hint}"
    )


def _open_with_adapter(source: ModelSource, spec: ModelSpec, device: torch.device, *, weights: bool) -> Model:
    module, adapter = ADAPTERS[kind_of(source, spec.kind)]
    room = importlib.import_module(f"clinometer.models.local.{module}")
    if not weights:
        from clinometer.models.local.loading import torch_dtype

        dtype = str(torch_dtype(spec.dtype, device)).removeprefix("torch.")
        spec = replace(spec, dtype=cast("Dtype", dtype))
        device = _nowhere()
    model: Model = getattr(room, adapter).load(source, spec, device)
    return model


def _needs_weights(spec: ModelSpec) -> bool:
    """Tell whether a model must be loaded to be described: for code of its own, or without accelerate."""
    return spec.trust_remote_code or bool(absent_packages("accelerate"))


def _nowhere() -> torch.device:
    import torch

    return torch.device("meta")


def _weight_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in weight_files(folder) if file.is_file())


def _folder_of(spec: ModelSpec) -> Path:
    if spec.name.startswith(PREFIX):
        return folder_of(spec.name)
    folder = Path(spec.name).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise ModelError(f"{spec.name!r} is a file; give the folder that holds config.json and model.safetensors")
    if spec.name.startswith("folder:"):  # of a run that was made elsewhere
        label = spec.name.removeprefix("folder:")
        raise ModelError(
            f"the run does not say where the folder of {label!r} is here; say so with --model {label}=FOLDER"
        )
    if not _HUB_ID.fullmatch(spec.name) or spec.name.startswith("."):
        raise ModelError(
            f"no model {spec.name!r}: there is no such folder; give a folder, a hub id such as"
            " 'google-bert/bert-base-uncased', or a built-in name such as 'builtin:causal'"
        )
    return _download(spec)


def _download(spec: ModelSpec) -> Path:
    require_packages(spec.name)
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    patterns = [*_HUB_FILES, "*.py"] if spec.trust_remote_code else _HUB_FILES
    try:
        return Path(snapshot_download(spec.name, allow_patterns=patterns))
    except LocalEntryNotFoundError as error:
        why = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else "the hub cannot be reached"
        raise ModelError(
            f"no model {spec.name!r}: it is neither a folder here nor in the hub cache, and {why};"
            " copy the model to this machine and give its folder"
        ) from error
    except GatedRepoError as error:
        raise ModelError(
            f"the hub gives {spec.name!r} only to people who accept its terms: accept them on its page, then"
            " `hf auth login`"
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelError(
            f"no model {spec.name!r}: there is no such folder here and no such public model on the hub"
        ) from error
    except HfHubHTTPError as error:
        raise ModelError(f"the hub refused {spec.name!r}: {error}; try again, or give a folder") from error


def _require_safe_weights(folder: Path, name: str) -> None:
    if strange := sorted(path.name for path in folder.iterdir() if path.exists() and not is_plain(path)):
        raise ModelError(f"{strange[0]} of {name!r} is not an ordinary file; take it out of that folder")
    if not (folder / "config.json").exists():
        raise ModelError(
            f"no model in {name!r}: there is no config.json in that folder;"
            " expected what save_pretrained() writes: config.json, model.safetensors and the tokenizer"
        )
    if any((folder / file).is_file() for file in (WEIGHTS, WEIGHTS_INDEX)):
        return
    if named := sorted(path.name for path in folder.glob("*.safetensors") if path.is_file()):
        raise ModelError(
            f"no weights for {name!r} under the name that is loaded: found {', '.join(named)};"
            f" expected {WEIGHTS}, or {WEIGHTS_INDEX} and the parts that it names"
        )
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLED)
    found = (
        f"only pickled weights ({', '.join(pickled)}), which can run code when they are read"
        if pickled
        else "none"
    )
    raise ModelError(
        f"no safetensors weights for {name!r}: found {found};"
        " if you trust it, convert it once and give the new folder:"
        ' python -c "from transformers import AutoModelForMaskedLM as M, AutoTokenizer as T;'
        f" [part.from_pretrained({name!r}).save_pretrained('converted') for part in (M, T)]\""
        " (with AutoModelForCausalLM for a causal model)"
    )


def _read_config(folder: Path, spec: ModelSpec) -> PretrainedConfig:
    from transformers import CONFIG_MAPPING, AutoConfig

    try:
        raw = parse_json(read_limited(folder / "config.json"))
    except OSError as error:
        raise ModelError(
            f"config.json of {spec.name!r} cannot be read: {error.strerror}; make it a readable file"
        ) from error
    except ValueError as error:
        raise ModelError(f"config.json of {spec.name!r} is not JSON: {error}; save the model again") from error
    fields: dict[str, Any] = raw if isinstance(raw, dict) else {}
    require_few_layers(fields, model=spec.name)
    if fields.get("transformers_weights"):  # transformers would load that file, whatever it is
        raise ModelError(
            f"config.json of {spec.name!r} names its own weight file, {fields['transformers_weights']!r};"
            " expected model.safetensors: rename it, and take transformers_weights out of config.json"
        )
    named = fields.get("architectures")
    # some releases of transformers refuse this themselves, some do not: one message for all
    if named is not None and not (isinstance(named, list) and all(isinstance(each, str) for each in named)):
        raise ModelError(
            f"config.json of {spec.name!r} has {named!r} as architectures, which is not a list of names;"
            f' expected "architectures": [one name], with {_EXPECTED}'
        )
    model_type = fields.get("model_type")
    known = isinstance(model_type, str) and model_type in CONFIG_MAPPING
    if not known and "auto_map" in fields and not spec.trust_remote_code:
        raise ModelError(
            f"{spec.name!r} brings its own Python code, which would be run on this machine;"
            " read it, and allow it for this model with trust_remote_code if you trust it"
        )
    if not known and "auto_map" not in fields:
        raise ModelError(
            f"config.json of {spec.name!r} has model_type {model_type!r}, which this transformers does not know;"
            " upgrade transformers or choose another model"
        )
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=spec.trust_remote_code)
    except Exception as error:  # a wrong value makes transformers raise anything
        raise ModelError(
            f"config.json of {spec.name!r} has a value that transformers refuses ({reason(error)});"
            " correct it, or save the model again"
        ) from error


def _require_quantiser(config: PretrainedConfig, name: str) -> None:
    """Raise ModelError where the library is missing that reads a quantised checkpoint."""
    settings = getattr(config, "quantization_config", None)
    if not settings:
        return
    method = settings.get("quant_method") if isinstance(settings, dict) else getattr(settings, "quant_method", "")
    package, module = _QUANTISERS.get(str(getattr(method, "value", method)), ("", ""))
    if module and absent_packages(module):
        raise ModelError(
            f"{name!r} is quantised with {package}, which is needed to read it and not installed:"
            f" pip install {package} (or give the checkpoint that it was made from)"
        )


def _architecture(source: ModelSource) -> str:
    if names := source.config.architectures:  # `_read_config` saw to it that they are names
        return str(names[0])
    raise ModelError(
        f"config.json of {source.name!r} names no architecture;"
        f' expected "architectures": [one name], with {_EXPECTED}'
    )
