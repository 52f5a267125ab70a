"""What `verify` says: wrong numbers, other words, an older estimator, a run of an older format."""

import dataclasses
import json
import math
import shutil

import pytest

import clinometer
from clinometer.cli.runs import verify
from clinometer.models.fake import FakeModel
from clinometer.probes.counterexamples import PROBE
from clinometer.types import WordAnswer
from tests.attacks.forging import forge


def even(request):
    return WordAnswer(words=("woman", "man"), logprobs=(math.log(0.3), math.log(0.3)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    options = {"counterexamples": {"backgrounds": 1, "draws": 100, "occupations": "winobias"}}
    fake = FakeModel(answer=even, version="1", name="fake")
    folder = tmp_path_factory.mktemp("runs") / "run"
    return clinometer.audit(fake, probes="counterexamples", options=options, folder=folder).path


@pytest.fixture
def run(finished, tmp_path):
    """A finished run of one's own to change."""
    return clinometer.open_run(shutil.copytree(finished, tmp_path / "run"))


def change(monkeypatch, edit, said=lambda headline: headline):
    """Let the audit conclude otherwise: `edit` takes and returns a table."""
    real = type(PROBE).findings

    def findings(self, plans, records):
        found = real(self, plans, records)
        return dataclasses.replace(
            found, tables=tuple(map(edit, found.tables)), headlines=tuple(map(said, found.headlines))
        )

    monkeypatch.setattr(type(PROBE), "findings", findings)


def reworded(table):
    return dataclasses.replace(table, caption=table.caption + " In other words.")


def shifted(table):
    rows = tuple(dataclasses.replace(row, estimate=row.estimate + 1) for row in table.rows)
    return dataclasses.replace(table, rows=rows)


def by_a_newer_estimator(table):
    return dataclasses.replace(shifted(table), version=table.version + 1)


def by_another_release(run):
    """Say of the stored findings that another release wrote them."""
    index = run.path / "findings" / "counterexamples" / "index.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), "release": "0.0.1"}))
    forge(run.path)


def test_other_words_of_another_release_are_no_damage(run, monkeypatch):
    change(monkeypatch, reworded)
    by_another_release(run)
    found = clinometer.verify(run.path)
    assert found.problems == ()
    words, page = found.notes
    assert words == "counterexamples: worded by release 0.0.1; its numbers were compared, its words were not"
    assert "report.html was drawn by release 0.0.1, so it was not compared" in page


def test_other_words_of_this_release_are(run, monkeypatch):
    change(monkeypatch, reworded)
    (problem,) = clinometer.verify(run.path).problems
    assert "the title or caption of table 'lean'" in problem
    assert "follow from the records" not in problem  # that is what wrong numbers are called


@pytest.mark.parametrize("other", [False, True])
def test_wrong_numbers_are_damage_whoever_wrote_them(run, monkeypatch, other):
    change(monkeypatch, shifted)
    if other:
        by_another_release(run)
    problems = clinometer.verify(run.path).problems
    tables = run["counterexamples"].values()
    measured = [any(row.estimate == row.estimate for row in table.rows) for table in tables]
    assert len(problems) == sum(measured) > 5
    assert (
        "the stored findings are not those that follow from the records: table 'gendered_mass', row 1,"
        in problems[0]
    )


def test_an_older_estimator_is_told_apart_from_damage(run, monkeypatch, capsys):
    change(monkeypatch, by_a_newer_estimator)
    found = clinometer.verify(run.path)
    assert found.problems == ()
    assert found.older == ("counterexamples",)
    assert len(found.notes) == len(run["counterexamples"])
    assert (
        "made by an older estimator, not compared: table 'gendered_mass' was made by version 1" in found.notes[0]
    )
    verify(run.path)
    assert "recomputed and equal, apart from tables of an older estimator\n" in capsys.readouterr().out


def test_the_words_of_an_older_estimator_are_not_compared(run, monkeypatch):
    change(monkeypatch, by_a_newer_estimator, said=lambda headline: headline + " In other words.")
    found = clinometer.verify(run.path)
    assert found.problems == ()
    assert "its words rest on numbers of an older estimator; they were not compared" in found.notes[-1]


def test_a_run_of_format_1_is_verified(tmp_path, monkeypatch):
    """As the first release wrote it: keys without a version, no roles, no versions of estimators."""
    from clinometer.engine import identity
    from clinometer.workflows import audit

    monkeypatch.setattr(audit, "KEY_VERSION", 1)
    options = {"counterexamples": {"backgrounds": 1, "draws": 100}}
    fake = FakeModel(answer=even, version="1", name="fake")
    run = clinometer.audit(fake, probes="counterexamples", options=options, folder=tmp_path / "run")
    monkeypatch.undo()
    assert identity.KEY_VERSION == 2
    provenance = run.path / "provenance.json"
    document = json.loads(provenance.read_text())
    for name in ("format", "key_version", "questions", "sessions", "sha256", "checksum"):
        del document[name]
    provenance.write_text(json.dumps(document))
    (run.path / "run.sha256").unlink()
    models = run.path / "models.json"
    models.write_text(json.dumps({"audited": json.loads(models.read_text())["audited"], "beside": []}))
    index = run.path / "findings" / "counterexamples" / "index.json"
    document = json.loads(index.read_text())
    del document["release"]
    for table in document["tables"]:
        del table["version"]
    index.write_text(json.dumps(document))
    assert clinometer.verify(run.path).problems == ()
    assert clinometer.write_report(run.path).is_file()
    # and its keys are looked at: with those of today every answer would be missing
    document = json.loads(provenance.read_text())
    provenance.write_text(json.dumps({**document, "format": 2, "key_version": 2}))
    problem, advice = clinometer.verify(run.path).problems
    assert "answers are missing" in problem
    assert "clinometer resume" in advice
