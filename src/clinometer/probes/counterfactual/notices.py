"""What a reader must know before believing the numbers of the counterfactual audit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import numpy as np

from clinometer.probes.counterfactual.human import rated_sentences
from clinometer.probes.counterfactual.measures import FEWEST_TEMPLATES, PER_TEST, Measures
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.tables.costs import DIFFERENCE
from clinometer.probes.counterfactual.tables.human import written_sentences
from clinometer.probes.counterfactual.tunings import BEFORE, Tuned
from clinometer.probes.counterfactual.view import View
from clinometer.probes.kit.before_after import missing_base_notice
from clinometer.probes.kit.numbers import Label, select
from clinometer.probes.protocol import Plan
from clinometer.types import Finding, ModelInfo, Notice

FEW_SAMPLES = 25  # below this, chance alone gives distances of 0.1: W1 of even samples falls with 0.5/√n or less
MANY_SILENT = 0.5  # share of texts without an opinion word from which 0.5 is the most frequent score
MANY_EMPTY = 0.05
HALF = 0.5  # of S.S. or S.S.c: with less a model no longer speaks of what it was asked about


def general_notices(plans: Sequence[Plan], views: Sequence[View]) -> Iterator[Notice]:
    """Yield what holds for all models."""
    options: Options = plans[0].options
    what = "the continuation alone" if options.scored == "continuation" else "prefix and continuation together"
    yield _info(
        f"Scored was {what}: up to {options.max_new_tokens} new tokens, to the end of the text if that came "
        "earlier, not cut at the end of a sentence. A score is (positive + neutral/2) / (positive + neutral + "
        "negative)."
    )
    yield from _chosen(views[0])
    if options.samples < FEW_SAMPLES:
        yield _warning(
            f"Only {options.samples} continuations of each prefix: distances of up to about "
            f"{0.5 / math.sqrt(options.samples):.2f} arise by chance, and only large differences can be found. "
            "Read the excess, and ask for 100 or more to conclude anything."
        )
    if any(len(chosen.attribute.templates) < FEWEST_TEMPLATES for chosen in views[0].attributes):
        yield _info(
            f"With fewer than {FEWEST_TEMPLATES} templates, intervals speak of these templates alone: other "
            "wordings may give something else."
        )
    if options.top_k or options.top_p < 1 or options.temperature != 1:
        yield _info(
            f"Texts were drawn with temperature {options.temperature:g}, top_k {options.top_k} (0: off) and top_p "
            f"{options.top_p:g} (1: off), not from the model's own distribution; the paper has temperature 1 "
            "alone."
        )
    if not options.text_file:
        yield _info("Perplexity was not measured: give held-out text with text_file.")
    for plan in plans:
        if options.text_file and "log_likelihood" not in plan.model.capabilities:
            yield _warning(f"{plan.model.name} cannot say how probable a text is: no perplexity.")


def _chosen(view: View) -> Iterator[Notice]:
    """Say what was left out of each attribute."""
    parts = []
    for chosen in view.attributes:
        (templates, values), whole = chosen.shape, chosen.whole
        if values < len(whole.values) or templates < len(whole.templates):
            named = ", ".join(value.text for value in chosen.attribute.values)
            parts.append(
                f"of {chosen.name} {values} of {len(whole.values)} values ({named}) and {templates} of "
                f"{len(whole.templates)} templates"
            )
    if parts:
        yield _warning(
            f"Only a part was asked, drawn by the seed: {'; '.join(parts)}. Another seed draws others, and I.F. "
            "and G.F. cannot be compared with those of all."
        )


def model_notices(view: View) -> Iterator[Notice]:
    """Yield what holds for one model."""
    empty = float(np.isnan(view.scores[0].values).mean())
    if empty:
        text = f"{view.model} wrote nothing in {empty:.1%} of the continuations; these have no score."
        yield _warning(text) if empty > MANY_EMPTY else _info(text)
    for each in view.scores:
        if not np.isnan(each.without_opinion):
            text = (
                f"{view.model}: {each.without_opinion:.1%} of the texts hold no opinion word and score 0.5 with "
                f"{each.scorer}, whatever they say."
            )
            yield _warning(text) if each.without_opinion > MANY_SILENT else _info(text)


def pair_notices(measured: Sequence[Measures]) -> Iterator[Notice]:
    """Yield where a single pair of values cannot stand out, for there were too few shuffles."""
    for found in measured:
        if found.null.draws < PER_TEST * found.pairs:
            yield _info(
                f"{found.model}, {found.chosen.name}, {found.scorer}: {found.pairs} pairs were tested with "
                f"{found.null.draws} shuffles, so a q below {found.pairs / (found.null.draws + 1):.2f} needs "
                "several pairs that are out; raise draws to see a single one."
            )


def tuning_notices(
    models: Sequence[ModelInfo], tuned: Sequence[Tuned], costs: Sequence[Finding], *, draws: int
) -> Iterator[Notice]:
    """Yield which checkpoints are not what their name says, and which no longer speak of the value."""
    if tuned:
        yield _info(
            f"Of a checkpoint it is the change that is tested; its own pairs of values were tested with {draws} "
            "shuffles, however many there are. Audit it alone to see a single pair."
        )
    for each in tuned:
        if models[each.model].weights == models[each.base].weights:
            yield _warning(
                f"{models[each.model].name}: the weights did not change, they have the checksum of "
                f"{models[each.base].name}; whatever differs between the two is not the work of a mitigation."
            )
    if missing := missing_base_notice(models):
        yield missing
    falls: dict[tuple[Label, Label, Label], list[str]] = {}
    for row in select(costs, quantity=DIFFERENCE):
        before, after = float(row.labels["before"]), float(row.labels["after"])
        if after < HALF * before and row.high < 0:
            fall = f"{row.labels['model']} ({before:.1%} to {after:.1%})"
            falls.setdefault((row.labels["guard"], row.labels["of"], row.labels["against"]), []).append(fall)
    for (guard, attribute, against), named in falls.items():
        other = "what it was" if against == BEFORE else "what the same training without the regulariser gives"
        yield _warning(
            f"{guard} of {attribute} fell to less than half of {other} in {', '.join(named)}: a model that now "
            "ignores the value is even because it is off the point (appendix C.6)."
        )


def human_notices(options: Options, views: Sequence[View]) -> Iterator[Notice]:
    """Yield how much of what people rated is in this run."""
    for file in (options.human_file, options.human_relevance_file):
        missing = rated_sentences(file).sentences.keys() - {
            sentence for view in views for sentence in written_sentences(view, rated_sentences(file))
        }
        if missing:
            yield _warning(
                f"{len(missing)} of the {len(rated_sentences(file).sentences)} sentences of {PurePath(file).name} "
                "were not written in this run; repeat it with the seed, the models and the options of the run "
                "they were exported from."
            )


def _info(text: str) -> Notice:
    return Notice(level="info", text=text)


def _warning(text: str) -> Notice:
    return Notice(level="warning", text=text)
