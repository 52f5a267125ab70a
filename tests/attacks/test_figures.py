"""A label cannot end the interpreter that draws it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clinometer.errors import ClinometerError
from clinometer.report import save_figures
from clinometer.results import Run
from tests.attacks.findings_of_strangers import run_with

CONTROL = "a\x00b\x07c\x1b[2Jd\x0be\ufffef"


def test_a_control_character_in_a_label_is_drawn_as_text(tmp_path):
    """In a child of this test: vl-convert panics, and a panic ends the whole interpreter."""
    run_with(tmp_path / "run", label=CONTROL)
    said = subprocess.run(
        [sys.executable, "-m", "clinometer", "report", tmp_path / "run", "--figures", tmp_path / "figures"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    drawn = (tmp_path / "figures" / "theirs-lean.svg").read_text()
    assert "a\\x00b\\x07c\\x1b[2Jd" in drawn
    assert (tmp_path / "figures" / "theirs-lean.png").read_bytes().startswith(b"\x89PNG")


def test_a_chart_in_a_notebook_holds_no_control_character(tmp_path):
    table = Run(run_with(tmp_path / "run", label=CONTROL))["theirs"]["lean"]
    rows = table.plot().to_dict()["datasets"]["rows"]
    assert all(value.isprintable() for row in rows for value in row.values() if isinstance(value, str))


def test_a_painter_that_dies_ends_in_one_sentence(tmp_path, monkeypatch):
    from clinometer.report import painting

    dying = tmp_path / "dying.py"
    dying.write_text("import os\nos.abort()\n")
    monkeypatch.setattr(painting, "PAINTER", dying)
    with pytest.raises(ClinometerError, match=r"theirs-lean.*cannot be drawn"):
        save_figures(run_with(tmp_path / "run"), tmp_path / "figures")


def test_a_painter_that_died_before_it_was_asked_ends_in_one_sentence(tmp_path, monkeypatch):
    from clinometer.report import painting

    dying = tmp_path / "dying.py"
    dying.write_text("")
    monkeypatch.setattr(painting, "PAINTER", dying)
    painter = painting.Painter()
    painter._begin().wait()  # its pipe is broken when the chart is written, and again when it is closed
    with painter, pytest.raises(painting.NotPainted, match="ended"):
        painter.paint({}, "svg", scale=1.0)


def test_a_painter_that_hangs_ends_in_one_sentence(tmp_path, monkeypatch):
    from clinometer.report import painting

    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(painting, "PAINTER", slow)
    monkeypatch.setattr(painting, "LONGEST", 0.3)
    with pytest.raises(ClinometerError, match="longer than"):
        save_figures(run_with(tmp_path / "run"), tmp_path / "figures")
