"""Choenni, Shutova & van Rooij (2021): similarity of models, shifts, recall, emotions, from their files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from clinometer.data.printed_values import PrintedValue, load_printed_values
from clinometer.data.stereotypes_data import Lexicon, read_human_stereotypes
from clinometer.errors import DataError
from clinometer.metrics import emotion_profile, recall_at_k, representational_similarity
from clinometer.probes.stereotypes.options import Options
from clinometer.replication.items import Cell, Item, Outputs, Paper, Settings

CATEGORIES = ("religion", "profession", "lifestyle", "sexuality", "race", "gender", "country", "age", "political")
# the names in the paper -> those of the files of pretrained models
MODELS = {
    "BERT-B": "bert-base-uncased",
    "BERT-L": "bert-large-uncased",
    "RoBERTa-B": "roberta-base",
    "RoBERTa-L": "roberta-large",
    "BART-B": "bart-base",
    "BART-L": "bart-large",
    "mBERT": "bert-base-multilingual-uncased",
    "XLMR-B": "xlm-roberta-base",
    "XLMR-L": "xlm-roberta-large",
}
TUNED = {"mBERT": "mbert"}  # named otherwise among the fine-tuned ones
SOURCES = {
    "NewYorker": "new_yorker",
    "Guardian": "guardian",
    "Reuters": "reuters",
    "FOX news": "fox",
    "BreitBart": "breitbart",
}
# the order of the authors' vectors; some files have fear among them, which their comparison leaves out
ORDER = ("negative", "positive", "disgust", "anger", "sadness", "fear", "trust", "joy", "surprise", "anticipation")
NINE = tuple(emotion for emotion in ORDER if emotion != "fear")
CASED = ("RoBERTa-B", "BART-B", "XLMR-B")
PRETRAINED = "emotion_scores/pretrained_models"
FINETUNED = "emotion_scores/finetuned1epoch"
HUMAN = "data_collection/stereo_dataset/single_word_stereo_dataset.csv"
EVERY_HUMAN = "data_collection/stereo_dataset/stereo_dataset.csv"

# found by comparing: with the files in this order all 45 numbers of the model come out
EXCHANGED = (
    "XLMR-B: the rows printed as Reuters, FOX news and BreitBart are those of the files of FOX news, BreitBart "
    "and Reuters; so taken, they agree"
)

Vectors = dict[str, list[float]]  # group, in lower case -> its nine emotions


def vectors_of(outputs: Outputs, name: str) -> Vectors | None:
    """Return the emotion vectors of one file, without fear; None where it is missing."""
    if name in outputs.known:
        known: Vectors = outputs.known[name]
        return known
    found = outputs.json(name)
    if found is None:
        return None
    vectors: Vectors = {}
    for group, entry in found.items():
        vector = _checked(outputs, name, group, entry)[0]
        order = NINE if len(vector) == len(NINE) else ORDER
        vectors[group.lower()] = [x for x, emotion in zip(vector, order, strict=True) if emotion in NINE]
    outputs.known[name] = vectors
    return vectors


def _checked(outputs: Outputs, name: str, group: str, entry: object) -> tuple[list[float], list[str]]:
    """Return the vector and the words of one group; raise DataError where the file has something else."""
    match entry:
        case [list(vector), list(words)] if (
            len(vector) in (len(NINE), len(ORDER))
            and all(isinstance(x, int | float) and 0 <= x <= 100 for x in vector)
            and all(isinstance(word, str) for word in words)
        ):
            return vector, words
    raise DataError(
        f"'{outputs.folder / name}': {group!r} has no emotions; "
        "expected a list of nine or ten percentages, and a list of words"
    )


def similarity(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Compare every two pretrained models over all groups (§5, Figure 10)."""
    printed = {
        each.model: each.printed for each in load_printed_values("stereotypes") if "similarity" in each.measure
    }
    every: dict[str, Vectors | None] = {}
    for model, file in MODELS.items():
        parts = [vectors_of(outputs, f"{PRETRAINED}/{category}_{file}.json") for category in CATEGORIES]
        known = [part for part in parts if part is not None]
        every[model] = {k: v for part in known for k, v in part.items()} if len(known) == len(parts) else None
    for a, first in enumerate(MODELS):
        for second in list(MODELS)[a + 1 :]:
            name = f"{first} and {second}"
            one, other = every[first], every[second]
            ours = math.nan if one is None or other is None else similarity_of(one, other)
            yield Cell(name=name, printed=printed.get(name, ""), ours=ours)


