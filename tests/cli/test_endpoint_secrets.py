"""A planted key is searched for in every byte that is written or printed, after success and after failures."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from clinometer.cli import main as cli
from clinometer.models.providers import openai
from tests.endpoint_server import Endpoint, scale_answer, serve_endpoint

pytest.importorskip("openai", reason="not installed: openai; see `make setup`")

SECRET = "sk-planted-71b0c2a9d4"
QUICK = ("--probe", "stigma", "--profile", "quick", "--concurrency", "8")


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    monkeypatch.setenv("CLINOMETER_API_KEY", SECRET)
    openai._offer.cache_clear()


def run(monkeypatch, capfd, *arguments):
    """Run a command in this process; return its exit code and all that it printed, the traceback included."""
    monkeypatch.setattr("sys.argv", ["clinometer", *map(str, arguments)])
    code, trace = 0, ""
    try:
        cli.main()
    except SystemExit as error:
        code = int(error.code or 0)
        trace = "".join(traceback.format_exception(error))
    printed = capfd.readouterr()
    return code, printed.out + printed.err + trace


def written(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_key_is_sent_and_never_written(tmp_path, monkeypatch, capfd):
    def telltale(path, body):
        return [f"{text} {SECRET}" for text in scale_answer(path, body)]  # a server may repeat what it gets

    with serve_endpoint(Endpoint(key=SECRET, answer=telltale)) as endpoint:
        place = tmp_path / "run"
        arguments = ("openai:m", "--base-url", endpoint.url, *QUICK, "--cache", tmp_path / "cache", "--out", place)
        code, printed = run(monkeypatch, capfd, "audit", *arguments)
        assert code == 0, printed
        assert endpoint.keys_seen == {f"Bearer {SECRET}"}
    assert SECRET not in printed
    everything = written(tmp_path)
    assert SECRET.encode() not in everything
    from clinometer.store import RunFolder, StageKey

    table = RunFolder.open(place).table(StageKey(probe="stigma", model="openai:m", stage="scale"))
    assert table["got_texts"].explode().str.contains(r"\[key\]").all()
    assert not [value for value in table.rows() if SECRET in str(value)]


def test_a_key_is_not_told_after_errors(tmp_path, monkeypatch, capfd):
    with serve_endpoint(Endpoint(key="another-0123456789")) as endpoint:
        arguments = ("openai:m", "--base-url", endpoint.url, *QUICK, "--out", tmp_path / "run")
        code, printed = run(monkeypatch, capfd, "audit", *arguments)
    assert code == 2
    assert "lets nobody in with this key" in printed
    assert "[key]" in printed  # the server repeated it
    assert SECRET not in printed
    assert SECRET.encode() not in written(tmp_path)


def test_a_key_is_not_told_when_the_run_is_stopped_or_the_server_breaks(tmp_path, monkeypatch, capfd):
    with serve_endpoint(Endpoint(key=SECRET, seed=1)) as endpoint:
        place = tmp_path / "run"
        arguments = ("openai:m", "--base-url", endpoint.url, *QUICK, "--max-requests", "40", "--out", place)
        code, printed = run(monkeypatch, capfd, "audit", *arguments)
        assert code == 5
        assert f"continue with: clinometer resume {place}" in printed
        endpoint.key = "changed-0123456789"  # and now it refuses in the middle of the run
        code, more = run(monkeypatch, capfd, "resume", place)
        assert code == 1
        assert "refused a question: 401 wrong key Bearer [key]" in more
        endpoint.key = SECRET
        code, last = run(monkeypatch, capfd, "resume", place)
        assert code == 0, last
    assert SECRET not in printed + more + last
    assert SECRET.encode() not in written(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no list of processes under /proc here")
def test_the_list_of_processes_never_shows_a_key(tmp_path):
    seen = set()

    def look(path, body):
        """Read the list as anybody on the machine can, while the command asks."""
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                seen.add(file.read_bytes())
        return scale_answer(path, body)

    with serve_endpoint(Endpoint(key=SECRET, answer=look)) as endpoint:
        words = ("audit", "openai:m", "--base-url", endpoint.url, *QUICK, "--out", str(tmp_path / "run"))
        command = [sys.executable, "-m", "clinometer", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert any(endpoint.url.encode() in line for line in seen)  # the command was in the list
    assert not [line for line in seen if SECRET.encode() in line]
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("given", ["--base-url", "--spec"])
def test_an_address_with_a_key_in_it_is_refused_and_not_repeated(tmp_path, monkeypatch, capfd, given):
    address = f"http://user:{SECRET}@127.0.0.1:9/v1"
    if given == "--spec":
        (tmp_path / "a.toml").write_text(
            f'version = 1\nprobes = ["stigma"]\nmodels = [{{name = "openai:m", base_url = "{address}"}}]'
        )
        arguments = ("--spec", tmp_path / "a.toml")
    else:
        arguments = ("openai:m", "--base-url", address)
    code, printed = run(monkeypatch, capfd, "audit", *arguments, "--out", tmp_path / "runs" / "run")
    assert code == 2
    assert "carries a user name, a password or a key" in printed
    assert SECRET not in printed
    assert not (tmp_path / "runs").exists()
