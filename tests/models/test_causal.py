"""Causal models: every number equals a plain forward pass."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from clinometer.errors import RequestError
from clinometer.models.load import load_model
from clinometer.models.local import causal
from clinometer.models.local.fast import decoder, static
from clinometer.models.protocols import METHODS, CanContinue, CanSample, CanScore
from clinometer.types import Embed, LogLikelihood, NextWord, Sample
from tests.models.causal_models import TEXTS, WORDS, same
from tests.models.installed import need
from tests.models.tiny import CAUSAL, WINDOW
from tests.models.watching import WatchedProducts


def token_of(tokenizer, word):
    begun = tokenizer("the nurse", add_special_tokens=False)["input_ids"]
    ids = tokenizer(f"the nurse {word}", add_special_tokens=False)["input_ids"][len(begun) :]
    return ids[0] if len(ids) == 1 else None


def test_offers_what_it_says(model):
    assert all(isinstance(model, can) for can in (CanContinue, CanSample, CanScore))
    assert all(callable(getattr(model, name)) for name in model.info.capabilities)
    assert set(model.info.capabilities) < set(METHODS.values())
    assert model.info.kind == "causal"


# -- the next word


def test_given_words_equal_a_plain_forward_pass(model, plain, tokenizer):
    known = [token_of(tokenizer, word) for word in WORDS]
    assert known[-1] is None
    assert sum(token is not None for token in known) >= 4
    answers = model.next_word([NextWord(text=text, words=WORDS) for text in TEXTS])
    for text, answer in zip(TEXTS, answers, strict=True):
        expected = plain(text)[-1]
        wanted = [math.nan if token is None else float(expected[token]) for token in known]
        assert answer.words == WORDS
        assert answer.logprobs == pytest.approx(wanted, abs=1e-5, nan_ok=True)


def test_softmax_over_given_words(model, plain, tokenizer):
    known = [token_of(tokenizer, word) for word in WORDS]
    some = [token for token in known if token is not None]
    answers = model.next_word([NextWord(text=text, words=WORDS, normalise="words") for text in TEXTS])
    for text, answer in zip(TEXTS, answers, strict=True):
        over_words = dict(zip(some, plain(text)[-1][some].log_softmax(dim=0).tolist(), strict=True))
        assert answer.logprobs == pytest.approx(
            [over_words.get(t, math.nan) for t in known], abs=1e-5, nan_ok=True
        )


def test_top_k_equals_a_plain_forward_pass(model, plain, tokenizer):
    for text, answer in zip(TEXTS, model.next_word([NextWord(text=text, top_k=5) for text in TEXTS]), strict=True):
        expected = plain(text)[-1]
        expected[tokenizer.all_special_ids] = -math.inf
        assert answer.logprobs == pytest.approx(expected.topk(5).values.tolist(), abs=1e-5)


def test_batch_and_order_do_not_matter(model):
    queries = [NextWord(text=text, words=WORDS) for text in TEXTS] + [
        NextWord(text=text, top_k=3) for text in TEXTS
    ]
    one_by_one = [model.next_word([query])[0] for query in queries]
    same(model.next_word(queries), one_by_one)
    same(model.next_word(queries[::-1])[::-1], one_by_one)


def test_context_is_joined_by_a_space(model):
    whole = NextWord(text="The man works as a doctor. The woman works as a", words=WORDS)
    for join in ("space", "separator"):
        parted = NextWord(
            context="The man works as a doctor.", text="The woman works as a", join=join, words=WORDS
        )
        same(model.next_word([parted]), model.next_word([whole]))
    spaced = NextWord(text=f"{whole.text}  ", words=WORDS)
    same(model.next_word([spaced]), model.next_word([whole]))
    only_context = NextWord(text="", context=whole.text, words=WORDS)
    same(model.next_word([only_context]), model.next_word([whole]))


def test_nothing_is_projected_that_is_not_read(model):
    size = model._decoder.size
    with WatchedProducts() as watched:
        model.next_word([NextWord(text=text, top_k=2) for text in TEXTS])
    # no other matrix has so many rows as that of the vocabulary
    assert [shape for shape in watched.shapes if shape[1] in (size, 3)] == [(len(TEXTS), size)]
    with WatchedProducts() as watched:
        model.next_word([NextWord(text=text, words=("was", "the", "nurse"), normalise="words") for text in TEXTS])
    assert [shape for shape in watched.shapes if shape[1] in (size, 3)] == [(len(TEXTS), 3)]


@pytest.mark.parametrize("family", ["gemma2"])
def test_a_head_that_is_not_understood_is_left_in_place(model, folder_of, family, monkeypatch):
    monkeypatch.setattr(decoder, "_FINISHES", {})
    other = load_model(str(folder_of(family)), device="cpu")
    assert other._decoder._finish is None
    queries = [NextWord(text=text, words=WORDS) for text in TEXTS]
    same(other.next_word(queries), model.next_word(queries))
    request = Sample(prefix=TEXTS[0], n=3, max_new_tokens=5)
    assert other.sample([request]) == model.sample([request])


@pytest.mark.parametrize("family", ["gpt2"])
def test_what_cannot_be_asked(model):
    with pytest.raises(RequestError, match="no token to start with"):
        model.cost([NextWord(text=" ", words=WORDS)])
    with pytest.raises(RequestError, match="either words or top_k"):
        model.cost([NextWord(text="The")])
    with pytest.raises(RequestError, match="window of 64"):
        model.next_word([NextWord(text="nurse " * 65, words=WORDS)])
    with pytest.raises(RequestError, match="not Embed"):
        model.cost([Embed(text="The")])
    with pytest.raises(RequestError, match="no token to start with"):
        model.cost([Sample(prefix="", n=1)])
    with pytest.raises(RequestError, match="n = 0"):
        model.cost([Sample(prefix="The", n=0)])
    with pytest.raises(RequestError, match="top_k = -1"):
        model.cost([Sample(prefix="The", n=1, top_k=-1)])
    with pytest.raises(RequestError, match="top_p = 0"):
        model.cost([Sample(prefix="The", n=1, top_p=0.0)])
    with pytest.raises(RequestError, match="temperature -1"):
        model.sample([Sample(prefix="The", n=1, temperature=-1.0)])
    with pytest.raises(RequestError, match=r"1 tokens of 'The' and 64 new ones exceed the model's window of 64"):
        model.sample([Sample(prefix="The", n=1, max_new_tokens=64)])


@pytest.mark.parametrize("family", ["llama"])
def test_a_token_to_start_with_makes_an_empty_text_possible(model, network):
    with torch.no_grad():
        expected = network(torch.tensor([[1]])).logits[0, 0].log_softmax(dim=0)  # <s>
    expected[[0, 1, 2]] = -math.inf
    best = model.next_word([NextWord(text="", top_k=1)])[0]
    assert best.logprobs[0] == pytest.approx(float(expected.max()), abs=1e-5)


def test_cost(model, tokenizer):
    length = len(tokenizer(TEXTS[0])["input_ids"])
    requests = [
        NextWord(text=TEXTS[0], top_k=1),
        LogLikelihood(text=TEXTS[0]),
        Sample(prefix=TEXTS[0], n=7, max_new_tokens=5),
    ]
    # of samples a quarter, rounded up
    assert model.cost(requests) == [length, length, math.ceil((length + 5) * 7 / 4)]


# -- how probable a text is


def test_prefixes_of_any_length_may_run_at_once(model, monkeypatch):
    requests = [Sample(prefix=text, n=3, max_new_tokens=5, seed=4) for text in TEXTS]
    expected = model.sample(requests)
    passes = []
    run = decoder.Decoder.run

    def counted(self, ids, **options):
        if ids.shape[1] > 1:
            passes.append(ids.shape)
        return run(self, ids, **options)

    monkeypatch.setattr(decoder.Decoder, "run", counted)
    assert model.sample(requests) == expected
    assert len(passes) > 1
    monkeypatch.setitem(static._PADS_PREFIXES, "cpu", True)
    passes.clear()
    assert model.sample(requests) == expected
    if model._sampler._static is not None:
        assert len(passes) == 1


def reference(plain, tokenizer, text):
    ids = tokenizer(text)["input_ids"]
    return sum(float(row[token]) for row, token in zip(plain(text)[:-1], ids[1:], strict=True)), len(ids) - 1


def test_log_likelihood_equals_a_plain_forward_pass(model, plain, tokenizer, monkeypatch):
    batch = [LogLikelihood(text=text) for text in TEXTS]
    answers = model.log_likelihood(batch)
    for text, answer in zip(TEXTS, answers, strict=True):
        logprob, tokens = reference(plain, tokenizer, text)
        assert answer.tokens == tokens
        assert answer.logprob == pytest.approx(logprob, abs=1e-4)
    # whether projected in one piece or a few positions at a time, run together or apart
    monkeypatch.setattr(causal, "_MAX_LOGITS", 3 * model._decoder.size)
    monkeypatch.setattr(causal, "_MAX_TOKENS", 20)
    for answer, other in zip(model.log_likelihood(batch[::-1])[::-1], answers, strict=True):
        assert answer.tokens == other.tokens
        assert answer.logprob == pytest.approx(other.logprob, abs=1e-4)


@pytest.mark.parametrize("family", CAUSAL)
def test_the_first_token_counts_only_after_a_start_token(model, tokenizer):
    words = tokenizer("the", add_special_tokens=False)["input_ids"]
    one, none = model.log_likelihood([LogLikelihood(text="the"), LogLikelihood(text="")])
    assert one.tokens == len(tokenizer("the")["input_ids"]) - 1
    assert one.tokens == (len(words) if tokenizer.bos_token == "<s>" else len(words) - 1)
    assert (none.logprob, none.tokens) == (0.0, 0)


@pytest.mark.parametrize("family", CAUSAL)
def test_a_text_longer_than_the_window(model, network, tokenizer):
    text = " ".join(TEXTS * 3)
    ids = tokenizer(text)["input_ids"]
    assert len(ids) > 2 * WINDOW
    expected, read = 0.0, 1
    # the first window scores all it has, each later one the half that is new
    while read < len(ids):
        end = WINDOW if read == 1 else min(read + WINDOW // 2, len(ids))
        window = ids[end - WINDOW : end]
        with torch.no_grad():
            logprobs = network(torch.tensor([window])).logits[0].log_softmax(dim=1)
        for at in range(read - (end - WINDOW), WINDOW):
            expected += float(logprobs[at - 1, window[at]])
        read = end
    answer = model.log_likelihood([LogLikelihood(text=text), LogLikelihood(text="The")])[0]
    assert answer.tokens == len(ids) - 1
    assert answer.logprob == pytest.approx(expected, abs=1e-3)


# -- a real model


@pytest.fixture(scope="module")
def smollm2():
    need("builtin:causal")
    return load_model("builtin:causal", device="cpu")


def test_smollm2_knows_a_capital(smollm2):
    top, given = smollm2.next_word(
        [
            NextWord(text="The capital of France is", top_k=5),
            NextWord(text="The capital of France is", words=("Paris", "London", "banana")),
        ]
    )
    assert top.words[0] == "Paris"
    paris, london, banana = given.logprobs
    assert paris > london > banana
    assert paris == pytest.approx(top.logprobs[0], abs=1e-5)


def test_smollm2_prefers_sentences(smollm2):
    sense, nonsense = smollm2.log_likelihood(
        [LogLikelihood(text="The cat sat on the mat."), LogLikelihood(text="Mat the on sat cat the.")]
    )
    assert sense.logprob / sense.tokens > nonsense.logprob / nonsense.tokens + 1


def test_smollm2_samples_again_whatever_the_batch(smollm2):
    prefixes = ("My friend is a", "The nurse said that the", "Paris")
    requests = [Sample(prefix=prefix, n=22, max_new_tokens=4, seed=2) for prefix in prefixes]  # 66 at a time …
    whole = smollm2.sample(requests)
    assert np.mean([text.startswith(" ") for text in whole[0].texts]) > 0.5
    eights = [replace(request, n=8, first=first) for first, request in enumerate(requests[::-1])]
    for request, answer in zip(eights, map(smollm2.sample, ([one] for one in eights)), strict=True):  # … 8 …
        at = prefixes.index(request.prefix)
        assert answer[0].texts == whole[at].texts[request.first : request.first + 8]
    for at, request in enumerate(requests):  # … and 1
        assert smollm2.sample([replace(request, n=1, first=21)])[0].texts == whole[at].texts[21:]
