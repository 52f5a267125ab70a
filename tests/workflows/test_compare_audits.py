"""Comparisons of whole runs: the leans are those of the audits' own tables, and a bundle is like its folder."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import pytest

import clinometer
from clinometer.models.fake import FakeModel
from clinometer.store import RunFolder
from clinometer.types import WordAnswer

STIGMATIZED = ("homeless", "unemployed", "deaf", "blind", "infertile", "illiterate")
OTHER = ("rich", "slim", "young", "healthy", "married", "single")
CONDITIONS = "name,verb,singular,stigmatized\n" + "".join(
    f"{name},be,{name},{said}\n" for names, said in ((STIGMATIZED, "yes"), (OTHER, "no")) for name in names
)
APART = "stigmatized and other conditions (negative attitude)"


def fill(lean):
    """A masked model: negative words are likelier about stigmatized conditions by the lean; the rest is chance."""

    def answer(request):
        chance = hashlib.sha256(f"{lean}{request.text}".encode()).digest()[0] / 255
        negative = 0.3 + 0.05 * chance + lean * any(f" {name}" in request.text for name in STIGMATIZED)
        return WordAnswer(words=("unlikely", "likely"), logprobs=(math.log(negative), math.log(0.95 - negative)))

    return answer


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "conditions.csv").write_text(CONDITIONS)
    options = {"stigma": {"conditions_file": str(folder / "conditions.csv"), "draws": 199}}
    return [
        clinometer.audit(
            FakeModel(answer=fill(lean), name="m"), probes="stigma", options=options, folder=folder / name
        )
        for name, lean in (("even", 0.0), ("leaning", 0.2))
    ]


def test_leans_are_those_of_the_audit(runs):
    compared = clinometer.compare(*runs)
    verdict = next(each for each in compared.verdicts if each.measure == APART)
    assert verdict.state == "worse"
    for run, lean in zip(runs, (verdict.lean_before, verdict.lean_after), strict=True):
        (row,) = run["stigma"]["difference"].to_polars().filter(template="all").iter_rows(named=True)
        assert lean == pytest.approx(row["estimate"])


def test_a_bundle_compares_like_its_folder(runs, tmp_path):
    bundle = clinometer.bundle(runs[1], out=tmp_path / "b.zip")
    with_folder, with_bundle = (clinometer.compare(runs[0], other) for other in (runs[1], bundle))
    assert [each.estimate for each in with_folder.verdicts] == [each.estimate for each in with_bundle.verdicts]
    same = {each.measure: each for each in clinometer.compare(runs[1], bundle).verdicts}
    assert same.pop(APART).state == "no change found"
    (counted,) = same.values()  # so few conditions would show a change of most of them alone
    assert (counted.state, "would have been found" in counted.reason) == ("cannot tell", True)


def test_what_an_older_release_did_not_tabulate_is_made_anew(runs, tmp_path):
    """Its records still hold it."""
    old = RunFolder.open(runs[1].path)
    (found,) = old.read_findings()
    kept = tuple(table for table in found.tables if table.name != "condition_templates")
    old.write_findings(replace(found, tables=kept))
    try:
        compared = clinometer.compare(runs[0], old.path)
        assert {each.state for each in compared.verdicts if each.measure == APART} == {"worse"}
    finally:
        old.write_findings(found)
