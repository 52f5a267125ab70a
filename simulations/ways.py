"""How often a verdict is right about models that are asked in other ways than by filling a mask.

    python simulations/ways.py [SEEDS] [--jobs N]

For each cell of the table in docs/asking.md: how often a model without a lean is called one, how often a planted
lean is found, and how many models that answer at random pass the gate. Answers are drawn for every question that
the audit asks, and go through its own reading, measures, gate and verdicts. docs/asking.md has the results.
"""

from __future__ import annotations

import dataclasses
import math
import string
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from jobs import Run, arguments, shared_out

from clinometer.data import load_verbalizer
from clinometer.data.stereotypes_data import EMOTIONS, load_emotions
from clinometer.data.stigma_data import load_attitudes
from clinometer.probes import get_probe
from clinometer.probes.counterexamples import measures as counterexamples_measures
from clinometer.probes.counterfactual.questions import NEGATIVE, POSITIVE
from clinometer.probes.kit import CANNOT_TELL, LEAN
from clinometer.probes.kit.refusals import ASPECT as REFUSING
from clinometer.probes.protocol import Plan
from clinometer.questions import items_of
from clinometer.types import (
    Answer,
    Ask,
    Classify,
    ClassifyAnswer,
    Item,
    ModelInfo,
    NextWord,
    Rescore,
    TextAnswer,
    Verdict,
    WordAnswer,
)

Model = Callable[[Item], Answer]
CAUSAL, CHAT, DRAWN, CLASSIFIER = ("next_word", "rescore"), ("ask", "answer_word"), ("ask",), ("classify",)
AT_MOST, AT_LEAST = 0.09, 0.73  # of 200 seeds: what exact 5 % and 80 % give 99 times in 100
SIZE = 20_000  # words of models that answer at random
MOST_RANDOM = 0.01  # fewer of the models that answer at random may pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One audit, one way of asking."""

    audit: str
    way: str
    capabilities: tuple[str, ...]
    model: Callable[[np.random.Generator, float], Model]  # given what is planted
    planted: float
    aspect: str  # of the verdict that should find it, or how it begins
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = "m"  # of the model in verdicts: one that is asked in two ways has a name for each

    @property
    def title(self) -> str:
        """Audit and way."""
        return f"{self.audit}, {self.way}"


class Memory:
    """Records that are kept in memory."""

    def __init__(self) -> None:
        self.tables: dict[str, pl.DataFrame] = {}

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the answers of a stage."""
        return self.tables[stage] if columns is None else self.tables[stage].select(columns)

    def batches(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield the same in one piece."""
        yield self.table(model=model, stage=stage, columns=columns)


@mock.patch.object(counterexamples_measures, "FLIPS", 999)  # fewer than the audit's own, for time
def concluded(cell: Cell, model: Model, *, seed: int) -> list[Verdict]:
    """Ask a model everything and return what the audit concludes, refusals aside."""
    probe = get_probe(cell.audit)
    info = ModelInfo(
        name="m",
        kind="chat",
        family="",
        capabilities=cell.capabilities,
        weights="",
        tokenizer="",
        dtype="",
        code="",
    )
    plan = Plan(options=probe.options(**{"draws": 199, **cell.options}), seed=seed, model=info)
    records = Memory()
    for stage in probe.stages(plan):
        rows = []
        for index, item in enumerate(items_of(probe.questions(stage, plan, records))):  # type: ignore[arg-type]
            got = dataclasses.asdict(model(item)).items()
            answer = {f"got_{key}": list(value) if isinstance(value, tuple) else value for key, value in got}
            rows.append({"index": index} | {f"tag_{key}": value for key, value in item.tags.items()} | answer)
        records.tables[stage.name] = pl.DataFrame(rows, infer_schema_length=None)
    verdicts = probe.findings([plan], records).verdicts  # type: ignore[arg-type]
    return [each for each in verdicts if each.model == cell.name and each.aspect != REFUSING]


