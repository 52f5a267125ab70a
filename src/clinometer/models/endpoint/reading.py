"""Reads what an endpoint sent: texts with how they ended, log-probabilities, scores of prompts, who answered.

Servers write the same things in different shapes. What is not in any of them raises Malformed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from clinometer.models.endpoint.faults import Malformed
from clinometer.models.protocols import Call, Reply

_ENDINGS = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop",
    "length": "length", "max_tokens": "length", "content_filter": "content filter", "refusal": "refusal",
}  # fmt: skip
_LONGEST_NAME = 200
_THINK, _THOUGHT = "<think>", "</think>"
_MANY_TOKENS = 1 << 31
_SPACES = " \t\r\n▁Ġ"  # as tokenizers write them


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One answer: the text, how it ended, what was thought before it, the most probable first tokens.

    `told` is for how many tokens a log-probability came, `mass` their probability together; two that are written
    alike are one in `top`.
    """

    text: str
    ending: str
    reasoning: str = ""
    top: tuple[tuple[str, float], ...] = ()
    told: int = 0
    mass: float = 0.0


def read_reply(call: Call, body: Mapping[str, Any], headers: Mapping[str, str]) -> Reply:
    """Keep of an answer what the call is for; raise Malformed where that is not there."""
    names, counts = who_answered(body, headers)
    source: dict[str, str | int] = {**names, **counts}
    if call.reads == "score":
        return Reply(content=read_score(body, str(call.body["prompt"]), span=call.span), source=source)
    wanted = frozenset(word.casefold() for word in call.words)
    choices = read_choices(body, expected=int(call.body.get("n", 1)), wanted=wanted)
    if call.reads == "words":
        (choice, *_) = choices
        if not choice.mass:
            raise Malformed("an answer without the log-probabilities that were asked for")
        return Reply(content={"top": list(choice.top), "told": min(1.0, choice.mass)}, source=source)
    return Reply(
        content={
            "texts": [choice.text for choice in choices],
            "endings": [choice.ending for choice in choices],
            "reasoning": [choice.reasoning for choice in choices],
        },
        source=source,
    )


def without_answer(call: Call, ending: str) -> Reply:
    """Return what is recorded where there is no answer, and why."""
    if call.reads == "score":
        return Reply(content={"logprob": math.nan, "tokens": 0, "word": math.nan})
    if call.reads == "words":
        return Reply(content={"top": [], "told": 0.0})
    count = int(call.body.get("n", 1))
    return Reply(content={"texts": [""] * count, "endings": [ending] * count, "reasoning": [""] * count})


def read_choices(body: Mapping[str, Any], *, expected: int | None, wanted: Set[str] = frozenset()) -> list[Choice]:
    """Read the choices of an answer in the order of their index; with `expected`, exactly so many.

    Of the tokens those that are among the wanted words are kept; all, where none are named.
    """
    found = body.get("choices")
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise Malformed("JSON without a list of choices")
    if expected is not None and len(found) != expected:
        raise Malformed(f"{len(found)} answers where {expected} were asked for")
    indices = [each.get("index", place) for place, each in enumerate(found)]
    if sorted(indices, key=str) != sorted(range(len(found)), key=str):
        raise Malformed(f"answers numbered {str(indices)[:80]}")
    return [
        _choice(each, wanted)
        for _, each in sorted(zip(indices, found, strict=True), key=lambda pair: int(pair[0]))
    ]


def _choice(found: Mapping[str, Any], wanted: Set[str]) -> Choice:
    message = found.get("message")
    reasoning = ""
    refusal = None
    if isinstance(message, dict):
        text = _text(message.get("content"))
        refusal = message.get("refusal")
        reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
    elif isinstance(found.get("text"), str):
        text = found["text"]
    else:
        raise Malformed("a choice without a text")
    finish = found.get("finish_reason")
    ending = _ENDINGS.get(str(finish), str(finish)[:40] if finish else "stop")
    if not reasoning and text.lstrip().startswith(_THINK):
        thought, closed, answer = text.lstrip().removeprefix(_THINK).partition(_THOUGHT)
        reasoning, text = thought, answer.lstrip() if closed else ""
    if isinstance(refusal, str) and refusal:
        text, ending = text or refusal, "refusal"
    elif not text and ending == "stop":
        ending = "empty"
    pairs = _pairs(found.get("logprobs"))
    top, mass = _joined_tokens(pairs, wanted)
    return Choice(text=clean(text), ending=ending, reasoning=clean(reasoning), top=top, told=len(pairs), mass=mass)


