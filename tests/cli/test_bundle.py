"""`clinometer bundle`, and the commands that take a bundle."""

from clinometer.store import RunFolder
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
