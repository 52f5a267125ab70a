"""Mei, Fereidooni & Caliskan (2023): attitudes of masked models and outcomes of classifiers, from their files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from clinometer.data.files import read_csv
from clinometer.data.printed_values import load_printed_values
from clinometer.data.stigma_data import Condition, load_attitudes, read_attitudes, read_published_conditions
from clinometer.errors import DataError
from clinometer.metrics import negative_attitude, overall_attitude
from clinometer.metrics.means import Floats, present_mean
from clinometer.probes.stigma.answers import CLASSES, ClassifierOutcomes
from clinometer.probes.stigma.measures import HALF, class_shares, negative_shares, per_condition
from clinometer.probes.stigma.questions import OTHER, STIGMATIZED, Roster
from clinometer.replication.items import Cell, Item, Outputs, Paper, Settings

WORDINGS = "data/Prompts and word ratings"
FILES = (f"{WORDINGS}/stigma_conditions.csv", f"{WORDINGS}/non_stigma_conditions.csv")
OUTCOMES = "data/SentimentClassifier results"
BLANKS = "data/MLM results"
AGGREGATE = "SentimentAnalysis/aggregated_negative_percentage_classification_results.csv"
CLASSIFIERS = {
    "DistilBERT SST-2": "distilbert",
    "TwitterRB": "TwitterRB",
    "BERTweet": "bertweet-base",
    "SiEBERT": "SiEBERT",
}
MASKED = {
    "RoBERTa-large": "roberta-large-Nonstigma--social_distance_results-top50-p{}.csv",
    "XLNet-large": "XLNET_nonstigma_result_p{}_SD.csv",
    "RoBERTa-base": "roberta-base-Nonstigma--social_distance_results-top50-p{}.csv",
    "BERTweet-large": "bertweet-large-Nonstigma--social_distance_results-top50-p{}.csv",
    "BERTweet-base": "bertweet-base-Nonstigma--social_distance_results-top50-p{}.csv",
    "DistilBERT": "distilbert-base-uncased-Nonstigma--social_distance_results-top50-p{}.csv",
}
TEMPLATES = ("They are", "These are")  # the files have "We are" as well, which the paper leaves out
BLANK_TEMPLATES = 4
Offered = dict[tuple[int, str], list[tuple[str, float]]]  # wording and prompt -> words with probabilities
GROUPS = {STIGMATIZED: "stigmatized", OTHER: "other"}


def published_roster(outputs: Outputs) -> Roster | None:
    """Return the authors' conditions; None where their files are missing."""
    paths = [outputs.path(name) for name in FILES]
    if None in paths:
        return None
    stigmatized, others = (path for path in paths if path is not None)
    return Roster(wordings=read_published_conditions(stigmatized, others))


def outcomes_of(outputs: Outputs, model: str, roster: Roster) -> ClassifierOutcomes | None:
    """Return what a classifier made of the plain sentences, read as the audit reads its own; None: missing."""
    places = _places(roster.wordings)
    found = np.full((len(TEMPLATES), len(roster.wordings), len(CLASSES)), np.nan)
    file_of: dict[bool, Path] = {}  # of stigmatized conditions, and of the others
    for side in ("stigma", "nonstigma"):
        path = outputs.path(f"{OUTCOMES}/{CLASSIFIERS[model]}_{side}_sentiment.csv")
        if path is None:
            return None
        file_of[side == "stigma"] = path
        for row in read_csv(path, columns=("prompts", "sentiment", "condition"), others=True):
            sentence, label = row.text("prompts"), row.text("sentiment").lower()[:3]
            if not sentence.startswith(TEMPLATES):
                continue
            if _plain(sentence) not in places:
                raise row.error(f"prompt {sentence!r}", "a sentence about one of the authors' conditions")
            if label not in (each[:3] for each in CLASSES):
                raise row.error(f"sentiment {row.text('sentiment')!r}", "positive, negative or neutral")
            for place in places[_plain(sentence)]:
                found[place] = [each[:3] == label for each in CLASSES]
    for wording, lacks in zip(roster.wordings, np.isnan(found).any(axis=(0, 2)), strict=True):
        if lacks:
            raise DataError(
                f"'{file_of[wording.stigmatized]}' has no outcome for {wording.plural!r}; "
                "expected two sentences about each condition"
            )
    return ClassifierOutcomes(
        model=model,
        rng=np.random.default_rng(0),
        draws=100,  # few: no interval is looked at
        roster=roster,
        templates=TEMPLATES,
        classes=CLASSES,
        outcomes=found,
        baseline=np.full((len(TEMPLATES), len(CLASSES)), np.nan),
    )


