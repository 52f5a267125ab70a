"""Finding out what an endpoint offers: one that refuses, one that takes and ignores, one that is not there."""

from __future__ import annotations

import asyncio
import math

import pytest

from clinometer.engine.budget import Budget, Limits
from clinometer.errors import EndpointError, ModelError, SpecError
from clinometer.models.endpoint.asking import calls_of
from clinometer.models.endpoint.faults import Broken, Busy, Refused
from clinometer.models.endpoint.model import capabilities_of
from clinometer.models.endpoint.offer import _PROMPT_TOKENS, discover
from clinometer.models.endpoint.transport import Arrived
from clinometer.types import NextWord


class Scripted:
    """A transport that answers as an endpoint with these habits would."""

    def __init__(
        self, *, top=20, many=4, chat=True, plain=True, refuses=(), ignores=(), echo=False, faults=(), halves=0,
        vocabulary=0,
    ):  # fmt: skip
        self.top, self.many, self.chat, self.plain, self.echo = top, many, chat, plain, echo
        self.refuses, self.ignores, self.halves, self.vocabulary = refuses, ignores, halves, vocabulary
        self.faults = list(faults)
        self.bodies = []

    async def post(self, path, body):
        self.bodies.append((path, body))
        if self.faults:
            raise self.faults.pop()
        if not (self.chat if "chat" in path else self.plain):
            raise Refused("404 not found", status=404)
        for name in self.refuses:
            if name in body:
                raise Refused(f"400 Unsupported parameter: {name}", parameter=name)
        asked = body.get("top_logprobs", 0) or int(body.get("logprobs", 0))
        if asked > self.top and "logprobs" not in self.ignores and not self.vocabulary:
            raise Refused("400 too many logprobs", parameter="logprobs")
        if body.get("n", 1) > self.many:
            raise Refused("400 bad request")  # as some do: it does not say what is wrong
        given = 1 if "n" in self.ignores else body.get("n", 1)
        choices = [self._choice(path, body, number, asked) for number in range(given)]
        return Arrived(body={"id": f"id-{len(self.bodies)}", "model": "m-1", "choices": choices}, headers={})

    def _choice(self, path, body, number, asked):
        if "draws" in self.ignores:
            return {"index": number, "finish_reason": "stop", "message": {"content": "same"}, "text": "same"}
        drift = len(self.bodies) if "seed" in self.ignores or "seed" not in body else body["seed"]
        text = f"text {number} {drift}"
        told = [{"token": f"t{place}", "logprob": -1.0 - place} for place in range(min(asked, self.top))]
        if self.vocabulary:
            even = -math.log(self.vocabulary)
            told = [
                {"token": f"t{place}", "logprob": even} for place in range(min(asked, self.vocabulary, self.top))
            ]
        logprobs = {"content": [{"top_logprobs": told}]} if told and "logprobs" not in self.ignores else None
        if self.halves and asked:  # llama.cpp tells nothing of a token that is a part of a character
            self.halves -= 1
            text, logprobs = "\ufffd", None
        if self.echo and body.get("echo"):
            text = body["prompt"] + text
            logprobs = {"token_logprobs": [None, -1.0, -2.0], "text_offset": [0, 4, 8]}
        shape = {"message": {"content": text}} if "chat" in path else {"text": text}
        return {"index": number, "finish_reason": "length", "logprobs": logprobs, **shape}

    async def get(self, path):
        raise Refused("404", status=404)

    async def close(self):
        pass


def found(**habits):
    transport = Scripted(**habits)
    return asyncio.run(discover(transport, "m", where="http://x", patience=0.001)), transport


def test_everything_is_found_with_a_handful_of_requests():
    offer, transport = found(top=1000, many=16, echo=True)
    assert (offer.chat.top, offer.chat.many, offer.chat.seed) == (1000, 16, "honoured")
    assert dict(offer.plain.samplers) == {"top_k": 0, "min_p": 0.0}
    assert capabilities_of(offer) == ("ask", "answer_word", "next_word", "sample", "log_likelihood", "rescore")
    assert offer.requests == len(transport.bodies) + 1 <= 10  # one for the list of models
    assert offer.told["model"] == "m-1"
    assert offer.chat.whole == offer.plain.whole == 0  # it refused to tell more than 1,000


@pytest.mark.parametrize("top", [100, 20, 5])
def test_fewer_log_probabilities_are_asked_for_until_it_agrees(top):
    assert found(top=top)[0].chat.top == top


def test_a_token_that_is_half_a_character_is_drawn_again():
    offer, _ = found(halves=3)
    assert (offer.chat.top, offer.plain.top) == (20, 20)
    assert found(halves=1000)[0].chat.top == 0  # it never told any


def test_a_whole_vocabulary_is_asked_for_where_a_list_of_words_is():
    offer, transport = found(top=200_000, vocabulary=3_000)
    assert (offer.chat.top, offer.chat.whole, offer.plain.whole) == (1000, 3_000, 3_000)
    assert max(body.get("top_logprobs", 0) for _, body in transport.bodies) == 200_000
    words = tuple(f"word{number}" for number in range(500))
    few, many = (
        calls_of(NextWord(text="It was", words=words[:n]), (), offer=offer, model="m")[0].body["logprobs"]
        for n in (499, 500)
    )
    assert (few, many) == (1000, 3_000)
    # one that tells two thirds of its tokens, whatever is asked for, does not tell its vocabulary
    assert found(top=2_000, vocabulary=3_000)[0].chat.whole == 0


