"""Tables of checkpoints in which several trainings of one kind have a row together, with what they differ in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from clinometer.probes.kit.before_after import Checkpoint, arms_of, over_trainings
from clinometer.probes.kit.compare import sure_of
from clinometer.probes.kit.numbers import ABSENT, Label, with_q
from clinometer.stats import critical_value, training_noise, with_training_noise
from clinometer.types import ChangeVerdict, Figure, Finding, Findings, ModelInfo

LINE = "line"  # the label by which tables and charts tell arms and single trainings apart
TRAININGS = "trainings"  # the label that says how many are in a row
MEAN = "mean"
_SEED = "seed "
_LINED = ("method", "corpus")  # by what charts colour checkpoints

# what captions say of training noise, behind what they say of intervals
NOISE = (
    " A kind of training that was repeated with other seeds has a row of its own (trainings: how many): the mean. "
    "Its interval, and p if there is one, hold what differs between them, but not what another seed changes of a "
    "control that was trained less often. The interval of one training leaves out what another seed would change."
)
OF_VERDICT = (
    " The mean that a verdict on a change is about has interval and p of that verdict, which pools what differs "
    "between trainings over the measures of the audit; other means pool it over this table."
)


def with_arms(
    rows: Iterable[Finding],
    models: Sequence[ModelInfo],
    *,
    by: Sequence[str],
    model: str = "model",
    line: str = "",
    logs: Callable[[Finding], bool] = lambda row: False,
    counted: Callable[[Finding], bool] = lambda row: True,
    families: Sequence[str] | None = None,
) -> list[Finding]:
    """Return the rows of a table with one for each repeated training (an arm) before those of its seeds.

    That row has the mean. Its interval and p hold what differs between the trainings, estimated over all arms and
    rows of the table that are `against` the same (`over_trainings`); where one training has no number, neither has
    the arm. Nothing is added where no training was repeated.

    Args:
        rows: of one table; a row that is about no checkpoint stays as it is.
        models: of the run.
        by: labels that say what of a checkpoint a row is about; with `model` they name a row.
        model: the label that names the checkpoint.
        line: the label by which charts colour checkpoints; "": they do not.
        logs: which rows are ratios, whose error is taken on the scale of logarithms.
        counted: which rows can be judged; where one of its trainings cannot, an arm has no number.
        families: labels that part the rows of an arm into families for q; None: the table tests nothing.
    """
    given = list(rows)
    arms = {models[pair.after].name: arm for arm in arms_of(models) if len(arm.pairs) > 1 for pair in arm.pairs}
    if not arms or not given:
        return given
    seeds = {each.name: each.tuning["seed"] for each in models if each.name in arms}

    def about(row: Finding) -> str:
        return repr([row.labels[name] for name in by])

    # changes against a control have the noise of two trainings in them, and are pooled apart
    alike: dict[Label, list[Finding]] = {}
    for row in given:
        labels = {"model": row.labels[model], "category": about(row)}
        scale = (_log if logs(row) else _same) if counted(row) else _unknown
        alike.setdefault(row.labels.get("against", ""), []).append(_through(scale, row, labels))
    means = {key: row for of_one in alike.values() for key, row in over_trainings(of_one, models).items()}
    told: dict[str, list[Finding]] = {}  # the rows of each arm
    for name in dict.fromkeys(arm.name for arm in arms.values()):
        of_arm: dict[str, list[Finding]] = {}
        for row in given:
            if row.labels[model] in arms and arms[str(row.labels[model])].name == name:
                of_arm.setdefault(about(row), []).append(row)
        told[name] = []
        for key, each in of_arm.items():
            if len(each) == 1:  # a checkpoint as the model that another one began with
                continue
            labels = {**_mean_labels(each), model: name, **_lines(each[0], line), TRAININGS: len(each)}
            mean = means.get((name, key), Finding(labels={}, estimate=math.nan))
            mean = replace(_through(math.exp if logs(each[0]) else _same, mean, labels), q=math.nan)
            told[name].append(replace(mean, n=min(row.n for row in each)))
        if families is not None:
            told[name] = _with_q(told[name], families)
    found: list[Finding] = []
    for row in given:
        name = str(row.labels[model])
        if name in arms:
            found += told.pop(arms[name].name, [])
        found.append(
            replace(row, labels={**row.labels, **_lines(row, line, seed=seeds.get(name, "")), TRAININGS: 1})
        )
    return _one_type(found)


def _through(function: Callable[[float], float], row: Finding, labels: Mapping[str, Label]) -> Finding:
    return replace(
        row, labels=labels, estimate=function(row.estimate), low=function(row.low), high=function(row.high)
    )


def _same(value: float) -> float:
    return value


def _unknown(value: float) -> float:
    return math.nan


def _log(value: float) -> float:
    return math.log(value) if value > 0 else math.nan


def _lines(row: Finding, line: str, *, seed: str = "") -> dict[str, Label]:
    """Return the line of a chart that a row is on: seeds have lines of their own."""
    parts = [str(row.labels[line])] if line else []
    return {LINE: ", ".join([*parts, f"{_SEED}{seed}"] if seed else parts) or MEAN}


def _mean_labels(rows: Sequence[Finding]) -> dict[str, Label]:
    """Return what rows have in common, and the mean of numbers that differ; of words that differ, nothing."""
    labels: dict[str, Label] = {}
    for name in rows[0].labels:
        values = [row.labels[name] for row in rows]
        if len(set(map(repr, values))) == 1:
            labels[name] = values[0]
        else:
            numbers = [float(value) for value in values if not isinstance(value, str)]
            labels[name] = float(np.mean(numbers)) if len(numbers) == len(values) else ABSENT
    return labels


def _with_q(rows: Sequence[Finding], families: Sequence[str]) -> list[Finding]:
    parts: dict[tuple[Label, ...], list[int]] = {}
    for at, row in enumerate(rows):
        parts.setdefault(tuple(row.labels[name] for name in families), []).append(at)
    q = {
        at: row.q
        for places in parts.values()
        for at, row in zip(places, with_q(rows[at] for at in places), strict=True)
    }
    return [replace(row, q=q[at]) for at, row in enumerate(rows)]


def _one_type(rows: Sequence[Finding]) -> list[Finding]:
    """Make counts of which a mean is a fraction fractions in every row: a column has one type."""
    mixed = [name for name in rows[0].labels if {type(row.labels[name]) for row in rows} == {int, float}]
    return [
        replace(row, labels={**row.labels, **{name: float(row.labels[name]) for name in mixed}}) for row in rows
    ]


def as_concluded(
    findings: Findings, changes: Sequence[ChangeVerdict], about: Callable[[ChangeVerdict], Mapping[str, Label]]
) -> Findings:
    """Return the findings with the interval and p of a verdict wherever a table has the mean that it is about.

    Both are estimates of the same noise, from other rows; a page must not show two intervals of one number. q is
    corrected anew over the rows of that mean.

    Args:
        findings: with tables that `with_arms` made.
        changes: the verdicts.
        about: the labels of the row that a verdict is about; {}: of none. Where there are several, it is the one
            whose estimate is the verdict's change.
    """
    concluded = [(labels, each) for each in changes if len(each.trainings) > 1 and (labels := about(each))]

    def told(row: Finding) -> Finding:
        for labels, each in concluded:
            same = math.isclose(row.estimate, each.change, rel_tol=1e-9, abs_tol=1e-12)
            if same and row.labels.items() >= labels.items():
                return replace(row, low=each.change_low, high=each.change_high, p=each.change_p)
        return row

    def in_table(given: Sequence[Finding]) -> tuple[Finding, ...]:
        rows = [told(row) for row in given]
        changed = {_mean_of(row) for row, before in zip(rows, given, strict=True) if row is not before}
        for mean in changed:
            places = [at for at, row in enumerate(rows) if _mean_of(row) == mean]
            for at, corrected in zip(places, with_q([rows[at] for at in places]), strict=True):
                rows[at] = corrected
        return tuple(rows)

    if not concluded:
        return findings
    tables = (replace(table, rows=in_table(table.rows)) for table in findings.tables)
    return replace(findings, tables=tuple(tables))


def _mean_of(row: Finding) -> tuple[Label, Label]:
    return row.labels.get("base", ""), row.labels.get("model", "")


def lines_apart(figure: Figure, rows: Sequence[Finding]) -> Figure:
    """Return a figure that colours by arm and seed where its table has both: no line joins several seeds.

    Lines of seeds are thin, beside that of their mean with its band, unless something else was trained once.
    """
    if figure.color not in _LINED or not rows or TRAININGS not in rows[0].labels:
        return figure
    seeds = all(_SEED in str(row.labels[LINE]) for row in rows if row.labels[TRAININGS] == 1)
    return replace(figure, color=LINE, repeated=TRAININGS if seeds else "")


def repeated_checkpoints(
    checkpoints: Sequence[Checkpoint], models: Sequence[ModelInfo], changes: Sequence[ChangeVerdict]
) -> Iterator[tuple[Checkpoint, list[Checkpoint]]]:
    """Yield each arm that was trained several times as a checkpoint, with those of its seeds.

    Its control is the one that its verdicts are against: there is none where a training has none.
    """
    by_model = {each.model: each for each in checkpoints}
    for arm in arms_of(models):
        each = [by_model[pair.after] for pair in arm.pairs]
        if len(each) > 1:
            first = each[0]
            others = (verdict.before for verdict in changes if verdict.after == arm.name)
            control = next((name for name in others if name != first.base_name), "")
            yield (
                replace(first, name=arm.name, control=first.control if control else None, control_name=control),
                each,
            )


def between_arms(rows: Iterable[Finding], models: Sequence[ModelInfo]) -> list[Finding]:
    """Return rows about two models (`model`, `other_model`) as rows about two arms, or models that are in none.

    Two trainings of one arm, and a model and its own trainings, are left out: how alike these are is what training
    changed. Arms meet seed by seed, a model meets every training; what differs between trainings is in the
    interval, estimated over all pairs, as one arm has many of them.
    """
    known = {(str(row.labels["model"]), str(row.labels["other_model"])): row for row in rows}
    arms = arms_of(models)
    sides = {arm.name: [models[pair.after] for pair in arm.pairs] for arm in arms}
    bases = {arm.name: models[arm.pairs[0].before].name for arm in arms}
    trained = {model.name for side in sides.values() for model in side}
    for model in models:
        if model.name not in trained:
            sides[model.name] = [model]
    found: list[Finding] = []
    noisy: dict[int, list[tuple[int, list[float]]]] = {}
    for one, other in itertools.combinations(sides, 2):
        if bases.get(one) == other or bases.get(other) == one:
            continue
        each = [known[pair] for pair in _by_seed(sides[one], sides[other]) if pair in known]
        if each:
            mean, low, high = np.mean([(row.estimate, row.low, row.high) for row in each], axis=0).tolist()
            labels = {**_mean_labels(each), "model": one, "other_model": other, TRAININGS: len(each)}
            noisy.setdefault(len(each), []).append((len(found), [row.estimate for row in each]))
            found.append(Finding(labels=labels, estimate=mean, low=low, high=high, n=min(row.n for row in each)))
    for trainings, cells in noisy.items():
        if trainings > 1:
            errors = [[(found[at].high - found[at].low) / (2 * critical_value(0.975)) for at, _ in cells]]
            noise = training_noise(changes=[[each for _, each in cells]], errors=errors)
            for place, (at, _) in enumerate(cells):
                variance, freedom = noise.of(0, place)
                sure = with_training_noise(sure_of([found[at]]), variance, freedom=freedom, trainings=trainings)
                found[at] = replace(found[at], low=float(sure.low[0]), high=float(sure.high[0]))
    return found


def _by_seed(one: Sequence[ModelInfo], other: Sequence[ModelInfo]) -> Iterator[tuple[str, str]]:
    """Yield who meets whom: trainings of the same place among their seeds; a lone model meets each of them."""
    first, second = (sorted(side, key=_seed) for side in (one, other))
    trainings = max(len(first), len(second)) if 1 in (len(first), len(second)) else min(len(first), len(second))
    for at in range(trainings):
        yield first[at % len(first)].name, second[at % len(second)].name


def _seed(model: ModelInfo) -> tuple[int, str]:
    seed = model.tuning.get("seed", "")
    return len(seed), seed  # 2 comes before 10
