"""Which models of a run are before and after, which is the control, what training changed, and in which words.

A checkpoint that Clinometer made names the weights it began with in `ModelInfo.tuning["base"]`. It is mitigated,
and not just tuned on a corpus, when it also names the attribute whose values it was trained to treat alike.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from clinometer.probes.kit.asking import BEFORE, CONTROL, Units
from clinometer.probes.kit.compare import Compared, compare_all, sure_of
from clinometer.probes.kit.numbers import (
    ABSENT,
    Caption,
    Label,
    certainty,
    info,
    signed,
    tables_of,
    warning,
    written,
)
from clinometer.probes.kit.verdicts import UNTOLD
from clinometer.stats import critical_value, independent_change, training_noise, with_training_noise
from clinometer.types import ChangeVerdict, Figure, Finding, Findings, ModelInfo, Notice

WORSE = 1.05  # times the perplexity before, by the lower limit of its interval: a cost that a reader is warned of
AS_GIVEN = "as given"
# the order in which tables and charts name them
METHODS = (AS_GIVEN, CONTROL, "embedding", "sentiment", "swapped", "counterexamples")


# settings of a mitigation that its checkpoints share; a card tells those that are not the usual ones
SHARED_SETTINGS = (
    "unit",
    "ordinary",
    "steps",
    "batch",
    "learning_rate",
    "window",
    "masked_share",
    "hidden",
    "lora",
    "dtype",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A model and a checkpoint that began with it, by their numbers among the models of the run."""

    before: int
    after: int


def pairs_of(models: Sequence[ModelInfo]) -> tuple[Pair, ...]:
    """Return every checkpoint whose base is among the models, by base, then strength (or amount), then method.

    A base that was loaded twice, in two precisions, is paired with the checkpoint of its own precision.
    """
    found = []
    for after, model in enumerate(models):
        base = model.tuning.get("base", "")
        bases = [i for i, other in enumerate(models) if i != after and base and other.weights == base]
        if bases:
            found.append(Pair(before=min(bases, key=lambda i: models[i].dtype != model.dtype), after=after))
    return tuple(sorted(found, key=lambda pair: (pair.before, *_order(models[pair.after]), pair.after)))


def _order(model: ModelInfo) -> tuple[float, str]:
    amount = amount_number(model.tuning.get("amount", ""))
    return math.inf if amount is None else amount, model.tuning.get("method", "")


