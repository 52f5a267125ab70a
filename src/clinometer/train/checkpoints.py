"""From work in progress to a finished checkpoint: a model folder with a card that says how it was made.

While it works, a training keeps what it needs to resume after a kill in a folder beside its result:

<out>.unfinished/
  settings.json                          what is being trained; another training may not resume it
  step-<step>-<checksum>.safetensors     weights, optimiser and progress after a step; the newest two
  result/                                the finished checkpoint, until it is whole and takes the name <out>
  lock

There is no pickle in it. A file takes its name when it is whole and synced, and its checksum is in its name: a
half-written file, after a kill or on a full disk, is never read; in place of a damaged one the one before is used.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from clinometer.engine.progress import Progress
from clinometer.errors import DiskFullError, InputError, RunLockedError, StoreError
from clinometer.models.files import CARD, tokenizer_files
from clinometer.models.local.loading import quiet
from clinometer.train.base import BaseModel
from clinometer.train.processes import is_main_process, wait_for_all

_UNFINISHED = ".unfinished"
_SETTINGS, _LOCK, _RESULT = "settings.json", "lock", "result"
_KEPT = 2
_SAVED = re.compile(r"step-(\d{8})-([0-9a-f]{16})\.safetensors")
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

Settings = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a training resumes from: tensors by name, and its notes, as JSON has them."""

    step: int
    tensors: Mapping[str, Tensor]
    notes: dict[str, Any]


class WorkFolder:
    """The working folder of one training; `hold` it while it is used."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.path = out.with_name(out.name + _UNFINISHED)

    @contextlib.contextmanager
    def hold(self, settings: Settings) -> Iterator[None]:
        """Keep others out; make the folder, or check that the training begun in it is this one.

        Of several processes that train together, the first one does this for all.
        """
        with self._held(settings) if is_main_process() else contextlib.nullcontext():
            wait_for_all()
            yield

    @contextlib.contextmanager
    def _held(self, settings: Settings) -> Iterator[None]:
        with self.explained("the working folder"):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / _LOCK)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise RunLockedError(
                    f"another process is training {self.out}; wait until it ends, or stop it"
                ) from None
        try:
            if not (self.path / _SETTINGS).exists():  # fresh, or killed before anything was written
                self._write(_SETTINGS, json.dumps(dict(settings), indent=1).encode())
            try:
                begun = json.loads((self.path / _SETTINGS).read_bytes())
            except ValueError:
                raise StoreError(f"{self.path / _SETTINGS} is damaged; remove {self.path} to train anew") from None
            refuse_other_settings(settings, begun, place=self.path, state="a training was begun")
            for leftover in self.path.glob(".tmp-*"):
                leftover.unlink()
            shutil.rmtree(self.path / _RESULT, ignore_errors=True)
            yield
        finally:
            lock.release()

    def save(self, saved: Saved) -> None:
        """Save the state of the training; the newest two are kept."""
        temporary = self.path / f".tmp-{saved.step:08d}"
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in saved.tensors.items()}
        try:
            with self.explained(f"step {saved.step}"):
                save_file(tensors, temporary, metadata={"notes": json.dumps(saved.notes)})
                _sync(temporary)
                os.replace(temporary, self.path / f"step-{saved.step:08d}-{_checksum(temporary)}.safetensors")
                _sync(self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        for _, old in self._saved_files()[:-_KEPT]:
            old.unlink()

    def load(self, progress: Progress) -> Saved | None:
        """Return the newest intact state; None where there is none. Damaged ones are named and removed."""
        if not is_main_process():
            wait_for_all()  # until the first process has removed damaged files
            return self._newest(progress)
        saved = self._newest(progress)
        wait_for_all()
        return saved

    def _newest(self, progress: Progress) -> Saved | None:
        for step, path in reversed(self._saved_files()):
            match = _SAVED.fullmatch(path.name)
            if match and _checksum(path) == match[2]:
                with safe_open(path, framework="pt") as file:
                    tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
                    return Saved(step=step, tensors=tensors, notes=json.loads(file.metadata()["notes"]))
            progress.note(f"{path} is damaged and left out; resuming from the one before it")
            path.unlink()
        return None

    def finish(self, *, files: Iterable[Path], card: bytes, write_model: Callable[[Path], None]) -> None:
        """Put the finished checkpoint together and give it its name; then remove what was needed to get there."""
        if is_main_process():
            self._finish(files, card, write_model)
        wait_for_all()

    def _finish(self, files: Iterable[Path], card: bytes, write_model: Callable[[Path], None]) -> None:
        result = self.path / _RESULT
        with self.explained("the checkpoint"):
            result.mkdir()
            for file in files:
                shutil.copyfile(file, result / file.name)
            write_model(result)
            (result / "card.toml").write_bytes(card)
            for path in result.iterdir():
                path.chmod(0o644)  # safetensors makes its files private, but a model may be shared
                _sync(path)
            _sync(result)
            os.rename(result, self.out)  # an empty folder of that name gives way
            _sync(self.out.parent)
        self.remove()

    def remove(self) -> None:
        """Remove the working files: the training is over."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextlib.contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn an error of the operating system into one that says what was being written and what to do."""
        try:
            yield
        except (OSError, SafetensorError) as error:
            code = _code_of(error)
            reason = os.strerror(code) if code else str(error)
            after = "nothing written earlier was damaged"
            if code in _NO_SPACE:
                raise DiskFullError(
                    f"no space left while writing {what} of {self.out}: {reason};"
                    f" {after}: make room, then start it again"
                ) from error
            raise StoreError(
                f"cannot write {what} of {self.out}: {reason}; {after}: fix that, then start it again"
            ) from error

    def _saved_files(self) -> list[tuple[int, Path]]:
        """Return the saved states, oldest first."""
        found = [(_SAVED.fullmatch(path.name), path) for path in self.path.iterdir()]
        return sorted((int(match[1]), path) for match, path in found if match)

    def _write(self, name: str, data: bytes) -> None:
        temporary = self.path / f".tmp-{name}"
        with self.explained(name):
            temporary.write_bytes(data)
            _sync(temporary)
            os.replace(temporary, self.path / name)
            _sync(self.path)


