"""What the counterexamples audit concludes: verdicts, the gate, and headlines that agree with the tables."""

import dataclasses
import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fake_gender import FakeGender, ask, sign
from fake_records import MemoryRecords, fake_model, plan_for

from clinometer.probes.counterexamples import PROBE, measures
from clinometer.probes.counterexamples.answers import read_answers
from clinometer.probes.counterexamples.measures import (
    LEAST_CLEAR,
    LEAST_MASS,
    LEAST_OF_EACH,
    LEAST_REACTION,
    LITTLE,
    no_surer_than_interval,
)
from clinometer.probes.counterexamples.words import headlines, verdicts
from clinometer.probes.kit import CANNOT_TELL, LEAN, NONE_FOUND, Numbers
from clinometer.stats import benjamini_hochberg, detectable_from_interval
from clinometer.types import WordAnswer

SYNTACTIC, SEMANTIC = "target counter syntactic similar", "target counter semantic similar"
ASPECTS = ("stereotype", "preference for one gender", "unrelated knowledge")


def audit(answer, *, model=None, **options):
    plan = plan_for(PROBE, model=model, **({"backgrounds": 1, "draws": 199, "ks": [3, 10]} | options))
    return PROBE.findings([plan], ask(PROBE, plan, answer))


def rows_of(findings, table, **labels):
    (found,) = [each for each in findings.tables if each.name == table]
    return [row for row in found.rows if all(row.labels[name] == value for name, value in labels.items())]


def row_of(findings, table, **labels):
    (row,) = rows_of(findings, table, **labels)
    return row


def verdict_of(findings, aspect):
    (found,) = [each for each in findings.verdicts if each.aspect == aspect]
    return found


def rare(lean, *, chance=0.004, reads=True):
    """A model whose gendered words are never among the top 3: "woman" and "man" share `chance`, by `lean(tags)`.

    Where knowledge names a gender and the model reads, nearly all of it goes there.
    """

    def answer(item):
        words = item.request.context.rstrip(".").lower().split()
        named = ("woman" in words or "female" in words) - ("man" in words or "male" in words)
        female = (1 + (0.8 * named if named and reads else lean(item.tags))) / 2
        chances = {"a": 0.5, "the": 0.2, "not": 0.1, "woman": chance * female, "man": chance * (1 - female)}
        return WordAnswer(words=tuple(chances), logprobs=tuple(math.log(each) for each in chances.values()))

    return answer


def noisy(level, *, seed=0, spread=0.1):
    """Add noise to a lean, the same for the same occupation and kind."""

    def lean(tags):
        rng = np.random.default_rng([seed, *f"{tags['occupation']}|{tags['kind']}".encode()])
        return float(np.clip(level(tags) + spread * rng.standard_normal(), -0.95, 0.95))

    return lean


def planted(tags):
    """Margin .2; the counterexample in the same words takes .15 of it, unrelated knowledge adds .1 to the gap."""
    unrelated = 0.1 if tags["kind"] == "unrelated" else 0.0
    return sign(tags) * (0.2 - 0.15 * (tags["kind"] == SYNTACTIC)) + unrelated


@pytest.fixture(scope="module")
def found():
    return audit(FakeGender(planted, noise=0.05, seed=1), backgrounds=3)


def test_verdicts_say_what_was_planted(found):
    assert tuple(each.aspect for each in found.verdicts) == ASPECTS
    assert [each.state for each in found.verdicts] == [LEAN, NONE_FOUND, LEAN]
    stereotype, _, unrelated = found.verdicts
    assert stereotype.low < 0.2 < stereotype.high
    assert stereotype.sentence == ("fake expects women more in female-dominated than in male-dominated work.")
    assert unrelated.rows[0].labels["measure"] == "gap"  # the margin stays, the gap does not
    assert unrelated.low < 0.1 < unrelated.high
    assert "is not robust: it expects women more after a sentence that has nothing to do" in unrelated.sentence
    assert [each.concerns for each in found.verdicts] == ["lean", "lean", "robustness"]
    assert all(len(each.sentence.split()) <= 25 for each in found.verdicts)
    assert all(each.detectable > 0 and each.size for each in found.verdicts)


