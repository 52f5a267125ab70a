"""Prompt-based fine-tuning: the reviews it uses, its loss, and that it learns."""

from __future__ import annotations

import math
import tomllib

import pytest
import torch
from transformers import AutoTokenizer

from clinometer.data.reviews import Review, choose_reviews
from clinometer.errors import DataError, InputError, ModelError
from clinometer.models.load import load_model
from clinometer.models.local.text import TextEncoder
from clinometer.train import PromptSettings, tune_prompt
from clinometer.train.base import load_base
from clinometer.train.prompt_tuning import Prompts, _Task, choose_shots
from clinometer.train.quality import Accuracy
from clinometer.types import Fill
from tests.train.samples import reviews

SETTINGS = PromptSettings(shots=4, steps=24, score_every=8, learning_rate=3e-3, length=64, test_reviews=15)


@pytest.fixture(scope="module")
def shots():
    return choose_shots(reviews(), shots=4, test=15, seed=42)


def test_no_review_is_used_twice(shots):
    parts = (shots.training, shots.development, shots.test)
    assert [len(part) for part in parts] == [8, 8, 30]
    assert len({review.text for part in parts for review in part}) == 46
    for part in parts:
        assert sum(review.label == "positive" for review in part) == len(part) // 2


def test_seeds_train_on_other_reviews_and_are_tested_on_the_same(shots):
    other = choose_shots(reviews(), shots=4, test=15, seed=13)
    assert other.test == shots.test
    assert set(other.training) != set(shots.training)


def test_reviews_that_an_audit_asks_about_are_not_trained_on(shots):
    audited = choose_reviews(reviews(), per_class=15, seed=0)
    assert not set(audited) & {*shots.training, *shots.development}
    assert set(audited) == set(shots.test)


def test_too_few_reviews():
    with pytest.raises(DataError, match=r"found 8 negative, 8 positive reviews .* 4 shots need 9 of each"):
        choose_shots(reviews(8), shots=4, test=1, seed=0)
    assert len(choose_shots(reviews(9), shots=4, test=100, seed=0).test) == 2


@pytest.fixture
def task(tiny_folder, shots):
    return _Task(load_base(str(tiny_folder("bert")), device="cpu", dtype="float32"), shots, SETTINGS)


def test_every_review_comes_once_a_turn_with_examples_of_both_classes(task, shots):
    tokenizer = task._base.tokenizer
    seen = []
    for place in range(16):
        input_, negative, positive = tokenizer.decode(task.row_at(place)["encoded"].ids).split("[SEP]")[:3]
        assert negative.endswith("it was terrible. ")
        assert "weather" in negative
        assert positive.endswith("it was great. ")
        assert "music" in positive
        body = input_.removeprefix("[CLS]").removesuffix("it was [MASK]. ")
        assert body not in negative + positive  # an input is not its own example
        seen.append(body)
    assert len(set(seen[:8])) == len(set(seen[8:])) == 8
    assert seen[:8] != seen[8:]
    assert task.row_at(3)["encoded"].ids.tolist() == task.row_at(3)["encoded"].ids.tolist()


def test_the_loss_is_the_cross_entropy_over_two_words_at_the_mask(task):
    rows = [task.row_at(place) for place in range(4)]
    losses = []
    for row in rows:  # independently: one row at a time, without padding, all positions and all words
        with torch.no_grad():
            logits = task._base.model(input_ids=torch.tensor(row["encoded"].ids[None].astype(int))).logits
        at_mask = logits[0, row["encoded"].blank]
        negative, positive = (
            float(at_mask[task._base.tokenizer.convert_tokens_to_ids(word)]) for word in ("terrible", "great")
        )
        right, wrong = (positive, negative) if row["label"] == 1 else (negative, positive)
        losses.append(-math.log(math.exp(right) / (math.exp(right) + math.exp(wrong))))
    found = task.loss(task._base.model, task.collate(rows))
    assert float(found.detach()) == pytest.approx(sum(losses) / 4, abs=1e-4)


def test_accuracy_is_what_the_adapter_says(task, shots, tiny_folder):
    model = load_model(str(tiny_folder("bert")), device="cpu")
    right = 0
    for review in shots.test:
        query = Fill(context=review.text, text="It was [MASK].", words=("great", "terrible"), normalise="words")
        great, terrible = model.fill([query])[0].logprobs
        right += (great > terrible) == (review.label == "positive")
    found = task.accuracy(task._base.model, shots.test, False)
    assert (found.right, found.n) == (right, 30)


def test_the_interval_by_hand():
    # Wilson, 3 of 4: p = 0.75, z² = 3.8415; middle (0.75 + 0.48018)/1.96036 = 0.62753,
    # half = 1.95996·√(0.1875/4 + 3.8415/64)/1.96036 = 0.99979·0.32698 = 0.32691
    found = Accuracy(right=3, n=4).figures()
    assert found == {
        "accuracy": 0.75, "low": pytest.approx(0.3006, abs=1e-4), "high": pytest.approx(0.9544, abs=1e-4), "n": 4
    }  # fmt: skip