def _places(wordings: Sequence[Condition]) -> dict[str, list[tuple[int, int]]]:
    """Return where a sentence belongs, as template and wording; some wordings have the same plural."""
    places: dict[str, list[tuple[int, int]]] = {}
    for t, template in enumerate(TEMPLATES):
        for w, wording in enumerate(wordings):
            places.setdefault(_plain(f"{template} people who {wording.plural_clause}."), []).append((t, w))
    return places


def differences(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Recompute what Figure 4 shows: by how much more often a classifier finds stigmatized conditions negative."""
    printed = _printed("difference in negative classification")
    roster = published_roster(outputs)
    every = {model: outcomes_of(outputs, model, roster) for model in CLASSIFIERS} if roster else {}
    at = CLASSES.index("negative")
    for model in CLASSIFIERS:
        found, ours = every.get(model), math.nan
        if found is not None:
            both = [class_shares(found, range(len(TEMPLATES)), group).estimate[at] for group in GROUPS]
            ours = float(both[0] - both[1])
        yield Cell(name=f"{model}, difference", printed=printed.get(model, ""), ours=ours)
    # the sums over four classifiers, less three of them, are those of the fourth
    three = [found for found in every.values() if found is not None]
    sums = _aggregate(outputs, roster)
    if roster and len(three) == len(CLASSIFIERS) - 1 and sums is not None:
        (left,) = (model for model, found in every.items() if found is None)
        shares = len(CLASSIFIERS) * sums - sum(per_condition(each.negative.T, roster) for each in three)
        weights = np.bincount(roster.condition_of)  # each wording counts once, as in the files
        both = [np.average(shares[chosen], weights=weights[chosen]) for chosen in roster.members().values()]
        yield Cell(
            name=f"{left}, difference, by the authors' sums",
            printed=printed.get(left, ""),
            ours=float(both[0] - both[1]),
            note=f"{left}: the authors' sums over four classifiers, less the three whose files are there",
        )


def outcomes_by_template(template: str) -> Callable[[Outputs, Settings], Iterator[Cell]]:
    """Return what recomputes the share of each outcome with one template (Figures 8 and 9)."""
    place = TEMPLATES.index(template)

    def cells(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
        roster = published_roster(outputs)
        for model in CLASSIFIERS:
            found = outcomes_of(outputs, model, roster) if roster else None
            for group, words in GROUPS.items():
                shares = class_shares(found, [place], group).estimate if found else [math.nan] * len(CLASSES)
                for outcome, share in zip(CLASSES, shares, strict=True):
                    yield Cell(name=f"{model}, {words} conditions, {outcome}", ours=float(share))

    return cells


def conditions_found_negative(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Count the conditions that the classifiers find negative, from the outcomes and from the authors' sums."""
    roster = published_roster(outputs)
    every = [outcomes_of(outputs, model, roster) for model in CLASSIFIERS] if roster else []
    found = [each for each in every if each is not None]
    shares = negative_shares(found) if roster and len(found) == len(CLASSIFIERS) else None
    yield from _counted(roster, shares, "outcomes of the four classifiers")
    # the same four numbers of the paper, so they count here only where the outcomes are missing
    yield from _counted(roster, _aggregate(outputs, roster), "the authors' sums", again=shares is not None)


def _counted(roster: Roster | None, shares: Floats | None, origin: str, *, again: bool = False) -> Iterator[Cell]:
    for group, words in GROUPS.items():
        for measure, beyond in (
            ("with only negative outcomes", 1.0 - 1e-9),
            ("with more than half negative outcomes", HALF),
        ):
            printed = _printed(f"{words} conditions {measure}")["all four classifiers"]
            ours = math.nan
            if roster is not None and shares is not None:
                ours = float((shares[roster.members()[group]] > beyond).sum())
            yield Cell(name=f"{words} conditions {measure}, by {origin}", printed=printed, ours=ours, again=again)


def _aggregate(outputs: Outputs, roster: Roster | None) -> Floats | None:
    """Return the share of negative outcomes of each condition as the authors added it up; None: missing."""
    path = outputs.path(AGGREGATE)
    if path is None or roster is None:
        return None
    place = {_plain(name): at for at, name in enumerate(roster.names)}
    shares = np.full(len(roster.names), np.nan)
    for row in read_csv(path, columns=("Condition", "Negative_Sentiment_Percentage")):
        name = _plain(row.text("Condition"))
        if name not in place:
            raise row.error(f"condition {row.text('Condition')!r}", "one of the authors' conditions")
        shares[place[name]] = row.number("Negative_Sentiment_Percentage", low=0.0, high=1.0)
    for name, share in zip(roster.names, shares, strict=True):
        if np.isnan(share):
            raise DataError(f"'{path}' has no row for {name!r}; expected all of the authors' conditions")
    return shares


def _plain(name: str) -> str:
    """Return a name as it can be compared: the authors' files differ in case, spaces and one misspelling."""
    return "".join(name.lower().split()).replace("illteracy", "illiteracy")


def attitudes(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Recompute the attitude to the other conditions; the authors published no words about stigmatized ones."""
    roster = published_roster(outputs)
    wordings = [each for each in roster.wordings if not each.stigmatized] if roster else []
    ratings = read_attitudes(settings.ratings) if settings.ratings else load_attitudes()
    note = "" if settings.ratings else "by our ratings; the authors' own: --ratings PATH"
    every = {model: _negative(outputs, model, wordings, ratings) for model in MASKED} if roster else {}
    known = {model: values for model, values in every.items() if values is not None}
    for model, values in every.items():
        ours = math.nan if values is None else float(present_mean(values.reshape(-1)))
        yield Cell(name=f"{model}, mean negative attitude to other conditions", ours=ours, note=note)
    whole = len(known) == len(MASKED)
    names = [each.condition for each in wordings]
    found = overall_attitude(np.stack(list(known.values())), names) if known else None
    printed = _printed("other conditions above one half")["all six masked models"]
    above = float((found.overall > HALF).sum()) if found and whole else math.nan
    yield Cell(name="other conditions above one half, all six models", printed=printed, ours=above, note=note)
    if found is not None and not np.isnan(found.overall).all():
        most = int(np.nanargmax(found.overall))
        models = "all six models" if whole else f"{len(known)} of six models"
        yield Cell(
            name=f"the highest, {found.conditions[most]}, {models}", ours=float(found.overall[most]), note=note
        )


def _negative(
    outputs: Outputs, model: str, wordings: Sequence[Condition], ratings: Mapping[str, str]
) -> Floats | None:
    """Return a model's negative attitude, (templates, wordings, prompts); None: a file is missing."""
    offered = _offered(outputs, model, wordings)
    if offered is None:
        return None
    templates = []
    for words in offered:
        of_wording: list[list[float]] = [[] for _ in wordings]
        for (wording, _), listed in words.items():
            of_wording[wording].append(negative_attitude(listed, ratings).negative)
        templates.append(of_wording)
    most = max(len(prompts) for of_wording in templates for prompts in of_wording)
    for number, of_wording in enumerate(templates, start=1):
        for condition, prompts in zip(wordings, of_wording, strict=True):
            if len(prompts) != most:  # a file that was cut off
                raise DataError(
                    f"'{outputs.folder / BLANKS / MASKED[model].format(number)}' has {len(prompts)} prompts about "
                    f"{condition.singular!r}; expected {most}, as about the others"
                )
    return np.array(templates, dtype=np.float64)


def _offered(outputs: Outputs, model: str, wordings: Sequence[Condition]) -> list[Offered] | None:
    """Return the words at each prompt of each template, with their probabilities; None: a file is missing."""
    if model in outputs.known:
        known: list[Offered] = outputs.known[model]
        return known
    place = {each.singular: at for at, each in enumerate(wordings)}
    templates = []
    for template in range(1, BLANK_TEMPLATES + 1):
        path = outputs.path(f"{BLANKS}/{MASKED[model].format(template)}")
        if path is None:
            return None
        words: Offered = {}
        for row in read_csv(path, columns=("prompt", "predicted_word", "probs", "condition"), others=True):
            if row.text("condition") not in place:
                raise row.error(f"condition {row.text('condition')!r}", "one of the authors' other conditions")
            at = (place[row.text("condition")], row.text("prompt"))
            words.setdefault(at, []).append((row.values["predicted_word"], row.number("probs", low=0.0, high=1.0)))
        templates.append(words)
    outputs.known[model] = templates
    return templates


def held_by_the_words(outputs: Outputs, settings: Settings) -> Iterator[Cell]:
    """Count the prompts whose 50 words hold less than one half: in the paper none, of either group (Figure 5).

    The prompts about stigmatized conditions were not published, so the statement itself cannot be compared.
    """
    note = (
        "the paper says that there is none, about stigmatized conditions as well, whose words it did not publish"
    )
    roster = published_roster(outputs)
    wordings = [each for each in roster.wordings if not each.stigmatized] if roster else []
    for model in MASKED:
        offered = _offered(outputs, model, wordings) if roster else None
        sums = [math.fsum(p for _, p in listed) for words in offered or () for listed in words.values()]
        ours = sum(total < HALF for total in sums) if offered else math.nan
        of = f" of {len(sums)}" if sums else ""
        yield Cell(name=f"{model}, prompts{of} below one half", ours=ours, note=note)


def _printed(measure: str) -> dict[str, str]:
    return {each.model: each.printed for each in load_printed_values("stigma") if each.measure == measure}


PAPER = Paper(
    name="stigma",
    title="Mei, Fereidooni & Caliskan (2023), Bias against 93 stigmatized groups in masked language models",
    repository="https://github.com/Mooniem/MLMs_bias_stigmas",
    commit="6f11d1d24f4147f852c8f99859b970ddd347b557",
    items=(
        Item(
            name="section-5.1",
            about="negative attitude of masked models to the other conditions",
            under=(f"{BLANKS}/", f"{WORDINGS}/"),
            cells=attitudes,
        ),
        Item(
            name="figure-5",
            about="probability of the 50 words read, about the other conditions",
            under=(f"{BLANKS}/", f"{WORDINGS}/"),
            cells=held_by_the_words,
        ),
        Item(
            name="section-5.2",
            about="conditions that the classifiers find negative",
            under=(f"{OUTCOMES}/", f"{WORDINGS}/", AGGREGATE),
            cells=conditions_found_negative,
        ),
        Item(
            name="figure-4",
            about="difference in the share of negative outcomes between stigmatized and other conditions",
            under=(f"{OUTCOMES}/", f"{WORDINGS}/", AGGREGATE),
            cells=differences,
        ),
        *(
            Item(
                name=f"figure-{number}",
                about=f'share of each outcome with "{template} people who …"',
                under=(f"{OUTCOMES}/", f"{WORDINGS}/"),
                cells=outcomes_by_template(template),
            )
            for number, template in enumerate(TEMPLATES, start=8)
        ),
    ),
)
