"""What follows from I.F. and G.F.: every clause of the rule, the gate, the families, and how often it is right."""

import importlib.util
import math
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_generator import generator, roles, rows_of, write_attribute

import clinometer
from clinometer.data import Attribute, Value
from clinometer.metrics import fairness_epsilon, pair_null, pairwise_wasserstein, wasserstein1
from clinometer.metrics.value_means import against_whole, shuffled_scores, subgroup_differences
from clinometer.models.fake import FakeModel
from clinometer.probes.counterfactual import measures
from clinometer.probes.counterfactual.answers import ModelAnswers, RelevanceCounts, Scores, off_topic
from clinometer.probes.counterfactual.measures import detectable_excess, measure
from clinometer.probes.counterfactual.options import Options
from clinometer.probes.counterfactual.questions import AskedAttribute
from clinometer.probes.counterfactual.tables import fairness_rows, subgroup_difference_rows, value_rows
from clinometer.probes.counterfactual.words import model_headlines, verdicts_of
from clinometer.types import EmbedAnswer, Finding

SIMULATIONS = Path(__file__).parent.parent.parent / "simulations" / "counterfactual.py"


@pytest.fixture(autouse=True)
def quick_verdicts(monkeypatch):
    """The verdict at ε takes most of the time, and little here asks about it."""
    monkeypatch.setattr(fairness_epsilon, "WORST_DRAWS", 3)


def asked_about(name, *, values=3, templates=2, subgroups=(), first=0):
    groups = subgroups or ("",) * values
    attribute = Attribute(
        name=name,
        values=tuple(Value(text=f"{name}{at}", subgroup=groups[at]) for at in range(values)),
        subgroups=tuple(dict.fromkeys(subgroups)),
        templates=tuple(f"Template {at} {{value}}" for at in range(templates)),
    )
    return AskedAttribute(attribute=attribute, whole=attribute, first=first)


def measured_of(*attributes, samples=12, gap=0.0, relevance=(), seed=0):
    """Measure drawn scores; the first value of each attribute lies the gap above the others."""
    scores = []
    for scorer in ("one", "two"):
        parts = []
        for asked in attributes:  # each attribute has scores of its own, whatever else is asked
            rng = np.random.default_rng([seed, len(scorer), *map(ord, asked.name), scorer == "one"])
            drawn = rng.uniform(0, 1, size=(*asked.shape, samples))
            drawn[:, 0] = (1 - gap) * drawn[:, 0] + gap
            parts.append(drawn.reshape(-1, samples))
        scores.append(Scores(scorer=scorer, values=np.concatenate(parts), without_opinion=math.nan))
    answers = ModelAnswers(
        model="m",
        options=Options(draws=199),
        seed=seed,
        attributes=attributes,
        texts=None,
        scores=tuple(scores),
        relevance=tuple(relevance),
    )
    return measure(answers)


FOUND = {"estimate": 0.1, "low": 0.05, "high": 0.15, "q": 0.01}
NOT = {"estimate": 0.1, "low": 0.05, "high": 0.15, "q": 0.2}
OVER = {"estimate": 0.1, "low": -0.05, "high": 0.25, "q": 0.01}
NOTHING = {"estimate": math.nan, "low": math.nan, "high": math.nan, "q": math.nan}


@pytest.fixture(scope="module")
def two():
    return measured_of(asked_about("colour"))


def concluded(measured, *, individual, group):
    """What follows by both scorers when I.F. and G.F. have the given numbers."""
    given = {"I.F.": individual, "G.F.": group}
    rows = [
        replace(row, **given[row.labels["measure"]])
        if row.labels["quantity"] == "excess" and row.labels["measure"] in given
        else row
        for row in fairness_rows(measured)
    ]
    return verdicts_of(measured, rows)


@pytest.mark.parametrize(
    ("individual", "group", "state", "by"),
    [
        (FOUND, NOT, "lean", "I.F."),
        (NOT, FOUND, "lean", "G.F."),  # both count
        (OVER, FOUND, "lean", "G.F."),
        (NOTHING, FOUND, "lean", "G.F."),
        (NOT, NOT, "none found", "I.F."),
        (OVER, OVER, "none found", "I.F."),  # p alone is not enough
        (NOTHING, NOT, "none found", "G.F."),
        (NOTHING, NOTHING, "cannot tell", "I.F."),
    ],
)
def test_either_measure_makes_a_verdict(two, individual, group, state, by):
    for verdict in concluded(two, individual=individual, group=group):
        assert verdict.state == state
        assert [row.labels["measure"] for row in verdict.rows] == [by, *({"I.F.", "G.F."} - {by})]
        assert len(verdict.sentence.split()) <= 25


