"""What models said in a run, as items to rate."""

import math

import pytest

from clinometer.annotation.items import items_from_run
from clinometer.annotation.sheets import read_new_items
from clinometer.errors import DataError
from clinometer.store import Row, RunFolder, StageKey
from clinometer.types import Ask, Fill, Item, Message, ModelInfo, Sample, TextAnswer, WordAnswer


def new_run(path):
    info = ModelInfo(
        name="m", kind="masked", family="bert", capabilities=("fill",), weights="0", tokenizer="1",
        dtype="float32", code="2",
    )  # fmt: skip
    return RunFolder.create(path, spec="version = 1\n", provenance={"seed": 0}, models=[info])


def record(run, *, stage, pairs, probe="stigma", model="m"):
    with run.writer(StageKey(probe=probe, model=model, stage=stage)) as writer:
        writer.append(
            [
                Row(index, index.to_bytes(16), Item(request=request, tags={}), answer)
                for index, (request, answer) in enumerate(pairs)
            ]
        )


def fill(text, **words):
    logprobs = tuple(math.log(share) if share else math.nan for share in words.values())
    return Fill(text=text, top_k=3), WordAnswer(words=tuple(words), logprobs=logprobs)


def test_words_come_by_probability_with_the_text_that_offers_them_most(tmp_path):
    run = new_run(tmp_path / "run")
    record(run, stage="fill", pairs=[fill("A [MASK].", hard=0.5, easy=0.4), fill("B [MASK].", Easy=0.6, nan=0)])
    record(run, stage="fill", model="n", pairs=[fill("C [MASK].", hard=0.3, **{"...": 0.9, " sure": 0.1})])
    # easy 0.4 + 0.6 = 1.0, hard 0.5 + 0.3 = 0.8, sure 0.1; "..." has no letter, "nan" no probability
    items = items_from_run(run, kind="word")
    assert [(item.text, item.context) for item in items] == [
        ("easy", "B [MASK]."),
        ("hard", "A [MASK]."),
        ("sure", "C [MASK]."),
    ]
    only = items_from_run(run, kind="word", model="n")
    assert [item.text for item in only] == ["hard", "sure"]


def test_generated_texts_come_whole_and_answers_with_their_question(tmp_path):
    run = new_run(tmp_path / "run")
    sampled = (Sample(prefix="The baker", n=2), TextAnswer(texts=(" sings.", "\nsings.")))
    asked = (Ask(messages=(Message(role="system", content="Be short."), Message(role="user", content="May I?"))),)
    record(run, stage="sample", pairs=[sampled])
    record(run, stage="ask", pairs=[(*asked, TextAnswer(texts=("No.",)))])
    assert [item.text for item in items_from_run(run, kind="sentence", stage="sample")] == ["The baker sings."]
    (answer,) = items_from_run(run, kind="sentence", stage="ask")
    assert (answer.text, answer.context) == ("No.", "May I?")


def test_what_cannot_be_chosen_is_named(tmp_path):
    run = new_run(tmp_path / "run")
    record(run, stage="fill", pairs=[fill("A [MASK].", easy=0.4)])
    record(run, stage="again", pairs=[fill("A [MASK].", easy=0.4)])
    with pytest.raises(DataError, match=r"several stages \(stigma again, stigma fill\); choose one with --probe"):
        items_from_run(run, kind="word")
    with pytest.raises(DataError, match="no stage 'fil'; did you mean 'fill'"):
        items_from_run(run, kind="word", stage="fil")
    with pytest.raises(DataError, match="no probe 'x'; valid: stigma"):
        items_from_run(run, kind="word", probe="x")
    with pytest.raises(DataError, match="no generated texts in what was chosen"):
        items_from_run(run, kind="sentence")


def test_files_of_lines_and_of_columns(tmp_path):
    lines = tmp_path / "words.txt"
    lines.write_text("easy\n\nHard\neasy\n", encoding="utf-8")
    assert [item.text for item in read_new_items(lines, kind="word")] == ["easy", "hard"]
    table = tmp_path / "sentences.CSV"
    table.write_text('sentence,context,score\n"Well, no.",May I?,3\n', encoding="utf-8")
    (item,) = read_new_items(table, kind="sentence")
    assert (item.text, item.context) == ("Well, no.", "May I?")
