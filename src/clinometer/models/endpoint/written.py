"""Questions and answers as files, for a model that only its owner can call.

A question is one line of JSON, either plain (`id`, `messages` or `prompt`, how many answers, how long) or in the
batch-file format of OpenAI's interface. An answer is one line with the same id:

{"id": "…", "texts": ["…"]}              one text for each of the n that were asked for; "text" for a single one
{"id": "…", "logprobs": {"yes": -0.1}}   where the question has `words`: natural logarithms
{"id": "…", "logprob": -12.5, "tokens": 7}   where a text is to be scored
{"custom_id": "…", "response": {…}}      a line of OpenAI's batch output
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from clinometer.errors import DataError
from clinometer.models.endpoint.faults import Malformed
from clinometer.models.endpoint.reading import clean, read_reply
from clinometer.models.protocols import Call, Reply

Format = Literal["plain", "openai"]
_LONGEST_LINE = 16 << 20


def question_id(call: Call) -> str:
    """Return the id of a question: the same wherever and by whomever it is asked."""
    body = {name: value for name, value in call.body.items() if name != "model"}
    asked = json.dumps([call.path, body, call.reads], sort_keys=True)
    return hashlib.blake2b(asked.encode(), digest_size=12).hexdigest()


def question_line(call: Call, *, form: Format, model: str) -> str:
    """Write a question as a line of a file, without its line break."""
    if form == "openai":
        batch = {"custom_id": question_id(call), "method": "POST", "url": f"/v1{call.path}"}
        return json.dumps({**batch, "body": {**call.body, "model": model}}, ensure_ascii=False)
    body = dict(call.body)
    asked: dict[str, Any] = {name: body[name] for name in ("messages", "prompt") if name in body}
    line: dict[str, Any] = {"id": question_id(call), **asked, "n": body.get("n", 1)}
    line |= {name: body[name] for name in ("max_tokens", "temperature", "seed") if name in body}
    if call.reads == "words":
        line |= {"want": "log-probabilities of the first word, or texts"}
        line |= {"words": list(call.words)} if call.words else {}
    elif call.reads == "score":
        line |= {"want": "log-probability of the prompt, summed over its tokens"}
    return json.dumps(line, ensure_ascii=False)


def save_questions(out: Path, calls: Iterable[Call], *, form: Format, model: str = "MODEL") -> None:
    """Write questions to a file, whole or not at all."""
    lines = "".join(f"{question_line(call, form=form, model=model)}\n" for call in calls)
    beside = out.with_name(f".tmp-{out.name}")
    try:
        beside.write_bytes(lines.encode("utf-8", "replace"))
        beside.replace(out)
    except OSError as error:
        raise DataError(f"the questions cannot be written to {out}: {error.strerror}") from None


@dataclass(slots=True)
class Answers:
    """The answers in a file, by the id of the question; what is wrong with a line is kept beside them."""

    found: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)  # "line 3: …"
    form: Format = "plain"

    @classmethod
    def read(cls, path: Path) -> Answers:
        """Read a file; raise DataError if it cannot be read at all."""
        answers = cls()
        try:
            with path.open("rb") as file:
                for number, line in enumerate(_lines(file), start=1):
                    answers._take(number, line)
        except OSError as error:
            raise DataError(f"the answers {path} cannot be read: {error.strerror}") from None
        return answers

    def reply(self, call: Call) -> Reply | None:
        """Return the answer to a call; None where there is none that can be used, which `wrong` then says."""
        name = question_id(call)
        line = self.found.get(name)
        if line is None:
            return None
        try:
            reply = _batch_reply(call, line) if "custom_id" in line else _plain_reply(call, line)
            return Reply(content=reply.content, source={**reply.source, "id": name})
        except Malformed as error:
            self.wrong.append(f"the answer to {name}: {error}")
            del self.found[name]
            return None

    def digest(self) -> str:
        """Return a checksum of the answers; their order and what is wrong in the file do not change it."""
        found = hashlib.sha256()
        for name in sorted(self.found):
            found.update(json.dumps(self.found[name], sort_keys=True).encode("ascii") + b"\n")
        return found.hexdigest()

    def not_among(self, recorded: Iterable[str]) -> list[str]:
        """Return the ids of answers that are not recorded: nobody asked for them."""
        return sorted(self.found.keys() - set(recorded))

    def _take(self, number: int, line: bytes) -> None:
        if not line.strip():
            return
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            self.wrong.append(f"line {number}: not JSON")
            return
        name = (document.get("custom_id") or document.get("id")) if isinstance(document, dict) else None
        if not isinstance(name, str):
            self.wrong.append(f"line {number}: no id")
        elif name in self.found:
            self.wrong.append(f"line {number}: a second answer to {name}; the first one counts")
        else:
            self.form = "openai" if "custom_id" in document else self.form
            self.found[name] = document


def _lines(file: Any) -> Iterator[bytes]:
    while line := file.readline(_LONGEST_LINE):
        yield line


def _batch_reply(call: Call, line: Mapping[str, Any]) -> Reply:
    response = line.get("response")
    if line.get("error") or not isinstance(response, dict) or response.get("status_code", 200) != 200:
        raise Malformed(f"the batch says {str(line.get('error') or response)[:120]}")
    body = response.get("body")
    if not isinstance(body, dict):
        raise Malformed("a response without a body")
    return read_reply(call, body, {})


def _plain_reply(call: Call, line: Mapping[str, Any]) -> Reply:
    if call.reads == "score":
        logprob, tokens = line.get("logprob"), line.get("tokens")
        if not isinstance(logprob, int | float) or not isinstance(tokens, int):
            raise Malformed("expected logprob, a number, and tokens, a whole number")
        return Reply(content={"logprob": float(logprob), "tokens": tokens, "word": math.nan})
    told = line.get("logprobs")
    if call.reads == "words" and told is not None:
        numbers = told.values() if isinstance(told, dict) else [math.nan]
        if not all(isinstance(each, int | float) and each <= 1e-6 for each in numbers):
            raise Malformed("expected logprobs, an object of words with their natural logarithms")
        ranked = sorted(((f" {word}", float(each)) for word, each in told.items()), key=lambda pair: -pair[1])
        return Reply(content={"top": ranked, "told": min(1.0, math.fsum(math.exp(each) for _, each in ranked))})
    texts = line.get("texts", [line["text"]] if "text" in line else None)
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise Malformed("expected texts, a list of texts")
    count = int(call.body.get("n", 1))
    if call.reads == "texts" and len(texts) != count:
        raise Malformed(f"{len(texts)} texts where {count} were asked for")
    texts = [clean(text) for text in texts]
    endings = ["stop" if text else "empty" for text in texts]
    return Reply(content={"texts": texts, "endings": endings, "reasoning": [""] * len(texts)})
