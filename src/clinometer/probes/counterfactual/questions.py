"""What the counterfactual audit asks, and the user's files that decide it: held-out text, rated sentences."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import TypeVar

import numpy as np
import polars as pl

from clinometer.data import Attribute, Value, fill_template, load_attribute, read_attribute, read_csv, read_text
from clinometer.data.continuation import continuation_messages, load_continuation, read_continuation
from clinometer.data.own_prompts import read_prompts, with_templates
from clinometer.data.substitution import Mention, counterfactual, mention_finder
from clinometer.errors import DataError, nearest
from clinometer.plain import unescaped
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.kit.chat import DECLINES, without_thoughts
from clinometer.probes.protocol import Plan, Records, Stage
from clinometer.types import Ask, Classify, Embed, Item, LogLikelihood, Sample

T = TypeVar("T")
DrawnTexts = tuple[int, int, int, int]  # answers that go on, refuse, are empty, cannot be used

BLOCK = 100  # samples in one request: what a killed run loses at most of a prefix
SAMPLES, PERPLEXITY, OUTPUTS = "samples", "perplexity", "outputs"
PLAIN = "plain-"  # begins the names of the stages in which a chat model is given the beginning and nothing else
SCORED, CHECK = "templates", "check"  # what a classifier is asked
# clear cases, by which it is seen whether a classifier tells positive from negative
POSITIVE = (
    "wonderful", "excellent", "happy", "great", "delightful", "beautiful", "perfect", "lovely", "kind", "superb",
)  # fmt: skip
NEGATIVE = (
    "terrible", "awful", "sad", "bad", "horrible", "ugly", "worst", "disgusting", "miserable", "cruel",
)  # fmt: skip
PREFIX = -1  # the number of a "sample" that is the prefix itself

SENTIMENT, RELEVANCE = "sentiment", "relevance"  # what people judge
# Appendix D: 0, 0.5 and 1; a sentence that any rater calls mixed is dropped
_SCALES: Mapping[str, Mapping[str, float]] = {
    SENTIMENT: {
        "negative": 0.0,
        "neutral": 0.5,
        "neither positive nor negative": 0.5,
        "positive": 1.0,
        "mixed": math.nan,
        "positive language in part and negative language in part": math.nan,
    },
    RELEVANCE: {
        "irrelevant": -1.0,
        "irrelevant / incoherent": -1.0,
        "somewhat relevant": 0.0,
        "relevant": 1.0,
    },
}


# ---------------------------------------------------------------------------------------------------------
# Attributes and their prefixes


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """One beginning of a sentence, and what it is about."""

    number: int
    template: str
    value: Value
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAttribute:
    """An attribute as this run asks about it; its prefixes are numbered on from `first`, template by template."""

    attribute: Attribute  # with the values and templates that are asked
    whole: Attribute  # with all that its file has
    first: int
    found: Mapping[str, str] = field(default_factory=dict)  # a plain prompt -> the value that is in it

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    @property
    def values(self) -> tuple[str, ...]:
        """The values, as they are written."""
        return tuple(value.text for value in self.attribute.values)

    @property
    def shape(self) -> tuple[int, int]:
        """How many templates and values there are."""
        return len(self.attribute.templates), len(self.attribute.values)

    @property
    def numbers(self) -> range:
        """The numbers of its prefixes."""
        templates, values = self.shape
        return range(self.first, self.first + templates * values)

    @property
    def prefixes(self) -> tuple[Prefix, ...]:
        """Its prefixes, template by template."""
        cells = [(template, value) for template in self.attribute.templates for value in self.attribute.values]
        return tuple(
            Prefix(number=number, template=template, value=value, text=self._text(template, value))
            for number, (template, value) in zip(self.numbers, cells, strict=True)
        )

    def _text(self, template: str, value: Value) -> str:
        if template in self.found:
            return counterfactual(template, self.attribute, self.found[template], value.text)
        return fill_template(template, value)


def asked_attributes(options: Options, *, seed: int) -> tuple[AskedAttribute, ...]:
    """Return the attributes of a run; where values or templates are limited, the seed draws them."""
    whole = [load_attribute(name) for name in options.attributes]
    if options.attribute_file:
        own = read_attribute(options.attribute_file)
        if own.name.lower() in options.attributes:  # the charts' names do not tell "Country" from "country"
            raise DataError(
                f"'{options.attribute_file}': the name '{own.name}' is taken by an attribute of this audit; "
                "give it another one, or leave that out of `attributes`"
            )
        whole.append(own)
    exchanged: dict[str, Mapping[str, str]] = {}
    if options.prompts_file:
        prompts = read_prompts(options.prompts_file, lists=options.sensitive)
        # prompts without a field ask about the lists that were found in them, and about nothing else
        whole = [with_templates(each, prompts.templates, file=options.prompts_file) for each in whole]
        whole = (whole if prompts.templates else []) + [each.attribute for each in prompts.found]
        exchanged = {each.attribute.name: each.found for each in prompts.found}
        if not whole:
            raise DataError(
                f"'{options.prompts_file}': the prompts have a field {{value}}, but no attribute is asked; name "
                "one in `attributes`, or give attribute_file"
            )
    found: list[AskedAttribute] = []
    for each in whole:
        order = _shuffled(range(len(each.templates)), seed=seed, what=f"{each.name} templates")
        limited = replace(
            each,
            values=_some_values(each, options.max_values, seed=seed),
            templates=tuple(each.templates[at] for at in sorted(order[: options.max_templates or None])),
        )
        first = found[-1].numbers.stop if found else 0
        found.append(
            AskedAttribute(attribute=limited, whole=each, first=first, found=exchanged.get(each.name, {}))
        )
    return tuple(found)


def _some_values(attribute: Attribute, most: int, *, seed: int) -> tuple[Value, ...]:
    """Draw values, from each subgroup in turn, so that every subgroup stays."""
    groups = [
        [value for value in attribute.values if value.subgroup == name] for name in attribute.subgroups or ("",)
    ]
    shuffled = [_shuffled(group, seed=seed, what=f"{attribute.name} values") for group in groups]
    in_turn = [value for value in chain.from_iterable(zip_longest(*shuffled)) if value is not None]
    kept = {value.text for value in in_turn[: max(most, len(groups)) if most else None]}
    return tuple(value for value in attribute.values if value.text in kept)


def _shuffled(items: Sequence[T], *, seed: int, what: str) -> list[T]:
    """Shuffle by seed and name alone: a smaller number of items is the beginning of a larger one."""
    number = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "big")
    return [items[at] for at in np.random.default_rng([seed, number]).permutation(len(items))]


# ---------------------------------------------------------------------------------------------------------
# Stages and their requests


def scores_stage(number: int) -> str:
    """Return the name of the stage in which a scorer answers."""
    return f"scores-{number + 1}"


def embeddings_stage(number: int) -> str:
    """Return the name of the stage in which an encoder answers."""
    return f"embeddings-{number + 1}"


def asks_perplexity(plan: Plan) -> bool:
    """Tell whether there is held-out text, and a model that can say how probable it is."""
    return bool(plan.options.text_file) and "log_likelihood" in plan.model.capabilities


def stages(plan: Plan) -> tuple[Stage, ...]:
    """Return the stages of one model: generate, score, compare, and read the held-out text if there is one."""
    options: Options = plan.options
    prefixes = sum(len(asked.numbers) for asked in asked_attributes(options, seed=plan.seed))
    if not {"sample", "ask"} & {*plan.model.capabilities}:  # a classifier: it writes nothing
        return Stage(name=SCORED, size=prefixes), Stage(name=CHECK, size=len(POSITIVE) + len(NEGATIVE))
    found = []
    for way in ways_of(plan):
        found.append(Stage(name=f"{way}{SAMPLES}", size=prefixes * math.ceil(options.samples / BLOCK)))
        # how many texts are not empty, and so how large these stages are, is known once they are written
        for number, scorer in enumerate(plan.roles.get("scorer", ())):
            found.append(Stage(name=f"{way}{scores_stage(number)}", by=scorer.name))
        for number, encoder in enumerate(plan.roles.get("encoder", ())):
            found.append(Stage(name=f"{way}{embeddings_stage(number)}", by=encoder.name))
        for encoder in plan.roles.get("encoder", ())[: min(options.compared_samples, 1)]:
            found.append(Stage(name=f"{way}{OUTPUTS}", by=encoder.name))
    if asks_perplexity(plan):
        found.append(Stage(name=PERPLEXITY, size=len(passages(options.text_file))))
    return tuple(found)


def questions(stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
    """Yield the requests of a stage."""
    way = PLAIN if stage.name.startswith(PLAIN) else ""
    name = stage.name.removeprefix(way)
    ask: dict[str, Callable[[], Iterator[Item]]] = {
        SAMPLES: lambda: _samples(plan) if "sample" in plan.model.capabilities else _asked_for(plan, way),
        PERPLEXITY: lambda: _passages(plan),
        OUTPUTS: lambda: _outputs(plan, records, way),
        SCORED: lambda: _classified(plan),
        CHECK: _clear_cases,
    }
    if name in ask:
        return ask[name]()
    return _scored(plan, records, way) if name.startswith("scores") else _embedded(plan, records, way)


def _clear_cases() -> Iterator[Item]:
    for word in (*POSITIVE, *NEGATIVE):
        yield Item(request=Classify(text=f"The day was {word}."), tags={"word": word})


def ways_of(plan: Plan) -> tuple[str, ...]:
    """Return how the names of stages begin: a chat model is asked to continue, and given the plain text."""
    return ("",) if "sample" in plan.model.capabilities else ("", PLAIN)


def _asked_for(plan: Plan, way: str) -> Iterator[Item]:
    """Yield what a chat model is told: to continue the beginning, or nothing but the beginning."""
    options: Options = plan.options
    how = load_continuation() if not options.continuation_file else read_continuation(options.continuation_file)
    for asked in asked_attributes(options, seed=plan.seed):
        for prefix in asked.prefixes:
            for first in range(0, options.samples, BLOCK):
                yield Item(
                    request=Ask(
                        messages=continuation_messages(how, prefix.text, plain=way == PLAIN),
                        n=min(BLOCK, options.samples - first),
                        max_new_tokens=options.max_new_tokens,
                        temperature=options.temperature,
                        seed=plan.seed + first,  # a request for more draws from where another one ended
                    ),
                    tags={
                        "attribute": asked.name,
                        "template": prefix.template,
                        "value": prefix.value.text,
                        "prefix": prefix.number,
                        "first": first,
                        "beginning": prefix.text,
                    },
                )


def _samples(plan: Plan) -> Iterator[Item]:
    options: Options = plan.options
    for asked in asked_attributes(options, seed=plan.seed):
        for prefix in asked.prefixes:
            for first in range(0, options.samples, BLOCK):
                yield Item(
                    request=Sample(
                        prefix=prefix.text,
                        n=min(BLOCK, options.samples - first),
                        first=first,
                        max_new_tokens=options.max_new_tokens,
                        temperature=options.temperature,
                        seed=plan.seed,
                        top_k=options.top_k,
                        top_p=options.top_p,
                    ),
                    tags={
                        "attribute": asked.name,
                        "template": prefix.template,
                        "value": prefix.value.text,
                        "prefix": prefix.number,
                        "first": first,
                    },
                )


def _classified(plan: Plan) -> Iterator[Item]:
    for asked in asked_attributes(plan.options, seed=plan.seed):
        for prefix in asked.prefixes:
            yield Item(
                request=Classify(text=prefix.text),
                tags={
                    "attribute": asked.name,
                    "template": prefix.template,
                    "value": prefix.value.text,
                    "prefix": prefix.number,
                },
            )


def continuations(plan: Plan, records: Records, way: str = "") -> Iterator[pl.DataFrame]:
    """Yield what was generated, in order: `prefix` (its number), `sample`, `beginning` and `text`.

    Of what a chat model says, the beginning is taken off where it repeats it, and a refusal is not a text: it is
    counted (`refusals`), and has no score.
    """
    asked = "sample" not in plan.model.capabilities
    beginning = "tag_beginning" if asked else "ask_prefix"
    columns = ("tag_prefix", "tag_first", beginning, "got_texts")
    for table in records.batches(model=plan.model.name, stage=f"{way}{SAMPLES}", columns=columns):
        places = pl.int_ranges(pl.col("got_texts").list.len()).alias("place")
        every = (
            table.with_columns(places)
            .explode("got_texts", "place")
            .select(
                prefix=pl.col("tag_prefix"),
                sample=pl.col("tag_first") + pl.col("place"),
                beginning=pl.col(beginning),
                text=pl.col("got_texts"),
            )
        )
        if asked:
            said = [continued(text, start) for start, text in every.select("beginning", "text").iter_rows()]
            every = every.with_columns(text=pl.Series(said, dtype=pl.String))
        yield every


def continued(text: str, beginning: str) -> str:
    """Return what a chat model adds to a beginning, after a space; "" for a refusal.

    >>> continued("My friend is a baker, and we bake.", "My friend is a baker, and we")
    ' bake.'
    >>> continued("I'm sorry, but I can't help with that.", "The Syrian family")
    ''
    """
    said = without_thoughts(text).strip().strip('"“”').strip()
    if DECLINES.search(said.lower().replace("’", "'")):
        return ""
    if said.lower().startswith(beginning.lower()):
        said = said[len(beginning) :].lstrip()
    return f" {said.lstrip('…. ')}" if said.lstrip("…. ") else ""


def refusals(plan: Plan, records: Records, way: str = "") -> Iterator[tuple[int, DrawnTexts]]:
    """Yield the number of each prefix, and how many of the answers to it refuse, say nothing, or go on."""
    columns = ("tag_prefix", "got_texts")
    for table in records.batches(model=plan.model.name, stage=f"{way}{SAMPLES}", columns=columns):
        for prefix, texts in table.iter_rows():
            plain = [without_thoughts(text).strip().lower().replace("’", "'") for text in texts]
            refused = sum(bool(DECLINES.search(text)) for text in plain)
            empty = sum(not text for text in plain)
            yield prefix, (len(texts) - refused - empty, refused, empty, 0)


def _scored(plan: Plan, records: Records, way: str) -> Iterator[Item]:
    whole = plan.options.scored == "sentence"
    for table in continuations(plan, records, way):
        for prefix, sample, beginning, text in table.iter_rows():
            if text.strip():  # a model that ends at once has said nothing that could be scored
                request = Classify(text=beginning + text if whole else text.strip())
                yield Item(request=request, tags={"prefix": prefix, "sample": sample})


def _embedded(plan: Plan, records: Records, way: str) -> Iterator[Item]:
    options: Options = plan.options
    for asked in asked_attributes(options, seed=plan.seed):
        for each in asked.prefixes:
            yield Item(request=Embed(text=each.text), tags={"prefix": each.number, "sample": PREFIX})
    # what people judged is compared in any case
    rated = [ratings.sentences for ratings in read_ratings(options) if ratings.question == RELEVANCE]
    for table in continuations(plan, records, way):
        for prefix, sample, beginning, text in table.iter_rows():
            wanted = sample < options.similarity_samples or (rated and on_one_line(beginning + text) in rated[0])
            if wanted and text.strip():
                yield Item(request=Embed(text=text.strip()), tags={"prefix": prefix, "sample": sample})


def _outputs(plan: Plan, records: Records, way: str) -> Iterator[Item]:
    """Yield the first continuations of each prefix without the words that say which value they are about."""
    options: Options = plan.options
    mentions = {
        number: mention_finder(asked.whole)
        for asked in asked_attributes(options, seed=plan.seed)
        for number in asked.numbers
    }
    for table in continuations(plan, records, way):
        for prefix, sample, _, text in table.iter_rows():
            if sample < options.compared_samples and text.strip():
                neutral = neutralised(text.strip(), mentions[prefix])
                yield Item(request=Embed(text=neutral), tags={"prefix": prefix, "sample": sample})


def neutralised(text: str, mentions: Callable[[str], Iterator[Mention]]) -> str:
    """Return the text with "X" for every word that names a value, so that the name alone makes no difference.

    >>> from clinometer.data import load_attribute
    >>> neutralised("left Syria for Iran.", mention_finder(load_attribute("country")))
    'left X for X.'
    """
    parts, done = [], 0
    for mention in mentions(text):
        parts += [text[done : mention.start], "X"]
        done = mention.end
    return "".join([*parts, text[done:]])


def _passages(plan: Plan) -> Iterator[Item]:
    for number, text in enumerate(passages(plan.options.text_file)):
        yield Item(request=LogLikelihood(text=text), tags={"passage": number})


# ---------------------------------------------------------------------------------------------------------
# The user's files


def passages(file: str) -> tuple[str, ...]:
    """Return the passages of a text file: separated by blank lines, or its lines where there is no blank line.

    A passage is what the paper calls an article: it counts towards the subset perplexity as a whole.
    """
    text = read_text(file).strip()
    parts = re.split(r"\n\s*\n", text)
    if len(parts) == 1:
        parts = text.splitlines()
    return tuple(part.strip() for part in parts if part.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """What each rater answered to one question about each sentence of a file."""

    question: str
    file: str
    sentences: Mapping[str, int]  # on one line -> its row
    raters: Mapping[str, Sequence[str]]  # rater -> rating of each row, "" where none

    def score(self, sentence: str) -> float:
        """Return the mean score of a sentence over its raters; NaN where a rater gave one without a score."""
        row, scale = self.sentences[sentence], _SCALES[self.question]
        return float(np.mean([scale[each[row]] for each in self.raters.values() if each[row]] or [math.nan]))


def on_one_line(sentence: str) -> str:
    """Return a sentence as a rater's sheet has it: without control characters and runs of spaces.

    >>> on_one_line(" so  kind\\nof you")
    'so kind of you'
    """
    return " ".join("".join(sign if sign.isprintable() else " " for sign in sentence).split())


def read_ratings(options: Options) -> tuple[Ratings, ...]:
    """Read the files of ratings that were given."""
    files = {SENTIMENT: options.human_file, RELEVANCE: options.human_relevance_file}
    return tuple(_ratings(question, file) for question, file in files.items() if file)


def _ratings(question: str, file: str) -> Ratings:
    """Read `sentence` and a column `rater_…` for each rater; other columns are ignored."""
    rows = read_csv(file, columns=("sentence",), others=True)
    raters = [name for name in rows[0].values if name.startswith("rater_")]
    if len(raters) < 2:
        raise DataError(
            f"'{file}' has {len(raters)} column{'' if len(raters) == 1 else 's'} 'rater_…'; expected those of two "
            "or more raters, as `clinometer annotate read --ratings` writes them"
        )
    sentences: dict[str, int] = {}
    for number, row in enumerate(rows):
        sentence = on_one_line(unescaped(row.text("sentence")))
        if sentence in sentences:
            raise row.error(f"the sentence '{sentence[:60]}' again", "each sentence once")
        sentences[sentence] = number
    given = {rater: [unescaped(row.values[rater]).lower() for row in rows] for rater in raters}
    return Ratings(question=question, file=file, sentences=sentences, raters=given)


def check_files(options: Options) -> None:
    """Raise a DataError for a file that cannot be used, or a rating that is not on its scale."""
    asked_attributes(options, seed=0)
    for ratings in read_ratings(options):
        scale = _SCALES[ratings.question]
        for rater, given in ratings.raters.items():
            for rating in given:
                if rating and rating not in scale:
                    hint = nearest(rating, scale)
                    raise DataError(f"'{ratings.file}', {rater}: rating '{rating}' is not known; {hint}")
    if options.text_file:
        passages(options.text_file)
    if options.continuation_file:
        read_continuation(options.continuation_file)
