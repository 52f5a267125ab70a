"""Classifiers, which score the templates themselves, and chat models, which are asked to go on."""

import math

import numpy as np
import pytest
from fake_generator import roles, rows_of, uniform, write_attribute

import clinometer
from clinometer.errors import DataError
from clinometer.metrics import score_fairness, wasserstein1
from clinometer.models.fake import FakeModel
from clinometer.probes.counterfactual import PROBE
from clinometer.probes.counterfactual.questions import NEGATIVE, POSITIVE, continued
from clinometer.probes.protocol import Plan
from clinometer.types import Ask, ClassifyAnswer, TextAnswer

REFUSAL = "I'm sorry, but I can't help with that."


def audited(tmp_path, model, *, values=("red", "blue", "green", "grey"), templates=10, subgroups=None, **options):
    tmp_path.mkdir(exist_ok=True)
    attribute = write_attribute(tmp_path / "colour.toml", templates=templates, values=values, subgroups=subgroups)
    given = {"attributes": [], "attribute_file": attribute, "samples": 20, "draws": 199, **options}
    run = clinometer.audit(
        model,
        probes="counterfactual",
        options={"counterfactual": given},
        roles=roles(),
        folder=tmp_path / "run",
    )
    (found,) = run.findings
    return found


# ---------------------------------------------------------------------------------------------------------
# Classifiers


def classifier(lean=None, *, senses=True, seed=0):
    """A fake that adds what is planted for a value to the score of its sentence, which is noise otherwise."""

    def answer(request):
        words = request.text.rstrip(".").split()
        score = 0.3 + 0.2 * uniform(seed, request.text)
        score += next((shift for value, shift in (lean or {}).items() if value in words), 0.0)
        if senses and words[-1] in POSITIVE + NEGATIVE:
            score = 0.9 if words[-1] in POSITIVE else 0.1
        return ClassifyAnswer(negative=1 - score, neutral=math.nan, positive=score)

    return FakeModel(
        answer=answer, name="judge", kind="classifier", capabilities=("classify",), version=f"{lean}{senses}{seed}"
    )


def test_a_classifier_is_judged_by_its_own_scores(tmp_path):
    found = audited(tmp_path, classifier({"red": 0.2, "grey": -0.2}))
    (verdict,) = found.verdicts
    assert (verdict.state, verdict.aspect) == ("lean", "colour, by its own score")
    assert verdict.sentence == (
        "judge scores a sentence more or less positively when only the colour in it changes."
    )
    for value, shift in (("red", 0.2), ("grey", -0.2), ("blue", 0.0)):
        (row,) = rows_of(found, "values", value=value, template="all templates")
        assert row.low < shift < row.high
        assert (row.q < 0.05) == bool(shift)
    assert any("judge, colour: more positive than the whole by every scorer (q < 0.05): red" in line
               for line in found.headlines)  # fmt: skip
    assert any("is a classifier: it scored the templates themselves" in notice.text for notice in found.notices)
    # Equation 3 of a template, by hand
    (row,) = rows_of(found, "templates", template="The {value} house is")
    scores = [classifier({"red": 0.2, "grey": -0.2}).classify([_Text(f"The {value} house is")])[0].positive
              for value in ("red", "blue", "green", "grey")]  # fmt: skip
    pairs = [abs(one - other) for at, one in enumerate(scores) for other in scores[at + 1 :]]
    assert row.estimate == pytest.approx(np.mean(pairs))
    assert {figure.evidence for figure in found.figures} == {"templates"}


def _Text(text):
    from clinometer.types import Classify

    return Classify(text=text)


def test_an_even_handed_classifier_stays_quiet(tmp_path):
    groups = {"warm": ["red", "orange"], "cold": ["blue", "green"]}
    (verdict,) = audited(tmp_path, classifier(seed=4), subgroups=groups).verdicts
    assert verdict.state == "none found"
    assert verdict.detectable > 0


def test_a_subgroup_is_found_by_a_classifier(tmp_path):
    groups = {"warm": ["red", "orange"], "cold": ["blue", "green"]}
    found = audited(tmp_path, classifier({"red": 0.15, "orange": 0.15}), subgroups=groups)
    (row,) = rows_of(found, "subgroup_difference", template="all templates")
    assert (row.labels["subgroup"], row.labels["other"]) == ("cold", "warm")
    assert row.low < -0.15 < row.high
    assert found.verdicts[0].state == "lean"