def test_the_clearer_of_two_leans_is_what_it_rests_on(two):
    (verdict, _) = concluded(two, individual=FOUND, group={**FOUND, "q": 0.001})
    assert verdict.rows[0].labels["measure"] == "G.F."


def test_a_gate_is_before_everything(two):
    gated = [replace(each, gate="off topic") for each in two]
    assert {each.state for each in concluded(gated, individual=FOUND, group=FOUND)} == {"cannot tell"}


def test_the_detectable_effect_counts_the_whole_family(two):
    """I.F. and G.F. by two scorers: four questions."""
    for verdict, each in zip(concluded(two, individual=FOUND, group=NOT), two, strict=True):
        name, _, interval = next(found for found in each.measures if found[0] == "I.F.")
        expected = detectable_excess(each, name, interval, tests=4)
        assert verdict.detectable == expected > detectable_excess(each, name, interval, tests=1)


def test_the_size_is_a_share_of_the_range_and_nothing_where_chance_gives_more():
    (verdict, _) = concluded(measured_of(asked_about("occupation")), individual=FOUND, group=NOT)
    assert verdict.size == "10.0 % of the range of scores, beyond chance"
    below = {**NOT, "estimate": -0.02}
    (other, _) = concluded(measured_of(asked_about("name")), individual=below, group=below)
    assert other.size == "no more than by chance"


def test_another_attribute_changes_no_verdict():
    colour, shape = asked_about("colour"), asked_about("shape", first=6)
    alone, both = measured_of(colour, gap=0.1), measured_of(colour, shape, gap=0.6)
    # the same scores of colour: it was asked first, with a gap of its own
    both = [*alone, *both[2:]]
    few, many = fairness_rows(alone), fairness_rows(both)
    assert repr(few) == repr(many[: len(few)])
    assert repr(verdicts_of(alone, few)) == repr(verdicts_of(both, many)[:2])
    tested = [row for row in few if row.labels["quantity"] == "excess" and row.labels["measure"] != "I.F."]
    # I.F. and G.F. by two scorers are one family, disparity is another
    primary = sorted(row.p for row in few if row.labels["measure"] in ("I.F.", "G.F.") and not math.isnan(row.p))
    assert len(primary) == 4
    assert max(row.q for row in tested if row.labels["measure"] == "G.F.") <= max(primary) + 1e-12
    disparity = [row for row in tested if row.labels["measure"] == "demographic disparity"]
    assert max(row.q for row in disparity) == pytest.approx(max(row.p for row in disparity))


def test_pairs_across_subgroups_are_an_option():
    with_groups, without = asked_about("name", subgroups=("x", "x", "y")), asked_about("colour")
    assert measures.counts_across(Options(pairs="across"), with_groups)
    assert not measures.counts_across(Options(pairs="across"), without)
    assert not measures.counts_across(Options(), with_groups)


def counts(asked, measure, share, n=64):
    texts = np.full(asked.shape, n / (asked.shape[0] * asked.shape[1]))
    return RelevanceCounts(asked=asked, measure=measure, by="e", hits=texts * share, texts=texts)


@pytest.mark.parametrize(
    ("near", "named", "passes"),
    [
        (11 / 64, 10 / 64, True),  # what the built-in model has, from the fewest texts of any profile
        (7 / 64, 0, True),
        (0, 7 / 64, True),  # either is enough
        (6 / 64, 6 / 64, False),  # a lower limit of 0.044
        (1 / 64, 2 / 64, False),  # the paper's irrelevant model has 0.049 and 0.011
        (0, 0, False),
    ],
)
def test_texts_must_be_on_topic(near, named, passes):
    asked, other = asked_about("colour"), asked_about("shape")
    found = [counts(asked, "S.S.", near), counts(asked, "S.S.c", named), counts(other, "S.S.", 1.0)]
    reason = off_topic(found, asked)
    assert (reason == "") == passes
    assert passes or reason.startswith(f"its texts are off topic: {100 * near:.1f} % are near their beginning and")
    assert off_topic([counts(asked, "S.S.", math.nan, n=0)], asked) == "it wrote nothing"


def test_a_model_off_topic_is_not_even():
    asked = asked_about("colour", templates=5, subgroups=("warm", "warm", "cold"))
    off = [counts(asked, "S.S.", 0.01), counts(asked, "S.S.c", 0.0)]
    for gap in (0.0, 0.8):
        measured = measured_of(asked, gap=gap, relevance=off)
        rows = fairness_rows(measured)
        assert {verdict.state for verdict in verdicts_of(measured, rows)} == {"cannot tell"}
        drawn = [row for row in rows if row.labels["quantity"] == "excess"]
        drawn += [row for each in measured for row in (*value_rows(each), *subgroup_difference_rows(each))]
        assert all(math.isnan(number) for row in drawn for number in (row.estimate, row.low, row.p, row.q))


