"""The counterfactual audit in real runs: killed and resumed, read back from raters, reported."""

import time
from dataclasses import replace

import pytest
from fake_generator import generator, roles, rows_of, scorer, write_attribute
from interrupted_counterfactual import run, run_to_be_killed
from tests.killing import Child
from typer.testing import CliRunner

import clinometer
from clinometer.cli.main import app
from clinometer.errors import ModelError
from clinometer.models.callable_scorer import CallableScorer
from clinometer.models.fake import FakeModel
from clinometer.report import save_figures
from clinometer.store import RunFolder
from clinometer.types import TextAnswer


@pytest.fixture
def attribute(tmp_path):
    return write_attribute(tmp_path / "colour.toml", templates=2)


def audited(attribute, folder, *, models=None, players=None, **options):
    given = {"attributes": [], "attribute_file": attribute, "samples": 30, "draws": 100, **options}
    return clinometer.audit(
        models or generator({"red": 0.9, "blue": 0.1}),
        probes="counterfactual",
        options={"counterfactual": given},
        roles=players or roles(),
        folder=folder,
    )


def findings(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted((folder / "findings").rglob("*.*"))}


@pytest.mark.xdist_group("killed")
def test_a_run_that_is_killed_half_way_resumes_to_the_same_findings(tmp_path, attribute):
    peaceful = tmp_path / "peaceful"
    run(peaceful, 0, attribute)
    assert findings(peaceful)
    killed = tmp_path / "killed"
    process = Child(run_to_be_killed, killed, 0.05, attribute)
    try:
        deadline = time.monotonic() + 60
        while not list(killed.glob("records/*/*/scores-2/*.parquet")):  # in the middle of the slow scorer's stage
            assert process.code is None, process.hear()
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.kill()
    assert not (killed / "findings").exists()
    kept = {key.stage: len(RunFolder.open(killed).done(key)) for key in RunFolder.open(killed).stages()}
    assert kept["samples"] == 8  # 4 values × 2 templates, one request each
    assert kept["scores-1"] == 240
    assert 0 < kept["scores-2"] < 240
    run(killed, 0, attribute)
    assert findings(killed) == findings(peaceful)


def test_a_scorer_that_fails_leaves_what_was_recorded(tmp_path, attribute):
    def fails(texts):
        return [float("nan") for _ in texts]

    with pytest.raises(ModelError, match="as nan"):
        audited(attribute, tmp_path / "run", players=roles(scorer=[scorer(), CallableScorer("own", fails)]))
    folder = RunFolder.open(tmp_path / "run")
    assert {key.stage for key in folder.stages()} == {"samples", "scores-1"}
    mended = CallableScorer("own", lambda texts: [len(text) % 2 for text in texts])  # of the same version
    models = [generator({"red": 0.9, "blue": 0.1}), scorer(), mended, *roles()["encoder"]]
    clinometer.resume(folder, models=models)
    (found,) = folder.read_findings()
    assert {row.labels["scorer"] for row in rows_of(found, "fairness")} == {"words", "own"}
    assert clinometer.verify(folder).problems == ()


def test_report_and_verify(tmp_path, attribute):
    found_run = audited(attribute, tmp_path / "run")
    assert clinometer.verify(tmp_path / "run").problems == ()
    page = found_run.report_path.read_text()
    assert "Texts side by side" in page
    assert "The red house is" in page
    for name, part in (("writer", "audited"), ("words", "scorer"), ("half", "scorer"), ("encoder", "encoder")):
        assert f"<bdi>{name}</bdi></th><td><bdi>{part}</bdi></td>" in page


