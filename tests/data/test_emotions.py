"""The NRC emotion lexicon: what nrclex carries, and the full file."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from clinometer.data import EMOTIONS, load_emotions, read_emotions
from clinometer.errors import DataError

FULL = "lexicons/NRC-Emotion-Lexicon-Wordlevel-v0.92.txt"


def lines(word, *emotions):
    return "".join(f"{word}\t{emotion}\t{int(emotion in emotions)}\n" for emotion in sorted(EMOTIONS))


def test_the_order_of_the_paper_s_vectors():
    assert EMOTIONS == (
        "fear", "joy", "sadness", "trust", "surprise", "anticipation", "disgust", "anger", "negative", "positive",
    )  # fmt: skip


def test_the_words_of_nrclex():
    pytest.importorskip("nrclex", reason="nrclex is an extra: pip install nrclex")
    lexicon = load_emotions()
    assert len(lexicon.words) == 6468
    assert not lexicon.complete
    assert lexicon.source == "nrclex"
    assert lexicon.words["selfish"] == {"anger", "disgust", "negative"}  # the paper's example (Section 5)
    assert "vocal" not in lexicon.words  # its example of a covered word without an emotion
    assert all(lexicon.words.values())


def test_nrclex_is_not_imported():
    program = "import sys, clinometer.data as d\ntry: d.load_emotions()\nexcept Exception: pass\n"
    program += "print('nrclex' in sys.modules, 'textblob' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def pretend_nrclex(monkeypatch, folder):
    spec = None
    if folder is not None:
        spec = ModuleSpec("nrclex", None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)


def test_without_nrclex(monkeypatch):
    pretend_nrclex(monkeypatch, None)
    with pytest.raises(DataError, match="pip install nrclex"):
        load_emotions()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no file"),
        ("{", "is not JSON"),
        ("[]", "not a table of words"),
        ("{}", "not a table of words"),
        (json.dumps({"abandon": ["fear", "rage"]}), "'abandon' has"),
        (json.dumps({"abandon": "fear"}), "'abandon' has"),
    ],
)
def test_another_nrclex_than_we_know(monkeypatch, tmp_path, content, complaint):
    (tmp_path / "data").mkdir()
    if content is not None:
        (tmp_path / "data" / "nrc_en.json").write_text(content, encoding="utf-8")
    pretend_nrclex(monkeypatch, tmp_path)
    with pytest.raises(DataError) as caught:
        load_emotions()
    assert complaint in str(caught.value)


def test_the_full_file(tmp_path):
    path = tmp_path / "nrc.txt"
    path.write_text("\n" + lines("Selfish", "anger", "disgust", "negative") + lines("vocal"), encoding="utf-8")
    lexicon = read_emotions(path)
    assert lexicon.words == {"selfish": {"anger", "disgust", "negative"}, "vocal": frozenset()}
    assert lexicon.complete
    assert lexicon.source == "NRC file"


def test_a_file_without_unemotional_words_is_not_complete(tmp_path):
    path = tmp_path / "nrc.txt"
    path.write_text(lines("selfish", "anger"), encoding="utf-8")
    assert not read_emotions(path).complete


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("selfish anger 1\n", "line 1: 'selfish anger 1'; expected word, emotion and 0 or 1"),
        ("\tanger\t1\n", "expected word, emotion"),
        ("selfish\tangr\t1\n", "line 1: no emotion 'angr'; did you mean 'anger'?"),
        ("selfish\tanger\t2\n", "line 1: '2' for 'selfish', anger; expected 0 or 1"),
        (lines("selfish") + "selfish\tjoy\t1\n", "line 11: 'selfish', joy again"),
        (lines("selfish").partition("\n")[2], "no line for 'selfish', anger"),
    ],
)
def test_other_files_are_refused(tmp_path, text, complaint):
    path = tmp_path / "nrc.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_emotions(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_published_full_file():
    path = Path(os.environ.get("CLINOMETER_TEST_DATA", "nowhere")) / FULL
    if not path.exists():
        pytest.skip(f"needs the published file {FULL} in the folder $CLINOMETER_TEST_DATA")
    full = read_emotions(path)
    assert len(full.words) == 14182
    assert full.complete
    assert full.words["vocal"] == frozenset()
    labelled = {word: emotions for word, emotions in full.words.items() if emotions}
    assert len(labelled) == 6468
    if importlib.util.find_spec("nrclex"):
        assert labelled == load_emotions().words
