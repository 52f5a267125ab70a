"""Causal models, chat models and classifiers in the sentiment-words audit: planted leans, even hands, gates."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from fake_records import fake_model, plan_for
from fake_sentiment import (
    BASE,
    FakeOfAnyKind,
    FakeSentiment,
    ask_sentiment,
    row_of,
    rows_of,
    write_reviews,
    write_words,
)

from clinometer.errors import DataError
from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND
from clinometer.probes.kit.refusals import ASPECT as REFUSING
from clinometer.probes.sentiment_words import PROBE
from clinometer.probes.sentiment_words.questions import fitted, left_of, templates_of
from clinometer.probes.sentiment_words.verdicts import AFTER, APPENDED
from clinometer.questions import items_of
from clinometer.types import AnswerWord, Ask, Classify, NextWord

KINDS = {
    "next word": ("next_word", "sample"),
    "answer": ("ask", "answer_word"),
    "drawn answers": ("ask",),
    "own label": ("classify",),
}
REQUESTS = {"next word": NextWord, "answer": AnswerWord, "drawn answers": Ask, "own label": Classify}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    return {
        "words_file": write_words(folder / "words.csv", neutral=6),
        "reviews_file": write_reviews(folder / "reviews.csv", per_class=30),
        "reviews_per_class": 30,
        "templates": ("It was [MASK]", "It was [MASK]."),
        "ks": (5,),
        "draws": 199,
        "answers": 8,
    }


def plan_of(files, way, name="m", **options):
    return plan_for(PROBE, model=fake_model(name, capabilities=KINDS[way]), **files | options)


def concluded(files, way, **thinks):
    plan = plan_of(files, way)
    return PROBE.findings([plan], ask_sentiment(PROBE, plan, FakeOfAnyKind(**thinks)))


def state_of(findings, aspect):
    (verdict,) = [each for each in findings.verdicts if each.aspect == aspect]
    return verdict.state


# ---- planted, even-handed, without understanding


@pytest.mark.parametrize("way", KINDS)
def test_planted_leans_are_found_and_named(files, way):
    findings = concluded(files, way, lean={"plain3": 3.0}, push={"plain4": 2.5})
    (appended,) = [each for each in findings.verdicts if each.aspect == APPENDED]
    assert appended.state == LEAN
    assert "most surely 'plain4' (better)" in appended.sentence
    row = row_of(findings, "leans", aspect=APPENDED)
    assert row.labels["asked"] == way
    if way == "own label":
        assert AFTER not in {each.aspect for each in findings.verdicts}
        assert not rows_of(findings, "association")
        assert not rows_of(findings, "vocabulary")
    elif way == "drawn answers":
        assert state_of(findings, AFTER) == CANNOT_TELL  # no neutral word was ever said
    else:
        (after,) = [each for each in findings.verdicts if each.aspect == AFTER]
        assert after.state == LEAN
        assert "'plain3' (positive)" in after.sentence
    assert any("m was " in notice.text for notice in findings.notices)


@pytest.mark.parametrize("way", KINDS)
def test_an_even_hand_is_not_called(files, way):
    findings = concluded(files, way)
    assert state_of(findings, APPENDED) == NONE_FOUND
    if way in ("next word", "answer"):
        assert state_of(findings, AFTER) == NONE_FOUND
    assert not [line for line in findings.headlines if "nan" in line.split()]


@pytest.mark.parametrize("way", KINDS)
def test_a_model_without_a_sense_of_sentiment_cannot_be_told(files, way):
    findings = concluded(files, way, sense=0.0, push={"plain4": 2.5})
    assert state_of(findings, APPENDED) == CANNOT_TELL
    assert {row.labels["interpretable"] for row in rows_of(findings, "shift")} == {"no"}
    said = [*findings.headlines, *(notice.text for notice in findings.notices)]
    if way == "own label":
        assert not [
            text for text in said if "It was" in text or "one token" in text or "positive words likelier" in text
        ]


def test_words_that_an_endpoint_does_not_tell_count_as_never_drawn(files):
    fake = FakeOfAnyKind(lean={"plain3": 3.0}, push={"plain4": 2.5})
    always = ("great", "terrible", "plain3")

    def tells_some(request):  # words that are more probable than others usually are; some words always are
        answer = fake(request)
        if not isinstance(request, AnswerWord):
            return answer
        known = [
            logprob if logprob > math.log(BASE) - 0.05 or word in always else math.nan
            for word, logprob in zip(answer.words, answer.logprobs, strict=True)
        ]
        return replace(answer, logprobs=tuple(known), told=0.9)

    plan = plan_of(files, "answer")
    endpoint = replace(plan, model=replace(plan.model, told={"model": "m"}))
    findings = PROBE.findings([endpoint], ask_sentiment(PROBE, endpoint, tells_some))
    (after,) = [each for each in findings.verdicts if each.aspect == AFTER]
    assert after.state == LEAN
    assert "'plain3' (positive)" in after.sentence
    assert row_of(findings, "leans", aspect=AFTER).labels["of"] == 1  # of the others some answers tell nothing
    assert state_of(findings, APPENDED) == LEAN
    assert not [notice for notice in findings.notices if "left out" in notice.text]
    # a model that runs here has a number for every word that it was asked about, or something is wrong
    local = PROBE.findings([plan], ask_sentiment(PROBE, plan, tells_some))
    assert state_of(local, AFTER) == CANNOT_TELL

    # an answer that tells nothing, or not both label words, says nothing
    def silent(request):
        answer = tells_some(request)
        if "review number 7 " not in request.messages[-1].content or not isinstance(request, AnswerWord):
            return answer
        return replace(answer, logprobs=(math.nan,) * len(answer.words), told=0.0)

    findings = PROBE.findings([endpoint], ask_sentiment(PROBE, endpoint, silent))
    assert [notice for notice in findings.notices if "reviews were left out" in notice.text]


def test_drawn_answers_that_are_no_words_cannot_be_told_though_the_rest_makes_sense(files):
    findings = concluded(files, "drawn answers", rambles=0.6, push={"plain4": 2.5})
    (verdict,) = [each for each in findings.verdicts if each.aspect == APPENDED]
    assert verdict.state == CANNOT_TELL
    assert "% of the answers that are not refusals" in verdict.reason


# ---- refusals


@pytest.mark.parametrize("way", ["answer", "drawn answers"])
def test_refusing_for_one_kind_of_review_is_a_lean(files, way):
    findings = concluded(files, way, refuses=0.4)
    (verdict,) = [each for each in findings.verdicts if each.aspect == REFUSING]
    assert verdict.state == LEAN
    assert (
        "of the answers about negative reviews" in verdict.sentence or "positive reviews and" in verdict.sentence
    )
    assert any("refuses" in line for line in findings.headlines)
    assert "refusals" in {figure.table for figure in findings.figures}
    assert all("interpretable" not in row.labels for row in rows_of(findings, "refusals"))
    quiet = concluded(files, way)
    assert state_of(quiet, REFUSING) == NONE_FOUND


def test_only_chat_models_have_a_table_of_refusals(files):
    assert "refusals" not in {table.name for table in concluded(files, "own label").tables}


# ---- what is asked


@pytest.mark.parametrize("way", KINDS)
def test_every_stage_asks_in_the_models_way(files, way):
    plan = plan_of(files, way)
    records = ask_sentiment(PROBE, plan, FakeOfAnyKind())
    stages = {stage.name: stage for stage in PROBE.stages(plan)}
    expected = {
        "next word": ["vocabulary", "association", "shift"],
        "answer": ["association", "answers", "shift"],
        "drawn answers": ["association", "shift"],
        "own label": ["association", "shift"],
    }
    assert list(stages) == expected[way]
    for stage in stages.values():
        items = list(items_of(PROBE.questions(stage, plan, records)))
        kind = Ask if stage.name == "answers" else REQUESTS[way]
        assert {type(item.request) for item in items} == {kind}
        assert stage.size in (0, len(items))
    if way == "own label":
        assert all(item.request.text.split()[-5:] == [item.tags["word"]] * 5 for item in items)
        assert not any("It was" in item.request.text for item in items)


def test_of_templates_that_differ_after_the_blank_one_is_asked(files):
    assert templates_of(plan_of(files, "next word")) == ("It was [MASK]",)
    other = ("Just [MASK]!", "It was [MASK].", "It was [MASK]")
    assert templates_of(plan_of(files, "answer", templates=other)) == ("Just [MASK]!", "It was [MASK].")
    assert templates_of(plan_for(PROBE, **files)) == files["templates"]
    assert left_of("Just [MASK]!") == "Just"


def test_slow_models_are_asked_about_fewer_reviews_and_chat_models_about_fewer_words(files):
    fewer = {"slow_reviews_per_class": 20, "chat_words_per_class": 4, "ks": (5, 10), "slow_ks": (7,)}
    for way in KINDS:
        options = fitted(plan_of(files, way, **fewer)).options
        assert (options.reviews_per_class, options.ks) == (20, (7,))
        assert fitted(plan_of(files, way)).options.ks == files["ks"]
    options = fitted(plan_for(PROBE, **files | fewer)).options
    assert (options.reviews_per_class, options.ks) == (30, (5, 10))
    plan = plan_of(files, "answer", **fewer)
    (item, *_) = PROBE.questions(PROBE.stages(plan)[0], plan, None)
    assert len(item.request.words) == 3 * 4 + 2


def test_phrasings_take_turns_and_a_review_keeps_its_own(files):
    plan = plan_of(files, "answer")
    association, _, shift = PROBE.stages(plan)
    asked = [item.request.messages[0].content for item in PROBE.questions(association, plan, None)]
    assert len({content.split("this is")[0] for content in asked}) >= 2
    for item in list(PROBE.questions(shift, plan, None))[:40]:
        content, before = item.request.messages[0].content, asked[item.tags["review"]]
        appended = " ".join([item.tags["word"]] * item.tags["k"])
        assert content.replace(f"{appended} ", "") == before


def test_instructions_of_the_user_are_asked_and_wrong_ones_refused_at_once(files, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('system = "Be brief."\nfill = ["One word: {text}"]\ncontinue = ["{text}"]')
    plan = plan_of(files, "answer", instructions_file=str(mine))
    (item, *_) = PROBE.questions(PROBE.stages(plan)[0], plan, None)
    assert item.request.messages[0].content == "Be brief."
    assert item.request.messages[1].content.startswith("One word: this is")
    mine.write_text('fill = ["One word"]\ncontinue = ["{text}"]')
    with pytest.raises(DataError, match=r"one \{text\}"):
        PROBE.check(plan.options)


def test_a_classifier_reads_the_appended_words_of_a_long_review(files):
    plan = plan_of(files, "own label")
    plan = replace(plan, model=replace(plan.model, window=24))
    items = list(PROBE.questions(PROBE.stages(plan)[1], plan, None))
    # 24 tokens: two words of the review, and five appended ones
    assert {len(item.request.text.split()) for item in items} == {7}
    assert all(item.request.text.startswith("number ") for item in items)  # its last words
    assert all(item.request.text.endswith(" ".join([item.tags["word"]] * 5)) for item in items)


def test_a_classifier_without_one_of_the_two_classes_cannot_be_told(files):
    class OneSided(FakeOfAnyKind):
        def __call__(self, request):
            return replace(super().__call__(request), positive=float("nan"))

    plan = plan_of(files, "own label")
    findings = PROBE.findings([plan], ask_sentiment(PROBE, plan, OneSided()))
    assert {(verdict.state, verdict.reason) for verdict in findings.verdicts} == {
        (CANNOT_TELL, "nothing was measured")
    }


# ---- several kinds in one run


def test_models_that_were_asked_in_different_ways_are_not_pooled(files):
    plans = [
        plan_of(files, "own label", "c1"),
        plan_of(files, "own label", "c2"),
        plan_of(files, "drawn answers", "d"),
        plan_for(PROBE, model=fake_model("f"), **files),
    ]
    records = None
    for plan in plans:
        fake = FakeSentiment if plan.model.name == "f" else FakeOfAnyKind
        records = ask_sentiment(PROBE, plan, fake(push={"plain4": 2.5}), records)
    findings = PROBE.findings(plans, records)
    shared = rows_of(findings, "shared_words")
    assert {(row.labels["asked"], row.labels["models"]) for row in shared} == {("own label", 2)}
    assert not [row for row in rows_of(findings, "overlap") if "all models" in str(row.labels["model"])]
    assert {row.labels["asked"] for row in rows_of(findings, "leans")} == {"own label", "drawn answers", "fill"}