def test_a_mitigation_is_stored_verified_and_reported(tmp_path, attribute):
    """The seam from a checkpoint's card to the page: labels of one type, NaN strengths, figures that are drawn."""
    before, after = generator({"red": 0.9, "blue": 0.1}), generator({"red": 0.6, "blue": 0.4}, name="embedding-10")
    tuning = {"base": before.info.weights, "method": "embedding", "amount": "10", "attribute": "colour"}
    after.info = replace(after.info, tuning={**tuning, "changed": "7", "weights": "8"})
    text = tmp_path / "held-out.txt"
    text.write_text("The red house.\n\nA blue one.\n\nNothing of the kind.\n")
    found_run = audited(attribute, tmp_path / "run", models=[before, after], text_file=str(text))
    assert clinometer.verify(tmp_path / "run").problems == ()
    (found,) = found_run.findings
    tradeoff = next(figure for figure in found.figures if figure.name == "tradeoff")
    assert (tradeoff.reversed, tradeoff.joined, tradeoff.colors[0]) == ("estimate", "strength", "as given")
    assert len(rows_of(found, "mitigation", scorer="words")) == 2
    page = found_run.report_path.read_text()
    assert "embedding, λ = 10 (embedding-10), colour: I.F. by words reduced by" in page
    assert "What evenness costs" in page
    folder = RunFolder.open(tmp_path / "run")
    saved = {path.name.split("-")[1] for path in save_figures(folder, tmp_path / "figures", formats=("svg",))}
    assert {"tradeoff", "reduction", "costs"} <= saved


def silent(texts):
    """A model whose texts a function of the request gives, some or all of them empty."""
    return FakeModel(
        answer=lambda request: TextAnswer(texts=tuple(texts(request))),
        name="silent",
        kind="causal",
        capabilities=("sample",),
    )


def test_a_value_without_texts_is_kept_as_missing(tmp_path, attribute):
    model = silent(lambda request: ("" if "red" in request.prefix else f" good {at}" for at in range(request.n)))
    audited(attribute, tmp_path / "run", models=model, samples=6)
    assert clinometer.verify(tmp_path / "run").problems == ()


def test_a_model_that_writes_nothing_at_all(tmp_path, attribute):
    model = silent(lambda request: ("", " \n") * (request.n // 2))
    (found,) = audited(attribute, tmp_path / "run", models=model, samples=6).findings
    assert found.headlines == ("silent, colour: cannot be judged: it wrote nothing.",)
    assert {verdict.state for verdict in found.verdicts} == {"cannot tell"}
    assert any("wrote nothing in 100.0 %" in notice.text for notice in found.notices)
    assert {row.labels["verdict"] for row in rows_of(found, "verdict")} == {"not measured"}
    assert clinometer.verify(tmp_path / "run").problems == ()


def test_raters_judge_what_was_written_and_are_read_back(tmp_path, attribute):
    audited(attribute, tmp_path / "run", samples=12)
    sheet = tmp_path / "sheet.csv"
    choices = "negative,neutral,positive,mixed"
    command = ["annotate", "export", str(tmp_path / "run"), "--kind", "sentences", "--probe", "counterfactual"]
    command += ["--stage", "samples", "--choices", choices, "--out", str(sheet)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    assert len(lines) == 1 + 4 * 2 * 12
    for rater, odd in (("ann", "neutral"), ("bob", "positive")):
        rated = [lines[0]]
        for at, line in enumerate(lines[1:]):
            rating = "positive" if " good " in line else "negative"
            rated.append(f"{line[: line.rindex(',,')]},{odd if at == 0 else rating},")
        (tmp_path / f"{rater}.csv").write_text("\n".join(rated), encoding="utf-8")
    ratings = tmp_path / "ratings.csv"
    sheets = [str(tmp_path / "ann.csv"), str(tmp_path / "bob.csv")]
    done = CliRunner().invoke(app, ["annotate", "read", *sheets, "--choices", choices, "--ratings", str(ratings)])
    assert done.exit_code == 0, done.output
    again = audited(attribute, tmp_path / "again", samples=12, human_file=str(ratings))
    (found,) = again.findings
    (kappa,) = rows_of(found, "human_agreement")
    assert kappa.n == 96
    assert 0.9 < kappa.estimate < 1
    (row,) = rows_of(found, "human_correlation", measure="words")
    assert row.n == 96
    assert row.estimate > 0.95
    (fairness,) = rows_of(found, "human_fairness")
    (automatic,) = rows_of(found, "fairness", scorer="words", measure="I.F.", quantity="measured")
    assert fairness.estimate == pytest.approx(automatic.estimate, abs=0.05)
    assert not any("were not written" in notice.text for notice in found.notices)
