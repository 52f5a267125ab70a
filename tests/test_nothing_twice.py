"""A model is loaded once, a question made once, whoever answers."""

from collections import Counter
from dataclasses import replace

import pytest

import clinometer
from clinometer.probes import get_probe
from clinometer.types import AuditSpec, ModelSpec
from clinometer.workflows import Execution
from clinometer.workflows import pool as pools
from clinometer.workflows.pool import ModelPool
from tests.test_roles import generator, options, roles  # noqa: F401


class Loads(Counter):
    """Stands in for `load_model`, and counts."""

    def __init__(self, models):
        super().__init__()
        self.models = {model.info.name: model for model in models}

    def __call__(self, spec, *, device, providers):
        self[spec.name] += 1
        return self.models[spec.name]


@pytest.fixture
def cast(monkeypatch):
    """Two writers, two scorers and an encoder, all of them loaded by name."""
    writers = [generator(), generator()]
    writers[1].info = replace(writers[1].info, name="second")
    players = roles()
    loads = Loads([*writers, *players["scorer"], *players["encoder"]])
    monkeypatch.setattr(pools, "load_model", loads)
    monkeypatch.setattr(pools, "inspect_model", lambda spec, device, providers: loads.models[spec.name])
    monkeypatch.setattr(pools, "weight_bytes", lambda spec, providers: 0)
    monkeypatch.setattr(pools, "check_model", lambda spec, providers: None)
    monkeypatch.setattr(pools, "identity_of", lambda spec, providers: {})
    names = {role: [model.info.name for model in models] for role, models in players.items()}
    return loads, names


def audit(names, options, folder):
    return clinometer.audit(
        ["writer", "second"], probes=["counterfactual"], options=options, roles=names, folder=folder
    )


def test_every_model_is_loaded_once(cast, options, tmp_path):
    loads, names = cast
    audit(names, options, tmp_path / "run")
    assert dict(loads) == dict.fromkeys(["writer", "second", "encoder", "words", "half"], 1)


def test_of_models_that_do_not_fit_together_one_is_held_at_a_time(cast, options, tmp_path, monkeypatch):
    loads, names = cast
    monkeypatch.setattr(pools, "KEPT_BYTES", -1)
    audit(names, options, tmp_path / "run")
    # to be described before the folder is made it needs no weights; assistants answer for both writers together
    assert dict(loads) == dict.fromkeys(["writer", "second", "encoder", "words", "half"], 1)


def test_the_longest_unused_is_let_go(cast, monkeypatch):
    loads, _ = cast
    for model in loads.models.values():
        model.info = replace(model.info, parameters=100)
    monkeypatch.setattr(pools, "KEPT_BYTES", 800)  # two models of 100 float32 numbers
    spec = AuditSpec(probes=(), models=tuple(ModelSpec(name=name) for name in ("writer", "second", "words")))
    pool = ModelPool(spec, {}, Execution())
    pool.get("writer")
    pool.get("second")
    pool.get("writer")
    pool.get("words")
    assert [pool.holds(name) for name in ("writer", "second", "words")] == [True, False, True]
    assert loads["writer"] == 1


def test_a_model_that_finds_no_room_is_loaded_again_alone(cast, monkeypatch):
    loads, _ = cast
    spec = AuditSpec(probes=(), models=(ModelSpec(name="writer"), ModelSpec(name="second")))
    pool = ModelPool(spec, {}, Execution())
    pool.get("writer")

    def tight(spec, *, device, providers):
        if pool.holds("writer"):
            raise RuntimeError("CUDA out of memory")
        if spec.name == "writer":
            raise RuntimeError("out of memory in any case")
        return loads(spec, device=device, providers=providers)

    monkeypatch.setattr(pools, "load_model", tight)
    assert pool.get("second").info.name == "second"
    assert not pool.holds("writer")
    pool = ModelPool(spec, {}, Execution())
    with pytest.raises(RuntimeError, match="in any case"):
        pool.get("writer")


def test_questions_are_made_once(cast, options, tmp_path, monkeypatch):
    _, names = cast
    probe = get_probe("counterfactual")
    made = Counter()
    real = type(probe).questions

    def counted(self, stage, plan, records):
        for item in real(self, stage, plan, records):
            made[plan.model.name, stage.name] += 1
            yield item

    monkeypatch.setattr(type(probe), "questions", counted)
    run = audit(names, options, tmp_path / "run")
    assert made == {(key.model, key.stage): len(run.folder.done(key)) for key in run.folder.stages()}
