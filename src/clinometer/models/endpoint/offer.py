"""What an endpoint really offers, found out with a handful of requests: documentation is not evidence.

An interface that refuses a parameter is asked again without it, or with less of it. One that takes a parameter and
ignores it is found out by what comes back: one answer where two were asked for, no log-probabilities, other texts
for the same seed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from clinometer.errors import EndpointError, ModelError, SpecError, StoppedError
from clinometer.models.endpoint.faults import Broken, Busy, Fault, Malformed, Refused
from clinometer.models.endpoint.reading import Choice, has_prompt_scores, read_choices, who_answered
from clinometer.models.endpoint.sending import Free, Meter
from clinometer.models.endpoint.transport import Arrived, Transport
from clinometer.models.protocols import Call, Reply
from clinometer.types import AskedAs

Path = Literal["/chat/completions", "/completions"]
CHAT: Path = "/chat/completions"
PLAIN: Path = "/completions"

_TOPS = (1000, 100, 20, 5, 0)  # llama.cpp gives any number, many servers 20, OpenAI 20 in a chat and 5 otherwise
_EVERY = 200_000  # log-probabilities: all of any vocabulary, if a server gives any number
_WHOLE_MASS = 0.999  # what they hold together, up to rounding
_MANY = (16, 8, 4, 2, 1)  # llama.cpp gives as many as it has slots
# Samplers that servers have and OpenAI has not. Their defaults would cut off the tail of a distribution.
_WHOLE = {"top_k": 0, "min_p": 0.0}
_PROMPTS: dict[str, Any] = {
    CHAT: {"messages": [{"role": "user", "content": "Name a colour and an animal."}]},
    PLAIN: {"prompt": "The weather today is"},
}
_PROMPT_TOKENS = 16  # of these prompts
_MOST_TRIES = 12
_ABSENT = (404, 405, 410, 501)
_FORBIDDEN = (401, 403)
_TEMPLATE = "chat template"  # what a server says of a model that was not taught to chat
_PATIENCE = 8  # how often a trial call is sent
_REDRAWN = 6  # how often a token is drawn until one comes that can have log-probabilities
_HALF = "\ufffd"  # how servers write a token that is a part of a character


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How one path of an endpoint can be asked."""

    path: Path
    top: int  # how many log-probabilities it tells for a token; 0: none
    whole: int = 0  # how many its vocabulary has, if it tells them all; else 0
    many: int  # how many answers it gives to one call
    seed: Literal["honoured", "taken", "refused"]  # taken: accepted, but the texts differ
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    samplers: Mapping[str, float] = field(default_factory=dict)  # sent with every call, so that nothing is cut off
    temperature: bool = True  # whether it can be set
    thinks: bool = False  # whether it reasons before it answers, for which it needs tokens
    draws: bool = True  # whether another draw gives another text; some servers take a temperature and ignore it
    unique_ids: bool = False  # whether every answer has an id of its own

    def __str__(self) -> str:
        told = f"{self.top or 'none'}{(self.whole and f' (of lists: all {self.whole})') or ''}"
        seed = "refused" if self.seed == "refused" else "taken"  # whether it is honoured changes no question
        said = [f"log-probabilities {told}", f"n {self.many}", f"seed {seed}", self.limit]
        said += [f"{name}={value:g}" for name, value in sorted(self.samplers.items())]
        said += ["always the same text"] * (not self.draws)
        said += ["temperature fixed"] * (not self.temperature) + ["reasons first"] * self.thinks
        return ", ".join(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What an endpoint offers, what it says it is, and how many requests it took to find out."""

    chat: Way | None
    plain: Way | None
    scores: bool = False  # whether it tells how probable a prompt is
    told: Mapping[str, str] = field(default_factory=dict)
    requests: int = 0

    def asked_as(self, kind: AskedAs) -> Offer:
        """Return what is left if the model is asked in one way: as a chat where it has one, unless told not to."""
        if kind == "causal" or (not kind and self.chat is None):
            return replace(self, chat=None)
        return replace(self, plain=None, scores=False)

    @property
    def settings(self) -> dict[str, str]:
        """What changes how questions are put, in words; part of the identity of a request."""
        found = {"chat": str(self.chat or "not offered"), "completions": str(self.plain or "not offered")}
        return {**found, "prompts scored": "yes" if self.scores else "no"}


ASSUMED = Offer(  # before anything is sent: what most servers give
    chat=Way(path=CHAT, top=20, many=1, seed="taken"), plain=Way(path=PLAIN, top=5, many=1, seed="taken")
)


# Who opens a model knows nothing of budgets: whoever has one says here how to get its meter.
METER: ContextVar[Callable[[], Meter]] = ContextVar("what counts the trials of endpoints", default=Free)


async def discover(
    transport: Transport, model: str, *, where: str, patience: float = 1.0, meter: Meter | None = None
) -> Offer:
    """Find out what an endpoint offers; raise ModelError where it offers nothing, or lets nobody in.

    Every attempt is counted by the meter before it is sent; SpecError where a limit does not suffice.
    """
    explorer = _Explorer(transport, model, where, patience, meter or Free())
    try:
        return await explorer.offer()
    except StoppedError as error:
        raise SpecError(
            f"{error}; that does not suffice to find out what the endpoint offers, which takes up to 20 requests "
            f"of some 50 tokens ({explorer.sent} were sent); allow more"
        ) from None


class _Explorer:
    """Sends trial calls, and remembers what they told."""

    def __init__(self, transport: Transport, model: str, where: str, patience: float, meter: Meter) -> None:
        self._transport = transport
        self._model = model
        self._where = where
        self._patience = patience
        self._meter = meter
        self.sent = 0
        self.last = ""  # the last refusal
        self.known = ""  # which models it lists, if this one is not among them
        self.told: dict[str, str] = {}
        self._ids: list[str] = []

    async def offer(self) -> Offer:
        """Find out everything."""
        listed = await self.listed()
        chat = await self.way(CHAT)
        plain = await self.way(PLAIN)
        if chat is None and plain is None:
            raise ModelError(
                f"{self._where} answers neither chat completions nor completions for the model {self._model!r}"
                f"{self.last and f' ({self.last})'}{self.known}; check the name and --base-url, which usually "
                "ends in /v1"
            )
        scores = plain is not None and await self.scores()
        return Offer(chat=chat, plain=plain, scores=scores, told={**listed, **self.told}, requests=self.sent)

    async def listed(self) -> dict[str, str]:
        """Return what the list of models says of this one; nothing where there is no list."""
        try:
            listing = Call(path="/models", body={}, reads="texts")
            arrived = await self._patiently(lambda: self._transport.get(listing.path), listing, tries=2)
        except (Fault, ModelError, EndpointError):
            return {}
        rows = arrived.body.get("data")
        rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        names = [str(row.get("id")) for row in rows]
        if self._model not in names:
            self.known = f"; it lists {', '.join(name[:60] for name in names[:5])}" if names else ""
            return {}
        row = rows[names.index(self._model)]
        meta = row["meta"] if isinstance(row.get("meta"), dict) else {}
        found = {"owned_by": row.get("owned_by"), **{name: meta.get(name) for name in ("n_params", "ftype")}}
        return {name: str(value)[:80] for name, value in found.items() if value not in (None, "")}

    async def way(self, path: Path) -> Way | None:
        """Return how a path can be asked, or None where it is not there."""
        trial = Way(path=path, top=_TOPS[0], many=_MANY[0], seed="taken", samplers=dict(_WHOLE))
        first = await self._one_token(trial)
        if first is None:
            return None
        trial, choice = first
        trial = replace(trial, top=min(trial.top, choice.told), thinks=bool(choice.reasoning))
        if trial.top == _TOPS[0]:
            trial = replace(trial, whole=await self._vocabulary(trial))
        again = await self._accepted(trial, one=False)
        if again is None:
            return None
        trial, arrived = again
        texts = self._texts(arrived)
        if len(texts) != trial.many:  # it took n and ignored it
            trial = replace(trial, many=max(1, len(texts)))
        if trial.seed == "taken":
            repeated = await self._accepted(trial, one=False)
            same = repeated is not None and self._texts(repeated[1]) == texts
            trial = replace(trial, seed="honoured" if same and any(texts) else "taken")
            self.told[f"seed of {path}"] = "the same text again" if trial.seed == "honoured" else "other texts"
        if len(set(texts)) == 1:
            others = [await self._accepted(trial, one=False, seed=seed) for seed in (2, 3)]
            trial = replace(
                trial, draws=any(other is not None and self._texts(other[1]) != texts for other in others)
            )
        return replace(trial, unique_ids=len(set(self._ids)) == len(self._ids) and "" not in self._ids)

    async def _one_token(self, trial: Way) -> tuple[Way, Choice] | None:
        """Ask for one token and its log-probabilities.

        A token that ends the answer, or is a part of a character, has none at some servers (llama.cpp's draws one
        in twenty times here): then another is drawn before it is said that this server tells none.
        """
        for _ in range(_REDRAWN):
            found = await self._accepted(trial, one=True)
            if found is None:
                return None
            trial, arrived = found
            (choice,) = read_choices(arrived.body, expected=1)
            if choice.told or not trial.top or choice.reasoning or choice.text.strip(f" {_HALF}"):
                break
        return trial, choice

    async def _vocabulary(self, trial: Way) -> int:
        """Return how many tokens the vocabulary has if the endpoint tells them all at once, else 0."""
        for _ in range(_REDRAWN):
            try:
                arrived = await self._post(
                    trial.path, self._body(replace(trial, top=_EVERY), one=True, seed=1), tries=1
                )
                (choice,) = read_choices(arrived.body, expected=1)
            except (
                Fault,
                ModelError,
                EndpointError,
            ):  # too many, or too large a body: it is asked for fewer, as before
                return 0
            if choice.told:
                return choice.told if choice.mass > _WHOLE_MASS and choice.told > trial.top else 0
        return 0

    async def scores(self) -> bool:
        """Tell whether the endpoint repeats a prompt with the log-probability of each of its tokens."""
        body = {"model": self._model, **_PROMPTS[PLAIN], "max_tokens": 1, "echo": True, "logprobs": 1}
        try:
            arrived = await self._post(PLAIN, {**body, "temperature": 0.0})
        except Fault:
            return False
        return has_prompt_scores(arrived.body, _PROMPTS[PLAIN]["prompt"])

    async def _accepted(self, trial: Way, *, one: bool, seed: int = 1) -> tuple[Way, Arrived] | None:
        """Ask, and ask for less, until the endpoint accepts; return what it accepted, None if nothing."""
        for _ in range(_MOST_TRIES):
            try:
                arrived = await self._post(trial.path, self._body(trial, one=one, seed=seed))
            except Refused as refusal:
                self.last = str(refusal)
                if refusal.status in _FORBIDDEN:
                    raise ModelError(
                        f"{self._where} lets nobody in with this key, or without one: {refusal}; the key is read "
                        "from CLINOMETER_API_KEY, and sent to the address given with --base-url"
                    ) from None
                less = _less(trial, refusal, one=one)
                if refusal.status in _ABSENT or _TEMPLATE in self.last or less is None:
                    return None
                trial = less
            except Malformed as fault:
                self.last = str(fault)
                return None
            else:
                return trial, arrived
        return None

    def _body(self, trial: Way, *, one: bool, seed: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._model, **_PROMPTS[trial.path], trial.limit: 1 if one else 8}
        if one and trial.top:
            body |= (
                {"logprobs": True, "top_logprobs": trial.top} if trial.path == CHAT else {"logprobs": trial.top}
            )
        if not one:
            body |= {"n": trial.many} if trial.many > 1 else {}
            body |= {"seed": seed} if trial.seed != "refused" else {}
        if trial.temperature:
            body |= {"temperature": 1.0, "top_p": 1.0}
        return body | dict(trial.samplers)

    async def _post(self, path: str, body: Mapping[str, Any], *, tries: int = _PATIENCE) -> Arrived:
        async def send() -> Arrived:
            arrived = await self._transport.post(path, body)
            read_choices(arrived.body, expected=None)
            return arrived

        most = int(body.get("max_tokens") or body.get("max_completion_tokens") or 0) * int(body.get("n", 1))
        call = Call(path=path, body=body, reads="texts", tokens=_PROMPT_TOKENS + most)
        arrived = await self._patiently(send, call, tries=tries)
        told, _ = who_answered(arrived.body, arrived.headers)
        self.told |= {name: str(value) for name, value in told.items() if value and name != "id"}
        self._ids.append(str(told.get("id", "")))
        return arrived

    async def _patiently(self, send: Callable[[], Awaitable[Arrived]], call: Call, *, tries: int) -> Arrived:
        """Send until an answer comes: an endpoint that is busy or broken for a moment is still there."""
        for attempt in range(1, tries + 1):
            self._meter.reserve(call)
            self.sent += 1
            try:
                arrived = await send()
            except Fault as fault:
                self._meter.settle(call, Reply(content={}) if fault.may_have_cost else None)
                if not isinstance(fault, Busy | Broken | Malformed):
                    raise
                if attempt == tries:
                    if isinstance(fault, Malformed):
                        raise
                    raise EndpointError(
                        f"{self._where} does not answer: {fault}; is the server running?"
                    ) from None
                wait = fault.wait if isinstance(fault, Busy) else 0.0
                await asyncio.sleep(max(wait, self._patience * 2**attempt / 8 * random.uniform(0.5, 1.5)))
            else:
                self._meter.settle(call, Reply(content={}, source=who_answered(arrived.body, arrived.headers)[1]))
                return arrived
        raise AssertionError("unreachable")

    @staticmethod
    def _texts(arrived: Arrived) -> list[str]:
        return [choice.text or choice.reasoning for choice in read_choices(arrived.body, expected=None)]


def _less(trial: Way, refusal: Refused, *, one: bool) -> Way | None:
    """Return a more modest trial: without what the endpoint objects to, or without the next thing."""
    lesser: dict[str, Way] = {}
    if one:
        if trial.samplers:
            lesser["top_k"] = lesser["min_p"] = replace(trial, samplers={})
        if trial.top:
            lesser["logprobs"] = replace(trial, top=_next(_TOPS, trial.top))
        if trial.limit == "max_tokens":
            lesser["max_completion_tokens"] = lesser["max_tokens"] = replace(trial, limit="max_completion_tokens")
        if trial.temperature:
            lesser["temperature"] = lesser["top_p"] = replace(trial, temperature=False)
    else:  # what the first trial had was accepted
        if trial.many > 1:
            lesser["n"] = replace(trial, many=_next(_MANY, trial.many))
        if trial.seed != "refused":
            lesser["seed"] = replace(trial, seed="refused")
    said = f"{refusal.parameter} {refusal}"
    named = next((way for name, way in lesser.items() if name != "n" and name in said), None)
    order = ("n", "seed", "top_k", "logprobs", "max_tokens", "temperature")
    return named or next((lesser[name] for name in order if name in lesser), None)


def _next(steps: Sequence[int], now: int) -> int:
    return next(step for step in steps if step < now)