def amount_number(amount: str) -> float | None:
    """Read an amount of data, or a strength.

    >>> amount_number("0.25"), amount_number("25 %"), amount_number("1 epoch")
    (0.25, 0.25, None)
    """
    text = amount.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def is_mitigated(model: ModelInfo) -> bool:
    """Tell whether a model was trained to treat the values of an attribute alike, or as the control of one."""
    return "attribute" in model.tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint of a model of the run; `model`, `base` and `control` are numbers among the models."""

    name: str
    base_name: str
    model: int
    base: int
    control: int | None  # the same training without the fairness loss; of a control itself: None
    control_name: str
    method: str
    strength: Label  # λ: a number where all strengths of the run are numbers; NaN: the method has none
    attribute: str  # whose influence was to be reduced; "": tuned for something else

    @property
    def labels(self) -> dict[str, Label]:
        """Which checkpoint a row is about."""
        return {"model": self.name, "method": self.method, "strength": self.strength}

    @property
    def against(self) -> dict[str, int]:
        """The models that it is compared with."""
        return {BEFORE: self.base} | ({} if self.control is None else {CONTROL: self.control})


def checkpoints_of(models: Sequence[ModelInfo]) -> tuple[Checkpoint, ...]:
    """Return every checkpoint whose base is among the models, by base, attribute, method and strength."""
    pairs = pairs_of(models)
    amounts = {pair.after: _strength(models[pair.after]) for pair in pairs}
    numbered = None not in amounts.values()
    found = []
    for pair in pairs:  # they come by strength
        tuning, amount = models[pair.after].tuning, amounts[pair.after]
        control = _control(pair, models, pairs)
        found.append(
            Checkpoint(
                name=models[pair.after].name,
                base_name=models[pair.before].name,
                model=pair.after,
                base=pair.before,
                control=control,
                control_name="" if control is None else models[control].name,
                method=tuning.get("method", "") or "tuned",
                strength=amount if numbered and amount is not None else tuning.get("amount", "") or ABSENT,
                attribute=tuning.get("attribute", ""),
            )
        )

    def place(each: Checkpoint) -> tuple[int, str, int, str]:
        known = METHODS.index(each.method) if each.method in METHODS else len(METHODS)
        return each.base, each.attribute, known, each.method

    return tuple(sorted(found, key=place))


def _strength(model: ModelInfo) -> float | None:
    """λ; NaN where a mitigated model has none, because its method has no fairness loss."""
    none = is_mitigated(model) and "amount" not in model.tuning
    return math.nan if none else amount_number(model.tuning.get("amount", ""))


def _control(pair: Pair, models: Sequence[ModelInfo], pairs: Sequence[Pair]) -> int | None:
    """The control of a checkpoint: of the same base and attribute, and best of the same data, ways and seed."""
    own = models[pair.after].tuning
    if own.get("method") == CONTROL or not is_mitigated(models[pair.after]):
        return None
    controls = [
        other.after
        for other in pairs
        if other.before == pair.before
        and models[other.after].tuning.get("method") == CONTROL
        and models[other.after].tuning.get("attribute") == own["attribute"]
    ]

    def unlike(at: int, *names: str) -> int:
        return sum(models[at].tuning.get(name) != own.get(name) for name in names)

    # another seed is another draw of the same training; another unit or rate is another training
    return min(
        controls,
        key=lambda at: (unlike(at, *SHARED_SETTINGS), unlike(at, "data"), unlike(at, "seed")),
        default=None,
    )


def training_of(model: ModelInfo) -> str:
    """Return in a few words what was done to a model since its base: "embedding on occupation, λ = 10"."""
    tuning = model.tuning
    if not tuning:
        return AS_GIVEN
    method = tuning.get("method", "") or "tuned"
    if is_mitigated(model):
        strength = f", λ = {tuning['amount']}" if "amount" in tuning else ""
        return f"{method} on {tuning['attribute']}{strength}"
    return ", ".join(part for part in (method, tuning.get("data", ""), tuning.get("amount", "")) if part)


def missing_base_notice(models: Sequence[ModelInfo]) -> Notice | None:
    """Return a notice that names the checkpoints whose base is not among the models."""
    weights = {model.weights for model in models}
    orphans = [model.name for model in models if model.tuning.get("base", "") not in ("", *weights)]
    if not orphans:
        return None
    return info(
        f"Tuned from a model that is not in this run: {', '.join(orphans)}; audit it together with its base "
        "to see what changed."
    )


def tuned_notices(models: Sequence[ModelInfo]) -> Iterator[Notice]:
    """Yield what a reader must know of tuned masked models: a base that is missing, and what they cost."""
    if orphans := missing_base_notice(models):
        yield orphans
    for model in models:
        if cost := model.tuning.get("quality"):
            text = f"What it cost, {model.name} ({training_of(model)}): {cost}."
            if (amount_number(model.tuning.get("quality_ratio", "")) or 0.0) > WORSE:
                text += " It has become worse at its own task, which may be why it no longer says some things."
                yield warning(text)
            else:
                yield info(text)


# ---------------------------------------------------------------------------------------------------------
# What training changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of training a model of the run, repeated with other seeds; numbers among the models."""

    name: str  # what a reader knows it by: the checkpoint's name, or what several have in common
    pairs: tuple[Pair, ...]


