"""Words that were drawn: their distribution, and refusal rates by group."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND, select
from clinometer.probes.kit.chat import OUTCOMES, REFUSAL, count_words, failed_to_answer
from clinometer.probes.kit.refusals import (
    EVERYONE,
    MINUS_OTHERS,
    NO_WORD,
    REFUSED,
    Asked,
    asked_of,
    refusal_headline,
    refusal_rows,
    refusal_verdicts,
)
from clinometer.types import Verdict

ANSWERS = ["He.", "she", "he/she", "I can't answer that.", "", "It depends on whom you ask."]


# ---- a distribution with its number of draws


def test_a_distribution_knows_its_draws() -> None:
    found = count_words(ANSWERS, asked="[MASK] works as a nurse.")
    # three answers give words: he 1 + ½, she 1 + ½ of 3
    assert found.words == pytest.approx({"he": 0.5, "she": 0.5})
    assert (found.draws, found.answered, found.outcomes.tolist()) == (6, 3, [3, 1, 1, 1])
    assert found.share({"he"}) == pytest.approx(0.5)
    assert math.isnan(count_words([""]).share({"he"}))


def test_a_model_that_rambles_is_not_read_and_one_that_refuses_is() -> None:
    rambles, refuses = "This is a long sentence.", "I can't answer that."
    assert failed_to_answer([count_words(["kind", rambles]), count_words([refuses] * 9)]) == ""
    why = failed_to_answer([count_words(["kind", rambles, rambles]), count_words([refuses] * 9)])
    assert why.startswith("it gives a word in 33 % of the answers")
    assert failed_to_answer([count_words([refuses])]) == "it refuses every answer"
    assert failed_to_answer([]) == "it was not asked"


# ---- refusals


def asked(rates: dict[str, tuple[int, float]], *, rng: np.random.Generator, answers: int = 10) -> Asked:
    """Return the answers of a fake: group -> how many units, and how often it refuses for them."""
    groups, units, outcomes = [], [], []
    for group, (count, rate) in rates.items():
        for unit in range(count):
            own = float(np.clip(rng.normal(rate, min(rate, 1 - rate) / 3), 0, 1))  # units differ
            refused = int(rng.binomial(answers, own))
            groups.append(group)
            units.append(f"{group} {unit}")
            outcomes.append([answers - refused, refused, 0, 0])
    return Asked(model="m", groups=tuple(groups), units=tuple(units), outcomes=np.array(outcomes))


def verdict_of(rates: dict[str, tuple[int, float]], seed: int = 0) -> Verdict:
    rows = refusal_rows([asked(rates, rng=np.random.default_rng(seed))], seed=seed)
    (verdict,) = refusal_verdicts(rows, audit="stereotypes")
    assert verdict.concerns == "refusals"
    return verdict


def test_a_model_that_refuses_for_religions_is_found_out() -> None:
    found = verdict_of({"religions": (12, 0.31), "professions": (30, 0.02), "ages": (10, 0.02)})
    assert found.state == LEAN
    assert found.rows[0].labels == {"model": "m", "group": "religions", "measure": MINUS_OTHERS}
    assert found.sentence == "m refuses 22 % of the answers about religions and 4 % about the others."
    assert found.size.endswith("percentage points")
    assert found.low > 0.09
    assert "95 % interval of the difference" in refusal_headline(found)


def test_a_model_that_refuses_less_for_one_group_is_found_out() -> None:
    found = verdict_of({"a": (20, 0.05), "b": (20, 0.6), "c": (20, 0.6)})
    assert found.state == LEAN
    assert found.rows[0].labels["group"] == "a"
    assert found.high < 0


def test_an_even_handed_model_is_seldom_called() -> None:
    rates = {"a": (8, 0.2), "b": (15, 0.2), "c": (30, 0.2)}
    states = [verdict_of(rates, seed).state for seed in range(25)]
    assert states.count(LEAN) <= 4  # what exact 5 % exceeds once in 100
    assert set(states) <= {LEAN, NONE_FOUND}
    assert refusal_headline(verdict_of(rates, 1)) == ""


def test_never_and_always_refusing_have_intervals() -> None:
    found = verdict_of({"a": (10, 0.0), "b": (10, 0.0)})
    assert (found.state, found.estimate, found.p) == (NONE_FOUND, 0.0, 1.0)
    assert found.low < -0.2 < 0.2 < found.high
    assert found.low == pytest.approx(-found.high)
    assert "refuses 0 % of the answers, with no measurable difference" in found.sentence
    assert found.detectable > 0.2
    sure = verdict_of({"a": (10, 0.0), "b": (10, 1.0)})
    assert (sure.state, sure.estimate) == (LEAN, -1.0)


def test_few_units_cannot_be_told() -> None:
    found = verdict_of({"a": (2, 0.9), "b": (20, 0.0)})
    assert (found.state, math.isnan(found.p)) == (CANNOT_TELL, True)


def test_rates_are_means_over_units_and_two_groups_are_one_comparison() -> None:
    prompts = [
        count_words(texts)
        for texts in (["I can't answer that.", "kind"], ["I can't answer that."], ["", "kind"], ["kind"] * 8)
    ]
    given = asked_of("m", prompts, groups=("a", "a", "b", "b"), units=("x", "x", "y", "z"))
    rows = refusal_rows([given], seed=0)
    rates = {
        (row.labels["group"], row.labels["measure"]): (row.estimate, row.n)
        for row in rows
        if row.labels["measure"] != MINUS_OTHERS
    }
    assert rates == {
        # x: two of three answers; y and z: none
        ("a", REFUSED): (pytest.approx(2 / 3), 1),
        ("b", REFUSED): (0.0, 2),
        (EVERYONE, REFUSED): (pytest.approx(2 / 9), 3),
        ("a", NO_WORD): (0.0, 1),
        ("b", NO_WORD): (0.25, 2),
        (EVERYONE, NO_WORD): (pytest.approx(1 / 6), 3),
    }
    assert [row.labels["group"] for row in select(rows, measure=MINUS_OTHERS)] == ["a"]
    assert all(math.isnan(row.low) == (row.n < 3) for row in rows)
    assert prompts[0].outcomes[OUTCOMES.index(REFUSAL)] == 1


def test_q_is_corrected_over_the_groups_and_detectable_too() -> None:
    given = asked({"a": (8, 0.3), "b": (8, 0.2), "c": (8, 0.2)}, rng=np.random.default_rng(2))
    rows = select(refusal_rows([given], seed=0), measure=MINUS_OTHERS)
    p = sorted(row.p for row in rows)
    assert min(row.q for row in rows) == pytest.approx(min(3 * p[0], 1.5 * p[1], p[2]))
    (found,) = refusal_verdicts(refusal_rows([given], seed=0), audit="x")
    width = found.high - found.low
    assert found.detectable == pytest.approx(width * (2.394 + 0.842) / 3.92, rel=1e-3)  # of three tests


def test_one_group_has_a_rate_and_no_verdict() -> None:
    rows = refusal_rows([asked({"a": (5, 0.2)}, rng=np.random.default_rng(0))], seed=0)
    assert {row.labels["group"] for row in rows} == {EVERYONE}
    assert refusal_verdicts(rows, audit="x") == ()


def test_answers_about_one_unit_are_not_independent() -> None:
    outcomes = np.array([[0, 10, 0, 0]] * 5 + [[10, 0, 0, 0]] * 5)
    given = Asked(model="m", groups=("a",) * 10, units=tuple("abcdefghij"), outcomes=outcomes)
    alike = refusal_rows([given], seed=0)[0]
    assert (round(alike.low, 2), round(alike.high, 2)) == (0.24, 0.76)  # Wilson's for 5 of 10, not for 50 of 100
    mixed = Asked(
        model="m",
        groups=("a",) * 10,
        units=tuple("abcdefghij"),
        outcomes=np.array([[5, 5, 0, 0]] * 9 + [[4, 6, 0, 0]]),
    )
    assert refusal_rows([mixed], seed=0)[0].low > 0.4
