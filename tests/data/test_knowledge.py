from __future__ import annotations

from importlib.resources import files

import pytest

from clinometer.data import load_sentences, read_sentences
from clinometer.errors import DataError

PAPER = files("clinometer.data").joinpath("counterexamples", "knowledge.toml").read_text(encoding="utf-8")


def read(tmp_path, text):
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    return read_sentences(tmp_path / "mine.toml")


def test_a_copy_of_the_packaged_file_is_the_same(tmp_path):
    assert read(tmp_path, PAPER) == load_sentences()


def test_a_kind_of_one_s_own(tmp_path):
    more = PAPER + '\n[[kinds]]\nname = "plea"\nexpected = "smaller"\nknowledge = "Anyone can be {a_target}."\n'
    assert read(tmp_path, more).kinds[-1].knowledge == "Anyone can be {a_target}."


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "base"', 'name = "bare"', "must be named 'base'"),
        ("{pro_person}", "{pro_persn}", "did you mean 'pro_person'"),
        ("{a_target}.", "{a_target.", "brace"),
        ("[MASK]", "MASK", r"one \[MASK\]"),
        ("[MASK]", "[MASK] [MASK]", r"one \[MASK\]"),
        ('expected = "larger"', 'expected = "bigger"', "expected = 'bigger'"),
        ('name = "unrelated"', 'name = "target neutral"', "twice"),
        ('name = "unrelated"', "name = 3", "expected text"),
        ('name = "unrelated"', 'nmae = "unrelated"', "did you mean 'name'"),
    ],
)
def test_a_mistake_is_named(tmp_path, old, new, words):
    assert old in PAPER
    with pytest.raises(DataError, match=words):
        read(tmp_path, PAPER.replace(old, new))


@pytest.mark.parametrize(
    "text", ["", "blank = 1", PAPER.split("[[kinds]]")[0], PAPER.split("[[kinds]]")[0] + "kinds = 3"]
)
def test_a_file_without_kinds(tmp_path, text):
    with pytest.raises(DataError, match=r"mine\.toml"):
        read(tmp_path, text)