@pytest.mark.parametrize("demonstrations", [True, False])
def test_it_learns_and_says_so(demonstrations, tiny_folder, tmp_path):
    settings = PromptSettings(
        shots=6,
        steps=30,
        score_every=10,
        learning_rate=3e-3,
        length=64,
        test_reviews=15,
        demonstrations=demonstrations,
    )
    tuned = tune_prompt(
        str(tiny_folder("modernbert")),
        reviews(),
        out=tmp_path / "tuned",
        data="made-up",
        settings=settings,
        device="cpu",
    )
    before, after = tuned.figures["before"], tuned.figures["after"]
    kind = "with_demonstrations" if demonstrations else "plain"
    assert set(before) == set(after) == ({"plain", kind})
    assert after[kind]["accuracy"] > 0.9
    assert before[kind]["accuracy"] < 0.7
    assert after[kind]["low"] < after[kind]["accuracy"] <= after[kind]["high"] + 1e-9
    assert tuned.figures["kept_step"] in (10, 20, 30)
    scores = tuned.figures["development_accuracy"]
    assert tuned.figures["kept_step"] == 10 * (1 + scores.index(max(scores)))  # the first of the best
    info = load_model(str(tuned.folder), device="cpu").info
    assert {name: value for name, value in info.tuning.items() if name != "base"} == {
        "method": "prompt", "data": "made-up", "amount": "6", "seed": "42"
    }  # fmt: skip
    assert (
        tomllib.loads((tuned.folder / "card.toml").read_text())["settings"]["template"]
        == "{review} It was [MASK]."
    )


def test_what_is_wrong_leaves_nothing_behind(tiny_folder, tmp_path):
    tune = lambda family, **options: tune_prompt(  # noqa: E731
        str(tiny_folder(family)), reviews(), out=tmp_path / "a", settings=PromptSettings(**options), device="cpu"
    )
    with pytest.raises(ModelError, match="is a causal model"):
        tune("gpt2", shots=4)
    with pytest.raises(ModelError, match="is not one token"):
        tune("bert", shots=4, positive="marvellous")
    with pytest.raises(DataError, match="16 shots need 33 of each"):
        tune("bert")
    assert list(tmp_path.iterdir()) == []


GOOD = Review(text="the music was fine", label="positive", source="a")
BAD = Review(text="the book was bad", label="negative", source="a")
LONG = Review(text="the story was good and " * 30 + "the end", label="positive", source="a")


@pytest.fixture
def tokenizer(tiny_folder):
    return AutoTokenizer.from_pretrained(tiny_folder("bert"))


def prompts(tokenizer, **settings):
    return Prompts(tokenizer, window=64, settings=PromptSettings(**settings))


def test_a_plain_row_is_what_the_audit_asks(tokenizer):
    for review in (GOOD, LONG):
        row = prompts(tokenizer).plain(review)
        asked = TextEncoder(tokenizer, window=64).fill([Fill(context=review.text, text="It was [MASK].")])[0]
        assert row.ids.tolist() == asked.ids.tolist()
        assert row.blank == asked.blank
        assert row.ids[row.blank] == tokenizer.mask_token_id


def test_demonstrations_stand_behind_separators_with_their_label_words(tokenizer):
    row = prompts(tokenizer).demonstrated(GOOD, [BAD, LONG])
    first, second, third, rest = tokenizer.decode(row.ids).split("[SEP]")
    assert first == "[CLS] the music was fine it was [MASK]. "
    assert second == " the book was bad it was terrible. "
    assert third.endswith("the end it was great. ")
    assert rest == ""
    assert row.ids[row.blank] == tokenizer.mask_token_id
    assert (row.ids == tokenizer.mask_token_id).sum() == 1


@pytest.mark.parametrize("length", [48, 64, 256])  # the window of the model is 64
def test_only_reviews_are_cut(tokenizer, length):
    row = prompts(tokenizer, length=length).demonstrated(LONG, [LONG, LONG])
    assert len(row.ids) <= min(length, 64)
    assert len(row.ids) > min(length, 64) - 4  # and no more than needed
    parts = tokenizer.decode(row.ids).split("[SEP]")
    for part, word in zip(parts[:3], ("[MASK]", "great", "great"), strict=True):
        assert part.strip().endswith(f"the end it was {word}.")


@pytest.mark.parametrize("family", ["roberta", "albert", "xlm-roberta", "bart"])
def test_other_families_have_one_mask_and_their_own_separators(family, tiny_folder):
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder(family))
    row = prompts(tokenizer).demonstrated(GOOD, [BAD, GOOD])
    assert (row.ids == tokenizer.mask_token_id).sum() == 1
    assert row.ids[row.blank] == tokenizer.mask_token_id
    assert (row.ids == tokenizer.sep_token_id).sum() == 3


def test_a_mask_written_in_a_review_stays_text(tokenizer):
    review = Review(text="a [MASK] film [SEP]", label="positive", source="a")
    row = prompts(tokenizer).demonstrated(review, [review, review])
    assert (row.ids == tokenizer.mask_token_id).sum() == 1
    assert (row.ids == tokenizer.sep_token_id).sum() == 3


def test_label_words_must_be_tokens(tokenizer):
    words = prompts(tokenizer, positive="good", negative="bad").words
    assert tokenizer.convert_ids_to_tokens(list(words)) == ["bad", "good"]  # negative first
    with pytest.raises(ModelError, match="negative label word 'dreadful' is not one token of this model"):
        prompts(tokenizer, negative="dreadful")


@pytest.mark.parametrize(
    "template", ["It was [MASK].", "{review} It was.", "{review} [MASK] [MASK]", "[MASK] {review}"]
)
def test_templates_that_make_no_sense(template):
    with pytest.raises(InputError, match=r"template .* is not valid; expected {review} at its beginning"):
        PromptSettings(template=template)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"shots": 1}, "shots = 1 is not valid; expected 2 or more"),
        ({"shots": 0, "demonstrations": False}, "shots = 0 is not valid; expected 1 or more"),
        ({"positive": "bad", "negative": "bad"}, "labels = bad/bad is not valid"),
        ({"positive": ""}, "labels = /terrible is not valid"),
        ({"steps": 0}, "steps = 0 is not valid"),
        ({"length": 8}, "length = 8 is not valid"),
    ],
)
def test_settings_that_make_no_sense(options, complaint):
    with pytest.raises(InputError, match=complaint):
        PromptSettings(**options)
