"""`clinometer data`: what a user sees, and that nothing is left behind when it fails."""

from __future__ import annotations

import csv
import hashlib
import os
import subprocess
import sys
import threading
import time

import pytest

from clinometer.data import read_human_stereotypes
from clinometer.data.suggestions.asking import ENGINES
from clinometer.data.user_folder import DATASETS
from clinometer.errors import DataError
from tests.local_server import Script, serve
from tests.suggestion_server import answering, asked

ROWS = (
    "input\ttarget_category\ttarget_group\tcompletion\tsearch_engine\n"
    '"why are poets so\n"\tprofession\t"poets\n"\t"sad\n"\tgoogle\n'
)
CHECKSUM = hashlib.sha256(ROWS.encode()).hexdigest()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("CLINOMETER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)  # read TMPDIR again
    (tmp_path / "tmp").mkdir()
    yield tmp_path / "data"
    assert list((tmp_path / "tmp").iterdir()) == []  # whatever a command did, it left nothing half-way


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def refuses(result, *words):
    assert result.code == 2, result
    assert result.out == ""
    assert result.err.startswith("clinometer: ")
    assert result.err.strip().count("\n") == 0, result
    for word in words:
        assert word in result.err, result


# ---- add, list, remove ----


def test_add_says_what_was_found(clinometer, file, folder):
    result = clinometer("data", "add", "stereotypes", file)
    assert result.code == 0, result
    assert "stereotypes: 1 stereotype about 1 group in 1 category" in result.out
    assert CHECKSUM in result.out
    assert str(folder / "stereotypes") in result.out
    assert (folder / "stereotypes" / "data").read_text(encoding="utf-8") == ROWS


def test_list_shows_what_is_added_and_how_to_add_the_rest(clinometer, file):
    before = clinometer("data", "list").out
    for name in DATASETS:
        assert f"{name}: " in before
    assert "not added: clinometer data get stereotypes" in before
    assert "not added: clinometer data add nrc PATH" in before
    clinometer("data", "add", "stereotypes", file)
    after = clinometer("data", "list").out
    assert f"from {file}" in after
    assert CHECKSUM in after
    assert "not added: clinometer data get stereotypes" not in after


def test_list_shows_damage_and_goes_on(clinometer, file, folder):
    clinometer("data", "add", "stereotypes", file)
    (folder / "stereotypes" / "data").write_text("damaged", encoding="utf-8")
    result = clinometer("data", "list")
    assert result.code == 0
    assert "is not the file that was added" in result.out
    assert "nrc: " in result.out


def test_remove(clinometer, file, folder):
    clinometer("data", "add", "stereotypes", file)
    assert "stereotypes: removed" in clinometer("data", "remove", "stereotypes").out
    assert os.listdir(folder) == []
    refuses(clinometer("data", "remove", "stereotypes"), "is not added")
    refuses(clinometer("data", "remove", "stereotyps"), "did you mean 'stereotypes'?")


def test_add_refuses(clinometer, file, tmp_path):
    refuses(clinometer("data", "add", "stereotyps", file), "did you mean 'stereotypes'?")
    refuses(clinometer("data", "add", "stereotypes", "none.tsv"), "no file 'none.tsv'")
    refuses(clinometer("data", "add", "nrc", file), "mine.tsv", "line 1")
    assert sorted(os.listdir(tmp_path)) == ["mine.tsv", "tmp"]


# ---- get ----


def scripts(path):
    body = ROWS.encode()
    return {
        "/good": Script(body),
        "/cut": Script(body[:50], length=len(body)),
        "/circle": Script(status=301, headers={"Location": "/circle"}),
        "/html": Script(b"<!DOCTYPE html><html>Please log in</html>", headers={"Content-Type": "text/html"}),
    }.get(path, Script(status=404))


@pytest.fixture(scope="module")
def server():
    with serve(scripts) as server:
        yield server


def test_get_downloads_checks_and_adds(clinometer, server, folder):
    result = clinometer("data", "get", "stereotypes", "--url", server.url + "/good", "--sha256", CHECKSUM)
    assert result.code == 0, result
    assert "1 stereotype about 1 group" in result.out
    assert (folder / "stereotypes" / "data").read_text(encoding="utf-8") == ROWS
    assert f"from {server.url}/good" in clinometer("data", "list").out


def test_get_downloads_from_the_pinned_address(clinometer, server, folder, monkeypatch):
    from dataclasses import replace

    pinned = replace(DATASETS["stereotypes"], url=server.url + "/good", sha256=CHECKSUM)
    monkeypatch.setitem(DATASETS, "stereotypes", pinned)
    assert clinometer("data", "get", "stereotypes").code == 0
    assert (folder / "stereotypes" / "data").exists()


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        # without --sha256 the checksum that we know must be met, wherever the file comes from
        ("/good", [], [f"SHA-256 {CHECKSUM}, expected {DATASETS['stereotypes'].sha256}"]),
        ("/good", ["--sha256", "0" * 64], ["expected 0000"]),
        ("/good", ["--sha256", "abc"], ["64 hexadecimal digits"]),
        ("/cut", ["--sha256", CHECKSUM], ["broke off after 50 of"]),
        ("/circle", [], ["redirects in a circle"]),
        ("/missing", [], ["answers 404"]),
    ],
)
def test_get_refuses_and_leaves_nothing(clinometer, server, tmp_path, path, options, words):
    refuses(clinometer("data", "get", "stereotypes", "--url", server.url + path, *options), *words)
    assert os.listdir(tmp_path) == ["tmp"]