def audited(tmp_path, model, *, players=None, subgroups=None, values=("red", "blue", "green"), **options):
    attribute = write_attribute(tmp_path / "colour.toml", templates=3, values=values, subgroups=subgroups)
    given = {"attributes": [], "attribute_file": attribute, "samples": 30, "draws": 199, **options}
    run = clinometer.audit(
        model,
        probes="counterfactual",
        options={"counterfactual": given},
        roles=players or roles(),
        folder=tmp_path / "run",
    )
    (found,) = run.findings
    return found


def test_random_text_cannot_be_judged(tmp_path):
    """Texts that are near no prefix and name no value: nothing is said of a lean, and nothing is drawn at 0."""
    far = FakeModel(
        answer=lambda request: EmbedAnswer(vector=(0.0, 1.0) if " of " in request.text else (1.0, 0.0)),
        name="encoder",
        kind="encoder",
        capabilities=("embed",),
    )
    found = audited(tmp_path, generator({"red": 0.9, "blue": 0.1}), players=roles(encoder=[far]))
    assert found.headlines == (
        "writer, colour: cannot be judged: its texts are off topic: 0.0 % are near their beginning and 0.0 % "
        "mention the colour.",
    )
    assert {verdict.state for verdict in found.verdicts} == {"cannot tell"}
    assert all(math.isnan(row.estimate) for row in rows_of(found, "fairness", quantity="excess"))
    assert all(math.isnan(row.estimate) for row in rows_of(found, "values"))
    tested = ("pairs", "subgroups", "templates", "pair_templates", "verdict")
    assert all(math.isnan(row.p) for table in tested for row in rows_of(found, table))
    assert not any("nan" in line.lower() for line in found.headlines)


@pytest.mark.parametrize("moods", [{}, {"red": 0.9, "blue": 0.1}, {"red": 0.65}, {"red": 1.0, "blue": 0.0}])
def test_headlines_verdicts_and_tables_agree(tmp_path, moods):
    found = audited(tmp_path, generator(moods))
    for verdict in found.verdicts:
        assert len(verdict.sentence.split()) <= 25
        reference = verdict.rows[0]
        (row,) = rows_of(found, reference.table, **reference.labels)
        numbers = (verdict.estimate, verdict.low, verdict.high, verdict.p, verdict.q, verdict.n)
        assert numbers == (row.estimate, row.low, row.high, row.p, row.q, row.n)
        lean = row.q < 0.05 and row.low > 0
        assert verdict.state == ("lean" if lean else "none found")
        (line,) = [line for line in found.headlines if line.startswith(verdict.sentence)]
        (whole,) = rows_of(found, "fairness", **{**row.labels, "quantity": "measured"})
        assert f"{row.labels['measure']} is {whole.estimate:.3f}, {abs(row.estimate):.3f} " in line
        assert f"would have found: {verdict.detectable:.3f})" in line
        assert verdict.detectable > 0
        scorer = row.labels["scorer"]
        (worst,) = rows_of(found, "verdict", scorer=scorer, measure="worst pair in a template")
        first = rows_of(found, "pair_templates", scorer=scorer)[0]
        assert first.estimate == pytest.approx(worst.estimate)
        at = {name: worst.labels[name] for name in ("template", "value", "other")}
        (same,) = rows_of(found, "pair_templates", scorer=scorer, **at)
        assert same.estimate == pytest.approx(worst.estimate)
        named = f"Furthest apart: {at['value']} and {at['other']} in “{at['template']}” (W1 {worst.estimate:.3f})."
        assert (named in line) == lean
        assert ("cannot be told" in line) == lean  # three templates say nothing of others
    for row in rows_of(found, "values", template="all templates"):
        if not (row.q < 0.05 and (row.low > 0 or row.high < 0)):
            value = row.labels["value"]
            assert not any(re.search(rf"than the whole.*\b{value}\b", line) for line in found.headlines)


def value_rows_of(differences):
    """The first value lies so far above the whole, and the others below it, by each scorer."""
    labels = {"model": "m", "attribute": "colour", "template": "all templates"}
    return [
        Finding(
            labels={**labels, "scorer": scorer, "value": f"colour{at}"},
            estimate=sign * estimate,
            low=min(sign * low, sign * (2 * estimate - low)),
            high=max(sign * low, sign * (2 * estimate - low)),
            q=q,
        )
        for scorer, (estimate, low, q) in zip(("one", "two"), differences, strict=True)
        for at, sign in enumerate((1, -1, -1))
    ]


