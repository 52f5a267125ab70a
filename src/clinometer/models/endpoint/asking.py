"""Puts requests into the words of an endpoint: which calls are sent, with which parameters."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from clinometer.errors import RequestError
from clinometer.models.endpoint.offer import CHAT, PLAIN, Offer, Way
from clinometer.models.protocols import Call, Reply
from clinometer.types import MASK, AnswerWord, Ask, LogLikelihood, NextWord, Request, Rescore, Sample

# Where an endpoint tells no log-probabilities, words are drawn and counted.
DRAWS = 64
DRAWN_TOKENS = 4  # enough for a word of several pieces
THINKING_TOKENS = 2_048  # what a model that reasons first may use before its answer

# A word that is not among the most probable tokens has no number. For a long list of words, an endpoint that tells
# its whole vocabulary is asked for it: exact, but megabytes, which take llama.cpp and us most of a second.
LONG_LIST = 500  # words

_CHARACTERS_PER_TOKEN = 4  # of English; the endpoint's own count is what is recorded
_MESSAGE_TOKENS = 8  # what a chat template adds to each message


def calls_of(request: Request, replies: Sequence[Reply], *, offer: Offer, model: str) -> list[Call]:
    """Return the calls of a request, as `CanSend` says; raise RequestError for one that cannot be asked."""
    match request:
        case Ask():
            return _texts(_need(offer.chat, request), model, request, _conversation(request))
        case Sample():
            return _texts(_need(offer.plain, request), model, request, {"prompt": request.prefix})
        case NextWord():
            way = _need(offer.plain, request)
            return _words(way, model, {"prompt": prompt_of(request)}, words=request.words)
        case AnswerWord():
            return _words(_need(offer.chat, request), model, _conversation(request), words=request.words)
        case LogLikelihood() if offer.scores:
            return [_score(model, request.text)]
        case Rescore() if offer.scores:
            return _rescored(_need(offer.plain, request), model, request, replies)
        case _:
            raise RequestError(
                f"this endpoint cannot be asked {type(request).__name__}; choose another audit or model"
            )


def prompt_of(query: NextWord) -> str:
    """Return context and text as one prompt; spaces at its end belong to the word that follows."""
    return " ".join(part for part in (query.context.strip(), query.text.strip()) if part)


def _need(way: Way | None, request: Request) -> Way:
    if way is None:
        what = "chat" if isinstance(request, Ask | AnswerWord) else "plain"
        raise RequestError(f"this endpoint offers no {what} completions, which {type(request).__name__} needs")
    return way


def _conversation(request: Ask | AnswerWord) -> dict[str, Any]:
    if not any(message.role == "user" for message in request.messages):
        raise RequestError("a conversation without a message of the user cannot be answered; add one")
    return {"messages": [{"role": turn.role, "content": turn.content} for turn in request.messages]}


def _texts(way: Way, model: str, request: Ask | Sample, question: Mapping[str, Any]) -> list[Call]:
    """Ask for n texts, as many to a call as the endpoint gives."""
    first = request.first if isinstance(request, Sample) else 0
    body = {"model": model, **question, way.limit: request.max_new_tokens + THINKING_TOKENS * way.thinks}
    body |= dict(way.samplers)
    if way.temperature:
        body |= {"temperature": request.temperature, "top_p": 1.0}
    if isinstance(request, Sample):
        body |= {"top_p": request.top_p} if request.top_p < 1 else {}
        body |= {"top_k": request.top_k} if request.top_k else {}
    calls = []
    for start in range(0, request.n, way.many):
        some = min(way.many, request.n - start)
        calls.append(_call(way, body, count=some, seed=_seed(request.seed, question, first + start)))
    return calls


def _words(way: Way, model: str, question: Mapping[str, Any], *, words: Sequence[str]) -> list[Call]:
    """Ask for the most probable tokens, or, where they are not told, for so many drawn words."""
    body = {"model": model, **question, **way.samplers}
    if way.temperature:
        body |= {"temperature": 1.0, "top_p": 1.0}
    if way.top:
        top = way.whole if way.whole and len(words) >= LONG_LIST else way.top
        told = {"logprobs": True, "top_logprobs": top} if way.path == CHAT else {"logprobs": top}
        body |= {way.limit: 1, **told}
        return [Call(path=way.path, body=body, reads="words", words=tuple(words), tokens=_tokens(body, 1))]
    body |= {way.limit: DRAWN_TOKENS + THINKING_TOKENS * way.thinks}
    return [
        _call(way, body, count=min(way.many, DRAWS - start), seed=_seed(0, question, start))
        for start in range(0, DRAWS, way.many)
    ]


def _rescored(way: Way, model: str, query: Rescore, replies: Sequence[Reply]) -> list[Call]:
    """Score the text with every candidate in the blank; where there are too many, ask first which may come."""
    left, right = sides(query)
    listed = query.top_k or (query.candidates and query.candidates < len(query.words))
    if not listed:
        return [_with_word(model, left, word, right) for word in query.words]
    first = _words(way, model, {"prompt": left}, words=())
    if len(replies) < len(first):
        return first
    chosen = candidates_of(query, replies[: len(first)])
    return [*first, *(_with_word(model, left, word, right) for word in chosen)]


def sides(query: Rescore) -> tuple[str, str]:
    """Return what comes before the blank, without the space before the word, and what comes after it."""
    if query.text.count(MASK) != 1:
        raise RequestError(f"a text to be filled has one {MASK}, not {query.text.count(MASK)}: {query.text!r}")
    left, right = query.text.split(MASK)
    return " ".join(part for part in (query.context.strip(), left.strip()) if part), right


def candidates_of(query: Rescore, replies: Sequence[Reply]) -> list[str]:
    """Return the words to be scored: the listed ones that may come after the left part, and the model's own."""
    tokens: dict[str, float] = {}
    for reply in replies:
        for token, logprob in reply.content.get("top", ()):
            tokens[str(token)] = float(logprob)
        for text in reply.content.get("texts", ()):
            tokens[f" {text.split()[0]}" if text.split() else ""] = 0.0

    def bound(word: str) -> float:  # no word is more probable than its first token
        return max((tokens[t] for t in tokens if t.strip() and f" {word}".startswith(t)), default=-math.inf)

    ranked = sorted(query.words, key=bound, reverse=True)[: query.candidates or len(query.words)]
    own = [token.strip() for token in tokens if token.startswith(" ") and token.strip().isalpha()]
    return list(dict.fromkeys([*ranked, *own[: query.top_k]]))