def test_a_classifier_that_was_asked_too_few_templates_cannot_be_judged_and_the_option_is_named(tmp_path):
    for templates, said in ((1, "1 template is"), (2, "2 templates are")):
        (verdict,) = audited(tmp_path / str(templates), classifier({"red": 0.3}), templates=templates).verdicts
        assert verdict.state == "cannot tell"
        assert verdict.reason == f"{said} too few for an interval of single scores (counterfactual.max_templates)"


def test_a_classifier_that_does_not_tell_good_from_bad_is_not_judged(tmp_path):
    found = audited(tmp_path, classifier({"red": 0.3}, senses=False))
    (verdict,) = found.verdicts
    assert verdict.state == "cannot tell"
    assert "of a positive and a negative word in order; 90 % are needed" in verdict.sentence
    assert all(math.isnan(row.estimate) for row in rows_of(found, "fairness", quantity="excess"))


@pytest.mark.parametrize(("wrong", "state"), [(1, "none found"), (2, "cannot tell")])
def test_nine_in_ten_pairs_of_clear_words_must_be_in_order(tmp_path, wrong, state):
    def answer(request):
        word = request.text.rstrip(".").split()[-1]
        score = 0.4 + 0.2 * uniform(request.text)
        if word in POSITIVE + NEGATIVE:
            score = 0.9 if word in POSITIVE[wrong:] else 0.1 if word in NEGATIVE else 0.0
        return ClassifyAnswer(negative=1 - score, neutral=math.nan, positive=score)

    capabilities = ("classify",)
    model = FakeModel(
        answer=answer, name="judge", kind="classifier", capabilities=capabilities, version=str(wrong)
    )
    (verdict,) = audited(tmp_path, model, templates=3).verdicts
    assert verdict.state == state


def test_scores_over_templates_by_hand_and_by_the_level():
    # two values, three templates: centred to ±.1, ±.2, ±.3
    scores = np.array([[0.6, 0.4], [0.5, 0.1], [0.9, 0.3]])
    found = score_fairness(scores, rng=np.random.default_rng(0), draws=99)
    assert found.individual.estimate == pytest.approx(0.4)
    assert found.pairs.estimate[0, 1] == pytest.approx(wasserstein1([0.1, 0.2, 0.3], [-0.1, -0.2, -0.3]))
    every = wasserstein1([0.1, 0.2, 0.3], [0.1, 0.2, 0.3, -0.1, -0.2, -0.3])
    assert found.subgroups.estimate == pytest.approx([every, every])
    assert found.group.estimate == pytest.approx(every)
    assert np.isnan(score_fairness(scores[:2], rng=np.random.default_rng(0), draws=9).individual_interval.low)
    with pytest.raises(ValueError, match="templates × values"):
        score_fairness([[0.1, np.nan]], rng=np.random.default_rng(0))
    # templates of very different means and spreads, no value matters: of 200, 10 ± 3 are up to .05
    rng = np.random.default_rng(1)
    spread = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.02, 0.01, 0.3])[:, None]
    even = [rng.uniform(0, 1, (8, 1)) + spread * rng.standard_normal((8, 4)) for _ in range(200)]
    p = [score_fairness(each, rng=rng, draws=99) for each in even]
    assert sum(float(each.individual.p) <= 0.05 for each in p) <= 18
    assert sum(float(each.group.p) <= 0.05 for each in p) <= 18


# ---------------------------------------------------------------------------------------------------------
# Chat models


def chat(moods=None, *, refuses=(), plain=None):
    """A fake that is happy with the probability of the value it is asked about, and refuses for some of them."""

    def answer(request):
        (message,) = request.messages
        asked = "Continue this text" in message.content
        words = message.content.replace(",", " ").split()
        mood = next((mood for value, mood in ((moods if asked else plain) or {}).items() if value in words), 0.5)
        refused = next((share for value, share in dict(refuses).items() if value in words), 0.0)
        texts = []
        for at in range(request.n):
            draw = uniform(request.seed, message.content, at)
            happy = "good happy" if draw < mood else "bad sad"
            refusing = uniform("no", request.seed, message.content, at) < refused
            texts.append(REFUSAL if refusing else f"{happy} {at}")
        return TextAnswer(texts=tuple(texts))

    return FakeModel(
        answer=answer, name="talker", kind="chat", capabilities=("ask",), version=f"{moods}{refuses}{plain}"
    )


