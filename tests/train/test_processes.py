"""Two processes that train one model together, as the launcher of accelerate starts them, on a CPU."""

from __future__ import annotations

import socket
import tomllib

import pytest
import torch
from safetensors.torch import load_file

from clinometer.errors import InputError, ModelError
from clinometer.train import MitigationSettings, mitigate
from clinometer.train.loop import Recipe, _rows_at_once
from clinometer.train.processes import (
    is_main_process,
    join_processes,
    mean_over_processes,
    process_count,
    process_place,
)
from tests.killing import Child
from tests.train.mitigation_samples import material_of, write_planted
from tests.train.samples import Listener, Stop, launch

SETTINGS = {
    "control": MitigationSettings(method="control", strength=0.0, steps=4, batch=4, learning_rate=1e-3, window=64),
    "embedding-10": MitigationSettings(steps=4, batch=4, learning_rate=1e-3, window=64),
}


def launched(arguments, *, folder):
    """Run `python -m clinometer` in two processes; return the exit code of the launcher, and what all printed.

    Without a GPU, --multi_gpu gives processes on the CPU. The launcher is forked where torch is loaded already.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["accelerate-launch", "--multi_gpu", "--num_processes", "2"]
    words += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    words += ["--main_process_port", str(port), "-m", "clinometer", *map(str, arguments)]
    child = Child(launch, folder, words)
    assert child.ends_within(120)
    return child.code, (folder / "out").read_text(), (folder / "errors").read_text()


@pytest.mark.timeout(180)
@pytest.mark.xdist_group("killed")  # they share what the launcher imports
def test_two_processes_train_the_model_that_one_trains(tiny_folder, tmp_path):
    """One checkpoint from its beginning, the other from where one process left off."""
    model = tiny_folder("llama")  # without dropout, which draws other numbers in every process
    corpus, attribute = write_planted(tmp_path, texts=150)
    material = material_of(corpus, attribute)
    alone = {
        name: mitigate(str(model), material, out=tmp_path / "alone" / name, settings=each, device="cpu")
        for name, each in SETTINGS.items()
    }
    out = tmp_path / "together"
    stem = f"{model.name}-job"
    with pytest.raises(Stop):
        mitigate(
            str(model),
            material,
            out=out / f"{stem}-embedding-10",
            settings=SETTINGS["embedding-10"],
            device="cpu",
            save_seconds=0.0,
            progress=Listener(stop_after=3),
        )
    (out / "mitigate.lock").touch()
    arguments = ["mitigate", model, "--attribute-file", attribute, "--corpus", corpus, "--strength", "0", "10"]
    arguments += ["--steps", "4", "--batch", "4", "--learning-rate", "1e-3", "--window", "64", "--held-out", "20"]
    arguments += ["--no-audit", "--device", "cpu", "--out", out]
    code, printed, errors = launched(arguments, folder=tmp_path)
    assert code == 0, errors
    # one process prints
    assert [line for line in printed.splitlines() if not line.startswith(" ")] == [
        str(out / f"{stem}-{name}") for name in SETTINGS
    ]
    assert errors.count("reading planted.txt") == 1
    assert errors.count(f"training {stem}-control: done") == 1
    for name, expected in alone.items():
        folder = out / f"{stem}-{name}"
        found, wanted = (load_file(place / "model.safetensors") for place in (folder, expected.folder))
        for weight in wanted:
            torch.testing.assert_close(found[weight], wanted[weight], rtol=0, atol=1e-5)
        figures = tomllib.loads((folder / "card.toml").read_text())["figures"]
        for figure in expected.figures:
            if figure.endswith("_tenth"):  # of all processes, not of one
                assert figures[figure] == pytest.approx(expected.figures[figure], rel=1e-4), figure
    assert not list(out.glob("*.unfinished"))


def test_without_a_launcher_there_is_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    assert (process_count(), process_place(), is_main_process()) == (1, (), True)
    join_processes()
    assert mean_over_processes(torch.tensor([2.0])).tolist() == [2.0]
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    assert (process_count(), process_place(), is_main_process()) == (4, (3,), False)


@pytest.mark.parametrize(("variable", "name"), [("FSDP", "FSDP"), ("DEEPSPEED", "DeepSpeed")])
def test_what_splits_a_model_is_refused(variable, name, monkeypatch):
    monkeypatch.setenv(f"ACCELERATE_USE_{variable}", "true")
    with pytest.raises(ModelError, match=f"{name} is not supported here; launch with --multi_gpu"):
        join_processes()


def test_a_batch_must_come_out_even(monkeypatch):
    recipe = Recipe(
        label="", rows=12, row_at=dict, collate=dict, loss=dict, batch=12, accumulate=2, learning_rate=1.0, seed=0
    )
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert _rows_at_once(recipe) == 2
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(InputError, match=r"12 cannot be divided into 2 accumulated parts on 4 devices; .* of 8"):
        _rows_at_once(recipe)