def refuse_other_settings(wanted: Settings, found: object, *, place: Path, state: str) -> None:
    """Raise InputError that names what differs between the settings wanted and those found at a place."""
    known = found if isinstance(found, dict) else {}
    differing = [
        f"{name} {_shown(known.get(name))}, now {_shown(wanted.get(name))}"
        for name in dict.fromkeys([*wanted, *known])
        if wanted.get(name) != known.get(name)
    ]
    if differing:
        raise InputError(
            f"in {place} {state} with {'; '.join(differing)}; give the same settings, or another --out"
        )


def _shown(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:12]}…"


def _code_of(error: OSError | SafetensorError) -> int:
    if isinstance(error, OSError):
        return error.errno or 0
    number = re.search(r"os error (\d+)", str(error))  # that library puts the number into its message
    return int(number[1]) if number else 0


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A tuned model on disk: its folder, what `ModelInfo.tuning` will say about it, and what was measured."""

    folder: Path
    tuning: Mapping[str, str]
    figures: Mapping[str, Any]


def finished(out: Path, settings: Settings) -> Checkpoint | None:
    """Return the checkpoint that is there already; None where there is none.

    Raises InputError where something else has that name, or a checkpoint of other settings.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    card = _read_card(out)
    if not {"tuning", "settings", "figures"} <= set(card):
        raise InputError(f"{out} exists and is not a checkpoint of ours; name another place with --out")
    refuse_other_settings(settings, card["settings"], place=out, state="there is a checkpoint made")
    WorkFolder(out).remove()  # of a training that was killed after its last step
    return Checkpoint(folder=out, tuning=card["tuning"], figures=card["figures"])


def finish(
    work: WorkFolder,
    base: BaseModel,
    *,
    title: str,
    tuning: Mapping[str, str],
    settings: Settings,
    figures: Mapping[str, Any],
    limits: str,
) -> Checkpoint:
    """Write config, tokenizer, weights and card, and give the folder its name.

    Nothing in it depends on the time or the place: the same training writes the same bytes.
    """
    card = {
        "title": title,
        "licence": f"{base.licence}; the terms of the training texts apply as well",
        "tuning": dict(tuning),
        "settings": dict(settings),
        "figures": dict(figures),
        "made_with": {name: importlib.metadata.version(name) for name in ("torch", "transformers")},
        "limits": {"text": limits},
    }

    def write_model(folder: Path) -> None:
        with quiet():
            base.model.save_pretrained(folder)

    # the tokenizer's own files, so that its checksum stays
    work.finish(files=tokenizer_files(base.folder), card=tomli_w.dumps(card).encode(), write_model=write_model)
    return Checkpoint(folder=work.out, tuning=tuning, figures=figures)


def _read_card(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / CARD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
