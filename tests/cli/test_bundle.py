"""`clinometer bundle`, the commands that take a bundle, and `clinometer card`."""

import math

import pytest

from clinometer import audit
from clinometer.models.fake import FakeModel
from clinometer.store import RunFolder
from clinometer.types import WordAnswer
from tests.attacks.samples import tiny_run


def test_a_run_is_bundled_and_its_page_drawn_elsewhere(tmp_path, clinometer):
    run = tiny_run(tmp_path / "mine").path
    result = clinometer("bundle", run, "--out", tmp_path / "sent.zip")
    first, checksum, digest = result.out.splitlines()
    assert result.code == 0
    assert first == str(tmp_path / "sent.zip")
    assert checksum.startswith("sha256  ")
    assert digest == f"digest  {RunFolder.open(run).digest}"
    assert clinometer("bundle", run, "--out", tmp_path / "sent.zip").out == result.out
    drawn = clinometer("report", tmp_path / "sent.zip")
    assert drawn.code == 0
    assert drawn.out.splitlines() == [str(tmp_path / "sent.report.html")]
    assert (tmp_path / "sent.report.html").is_file()
    assert "only read; unzip it" in clinometer("resume", tmp_path / "sent.zip").err


def test_what_is_not_a_bundle_is_one_sentence(tmp_path, clinometer):
    (tmp_path / "notes.txt").write_text("hello")
    for command in ("verify", "report"):
        result = clinometer(command, tmp_path / "notes.txt")
        assert result.code == 2
        assert result.err.count("\n") == 1
        assert "is not a bundle" in result.err


def test_a_card_is_printed_and_written_into_a_readme(tmp_path, clinometer):
    pytest.importorskip("huggingface_hub")
    fake = FakeModel(answer=_even, version="1", name="mine")
    options = {"counterexamples": {"backgrounds": 1, "draws": 100, "occupations": "winobias"}}
    run = audit(fake, probes="counterexamples", options=options, folder=tmp_path / "run").path
    printed = clinometer("card", run)
    assert printed.code == 0
    assert "model-index:" in printed.out
    assert "clinometer/counterexamples" in printed.out
    readme = tmp_path / "README.md"
    readme.write_text("# Mine\n\nMy own words.\n")
    assert clinometer("card", run, "--write", readme).out.strip() == str(readme)
    once = readme.read_text()
    assert "# Mine\n\nMy own words.\n" in once
    assert clinometer("card", run, "--write", readme).code == 0
    assert readme.read_text() == once
    assert "no model 'yours'" in clinometer("card", run, "--model", "yours").err
    (tmp_path / "bad.md").write_bytes(b"\xff")
    assert clinometer("card", run, "--write", tmp_path / "bad.md").code == 2


def _even(request):
    return WordAnswer(words=("woman", "man"), logprobs=(math.log(0.3), math.log(0.3)))
