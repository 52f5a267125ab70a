"""A spec from a stranger names files of the reader: none is opened, and no error quotes one."""

from __future__ import annotations

import os
import re

import pytest

import clinometer
from clinometer.errors import ClinometerError
from tests.attacks.forging import forge
from tests.attacks.samples import SECRET, Tiny, everything, fake, parts, resume, tiny_run, verify


@pytest.fixture
def run(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("nurse pilot clerk miner")
    return tiny_run(tmp_path / "run", words_file=str(words)).path


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "id_rsa"
    path.write_text(SECRET)
    return path


def point_at(run, name):
    text = (run / "spec.toml").read_text()
    (run / "spec.toml").write_text(re.sub(r'words_file = ".*"', f'words_file = "{name}"', text))
    forge(run)


@pytest.mark.parametrize(
    "form", ["{}", "../id_rsa", "inputs/../../id_rsa", "inputs/../spec.toml", "~/.ssh/id_rsa"]
)
def test_the_spec_names_a_file_outside_of_the_run(run, secret, form):
    point_at(run, form.format(secret))
    parts(run)[0].unlink()
    for command in (resume, verify):
        with pytest.raises(ClinometerError, match="files of a run are those in its folder inputs") as raised:
            command(run)
        assert SECRET not in str(raised.value)
    assert SECRET.encode() not in everything(run)


def test_an_input_that_the_run_does_not_know(run):
    (run / "inputs" / "2-other.txt").write_text(SECRET)
    text = (run / "spec.toml").read_text()
    (run / "spec.toml").write_text(re.sub(r'words_file = ".*"', 'words_file = "inputs/2-other.txt"', text))
    forge(run)
    with pytest.raises(ClinometerError, match=r"inputs/2-other\.txt"):
        resume(run)
    assert any("inputs/2-other.txt" in problem for problem in verify(run).problems)


def test_an_input_is_a_second_name_of_a_file(run, secret):
    """A hard link is not to be seen; but nobody knows the checksum of a file that they cannot read."""
    (kept,) = (run / "inputs").iterdir()
    kept.unlink()
    os.link(secret, kept)
    with pytest.raises(ClinometerError, match=re.escape(kept.name)) as raised:
        resume(run)
    assert SECRET not in str(raised.value)
    assert SECRET.encode() not in (run / "report.html").read_bytes()


def test_an_edited_input_is_not_used(run):
    (kept,) = (run / "inputs").iterdir()
    kept.write_text("nurse pilot clerk baker")
    with pytest.raises(ClinometerError, match=re.escape(kept.name)):
        resume(run)
    assert any(kept.name in problem for problem in verify(run).problems)


def test_errors_do_not_quote_a_file_that_is_not_ours(run, secret, tmp_path):
    """Also the readers of word lists and prompts, which quote what they cannot read, are not let near it."""
    made = clinometer.audit(
        fake(),
        probes="counterexamples",
        options={"counterexamples": {"backgrounds": 1, "draws": 100}},
        folder=tmp_path / "second",
    )
    text = (made.path / "spec.toml").read_text()
    (made.path / "spec.toml").write_text(text + f'occupations_file = "{secret}"\n')
    forge(made.path)
    for command in (clinometer.resume, clinometer.verify):
        with pytest.raises(ClinometerError) as raised:
            command(made.path)
        assert SECRET not in str(raised.value)


def test_a_run_keeps_the_files_that_its_maker_named(run):
    """What the rules are for: the run stands on its own, wherever the file has gone."""
    (run.parent / "words.txt").unlink()
    parts(run)[0].unlink()
    resume(run)
    assert verify(run).problems == ()
    assert clinometer.verify(run, probes=[Tiny()]).records == 4
