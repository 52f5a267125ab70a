"""The example of a provider, installed as a user would install it: a corpus is audited like a model."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "clinometer-corpus"

# nurses are women here and engineers men; teachers are both
CORPUS = "\n".join(
    20 * ["The woman works as a nurse.", "The man works as an engineer."]
    + 10 * ["The man works as a teacher.", "The woman works as a teacher."]
    + ["A man works as a nurse.", "A woman works as an engineer.", "Nothing else was said."]
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Give a folder with the package and its entry point, built from a copy so that nothing is left in ours."""
    place = tmp_path_factory.mktemp("example")
    copy = shutil.copytree(EXAMPLE, place / "source")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(place / "site"), str(copy)]
    subprocess.run(command, check=True)
    return place / "site"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    file = tmp_path_factory.mktemp("corpus") / "jobs.txt"
    file.write_text(CORPUS)
    return file


def run(program, installed):
    """Return what a fresh interpreter prints that has the package installed."""
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_answers_by_the_formula(installed, corpus):
    program = f"""
import json, sys, clinometer
from clinometer.types import Fill, NextWord
model = clinometer.load_model({f"corpus:{corpus}"!r})
queries = [
    Fill(text="[MASK] nurse", words=("woman", "man", "robot")),
    Fill(text="nurse [MASK]", words=("woman", "man"), normalise="words"),
    Fill(text="[MASK]", context="teacher", top_k=4),
]
next_word, = model.next_word([NextWord(text="nurse", words=("woman", "man", "robot"))])
print(json.dumps([model.info.name, "torch" in sys.modules, next_word.logprobs] + [
    [answer.words, answer.logprobs] for answer in model.fill(queries)
]))
"""
    name, with_torch, next_word, given, among, top = json.loads(run(program, installed))
    assert (name, with_torch) == (f"corpus:{corpus}", False)
    # Of 63 sentences 31 have a woman, 31 a man and 21 a nurse; 20 have woman and nurse, 1 has man and nurse. With
    # A = 5, P(nurse | woman) = (20 + 5 · 21/63) / (31 + 5) and P(nurse | man) = (1 + 5 · 21/63) / (31 + 5).
    ratio = (20 + 5 / 3) / (1 + 5 / 3)
    assert math.exp(given[1][0] - given[1][1]) == pytest.approx(ratio)
    assert [math.exp(value) for value in among[1]] == pytest.approx([ratio / (1 + ratio), 1 / (1 + ratio)])
    assert math.isnan(given[1][2])
    assert next_word[:2] == given[1][:2]
    assert set(top[0]) == {"works", "as", "a", "the"}
    assert top[1] == sorted(top[1], reverse=True)


def test_a_corpus_is_audited_like_a_model(installed, corpus, tmp_path):
    name = f"corpus:{corpus}"
    program = f"""
import clinometer
clinometer.audit({name!r}, probes="counterexamples", profile="quick", folder={str(tmp_path / "run")!r})
"""
    run(program, installed)
    findings = tmp_path / "run" / "findings" / "counterexamples"
    with (findings / "occupations.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} == {name}
    # P(female words) − P(male words); "an" before "engineer" is evidence as well, so teachers are not quite even
    lean = {row["occupation"]: float(row["estimate"]) for row in rows if row["k"] == "10"}
    assert lean["nurse"] > 0.2
    assert abs(lean["teacher"]) < 0.1
    assert lean["engineer"] < -0.2
    assert (tmp_path / "run" / "report.html").is_file()


def test_a_file_that_is_not_there_gets_one_sentence(installed, tmp_path):
    program = f"""
from clinometer.errors import DataError
from clinometer.models.load import check_model
from clinometer.types import ModelSpec
try:
    check_model(ModelSpec(name="corpus:{tmp_path}/none.txt"))
except DataError as error:
    print(error)
"""
    assert "none.txt" in run(program, installed)
