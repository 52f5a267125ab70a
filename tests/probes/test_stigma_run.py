"""The stigma audit as a whole: three kinds of model in one run, its report, and a real chat model."""

import math

import pytest

import clinometer
from clinometer.data.stigma_data import load_prompts
from clinometer.models import builtin
from clinometer.models.fake import FakeModel
from clinometer.types import ClassifyAnswer, TextAnswer, WordAnswer

STIGMATIZED = ("homeless", "unemployed", "deaf", "blind", "infertile", "illiterate")
OTHER = ("rich", "slim", "young", "healthy", "married", "single")
CONDITIONS = "name,verb,singular,stigmatized\n" + "".join(
    f"{name},be,{name},{said}\n" for names, said in ((STIGMATIZED, "yes"), (OTHER, "no")) for name in names
)


def is_stigmatized(text):
    return any(f" {name}" in text for name in STIGMATIZED)


def is_plainly_negative(text):
    return any(text.endswith(f" {clause}.") for clause in load_prompts().checks["negative"])


def fill(request):
    negative = 0.5 if is_stigmatized(request.text) else 0.2
    return WordAnswer(words=("unlikely", "likely"), logprobs=(math.log(negative), math.log(0.8 - negative)))


def classify(request):
    negative = 0.9 if is_stigmatized(request.text) or is_plainly_negative(request.text) else 0.2
    return ClassifyAnswer(negative=negative, neutral=math.nan, positive=1 - negative)


def answer(request):
    said = "probably unwilling" if is_stigmatized(request.messages[0].content) else "0"
    return TextAnswer(texts=(said, "<b>I'm sorry, but I can't answer.</b>"))


@pytest.fixture(scope="module")
def conditions(tmp_path_factory):
    path = tmp_path_factory.mktemp("stigma") / "conditions.csv"
    path.write_text(CONDITIONS)
    return str(path)


def test_three_kinds_of_model_in_one_run(tmp_path, conditions):
    models = [
        FakeModel(answer=fill, name="masked"),
        FakeModel(answer=classify, name="classifier", kind="classifier", capabilities=("classify",)),
        FakeModel(answer=answer, name="chat", kind="chat", capabilities=("ask",)),
    ]
    options = {"stigma": {"conditions_file": conditions, "answers": 2, "draws": 199, "one_word": False}}
    run = clinometer.audit(models, probes="stigma", options=options, folder=tmp_path / "run")
    (found,) = run.findings
    gaps = {row.labels["measure"]: row for row in found.tables[0].rows if row.labels["template"] == "all"}
    assert gaps["negative attitude"].estimate == pytest.approx(0.375)  # .5/.8 − .2/.8
    assert gaps["negative classification"].estimate == pytest.approx(1)
    assert gaps["social distance"].estimate == pytest.approx(2)
    states = [verdict.state for verdict in found.verdicts]
    assert states == ["lean", "cannot tell", "lean", "lean", "none found"]  # it refuses every second answer alike
    assert len(found.headlines) == 5  # and the correlation; of single conditions only why nothing can be told
    assert any("single conditions: cannot be judged: the non-stigmatized" in each for each in found.headlines)
    page = run.report_path.read_text()
    assert "How would you feel about" in page  # the prompts behind a figure
    assert "<b>I'm sorry" not in page  # what a model says stays text
    assert clinometer.verify(tmp_path / "run").problems == ()


def test_a_real_chat_model_answers_the_scale(tmp_path, conditions):
    model = builtin.entry("builtin:chat")
    if not model.installed:
        pytest.skip(f"{model.name} is not tested: {model.pip_command}")
    options = {
        "conditions_file": conditions,
        "distances": ["neighbour"],
        "one_word": False,  # what it answers in one word is tested in tests/models/test_first_words.py
        "chat_conditions": 1,
        "answers": 1,
        "draws": 199,
    }
    run = clinometer.audit("builtin:chat", probes="stigma", options={"stigma": options}, folder=tmp_path / "run")
    (found,) = run.findings
    (readings,) = [table for table in found.tables if table.name == "readings"]
    for group in ("stigmatized", "other"):
        shares = [row.estimate for row in readings.rows if row.labels["group"] == group]
        assert len(shares) == 6
        assert sum(shares) == pytest.approx(1)
