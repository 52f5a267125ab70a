"""A model without any address: questions in a file, answers in a file, and what is wrong with them."""

from __future__ import annotations

import json

import pytest

import clinometer
from clinometer.engine import Silent
from clinometer.errors import InputError, StoppedError
from clinometer.models.load import load_model
from clinometer.store import RunFolder, StageKey
from clinometer.types import AuditSpec, ModelSpec
from clinometer.workflows import Execution
from clinometer.workflows.plans import RunRecords
from clinometer.workflows.pool import QUESTIONS
from clinometer.workflows.questions import QuestionsRequest, write_questions
from tests.digits_probe import Digits

OPTIONS = {"digits": {"questions": 6, "answers": 2, "then": 3}}


class Notes(Silent):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def questions(folder, form="plain"):
    spec = AuditSpec(probes=("digits",), models=(), options=OPTIONS)
    request = QuestionsRequest(spec=spec, out=folder / "questions.jsonl", form=form, probes=(Digits(),))
    written = write_questions(request)
    assert (written.counts, written.later) == ({"digits": 6}, ("digits",))
    return lines_of(folder / "questions.jsonl")


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path, lines):
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))


def audit(folder, progress=None, **execution):
    return clinometer.audit(
        ModelSpec(name=f"answers:{folder / 'answers.jsonl'}", alias="m"), probes=Digits(), options=OPTIONS,
        folder=folder / "run", progress=progress, execution=Execution(**execution),
    )  # fmt: skip


def answer(question):
    return {"id": question["id"], "texts": [f"{len(question['id']) % 10} so", "3"]}


def test_questions_are_answered_stage_by_stage(tmp_path):
    asked = questions(tmp_path)
    assert asked[0]["messages"] == [{"role": "user", "content": "Question 0: which digit?"}]
    assert (asked[0]["n"], asked[0]["max_tokens"]) == (2, 8)
    write(tmp_path / "answers.jsonl", map(answer, asked))
    with pytest.raises(StoppedError, match="3 answers are missing"):
        audit(tmp_path)
    more = lines_of(tmp_path / "run" / QUESTIONS)
    assert more[0]["messages"][0]["content"].startswith("You said '4 so' to question 0")
    write(tmp_path / "answers.jsonl", map(answer, [*asked, *more]))
    run = clinometer.resume(tmp_path / "run", probes=[Digits()])
    table = RunFolder.open(tmp_path / "run").table(StageKey(probe="digits", model="m", stage="then"))
    assert table["got_texts"].to_list() == [["4 so", "3"]] * 3
    assert clinometer.verify(run, probes=[Digits()]).problems == ()


def test_a_file_is_known_by_its_answers_and_not_by_its_place(tmp_path):
    asked = questions(tmp_path)
    write(tmp_path / "answers.jsonl", map(answer, asked))
    elsewhere = tmp_path / "copied" / "other.jsonl"
    elsewhere.parent.mkdir()
    write(elsewhere, reversed(list(map(answer, asked))))

    def weights(path):
        return load_model(ModelSpec(name=f"answers:{path}")).info.weights

    assert weights(tmp_path / "answers.jsonl") == weights(elsewhere)
    # a run that was copied with the file goes on with it, and its spec tells nobody where the file was
    with pytest.raises(StoppedError):
        audit(tmp_path)
    assert str(tmp_path) not in (tmp_path / "run" / "spec.toml").read_text()
    moved = (tmp_path / "run").rename(tmp_path / "copied" / "run")
    (moved / "places.json").unlink()
    (tmp_path / "answers.jsonl").unlink()
    write(elsewhere, map(answer, [*asked, *lines_of(moved / QUESTIONS)]))
    run = clinometer.resume(moved, probes=[Digits()], places={"m": str(elsewhere)})
    assert clinometer.verify(run, probes=[Digits()]).problems == ()
    write(elsewhere, [{**answer(asked[0]), "texts": ["9", "9"]}, *map(answer, asked[1:])])
    assert weights(elsewhere) != run.models[0].weights


