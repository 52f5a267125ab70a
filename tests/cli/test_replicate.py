"""`clinometer replicate`: what a user sees, with a folder, by download, and where something is missing."""

from __future__ import annotations

import errno
import hashlib
import json

import pytest

from clinometer.replication import download
from clinometer.replication.stereotypes import EVERY_HUMAN, HUMAN, PRETRAINED
from tests.local_server import Script, serve
from tests.replication.authors_files import write

HEADER = "input\ttarget_category\ttarget_group\tcompletion\tsearch_engine\n"
ROWS = HEADER + "why are poets so\tprofession\tpoets\tsad\tgoogle\n"


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("CLINOMETER_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "published"


def test_a_table_of_printed_ours_and_difference(clinometer, tmp_path):
    write(tmp_path / "stereotypes_in_lms", EVERY_HUMAN, ROWS)
    result = clinometer(
        "replicate", "stereotypes", "--item", "section-3", "--folder", tmp_path, "--json", "out.json"
    )
    assert result.code == 0, result
    lines = [line.split() for line in result.out.splitlines()]
    assert ["cell", "printed", "ours", "difference"] in lines
    assert ["profession", "713", "1", "-712", "differs"] in lines
    assert "0 of 9 printed numbers agree within the rounding of their digits" in result.out
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["compared"], found["agreeing"], found["commit"][:7]) == (9, 0, "09a1c37")
    assert found["items"][0]["cells"][0] == {
        "cell": "profession", "printed": 713.0, "ours": 1, "difference": -712.0, "agrees": False, "counted": True,
        "note": "",
    }  # fmt: skip


def test_what_is_not_there_is_listed_and_no_error(clinometer, tmp_path):
    write(tmp_path, EVERY_HUMAN, ROWS)
    result = clinometer("replicate", "stereotypes", "--folder", tmp_path)
    assert result.code == 0, result
    assert "not found: BERT-B, NewYorker, religion; BERT-B, NewYorker, profession" in result.out
    assert "and 222 more" in result.out
    assert "files not there: " in result.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("stereotype",), "did you mean 'stereotypes'"),
        (("stereotypes", "--item", "table-5"), "did you mean 'table-4'"),
        (("counterfactual", "--item", "table-1"), "published no outputs"),
        (
            ("counterfactual", "--folder", "nowhere"),
            "'nowhere' is not read: the authors of counterfactual published no",
        ),
        (("counterexamples", "--nrc", "none.txt"), "'none.txt' is not read"),
        (
            ("stigma", "--folder", "nowhere"),
            "no folder 'nowhere'; give the folder with a copy of https://github.com/Mooniem",
        ),
        (("stigma", "--folder", "."), "has no file of https://github.com/Mooniem"),
        (
            ("stigma", "--folder", ".", "--nrc", "none.txt"),
            "no file 'none.txt'; give the path of the",
        ),
    ],
)
def test_one_sentence_and_exit_2(clinometer, arguments, told):
    result = clinometer("replicate", *arguments)
    assert result.code == 2, result
    assert told in result.err
    assert result.err.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("no/such/out.json", "'no/such/out.json' cannot be written: no folder "),
        ("is_a_folder", "'is_a_folder' is a folder; name a file with --json"),
    ],
)
def test_an_unwritable_json_is_refused_before_anything_is_computed(clinometer, tmp_path, place, told, monkeypatch):
    (tmp_path / "is_a_folder").mkdir()
    monkeypatch.setattr("clinometer.workflows.replicate.run_replicate", None)  # would fail if it were called
    result = clinometer("replicate", "stereotypes", "--folder", tmp_path, "--json", place)
    assert result.code == 2, result
    assert told in result.err
    assert "unfinished" not in result.err


def test_a_failure_to_write_names_the_file_that_was_asked_for(clinometer, tmp_path, monkeypatch):
    write(tmp_path, EVERY_HUMAN, ROWS)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / ".unfinished-0"))

    monkeypatch.setattr("clinometer.data.files.os.fsync", full)
    found = clinometer(
        "replicate", "stereotypes", "--item", "section-3", "--folder", tmp_path, "--json", "out.json"
    )
    assert found.code == 2, found
    assert "'out.json' cannot be written (No space left on device)" in found.err
    assert "unfinished" not in found.err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("README.md", "'README.md' is a file; give the folder with a copy of https://github.com/Mooniem"),
        ("MLMs_bias_stigmas.tar.xz", "is a file; unpack it and give the folder with a copy of"),
        ("MLMs_bias_stigmas-main.ZIP", "is a file; unpack it and give the folder with a copy of"),
    ],
)
def test_a_file_is_no_folder(clinometer, tmp_path, name, told):
    write(tmp_path, name, "text")
    result = clinometer("replicate", "stigma", "--folder", name)
    assert result.code == 2, result
    assert told in result.err


def test_a_figure_without_numbers_is_not_counted(clinometer, tmp_path):
    write(tmp_path, EVERY_HUMAN, ROWS)
    result = clinometer("replicate", "stereotypes", "--item", "figure-8", "--folder", tmp_path)
    assert result.code == 0, result
    assert ["google", "—", "1", "—"] in [line.split() for line in result.out.splitlines()]
    assert "nothing to compare: the paper prints no numbers here" in result.out
    assert "0 of 0" not in result.out