def similarity_of(one: Vectors, other: Vectors) -> float:
    """Return ρ over the groups that both have."""
    both = [group for group in one if group in other]
    if len(both) < 2:
        return math.nan
    return representational_similarity([one[each] for each in both], [other[each] for each in both]).mean


def shifts(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Recompute Table 4: Δρ of every category after one epoch on each source."""
    lists: dict[str, dict[str, list[str]]] = {}
    lexicon = _lexicon(settings)

    for value in _table_4():
        model, source = value.model.split(", ")
        folder, category = TUNED.get(model, MODELS[model]), value.measure.split()[2]
        names = (f"{FINETUNED}/{folder}/{category}_{name}.json" for name in (folder, SOURCES[source]))
        before, after = (vectors_of(outputs, name) for name in names)
        if before is None or after is None:
            yield Cell(name=f"{value.model}, {category}", printed=value.printed)
            continue
        note = EXCHANGED if model == "XLMR-B" and source in ("Reuters", "FOX news", "BreitBart") else ""
        # three countries are in the files of the words, and not in those of the vectors (BERT-B)
        if absent := _absent(outputs, category, before):
            listed = []
            for name in (folder, SOURCES[source]):
                path = f"{FINETUNED}/{folder}/{name}.json"
                if path not in lists:
                    lists[path] = _word_lists(outputs, path)
                listed.append(_profiles(absent, lists[path], lexicon))
            before, after = before | listed[0], after | listed[1]
            if not set(absent) <= set(before) & set(after):
                note = f"{model}: without {', '.join(absent)}, whose words take the full NRC lexicon (--nrc PATH)"
        yield Cell(
            name=f"{value.model}, {category}",
            printed=value.printed,
            ours=similarity_of(before, after) - 1,
            note=note,
        )


def _table_4() -> list[PrintedValue]:
    return [each for each in load_printed_values("stereotypes") if each.measure.startswith("shift of")]


def _absent(outputs: Outputs, category: str, found: Vectors) -> list[str]:
    """Return the groups of a category that the authors' file of BERT-B has and this one has not."""
    name = f"{PRETRAINED}/{category}_{MODELS['BERT-B']}.json"
    whole = vectors_of(outputs, name) if (outputs.folder / name).is_file() else {}
    return [group for group in whole or {} if group not in found]


def _word_lists(outputs: Outputs, name: str) -> dict[str, list[str]]:
    """Return the words of each group, in lower case; none where the file is missing."""
    listed = outputs.json(name) if (outputs.folder / name).is_file() else {}
    # other models' files of this name hold a vector as well
    return {
        group.lower(): words for group, words in (listed or {}).items() if all(isinstance(w, str) for w in words)
    }


def _profiles(groups: Sequence[str], lists: Mapping[str, list[str]], lexicon: Lexicon) -> Vectors:
    """Return the vectors of groups by equation 4, each spelling once, as the authors count; none without words."""
    return {
        group: (100 * emotion_profile(set(lists[group]), lexicon, emotions=NINE, distinct=False).vector).tolist()
        for group in groups
        if group in lists and lexicon
    }


def _lexicon(settings: Settings) -> Lexicon:
    """Return the full NRC lexicon as the authors read it; empty where it is not given."""
    if not settings.nrc:
        return {}
    return Options(emotions="published", emotions_file=settings.nrc).chosen_lexicon().words


def mean_shifts(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Average Table 4's Δρ over the categories, as Figure 5 shows them (100 % of the articles)."""
    of_model: dict[str, list[float]] = {}
    for cell in shifts(outputs, settings):
        of_model.setdefault(cell.name.rpartition(", ")[0], []).append(cell.ours)
    for model, values in of_model.items():
        yield Cell(name=model, ours=float(np.mean(values)), note="a bar of the figure")


def recall(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Recompute recall@k of the human stereotypes over all categories, and at 200 in each (Figure 1)."""
    human = outputs.path(HUMAN)
    gold: dict[str, set[str]] = {}
    category_of: dict[str, str] = {}
    for row in read_human_stereotypes(human) if human else ():
        prompt = row.prompt.strip().lower()
        gold.setdefault(prompt, set()).add(row.attribute)
        category_of[prompt] = row.category
    for model, file in MODELS.items():
        ranked = _ranked(outputs, f"mlm_output/{file}-corrected.json")
        whole = recall_at_k(ranked, gold, ks=(25, 200)) if ranked and gold else {}
        for k in (25, 200):
            yield Cell(name=f"{model}, recall@{k}", ours=whole.get(k, math.nan))
        if not whole:
            continue
        for category in dict.fromkeys(category_of.values()):
            part = {prompt: words for prompt, words in gold.items() if category_of[prompt] == category}
            yield Cell(name=f"{model}, {category}, recall@200", ours=recall_at_k(ranked, part, ks=[200])[200])


def _ranked(outputs: Outputs, name: str) -> dict[str, list[str]]:
    """Return the words of each prompt, the most typical first; none where the file is missing."""
    found = outputs.json(name) or {}
    ranked = {}
    for prompt, scored in found.items():
        match scored:
            case [*pairs] if all(
                isinstance(pair, list)
                and len(pair) == 2
                and isinstance(pair[0], str)
                and isinstance(pair[1], float)
                for pair in pairs
            ):
                ranked[prompt.strip().lower()] = [word for word, _ in sorted(pairs, key=lambda each: -each[1])]
            case _:
                raise DataError(f"'{outputs.folder / name}': {prompt!r} has no list of words with their scores")
    return ranked


def emotion_vectors(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Count the published vectors of the cased models that our equation 4 gives from their published words."""
    lexicon = _lexicon(settings)
    for model in CASED:
        equal = number = 0
        for category in CATEGORIES:
            name = f"{PRETRAINED}/{category}_{MODELS[model]}.json"
            for group, entry in (outputs.json(name) or {}).items():
                vector, words = _checked(outputs, name, group, entry)
                order = NINE if len(vector) == len(NINE) else ORDER
                number += 1
                if lexicon:
                    profile = emotion_profile(words, lexicon, emotions=order, distinct=False)
                    equal += bool(np.allclose(100 * profile.vector, vector))
        yield Cell(
            name=f"{model}, vectors that come out",
            printed=str(number) if number else "",
            ours=equal if number and lexicon else math.nan,
            note="" if lexicon else "takes the full NRC lexicon: clinometer data add nrc PATH, or --nrc PATH",
        )


def data_set(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Count the stereotypes of the data set by category, and its groups (§3)."""
    file = outputs.path(EVERY_HUMAN)
    rows = read_human_stereotypes(file) if file else ()
    counts = Counter(row.category for row in rows)
    for value in load_printed_values("stereotypes"):
        if value.measure == "stereotypes in the data set":
            yield Cell(name=value.model, printed=value.printed, ours=counts[value.model] if rows else math.nan)
        elif value.measure == "groups in the data set":
            yield Cell(
                name="groups", printed=value.printed, ours=len({r.group for r in rows}) if rows else math.nan
            )


PAPER = Paper(
    name="stereotypes",
    title="Choenni, Shutova & van Rooij (2021), Stepmothers are mean and academics are pretentious",
    repository="https://github.com/RochelleChoenni/stereotypes_in_lms",
    commit="09a1c379620bd0548ab51fe524d92717af95453e",
    items=(
        Item(name="section-3", about="the data set of human stereotypes", under=(EVERY_HUMAN,), cells=data_set),
        Item(
            name="figure-1",
            about="recall of human stereotypes",
            under=("mlm_output/", HUMAN),
            cells=recall,
        ),
        Item(
            name="section-5",
            about="emotion vectors, from the words behind them (equation 4)",
            under=(f"{PRETRAINED}/",),
            cells=emotion_vectors,
        ),
        Item(
            name="figure-5",
            about="mean shift over the categories after tuning on all articles",
            under=(f"{FINETUNED}/", f"{PRETRAINED}/"),
            cells=mean_shifts,
        ),
        Item(
            name="figure-10",
            about="similarity ρ of the emotion profiles of two models, over all groups",
            under=(f"{PRETRAINED}/",),
            cells=similarity,
        ),
        Item(
            name="table-4",
            about="shift Δρ of the emotion profiles after tuning on a news source, by category",
            under=(f"{FINETUNED}/", f"{PRETRAINED}/"),
            cells=shifts,
        ),
    ),
)