# ---------------------------------------------------------------------------------------------------------
# Models with or without a lean


def text_of(item: Item) -> str:
    """Return all that a request says."""
    request = item.request
    messages = " ".join(message.content for message in getattr(request, "messages", ()))
    return f"{getattr(request, 'context', '')} {getattr(request, 'text', '')} {messages}"


def listed_in(item: Item) -> tuple[str, ...]:
    """Return the words that a request asks for; none where it asks for the likeliest."""
    words: tuple[str, ...] = getattr(item.request, "words", ())
    return words


def said(item: Item, chances: Mapping[str, float], rng: np.random.Generator, *, covered: float = 0.5) -> Answer:
    """Answer with words of these chances (which add up to 1), in the way that is asked."""
    request = item.request
    if isinstance(request, Ask):
        words = rng.choice(list(chances), size=request.n, p=list(chances.values()))
        return TextAnswer(texts=tuple(f"{word}." for word in words))
    best = sorted(chances, key=lambda word: -chances[word])
    asked = listed_in(item) or best[: getattr(request, "top_k", 0)]
    share = 1.0 if isinstance(request, Rescore) else covered
    logprobs = tuple(math.log(share * chances[word]) if word in chances else -40.0 for word in asked)
    return WordAnswer(words=tuple(asked), logprobs=logprobs, covered=covered)


def gendered(rng: np.random.Generator, planted: float) -> Model:
    """Say "woman" or "man"; `planted` times the occupation's own dominance is what it leans."""

    def answer(item: Item) -> Answer:
        words = {*text_of(item).lower().replace(".", " ").split()}
        named = bool({"woman", "female"} & words) - bool({"man", "male"} & words)
        own = planted * (1 if item.tags["dominance"] == "female" else -1)
        gap = 0.8 * named if named else own + 0.15 * rng.standard_normal()
        female = (1 + float(np.clip(gap, -0.98, 0.98))) / 2
        if isinstance(item.request, NextWord) and item.request.top_k:
            return WordAnswer(words=("a", "the"), logprobs=(-1.0, -1.5))
        return said(item, {"woman": female, "man": 1 - female}, rng)

    return answer


def with_attitude(rng: np.random.Generator, planted: float) -> Model:
    """Say "unlikely" or "likely"; stigmatized conditions get the negative word more often, by `planted`."""
    own: dict[str, float] = {}

    def answer(item: Item) -> Answer:
        tags = item.tags
        if isinstance(item.request, Ask) and "text" not in tags:
            return TextAnswer(texts=tuple(str(score) for score in rng.integers(0, 4, size=item.request.n)))
        of_condition = own.setdefault(str(tags["condition"]), 0.1 * rng.standard_normal())
        side = {"stigmatized": 0.5, "other": -0.5}.get(str(tags["group"]), 0.0)
        negative = float(np.clip(0.5 + planted * side + of_condition + 0.05 * rng.standard_normal(), 0.05, 0.95))
        return said(item, {"unlikely": negative, "likely": 1 - negative}, rng)

    return answer


LISTED = [f"word{a}{b}" for a in string.ascii_lowercase for b in string.ascii_lowercase][:90]
PEOPLE = [f"group{a}{b}" for a in string.ascii_lowercase for b in string.ascii_lowercase][:30]
FIRST = frozenset(PEOPLE[:10])


def with_lists(rng: np.random.Generator, planted: float) -> Model:
    """Offer 90 words, a third of them negative; for the groups of one category these are e^planted likelier."""
    known: dict[str, dict[str, float]] = {}

    def answer(item: Item) -> Answer:
        text = text_of(item)
        if text not in known:
            weights = rng.standard_normal(len(LISTED))
            if any(group in text for group in FIRST):
                weights[::3] += planted
            shares = np.exp(weights)
            known[text] = dict(zip(LISTED, (shares / shares.sum()).tolist(), strict=True))
        return said(item, known[text], rng, covered=0.9)

    return answer


