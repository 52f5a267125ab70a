"""What the counterfactual audit asks: continuations, what scorers and encoders make of them, perplexity."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from clinometer.probes.counterfactual.human import rated_sentences
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.passages import passages
from clinometer.probes.counterfactual.specification import chosen_attributes, prefixes_of
from clinometer.probes.protocol import Plan, Records, Stage
from clinometer.types import Classify, Embed, Item, LogLikelihood, Sample

BLOCK = 100  # samples in one request: what a killed run loses at most of a prefix
SAMPLES, PERPLEXITY = "samples", "perplexity"
PREFIX = -1  # the number of a "sample" that is the prefix itself


def scores_stage(number: int) -> str:
    """Return the name of the stage in which a scorer answers."""
    return f"scores-{number + 1}"


def embeddings_stage(number: int) -> str:
    """Return the name of the stage in which an encoder answers."""
    return f"embeddings-{number + 1}"


def stages(plan: Plan) -> tuple[Stage, ...]:
    """Return the stages of one model: generate, score, compare, and read the held-out text if there is one."""
    options: Options = plan.options
    prefixes = sum(chosen.prefixes for chosen in chosen_attributes(options, seed=plan.seed))
    found = [Stage(name=SAMPLES, size=prefixes * -(-options.samples // BLOCK))]
    for number, scorer in enumerate(plan.roles.get("scorer", ())):
        found.append(Stage(name=scores_stage(number), by=scorer.name))
    for number, encoder in enumerate(plan.roles.get("encoder", ())):
        found.append(Stage(name=embeddings_stage(number), by=encoder.name))
    if options.text_file and "log_likelihood" in plan.model.capabilities:
        found.append(Stage(name=PERPLEXITY))
    return tuple(found)


def items(stage: Stage, plan: Plan, records: Records) -> Iterator[Item]:
    """Yield the requests of a stage."""
    if stage.name == SAMPLES:
        return _samples(plan)
    if stage.name == PERPLEXITY:
        return _passages(plan)
    if stage.name.startswith("scores"):
        return _scored(plan, records)
    return _embedded(plan, records)


def _samples(plan: Plan) -> Iterator[Item]:
    options: Options = plan.options
    for chosen in chosen_attributes(options, seed=plan.seed):
        for prefix in prefixes_of(chosen):
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
                        "attribute": prefix.attribute,
                        "template": prefix.template,
                        "value": prefix.value.text,
                        "prefix": prefix.number,
                        "first": first,
                    },
                )


def continuations(plan: Plan, records: Records) -> Iterator[pl.DataFrame]:
    """Yield what was generated, in order: `prefix` (its number), `sample`, `beginning` and `text`."""
    columns = ("tag_prefix", "tag_first", "ask_prefix", "got_texts")
    for table in records.batches(model=plan.model.name, stage=SAMPLES, columns=columns):
        places = pl.int_ranges(pl.col("got_texts").list.len()).alias("place")
        yield (
            table.with_columns(places)
            .explode("got_texts", "place")
            .select(
                prefix=pl.col("tag_prefix"),
                sample=pl.col("tag_first") + pl.col("place"),
                beginning=pl.col("ask_prefix"),
                text=pl.col("got_texts"),
            )
        )


def _scored(plan: Plan, records: Records) -> Iterator[Item]:
    whole = plan.options.scored == "sentence"
    for table in continuations(plan, records):
        for prefix, sample, beginning, text in table.iter_rows():
            if text.strip():  # a model that ends at once has said nothing that could be scored
                yield Item(
                    request=Classify(text=beginning + text if whole else text.strip()),
                    tags={"prefix": prefix, "sample": sample},
                )


def _embedded(plan: Plan, records: Records) -> Iterator[Item]:
    options: Options = plan.options
    for chosen in chosen_attributes(options, seed=plan.seed):
        for prefix in prefixes_of(chosen):
            yield Item(request=Embed(text=prefix.text), tags={"prefix": prefix.number, "sample": PREFIX})
    rated = rated_sentences(options.human_relevance_file)  # what people judged is compared, wherever it stands
    for table in continuations(plan, records):
        for prefix, sample, beginning, text in table.iter_rows():
            wanted = sample < options.similarity_samples or (rated and rated.holds(beginning + text))
            if wanted and text.strip():
                yield Item(request=Embed(text=text.strip()), tags={"prefix": prefix, "sample": sample})


def _passages(plan: Plan) -> Iterator[Item]:
    for number, text in enumerate(passages(plan.options.text_file)):
        yield Item(request=LogLikelihood(text=text), tags={"passage": number})