def _with_word(model: str, left: str, word: str, right: str) -> Call:
    start = len(left)
    return _score(model, f"{left} {word}{right}".lstrip(), span=(start, start + 1 + len(word)))


def _score(model: str, text: str, *, span: tuple[int, int] = (0, 0)) -> Call:
    body = {"model": model, "prompt": text, "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0.0}
    return Call(path=PLAIN, body=body, reads="score", span=span, tokens=_tokens(body, 1))


def _call(way: Way, body: Mapping[str, Any], *, count: int, seed: int) -> Call:
    more: dict[str, Any] = {"n": count} if count > 1 else {}
    more |= {"seed": seed} if way.seed != "refused" else {}
    whole = {**body, **more}
    return Call(path=way.path, body=whole, reads="texts", tokens=_tokens(whole, count * int(body[way.limit])))


def _seed(seed: int, question: Mapping[str, Any], first: int) -> int:
    """Return the seed of a call: another for each question and draw, so that draws do not move together."""
    digest = hashlib.blake2b(repr((seed, question, first)).encode("utf-8", "surrogatepass"), digest_size=4)
    return int.from_bytes(digest.digest()) & 0x7FFFFFFF


def _tokens(body: Mapping[str, Any], answer: int) -> int:
    return prompt_tokens(body) + answer


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Estimate the tokens of a question: a quarter of its characters, and some for each message."""
    messages = body.get("messages")
    if messages is None:
        return math.ceil(len(str(body["prompt"])) / _CHARACTERS_PER_TOKEN) + 1
    return sum(math.ceil(len(turn["content"]) / _CHARACTERS_PER_TOKEN) + _MESSAGE_TOKENS for turn in messages)
