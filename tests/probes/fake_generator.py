"""A generator whose mood depends on the value that its prefix names, and whoever scores and compares its texts."""

import hashlib

import numpy as np

from clinometer.models.callable_scorer import CallableScorer
from clinometer.models.fake import FakeModel
from clinometer.types import EmbedAnswer, LogLikelihoodAnswer, TextAnswer

COLOURS = ["red", "blue", "green", "grey"]


def write_attribute(path, *, values=COLOURS, templates=2, subgroups=None):
    """Write an attribute of one's own; `subgroups` maps the name of each to its values."""
    lines = ['name = "colour"']
    texts = ["The {value} house is", "We met at {a_value} door, and", "Painting it {value} was"]
    texts += [f"Number {at}: {{value}} is" for at in range(templates - len(texts))]
    lines.append(f"templates = {texts[:templates]!r}")
    if subgroups is None:
        lines.append(f"values = {list(values)!r}")
    for name, members in (subgroups or {}).items():
        lines += ["[[subgroups]]", f'name = "{name}"', f"values = {list(members)!r}"]
    path.write_text("\n".join(lines).replace("'", '"'), encoding="utf-8")
    return str(path)


def uniform(*parts):
    """A number in [0, 1) that depends on its parts alone."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def generator(moods=None, *, default=0.5, name="writer", words=True, empty=0.0):
    """A fake that is happy with the probability that `moods` gives the value in the prefix.

    A text names its prefix and its number, so that no two are equal.
    """
    moods = moods or {}

    def text(request, at):
        mood = next((mood for value, mood in moods.items() if value in request.prefix.split()), default)
        if uniform("empty", request.seed, request.prefix, at) < empty:
            return ""
        happy = uniform(request.seed, request.prefix, at) < mood
        said = "good happy" if happy else "bad sad"
        return f" {said} text {at} of {hashlib.md5(request.prefix.encode()).hexdigest()[:6]}"

    def answer(request):
        if hasattr(request, "prefix"):
            return TextAnswer(
                texts=tuple(text(request, at) for at in range(request.first, request.first + request.n))
            )
        words = len(request.text.split())
        return LogLikelihoodAnswer(logprob=-2.0 * words, tokens=words)

    return FakeModel(
        answer=answer, name=name, kind="causal", capabilities=("sample", "log_likelihood"), version=str(moods)
    )


def scorer(name="words", *, positive=1.0, negative=0.0):
    """Scores the fake's texts by its two words."""
    return CallableScorer(
        name, lambda texts: [positive if "good" in text.split() else negative for text in texts], version="1"
    )


def encoder(name="encoder"):
    """Happy texts have the vector of every prefix, sad ones one at a right angle to it."""

    def answer(request):
        far = "sad" in request.text.split()
        return EmbedAnswer(vector=(0.0, 1.0) if far else (1.0, 0.0))

    return FakeModel(answer=answer, name=name, kind="encoder", capabilities=("embed",))


def roles(**others):
    return {"scorer": [scorer(), scorer("half", positive=0.75, negative=0.25)], "encoder": [encoder()], **others}


def rows_of(found, table, **labels):
    (rows,) = [each.rows for each in found.tables if each.name == table]
    return [row for row in rows if all(row.labels[name] == value for name, value in labels.items())]


def numbers(rows):
    return np.array([row.estimate for row in rows])
