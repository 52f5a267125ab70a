"""The sentiment-words audit on real adapters and in real runs: what is cut, and what a killed run keeps."""

import time

import pytest
from fake_records import plan_for
from fake_sentiment import write_reviews, write_words
from interrupted_sentiment import run, run_to_be_killed
from tests.killing import Child

from clinometer.models.load import load_model
from clinometer.probes.protocol import Stage
from clinometer.probes.sentiment_words import PROBE
from clinometer.probes.sentiment_words.questions import appended
from clinometer.store import RunFolder
from clinometer.types import Fill


@pytest.fixture(scope="module")
def tiny_masked(tmp_path_factory):
    pytest.importorskip("torch")
    from tests.models.tiny import tiny

    return load_model(str(tiny("bert", tmp_path_factory.mktemp("bert"))), device="cpu")


def test_a_long_review_is_cut_and_never_the_words_or_the_prompt(tiny_masked):
    review = " ".join(f"the film was {word}" for word in ["good", "bad", "fine"] * 30)
    text = appended("nurse", 15, "It was [MASK]")
    assert text.count("nurse") == 15

    def asked(context, text):
        return Fill(text=text, context=context, words=("great", "terrible"), normalise="words")

    (cost,) = tiny_masked.cost([asked(review, text)])
    assert cost == tiny_masked.info.window == 64
    # 64 tokens: [CLS], the last words of the review, 15 × nurse, It was [MASK], [SEP]
    left = 64 - 2 - 15 - 3
    tail = " ".join(review.split()[-left:])
    whole, cut, fewer = (
        tiny_masked.fill([asked(*each)])[0].logprobs
        for each in ((review, text), (tail, text), (review, appended("nurse", 14, "It was [MASK]")))
    )
    assert whole == pytest.approx(cut)
    assert whole != pytest.approx(fewer)


def test_the_first_question_can_be_measured_before_anything_is_asked(tiny_masked):
    (item,) = PROBE.questions(Stage(name="vocabulary"), plan_for(PROBE, model=tiny_masked.info), None)
    (answer,) = tiny_masked.fill([item.request])
    assert len(answer.words) > 3_000  # all of VADER's words and the neutral ones, in one question


def findings(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted((folder / "findings").rglob("*.*"))}


@pytest.mark.xdist_group("killed")
def test_a_run_that_is_killed_half_way_resumes_to_the_same_findings(tmp_path):
    reviews = write_reviews(tmp_path / "reviews.csv", per_class=20)
    words = write_words(tmp_path / "words.csv", positive=3, negative=3, neutral=8)
    peaceful = tmp_path / "peaceful"
    run(peaceful, 0, reviews, words)
    assert findings(peaceful)

    killed = tmp_path / "killed"
    process = Child(run_to_be_killed, killed, 0.05, reviews, words)
    try:
        deadline = time.monotonic() + 60
        while not list(killed.glob("records/*/*/shift/*.parquet")):  # in the middle of the last stage
            assert process.code is None, process.hear()
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        process.kill()
    assert not (killed / "findings").exists()
    recorded = sum(len(RunFolder.open(killed).done(key)) for key in RunFolder.open(killed).stages())
    assert 0 < recorded < 1 + 40 + 8 * 2 * 40
    run(killed, 0, reviews, words)
    assert findings(killed) == findings(peaceful)