def test_get_of_a_page_instead_of_a_data_set(clinometer, server, tmp_path):
    checksum = hashlib.sha256(scripts("/html").body).hexdigest()
    result = clinometer("data", "get", "stereotypes", "--url", server.url + "/html", "--sha256", checksum)
    refuses(result, f"'{server.url}/html', line 1: no column 'input' in '<!DOCTYPE html>")
    refuses(clinometer("data", "get", "nrc", "--url", server.url + "/html"), server.url + "/html", "line 1")
    assert os.listdir(tmp_path) == ["tmp"]


def test_get_of_what_may_only_be_had_by_hand(clinometer, tmp_path):
    refuses(
        clinometer("data", "get", "nrc"), "research use only", "saifmohammad.com", "clinometer data add nrc PATH"
    )
    refuses(clinometer("data", "get", "sterotypes"), "did you mean 'stereotypes'?")
    refuses(clinometer("data", "get", "stereotypes", "--url", "file:///etc/passwd"), "is not an address")
    assert os.listdir(tmp_path) == ["tmp"]


# ---- collect-stereotypes ----


@pytest.fixture
def collecting(clinometer, tmp_path):
    """Run the command on two groups and one question each, against a local server."""
    (tmp_path / "groups.csv").write_text("group,category\nPoets,profession\nPeru,country\n", encoding="utf-8")
    (tmp_path / "templates.toml").write_text(
        'people = ["Why are {group} so [MASK]?"]\ncountry = ["Why is {group} so [MASK]?"]\n', encoding="utf-8"
    )

    def collect(server, *more):
        addresses = [f"--address={name}={server.url}/{name}" for name in ("google", "yahoo", "duckduckgo")]
        files = ["--groups", "groups.csv", "--templates", "templates.toml"]
        return clinometer("data", "collect-stereotypes", *files, *addresses, "--delay", 0, "--out", "mine", *more)

    return collect