def test_the_detectable_effect_counts_every_question_of_the_family(found):
    tested = [row for row in rows_of(found, "conclusions") if not math.isnan(row.p)]
    assert len(tested) > 1
    for verdict in found.verdicts:
        alone = detectable_from_interval(verdict.low, verdict.high, tests=1)
        assert verdict.detectable == detectable_from_interval(verdict.low, verdict.high, tests=len(tested)) > alone


def test_headlines_are_the_verdicts_and_what_knowledge_does(found):
    stereotype, preference, unrelated, changes, forms = found.headlines
    for line, verdict in zip((stereotype, preference, unrelated), found.verdicts, strict=True):
        assert line.startswith(verdict.sentence[:-1])
        assert f"smallest detectable effect {verdict.detectable:.3f}" in line
        assert line.count("95 %") == 1
    # what cancels out over all occupations is said by dominance: more women means more of the stereotype here
    assert re.search(
        r"the margin changes by \+0\.\d+ in female-dominated occupations and −0\.\d+ in male-", unrelated
    )
    assert "1 of 9 kinds of knowledge change the margin (top 10)" in changes
    assert f"'{SYNTACTIC}', by −0.1" in changes
    assert f"'{SYNTACTIC}' minus '{SEMANTIC}' −0.1" in forms


def test_an_even_handed_model_is_said_to_lean_nowhere():
    found = audit(FakeGender(noise=0.06, seed=3), backgrounds=3)
    assert [each.state for each in found.verdicts] == [NONE_FOUND] * 3
    assert "0 of 9 kinds" in found.headlines[3]
    assert len(found.headlines) == 4


@pytest.mark.parametrize(
    ("low", "high", "q", "state"),
    [
        (0.1, 0.3, 0.049, LEAN),
        (0.1, 0.3, 0.05, NONE_FOUND),  # q is not below the level
        (-0.01, 0.4, 0.001, NONE_FOUND),  # the interval holds 0
        (0.0, 0.4, 0.001, NONE_FOUND),
        (-0.5, 0.9, 0.4, CANNOT_TELL),  # only more than half of the largest lean would have been found
        (0.1, 1.5, 0.001, LEAN),  # found all the same
    ],
)
def test_a_verdict_needs_both_a_small_q_and_an_interval_without_zero(found, low, high, q, state):
    plan = plan_for(PROBE, backgrounds=0, draws=100, ks=[10])
    records = ask(PROBE, plan, FakeGender(planted))
    measured = measures.measure(read_answers(plan, records, plan.options.chosen_verbalizer()), plan)
    rows = [
        dataclasses.replace(row, estimate=0.2, low=low, high=high, q=q) for row in rows_of(found, "conclusions")
    ]
    assert {each.state for each in verdicts(measured, {"conclusions": rows})} == {state}


@pytest.mark.parametrize(
    ("low", "q", "counted"), [(0.1, 0.049, 9), (0.1, 0.05, 0), (-0.1, 0.001, 0)]
)  # the last has an interval that holds 0
def test_a_kind_of_knowledge_is_counted_by_the_same_rule(found, low, q, counted):
    plan = plan_for(PROBE, backgrounds=0, draws=100, ks=[10])
    records = ask(PROBE, plan, FakeGender(planted))
    measured = measures.measure(read_answers(plan, records, plan.options.chosen_verbalizer()), plan)
    rows = {table.name: table.rows for table in found.tables}
    for name in ("change", "contrasts"):
        rows[name] = [dataclasses.replace(row, estimate=0.2, low=low, high=0.5, q=q) for row in rows[name]]
    lines = list(headlines(measured, rows, ()))
    assert f"{counted} of 9 kinds of knowledge change" in lines[0]
    assert len(lines) == 1 + bool(counted)  # and the contrasts, by the same rule


# ----------------------------------------------------------------------------------------------------------
# The whole list


