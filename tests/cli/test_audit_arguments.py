"""How models and settings are named on the command line of `clinometer audit`."""

import json
import os
from pathlib import Path

import pytest

import clinometer as library
from clinometer.errors import InputError, ModelError, SpecError
from clinometer.models.fake import FakeModel
from clinometer.models.local.classifier import classes_of
from clinometer.models.local.loading import pick_device
from clinometer.spec import dump_spec, parse_spec
from clinometer.store import RunFolder
from clinometer.types import AuditSpec, ModelSpec, WordAnswer
from clinometer.workflows.checks import check_spec
from clinometer.workflows.plans import labels_of
from tests.models.tiny import tiny

SMALL = ["--set", "counterexamples.backgrounds=1", "counterexamples.draws=100", "counterexamples.ks=[5]"]


def test_several_settings_follow_one_flag_and_models_stand_anywhere(clinometer, tmp_path):
    model = tiny("bert", tmp_path / "model")
    done = clinometer(
        "audit", "--probe", "counterexamples", *SMALL, f"mine={model}", "--out", str(tmp_path / "run")
    )
    assert done.code == 0, done
    run = RunFolder.open(tmp_path / "run")
    assert [info.name for info in run.models] == ["mine"]
    options = parse_spec(run.spec).options["counterexamples"]
    assert options == {"backgrounds": 1, "draws": 100, "ks": [5]}


def test_model_is_an_option_too(clinometer, tmp_path):
    model = tiny("bert", tmp_path / "model")
    done = clinometer(
        "audit", "--model", f"mine={model}", "--probe", "counterexamples", *SMALL, "--out", str(tmp_path / "run")
    )
    assert done.code == 0, done
    assert "mine: gendered words among the top" in done.out
    assert str(tmp_path) not in (tmp_path / "run" / "models.json").read_text()


@pytest.mark.parametrize("given", ["=bert", f"{'x' * 61}=bert", "a\tb=bert"])
def test_a_name_that_cannot_be_shown_is_refused(clinometer, tmp_path, given):
    done = clinometer("audit", given, "--out", str(tmp_path / "run"))
    assert done.code == 2
    assert "expected NAME=MODEL" in done.err


def test_folders_of_one_name_are_told_apart_by_what_differs():
    def labels(*names):
        return labels_of([ModelSpec(name=name) for name in names])

    assert labels("/home/me/a/best", "/home/me/b/best") == ["a/best", "b/best"]
    assert labels("/x/a/checkpoint/best", "/x/b/checkpoint/best", "/y/other") == [
        "a/checkpoint/best",
        "b/checkpoint/best",
        "other",
    ]
    assert labels("/best", "/a/best") == ["best", "a/best"]
    assert labels("bert", "/models/bert") == ["bert", "models/bert"]


def test_an_alias_is_kept_in_the_spec_and_must_be_the_only_one():
    spec = AuditSpec(probes=("stigma",), models=(ModelSpec(name="/a", alias="x"), ModelSpec(name="/b", alias="x")))
    assert parse_spec(dump_spec(spec)) == spec
    with pytest.raises(SpecError, match="two models are called 'x \\(auto\\)'"):
        check_spec(spec, {})


def test_stars_are_mapped_by_their_order():
    with pytest.raises(ModelError) as refused:
        classes_of([f"{star} stars" for star in range(1, 6)], {}, model="m")
    assert (
        "--label-map 'm:1 stars=negative,2 stars=negative,3 stars=neutral,4 stars=positive,5 stars=positive'"
        in str(refused.value)
    )


def test_gpu_is_the_gpu_there_is(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ModelError, match="torch finds no GPU on this machine"):
        pick_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert pick_device("gpu") == torch.device("cuda")


def even(request):
    return WordAnswer(words=("woman", "man"), logprobs=(-1.0, -1.0))


def test_a_place_that_cannot_be_made_is_named_without_advice_to_resume(tmp_path, monkeypatch):
    real = os.mkdir

    def read_only(path, *rest, **others):
        if Path(path).name == "run":
            raise OSError(30, "Read-only file system", str(path))
        return real(path, *rest, **others)

    monkeypatch.setattr(os, "mkdir", read_only)
    fake = FakeModel(answer=even, name="fake")
    with pytest.raises(
        InputError, match=r"no run can be begun in .*run: Read-only file system; .*--out"
    ) as refused:
        library.audit(fake, probes="counterexamples", folder=tmp_path / "run")
    assert "resume" not in str(refused.value)


def test_verify_says_how_much_is_missing(tmp_path):
    fake = FakeModel(answer=even, version="1", name="fake")
    options = {"counterexamples": {"backgrounds": 1, "draws": 100}}
    run = library.audit(fake, probes="counterexamples", options=options, folder=tmp_path / "run")
    for part in run.path.glob("records/*/*/prompts/*.parquet"):
        part.unlink()
    lost, problem, advice = library.verify(run.path).problems
    assert "part-000001" in lost
    assert lost.endswith("is missing")
    assert problem == "counterexamples: fake, prompts: 580 of 580 answers are missing"
    assert advice.endswith("to complete it")
    assert json.loads((run.path / "provenance.json").read_text())["format"] == 3
