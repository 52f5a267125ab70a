"""What chat models answer on the Social Distance Scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinometer.metrics import overall_attitude
from clinometer.metrics.attitude import Floats
from clinometer.probes.kit.numbers import Numbers, model_rng
from clinometer.probes.protocol import Plan, Records
from clinometer.probes.stigma.options import Options
from clinometer.probes.stigma.prompts import BASELINE, sample_conditions
from clinometer.probes.stigma.roster import Roster, roster_of
from clinometer.probes.stigma.scale import REFUSAL, UNCLEAR, read_answer

_COLUMNS = ("tag_distance", "tag_wording", "tag_group", "got_texts")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatView:
    """The answers of one chat model, ready to be summarised."""

    model: str
    rng: np.random.Generator
    draws: int
    roster: Roster
    distances: tuple[str, ...]
    readings: tuple[str, ...]  # the options of the scale, then refusal and unclear
    counts: Floats  # (wordings, distances, readings): answers read so
    baseline: Floats  # (distances,): mean score of the question without a condition
    by_distance: Floats  # (distances, conditions): mean score
    overall: Floats  # (conditions,)

    def on_scale(self, numbers: Numbers) -> Numbers:
        """Return scores within the scale, which a studentized interval may leave."""
        highest = len(self.readings) - 3  # the last two readings are no options, and the first has score 0
        return numbers.transformed(lambda scores: np.clip(scores, 0.0, highest))


def chat_view(plan: Plan, records: Records) -> ChatView:
    """Read the answers of one chat model; only answers on the scale have a score."""
    options: Options = plan.options
    asked = sample_conditions(options.chosen_conditions(), n=options.chat_conditions, seed=plan.seed)
    roster = roster_of(asked)
    scale = options.chosen_prompts().questions[0].options
    readings = (*scale, REFUSAL, UNCLEAR)
    table = records.table(model=plan.model.name, stage="scale", columns=_COLUMNS)
    distance = {name: at for at, name in enumerate(options.distances)}
    wording = {each.name: at for at, each in enumerate(roster.wordings)}
    counts = np.zeros((len(roster.wordings), len(options.distances), len(readings)))
    at_baseline = np.zeros(counts.shape[1:])
    for row in table.iter_rows(named=True):
        d = distance[row["tag_distance"]]
        into = at_baseline[d] if row["tag_group"] == BASELINE else counts[wording[row["tag_wording"]], d]
        for text in row["got_texts"]:
            read = read_answer(text, scale)
            into[read if isinstance(read, int) else readings.index(read)] += 1
    scores = _mean_scores(counts, len(scale))
    names = [each.condition for each in roster.wordings]
    by_distance = [overall_attitude(scores[None, None, :, [d]], names).overall for d in range(scores.shape[1])]
    return ChatView(
        model=plan.model.name,
        rng=model_rng(plan.seed, plan.model.name),
        draws=options.draws,
        roster=roster,
        distances=options.distances,
        readings=readings,
        counts=counts,
        baseline=_mean_scores(at_baseline, len(scale)),
        by_distance=np.stack(by_distance),
        overall=overall_attitude(scores[None, None], names).overall,
    )


def _mean_scores(counts: Floats, options: int) -> Floats:
    """Return the mean score of the answers on the scale, (..., readings) -> (...); NaN where there is none."""
    on_scale = counts[..., :options]
    answered = on_scale.sum(axis=-1)
    total = on_scale @ np.arange(options, dtype=np.float64)
    means: Floats = np.divide(total, answered, out=np.full(answered.shape, np.nan), where=answered > 0)
    return means
