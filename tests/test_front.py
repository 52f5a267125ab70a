"""The public names: adding one is a decision, losing one breaks somebody."""

import math
from dataclasses import replace

import pytest

import clinometer
from clinometer.errors import InputError, SpecError
from clinometer.models.callable_scorer import CallableScorer
from clinometer.models.fake import FakeModel
from clinometer.train import CorpusSettings, MitigationSettings
from clinometer.types import WordAnswer
from clinometer.workflows import CheckpointAudit, Execution
from tests.models.tiny import tiny
from tests.train.mitigation_samples import write_planted


def test_the_public_names():
    assert set(clinometer.__all__) == {
        "__version__", "audit", "bundle", "compare", "load_model", "mitigate", "open_run", "replicate", "resume",
        "shift", "tune", "verify", "write_report",
    }  # fmt: skip
    for name in clinometer.__all__:
        assert getattr(clinometer, name) is not None
    assert dir(clinometer) == sorted(clinometer.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(clinometer, "debias")


def even_handed(request):
    return WordAnswer(words=("woman", "man"), logprobs=(math.log(0.3), math.log(0.3)))


def attentive(request):
    """Even-handed, too, but it heeds a gender that is named: else it would not be judged."""
    named = {"woman", "female"} & {*request.context.lower().strip(".").split()}
    return WordAnswer(words=("woman", "man"), logprobs=(math.log(0.4 if named else 0.3), math.log(0.3)))


def test_any_python_function_can_be_audited(tmp_path):
    fake = FakeModel(answer=attentive, version="1", name="mine")
    options = {"counterexamples": {"backgrounds": 1, "draws": 100}}
    run = clinometer.audit(fake, probes="counterexamples", options=options, folder=tmp_path / "run")
    (found,) = run.findings
    assert "mine was not found to expect women more, or less," in found.headlines[0]
    assert "is 0.000 (95 % interval 0.000 to 0.000, q = 1.000)" in found.headlines[0]
    assert run.report_path.is_file()
    assert clinometer.verify(tmp_path / "run").problems == ()
    assert clinometer.resume(tmp_path / "run", models=[fake]).path == tmp_path / "run"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"profile": "quik"}, "profile"),
        ({"probes": "counterexample"}, "did you mean 'counterexamples'"),
        ({"probes": []}, "empty"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": "1"}, "seed"),
        ({"options": {"counterexamples": {"kss": [1]}}}, "did you mean 'ks'"),
    ],
)
def test_the_library_checks_as_strictly_as_the_command_line(tmp_path, arguments, words):
    with pytest.raises(SpecError, match=words):
        clinometer.audit("builtin:masked", folder=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


def test_models_may_come_in_any_collection(tmp_path):
    options = {"counterexamples": {"backgrounds": 1, "draws": 100}}
    fakes = (FakeModel(answer=even_handed, version="1", name=name) for name in ("one", "two"))
    run = clinometer.audit(fakes, probes=["counterexamples"], options=options, folder=tmp_path / "run")
    assert [info.name for info in run.models] == ["one", "two"]


def test_a_model_can_be_mitigated(tmp_path, monkeypatch):
    corpus, attribute = write_planted(tmp_path, texts=300)
    model = tiny("llama", tmp_path / "tiny")
    scorers = ["builtin:opinion-words", CallableScorer("flat", lambda texts: [0.5] * len(texts))]
    samples = {"samples": 3, "max_new_tokens": 4, "draws": 100}
    audit = CheckpointAudit(
        profile="quick",
        options={"counterfactual": samples},
        roles={"scorer": scorers, "encoder": [str(tiny("bert", tmp_path / "encoder", head="BertModel"))]},
    )
    small = {
        "corpus": corpus,
        "attribute": attribute,
        "settings": MitigationSettings(steps=2, batch=4, window=64, learning_rate=1e-3),
        "corpus_settings": CorpusSettings(held_out=10),
        "out": tmp_path / "out",
        "audit": audit,
        "execution": Execution(device="cpu"),
    }
    run = clinometer.mitigate(str(model), **small, strengths=[0, 10])
    names = [info.name for info in run.models]
    assert names == ["tiny", "tiny-job-control", "tiny-job-embedding-10"]
    assert run.report_path.is_file()
    (found,) = run.findings
    (change,) = (table for table in found.tables if table.name == "change")
    assert {row.labels["against"] for row in change.rows} == {"before", "control"}
    # once more, the model named from here: the same run, and nothing is asked again
    records = {path: path.stat().st_mtime_ns for path in run.path.glob("records/**/*.parquet")}
    monkeypatch.chdir(tmp_path)
    again = clinometer.mitigate("tiny", **small, strengths=[0, 10])
    assert again.path == run.path
    assert {path: path.stat().st_mtime_ns for path in again.path.glob("records/**/*.parquet")} == records
    more = {"audit": replace(audit, options={"counterfactual": {**samples, "samples": 4}})}
    for other, told in (
        (more, "was begun with counterfactual.samples 3, now 4; give the same again"),
        ({"audit": replace(audit, profile="standard")}, "profile quick, now standard"),
        (
            {"strengths": [10]},
            "was begun with models tiny, tiny-job-control, tiny-job-embedding-10, now tiny, tiny-job",
        ),
        ({"out": corpus}, r"planted\.txt is a file; name another place"),
        ({"out": tmp_path}, "holds something else; name another place"),
        ({"corpus_settings": CorpusSettings(held_out=11)}, "was begun with other documents held out"),
    ):
        with pytest.raises(InputError, match=told):
            clinometer.mitigate("tiny", **{**small, "strengths": [0, 10]} | other)
    # what is wrong with the audit is found before anything is trained
    wrong = {"audit": replace(audit, options={"counterfactual": {"sample": 3}}), "out": tmp_path / "other"}
    with pytest.raises(SpecError, match="samples"):
        clinometer.mitigate("tiny", **small | wrong)
    assert not (tmp_path / "other").exists()