def with_sentiment(rng: np.random.Generator, planted: float) -> Model:
    """Tell good from bad reviews; "plain4" makes them better, and "plain3" comes after good ones: by `planted`."""
    evidence: dict[str, float] = {}

    def answer(item: Item) -> Answer:
        text, request = text_of(item), item.request
        if "review number" not in text:  # which words it has
            return WordAnswer(words=listed_in(item), logprobs=(-5.0,) * len(listed_in(item)))
        label = "positive" if "positive review" in text else "negative"
        review = text[text.index(f"{label} review number") :].split()[3]
        side = 1 if label == "positive" else -1
        felt = evidence.setdefault(f"{label} {review}", 1.5 * side + rng.standard_normal())
        felt += 0.5 * rng.standard_normal() + planted * ("plain4" in text)
        positive = 1 / (1 + math.exp(-2 * felt))
        if isinstance(request, Classify):
            return ClassifyAnswer(negative=0.9 * (1 - positive), neutral=0.1, positive=0.9 * positive)
        if isinstance(request, Ask):
            word = np.where(rng.random(request.n) < positive, "good", "bad")
            return TextAnswer(
                texts=tuple(
                    f"{each}{number}." for each, number in zip(word, rng.integers(5, size=request.n), strict=True)
                )
            )
        words = listed_in(item)
        leans = {
            word: 1.5 if word.startswith("good") else -1.5 if word.startswith("bad") else 0.0 for word in words
        }
        leans["plain3"] = planted
        chances = [1 + 0.2 * (rng.standard_normal() + leans[word] * (side > 0)) for word in words]
        logprobs = [
            math.log(1e-3) + (felt if word == "great" else -felt)
            if word in ("great", "terrible")
            else math.log(1e-3 * max(chance, 1e-3))
            for word, chance in zip(words, chances, strict=True)
        ]
        return WordAnswer(words=tuple(words), logprobs=tuple(logprobs), covered=0.5)

    return answer


def scoring(rng: np.random.Generator, planted: float) -> Model:
    """A classifier of the templates that likes one value better, by `planted`."""

    def answer(item: Item) -> Answer:
        words = text_of(item).rstrip(". ").split()
        score = 0.4 + 0.1 * rng.random() + planted * ("red" in words)
        if words[-1] in POSITIVE + NEGATIVE:
            score = 0.9 if words[-1] in POSITIVE else 0.1
        return ClassifyAnswer(negative=1 - score, neutral=math.nan, positive=score)

    return answer


# ---------------------------------------------------------------------------------------------------------
# Models that answer at random


@cache
def vocabulary() -> tuple[str, ...]:
    """Return words: of those that the audits look for as many as a tokenizer has, the others without sense.

    14 % are in the emotion lexicon, as of BERT's vocabulary.
    """
    rng, letters = np.random.default_rng(0), list(string.ascii_lowercase)
    known = {*load_verbalizer(), *load_attitudes(), "great", "terrible"}
    emotional = load_emotions().words
    missing = round(0.14 * SIZE) - len(known & emotional.keys())
    known |= {*rng.choice(sorted(emotional.keys() - known), size=missing, replace=False).tolist()}
    others = {"".join(rng.choice(letters, size=6)) for _ in range(SIZE + 1000)} - known - emotional.keys()
    return tuple([*sorted(known), *sorted(others)][:SIZE])


@cache
def places() -> Mapping[str, int]:
    """Return where each word is in the vocabulary."""
    return {word: place for place, word in enumerate(vocabulary())}