_OF_ONE_TRAINING = frozenset({"seed", "quality", "quality_ratio", "changed", "weights"})  # may differ in an arm


def arms_of(models: Sequence[ModelInfo]) -> tuple[Arm, ...]:
    """Return the checkpoints of a run, those together that differ in their seed alone."""
    found: dict[tuple[object, ...], list[Pair]] = {}
    for pair in pairs_of(models):
        tuning = models[pair.after].tuning
        settings = sorted((name, value) for name, value in tuning.items() if name not in _OF_ONE_TRAINING)
        found.setdefault((pair.before, *settings), []).append(pair)
    groups: list[Sequence[Pair]] = []
    for pairs in found.values():
        seeds = {models[pair.after].tuning.get("seed", "") for pair in pairs}
        # of one seed there may be several that differ in what the card does not tell: these are no repetitions
        groups += [pairs] if len(seeds - {""}) == len(pairs) else [[pair] for pair in pairs]
    names = [[models[pair.after].name for pair in pairs] for pairs in groups]
    common = [_common_name(each) for each in names]
    return tuple(
        # what a user has numbered through has one beginning, whatever it is
        Arm(name=name if common.count(name) == 1 else _first_to_last(each), pairs=tuple(pairs))
        for name, each, pairs in zip(common, names, groups, strict=True)
    )


def _first_to_last(names: Sequence[str]) -> str:
    return f"{names[0]} to {names[-1]} ({len(names)} trainings)"


def _common_name(names: Sequence[str]) -> str:
    """Return what several names begin with, and how many they are.

    >>> _common_name(["m-news-1-seed-0", "m-news-1-seed-1"]), _common_name(["m-prompt-13", "m-prompt-100"])
    ('m-news-1 (2 trainings)', 'm-prompt (2 trainings)')
    """
    if len(names) == 1:
        return names[0]
    alike = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    common = re.sub(r"(seed-|-)\d*$", "", "".join(letters[0] for letters in alike)).rstrip("-_. ")
    return f"{common or names[0]} ({len(names)} trainings)"


def changes_of(
    compared: Callable[[Findings, Sequence[ModelInfo]], Iterable[Units]],
    findings: Findings,
    models: Sequence[ModelInfo],
) -> tuple[ChangeVerdict, ...]:
    """Return what training changed, of every arm: since the model that it began with, then against its control.

    `compared` is the audit's. The code is that of `clinometer compare`, which says the same of the run.
    """
    arms = arms_of(models)
    units = {at: list(compared(findings, [models[at]])) for at in _concerned(arms)}
    controls = {each.model: each.control for each in checkpoints_of(models)}
    sought = []
    known_as = {frozenset(pair.after for pair in arm.pairs): arm.name for arm in arms}

    def seek(arm: Arm, before: Sequence[int], *, role: str) -> None:
        sides = zip(before, (pair.after for pair in arm.pairs), strict=True)
        name = _common_name([models[at].name for at in dict.fromkeys(before)])
        sought.append(
            Compared(
                before=known_as.get(frozenset(before), name),
                after=arm.name,
                audits={findings.probe: [(units[one], units[other]) for one, other in sides]},
                role=role,
                seeds=seeds_of(arm, models),
                fewer_controls=role == CONTROL and len(set(before)) < len(arm.pairs),
            )
        )

    for arm in arms:
        seek(arm, [pair.before for pair in arm.pairs], role=BEFORE)
        known = [at for pair in arm.pairs if (at := controls[pair.after]) is not None]
        if len(known) == len(arm.pairs):
            seek(arm, known, role=CONTROL)
    return tuple(change.verdict for of_pair in compare_all(sought) for change in of_pair)


def seeds_of(arm: Arm, models: Sequence[ModelInfo]) -> tuple[str, ...]:
    """Return the seed of each training of an arm."""
    return tuple(models[pair.after].tuning.get("seed", "") for pair in arm.pairs)


