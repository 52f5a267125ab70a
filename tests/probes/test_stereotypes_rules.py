"""Rules of the stereotypes audit, on rows written by hand."""

import math

import numpy as np
import pytest

from clinometer.probes.kit import CANNOT_TELL, LEAN
from clinometer.probes.stereotypes.measures import Similarity
from clinometer.probes.stereotypes.tables import _similarity
from clinometer.probes.stereotypes.words import _of_category, _single
from clinometer.stats import benjamini_hochberg
from clinometer.types import Finding


def row(**fields):
    numbers = {name: fields.pop(name) for name in ("estimate", "low", "high", "q", "n") if name in fields}
    return Finding(labels={"model": "m", "detectable": 0.1, **fields}, **numbers)


def test_a_group_that_is_found_comes_before_one_with_a_smaller_q():
    unsure = row(group="a", estimate=0.1, low=-0.1, high=0.3, q=0.001)  # the interval holds 0
    found = row(group="b", estimate=0.2, low=0.1, high=0.3, q=0.04)
    verdict = _single("m", [unsure, found])
    assert (verdict.state, verdict.rows[0].labels["group"]) == (LEAN, "b")


def test_a_category_asked_alone_says_why_it_cannot_be_told():
    nothing = dict.fromkeys(("estimate", "low", "high", "q"), math.nan)
    alone = _of_category("m", row(category="country", n=9, **nothing))
    assert alone.state == CANNOT_TELL
    assert alone.reason == "no groups besides the category country are asked in the same words"
    few = _of_category("m", row(category="age", estimate=0.1, low=math.nan, high=math.nan, q=math.nan, n=3))
    assert few.reason == "too little was measured for an interval"


def test_similarities_are_corrected_over_the_pairs_of_a_category():
    p = np.array([[1.0, 0.01, 0.02], [0.01, 1.0, 0.5], [0.02, 0.5, 1.0]])
    each = Similarity(category="age", groups=9, mean=p, low=p, high=p, chance=p, p=p)
    q = {(r.labels["model"], r.labels["other_model"]): r.q for r in _similarity("abc", [each])}
    corrected = benjamini_hochberg([0.01, 0.02, 0.5])
    assert [q["a", "b"], q["a", "c"], q["b", "c"]] == pytest.approx(corrected)
    assert q["b", "a"] == q["a", "b"]