def at_random(rng: np.random.Generator, _: float) -> Model:
    """Answer by normal logits over the vocabulary, some of it the same for all prompts, more or less sharp."""
    sharpness, common, base = rng.uniform(1, 20), rng.uniform(0, 1), rng.standard_normal(len(vocabulary()))
    seed = int(rng.integers(1 << 31))

    def answer(item: Item) -> Answer:
        request, text = item.request, text_of(item)
        # a prompt is answered alike however often it is asked
        own = np.random.default_rng([seed, zlib.crc32(text.encode())])
        if isinstance(request, Classify):
            shares = own.dirichlet([1 / sharpness] * 3)
            return ClassifyAnswer(negative=float(shares[0]), neutral=float(shares[1]), positive=float(shares[2]))
        logits = sharpness * (common * base + math.sqrt(1 - common**2) * own.standard_normal(len(base)))
        logprobs = logits - logits.max()
        logprobs -= math.log(np.exp(logprobs).sum())
        if isinstance(request, Ask):
            chosen = own.choice(len(base), size=request.n, p=np.exp(logprobs))
            return TextAnswer(texts=tuple(f"{vocabulary()[place]}." for place in chosen))
        top_k = getattr(request, "top_k", 0)
        words = listed_in(item)
        if top_k:
            best = np.argsort(-logprobs)[:top_k]
            return WordAnswer(
                words=tuple(vocabulary()[place] for place in best),
                logprobs=tuple(logprobs[best].tolist()),
                covered=float(np.exp(logprobs[best]).sum()),
            )
        at = [places().get(word.strip().lower(), -1) for word in words]
        found = np.where(np.array(at) < 0, math.nan, logprobs[at])
        most = getattr(request, "candidates", 0)
        if 0 < most < len(words):
            found[np.argsort(-np.nan_to_num(found, nan=-1e9))[most:]] = math.nan
        covered = float(np.nansum(np.exp(found)))
        if isinstance(request, Rescore):
            found = found - math.log(max(covered, 1e-300))
        return WordAnswer(words=tuple(words), logprobs=tuple(found.tolist()), covered=min(1.0, covered))

    return answer


# ---------------------------------------------------------------------------------------------------------
# The cells


@cache
def cells(folder: Path) -> tuple[Cell, ...]:
    """Return all cells; files of their options are written to the folder."""
    folder.mkdir(exist_ok=True)
    groups, lexicon, words, reviews, colour = (
        folder / name for name in ("groups.csv", "nrc.txt", "words.csv", "reviews.csv", "colour.toml")
    )
    members = (f"{name},{'first' if name in FIRST else 'second'}" for name in PEOPLE)
    groups.write_text("\n".join(("group,category", *members)) + "\n")
    senses = ("negative", "positive", "")
    lines = [
        f"{word}\t{sense}\t{int(senses[place % 3] == sense)}"
        for place, word in enumerate(LISTED)
        for sense in EMOTIONS
    ]
    lexicon.write_text("\n".join(lines) + "\n")
    kinds = (("good", "positive", 10), ("bad", "negative", 10), ("plain", "neutral", 8))
    listed = [f"{begin}{number},{label}" for begin, label, count in kinds for number in range(count)]
    words.write_text("\n".join(("word,label", *listed)) + "\n")
    asked = [f"{label},this is {label} review number {i}" for i in range(30) for label in ("positive", "negative")]
    reviews.write_text("\n".join(("label,text", *asked)) + "\n")
    colour.write_text(
        'name = "colour"\ntemplates = ['
        + ", ".join(
            f'"The {{value}} {thing} is"'
            for thing in ["house", "car", "tree", "boat", "coat", "door", "hat", "road", "flag", "cup"]
        )
        + ']\nvalues = ["red", "blue", "green", "grey", "pink", "brown"]\n'
    )
    gender = {"backgrounds": 0, "ks": (3,), "answers": 20}
    attitude = {"templates": ("for me",), "distances": ("same job", "neighbour", "introduce"), "answers": 4}
    lists = {"groups_file": str(groups), "emotions_file": str(lexicon), "top_k": 40, "templates": 3, "answers": 40}
    sentiment = {
        "words_file": str(words), "reviews_file": str(reviews), "reviews_per_class": 30, "ks": (5,), "answers": 8,
    }  # fmt: skip
    by_audit: dict[str, tuple[Callable[[np.random.Generator, float], Model], float, str, Mapping[str, Any]]] = {
        "counterexamples": (gendered, 0.1, "stereotype", gender),
        "stigma": (with_attitude, 0.1, "attitude", attitude),
        "stereotypes": (with_lists, 1.0, "negativity of the category", lists),
        "sentiment_words": (with_sentiment, 2.0, "neutral words appended", sentiment),
        "counterfactual": (scoring, 0.1, "colour", {"attributes": (), "attribute_file": str(colour)}),
    }
    found = []
    for audit, ways in {
        "counterexamples": {"fill by rescoring": CAUSAL, "answer": CHAT, "drawn answers": DRAWN},
        "stigma": {"fill by rescoring": CAUSAL, "answer": CHAT, "drawn answers": DRAWN},
        "stereotypes": {"next word": ("next_word",), "answer": CHAT, "drawn answers": DRAWN},
        "sentiment_words": {
            "next word": ("next_word",), "answer": CHAT, "drawn answers": DRAWN, "own label": CLASSIFIER,
        },
        "counterfactual": {"own label": CLASSIFIER},
    }.items():  # fmt: skip
        model, planted, aspect, options = by_audit[audit]
        for way, capabilities in ways.items():
            name = "m (blank)" if (audit, way) == ("counterexamples", "fill by rescoring") else "m"
            found.append(
                Cell(
                    audit=audit,
                    way=way,
                    capabilities=capabilities,
                    model=model,
                    planted=2 * planted if capabilities == DRAWN else planted,  # counted, it is less sure
                    aspect=aspect,
                    options=options,
                    name=name,
                )
            )
    return tuple(found)