def _concerned(arms: Sequence[Arm]) -> Iterable[int]:
    return dict.fromkeys(at for arm in arms for pair in arm.pairs for at in (pair.before, pair.after))


def over_trainings(rows: Iterable[Finding], models: Sequence[ModelInfo]) -> dict[tuple[str, str], Finding]:
    """Return the rows of checkpoints (model, category) as rows of arms; what differs between trainings is in them.

    Interval and p hold it; q is for the caller to correct. It is pooled over arms and categories. Rows without a
    number are left out, and arms that lack one.
    """
    known = {
        (str(row.labels["model"]), str(row.labels["category"])): row
        for row in rows
        if not math.isnan(row.estimate)
    }
    found: dict[tuple[str, str], Finding] = {}
    noisy: dict[int, list[tuple[tuple[str, str], list[Finding]]]] = {}
    for arm, category in product(arms_of(models), dict.fromkeys(category for _, category in known)):
        each = [known[key] for pair in arm.pairs if (key := (models[pair.after].name, category)) in known]
        if len(each) == len(arm.pairs):
            numbers = [(row.estimate, row.low, row.high, row.p) for row in each]
            mean, low, high, p = np.mean(numbers, axis=0).tolist()
            labels = {**each[0].labels, "model": arm.name, "trainings": len(each)}
            found[arm.name, category] = replace(each[0], labels=labels, estimate=mean, low=low, high=high, p=p)
            noisy.setdefault(len(each), []).append(((arm.name, category), each))
    for trainings, cells in noisy.items():
        if trainings == 1:
            continue
        arms, categories = (list(dict.fromkeys(key[at] for key, _ in cells)) for at in (0, 1))
        values = np.full((len(arms), len(categories), trainings), np.nan)
        errors = np.full(values.shape[:2], np.nan)
        for (arm_name, category), each in cells:
            at = arms.index(arm_name), categories.index(category)
            values[at] = [row.estimate for row in each]
            mean_row = found[arm_name, category]
            errors[at] = (mean_row.high - mean_row.low) / (2 * critical_value(0.975))
        noise = training_noise(values, errors)
        for key, _ in cells:
            variance, freedom = noise.of(arms.index(key[0]), categories.index(key[1]))
            sure = with_training_noise(sure_of([found[key]]), variance, freedom=freedom, trainings=trainings)
            low, high, p = (float(each[0]) for each in (sure.low, sure.high, sure.p))
            found[key] = replace(found[key], low=low, high=high, p=p)
    return found


def differ(one: Finding, other: Finding) -> bool:
    """Tell whether two numbers with intervals of their own are told apart."""
    change = independent_change(sure_of([one]), sure_of([other]))
    return bool(change.low[0] > 0 or change.high[0] < 0)


CHANGES = Caption(
    name="training_changes",
    title="What training changed, and what follows",
    text=(
        "How much farther from even-handed a checkpoint is (|lean after| − |lean before|) than the model that it "
        "began with, or than its control; of the first, `clinometer compare` gives the same numbers. Intervals: "
        "95 %; they include what differs between trainings only where there are several. q: "
        "Benjamini–Hochberg over the measures of a pair. detectable: the smallest change that would be found four "
        "times in five. change: of the lean with its sign."
    ),
    version=2,
)


TRAININGS = Caption(
    name="trainings",
    title="What each training changed",
    text=(
        "Trainings of one kind differ in their seed alone. estimate: the change of the lean with its sign, after "
        "each training (named by its seed) and on average. The interval (95 %) of the average includes "
        "differences between units and between trainings. Against a control, each training is compared with the "
        "control of its own seed, if there is one. n: units."
    ),
    version=2,
)
TRAININGS_FIGURE = Figure(
    name="trainings",
    title="What each training changed",
    caption="Every seed, and their mean with its interval: what differs between seeds is training noise.",
    table=TRAININGS.name,
    mark="intervals",
    x="estimate",
    y="after",
    color="training",
    column="before",
    menus=("measure",),
    reference=0.0,
)


