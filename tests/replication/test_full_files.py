"""The authors' whole files, where they are given: the numbers that docs/replication.md states."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

import clinometer
from clinometer.replication import PAPERS, stereotypes, stigma
from clinometer.replication.download import published_files

DATA = Path(os.environ["CLINOMETER_TEST_DATA"])


def unpacked(name, folder):
    file = DATA / "published" / f"{name}.tar.xz"
    if not file.is_file():
        pytest.skip(f"needs published/{name}.tar.xz in the folder $CLINOMETER_TEST_DATA")
    with tarfile.open(file) as packed:
        packed.extractall(folder, filter="data")
    return folder


def given(*parts):
    file = DATA.joinpath(*parts)
    if not file.is_file():
        pytest.skip(f"needs {'/'.join(parts)} in the folder $CLINOMETER_TEST_DATA")
    return file


@pytest.fixture(scope="module")
def stereotypes_found(tmp_path_factory):
    human = [given("stereotypes", Path(name).name) for name in (stereotypes.HUMAN, stereotypes.EVERY_HUMAN)]
    nrc = given("lexicons", "NRC-Emotion-Lexicon-Wordlevel-v0.92.txt")
    folder = unpacked("stereotypes_in_lms", tmp_path_factory.mktemp("stereotypes"))
    target = folder / "stereotypes_in_lms" / Path(stereotypes.HUMAN).parent
    target.mkdir(parents=True)
    for file in human:
        shutil.copy(file, target)
    yield clinometer.replicate("stereotypes", folder=folder, nrc=nrc)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def stigma_found(tmp_path_factory):
    ratings = given("stigma", "word_ratings.csv")
    folder = unpacked("MLMs_bias_stigmas", tmp_path_factory.mktemp("stigma"))
    yield clinometer.replicate("stigma", folder=folder, ratings=ratings)
    shutil.rmtree(folder)


def cells(found, item):
    return next(each.cells for each in found.items if each.name == item)


def test_table_4(stereotypes_found):
    table = cells(stereotypes_found, "table-4")
    agree = {
        model: sum(cell.agrees for cell in table if cell.name.startswith(f"{model},"))
        for model in ("BERT-B", "RoBERTa-B", "BART-B", "mBERT", "XLMR-B")
    }
    assert agree == {"BERT-B": 45, "RoBERTa-B": 45, "BART-B": 44, "mBERT": 45, "XLMR-B": 20}


def test_three_rows_of_table_4_are_exchanged(stereotypes_found):
    table = {cell.name: cell for cell in cells(stereotypes_found, "table-4")}
    printed_as = {"Reuters": "FOX news", "FOX news": "BreitBart", "BreitBart": "Reuters"}
    for printed, source in printed_as.items():
        for category in stereotypes.CATEGORIES:
            ours = table[f"XLMR-B, {source}, {category}"].ours
            assert ours == pytest.approx(float(table[f"XLMR-B, {printed}, {category}"].printed), abs=0.005)


def test_similarity_recall_vectors_and_data_set(stereotypes_found):
    similar = {cell.name: cell for cell in cells(stereotypes_found, "figure-10")}
    assert similar["RoBERTa-B and BART-B"].ours == pytest.approx(0.440, abs=5e-4)
    assert max(similar.values(), key=lambda cell: cell.ours if cell.found else 0).name == "RoBERTa-B and BART-B"
    recall = {cell.name: cell.ours for cell in cells(stereotypes_found, "figure-1")}
    assert recall["BERT-B, recall@200"] == pytest.approx(0.711, abs=5e-4)
    assert recall["BERT-B, recall@25"] == pytest.approx(0.215, abs=5e-4)
    vectors = cells(stereotypes_found, "section-5")
    come_out = {cell.name: cell.ours for cell in vectors if cell.found}
    assert come_out == {
        f"{model}, vectors that come out of 374": 374
        for model in ("BERT-B", "RoBERTa-B", "BART-B", "mBERT", "XLMR-B")
    }
    tuned = cells(stereotypes_found, "figure-6")
    assert [(cell.ours, cell.name.endswith(" of 374")) for cell in tuned] == [(374, True)] * 3
    assert all(cell.agrees for cell in cells(stereotypes_found, "section-3"))
    assert stereotypes_found.agreeing == 209
    assert len(stereotypes_found.compared) == 235


def test_figures_that_print_no_numbers(stereotypes_found):
    between = {cell.name: cell.ours for cell in cells(stereotypes_found, "figure-3")}
    assert between["gender, Guardian and FOX news"] == pytest.approx(0.662, abs=5e-4)  # lower than on age (§6)
    assert between["age, Guardian and FOX news"] == pytest.approx(0.773, abs=5e-4)
    shifts = [cell.ours for cell in cells(stereotypes_found, "figure-5")][:5]
    assert shifts == pytest.approx([-0.429, -0.341, -0.590, -0.340, -0.327], abs=5e-4)
    engines = {cell.name: cell.ours for cell in cells(stereotypes_found, "figure-8")}
    assert engines == {"several engines": 998, "google": 560, "yahoo": 342, "duckduckgo": 199}


def test_without_the_lexicon_three_cells_fewer_agree(stereotypes_found, monkeypatch, tmp_path):
    monkeypatch.setenv("CLINOMETER_DATA", str(tmp_path))  # where a lexicon may have been added
    without = clinometer.replicate("stereotypes", folder=stereotypes_found.folder)
    assert (without.agreeing, len(without.compared)) == (206, 235)
    shifts = [cell.ours for cell in cells(without, "figure-5")][:5]
    assert shifts == pytest.approx([-0.429, -0.340, -0.590, -0.341, -0.327], abs=5e-4)


def test_files_of_the_authors_pass_and_a_changed_one_is_named(stigma_found, tmp_path):
    assert (stigma_found.files.known, stigma_found.files.changed) == (25, ())
    folder = shutil.copytree(stigma_found.folder, tmp_path / "copy")
    file = folder / stigma.AGGREGATE
    file.write_text(file.read_text().replace("0.75", "0.25", 1))
    found = clinometer.replicate("stigma", item="section-5.2", folder=folder)
    assert found.files.changed == (stigma.AGGREGATE,)


def test_stigma(stigma_found):
    by_sums = "by the authors' sums"
    found = {cell.name: cell for item in stigma_found.items for cell in item.cells}
    differences = [round(cell.ours, 2) for cell in cells(stigma_found, "figure-4") if cell.found]
    assert differences[:3] == [0.65, 0.58, 0.51]
    assert differences[3] == 0.28  # SiEBERT, from its own file or from the sums
    assert found[f"stigmatized conditions with more than half negative outcomes, {by_sums}"].ours == 69
    assert found[f"other conditions with more than half negative outcomes, {by_sums}"].ours == 3
    assert found[f"stigmatized conditions with only negative outcomes, {by_sums}"].ours == 30  # printed: 27
    whole = "SiEBERT" in {cell.name.partition(",")[0] for cell in cells(stigma_found, "figure-8") if cell.found}
    if not whole:
        assert (stigma_found.agreeing, len(stigma_found.compared)) == (7, 8)
    by_template = [
        {cell.name: round(cell.ours, 3) for cell in cells(stigma_found, item)} for item in ("figure-8", "figure-9")
    ]
    negative = "BERTweet, stigmatized conditions, negative"
    assert [shares[negative] for shares in by_template] == [0.769, 0.778]
    held = [cell for cell in cells(stigma_found, "figure-5") if cell.found]
    assert [(cell.ours, " of 840 " in cell.name) for cell in held] == [(0, True)] * len(held)
    assert len(held) >= 4
    (highest,) = (cell for name, cell in found.items() if name.startswith("the highest"))
    assert "Skinny" in highest.name
    whole = "all six models" in highest.name
    assert highest.ours == pytest.approx(0.514 if whole else 0.481, abs=5e-4)


def test_the_known_checksums_are_those_of_the_files(tmp_path):
    import hashlib

    paper = PAPERS["stigma"]
    folder = unpacked("MLMs_bias_stigmas", tmp_path) / "MLMs_bias_stigmas"
    for file in published_files(paper, paper.items):
        content = (folder / file.path).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (file.sha256, file.bytes)


def test_the_page_states_what_comes_out(stereotypes_found, stigma_found):
    page = " ".join((Path(__file__).parents[2] / "docs" / "replication.md").read_text(encoding="utf-8").split())
    for found in (stereotypes_found, stigma_found):
        of = "numbers of" if found.paper == "stereotypes" else "of"
        assert f"{found.agreeing} of {len(found.compared)} {of} the {found.paper} paper" in page
