"""What a reader must know before believing the numbers of the counterexamples audit."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from clinometer.data import Verbalizer, read_text
from clinometer.probes.counterexamples.dominances import FEWEST
from clinometer.probes.counterexamples.model_findings import ModelFindings
from clinometer.probes.counterexamples.options import Options
from clinometer.types import Notice

LITTLE = 0.05  # mean gendered probability below which the audit says little about the model


def general_notices(options: Options, verbalizer: Verbalizer, found: Sequence[ModelFindings]) -> Iterator[Notice]:
    """Yield what holds for all models."""
    counts = Counter(verbalizer.values())
    source = "the built-in list"
    if options.verbalizer_file:
        digest = hashlib.sha256(read_text(options.verbalizer_file).encode()).hexdigest()
        # the name alone: a run may lie in another folder when its findings are recomputed
        source = f"'{PurePath(options.verbalizer_file).name}' (SHA-256 of its text: {digest})"
    yield Notice(
        level="info",
        text=(
            f"{counts['female']} female and {counts['male']} male words from {source} are counted, in lower "
            "case; words in neither list are shown but belong to no gender. Only the k most probable words "
            "are asked for."
        ),
    )
    occupations = sorted({each.occupations for each in found})
    few = occupations[0] < 10
    yield Notice(
        level="warning" if few else "info",
        text=(
            f"Results rest on {' or '.join(map(str, occupations))} occupations, each asked about in one "
            "wording; they speak for these occupations and this wording"
            + (", and intervals from fewer than 10 occupations are rough." if few else ".")
        ),
    )
    yield from _dominance_notices(found[0])  # the occupations are the same for all models
    tests = sum(row.p == row.p for row in found[0].rows["change"])
    yield Notice(
        level="info",
        text=(
            f"The table of changes makes {tests} tests for each model; one in twenty would have p < 0.05 by "
            "chance. Read q, which is corrected over all of them."
        ),
    )
    if options.backgrounds == 0:
        yield Notice(
            level="info",
            text="backgrounds = 0: the three kinds of knowledge about another occupation were not asked.",
        )


def _dominance_notices(found: ModelFindings) -> Iterator[Notice]:
    for name, count in found.dominances.items():
        if count == 0:
            yield Notice(
                level="warning",
                text=(
                    f"No occupation is {name}, so the margin cannot be told from a preference for one gender "
                    "everywhere: nothing is said about 'all' occupations, and there is no gap."
                ),
            )
        elif count < FEWEST:
            yield Notice(
                level="warning",
                text=(
                    f"Only {count} of the occupations {'is' if count == 1 else 'are'} {name}; with fewer than "
                    f"{FEWEST} no interval can be trusted, so neither they nor 'all' have one, and 'all' has no p."
                ),
            )


def _word_notice(found: ModelFindings) -> Notice | None:
    listed = [word for each in found.listed for word in each.words]
    lost = [word for each in found.listed for word in each.lost]
    if not lost:
        return None
    serious = any(2 * len(each.lost) > len(each.words) for each in found.listed)
    return Notice(
        level="warning" if serious else "info",
        text=(
            f"{len(lost)} of {len(listed)} listed words are not one token of {found.model} and cannot be offered: "
            f"{', '.join(lost)}."
        ),
    )


def model_notices(found: ModelFindings, *, causal: bool) -> Iterator[Notice]:
    """Yield what holds for one model."""
    little = [k for k, mass in found.gendered.items() if mass < LITTLE]
    if little:
        k = little[-1]
        yield Notice(
            level="warning",
            text=(
                f"{found.model}: the top {k} words hold little gendered probability ({found.gendered[k]:.3g} "
                f"on average; for k = {', '.join(map(str, little))} it is below {LITTLE}), so the tables "
                "describe a small part of what this model expects. The table of words shows what it offers "
                "instead; a larger k, such as ks = [10, 100], looks further down its list."
            ),
        )
    words = _word_notice(found)
    if words:
        yield words
    none = {k: count for k, count in found.without_words.items() if count}
    if none:
        listed = ", ".join(f"{count} of {found.occupations} for k = {k}" for k, count in none.items())
        yield Notice(
            level="info",
            text=(
                f"{found.model}: base prompts without any gendered word among the top k: {listed}. They count as "
                "a margin of 0 and have no dominant gender that could be kept."
            ),
        )
    if found.missing:
        yield Notice(
            level="warning",
            text=(
                f"{found.model}: {found.missing} of {found.prompts} answers have a probability that is not a "
                "number; they are left out."
            ),
        )
    if causal:
        yield Notice(
            level="info",
            text=(
                f'{found.model} continues text: its words stand after "The target is" and are often articles or '
                "adjectives. Compare it with models that fill a blank by sign and not by size."
            ),
        )