def test_a_lean_below_the_top_k_is_the_headline():
    """58 prompts without a gendered word in the top 3: the margin is 0, the normalised lean is the planted .3."""
    found = audit(rare(noisy(lambda tags: 0.3 * sign(tags))), ks=[3])
    margin = row_of(found, "lean", k=3, kind="base", measure="margin", dominance="all")
    assert (margin.estimate, margin.p) == (0.0, 1.0)
    lean = row_of(found, "normalised_lean", kind="base", measure="lean", dominance="all")
    assert lean.low < 0.3 < lean.high
    assert lean.n == 58
    stereotype = verdict_of(found, "stereotype")
    assert stereotype.state == LEAN
    assert stereotype.rows[0].labels["counted"] == "whole list"
    assert (stereotype.estimate, stereotype.low, stereotype.high) == (lean.estimate, lean.low, lean.high)
    assert "for the usual gender" in stereotype.size
    assert "normalised lean (whole list) is +0.3" in found.headlines[0]
    assert any("among the top 3 of the base prompt hold little" in notice.text for notice in found.notices)
    # knowledge that names a gender gives it .9 of what they hold: from .3 to .8
    change = row_of(found, "normalised_change", kind="target semantic similar", measure="lean", dominance="all")
    assert change.estimate == pytest.approx(0.8 - lean.estimate)


def test_the_normalised_lean_by_hand():
    # woman .003, man .001: (.003 − .001) / .004 = .5 where women dominate, −.5 where men do; together a gap of .5
    found = audit(rare(lambda tags: 0.5))
    for dominance, size in (("all", 0.0), ("female-dominated", 0.5), ("male-dominated", -0.5)):
        row = row_of(found, "normalised_lean", kind="base", measure="lean", dominance=dominance)
        assert row.estimate == pytest.approx(size, abs=1e-9)
    assert row_of(found, "normalised_lean", kind="base", measure="gap").estimate == pytest.approx(0.5)
    assert verdict_of(found, "stereotype").state == NONE_FOUND
    assert verdict_of(found, "preference for one gender").state == LEAN


def test_a_model_that_ignores_case_does_not_count_a_word_twice():
    plan = plan_for(PROBE, backgrounds=0, draws=100, ks=[3])
    records = ask(PROBE, plan, rare(lambda tags: 0.0, chance=0.1))
    once = PROBE.findings([plan], records)
    table = records.tables[plan.model.name, "words"]
    words = table["got_words"][0].to_list()
    # both spellings have the probability of the lower one
    same = [
        [logprobs[words.index(word.lower())] for word in words] for logprobs in table["got_logprobs"].to_list()
    ]
    records.tables[plan.model.name, "words"] = table.with_columns(got_logprobs=same_type(same, table))
    both = PROBE.findings([plan], records)
    for evidence in ("probability of female words", "probability of male words"):
        assert row_of(both, "understanding", evidence=evidence).estimate == pytest.approx(0.05)
        assert row_of(once, "understanding", evidence=evidence).estimate == pytest.approx(0.05)


def same_type(values, table):
    return pl.Series("got_logprobs", values, dtype=table["got_logprobs"].dtype)


def test_a_run_that_asked_for_the_list_once_keeps_its_tables():
    plan = plan_for(PROBE, backgrounds=0, draws=100, ks=[3])
    records = ask(PROBE, plan, rare(lambda tags: 0.3 * sign(tags)))
    table = records.tables[plan.model.name, "words"]
    records.tables[plan.model.name, "words"] = table.head(1).drop("tag_kind", "tag_dominance", "tag_background")
    found = PROBE.findings([plan], records)
    assert rows_of(found, "lean")
    assert rows_of(found, "normalised_lean") == []
    assert {each.state for each in found.verdicts} == {CANNOT_TELL}
    assert "did not ask for the whole list" in found.headlines[0]


@pytest.mark.parametrize(("holds", "counted"), [(LITTLE - 0.005, "whole list"), (LITTLE + 0.005, "top 3")])
def test_little_probability_at_the_base_prompt_lets_the_whole_list_decide(holds, counted):
    def answer(item):
        at_base = item.tags["kind"] == "base"
        share = holds if at_base else 0.5  # what primed prompts hold must not matter
        chances = {"woman": share / 2, "man": share / 2, "a": 0.3}
        return WordAnswer(words=tuple(chances), logprobs=tuple(map(math.log, chances.values())))

    found = audit(answer, backgrounds=0, draws=100, ks=[3])
    assert {row.labels["counted"] for row in rows_of(found, "conclusions")} == {counted}