def test_a_chat_model_is_asked_to_go_on_and_given_the_plain_text(tmp_path):
    found = audited(tmp_path, chat({"red": 0.95, "blue": 0.05}), templates=3)
    states = {(each.model, each.aspect): each.state for each in found.verdicts}
    assert states["talker", "colour, by words"] == "lean"
    assert states["talker (plain prompt)", "colour, by words"] == "none found"
    assert states["talker", "colour, for whom it refuses to answer"] == "none found"
    assert any(line.startswith("talker writes more or less positively") for line in found.headlines)
    assert {row.labels["model"] for row in rows_of(found, "fairness")} == {"talker", "talker (plain prompt)"}
    other = audited(tmp_path / "other", chat(plain={"red": 0.95, "blue": 0.05}), templates=3)
    states = {(each.model, each.aspect): each.state for each in other.verdicts}
    assert states["talker", "colour, by words"] == "none found"
    assert states["talker (plain prompt)", "colour, by words"] == "lean"


def test_for_whom_a_chat_model_refuses(tmp_path):
    found = audited(tmp_path, chat(refuses=(("red", 0.8),)), templates=5)
    verdicts = {each.aspect: each for each in found.verdicts if each.model == "talker"}
    refusing = verdicts["colour, for whom it refuses to answer"]
    assert refusing.state == "lean"
    assert refusing.rows[0].labels["group"] == "red"
    assert refusing.low < 0.8 < refusing.high
    assert any("of the answers about red and 0 % about the others" in line for line in found.headlines)
    # a refusal has no score, and is not read as a negative text
    assert verdicts["colour, by words"].state == "none found"
    assert any("wrote nothing in" in notice.text for notice in found.notices)


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("bake bread.", " bake bread."),
        ("… bake bread.", " bake bread."),
        ('"My friend is a baker, and we bake."', " bake."),
        ("<think>Hm.</think>bake", " bake"),
        (REFUSAL, ""),
        ("I’m sorry, but I can’t assist with that.", ""),
        ("  ", ""),
        ("My friend is a baker, and we", ""),
    ],
)
def test_what_a_chat_model_adds(text, added):
    assert continued(text, "My friend is a baker, and we") == added


def test_the_instruction_is_the_users_where_there_is_one(tmp_path):
    seen = []

    def answer(request):
        seen.append(request)
        return TextAnswer(texts=("good 1",) * request.n)

    file = tmp_path / "mine.toml"
    file.write_text('system = "Be brief."\ncontinue = "Go on: {text}"\n')
    model = FakeModel(answer=answer, name="talker", kind="chat", capabilities=("ask",), version="seen")
    audited(tmp_path, model, templates=1, values=("red", "blue"), samples=120, continuation_file=str(file))
    assert {type(request) for request in seen} == {Ask}
    asked = {(*(message.content for message in request.messages),) for request in seen}
    assert asked == {
        ("Be brief.", "Go on: The red house is"), ("Be brief.", "Go on: The blue house is"),
        ("The red house is",), ("The blue house is",),
    }  # fmt: skip
    assert {(request.n, request.seed) for request in seen} == {(100, 0), (20, 100)}
    file.write_text('continue = "Go on"\n')
    with pytest.raises(DataError, match=r"one \{text\}"):
        audited(tmp_path / "wrong", model, templates=1, continuation_file=str(file))


def test_a_chat_model_may_be_asked_for_fewer_continuations():
    info = FakeModel(answer=None, name="m", kind="chat", capabilities=("ask",)).info
    writes = FakeModel(answer=None, name="m", kind="causal", capabilities=("sample",)).info

    def texts(model, **options):
        plan = Plan(
            options=PROBE.options(samples=8, max_values=2, max_templates=1, **options), seed=0, model=model
        )
        return {item.request.n for item in PROBE.questions(PROBE.stages(plan)[0], plan, None)}

    assert texts(info, chat_samples=4) == {4}
    assert texts(info, chat_samples=1) == {2}  # the fewest that can differ
    assert texts(info, chat_samples=20) == texts(info) == texts(writes, chat_samples=4) == {8}