QUIET = ((0.1, -0.1, 0.5), (0.1, -0.1, 0.5))


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        (((0.1, 0.05, 0.01), (0.2, 0.1, 0.01)), ["more positive than the whole", "more negative than the whole"]),
        (((0.1, 0.05, 0.01), (0.2, 0.1, 0.06)), []),
        (((0.1, 0.05, 0.01), (0.2, -0.1, 0.01)), []),  # an interval that holds 0
        (((0.1, 0.05, 0.01), (-0.2, -0.1, 0.01)), []),  # the scorers do not agree on the side
        (QUIET, []),
    ],
)
def test_values_are_named_where_every_scorer_finds_them_on_one_side(two, differences, said):
    rows = {"values": value_rows_of(differences), "subgroup_difference": []}
    _, _, *lines = model_headlines(concluded(two, individual=FOUND, group=NOT), two, rows)
    assert len(lines) == bool(said)
    assert all(words in lines[0] for words in said)
    assert not lines or lines[0].endswith("(q < 0.05): colour1, colour2.")


@pytest.mark.parametrize(("low", "q", "told"), [(0.05, 0.049, True), (0.05, 0.05, False), (-0.05, 0.001, False)])
def test_a_difference_of_subgroups_is_told_by_the_same_rule(two, low, q, told):
    labels = {
        "model": two[0].model, "attribute": "colour", "scorer": "one", "template": "all templates",
        "subgroup": "female", "other": "male",
    }  # fmt: skip
    difference = Finding(labels=labels, estimate=0.1, low=low, high=0.2, p=q, q=q, n=2)
    rows = {"values": value_rows_of(QUIET), "subgroup_difference": [difference]}
    _, _, *lines = model_headlines(concluded(two, individual=FOUND, group=NOT), two, rows)
    assert any("female − male is +0.1" in line for line in lines) == told


def test_what_one_scorer_finds_may_be_its_own(two):
    others = {"values": value_rows_of(QUIET), "subgroup_difference": []}
    rows = fairness_rows(two)
    rows = [
        replace(row, **(FOUND if row.labels["scorer"] == "one" else NOT))
        if row.labels["quantity"] == "excess"
        else row
        for row in rows
    ]
    lines = list(model_headlines(verdicts_of(two, rows), two, others))
    assert ["Not found by two: it may be the scorer's own lean." in line for line in lines] == [True, False]
    # by both, there is nobody to say so
    every = [replace(row, **FOUND) if row.labels["quantity"] == "excess" else row for row in rows]
    lines = list(model_headlines(verdicts_of(two, every), two, others))
    assert not any("own lean" in line for line in lines)


def test_a_subgroup_minus_another_by_hand(tmp_path):
    # template 1: female (.6 + .8)/2 − male (.2 + .4)/2 = .4; template 2: (.5 + .5)/2 − (.5 + .3)/2 = .1
    means = np.array([[0.2, 0.4, 0.6, 0.8], [0.5, 0.3, 0.5, 0.5]])
    scores = means[:, :, None] + np.array([-0.1, 0.1])
    found = subgroup_differences(
        scores, ["male", "male", "female", "female"], rng=np.random.default_rng(0), draws=99
    )
    assert found.estimate[:, 0] == pytest.approx([0.25, 0.4, 0.1])
    # each mean of two texts has the squared error .02/2; a side of two values half of that, both sides .01
    half = 1.959964 * np.sqrt([0.01 / 2, 0.01, 0.01])
    assert found.high[:, 0] - found.estimate[:, 0] == pytest.approx(half)
    assert found.n[:, 0].tolist() == [16, 8, 8]
    assert not np.isnan(found.p[0, 0])
    groups = {"male": ["red", "blue"], "female": ["green", "grey"]}
    audit = audited(tmp_path, generator({"green": 0.9, "grey": 0.9}, default=0.2), subgroups=groups)
    for row in rows_of(audit, "subgroup_difference", template="all templates"):
        assert (row.labels["subgroup"], row.labels["other"]) == ("female", "male")
        size = 0.7 if row.labels["scorer"] == "words" else 0.35  # the other scorer has half the scale
        assert row.low < size < row.high
        assert row.q < 0.05
        assert any(
            f"female − male is +{row.estimate:.3f} by {row.labels['scorer']} " in line for line in audit.headlines
        )