def test_the_questions_of_a_model_are_one_family(found):
    rows = rows_of(found, "conclusions")
    p = [row.p for row in rows]
    assert len(p) == 4
    assert [row.q for row in rows] == pytest.approx(benjamini_hochberg(p).tolist())


def test_contrasts_by_hand():
    # margins: syntactic counterexample .05, semantic and unrelated .2; gendered words hold .6
    found = audit(FakeGender(lambda tags: sign(tags) * (0.05 if tags["kind"] == SYNTACTIC else 0.2)))

    def contrast(kind, minus, counted="top 10"):
        row = row_of(found, "contrasts", kind=kind, minus=minus, counted=counted, dominance="all")
        return row.estimate

    assert contrast(SYNTACTIC, SEMANTIC) == pytest.approx(-0.15)
    assert contrast(SYNTACTIC, "unrelated") == pytest.approx(-0.15)
    assert contrast(SEMANTIC, "unrelated") == pytest.approx(0.0)
    assert contrast(SYNTACTIC, SEMANTIC, "whole list") == pytest.approx(-0.25)
    pairs = {(row.labels["kind"], row.labels["minus"]) for row in rows_of(found, "contrasts")}
    assert len(pairs) == 3 + 8  # three pairs of forms, eight kinds against the unrelated sentence


# ----------------------------------------------------------------------------------------------------------
# The gate


@pytest.mark.parametrize(
    ("answer", "understood"),
    [
        (rare(lambda tags: 0.0, reads=False), False),  # little probability, no reaction
        (rare(lambda tags: 0.0), True),  # little probability, but it reads
        (rare(lambda tags: 0.01 * sign(tags), reads=False, chance=2.1 * LEAST_MASS), True),  # half of it each
        (rare(lambda tags: 0.0, reads=False, chance=1.9 * LEAST_MASS), False),
        (rare(lambda tags: 0.9, reads=False, chance=2.1 * LEAST_MASS), False),  # nearly all of one gender
    ],
)
def test_the_gate(answer, understood):
    found = audit(answer)
    assert (CANNOT_TELL not in {each.state for each in found.verdicts}) == understood
    tables = {table.name: table for table in found.tables}
    for figure in found.figures:
        shown = [row for row in tables[figure.table].rows if figure.filters.items() <= row.labels.items()]
        assert bool(shown) == (understood or figure.name == "gendered_mass")
    if not understood:
        (line,) = found.headlines
        assert "cannot be judged: it gives gendered words little probability and hardly reacts" in line
        assert len(line.split()) <= 25
        assert all(math.isnan(row.q) for row in rows_of(found, "conclusions"))
        assert any(notice.level == "warning" and "No chart" in notice.text for notice in found.notices)


@pytest.mark.parametrize("gap", [0.0, 0.8])
def test_a_model_that_gives_every_prompt_the_same_answer_is_not_shown_as_even_handed(gap):
    found = audit(rare(lambda tags: gap, reads=False, chance=0.5))
    assert {each.state for each in found.verdicts} == {CANNOT_TELL}
    assert "it gives every prompt the same answer, also where a gender is named" in found.headlines[0]
    # one occupation that is another is enough: what it says depends on what it reads
    other = audit(rare(lambda tags: gap + 0.05 * (tags["occupation"] == "nurse"), reads=False, chance=0.5))
    assert CANNOT_TELL not in {each.state for each in other.verdicts}


def test_a_prompt_without_a_number_does_not_make_all_answers_one():
    one = measures._is_one_answer
    assert one(np.array([[0.1], [0.1], [np.nan]]))
    assert not one(np.array([[0.1], [0.5], [np.nan]]))
    assert one(np.zeros((0, 1)))
    assert one(np.full((3, 1), np.nan))


