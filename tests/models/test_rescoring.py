"""Blanks filled by a causal model: every number equals the plain score of the whole sentence."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from clinometer.engine.batching import plan_batches
from clinometer.errors import RequestError
from clinometer.models.load import load_model
from clinometer.models.local import continuations
from clinometer.models.protocols import CanRescore
from clinometer.types import Fill, ModelSpec, NextWord, Rescore
from tests.models.causal_models import same

# the blank at the start, in the middle, before a full stop and at the end; of several lengths
TEXTS = (
    "The [MASK] works as a nurse.",
    "Nothing was said about the [MASK], but it rained and rained.",
    "[MASK] said that she is a teacher",
    "Why are people so [MASK]?",
    'He said "[MASK]" and the woman is my',
    "It was [MASK]",
    "The un[MASK] man is a carpenter.",
)
# of one token and of many
WORDS = ("great", "nurse", "doctor", "woman", "the", "incomprehensibilities", "mother-in-law")


@pytest.fixture
def score(network, tokenizer):
    """Return a function: text -> its log-probability, by nothing but transformers."""

    @torch.no_grad()
    def logprob(text: str) -> float:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        if tokenizer("a")["input_ids"] == tokenizer("a", add_special_tokens=False)["input_ids"]:
            ids = torch.cat([torch.tensor([[tokenizer.bos_token_id]]), ids], dim=1) if starts(text) else ids
        logprobs = network(ids).logits[0].double().log_softmax(dim=1)
        return float(logprobs[:-1].gather(1, ids[0, 1:, None]).sum())

    def starts(text: str) -> bool:  # nothing comes before the word
        return not text.startswith(("The ", "Nothing", "Why", "He", "It"))

    return logprob


def normalised(scores):
    total = torch.tensor(scores, dtype=torch.float64).logsumexp(dim=0)
    return [score - float(total) for score in scores]


def test_given_words_equal_the_score_of_the_sentence(model, score):
    assert isinstance(model, CanRescore)
    assert "rescore" in model.info.capabilities
    answers = model.rescore([Rescore(text=text, words=WORDS) for text in TEXTS])
    for text, answer in zip(TEXTS, answers, strict=True):
        wanted = normalised([score(text.replace("[MASK]", word)) for word in WORDS])
        assert answer.words == WORDS
        assert answer.logprobs == pytest.approx(wanted, abs=1e-5, rel=1e-6), text


def test_covered_is_what_the_words_take_of_what_may_come_next(model, network, tokenizer):
    def after(text, word):
        whole, left = (tokenizer(each, return_tensors="pt")["input_ids"] for each in (f"{text} {word}", text))
        with torch.no_grad():
            logprobs = network(whole).logits[0].double().log_softmax(dim=1)
        places = range(left.shape[1], whole.shape[1])
        return math.exp(sum(float(logprobs[place - 1, whole[0, place]]) for place in places))

    (answer,) = model.rescore([Rescore(text="The [MASK] works as a nurse.", words=WORDS)])
    assert answer.covered == pytest.approx(sum(after("The", word) for word in WORDS), rel=1e-4)
    # the words do not sum to 1 before they are normalised, and do so afterwards
    assert answer.covered < 0.9
    assert sum(map(math.exp, answer.logprobs)) == pytest.approx(1)


def test_batch_padding_and_order_do_not_matter(model):
    queries = [Rescore(text=text, words=WORDS) for text in TEXTS]
    queries += [Rescore(text=text, words=WORDS, candidates=3) for text in TEXTS]
    queries += [Rescore(text=text, top_k=4) for text in TEXTS]
    one_by_one = [model.rescore([query])[0] for query in queries]
    same(model.rescore(queries), one_by_one)
    same(model.rescore(queries[::-1])[::-1], one_by_one)
    for query, answer in zip(queries[:6], one_by_one, strict=False):
        (turned,) = model.rescore([replace(query, words=query.words[::-1])])
        assert turned.logprobs[::-1] == pytest.approx(answer.logprobs, abs=1e-5)
        assert turned.covered == pytest.approx(answer.covered, rel=1e-4)


def test_candidates_are_the_listed_words_most_probable_after_the_left_part(model):
    words = (*WORDS, "man", "teacher", "engineering", "wonderfully")
    (every,) = model.rescore([Rescore(text="The [MASK].", words=words)])
    alone = {word: model.rescore([Rescore(text="The [MASK].", words=(word,))])[0].covered for word in words}
    likeliest = sorted(words, key=lambda word: -alone[word])
    for count in (1, 3, 5):
        (some,) = model.rescore([Rescore(text="The [MASK].", words=words, candidates=count)])
        scored = [word for word, logprob in zip(words, some.logprobs, strict=True) if not math.isnan(logprob)]
        assert some.words == words
        assert set(scored) == set(likeliest[:count])
        assert some.covered == pytest.approx(sum(alone[word] for word in scored), rel=1e-4)
        # among themselves, they compare as in the whole list
        known = dict(zip(words, every.logprobs, strict=True))
        wanted = normalised([known[word] for word in scored])
        assert [dict(zip(words, some.logprobs, strict=True))[word] for word in scored] == pytest.approx(
            wanted, abs=1e-5
        )


def test_a_word_of_several_tokens_may_be_among_the_candidates(model):
    words = ("incomprehensibilities", "mother-in-law", "engineering", "wonderfully", "the")
    alone = {word: model.rescore([Rescore(text="The [MASK].", words=(word,))])[0].covered for word in words}
    (some,) = model.rescore([Rescore(text="The [MASK].", words=words, candidates=3)])
    scored = {word for word, logprob in zip(words, some.logprobs, strict=True) if not math.isnan(logprob)}
    assert scored == set(sorted(words, key=lambda word: -alone[word])[:3])


def test_top_words_are_the_models_own_and_the_listed(model, network, tokenizer):
    (own,) = model.rescore([Rescore(text="The [MASK] works.", top_k=5)])
    (joined,) = model.rescore([Rescore(text="The [MASK] works.", words=("incomprehensibilities",), top_k=5)])
    assert len(own.words) == 5
    assert list(own.logprobs) == sorted(own.logprobs, reverse=True)
    assert joined.covered > own.covered - 1e-6
    with torch.no_grad():
        after = network(**tokenizer("The", return_tensors="pt")).logits[0, -1].softmax(dim=0)
    best = {tokenizer.decode(int(token)).strip() for token in after.topk(60).indices}
    assert set(own.words) <= best
    (scored,) = model.rescore([Rescore(text="The [MASK] works.", words=own.words)])
    assert scored.logprobs == pytest.approx(own.logprobs, abs=1e-5)


def test_context_comes_before_the_text(model):
    whole = Rescore(text="The man works as a doctor. The [MASK] works as a nurse.", words=WORDS)
    for join in ("space", "separator"):
        parted = Rescore(
            context="The man works as a doctor. ", text="The [MASK] works as a nurse.", join=join, words=WORDS
        )
        same(model.rescore([parted]), model.rescore([whole]))
    blank_first = Rescore(context="The man works as a doctor. The", text="[MASK] works as a nurse.", words=WORDS)
    same(model.rescore([blank_first]), model.rescore([whole]))


@pytest.mark.parametrize("family", ["gpt2", "gemma2"])
def test_without_a_cache_the_numbers_are_the_same(model, folder_of, family):
    other = load_model(str(folder_of(family)), device="cpu")
    assert model._rescorer._continuations.shares
    other._rescorer._continuations.__dict__["shares"] = False
    queries = [Rescore(text=text, words=WORDS) for text in TEXTS]
    same(other.rescore(queries), model.rescore(queries))


@pytest.mark.parametrize("family", ["mamba"])
def test_a_model_without_a_cache_that_serves_runs_whole_texts(model):
    assert not model._rescorer._continuations.shares


@pytest.mark.parametrize("family", ["gpt2"])
def test_what_runs_is_the_left_part_once_and_the_rest_for_each_word(model, monkeypatch):
    ran = []
    run = type(model._decoder).run
    monkeypatch.setattr(
        type(model._decoder),
        "run",
        lambda self, ids, **options: ran.append(tuple(ids.shape)) or run(self, ids, **options),
    )
    model.rescore([Rescore(text="It was [MASK]", words=("great",))])  # the trial of the cache is over
    ran.clear()
    long = "Nothing was said about the weather, but it rained and rained while we were walking. The [MASK] works."
    model.rescore([Rescore(text=long, words=("nurse", "doctor", "woman"))])
    (one, left), (rows, tail) = ran
    assert (one, rows) == (1, 3)
    assert tail < 4 < left
    # nothing more is projected than what is read, however the words are cut into pieces
    monkeypatch.setattr(continuations, "_TOKENS", {"cpu": 1})
    monkeypatch.setattr(continuations, "_MAX_LOGITS", 1)
    ran.clear()
    model.rescore([Rescore(text=long, words=("nurse", "doctor", "woman"))])
    assert [rows for rows, _ in ran] == [1, 1, 1, 1]


@pytest.mark.parametrize("family", ["gpt2"])
def test_requests_with_one_left_part_look_for_candidates_once(model, monkeypatch):
    looked = []
    measure = type(model._rescorer)._measure

    def count(self, group, words, begun):
        looked.extend(row for row, some in words.items() if some)
        measure(self, group, words, begun)

    monkeypatch.setattr(type(model._rescorer), "_measure", count)
    words = ("incomprehensibilities", "mother-in-law", "engineering", "wonderfully")  # none is one token
    queries = [Rescore(text=f"The [MASK] {end}", words=words, candidates=2) for end in ("works.", "is kind.")]
    queries.append(Rescore(text="It [MASK] works.", words=words, candidates=2))
    together = model.rescore(queries)
    assert set(looked) == {0, 2}
    same(together, [model.rescore([query])[0] for query in queries])
    assert together[0].covered == pytest.approx(together[1].covered, rel=1e-4)
    assert together[0].covered != pytest.approx(together[2].covered, rel=1e-2)


@pytest.mark.parametrize("family", ["gpt2"])
def test_the_cost_is_the_left_part_and_candidates_times_the_rest(model, tokenizer):
    words = ("nurse", "doctor", "woman", "man")
    text = "The [MASK] works as a nurse."
    tail = max(len(tokenizer(f" {word}")["input_ids"]) for word in words) + len(
        tokenizer(" works as a nurse.")["input_ids"]
    )
    left = len(tokenizer("The")["input_ids"])
    assert model.cost([Rescore(text=text, words=words)]) == [left + 4 * tail]
    assert model.cost([Rescore(text=text, words=words, candidates=2)]) == [left + 2 * tail]
    # so a batch holds as many requests as their words allow
    costs = model.cost([Rescore(text=text, words=words)] * 6)
    assert [len(batch) for batch in plan_batches(costs, budget=2 * costs[0])] == [2, 2, 2]


@pytest.mark.parametrize("family", ["gpt2"])
def test_words_that_cannot_be_scored_are_not_a_number(model):
    (answer,) = model.rescore([Rescore(text="The [MASK].", words=("nurse", " ", "nurse"))])
    assert math.isnan(answer.logprobs[1])
    assert answer.logprobs[0] == answer.logprobs[2] == pytest.approx(0, abs=1e-9)  # counted once
    # two spellings of the same tokens are one word: a special token that is written out is broken by a space
    (twice,) = model.rescore([Rescore(text="The [MASK].", words=("<|endoftext|>", "< |endoftext|>"))])
    assert twice.logprobs == pytest.approx((0, 0), abs=1e-9)


@pytest.mark.parametrize("family", ["gpt2"])
def test_what_begins_with_a_listed_word_is_covered_by_it(model):
    (after,) = model.next_word([NextWord(text="It the", words=("nurse", "doctor", "woman", "was"))])
    logprob, word = max(zip(after.logprobs, after.words, strict=True))
    assert logprob > math.log(1e-3)  # else the next line could not fail
    (nested,) = model.rescore([Rescore(text="It [MASK].", words=("the", f"the {word}"))])
    (short,) = model.rescore([Rescore(text="It [MASK].", words=("the",))])
    assert nested.covered == pytest.approx(short.covered, rel=1e-5)


@pytest.mark.parametrize("family", ["gpt2"])
@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Rescore(text="The nurse.", words=("a",)), r"exactly one \[MASK\].*found none"),
        (Rescore(text="[MASK] and [MASK].", words=("a",)), "exactly one"),
        (Rescore(text="[MASK] and [HIDDEN].", words=("a",)), "no other blank"),
        (Rescore(text="The [MASK]."), "give words, top_k"),
        (Rescore(text="The [MASK].", words=("a",), candidates=-1), "candidates = -1"),
        (Rescore(text="The [MASK]" + " nurse" * 80, words=("a",)), "longer than the model's window of 64"),
        (Fill(text="The [MASK].", words=("a",)), "Rescore"),
    ],
)
def test_what_cannot_be_asked(model, request_, message):
    with pytest.raises(RequestError, match=message):
        model.cost([request_])


@pytest.mark.parametrize("family", ["gpt2"])
def test_a_context_that_is_too_long_is_cut_at_its_start(model):
    query = Rescore(context="nurse " * 80, text="The [MASK] works.", words=WORDS)
    (cut,) = model.rescore([query])
    (more,) = model.rescore([replace(query, context="doctor " * 10 + query.context)])
    assert cut.logprobs == pytest.approx(more.logprobs, abs=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2"])
def test_a_gpu_gives_the_same_numbers(folder_of, family):
    folder = str(folder_of(family))
    here = load_model(folder, device="cpu")
    there = load_model(ModelSpec(name=folder, dtype="float32"), device="cuda")
    queries = [Rescore(text=text, words=WORDS) for text in TEXTS] + [Rescore(text=TEXTS[0], top_k=3)]
    for one, other in zip(here.rescore(queries), there.rescore(queries), strict=True):
        assert one.words == other.words
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)
