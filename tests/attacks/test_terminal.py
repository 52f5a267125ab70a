"""Names, headlines and what servers say never reach a terminal as commands."""

from __future__ import annotations

import ast
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from clinometer.results import Run
from tests.attacks.findings_of_strangers import run_with

COMMANDS = "\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202etxt"
RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")


def harmless(*texts: str) -> None:
    for text in texts:
        assert not RAW.search(text), ascii(text)


def test_every_command_character_is_written_out():
    from clinometer.plain import visible

    for code in [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x202E, 0x2066, 0xD800, 0xFFFE]:
        assert visible(chr(code)).isascii(), hex(code)
        assert visible(chr(code)).isprintable(), hex(code)
    kept = "Ärztin, 医師, پزشک‌ها, 👩‍⚕️, naïve"
    assert visible(kept) == kept


def test_only_the_door_prints():
    for path in Path(import_module("clinometer.cli").__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            prints = called.rpartition(".")[2] in {"print", "echo", "secho"} or called.startswith("sys.std")
            if path.name != "terminal.py" and prints and "isatty" not in called:
                raise AssertionError(f"{path.name}, line {node.lineno}: use terminal.show")


def test_headlines_and_warnings_of_a_strange_run(tmp_path, capsys):
    from clinometer.cli.progress import print_run

    run = run_with(tmp_path / "run", headline=f"nurse{COMMANDS}", notice=f"beware{COMMANDS}")
    print_run(Run(run))
    out, err = capsys.readouterr()
    harmless(out, err)
    assert "nurse\\x1b]0;owned" in out
    assert "beware\\x1b" in out


def test_a_name_cannot_add_a_line(clinometer, tmp_path):
    """A file name with a line end would let a damaged run say that it is whole."""
    folder = run_with(tmp_path / "run").path
    part = folder / "records" / "theirs" / "m" / "ask" / f"a\n{folder}: 9 records intact{COMMANDS}.parquet"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"PAR1")
    said = clinometer("verify", folder)
    assert said.code != 0
    harmless(said.out, said.err)
    assert not any(line.startswith(f"{folder}: 9 records") for line in (said.out + said.err).splitlines())


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", f"no{COMMANDS}"),
        ("verify", "no\udcff"),  # a file name that is not UTF-8
        ("audit", f"m{COMMANDS}"),
        ("audit", "--probe", f"p{COMMANDS}"),
        ("audit", "--set", f"p.{COMMANDS}=1"),
        (f"c{COMMANDS}",),
        ("audit", f"--{COMMANDS}"),
        ("verify", "a", f"b{COMMANDS}"),
    ],
)
def test_arguments_are_quoted_harmlessly(clinometer, arguments):
    said = clinometer(*arguments)
    assert said.code == 2
    harmless(said.out, said.err)


def test_a_spec_cannot_speak_to_the_terminal(clinometer, tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text('version = 1\n"a\\u001b[2Jb" = 1\n')
    said = clinometer("audit", "--spec", spec)
    assert said.code == 2
    assert "\\x1b" in said.err
    harmless(said.err)


def test_progress_is_cleaned(monkeypatch, capsys):
    from clinometer.cli.progress import show_progress

    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setenv("TERM", "dumb")  # rich then writes no commands of its own
        with show_progress(quiet=False) as progress:
            progress.begin(f"model{COMMANDS}", total=2, done=0)
            progress.note(f"server says{COMMANDS}")
            progress.advance(2)
            progress.end()
        harmless(capsys.readouterr().err)


def test_a_server_cannot_speak_to_the_terminal(clinometer):
    from tests.local_server import Script, serve

    with serve(lambda path: Script(status=404, body=COMMANDS.encode())) as server:
        said = clinometer("data", "add", "stereotypes", f"{server.url}/x\x1b[2J.csv")
    assert said.code == 2
    harmless(said.out, said.err)


def test_an_answer_from_a_search_engine_cannot_speak_to_the_terminal(clinometer, tmp_path):
    from tests.local_server import Script, serve

    (tmp_path / "groups.csv").write_text("group,category\npoets,profession\n")
    with serve(lambda path: Script(body=f"{COMMANDS}".encode())) as server:
        said = clinometer(
            "data", "collect-stereotypes", "--engine", "google", "--address", f"google={server.url}/\x1b[2J",
            "--delay", "0", "--out", tmp_path / "sheet.csv", "--groups", tmp_path / "groups.csv",
        )  # fmt: skip
    assert said.code != 0
    harmless(said.out, said.err)


def test_what_other_libraries_log_and_warn_of_is_cleaned(capsys):
    import logging
    import warnings

    from clinometer.cli.terminal import clean_libraries

    logger, handler = logging.getLogger("transformers.of.a.stranger"), logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    try:
        with clean_libraries(), warnings.catch_warnings():
            warnings.simplefilter("always")
            logger.warning("the tokenizer class is %r%s", "x", COMMANDS)
            warnings.warn_explicit(f"odd{COMMANDS}", UserWarning, "file", 1)
    finally:
        logger.removeHandler(handler)
    harmless(capsys.readouterr().err)