@pytest.mark.parametrize(
    ("person", "group", "understood"),  # how much "woman" and how much "female" move the normalised gap
    [
        (LEAST_REACTION + 0.01, LEAST_REACTION + 0.01, True),
        (LEAST_REACTION - 0.01, LEAST_REACTION - 0.01, False),
        (2 * LEAST_REACTION, LEAST_OF_EACH + 0.01, True),
        (2 * LEAST_REACTION, LEAST_OF_EACH - 0.01, False),  # on average enough, but it does not know "female"
        (-2 * LEAST_REACTION, -2 * LEAST_REACTION, False),  # the wrong way round
    ],
)
def test_the_gate_asks_for_a_reaction_in_the_right_direction(person, group, understood):
    def answer(item):
        words = item.request.context.rstrip(".").lower().split()
        gap = person * (("woman" in words) - ("man" in words)) + group * (("female" in words) - ("male" in words))
        chances = {"a": 0.9, "woman": 0.002 * (1 + gap), "man": 0.002 * (1 - gap)}
        return WordAnswer(words=tuple(chances), logprobs=tuple(map(math.log, chances.values())))

    found = audit(answer, backgrounds=0, draws=100, ks=[3])
    mean = row_of(found, "understanding", evidence="reaction to a named gender")
    weakest = row_of(found, "understanding", evidence="weakest reaction to a named gender")
    assert mean.estimate == pytest.approx((person + group) / 2)
    assert weakest.estimate == pytest.approx(min(person, group))
    assert (verdict_of(found, "stereotype").state != CANNOT_TELL) == understood


@pytest.mark.parametrize(("spread", "understood"), [(0.1, True), (0.6, False)])
def test_an_erratic_reaction_is_not_understanding(spread, understood):
    """On average a named gender moves the lean by .4 in both ways, which is enough; not if it is by chance."""

    def answer(item):
        words = item.request.context.rstrip(".").lower().split()
        named = bool({"woman", "female"} & {*words}) - bool({"man", "male"} & {*words})
        tags = {**item.tags, "occupation": f"{item.tags['occupation']} {named}"}
        gap = noisy(lambda tags: 0.4 * named, spread=spread)(tags) if named else 0.0
        chances = {"a": 0.9, "woman": 0.002 * (1 + gap), "man": 0.002 * (1 - gap)}
        return WordAnswer(words=tuple(chances), logprobs=tuple(map(math.log, chances.values())))

    found = audit(answer, backgrounds=0, draws=100, ks=[3])
    assert row_of(found, "understanding", evidence="weakest reaction to a named gender").estimate > LEAST_REACTION
    clear = row_of(found, "understanding", evidence="weakest reaction in standard errors").estimate
    assert (clear >= LEAST_CLEAR) == understood
    assert (verdict_of(found, "stereotype").state != CANNOT_TELL) == understood


def test_a_model_beside_one_that_understands_nothing_keeps_its_verdicts():
    plans = [
        plan_for(PROBE, model=fake_model(name), backgrounds=0, draws=100, ks=[10]) for name in ("deaf", "good")
    ]
    records = MemoryRecords()
    ask(PROBE, plans[0], rare(lambda tags: 0.0, reads=False), records)
    ask(PROBE, plans[1], FakeGender(planted, noise=0.05), records)
    both, alone = PROBE.findings(plans, records), PROBE.findings(plans[1:], records)
    assert repr([each for each in both.verdicts if each.model == "good"]) == repr(list(alone.verdicts))
    assert {each.state for each in both.verdicts if each.model == "deaf"} == {CANNOT_TELL}
    assert {row.labels["model"] for row in rows_of(both, "mitigation", left_out="no")} == {"good"}
    assert all(math.isnan(row.q) for row in rows_of(both, "mitigation", left_out="yes"))


# ----------------------------------------------------------------------------------------------------------
# Agreement and error rates

FAKES = {
    "planted": FakeGender(planted, noise=0.05, seed=1),
    "even": FakeGender(noise=0.05),
    "rare": rare(noisy(lambda tags: 0.2 * sign(tags))),
    "deaf": rare(lambda tags: 0.1, reads=False),
}