def test_openais_batch_files_are_written_and_read(tmp_path):
    asked = questions(tmp_path, form="openai")
    assert asked[0]["method"] == "POST"
    assert asked[0]["url"] == "/v1/chat/completions"
    assert asked[0]["body"]["model"] == "MODEL"
    assert asked[0]["body"]["n"] == 2

    def batch(question):
        choices = [
            {"index": index, "message": {"role": "assistant", "content": "7"}, "finish_reason": "stop"}
            for index in range(question["body"]["n"])
        ]
        body = {"id": "x", "model": "gpt", "system_fingerprint": "fp", "choices": choices}
        return {
            "id": "b",
            "custom_id": question["custom_id"],
            "response": {"status_code": 200, "body": body},
            "error": None,
        }

    write(tmp_path / "answers.jsonl", map(batch, asked))
    with pytest.raises(StoppedError):
        audit(tmp_path)
    more = lines_of(tmp_path / "run" / QUESTIONS)
    assert "custom_id" in more[0]  # the next file is in the format of the answers
    write(tmp_path / "answers.jsonl", map(batch, [*asked, *more]))
    run = clinometer.resume(tmp_path / "run", probes=[Digits()])
    assert not [notice for notice in run.findings[0].notices if notice.level == "warning"]
    table = RunFolder.open(tmp_path / "run").table(StageKey(probe="digits", model="m", stage="first"))
    assert table["from_model"].unique().to_list() == ["gpt"]


def test_what_is_missing_malformed_or_not_asked_for_is_said(tmp_path):
    first, second, third, *rest = questions(tmp_path)
    lines = [
        answer(first), answer(first), "not json", {"texts": ["no id"]}, {"id": second["id"], "texts": "one"},
        {"id": third["id"], "texts": ["one where two were asked for"]}, {"id": "nobody", "text": "asked"},
        *map(answer, rest),
    ]  # fmt: skip
    write(tmp_path / "answers.jsonl", lines)
    progress = Notes()
    with pytest.raises(StoppedError, match="2 answers are missing"):
        audit(tmp_path, progress)
    said = "\n".join(progress.notes)
    assert f"line 2: a second answer to {first['id']}; the first one counts" in said
    assert "line 3: not JSON" in said
    assert "line 4: no id" in said
    assert f"the answer to {second['id']}: expected texts" in said
    assert f"the answer to {third['id']}: 1 texts where 2 were asked for" in said
    assert {line["id"] for line in lines_of(tmp_path / "run" / QUESTIONS)} == {second["id"], third["id"]}
    # the owner can say that there will be no more
    progress = Notes()
    run = clinometer.resume(
        tmp_path / "run", probes=[Digits()], execution=Execution(accept_missing=True), progress=progress
    )
    assert any("1 answers not asked for, such as nobody" in note for note in progress.notes)
    told = [notice.text for notice in run.findings[0].notices]
    assert any("4 missing" in text for text in told)
    table = RunFolder.open(tmp_path / "run").table(StageKey(probe="digits", model="m", stage="first"))
    assert table["got_endings"].to_list()[1] == ["missing", "missing"]
    # an audit does not see them: they are no answers of the model
    records = RunRecords(RunFolder.open(tmp_path / "run"), "digits")
    for columns in (["got_texts"], None):
        seen = records.table(model="m", stage="first", columns=columns)["got_texts"].to_list()
        assert seen[1] == []
        assert [len(texts) for texts in seen] == [
            len(texts) if "missing" not in endings else 0
            for texts, endings in zip(table["got_texts"].to_list(), table["got_endings"].to_list(), strict=True)
        ]
    (batch,) = records.batches(model="m", stage="first", columns=["got_texts"])
    assert batch.columns == ["got_texts"]
    assert batch["got_texts"].to_list() == seen


def test_words_and_scores_can_be_answered_too():
    from clinometer.models.endpoint.written import Answers, question_id, question_line
    from clinometer.models.protocols import Call

    words = Call(path="/chat/completions", body={"messages": []}, reads="words", words=("yes", "no"))
    score = Call(path="/completions", body={"prompt": "A b."}, reads="score")
    assert json.loads(question_line(words, form="plain", model="m"))["words"] == ["yes", "no"]
    answers = Answers(
        found={
            question_id(words): {"id": "", "logprobs": {"yes": -0.5, "no": -2}},
            question_id(score): {"id": "", "logprob": -7.5, "tokens": 3},
        }
    )
    assert answers.reply(words).content["top"] == [(" yes", -0.5), (" no", -2.0)]
    assert answers.reply(score).content["logprob"] == -7.5


def test_a_file_of_questions_is_not_written_over(tmp_path):
    questions(tmp_path)
    with pytest.raises(InputError, match="exists"):
        questions(tmp_path)
