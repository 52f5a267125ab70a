"""Choenni, Shutova & van Rooij (2021): similarity of models, shifts, recall, emotions, from their files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from clinometer.data.printed_values import PrintedValue, load_printed_values
from clinometer.data.stereotypes_data import MULTIPLE, Lexicon, read_human_stereotypes
from clinometer.errors import DataError
from clinometer.metrics import emotion_profile, recall_at_k, representational_similarity
from clinometer.replication.items import Cell, Item, Outputs, Paper, Settings
from clinometer.replication.stereotypes_files import (
    CATEGORIES,
    EVERY_HUMAN,
    FINETUNED,
    HUMAN,
    MODELS,
    NINE,
    ORDER,
    PARTS,
    PRETRAINED,
    SOURCES,
    TUNED,
    Vectors,
    checked_entry,
    full_lexicon,
    ranked_words,
    vectors_of,
    word_lists,
)

# found by comparing: with the files in this order all 45 numbers of the model come out
EXCHANGED = (
    "XLMR-B: the rows printed as Reuters, FOX news and BreitBart are those of the files of FOX news, BreitBart "
    "and Reuters; so taken, they agree"
)
IN_FIGURE_3 = ("gender", "age")
IN_FIGURE_5 = "BERT-B"  # the caption names no model, §6 does


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
            one, other, ours = every[first], every[second], math.nan
            if one is not None and other is not None:
                ours = similarity_of(one, other, files=f"{name}, in '{outputs.folder / PRETRAINED}',")
            yield Cell(name=name, printed=printed.get(name, ""), ours=ours)


def similarity_of(one: Vectors, other: Vectors, *, files: str) -> float:
    """Return ρ over the groups that both have; with fewer than two, raise DataError that names the files."""
    both = [group for group in one if group in other]
    if len(both) < 2:
        raise DataError(f"{files} have {len(both)} groups in common; expected those of the paper's appendix C")
    return representational_similarity([one[each] for each in both], [other[each] for each in both]).mean


def shifts(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Recompute Table 4: Δρ of every category after one epoch on each source."""
    lists: dict[str, dict[str, list[str]]] = {}
    lexicon = full_lexicon(settings)

    for value in _table_4():
        model, source = value.model.split(", ")
        folder, category = TUNED.get(model, MODELS[model]), value.measure.split()[2]
        names = [f"{FINETUNED}/{folder}/{category}_{name}.json" for name in (folder, SOURCES[source])]
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
                    lists[path] = word_lists(outputs, path)
                listed.append(_profiles(absent, lists[path], lexicon))
            before, after = before | listed[0], after | listed[1]
            if not set(absent) <= set(before) & set(after):
                note = f"{model}: without {', '.join(absent)}, whose words take the full NRC lexicon (--nrc PATH)"
        yield Cell(
            name=f"{value.model}, {category}",
            printed=value.printed,
            ours=similarity_of(before, after, files=_both(outputs, *names)) - 1,
            note=note,
        )


def _both(outputs: Outputs, *names: str) -> str:
    return " and ".join(f"'{outputs.folder / name}'" for name in names)


def _table_4() -> list[PrintedValue]:
    return [each for each in load_printed_values("stereotypes") if each.measure.startswith("shift of")]


def _absent(outputs: Outputs, category: str, found: Vectors) -> list[str]:
    """Return the groups of a category that the authors' file of BERT-B has and this one has not."""
    name = f"{PRETRAINED}/{category}_{MODELS['BERT-B']}.json"
    whole = vectors_of(outputs, name) if (outputs.folder / name).is_file() else {}
    return [group for group in whole or {} if group not in found]


def _profiles(groups: Sequence[str], lists: Mapping[str, list[str]], lexicon: Lexicon) -> Vectors:
    """Return the vectors of groups by equation 4, each spelling once, as the authors count; none without words."""
    return {
        group: (100 * emotion_profile(set(lists[group]), lexicon, emotions=NINE, distinct=False).vector).tolist()
        for group in groups
        if group in lists and lexicon
    }