def test_whether_the_same_seed_gave_the_same_text_does_not_make_another_model():
    honoured, taken = found()[0], found(ignores=("seed",))[0]
    assert (honoured.chat.seed, taken.chat.seed) == ("honoured", "taken")
    assert honoured.settings == taken.settings  # else a server that batches otherwise could not be resumed
    assert honoured.told != taken.told
    assert found(refuses=("seed",))[0].settings != taken.settings


@pytest.mark.parametrize("many", [8, 4, 2, 1])
def test_fewer_answers_are_asked_for_until_it_agrees(many):
    offer, _ = found(many=many)
    assert (offer.chat.many, offer.chat.seed, offer.chat.top) == (many, "honoured", 20)


def test_what_is_taken_and_ignored_is_not_offered():
    offer, _ = found(ignores=("n", "logprobs", "seed"))
    assert (offer.chat.top, offer.chat.many, offer.chat.seed) == (0, 1, "taken")


def test_an_endpoint_that_gives_the_same_text_each_time_cannot_be_sampled():
    offer, _ = found(many=1, ignores=("draws", "logprobs"))
    assert (offer.chat.draws, offer.plain.draws) == (False, False)
    assert capabilities_of(offer) == ("ask",)
    offer, _ = found(many=1)
    assert (offer.chat.draws, offer.plain.draws) == (True, True)


def test_openai_and_its_reasoning_models():
    offer, _ = found(refuses=("top_k", "min_p"), plain=False)
    assert dict(offer.chat.samplers) == {}
    assert offer.chat.top == 20
    assert capabilities_of(offer) == ("ask", "answer_word")
    offer, _ = found(refuses=("top_k", "max_tokens", "temperature", "logprobs", "seed"))
    assert (offer.chat.limit, offer.chat.temperature, offer.chat.top) == ("max_completion_tokens", False, 0)
    assert offer.chat.seed == "refused"


def test_an_endpoint_without_chat_is_a_causal_one():
    offer, _ = found(chat=False)
    assert offer.chat is None
    assert capabilities_of(offer) == ("next_word", "sample")


def test_a_moment_of_trouble_is_waited_out():
    offer, transport = found(faults=[Busy("429"), Broken("500"), Busy("429", wait=0.001)])
    assert offer.chat is not None
    assert len(transport.bodies) >= 6


def test_an_endpoint_that_offers_nothing_or_lets_nobody_in_is_refused():
    with pytest.raises(ModelError, match="neither chat completions nor completions for the model 'm'"):
        found(chat=False, plain=False)
    with pytest.raises(EndpointError, match="does not answer: down; is the server running"):
        found(faults=[Broken("down")] * 20)
    with pytest.raises(ModelError, match="lets nobody in"):
        found(faults=[Refused("401 no", status=401)])


def test_every_trial_is_counted_before_it_is_sent_and_settled_after_it():
    # The answers say nothing of tokens, so each counts for all that it could cost, a cut connection too; a server
    # that is busy charges nothing.
    budget = Budget()
    transport = Scripted(plain=False, faults=[Busy("429"), Broken("cut")])
    meter = budget.meter({"input": 1.0, "output": 10.0})
    asyncio.run(discover(transport, "m", where="http://x", patience=0.001, meter=meter))
    cut, _, *answered = [body for path, body in transport.bodies if "chat" in path]
    refused = [body for body in answered if body.get("n", 1) > 4 or body.get("top_logprobs", 0) > 20]
    charged = [cut, *(body for body in answered if body not in refused)]
    made = sum(body["max_tokens"] * body.get("n", 1) for body in charged)
    assert budget.spent.requests == len(transport.bodies) + 1  # one for the list of models
    assert budget.spent.tokens == _PROMPT_TOKENS * len(charged) + made
    assert budget.spent.cost == pytest.approx((_PROMPT_TOKENS * len(charged) + 10 * made) / 1e6)
    assert (budget.reserved.tokens, budget.reserved.cost) == (0, pytest.approx(0))


@pytest.mark.parametrize("limits", [Limits(requests=5), Limits(tokens=100), Limits(cost=100e-6)])
def test_no_trial_is_sent_that_a_limit_does_not_allow(limits):
    budget = Budget(limits)
    transport = Scripted(faults=[Broken("cut")] * 40)
    meter = budget.meter({"input": 1.0, "output": 1.0})
    with pytest.raises(SpecError, match="does not suffice"):
        asyncio.run(discover(transport, "m", where="http://x", patience=0.001, meter=meter))
    most = {"requests": 4, "tokens": 100 // (_PROMPT_TOKENS + 1), "cost": 100 // (_PROMPT_TOKENS + 1)}
    name = next(name for name in most if getattr(limits, name))
    assert len(transport.bodies) == most[name]  # one token is asked for; the list of models was one request