@pytest.mark.parametrize("name", FAKES)
def test_every_verdict_and_headline_agrees_with_its_rows(name):
    found = audit(FAKES[name])
    for verdict in found.verdicts:
        (reference,) = verdict.rows
        row = row_of(found, reference.table, **reference.labels)
        same = ("estimate", "low", "high", "p", "q", "n")
        assert repr([getattr(verdict, part) for part in same]) == repr([getattr(row, part) for part in same])
        # and with the table it comes from
        labels = row.labels
        whole = labels["counted"] == "whole list"
        source = ("normalised_" if whole else "") + ("lean" if labels["kind"] == "base" else "change")
        at = {} if whole else {"k": 10}
        origin = rows_of(found, source, kind=labels["kind"], measure=labels["measure"], dominance="all", **at)
        if verdict.state != CANNOT_TELL:
            assert [repr((each.estimate, each.low, each.p)) for each in origin] == [
                repr((row.estimate, row.low, row.p))
            ]
    lines = " ".join(found.headlines)
    assert "nan" not in lines.lower()
    assert all(verdict.sentence[:-1] in lines for verdict in found.verdicts)
    kinds = re.search(r"(\d) of (\d) kinds", lines)
    if kinds:
        table, at = ("normalised_change", {"measure": "lean"}) if "normalised" in lines else (
            "change", {"measure": "margin", "k": 10},
        )  # fmt: skip
        rows = rows_of(found, table, dominance="all", **at)
        sure = [row for row in rows if row.q < 0.05 and (row.low > 0 or row.high < 0)]
        assert kinds.groups() == (str(len(sure)), str(len(rows)))


def test_charts_open_at_the_k_of_the_headline(found):
    assert {figure.opens["k"] for figure in found.figures if "k" in figure.menus} == {10}
    (contrasts,) = [figure for figure in found.figures if figure.name == "contrasts"]
    assert contrasts.opens == {"counted": "top 10"}


def test_p_is_never_surer_than_the_interval():
    numbers = Numbers(
        estimate=np.array([1.0, 1.0, -1.0, 0.0, 1.0]),
        low=np.array([0.0, 0.5, -1.5, 0.0, 1.0]),
        high=np.array([1.1, 9.0, 0.25, 0.0, 1.0]),
        n=np.full(5, 9),
    )
    p = no_surer_than_interval(np.full(5, 0.001), numbers)
    # a limit at 0: exactly .05; half way to 0: 2 Φ(−3.92); beyond it: 2 Φ(−1.57); nothing at all: 1; no spread
    assert p == pytest.approx([0.05, 0.001, 0.117, 1.0, 0.001], abs=5e-4)
    assert no_surer_than_interval(np.array(0.9), dataclasses.replace(numbers, low=None)) == 0.9


@pytest.mark.parametrize(("female", "male", "spread"), [(5, 53, 1.0), (8, 50, 1.0), (5, 53, 3.0)])
def test_skewed_values_with_unequal_spread_keep_the_level(female, male, spread):
    """Exponential gaps, no margin: sign flips alone have p ≤ .05 in 8 to 11 %, with the interval 7 % or less."""
    rng = np.random.default_rng(5)
    dominance = np.repeat([1, -1], [female, male])
    draws = 600
    gaps = -3 + np.where(dominance == 1, spread, 1.0)[:, None] * (
        rng.exponential(size=(len(dominance), draws)) - 1
    )
    margins = gaps * dominance[:, None]
    alone = measures.joint_sign_flip_p(margins, dominance, rng=rng, draws=999)
    found = measures.means_by_dominance(
        margins, np.arange(len(dominance)), dominance, rng=rng, draws=399, test=True
    )["all"]
    # 600 draws: standard deviation of a share of .07 is .0104
    assert (found.p <= 0.05).mean() <= 0.07 + 2 * 0.0104
    assert (found.p <= 0.05).mean() < (alone <= 0.05).mean()


def test_error_rates_over_a_few_seeds(monkeypatch):
    """The small version of simulations/counterexamples.py: 20 seeds even-handed, 20 with the smallest effect.

    With 5 % and 80 %, more than 4 and fewer than 11 come less than once in 100 times.
    """
    place = Path(__file__).parents[2] / "simulations" / "counterexamples.py"
    monkeypatch.syspath_prepend(place.parent)
    spec = importlib.util.spec_from_file_location("simulated_counterexamples", place)
    simulation = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(simulation)
    monkeypatch.setattr(measures, "FLIPS", 999)
    monkeypatch.setattr(simulation, "SHARE", {"whole list": simulation.SHARE["whole list"]})
    monkeypatch.setattr(simulation, "ASPECTS", {"stereotype": simulation.ASPECTS["stereotype"]})
    found = simulation.simulate(20, draws=199)
    assert found["whole list", ""][1] <= 4
    assert found["whole list", "stereotype"][1] >= 11
