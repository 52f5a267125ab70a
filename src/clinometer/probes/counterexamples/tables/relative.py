"""How much more or less probable knowledge makes the gendered words that the base prompt offers too (Eq. 1)."""

from __future__ import annotations

import numpy as np

from clinometer.probes.counterexamples.view import View
from clinometer.probes.kit.numbers import with_q
from clinometer.types import Finding


def relative_rows(view: View) -> list[Finding]:
    """Return the relative probability of pro- and anti-stereotypical words, by kind and dominance."""
    ratios = np.stack([view.measures.log_ratio_pro, view.measures.log_ratio_anti], axis=-1)
    # the mean of logarithms is the logarithm of the geometric mean
    numbers = [view.estimate(ratios, kind, test=True) for kind in view.knowledge]
    return with_q(
        of_kind[dominance]
        .transformed(np.exp)
        .finding((i, w), view.labels(k, kind, dominance=dominance, words=words))
        for i, k in enumerate(view.ks)
        for kind, of_kind in zip(view.knowledge, numbers, strict=True)
        for dominance in view.dominances
        for w, words in enumerate(("pro-stereotypical", "anti-stereotypical"))
    )
