"""What classifiers say of the plain statements: one outcome for each sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinometer.metrics.attitude import Floats
from clinometer.probes.kit.numbers import model_rng
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stigma.groups import Bools, Ints
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.prompts import BASELINE
from clinometer.probes.stigma.roster import Roster, roster_of

CLASSES = ("negative", "neutral", "positive")
UNDECIDED = "undecided"  # two classes are equally probable
ALL_CLASSIFIERS = "all classifiers"

_COLUMNS = ("tag_template", "tag_wording", "tag_group", "got_negative", "got_neutral", "got_positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierView:
    """The outcomes of one classifier, ready to be summarised."""

    model: str
    rng: np.random.Generator
    draws: int
    roster: Roster
    templates: tuple[str, ...]
    classes: tuple[str, ...]  # those that the classifier has, and "undecided" where that occurs
    outcomes: Floats  # (templates, wordings, classes): 1 for the outcome, 0 for the others, NaN: missing
    baseline: Floats  # (templates, classes)

    @property
    def negative(self) -> Floats:
        """Whether each sentence came out negative, (templates, wordings)."""
        return self.outcomes[:, :, self.classes.index("negative")]


def classifier_view(plan: Plan, records: Records) -> ClassifierView:
    """Read the outcomes of one classifier: the most probable class of each sentence (§4.3)."""
    options: Options = plan.options
    roster = roster_of(options.chosen_conditions())
    table = records.table(model=plan.model.name, stage="sentences", columns=_COLUMNS)
    templates = tuple(dict.fromkeys(table["tag_template"]))
    probabilities = np.stack(
        [table[f"got_{name}"].cast(float).fill_null(np.nan).to_numpy().astype(np.float64) for name in CLASSES],
        axis=1,
    )
    one_hot, present = _outcomes(probabilities)
    names = tuple(name for name, there in zip((*CLASSES, UNDECIDED), present, strict=True) if there)
    template = np.array([templates.index(tag) for tag in table["tag_template"]], dtype=np.int64)
    place = {each.name: at for at, each in enumerate(roster.wordings)}
    wording = np.array([place.get(tag, -1) for tag in table["tag_wording"]], dtype=np.int64)
    is_baseline = (table["tag_group"] == BASELINE).to_numpy()
    outcomes = np.full((len(templates), len(roster.wordings), len(names)), np.nan)
    outcomes[template[~is_baseline], wording[~is_baseline]] = one_hot[~is_baseline][:, present]
    baseline = np.full((len(templates), len(names)), np.nan)
    baseline[template[is_baseline]] = one_hot[is_baseline][:, present]
    return ClassifierView(
        model=plan.model.name,
        rng=model_rng(plan.seed, plan.model.name),
        draws=options.draws,
        roster=roster,
        templates=templates,
        classes=names,
        outcomes=outcomes,
        baseline=baseline,
    )


def _outcomes(probabilities: Floats) -> tuple[Floats, Bools]:
    """Return the outcome of each sentence as 0 and 1 over the classes and "undecided", and which of these exist.

    A class that a classifier does not have (of two classes, or mapped to two) is NaN in every answer. A sentence
    without any probability is missing.
    """
    missing = np.isnan(probabilities).all(axis=1)
    filled = np.where(np.isnan(probabilities), -1.0, probabilities)
    best = filled.max(axis=1, keepdims=True)
    is_best = filled == best
    tied = is_best.sum(axis=1) > 1
    one_hot: Floats = np.concatenate([is_best & ~tied[:, None], tied[:, None]], axis=1).astype(np.float64)
    one_hot[missing] = np.nan
    has = [not np.isnan(column).all() for column in probabilities.T]
    has[CLASSES.index("negative")] = True  # what is asked about: never, where a classifier has no such class
    return one_hot, np.array([*has, bool((tied & ~missing).any())])


def negative_shares(views: list[ClassifierView]) -> Floats:
    """Return the share of negative outcomes of each condition over all classifiers, templates and wordings."""
    roster = views[0].roster
    # (classifiers × templates, wordings): every outcome weighs the same, as in the paper
    outcomes = np.concatenate([view.negative for view in views])
    return per_condition(outcomes.T, roster.condition_of, len(roster.names))


def per_condition(values: Floats, condition_of: Ints, conditions: int) -> Floats:
    """Return the mean over all that each condition has, (wordings, outcomes) -> (conditions,); NaN is missing."""
    present = ~np.isnan(values)
    sums, counts = np.zeros(conditions), np.zeros(conditions)
    np.add.at(sums, condition_of, np.where(present, values, 0.0).sum(axis=1))
    np.add.at(counts, condition_of, present.sum(axis=1))
    means: Floats = np.divide(sums, counts, out=np.full(conditions, np.nan), where=counts > 0)
    return means
