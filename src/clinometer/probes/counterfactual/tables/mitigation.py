"""The models of a mitigation side by side, as in Table 1 of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from clinometer.probes.counterfactual.specification import Chosen
from clinometer.probes.counterfactual.tables.change import tuned_labels
from clinometer.probes.counterfactual.tables.distances import EXCESS, GROUP, INDIVIDUAL, MEASURED
from clinometer.probes.counterfactual.tables.guards import ALL_VALUES, MENTIONS, SIMILAR, WHOLE, passages_about
from clinometer.probes.counterfactual.tunings import ABSENT, AS_GIVEN, Tuned, no_strength
from clinometer.probes.kit.numbers import Label, select
from clinometer.types import Finding, ModelInfo

SIMILAR_PERCENT, MENTIONS_PERCENT = f"{SIMILAR} %", f"{MENTIONS} %"  # as the paper prints them

DIGITS = 12  # of a checksum that are shown

Rows = Mapping[str, Sequence[Finding]]


def mitigation_rows(
    models: Sequence[ModelInfo], tuned: Sequence[Tuned], attributes: Sequence[Chosen], rows: Rows
) -> Iterator[Finding]:
    """Yield a row for each model, attribute and scorer: what was given first, then method by method, λ by λ."""
    scorers = dict.fromkeys(str(row.labels["scorer"]) for row in rows["fairness"])
    guards = {(str(row.labels["model"]), str(row.labels["part"])): row.estimate for row in rows["perplexity"]}
    bases = dict.fromkeys(each.base for each in tuned)
    for base in bases:
        for chosen in attributes:
            mine = [each for each in tuned if each.base == base and chosen in each.shown_for(attributes)]
            for scorer in scorers if mine else ():
                given: dict[str, Label] = {"method": AS_GIVEN, "strength": no_strength(tuned)}
                shown = [(base, given)]
                shown += [(each.model, {"method": each.method, "strength": each.strength}) for each in mine]
                for number, how in shown:
                    if len(bases) > 1:
                        how |= {"base": models[base].name}
                    yield _row(models[number].name, how, chosen.name, scorer, rows, guards)


def _row(
    model: str,
    how: Mapping[str, Label],
    attribute: str,
    scorer: str,
    rows: Rows,
    perplexities: Mapping[tuple[str, str], float],
) -> Finding:
    about = {"model": model, "attribute": attribute}
    found = {
        (row.labels["measure"], row.labels["quantity"]): row
        for row in select(rows["fairness"], **about, scorer=scorer)
    }
    whole = found[INDIVIDUAL, MEASURED]
    # the long name at the end, so that the table begins with what is compared
    labels: dict[str, Label] = {**how, "attribute": attribute, "scorer": scorer}
    labels[INDIVIDUAL] = round(whole.estimate, 4)
    if perplexities:
        labels |= {
            name: round(perplexities.get((model, part), math.nan), 2)
            for name, part in (("PPL", WHOLE), ("PPL^s", passages_about(attribute)))
        }
    for row in select(rows["relevance"], **about, value=ALL_VALUES):
        name = SIMILAR_PERCENT if row.labels["measure"] == SIMILAR else MENTIONS_PERCENT
        another = f"{SIMILAR} % ({row.labels['by']})"  # by a second encoder
        labels[another if name in labels else name] = round(100 * row.estimate, 2)
    labels |= {
        GROUP: round(found[GROUP, MEASURED].estimate, 4),
        "excess": round(found[INDIVIDUAL, EXCESS].estimate, 4),
        "model": model,
    }
    return Finding(labels=labels, estimate=whole.estimate, low=whole.low, high=whole.high, n=whole.n)


def weight_rows(models: Sequence[ModelInfo], tuned: Sequence[Tuned]) -> Iterator[Finding]:
    """Yield the share of the weights of each checkpoint that differ from its base, as its card says."""
    for each in tuned:
        model, base = models[each.model], models[each.base]
        changed, every = (_count(model.tuning.get(name, "")) for name in ("changed", "weights"))
        yield Finding(
            labels={
                **tuned_labels(model.name, each),
                "base": base.name,
                "checksum_before": base.weights[:DIGITS],
                "checksum_after": model.weights[:DIGITS],
                "changed": ABSENT if changed is None else f"{changed:,}",
                "weights": ABSENT if every is None else f"{every:,}",
            },
            estimate=math.nan if changed is None or not every else changed / every,
            n=changed or 0,
        )


def _count(text: str) -> int | None:
    """Read a number of weights; None for what is none."""
    return int(text) if text.isdecimal() else None