def _training_rows(verdict: ChangeVerdict) -> Iterator[Finding]:
    about: dict[str, Label] = {name: getattr(verdict, name) for name in ("measure", "before", "after")}
    yield Finding(
        labels={**about, "training": "mean"},
        estimate=verdict.change,
        low=verdict.change_low,
        high=verdict.change_high,
        n=verdict.n,
    )
    for seed, change in zip(verdict.seeds, verdict.training_changes, strict=True):
        yield Finding(labels={**about, "training": f"seed {seed}"}, estimate=change, n=verdict.n)


def with_changes(
    findings: Findings, changes: Sequence[ChangeVerdict], said: Iterable[str], *, first: bool = True
) -> Findings:
    """Return the findings with what training changed: verdicts, their table, and sentences, first or last."""
    if not changes:
        return findings
    rows = {
        CHANGES.name: [change_row(each) for each in changes],
        TRAININGS.name: [row for each in changes if len(each.trainings) > 1 for row in _training_rows(each)],
    }
    repeated = bool(rows[TRAININGS.name])
    return replace(
        findings,
        tables=(*findings.tables, *tables_of((CHANGES, TRAININGS) if repeated else (CHANGES,), rows)),
        figures=(*findings.figures, *((TRAININGS_FIGURE,) if repeated else ())),
        headlines=(*said, *findings.headlines) if first else (*findings.headlines, *said),
        changes=tuple(changes),
    )


def change_headline(verdict: ChangeVerdict, models: Sequence[ModelInfo], *, more: str = "") -> str:
    """Return the sentence of a verdict on a change, with what was trained, its numbers, and what else is known."""
    training = {arm.name: training_of(models[arm.pairs[0].after]) for arm in arms_of(models)}.get(
        verdict.after, ""
    )
    said = verdict.sentence.removesuffix(".")
    if training:
        said = f"{verdict.after} ({training}){said.removeprefix(verdict.after)}"
    if verdict.state == UNTOLD:
        return f"{said} ({verdict.measure})."
    return f"{said}: {verdict.measure}, {'; '.join(filter(None, (numbers_of(verdict), more)))}."


FEWER_CONTROLS = "the control was trained less often, and what another seed would change of it is left out"


def numbers_of(verdict: ChangeVerdict) -> str:
    """Write what is behind a verdict on a change: leans, distance, how sure, whether training noise is in it."""
    if verdict.state == UNTOLD:
        return ""
    least = (
        "" if math.isnan(verdict.detectable) else f"; {verdict.detectable:.3f} would be found four times in five"
    )
    noise = ""
    if len(verdict.trainings) == 1:
        noise = "; one training, so the interval leaves out what another seed would change"
    elif verdict.trainings:
        each = ", ".join(written(lean, 3) for lean in verdict.trainings)
        count = len(verdict.trainings)
        noise = f"; after each of {count} trainings {each}, and the interval holds what differs between them"
        if verdict.fewer_controls:
            noise += f"; {FEWER_CONTROLS}"
    return (
        f"{signed(verdict.lean_before)} before and {signed(verdict.lean_after)} after; distance from even-handed "
        f"{signed(verdict.estimate)} ({certainty(verdict)}{least}{noise})"
    )


def change_row(verdict: ChangeVerdict) -> Finding:
    """Return a verdict on a change as the row of a table."""
    names = ("audit", "measure", "before", "after", "state", "lean_before", "lean_after", "change", "change_low",
             "change_high", "detectable", "reason")  # fmt: skip
    labels = {name: getattr(verdict, name) for name in names}
    return Finding(
        labels=labels | {"trainings": len(verdict.trainings)},
        estimate=verdict.estimate,
        low=verdict.low,
        high=verdict.high,
        p=verdict.p,
        q=verdict.q,
        n=verdict.n,
    )
