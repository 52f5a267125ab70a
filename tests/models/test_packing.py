"""Texts in one row, parted by a mask: what each gives alone, whatever is beside it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clinometer.models.local import continuations
from clinometer.models.local.continuations import Continuations
from clinometer.models.local.fast.decoder import Decoder
from clinometer.models.local.packing import Pack, fitting

TEXTS = [(5, 6, 7, 8, 9), (5, 6, 7, 4), (5, 6), (11, 12, 13)]
TAILS = [(3, 4), (3, 5, 6), (3,), (8, 9)]


def ids(text):
    return np.asarray(text, np.int32)


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def decoder(request, tiny_folder):
    from transformers import AutoModelForCausalLM

    return Decoder(AutoModelForCausalLM.from_pretrained(tiny_folder(request.param)).eval())


def alone(decoder, text):
    whole = torch.tensor([text])
    return decoder.run(whole).last(whole)[0].detach().numpy()


def test_each_text_gives_what_it_gives_alone(decoder):
    pack = Pack(decoder, list(map(ids, TEXTS)), budget=100)
    for text, logits in zip(TEXTS, pack.logits(), strict=True):
        assert logits.numpy() == pytest.approx(alone(decoder, text), abs=1e-5)
    owners = [0, 0, 1, 3]
    for _ in range(2):  # a run leaves no trace in the next
        states, places = pack.run(owners, TAILS)
        where = places.split([len(tail) for tail in TAILS])
        for owner, tail, some in zip(owners, TAILS, where, strict=True):
            for at, (row, column) in enumerate(some, start=1):
                logits = states.logits(torch.tensor([row]), torch.tensor([column]))[0].detach().numpy()
                assert logits == pytest.approx(alone(decoder, (*TEXTS[owner], *tail[:at])), abs=1e-5)


def test_what_is_shared_runs_once(decoder, monkeypatch):
    sizes = []
    run = Decoder.run
    monkeypatch.setattr(
        Decoder, "run", lambda self, ids, **more: sizes.append(ids.numel()) or run(self, ids, **more)
    )
    pack = Pack(decoder, list(map(ids, TEXTS)), budget=100)
    pack.run([0, 0, 1], TAILS[:3])
    # 5 6 7 8 9, 4 after 7, nothing for "5 6", 11 12 13; then 3 4, 5 6 after the same 3, and 3 of another text
    assert sizes == [5 + 1 + 0 + 3, 2 + 2 + 1]


def test_packs_hold_no_more_than_there_is_room_for():
    texts = list(map(ids, TEXTS))
    assert [fitting(texts, room=room) for room in (1, 5, 6, 8, 9)] == [1, 1, 3, 3, 4]


@pytest.mark.parametrize("room", [1, 6, 100])
def test_together_gives_all_texts_whatever_the_room(decoder, monkeypatch, room):
    monkeypatch.setitem(continuations._PACK, "cpu", room)
    found = {}
    for some, begun in Continuations(decoder).together(list(map(ids, TEXTS))):
        for index, logprobs in zip(some, begun.logprobs, strict=True):
            found[index] = logprobs
        scores = begun.score([0] * len(TAILS), TAILS)
        for tail, score in zip(TAILS, scores, strict=True):
            text = TEXTS[some[0]]
            for at in range(len(tail)):
                plain = torch.tensor(alone(decoder, (*text, *tail[:at]))).log_softmax(dim=0)
                assert score[at] == pytest.approx(float(plain[tail[at]]), abs=1e-5)
    assert sorted(found) == [0, 1, 2, 3]
    for index, text in enumerate(TEXTS):
        plain = torch.tensor(alone(decoder, text)).log_softmax(dim=0)
        assert found[index].numpy() == pytest.approx(plain.numpy(), abs=1e-5)


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("ended", [True, False])
def test_totals_are_sums_of_scores(decoder, monkeypatch, packs, ended):
    fit = Continuations(decoder)
    monkeypatch.setattr(fit, "packs", packs)
    ends = torch.arange(fit.size) < 50 if ended else None
    tails = [*TAILS, (3, 4)]
    for some, begun in fit.together([ids(TEXTS[0]), ids(TEXTS[0][::-1])]):
        owners = [at % len(some) for at in range(len(tails))]
        scores = begun.score(owners, tails, ends=ends)
        assert [len(score) for score in scores] == [len(tail) + ended for tail in tails]
        assert begun.totals(owners, tails, ends=ends) == pytest.approx([score.sum() for score in scores])
        for owner, tail, score in zip(owners, tails, scores, strict=True):
            text = TEXTS[0][:: 1 if some[owner] == 0 else -1]
            for at in range(len(tail)):
                plain = torch.tensor(alone(decoder, (*text, *tail[:at]))).log_softmax(dim=0)
                assert score[at] == pytest.approx(float(plain[tail[at]]), abs=1e-5)
            if ended:
                plain = torch.tensor(alone(decoder, (*text, *tail))).softmax(dim=0)
                assert score[-1] == pytest.approx(float(plain[:50].sum().log()), abs=1e-5)
        assert begun.score([], []) == []
        assert begun.totals([], []).tolist() == []


def test_a_model_that_ignores_the_mask_runs_in_rows(decoder, monkeypatch):
    assert Continuations(decoder).packs
    run = Decoder.run

    def deaf(self, ids, *, attention=None, positions=None, **more):
        return run(self, ids, **more)

    monkeypatch.setattr(Decoder, "run", deaf)
    assert not Continuations(decoder).packs
    groups = [some for some, _ in Continuations(decoder).together(list(map(ids, TEXTS)))]
    assert sorted(index for some in groups for index in some) == [0, 1, 2, 3]
    assert [0] in groups  # the only text of its length


def test_texts_longer_than_a_models_window_of_attention_are_not_packed(decoder, monkeypatch):
    monkeypatch.setattr(decoder.config, "sliding_window", 1026, raising=False)
    fit = Continuations(decoder)
    assert [fit._may_pack(ids(text)) for text in TEXTS] == [False, False, True, False]
