from __future__ import annotations

import sys

import pytest

from clinometer.cli.main import main


class Result:
    """What a command did: exit code and both streams."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit {self.code}\n{self.out}\n{self.err}"


@pytest.fixture
def clinometer(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["clinometer", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run
