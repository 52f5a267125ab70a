"""A training that is stopped, killed, damaged or crowded out ends in the bytes of one that was left in peace."""

from __future__ import annotations

import errno
import os
import resource

import pytest

from clinometer.errors import DiskFullError, InputError, RunLockedError
from clinometer.train import MaskedSettings, tune_masked
from clinometer.train import checkpoints as work_module
from clinometer.train.checkpoints import WorkFolder
from tests.train.interrupted_training import train, train_aloud
from tests.train.samples import PLANTED, Listener, Stop, files_of, train_and_kill

HOW = ["masked", "prompt"]


@pytest.fixture(scope="module")
def model(tiny_folder):
    return str(tiny_folder("bert"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    file = tmp_path_factory.mktemp("corpus") / "planted.txt"
    file.write_text("\n".join(PLANTED), encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def peaceful(tmp_path_factory, model, corpus):
    """The checkpoints of both kinds of training, never disturbed and never saved in between."""
    folder = tmp_path_factory.mktemp("peaceful")
    return {how: files_of(train(how, model, corpus, folder / how, save_seconds=1e9).folder) for how in HOW}


def saved_steps(out):
    return sorted(int(path.name.split("-")[1]) for path in WorkFolder(out).path.glob("step-*.safetensors"))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.timeout(120)
@pytest.mark.xdist_group("killed")
def test_killed_it_ends_in_the_same_bytes(how, model, corpus, peaceful, tmp_path):
    out = tmp_path / "tuned"
    train_and_kill(train_aloud, how, model, corpus, out)
    assert not out.exists()
    kept = saved_steps(out)
    assert kept
    listener = Listener()
    train(how, model, corpus, out, progress=listener)
    assert listener.done == kept[-1]
    assert files_of(out) == peaceful[how]
    assert not WorkFolder(out).path.exists()


@pytest.mark.parametrize("how", HOW)
def test_stopped_again_and_again_it_ends_in_the_same_bytes(how, model, corpus, peaceful, tmp_path):
    out = tmp_path / "tuned"
    for _ in range(3):
        with pytest.raises(Stop):
            train(how, model, corpus, out, progress=Listener(stop_after=3))
    # the third step of each turn was not saved yet when it stopped
    assert saved_steps(out) == [5, 6]
    train(how, model, corpus, out)
    assert files_of(out) == peaceful[how]


@pytest.mark.parametrize("how", HOW)
def test_of_a_damaged_state_the_one_before_is_used(how, model, corpus, peaceful, tmp_path):
    out = tmp_path / "tuned"
    with pytest.raises(Stop):
        train(how, model, corpus, out, progress=Listener(stop_after=6))
    *_, before, newest = sorted(WorkFolder(out).path.glob("step-*.safetensors"))
    raw = bytearray(newest.read_bytes())
    raw[-5] ^= 1
    newest.write_bytes(raw)
    (WorkFolder(out).path / ".tmp-00000006").write_bytes(b"half a file")
    listener = Listener()
    train(how, model, corpus, out, progress=listener)
    assert listener.done == int(before.name.split("-")[1]) == 4
    assert f"{newest} is damaged and left out; resuming from the one before it" in listener.notes
    assert files_of(out) == peaceful[how]


def test_with_nothing_intact_it_begins_anew(model, corpus, peaceful, tmp_path):
    out = tmp_path / "tuned"
    with pytest.raises(Stop):
        train("masked", model, corpus, out, progress=Listener(stop_after=6))
    for path in WorkFolder(out).path.glob("step-*.safetensors"):
        path.write_bytes(path.read_bytes()[:100])
    listener = Listener()
    train("masked", model, corpus, out, progress=listener)
    assert listener.done == 0
    assert sum("is damaged and left out" in note for note in listener.notes) == 2
    assert files_of(out) == peaceful["masked"]


def test_stopped_while_the_result_is_put_together(model, corpus, peaceful, tmp_path, monkeypatch):
    out = tmp_path / "tuned"
    with monkeypatch.context() as patch:
        patch.setattr(work_module.os, "rename", lambda *_: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            train("masked", model, corpus, out)
    assert not out.exists()
    listener = Listener()
    train("masked", model, corpus, out, progress=listener)
    assert listener.steps == 0  # all steps were done
    assert files_of(out) == peaceful["masked"]


def test_what_a_kill_after_the_last_word_leaves_is_removed(model, corpus, peaceful, tmp_path, monkeypatch):
    out = tmp_path / "tuned"
    with monkeypatch.context() as patch:
        patch.setattr(WorkFolder, "remove", lambda _: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            train("masked", model, corpus, out)
    assert files_of(out) == peaceful["masked"]
    assert WorkFolder(out).path.exists()
    train("masked", model, corpus, out)
    assert not WorkFolder(out).path.exists()


def test_a_training_begun_with_other_settings_is_not_gone_on_with(model, corpus, tmp_path):
    out = tmp_path / "tuned"
    with pytest.raises(Stop):
        train("masked", model, corpus, out, progress=Listener(stop_after=3))
    kept = files_of(WorkFolder(out).path)
    settings = MaskedSettings(learning_rate=1e-3, epochs=3, seed=7)
    with pytest.raises(InputError, match="a training was begun with epochs 2, now 3; give the same settings"):
        tune_masked(model, corpus, out=out, settings=settings, device="cpu")
    with pytest.raises(InputError, match="method masked-lm, now prompt"):
        train("prompt", model, corpus, out)
    assert files_of(WorkFolder(out).path) == kept


def test_two_at_once(model, corpus, peaceful, tmp_path):
    out = tmp_path / "tuned"

    class Second(Listener):
        def advance(self, count):
            with pytest.raises(RunLockedError, match=f"another process is training {out}"):
                train("masked", model, corpus, out)
            super().advance(count)

    listener = Second()
    train("masked", model, corpus, out, progress=listener)
    assert listener.steps > 0
    assert files_of(out) == peaceful["masked"]


def test_a_disk_that_fills_up(model, corpus, peaceful, tmp_path):
    """A limit on file sizes fails in the middle of a write as a full disk does, and needs no privilege."""
    out = tmp_path / "tuned"

    class Filling(Listener):
        def advance(self, count):
            super().advance(count)
            if self.steps == 5:
                resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(DiskFullError) as full:
            train("masked", model, corpus, out, progress=Filling())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(full.value) == (
        f"no space left while writing step 5 of {out}: {os.strerror(errno.EFBIG)}; nothing written earlier was"
        " damaged: make room, then start it again"
    )
    assert not list(WorkFolder(out).path.glob(".tmp-*"))
    assert saved_steps(out) == [3, 4]
    train("masked", model, corpus, out)
    assert files_of(out) == peaceful["masked"]


def test_a_full_disk_while_the_result_is_written(model, corpus, peaceful, tmp_path, monkeypatch):
    out = tmp_path / "tuned"

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(work_module.shutil, "copyfile", full)
        with pytest.raises(DiskFullError, match="while writing the checkpoint of"):
            train("masked", model, corpus, out)
    assert not out.exists()
    train("masked", model, corpus, out)
    assert files_of(out) == peaceful["masked"]


def test_there_is_no_pickle_in_the_working_folder(model, corpus, tmp_path):
    out = tmp_path / "tuned"
    with pytest.raises(Stop):
        train("prompt", model, corpus, out, progress=Listener(stop_after=5))
    names = sorted(path.name.split("-")[0] for path in WorkFolder(out).path.iterdir())
    assert names == ["lock", "settings.json", "step", "step"]
    for path in WorkFolder(out).path.glob("step-*"):
        assert path.suffix == ".safetensors"