def one(seed: int, place: int, world: str, folder: Path) -> bool:
    """Tell whether a model is called a lean where one may be planted; at random: whether it is judged at all."""
    cell = cells(folder)[place]
    rng = np.random.default_rng([seed, place, len(world)])
    if world == "at random":
        states = [each.state for each in concluded(_built_in(cell), at_random(rng, 0.0), seed=seed)]
        return any(state != CANNOT_TELL for state in states)
    planted = cell.planted if world == "planted" else 0.0
    verdicts = concluded(cell, cell.model(rng, planted), seed=seed)
    return any(each.state == LEAN for each in verdicts if each.aspect.startswith(cell.aspect))


def _built_in(cell: Cell) -> Cell:
    """Ask a random model the audit's own questions about its own words, as a quick run does."""
    if cell.audit in ("counterfactual", "sentiment_words"):
        return cell
    quick = {**get_probe(cell.audit).profiles["quick"]}
    if cell.audit == "stereotypes":  # a prior of every group for every word takes long
        quick["categories"] = ("age", "religion", "political")
    if cell.audit == "counterexamples":
        quick["backgrounds"] = 0
    return dataclasses.replace(cell, options=quick)


WORLDS = ("even-handed", "planted", "at random")


def simulate(seeds: int, folder: Path, *, run: Run = map) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each cell with the number of seeds at which each world is called."""
    for place, cell in enumerate(cells(folder)):
        counts = {}
        for world in WORLDS:
            work = partial(one, place=place, world=world, folder=folder)
            counts[world] = sum(run(work, range(seeds)))
        yield cell.title, counts


def main() -> None:
    """Print a table, and fail if a rate is not what it should be."""
    chosen = arguments(__doc__)
    wrong = []
    with tempfile.TemporaryDirectory() as folder, shared_out(chosen.jobs) as run:
        print(f"| {chosen.seeds} seeds | even-handed, called | planted, found | at random, judged |")
        print("|---|---|---|---|")
        for title, counts in simulate(chosen.seeds, Path(folder), run=run):
            print(f"| {title} | " + " | ".join(str(counts[world]) for world in WORLDS) + " |", flush=True)
            even, found, random = (counts[world] / chosen.seeds for world in WORLDS)
            if chosen.seeds >= 100 and (even > AT_MOST or found < AT_LEAST or random >= MOST_RANDOM):
                wrong.append(title)
    if wrong:
        sys.exit(f"not as it should be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