def test_printed_numbers_that_take_missing_files_are_not_compared(clinometer, tmp_path):
    write(tmp_path, HUMAN, ROWS)
    result = clinometer("replicate", "stereotypes", "--item", "figure-1", "--folder", tmp_path)
    assert "nothing to compare: the paper prints no numbers here; 18 cells take files" in result.out
    write(tmp_path, f"{PRETRAINED}/religion_roberta-base.json", json.dumps({"Sikhs": [[0] * 9, ["kind"]]}))
    result = clinometer("replicate", "stereotypes", "--item", "figure-10", "--folder", tmp_path)
    assert "none of the printed numbers could be compared; 36 cells take files that are not there" in result.out


# ---- whether files are the authors' ----


@pytest.fixture
def known(monkeypatch):
    """Two files whose checksums are known: of ROWS, and of one that says something else."""

    def files(paper, items):
        return tuple(
            download.PublishedFile(
                path=path, sha256=hashlib.sha256(body.encode()).hexdigest(), bytes=len(body.encode()), commit="abc"
            )
            for path, body in (
                (EVERY_HUMAN, ROWS),
                (HUMAN, ROWS.replace("sad", "wise")),
                ("mlm_output/never-copied.json", "{}"),
            )
        )

    monkeypatch.setattr(download, "published_files", files)


def test_files_with_the_known_checksums_are_the_authors(clinometer, tmp_path, known):
    write(tmp_path, EVERY_HUMAN, ROWS)
    result = clinometer(
        "replicate", "stereotypes", "--item", "section-3", "--folder", tmp_path, "--json", "out.json"
    )
    assert (
        f"outputs: https://github.com/RochelleChoenni/stereotypes_in_lms at 09a1c37, in {tmp_path}" in result.out
    )
    assert "(1 file checked by SHA-256)" in result.out
    assert "warning" not in result.out
    files = json.loads((tmp_path / "out.json").read_text())["files"]
    assert files == {"known": 1, "changed": [], "unknown": []}


@pytest.mark.parametrize("other", ["wide", "bad"])  # of another size, and of the same
def test_a_changed_file_is_named_and_not_called_the_authors(clinometer, tmp_path, known, other):
    write(tmp_path, EVERY_HUMAN, ROWS.replace("sad", other))
    write(tmp_path, HUMAN, ROWS.replace("sad", "wise"))
    result = clinometer(
        "replicate", "stereotypes", "--item", "section-3", "--folder", tmp_path, "--json", "out.json"
    )
    assert result.code == 0, result
    assert f"outputs: in {tmp_path}; not all as in https://github.com/RochelleChoenni" in result.out
    (warning,) = (line for line in result.out.splitlines() if line.startswith("warning: "))
    assert warning.startswith("warning: 1 of 2 known files differs from the authors'")
    assert warning.endswith(f": {EVERY_HUMAN}")
    files = json.loads((tmp_path / "out.json").read_text())["files"]
    assert files == {"known": 2, "changed": [EVERY_HUMAN], "unknown": []}


def test_a_file_of_which_nothing_is_known_is_named(clinometer, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "published_files", lambda paper, items: ())
    write(tmp_path, EVERY_HUMAN, ROWS)
    result = clinometer("replicate", "stereotypes", "--item", "section-3", "--folder", tmp_path)
    assert f"outputs: in {tmp_path}, a copy of https://github.com" in result.out
    assert f"not checked, because their SHA-256 is not known here: {EVERY_HUMAN}" in result.out
    assert "warning" not in result.out


@pytest.mark.parametrize("paper", ["sentiment_words", "sentiment-words", "counterfactual", "counterexamples"])
def test_papers_without_outputs_say_so(clinometer, paper):
    result = clinometer("replicate", paper)
    assert (result.code, "published no outputs to recompute from" in result.out) == (0, True)


# ---- download ----


@pytest.fixture
def server(monkeypatch):
    bodies = {"good": ROWS.encode(), "body": ROWS.encode()}

    def one_file(paper, items):
        good = bodies["good"]
        return (
            download.PublishedFile(
                path=EVERY_HUMAN, sha256=hashlib.sha256(good).hexdigest(), bytes=len(good), commit="abc"
            ),
        )

    monkeypatch.setattr(download, "published_files", one_file)
    with serve(lambda path: Script(bodies["body"])) as running:
        monkeypatch.setattr(download, "RAW", running.url.rstrip("/"))
        running.bodies = bodies
        yield running


def test_files_are_downloaded_once_at_one_commit(clinometer, server, kept):
    for _ in range(2):
        result = clinometer("replicate", "stereotypes", "--item", "section-3")
        assert result.code == 0, result
        assert "-712" in result.out
    assert server.asked == [f"/RochelleChoenni/stereotypes_in_lms/abc/{EVERY_HUMAN}"]
    (kept / "stereotypes" / EVERY_HUMAN).write_text("damaged")
    assert clinometer("replicate", "stereotypes", "--item", "section-3").code == 0  # fetched again
    assert len(server.asked) == 2


def test_another_file_than_the_known_one_is_not_kept(clinometer, server, kept):
    server.bodies["body"] = ROWS.replace("sad", "bad").encode()
    result = clinometer("replicate", "stereotypes", "--item", "section-3")
    assert result.code == 2, result
    assert "sent a file with SHA-256" in result.err
    assert not [file for file in kept.rglob("*") if file.is_file()]


def test_without_a_network_it_says_what_to_do(clinometer, monkeypatch):
    monkeypatch.setattr(download, "RAW", "http://127.0.0.1:9")
    result = clinometer("replicate", "stigma")
    assert result.code == 2, result
    assert (
        "check the network, or copy https://github.com/Mooniem/MLMs_bias_stigmas at commit 6f11d1d" in result.err
    )
    assert "--folder DIR" in result.err
