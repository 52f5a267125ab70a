"""A run from a stranger names a model with code of its own: no command runs that code unasked."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

import clinometer
from clinometer.cli.main import main
from clinometer.errors import ModelError, SpecError
from clinometer.models.files import identifying_settings
from clinometer.models.load import identity_of
from clinometer.store import PLACES, RunFolder
from clinometer.types import ModelSpec
from tests.attacks.forging import forge
from tests.attacks.samples import parts
from tests.models.tiny import tiny

OWN_CODE = {
    "model_type": "homemade",
    "auto_map": {"AutoConfig": "own.Config", "AutoModelForMaskedLM": "own.Model"},
}
OPTIONS = {"counterexamples": {"backgrounds": 1, "draws": 100}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of a plain model, which a stranger will change."""
    folder = tmp_path_factory.mktemp("made")
    model = tiny("bert", folder / "model")
    run = clinometer.audit(str(model), probes="counterexamples", options=OPTIONS, folder=folder / "run")
    return run.path, model


@pytest.fixture
def sent(finished, tmp_path, monkeypatch):
    """The run and its model as a stranger sends them: answers are missing, so that the model is needed."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    run, model = tmp_path / "run", tmp_path / "model"
    shutil.copytree(finished[0], run)
    shutil.copytree(finished[1], model)
    places = run / PLACES
    places.write_text(places.read_text().replace(str(finished[1]), str(model)))
    parts(run)[0].unlink()
    forge(run)
    return run, model


@pytest.fixture
def trap(sent):
    """The same with code that leaves a mark when it is run, and a spec that asks for it to be run."""
    run, model = sent
    mark = model.parent / "mark"
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **OWN_CODE}))
    (model / "own.py").write_text(
        f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nraise SystemExit('this code was run')\n"
    )
    spec = run / "spec.toml"
    spec.write_text(spec.read_text().replace("trust_remote_code = false", "trust_remote_code = true"))
    forge(run)
    return run, model, mark


def test_resume_does_not_obey_the_spec_of_the_folder(trap):
    run, _, mark = trap
    with pytest.raises(ModelError, match="--trust-remote-code model"):
        clinometer.resume(run)
    assert not mark.exists()


def test_nor_does_the_command_that_verify_advises(trap, monkeypatch, capsys):
    run, _, mark = trap
    assert any("clinometer resume" in problem for problem in clinometer.verify(run).problems)
    monkeypatch.setattr(sys, "argv", ["clinometer", "resume", str(run)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "--trust-remote-code model" in capsys.readouterr().err
    assert not mark.exists()


def test_trust_is_no_reason_to_load_another_model(trap):
    """The configuration is not the one in models.json: that shows before any of the code is run."""
    run, _, mark = trap
    with pytest.raises(ModelError, match="the configuration of model changed since this run began"):
        clinometer.resume(run, trust_remote_code=["model"])
    assert not mark.exists()


def test_trust_is_given_to_a_model_of_the_run(trap):
    with pytest.raises(SpecError, match="'modle' is not a model of this run; did you mean 'model'"):
        clinometer.resume(trap[0], trust_remote_code=["modle"])


def test_code_that_is_trusted_is_run_once_all_else_is_the_same(trap):
    """The same door, opened on purpose."""
    run, model, mark = trap
    document = json.loads((run / "models.json").read_text())
    document["audited"][0]["settings"] = identifying_settings(model, own_code=True)
    (run / "models.json").write_text(json.dumps(document))
    forge(run)
    with pytest.raises(SystemExit, match="this code was run"):
        clinometer.resume(run, trust_remote_code=["model"])
    mark.unlink()
    # and no longer when it is other code than the run began with
    (model / "own.py").write_text((model / "own.py").read_text() + "# changed\n")
    with pytest.raises(ModelError, match="the configuration of model changed"):
        clinometer.resume(run, trust_remote_code=["model"])
    assert not mark.exists()


def test_own_code_counts_only_where_it_may_run(finished, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(finished[1], folder)
    plain = identity_of(ModelSpec(name=str(folder)))
    (folder / "own.py").write_text("one = 1\n")
    assert identity_of(ModelSpec(name=str(folder))) == plain
    assert identity_of(ModelSpec(name=str(folder), trust_remote_code=True)) != plain


def test_other_weights_are_noticed_before_they_are_loaded(sent, monkeypatch):
    run, model = sent
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (model / "model.safetensors").write_bytes(weights)
    monkeypatch.setattr("clinometer.workflows.pool.load_model", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(ModelError, match="the weights of model changed since this run began"):
        clinometer.resume(RunFolder.open(run))


def test_a_spec_file_does_not_trust_for_its_reader(tmp_path, monkeypatch, capsys):
    """A spec is a file, too: who runs it says on the command line whose code may run."""
    (tmp_path / "spec.toml").write_text(
        'version = 1\nprobes = ["stigma"]\nmodels = [{name = "someone/model", trust_remote_code = true}]\n'
    )
    for named in ([], ["--trust-remote-code", "someone/else"]):
        monkeypatch.setattr(sys, "argv", ["clinometer", "audit", "--spec", str(tmp_path / "spec.toml"), *named])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        assert "--trust-remote-code someone/model" in capsys.readouterr().err
