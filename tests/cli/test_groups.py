"""One file of a user's own groups, from the command line to the tables of every audit that asks about groups."""

from __future__ import annotations

import pytest

import clinometer as library
from clinometer.models.fake import FakeModel
from clinometer.types import TextAnswer, WordAnswer

NAMES = ("nurse", "welder", "potter", "deaf", "baker", "hermit")
GROUPS = """name,category,verb,subgroup
nurse,profession,,care
welder,profession,,
potter,profession,,
deaf,disability,be,care
baker,profession,,other
hermit,lifestyle,,other
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(GROUPS)
    return str(path)


def labels(run, probe, table, label):
    (findings,) = [each for each in run.findings if each.probe == probe]
    (found,) = [each for each in findings.tables if each.name == table]
    return {row.labels[label] for row in found.rows}


def test_stigma_and_counterfactual_ask_a_classifier_about_my_groups(clinometer, file, tmp_path):
    probes = ("--probe", "stigma", "--probe", "counterfactual", "--profile", "quick")
    fewer = (
        "--set",
        "counterfactual.attributes=[]",
        "--set",
        "counterfactual.draws=100",
        "--set",
        "stigma.draws=100",
    )
    done = clinometer("audit", "builtin:opinion-words", *probes, *fewer, "--groups", file, "--out", "run")
    assert done.code == 0, done
    run = library.open_run(tmp_path / "run")
    asked = run.records("stigma", stage="sentences")
    assert {*asked["tag_condition"]} - {""} == {*NAMES}
    assert {
        group for group, name in asked.select("tag_group", "tag_condition").iter_rows() if name == "baker"
    } == {
        "other"  # the subgroup with whom the others are compared
    }
    texts = " ".join(asked["ask_text"])
    assert "nurses" in texts or "a nurse" in texts
    assert "deaf" in texts
    assert labels(run, "counterfactual", "values", "value") <= {*NAMES, "deaf person"}
    texts = " ".join(run.records("counterfactual", stage="templates")["ask_text"])
    assert "a nurse" in texts or "a welder" in texts or "a potter" in texts
    told = " ".join(notice.text for each in run.findings for notice in each.notices)
    assert 'nurse: singular "nurse", plural "nurses", article "a"' in told


def test_stereotypes_asks_a_masked_and_a_chat_model_about_my_groups(file, tmp_path):
    words = ("kind", "rich", "odd")

    def answer(request):
        if not hasattr(request, "words"):
            return TextAnswer(texts=("Kind.",) * request.n)
        asked = request.words or words[: request.top_k]
        return WordAnswer(words=tuple(asked), logprobs=(-2.0,) * len(asked), covered=0.4)

    masked = FakeModel(answer=answer, name="masked", kind="masked", capabilities=("fill",))
    chat = FakeModel(answer=answer, name="chat", kind="chat", capabilities=("ask", "answer_word"))
    run = library.audit(
        [masked, chat],
        probes="stereotypes",
        options={"stereotypes": {"groups_file": file, "draws": 199}},
        folder=tmp_path / "run",
    )
    assert labels(run, "stereotypes", "ranking", "group") == {
        "nurses", "welders", "potters", "deaf people", "bakers", "hermits",
    }  # fmt: skip
    asked = run.records("stereotypes", model="masked", stage="posterior")["ask_text"].to_list()
    assert "Why are deaf people so [MASK]?" in asked