def mean_shifts(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Average Table 4's Δρ over the categories, as Figure 5 shows them of BERT-B (100 % of the articles)."""
    of_model: dict[str, list[Cell]] = {}
    for cell in shifts(outputs, settings):
        of_model.setdefault(cell.name.rpartition(", ")[0], []).append(cell)
    for model, cells in of_model.items():
        # which row of Table 4 the files belong to is no matter here; which groups they lack is
        notes = dict.fromkeys(cell.note for cell in cells if cell.note not in ("", EXCHANGED))
        if not model.startswith(f"{IN_FIGURE_5}, "):
            notes[f"Figure 5 is about {IN_FIGURE_5} (§6); the other models are means over Table 4's files"] = None
        yield Cell(name=model, ours=float(np.mean([cell.ours for cell in cells])), note="; ".join(notes))


def between_sources(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Compare BERT-B after tuning on one source with BERT-B after tuning on another (Figure 3)."""
    folder = f"{FINETUNED}/{MODELS['BERT-B']}"
    for category in IN_FIGURE_3:
        names = {source: f"{folder}/{category}_{file}.json" for source, file in SOURCES.items()}
        every = {source: vectors_of(outputs, name) for source, name in names.items()}
        for first, second in combinations(SOURCES, 2):
            one, other, ours = every[first], every[second], math.nan
            if one is not None and other is not None:
                ours = similarity_of(one, other, files=_both(outputs, names[first], names[second]))
            yield Cell(name=f"{category}, {first} and {second}", ours=ours)


def recall(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Recompute recall@k of the human stereotypes over all categories, and at 200 in each (Figure 1)."""
    gold, category_of = _human(outputs)
    for model, file in MODELS.items():
        ranked = ranked_words(outputs, f"mlm_output/{file}-corrected.json")
        yield from _recalled(model, ranked, gold)
        if not ranked or not gold:
            continue
        for category in dict.fromkeys(category_of.values()):
            part = {prompt: words for prompt, words in gold.items() if category_of[prompt] == category}
            yield Cell(name=f"{model}, {category}, recall@200", ours=recall_at_k(ranked, part, ks=[200])[200])


def recall_after_tuning(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Recompute recall@k of BERT-B after tuning on a part of a source's articles (Figure 4)."""
    gold, _ = _human(outputs)
    for part, folder in PARTS.items():
        for source, file in SOURCES.items():
            ranked = ranked_words(outputs, f"{folder}/{file}-corrected.json")
            note = (
                "" if ranked else "the words after tuning are in a copy of the authors' repository (--folder) only"
            )
            yield from _recalled(f"{source}, {part}", ranked, gold, note=note)


def _recalled(
    name: str, ranked: Mapping[str, list[str]], gold: Mapping[str, set[str]], *, note: str = ""
) -> Iterator[Cell]:
    whole = recall_at_k(ranked, gold, ks=(25, 200)) if ranked and gold else {}
    for k in (25, 200):
        yield Cell(name=f"{name}, recall@{k}", ours=whole.get(k, math.nan), note=note)


def _human(outputs: Outputs) -> tuple[dict[str, set[str]], dict[str, str]]:
    """Return the attributes of each prompt of the data set, and its category; none where the file is missing."""
    human = outputs.path(HUMAN)
    gold: dict[str, set[str]] = {}
    category_of: dict[str, str] = {}
    for row in read_human_stereotypes(human) if human else ():
        prompt = row.prompt.strip().lower()
        gold.setdefault(prompt, set()).add(row.attribute)
        category_of[prompt] = row.category
    return gold, category_of


def emotion_vectors(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Count the published vectors of pretrained models that equation 4 gives from the words beside them."""
    for model, file in MODELS.items():
        yield _vectors(outputs, settings, model, [f"{PRETRAINED}/{each}_{file}.json" for each in CATEGORIES])


def tuned_vectors(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Count the same of RoBERTa-B after tuning, on the three sources that Figure 6 shows."""
    folder = f"{FINETUNED}/{MODELS['RoBERTa-B']}"
    for source in ("Guardian", "Reuters", "FOX news"):
        names = [f"{folder}/{category}_{SOURCES[source]}.json" for category in CATEGORIES]
        yield _vectors(outputs, settings, f"RoBERTa-B, {source}", names)


def _vectors(outputs: Outputs, settings: Settings, of: str, names: Sequence[str]) -> Cell:
    """Count the vectors that come out; how many there are is in the files, and not printed in the paper."""
    lexicon = full_lexicon(settings)
    equal = number = 0
    for name in names:
        for group, entry in (outputs.json(name) or {}).items():
            vector, words = checked_entry(outputs, name, group, entry)
            order = NINE if len(vector) == len(NINE) else ORDER
            number += 1
            if lexicon:
                profile = emotion_profile(words, lexicon, emotions=order, distinct=False)
                equal += bool(np.allclose(100 * profile.vector, vector))
    return Cell(
        name=f"{of}, vectors that come out{f' of {number}' if number else ''}",
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


def engines(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Count the stereotypes of the data set by the search engine that offered them (Figure 8)."""
    file = outputs.path(EVERY_HUMAN)
    if file is None:
        yield Cell(name="stereotypes of each search engine")
        return
    counts = Counter(row.engine for row in read_human_stereotypes(file))
    for engine, number in counts.most_common():
        yield Cell(name="several engines" if engine == MULTIPLE else engine, ours=number)


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
            name="figure-3",
            about="similarity ρ of BERT-B after tuning on two sources, for gender and age",
            under=tuple(f"{FINETUNED}/{MODELS['BERT-B']}/{category}_" for category in IN_FIGURE_3),
            cells=between_sources,
        ),
        Item(
            name="figure-4",
            about="recall of human stereotypes by BERT-B after tuning on parts of the articles",
            under=(*(f"{folder}/" for folder in PARTS.values()), HUMAN),
            cells=recall_after_tuning,
        ),
        Item(
            name="figure-5",
            about="mean shift over the categories after tuning on all articles",
            under=(f"{FINETUNED}/", f"{PRETRAINED}/"),
            cells=mean_shifts,
        ),
        Item(
            name="figure-6",
            about="emotion vectors of RoBERTa-B after tuning, from the words behind them (equation 4)",
            under=(f"{FINETUNED}/{MODELS['RoBERTa-B']}/",),
            cells=tuned_vectors,
        ),
        Item(
            name="figure-8",
            about="search engines behind the data set",
            under=(EVERY_HUMAN,),
            cells=engines,
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
