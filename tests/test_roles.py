"""Models that play a part in an audit without being audited: who plays it, who may, and what a run keeps of it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import clinometer
from clinometer.errors import ModelError, SpecError
from clinometer.models.fake import FakeModel
from clinometer.store import RunFolder
from clinometer.types import AuditSpec, ClassifyAnswer, ModelSpec
from clinometer.workflows import plans
from clinometer.workflows.checks import check_spec
from clinometer.workflows.plans import all_models, players_of, probes_of
from tests.runs import start_audit, verify_audit

sys.path.insert(0, str(Path(__file__).parent / "probes"))
from fake_generator import encoder, generator, roles, scorer, write_attribute


def with_roles(spec):
    return plans.with_roles(spec, probes_of(spec))


def spec(**roles):
    return AuditSpec(
        probes=("counterfactual",),
        models=(ModelSpec(name="writer"),),
        roles={role: tuple(ModelSpec(name=name) for name in names) for role, names in roles.items()},
    )


@pytest.fixture
def options(tmp_path):
    attribute = write_attribute(tmp_path / "colour.toml", templates=1)
    return {"counterfactual": {"attributes": [], "attribute_file": attribute, "samples": 5, "draws": 100}}


def test_defaults_play_where_nobody_is_named():
    found = with_roles(spec(encoder=["mine"])).roles
    assert [model.name for model in found["scorer"]] == ["builtin:opinion-words", "builtin:sentiment"]
    assert [model.name for model in found["encoder"]] == ["mine"]
    without = AuditSpec(probes=("counterexamples",), models=(ModelSpec(name="bert"),))
    assert with_roles(without).roles == {}


def test_too_few():
    with pytest.raises(SpecError, match=r"1 model for the role 'scorer'; name at least 2"):
        with_roles(spec(scorer=["one"]))


def test_no_such_role():
    with pytest.raises(SpecError, match=r"no role 'score' in this audit; did you mean 'scorer'"):
        with_roles(spec(score=["one", "two"]))
    odd = replace(spec(scorer=["one", "two"]), probes=("counterexamples",))
    with pytest.raises(SpecError, match="these audits need none"):
        with_roles(odd)


def test_one_who_cannot_play_leaves_nothing_behind(tmp_path, options):
    cannot = roles(scorer=[scorer(), encoder("vectors")])
    with pytest.raises(ModelError, match="offers classify as its scorer; vectors"):
        clinometer.audit(
            generator(), probes="counterfactual", options=options, roles=cannot, folder=tmp_path / "run"
        )
    assert not (tmp_path / "run").exists()


def test_a_run_keeps_who_played_and_resumes_with_them(tmp_path, options):
    folder = tmp_path / "run"
    run = clinometer.audit(generator(), probes="counterfactual", options=options, roles=roles(), folder=folder)
    assert [info.name for info in run.models] == ["writer"]
    # by the name of the role, then as they were given
    assert [info.name for info in run.folder.assistants] == ["encoder", "words", "half"]
    assert verify_audit(run).problems == ()

    (part,) = folder.glob("records/*/*/scores-2/part-*")
    part.unlink()
    problems = verify_audit(RunFolder.open(folder)).problems
    assert problems == (
        f"{part} is missing",
        "counterfactual: writer, scores-2: 20 of 20 answers are missing",  # 4 values × 5 samples
        f"counterfactual: run `clinometer resume {folder}` to complete it",
    )
    before = {path: path.read_bytes() for path in folder.glob("findings/*/*.parquet")}
    everyone = [generator(), *roles()["scorer"], *roles()["encoder"]]
    clinometer.resume(folder, models=everyone)
    assert verify_audit(RunFolder.open(folder)).problems == ()
    assert {path: path.read_bytes() for path in folder.glob("findings/*/*.parquet")} == before


def test_a_scorer_that_changed_may_not_finish_a_run(tmp_path, options):
    folder = tmp_path / "run"
    clinometer.audit(generator(), probes="counterfactual", options=options, roles=roles(), folder=folder)
    (part,) = folder.glob("records/*/*/scores-1/part-*")
    part.unlink()
    other = FakeModel(answer=None, name="words", kind="classifier", capabilities=("classify",), version="2")
    with pytest.raises(ModelError, match="words changed since this run began"):
        clinometer.resume(folder, models=[generator(), other, *roles()["scorer"][1:], encoder()])


def test_a_model_may_be_audited_and_play_a_part(tmp_path, options):
    writer = generator()

    def answer(request):
        if hasattr(request, "prefix"):
            return writer.sample([request])[0]
        return ClassifyAnswer(negative=0.25, neutral=0.5, positive=0.25)

    both = FakeModel(answer=answer, name="both", kind="causal", capabilities=("sample", "classify"))
    players = roles(scorer=[scorer(), both])
    run = clinometer.audit(both, probes="counterfactual", options=options, roles=players, folder=tmp_path / "run")
    assert [info.name for info in run.models] == ["both"]
    assert [info.name for info in run.folder.assistants] == ["encoder", "words"]
    assert verify_audit(run).problems == ()
    assert "<td><bdi>audited, scorer</bdi></td>" in run.report_path.read_text()


def test_everyone_is_named_once():
    given = replace(spec(scorer=["writer", "s"], encoder=["s"]), models=(ModelSpec(name="writer"),))
    assert [model.name for model in all_models(given)] == ["writer", "s"]
    infos = [generator().info, scorer("s").info]
    players = players_of(given, infos)
    assert [info.name for info in players["scorer"]] == ["writer", "s"]
    assert [info.name for info in players["encoder"]] == ["s"]


def test_start_audit_checks_roles_before_models_are_loaded(tmp_path):
    with pytest.raises(SpecError, match="name at least 2"):
        start_audit(spec(scorer=["no/such-model"]), tmp_path / "run")
    check_spec(with_roles(spec()), probes_of(spec()))


def test_one_model_cannot_play_a_part_twice():
    with pytest.raises(SpecError, match="named twice for the role 'scorer'"):
        with_roles(spec(scorer=["one", "one"]))


def test_two_models_in_memory_need_two_names(options, tmp_path):
    alike = roles(scorer=[scorer(), scorer()])
    with pytest.raises(SpecError, match="two models in memory are named"):
        clinometer.audit(
            generator(), probes="counterfactual", options=options, roles=alike, folder=tmp_path / "run"
        )


def test_a_bare_function_is_told_how_to_become_a_scorer(options, tmp_path):
    bare = roles(scorer=[scorer(), lambda texts: [0.5] * len(texts)])
    with pytest.raises(ModelError, match="CallableScorer"):
        clinometer.audit(
            generator(), probes="counterfactual", options=options, roles=bare, folder=tmp_path / "run"
        )
