"""`clinometer replicate`: what a user sees, with a folder, by download, and where something is missing."""

from __future__ import annotations

import hashlib
import json

import pytest

from clinometer.replication import download
from clinometer.replication.stereotypes import EVERY_HUMAN
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
        "cell": "profession", "printed": 713.0, "ours": 1, "difference": -712.0, "agrees": False, "note": "",
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


def test_an_unwritable_json_is_refused(clinometer, tmp_path):
    write(tmp_path, EVERY_HUMAN, ROWS)
    result = clinometer("replicate", "stereotypes", "--folder", tmp_path, "--json", "no/such/out.json")
    assert result.code == 2, result
    assert "name another file with --json" in result.err


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