def test_from_questions_to_a_data_set_that_audits_use(clinometer, collecting, tmp_path, folder):
    suggestions = {"google": ["sad", "good at playing chess"], "yahoo": ["sad", "called"], "duckduckgo": ["old?"]}
    with serve(answering(suggestions)) as server:
        result = collecting(server)
        assert result.code == 0, result
        assert len(server.asked) == 6  # two questions to three engines
        assert {asked(path)[1] for path in server.asked} == {"why are poets so ", "why is peru so "}
        assert "6 questions answered, 0 failed, 0 of 6 still open" in result.out
        assert "8 completions, 2 of them to judge" in result.out
        assert collecting(server).code == 0
        assert len(server.asked) == 6  # never twice
    refuses(
        clinometer("data", "collect-stereotypes", "--read-back", "mine/review.csv", "--out", "mine.tsv"),
        "2 of 8 rows have nothing in column 'keep?'",
    )
    sheet = tmp_path / "mine" / "review.csv"
    with open(sheet, encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    for row in rows:
        row["keep?"] = row["keep?"] or ("yes" if row["group"] == "poets" else "no")
    with open(sheet, "w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    result = clinometer("data", "collect-stereotypes", "--read-back", "mine/review.csv", "--out", "mine.tsv")
    assert result.code == 0, result
    assert "5 stereotypes about 2 groups" in result.out
    found = {(row.prompt, row.attribute, row.engine) for row in read_human_stereotypes(tmp_path / "mine.tsv")}
    assert found == {
        ("why are poets so", "sad", "multiple"),
        ("why are poets so good at", "chess", "google"),
        ("why are poets so", "old", "duckduckgo"),
        ("why is peru so", "sad", "multiple"),
        ("why is peru so", "old", "duckduckgo"),
    }
    assert clinometer("data", "add", "stereotypes", "mine.tsv").code == 0
    assert (folder / "stereotypes" / "data").exists()


def test_an_engine_that_does_not_answer_is_reported_and_asked_next_time(collecting):
    broken = True

    def answer(path):
        engine, _ = asked(path)
        return (
            Script(b"<html>", status=403) if broken and engine == "yahoo" else answering({engine: ["sad"]})(path)
        )

    with serve(answer) as server:
        result = collecting(server)
        assert result.code == 1  # not finished
        assert "4 questions answered, 2 failed, 2 of 6 still open" in result.out
        assert "run the same command again later" in result.out
        broken = False
        result = collecting(server)
        assert result.code == 0
        assert "2 questions answered, 0 failed, 0 of 6 still open" in result.out
        assert len(server.asked) == 8


def test_no_engine_offers_anything(collecting, tmp_path):
    with serve(answering({})) as server:
        result = collecting(server)
    assert result.code == 2
    assert "nothing to review" in result.err
    assert sorted(os.listdir(tmp_path / "mine")) == ["answers.jsonl", "answers.jsonl.lock"]


def test_a_sheet_that_a_person_works_on_is_not_lost(collecting, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "review.csv").write_text("half a sheet", encoding="utf-8")
    with serve(answering({"google": ["sad"]})) as server:
        refuses(collecting(server), "review.csv")
        assert server.asked == []  # nobody was asked in vain
    assert (tmp_path / "mine" / "review.csv").read_text(encoding="utf-8") == "half a sheet"


def test_what_a_person_judges_while_the_engines_are_asked_is_kept(collecting, tmp_path):
    sheet, working = tmp_path / "mine" / "review.csv", False

    def answer(path):
        engine, _ = asked(path)
        if engine == "yahoo":
            if not working:
                return Script(status=403)
            sheet.write_text(sheet.read_text(encoding="utf-8").replace("yes,", "no,"), encoding="utf-8")
        return answering({engine: ["sad"]})(path)

    with serve(answer) as server:
        assert collecting(server).code == 1
        assert sheet.read_text(encoding="utf-8").count("\nyes,") == 2
        working = True
        assert collecting(server).code == 0
    assert sheet.read_text(encoding="utf-8").count("\nno,") == 2


def test_a_public_address_is_never_asked_fast_by_whatever_name():
    # not the command: no test may reach the address
    from clinometer.data.suggestions.asking import choose_engines

    public = ENGINES["yahoo"].address
    with pytest.raises(DataError, match="too fast for google"):
        choose_engines(["google"], [f"google={public}?x=1"], delay=0.1)
    assert choose_engines(["google"], ["google=http://127.0.0.1/"], delay=0.1)[0].address == "http://127.0.0.1/"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--engine", "gogle"], ["did you mean 'google'?"]),
        (["--delay", "0.1"], ["--delay 0.1 is too fast for google"]),
        (["--address", "google"], ["expected engine=URL"]),
        (["--address", "google=file:///etc/passwd"], ["is not an address"]),
        (["--address", "bing=http://127.0.0.1/"], ["no search engine 'bing'"]),
        (["--engine", "google", "--address", "yahoo=http://127.0.0.1/"], ["'yahoo', which is not asked"]),
        (["--groups", "none.csv"], ["no file 'none.csv'"]),
        (["--templates", "none.toml"], ["no file 'none.toml'"]),
        (["--read-back", "none.csv"], ["no file 'none.csv'"]),
        (["--read-back", "none.csv", "--engine", "google"], ["leave out --groups"]),
    ],
)
def test_wrong_arguments_are_refused_before_anyone_is_asked(clinometer, tmp_path, arguments, words):
    refuses(clinometer("data", "collect-stereotypes", *arguments), *words)
    assert os.listdir(tmp_path) == ["tmp"]


def test_a_killed_collection_goes_on(tmp_path):
    """The real command, killed by the kernel in the middle of a collection."""
    groups = "".join(f"group {n},x\n" for n in range(12))
    (tmp_path / "groups.csv").write_text("group,category\n" + groups, encoding="utf-8")
    (tmp_path / "templates.toml").write_text(
        'people = ["Why are {group} so [MASK]?"]\ncountry = ["Why is {group} so [MASK]?"]\n', encoding="utf-8"
    )
    killed = threading.Event()

    def answer(path):
        if len(server.asked) > 3:  # the fourth question stays open until its asker is dead
            killed.wait(60)
        return answering({"google": ["sad"]})(path)

    with serve(answer) as server:
        command = [sys.executable, "-m", "clinometer", "data", "collect-stereotypes", "--engine", "google"]
        command += ["--groups", "groups.csv", "--templates", "templates.toml", "--delay", "0", "--out", "mine"]
        command += ["--quiet", f"--address=google={server.url}/google"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while len(server.asked) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        killed.set()
        assert len(server.asked) == 4
        assert (tmp_path / "mine" / "answers.jsonl").read_bytes().count(b"\n") == 3
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        assert "9 questions answered, 0 failed, 0 of 12 still open" in done.stdout
        prompts = [asked(path)[1] for path in server.asked]
    # what was answered is not asked again; what was asked but not answered is
    assert prompts == [f"why are group {n} so " for n in (*range(4), *range(3, 12))]


def test_get_reviews_is_one_of_the_commands(clinometer):
    assert "get-reviews" in clinometer("data", "--help").out