def _text(content: object) -> str:
    """Read a message's content: a text, nothing, or a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    raise Malformed(f"a message whose content is {type(content).__name__}")


def _pairs(logprobs: object) -> list[tuple[object, object]]:
    """Read the most probable first tokens, in the newer shape or in that of plain completions."""
    if not isinstance(logprobs, dict):
        return []
    content, older = logprobs.get("content"), logprobs.get("top_logprobs")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        rows = content[0].get("top_logprobs")
        return [(row.get("token"), row.get("logprob")) for row in rows or () if isinstance(row, dict)]
    if isinstance(older, list) and older and isinstance(older[0], dict):
        return list(older[0].items())
    return []


def _joined_tokens(
    pairs: Sequence[tuple[object, object]], wanted: Set[str]
) -> tuple[tuple[tuple[str, float], ...], float]:
    """Add up tokens that are written alike (byte pieces, spellings of a space), most probable first.

    Return the wanted ones, or all, and the probability of all. A whole vocabulary comes through here, so a token
    that is not wanted costs little.
    """
    found: dict[str, float] = {}
    mass = 0.0
    for token, logprob in pairs:
        if not isinstance(token, str) or not isinstance(logprob, int | float) or not logprob <= 1e-6:
            continue
        mass += math.exp(logprob)
        if wanted and token.strip(_SPACES).casefold() not in wanted:
            continue
        name = clean(token.replace("▁", " ").replace("Ġ", " "))
        found[name] = float(logprob) if name not in found else _log_sum(found[name], float(logprob))
    return tuple(sorted(found.items(), key=lambda pair: -pair[1])), mass


def _log_sum(one: float, other: float) -> float:
    high, low = max(one, other), min(one, other)
    return high + math.log1p(math.exp(low - high)) if math.isfinite(high) else high


def read_score(body: Mapping[str, Any], prompt: str, *, span: tuple[int, int] = (0, 0)) -> dict[str, float | int]:
    """Read the summed log-probability of a prompt's tokens, of those in a span, and how many were scored."""
    values = _prompt_logprobs(body, prompt)
    if values is None:
        raise Malformed("an answer without the log-probabilities of the prompt")
    scored = {offset: value for offset, value in values if value is not None}  # the first one often is not
    word = math.fsum(value for offset, value in scored.items() if span[0] <= offset < span[1])
    return {"logprob": math.fsum(scored.values()), "tokens": len(scored), "word": word}


def has_prompt_scores(body: Mapping[str, Any], prompt: str) -> bool:
    """Tell whether an answer has the log-probabilities of its prompt."""
    values = _prompt_logprobs(body, prompt)
    return values is not None and sum(value is not None for _, value in values) >= 2


def _prompt_logprobs(body: Mapping[str, Any], prompt: str) -> list[tuple[int, float | None]] | None:
    """Return where each token of a prompt begins, and its log-probability; None where they are not told."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict) or not str(choice.get("text", "")).startswith(prompt):
        return None
    values, offsets = logprobs.get("token_logprobs"), logprobs.get("text_offset")
    if not isinstance(values, list) or not isinstance(offsets, list) or len(values) != len(offsets):
        return None
    inside = [(at, value) for at, value in zip(offsets, values, strict=True) if _before(at, len(prompt))]
    if not all(value is None or (isinstance(value, int | float) and value <= 1e-6) for _, value in inside):
        return None
    return [(at, None if value is None else float(value)) for at, value in inside]


def _before(offset: object, end: int) -> bool:
    return isinstance(offset, int) and offset < end


def who_answered(body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[dict[str, str], dict[str, int]]:
    """Return what the endpoint says it is, and the tokens that it counted; 0 where it gives no sensible number."""
    told = {"model": body.get("model"), "fingerprint": body.get("system_fingerprint"), "id": body.get("id")}
    named = {name: clean(value)[:_LONGEST_NAME] if isinstance(value, str) else "" for name, value in told.items()}
    named["headers"] = clean("; ".join(f"{name}: {value}" for name, value in sorted(headers.items())))
    usage = body.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    used = {
        "tokens_in": _count(counts.get("prompt_tokens")),
        "tokens_out": _count(counts.get("completion_tokens")),
    }
    return named, used


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < _MANY_TOKENS and value is not True else 0


def clean(text: str) -> str:
    r"""Return the text with half characters replaced: JSON can hold what no file can.

    >>> clean("a\ud800b")
    'a\ufffdb'
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def joined(sources: Sequence[Mapping[str, str | int]]) -> dict[str, str | int]:
    """Say of several replies who sent them: counts are added up, names listed once each.

    >>> joined([{"model": "a", "tries": 1}, {"model": "a", "tries": 2}])
    {'model': 'a', 'tries': 3}
    """
    found: dict[str, str | int] = {}
    for name in dict.fromkeys(name for source in sources for name in source):
        values = [source[name] for source in sources if name in source]
        if isinstance(values[0], int):
            found[name] = sum(value for value in values if isinstance(value, int))
        else:
            found[name] = " | ".join(dict.fromkeys(str(value) for value in values))
    return found
