"""Who computed which part of a run, and what happens when somebody else goes on."""

from __future__ import annotations

import dataclasses
import json

import pytest

import clinometer
from clinometer.errors import InputError, ModelError
from clinometer.models.fake import FakeModel
from clinometer.store import RunFolder
from clinometer.workflows import Execution, audit
from tests.attacks.forging import forge
from tests.attacks.samples import Tiny, answer, fake, parts, resume, tiny_run, verify


@pytest.fixture
def run(tmp_path):
    return tiny_run(tmp_path / "run").path


def other_machine(monkeypatch, **changes):
    real = audit.describe_session
    monkeypatch.setattr(audit, "describe_session", lambda **given: {**real(**given), **changes})


def sessions(path):
    return json.loads((path / "provenance.json").read_text())["sessions"]


def test_every_part_says_who_computed_it(run):
    (session,) = sessions(run)
    assert {"clinometer", "torch", "transformers", "device", "threads", "recorded"} <= set(session)
    assert session["clinometer"] == clinometer.__version__
    folder = RunFolder.open(run)
    (part,) = folder._parts.parts(parts(run)[0].parent)
    assert part.by == {name: value for name, value in session.items() if name != "recorded"}


def test_a_resume_that_computes_is_added(run, monkeypatch):
    parts(run)[0].unlink()
    other_machine(monkeypatch, torch="99.0", threads=7)
    resume(run)
    first, second = sessions(run)
    assert (second["torch"], second["threads"]) == ("99.0", 7)
    assert first["torch"] != "99.0"
    assert verify(run).problems == ()
    page = (run / "report.html").read_text()
    assert "Computed in 2 sessions that differ" in page
    assert "<bdi>99.0</bdi>" in page


def test_sessions_that_are_alike_are_not_worth_a_word(run):
    parts(run)[0].unlink()
    resume(run)
    assert len(sessions(run)) == 2
    assert "sessions that differ" not in (run / "report.html").read_text()


def test_a_resume_that_computes_nothing_leaves_the_digest(run):
    before = clinometer.open_run(run).digest
    resume(run)
    assert clinometer.open_run(run).digest == before
    assert len(sessions(run)) == 1


def test_a_part_of_somebody_unknown_is_named(run):
    document = json.loads((run / "provenance.json").read_text())
    document["sessions"][0]["torch"] = "1.0"
    (run / "provenance.json").write_text(json.dumps(document))
    forge(run)
    assert any("no session in provenance.json computed it" in problem for problem in verify(run).problems)


# -- the code that answers


def changed_code():
    model = fake()
    model.info = dataclasses.replace(model.info, code="changed")
    return model


def test_other_code_is_refused_and_the_way_on_is_named(run):
    parts(run)[0].unlink()
    with pytest.raises(
        ModelError, match=r"the adapter of fake changed .* go on knowingly with --accept-code-change"
    ):
        clinometer.resume(run, models=[changed_code()], probes=[Tiny()])


def test_whoever_accepts_it_goes_on_and_the_run_says_so(run, tmp_path):
    parts(run)[0].unlink()
    execution = Execution(cache=tmp_path / "cache")
    clinometer.resume(run, models=[changed_code()], probes=[Tiny()], accept_code_change=True, execution=execution)
    assert verify(run).problems == ()
    _, session = sessions(run)
    assert session["accepted_code_changes"] == {"fake": f"{fake().info.code} → changed"}
    assert "accepted_code_changes.fake" in (run / "report.html").read_text()
    # other runs must not be given these answers under the identity of the old code
    assert not (tmp_path / "cache").exists()


def test_weights_are_not_accepted_with_the_code(run):
    parts(run)[0].unlink()
    other = FakeModel(answer=answer, version="2", name="fake")
    with pytest.raises(ModelError, match="the weights of fake changed"):
        clinometer.resume(run, models=[other], probes=[Tiny()], accept_code_change=True)


# -- the version of the questions


@dataclasses.dataclass(frozen=True)
class Asking(Tiny):
    """The same audit, asking one more word since version 2."""

    questions_version: int = 2

    def questions(self, stage, plan, records):
        yield from super().questions(stage, plan, records)
        for item in list(super().questions(stage, plan, records))[:1]:
            request = dataclasses.replace(item.request, text="The baker is [MASK].")
            yield dataclasses.replace(item, request=request)


def test_an_older_version_of_an_audit_is_not_damage(run):
    found = verify(run, probe=Asking())
    assert found.problems == ()
    assert any(
        "tiny: asked by an older version of the audit: version 1, by release" in note for note in found.notes
    )
    with pytest.raises(InputError, match="tiny was asked by an older version of the audit"):
        resume(run, probe=Asking())


def test_what_can_be_checked_of_an_older_version_is(run):
    data = bytearray(parts(run)[0].read_bytes())
    data[100] ^= 1
    parts(run)[0].write_bytes(data)
    assert any("the checksum differs" in problem for problem in verify(run, probe=Asking()).problems)
    parts(run)[0].unlink()
    assert any("is missing" in problem for problem in verify(run, probe=Asking()).problems)


def as_format_2(run, release):
    """The run as a release wrote it that recorded neither versions of questions nor checksums."""
    document = json.loads((run / "provenance.json").read_text())
    for name in ("questions", "sha256", "checksum", "sessions"):
        del document[name]
    document |= {"format": 2, "packages": {"clinometer": release}}
    (run / "provenance.json").write_text(json.dumps(document))
    (run / "run.sha256").unlink()
    index = run / "findings" / "tiny" / "index.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), "release": release}))


def test_a_run_that_did_not_record_the_version(run):
    as_format_2(run, "0.1.0")
    found = verify(run, probe=Asking())
    assert found.problems == ()
    assert any(
        "asked by an older version of the audit: by release 0.1.0; of what is asked now, fake, ask: 1 of 5 answers"
        in note
        for note in found.notes
    )
    assert any("a run of format 2" in note for note in found.notes)
    assert verify(run).problems == ()  # the version that asked it finds all that it asked


def test_a_hole_in_an_older_run_is_damage_all_the_same(tmp_path, monkeypatch):
    writer = RunFolder.writer
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "writer", lambda self, key, by: writer(self, key, by=by, max_rows=1))
        clinometer.audit(fake(), probes=[Tiny()], folder=tmp_path / "run", execution=Execution(batch_tokens=1))
    path = tmp_path / "run"
    as_format_2(path, "0.1.0")
    parts(path)[1].unlink()
    assert any("1 of 4 answers are missing" in problem for problem in verify(path, probe=Asking()).problems)


def test_a_run_of_this_release_has_no_such_excuse(run):
    as_format_2(run, clinometer.__version__)
    assert any("1 of 5 answers are missing" in problem for problem in verify(run, probe=Asking()).problems)