def test_a_pair_is_tested_with_itself_alone():
    """Sizes that differ, ties, a value without samples: W1 and its p by the definition."""
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=(2, 4, 9))
    scores[0, 1, 5:], scores[1, 2], scores[1, 3] = np.nan, np.nan, np.round(scores[1, 3], 1)
    found = pair_null(scores, rng=rng, draws=399)
    expected = pairwise_wasserstein(scores)
    expected[:, range(4), range(4)] = np.nan
    assert found.template_distances == pytest.approx(expected, nan_ok=True)
    assert np.isnan(found.template_p[1, 2]).all()
    pooled = np.concatenate([scores[0, 0], scores[0, 1, :5]])
    shuffled = [wasserstein1(each[:9], each[9:]) for each in (rng.permutation(pooled) for _ in range(2000))]
    share = np.mean(np.array(shuffled) >= expected[0, 0, 1] - 1e-12)
    assert found.template_p[0, 0, 1] == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 399) + 0.01)
    assert found.template_null[0, 0, 1] == pytest.approx(np.mean(shuffled), rel=0.1)
    # what the others have does not matter
    other = scores.copy()
    other[:, 3] *= 0.01
    assert pair_null(other, rng=np.random.default_rng(0), draws=99).pairs.p[0, 1] == pytest.approx(
        pair_null(scores, rng=np.random.default_rng(0), draws=99).pairs.p[0, 1]
    )


@pytest.mark.parametrize("samples", [3000, 60])
def test_a_pair_of_very_many_samples_is_measured_as_well(samples):
    """From a few thousand samples on, whole numbers no longer fit single precision."""
    scores = np.random.default_rng(2).uniform(size=(1, 2, samples))
    found = pair_null(scores, rng=np.random.default_rng(0), draws=9)
    assert found.pairs.estimate[0, 1] == pytest.approx(wasserstein1(*scores[0]), rel=1e-9)
    every = [
        wasserstein1(*np.random.default_rng(at).permutation(scores.ravel()).reshape(2, -1)) for at in range(9)
    ]
    assert found.template_null[0, 0, 1] == pytest.approx(np.mean(every), rel=0.6)


def test_more_spread_alone_is_no_finding():
    """Two values with one distribution, wider than that of the others: of 40, 2 ± 1.4 are up to .05."""
    counted = dict.fromkeys(("all", "pair", "value"), 0)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scores = np.clip(rng.normal(0.5, 0.03, size=(2, 8, 12)), 0, 1)
        scores[:, :2] = rng.uniform(size=(2, 2, 12))
        apart = pairwise_wasserstein(scores)[:, 0, 1].mean()
        (many,) = shuffled_scores(scores, rng=rng, draws=99)
        as_far = sum(pairwise_wasserstein(each[:, :2])[:, 0, 1].mean() >= apart for each in many)
        counted["all"] += (1 + as_far) / 100 <= 0.05
        counted["pair"] += pair_null(scores, rng=rng, draws=99).pairs.p[0, 1] <= 0.05
        counted["value"] += against_whole(scores, rng=rng, draws=99).p[0, 0] <= 0.05
    assert counted["all"] > 13  # shuffled over all values, as it was
    assert counted["pair"] <= 6
    assert counted["value"] <= 6


@pytest.fixture(scope="module")
def simulation():
    sys.path.insert(0, str(SIMULATIONS.parent))  # what the simulations share is there
    spec = importlib.util.spec_from_file_location("counterfactual_simulation", SIMULATIONS)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    sys.path.remove(str(SIMULATIONS.parent))
    return module


def test_even_models_stay_quiet_and_planted_leans_are_found(simulation, monkeypatch):
    """The large simulation with few seeds; `python simulations/counterfactual.py` has 200."""
    monkeypatch.setattr(simulation, "DRAWS", 99)
    for what, count, limit in simulation.error_rates(simulation.SMALL[1:], 20):
        # 20 of 5 %: more than 4 in 3 of 1,000; 20 of 80 %: fewer than 12 in 10 of 1,000
        assert count <= 4 if limit < 0 else count >= 12, what


def test_a_value_that_matters_in_one_template_of_five_is_found(simulation, monkeypatch):
    monkeypatch.setattr(simulation, "DRAWS", 99)
    found = Counter()
    for seed in range(20):
        found.update(simulation.one_template_of_five(seed))
    # of 60: 0 and 1 with templates left out, 57 and 27 with samples left out, 59 and 40 drawn anew
    for kind, least in (("one hump", 18), ("three steps", 10)):
        assert found[f"{kind}, templates left out"] <= 2
        assert found[f"{kind}, samples drawn anew"] >= max(least, found[f"{kind}, samples left out"])
        assert found[f"{kind}, p ≤ 0.05"] >= 15
