"""What a training reads: which words are compared, what is drawn at random, and what is masked."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from clinometer.data import SensitiveSentence, counterfactual, load_attribute, read_attribute, sensitive_sentences
from clinometer.errors import DataError
from clinometer.train import MitigationSettings
from clinometer.train import pairs as pairs_module
from clinometer.train.base import load_base
from clinometer.train.loop import IGNORED
from clinometer.train.pairs import Pairs, collate
from clinometer.train.randomness import batched_order
from clinometer.train.units import sentence_units

FAMILIES = ["gpt2", "llama", "bert", "roberta", "xlm-roberta"]
MASKED = ["bert", "roberta", "xlm-roberta"]
TEXTS = [
    "The nurse works at the hospital, and nothing was said.",
    "A doctor said that the nurses were kind.",
    'Nobody knows the "carpenter" of the story.',
    "The man is a teacher's friend and a great dancer too.",
    "Nurses and doctors, engineers and bakers: all of them work.",
    "The book of an engineer-writer was terrible, and so was the engineer.",
]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Tokenise as few rows ahead as a test needs."""
    monkeypatch.setattr(pairs_module, "_BLOCK", 64)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Six jobs of different lengths, two of which begin with a vowel."""
    file = tmp_path_factory.mktemp("attribute") / "job.toml"
    file.write_text(
        'name = "job"\nplurals = true\ntemplates = ["My job is {a_value}"]\n'
        'values = ["nurse", "doctor", "carpenter", "teacher", "engineer", "accountant"]\n'
    )
    return read_attribute(file)


@pytest.fixture(scope="module")
def base_of(tiny_folder):
    return lambda family: load_base(
        str(tiny_folder(family)), device="cpu", dtype="float32", kinds=("causal", "masked")
    )


def pairs_of(base, job, texts=TEXTS, *, batch=2, window=64, seed=0, share=0.15):
    sentences = sensitive_sentences(texts, job).sentences
    assert len(sentences) == len(texts)
    return pairs_from(base, sentences, job, batch=batch, window=window, seed=seed, masked_share=share)


def pairs_from(base, sentences, attribute, **settings):
    return Pairs(base, sentence_units(sentences), attribute, MitigationSettings(**settings))


def sentence_at(pairs, place, job):
    return next(iter(sensitive_sentences([pairs.unit_at(place).text], job, shortest=1).sentences))


def one(places):
    """The only sensitive token of a sentence that is compared."""
    (at,) = places
    return at


def other_value(pairs, place, value):
    return pairs.other_values(place, [value])[value]


def written(base, ids):
    """Tokens as text, without those that frame a text and without spaces: families space differently."""
    text = base.tokenizer.decode([token for token in ids if token not in base.tokenizer.all_special_ids])
    return text.replace(" ", "").lower()


def squeezed(text):
    return text.replace(" ", "").lower()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_token_of_the_sensitive_word_is_compared(family, base_of, job):
    base = base_of(family)
    pairs = pairs_of(base, job, share=1e-9)  # one token a sentence is masked, and none that matters here
    for place in range(3 * len(TEXTS)):
        pair, sentence = pairs.row_at(place)["pair"], sentence_at(pairs, place, job)
        other = other_value(pairs, place, sentence.value)
        whole = counterfactual(sentence.text, job, sentence.value, other)
        mention = next(iter(sensitive_sentences([whole], job, shortest=1).sentences))
        if base.kind == "masked":
            pair = unmasked(pair)
            assert written(base, pair.other) == squeezed(whole)
        else:  # the prefix, and nothing behind it
            assert written(base, pair.other) == squeezed(whole[: mention.end])
            assert pair.other_at == (len(pair.other) - 1,)
        assert written(base, pair.ids) == squeezed(sentence.text)
        for ids, at, text, end in (
            (pair.ids, one(pair.at), sentence.text, sentence.end),
            (pair.other, one(pair.other_at), whole, mention.end),
        ):
            # up to that token the text reaches to the end of the word, and up to the one before it does not
            assert written(base, ids[: at + 1]) == squeezed(text[:end])
            assert len(written(base, ids[:at])) < len(squeezed(text[:end]))
        assert mention.value == other != sentence.value


def unmasked(pair):
    """Put back what was masked in a sentence and at the same places of its counterfactual."""
    ids, other = list(pair.ids), list(pair.other)
    for index, label in enumerate(pair.labels):
        if label == IGNORED:
            continue
        changed, ids[index] = ids[index], label
        shift = len(other) - len(ids) if index > one(pair.at) else 0
        for near in sorted(range(len(other)), key=lambda at, to=index + shift: abs(at - to)):
            if other[near] == changed:
                other[near] = label
                break
    return replace(pair, ids=ids, other=other)


def test_the_texts_are_those_of_the_data_room(base_of, job):
    for family in ("gpt2", "bert"):
        base = base_of(family)
        pairs = pairs_of(base, job)
        for place in range(20):
            sentence = sentence_at(pairs, place, job)
            read = sentence.text if base.kind == "masked" else sentence.text[: sentence.end]
            other = other_value(pairs, place, sentence.value)
            assert pairs.texts_at(place) == (sentence.text, counterfactual(read, job, sentence.value, other))


def test_the_article_follows_the_other_value(base_of, job):
    pairs = pairs_of(base_of("gpt2"), job, ["Here a nurse is at work."])
    found = {pairs.texts_at(place)[1] for place in range(100)}
    assert found == {
        "Here a doctor", "Here a carpenter", "Here a teacher", "Here an engineer", "Here an accountant"
    }  # fmt: skip


def test_other_values_are_drawn_uniformly(base_of):
    occupation = load_attribute("occupation")
    base = base_of("gpt2")
    sentence = SensitiveSentence("The nurse works.", "nurse", 4, 9)
    pairs, same, third = (
        pairs_from(base, [sentence], occupation, batch=1, window=32, seed=seed) for seed in (3, 3, 4)
    )
    drawn = [other_value(pairs, place, "nurse") for place in range(28 * 100)]
    assert "nurse" not in drawn
    names, counts = np.unique(drawn, return_counts=True)
    assert len(names) == 28  # of 29
    assert scipy.stats.chisquare(counts).pvalue > 0.001
    # neighbours are independent: a value follows itself as often as any other, 1/28 of the time
    repeats = sum(one == next_ for one, next_ in itertools.pairwise(drawn))
    assert scipy.stats.binomtest(repeats, len(drawn) - 1, 1 / 28).pvalue > 0.001
    assert [other_value(same, place, "nurse") for place in range(200)] == drawn[:200]
    assert [other_value(third, place, "nurse") for place in range(200)] != drawn[:200]


def test_other_values_come_from_a_different_subgroup(base_of):
    """§4 of the paper: the perturbed prefix has a token of another subgroup, a female name for a male one."""
    name = load_attribute("name")
    sentence = SensitiveSentence("There Jake works.", "Jake", 6, 10)
    pairs = pairs_from(base_of("gpt2"), [sentence], name, batch=1, window=32, seed=0)
    for value in ("Jake", "Emma"):
        others = [each.text for each in name.values if each.subgroup != name.value(value).subgroup]
        drawn = [other_value(pairs, place, value) for place in range(17 * 60)]
        names, counts = np.unique(drawn, return_counts=True)
        assert sorted(names) == sorted(others)
        assert scipy.stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_every_row_depends_on_the_seed_and_the_place_alone(family, base_of, job):
    base = base_of(family)
    first, second, other = (pairs_of(base, job, seed=seed) for seed in (1, 1, 2))
    places = list(range(30))
    rows = [first.row_at(place)["pair"] for place in places]
    for place in reversed(places):
        assert second.row_at(place)["pair"] == rows[place]
    assert second.row_at(5000)["pair"] == first.row_at(5000)["pair"]  # of another block
    assert [other.row_at(place)["pair"] for place in places] != rows


def test_every_sentence_is_read_once_an_epoch(base_of, job):
    texts = [f"The nurse works at the hospital number {number}." for number in range(23)]
    pairs = pairs_of(base_of("gpt2"), job, texts, batch=4)
    assert len(pairs) == 23
    epochs = [[pairs.unit_at(23 * epoch + index).text for index in range(23)] for epoch in range(3)]
    assert all(sorted(epoch) == sorted(texts) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_batches_are_of_like_length_and_in_no_order():
    rng = np.random.default_rng(0)
    lengths = rng.integers(10, 1000, 803)
    order = batched_order(lengths, batch=8, rng=np.random.default_rng(1))
    assert sorted(order) == list(range(803))
    batches = lengths[order][:800].reshape(-1, 8)
    assert np.ptp(batches, axis=1).mean() < 0.1 * np.ptp(lengths)
    # the order of the batches says nothing about their lengths, nor about the order of the corpus
    for what in (batches.mean(axis=1), order[:800].reshape(-1, 8).mean(axis=1)):
        assert scipy.stats.spearmanr(np.arange(100), what).pvalue > 0.001
    with_few = batched_order(lengths[:3], batch=8, rng=np.random.default_rng(1))
    assert sorted(with_few) == [0, 1, 2]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_causal_model_is_asked_for_every_token_of_the_sentence(family, base_of, job):
    base = base_of(family)
    pairs = pairs_of(base, job)
    begins = {"gpt2": [], "llama": [base.tokenizer.bos_token_id]}[family]
    for place in range(len(TEXTS)):
        pair = pairs.row_at(place)["pair"]
        tokens = base.tokenizer(pairs.unit_at(place).text, add_special_tokens=False)["input_ids"]
        assert pair.ids == [*begins, *tokens]
        assert pair.labels == [IGNORED, *pair.ids[1:]]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("before", [0, 30])
def test_a_sentence_longer_than_the_window_keeps_its_sensitive_word(family, before, base_of, job):
    base = base_of(family)
    text = f"{'very ' * before}carpenter is here, {'and so on ' * 20}."
    pairs = pairs_of(base, job, [text], window=16, share=0.5)
    for place in range(40):
        pair = pairs.row_at(place)["pair"]
        assert len(pair.ids) == len(pair.labels) <= 16
        assert len(pair.other) <= 16
        for ids, at, value in (
            (pair.ids, one(pair.at), "carpenter"),
            (pair.other, one(pair.other_at), other_value(pairs, place, "carpenter")),
        ):
            # also with half of all tokens masked, never these
            assert written(base, ids[: at + 1]).endswith(value)
        if base.kind == "causal":
            assert [label for label in pair.labels if label != IGNORED] == pair.ids[1:]


@pytest.mark.parametrize("family", MASKED)
def test_the_sensitive_tokens_are_never_masked_and_both_texts_alike(family, base_of, job):
    base = base_of(family)
    pairs, bare = (pairs_of(base, job, share=share) for share in (0.4, 1e-9))
    mask, special = base.tokenizer.mask_token_id, set(base.tokenizer.all_special_ids)
    asked = free = how_masked = how_kept = 0
    for place in range(300):
        pair, sentence = pairs.row_at(place)["pair"], sentence_at(pairs, place, job)
        assert len(pair.ids) == len(pair.labels)
        whole = unmasked(bare.row_at(place)["pair"])
        places = [index for index, label in enumerate(pair.labels) if label != IGNORED]
        assert places  # a mean over nothing would be NaN
        own = {
            index
            for index in range(one(pair.at) + 1)
            if len(written(base, whole.ids[: index + 1])) > len(squeezed(sentence.text[: sentence.start]))
        }
        assert one(pair.at) in own
        assert not own & set(places)
        for index, (token, label) in enumerate(zip(pair.ids, pair.labels, strict=True)):
            if label == IGNORED:
                assert token == whole.ids[index]
            else:
                assert label == whole.ids[index]
                assert label not in special
        # the counterfactual's own words are never masked, and all else as in the sentence
        for index, (was, now) in enumerate(zip(whole.other, pair.other, strict=True)):
            if was != now:
                assert index not in pair.other_at
                assert now in [pair.ids[at] for at in places]
        in_value = sum(pair.ids[index] == mask for index in places)
        if sentence.text.lower().count(sentence.value) == 1:  # every other word is in both
            assert sum(token == mask for token in pair.other) >= in_value - _articles(sentence)
        asked += len(places)
        free += sum(token not in special for token in whole.ids) - len(own)
        how_masked += in_value
        how_kept += sum(pair.ids[index] == pair.labels[index] for index in places)
    assert asked / free == pytest.approx(0.4, abs=0.04)
    assert how_masked / asked == pytest.approx(0.8, abs=0.04)
    assert how_kept / asked == pytest.approx(0.1, abs=0.03)


def _articles(sentence):
    """The tokens in front of the value that a substitution may change: an article."""
    return 1 if sentence.text[: sentence.start].rstrip().split(" ")[-1:] in (["a"], ["A"], ["an"]) else 0


@pytest.mark.parametrize("hidden", [1.0, 0.5])
def test_how_many_of_the_asked_tokens_are_hidden(hidden, base_of, job):
    base = base_of("bert")
    sentences = sensitive_sentences(TEXTS, job).sentences
    pairs = pairs_from(base, sentences, job, batch=2, window=64, masked_share=0.4, hidden=hidden)
    asked = [
        (token, label)
        for place in range(200)
        for token, label in zip(
            *(getattr(pairs.row_at(place)["pair"], name) for name in ("ids", "labels")), strict=True
        )
        if label != IGNORED
    ]
    mask = base.tokenizer.mask_token_id
    assert np.mean([token == mask for token, _ in asked]) == pytest.approx(hidden, abs=0.04 if hidden < 1 else 0)
    assert np.mean([token == label for token, label in asked]) == pytest.approx((1 - hidden) / 2, abs=0.03)


def test_words_behind_a_second_mention_are_masked_in_both(base_of, job):
    """The two texts have different lengths there: the same word, not the same place."""
    base = base_of("bert")
    pairs = pairs_of(base, job, ["The nurse and the nurse said that the weather was bad."], share=0.5)
    mask = base.tokenizer.mask_token_id
    lengths = set()
    for place in range(100):
        pair = pairs.row_at(place)["pair"]
        lengths.add(len(pair.other) - len(pair.ids))
        tails = [list(reversed(ids))[:8] for ids in (pair.ids, pair.other)]
        assert [token == mask for token in tails[0]] == [token == mask for token in tails[1]]
    assert len(lengths) > 1


def test_written_out_control_tokens_are_left_out(base_of, job):
    texts = ["The nurse wrote <|endoftext|> and left.", "The doctor wrote nothing at all."]
    pairs = pairs_of(base_of("gpt2"), job, texts)
    assert len(pairs) == 1
    assert pairs.unit_at(0).values == ("doctor",)
    with pytest.raises(DataError, match="no sentence mentions a value of the attribute; give a corpus that does"):
        pairs_of(base_of("gpt2"), job, texts[:1])


def test_collate_pads_at_the_end(base_of, job):
    base = base_of("bert")
    pairs = pairs_of(base, job)
    rows = [pairs.row_at(place) for place in range(3)]
    batch = collate(rows, pad_id=base.pad_id)
    texts = [*(row["pair"].ids for row in rows), *(row["pair"].other for row in rows)]
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (6, max(map(len, texts)))
    assert batch["labels"].shape == (3, batch["input_ids"].shape[1])
    for index, text in enumerate(texts):
        assert batch["input_ids"][index].tolist()[: len(text)] == text
        assert set(batch["input_ids"][index].tolist()[len(text) :]) <= {base.pad_id}
        assert int(batch["attention_mask"][index].sum()) == len(text)
    for index, row in enumerate(rows):
        labels = row["pair"].labels
        assert batch["labels"][index].tolist() == labels + [IGNORED] * (batch["labels"].shape[1] - len(labels))
    assert batch["at"].tolist() == [
        [one(row["pair"].at) for row in rows],
        [one(row["pair"].other_at) for row in rows],
    ]
    assert batch["rows"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert batch["shares"].tolist() == batch["weights"].tolist() == [1, 1, 1]
