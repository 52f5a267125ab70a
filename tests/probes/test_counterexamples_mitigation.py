"""Counterexamples in the prompt and training, as two ways to make the margin smaller."""

import dataclasses
import math

import numpy as np
import pytest
from fake_gender import FEMALE, MALE, FakeGender, ask, sign
from fake_records import MemoryRecords, fake_model, plan_for
from scipy import stats

from clinometer.data import load_sentences
from clinometer.probes.counterexamples import PROBE
from clinometer.probes.counterexamples.measures import BASE, is_counterexample
from clinometer.types import WordAnswer

SAME_KINDS = ("target counter syntactic similar", "target counter semantic similar")
OTHER_KINDS = ("background counter syntactic similar", "background counter semantic similar")
SYNTACTIC, SEMANTIC = SAME_KINDS
PROMPTS = (BASE, *SAME_KINDS, *OTHER_KINDS)


def model(name, *, weights="", **tuning):
    return dataclasses.replace(fake_model(name), weights=weights or name, tuning=tuning)


GIVEN = model("given")


def checkpoint(name, amount, *, base="given", method="embedding"):
    return model(name, base=base, method=method, amount=amount, attribute="occupation", data="text")


def audit(*models, **options):
    """Each model is (info, what answers)."""
    records, plans = MemoryRecords(), []
    for info, answer in models:
        plans.append(plan_for(PROBE, model=info, **({"backgrounds": 2, "draws": 199, "ks": [10]} | options)))
        ask(PROBE, plans[-1], answer, records)
    return PROBE.findings(plans, records), records


def rows_of(findings, **labels):
    (found,) = [each for each in findings.tables if each.name == "mitigation"]
    return [row for row in found.rows if all(row.labels[name] == value for name, value in labels.items())]


def row_of(findings, **labels):
    (row,) = rows_of(findings, **{"dominance": "all", **labels})
    return row


def margin(base, *, same=0.0, other=0.0, noise=0.0, seed=0):
    """A margin of `base`; counterexamples of the same occupation add .1 less and .1 more than `same`."""
    moved = {SAME_KINDS[0]: same - 0.1, SAME_KINDS[1]: same + 0.1} | dict.fromkeys(OTHER_KINDS, other)
    return FakeGender(lambda tags: sign(tags) * (base + moved.get(tags["kind"], 0.0)), noise=noise, seed=seed)


def test_counterexamples_are_the_kinds_that_name_the_other_gender():
    found = [kind.name for kind in load_sentences().kinds if is_counterexample(kind)]
    assert found == [*SAME_KINDS, *OTHER_KINDS]


@pytest.fixture(scope="module")
def exact():
    return audit(
        (checkpoint("ten", "10"), margin(0.15, same=-0.1)),
        (GIVEN, margin(0.3, same=-0.2, other=0.05)),
        (checkpoint("one", "1"), margin(0.28, same=-0.2)),
        ks=[3, 10],
    )[0]


def test_margins_and_changes_by_hand(exact):
    def found(name, prompt, measure):
        return row_of(exact, model=name, prompt=prompt, measure=measure, k=10).estimate

    # (a) as given; (b) with counterexamples: .3 − .3 in the same words, .3 − .1 in others, never their mean
    assert found("given", BASE, "margin") == pytest.approx(0.3)
    assert found("given", SYNTACTIC, "margin") == pytest.approx(0.0)
    assert found("given", SEMANTIC, "margin") == pytest.approx(0.2)
    assert found("given", SYNTACTIC, "change") == pytest.approx(-0.3)
    assert found("given", SEMANTIC, "change") == pytest.approx(-0.1)
    for kind in OTHER_KINDS:
        assert found("given", kind, "change") == pytest.approx(0.05)
    # (c) trained; (d) trained and with counterexamples: .15 − .2, against the .3 of the model as given
    assert found("ten", BASE, "margin") == pytest.approx(0.15)
    assert found("ten", BASE, "change") == pytest.approx(-0.15)
    assert found("ten", SYNTACTIC, "margin") == pytest.approx(-0.05)
    assert found("ten", SYNTACTIC, "change") == pytest.approx(-0.35)
    assert found("ten", SEMANTIC, "change") == pytest.approx(-0.15)
    # of the .6 that gendered words hold: .3/.6 at the base prompt, .2/.6 with the counterexample in other words
    (table,) = [each for each in exact.tables if each.name == "mitigation_whole_list"]
    whole = {
        (row.labels["model"], row.labels["prompt"], row.labels["measure"]): row.estimate
        for row in table.rows
        if row.labels["dominance"] == "all"
    }
    assert whole["given", BASE, "lean"] == pytest.approx(0.5)
    assert whole["given", SEMANTIC, "change"] == pytest.approx(-0.1 / 0.6)
    assert whole["ten", BASE, "change"] == pytest.approx(-0.25)
    assert found("one", BASE, "change") == pytest.approx(-0.02)
    for dominance in ("female-dominated", "male-dominated"):
        row = row_of(exact, model="ten", prompt=BASE, measure="change", k=10, dominance=dominance)
        assert row.estimate == pytest.approx(-0.15)
        assert row.n == 29


def test_the_table_has_each_way_once(exact):
    rows = rows_of(exact, dominance="all", k=10)
    order = [(row.labels["model"], row.labels["prompt"]) for row in rows if row.labels["measure"] == "margin"]
    assert order == [(name, prompt) for name in ("given", "one", "ten") for prompt in PROMPTS]
    assert len([row for row in rows if row.labels["measure"] == "change"]) == 14  # all but (a) itself
    assert all(math.isnan(row.p) for row in rows if row.labels["measure"] == "margin")
    assert {row.labels["model"]: row.labels["training"] for row in rows} == {
        "given": "as given",
        "one": "embedding on occupation, λ = 1",
        "ten": "embedding on occupation, λ = 10",
    }
    (table,) = [each for each in exact.tables if each.name == "mitigation"]
    assert len({tuple(row.labels.values()) for row in table.rows}) == len(table.rows)
    assert "mitigation" in {figure.name for figure in exact.figures}


def test_headlines_compare_both_ways_on_one_page(exact):
    given, one, ten = [line for line in exact.headlines if "gender stereotypes: after" in line]
    assert given.startswith("given against the base prompt of given, gender stereotypes: after")
    assert f"after '{SYNTACTIC}' better (+0.300 before and 0.000 after; distance from even-handed −0.300" in given
    assert f"after '{SEMANTIC}' better (+0.300 before and +0.200 after; distance from even-handed −0.100" in given
    assert f"after '{OTHER_KINDS[0]}' worse (+0.300 before and +0.350 after" in given
    assert one.startswith("one against the base prompt of given")
    end = "One training: intervals leave out what another seed would change."
    assert [each.endswith(end) for each in (given, one, ten)] == [False, True, True]
    # from +0.300 to −0.050: turned round, and nearer
    assert f"after '{SYNTACTIC}' better (+0.300 before and −0.050 after; distance from even-handed −0.250" in ten
    trained = {(each.after, each.measure.split()[0]): each for each in exact.changes if each.before == "given"}
    assert (trained["ten", "stereotype"].state, trained["ten", "stereotype"].change) == (
        "better",
        pytest.approx(-0.15),
    )
    assert exact.headlines[0].startswith("one (embedding on occupation, λ = 1) follows (or reverses)")
    for line in exact.headlines:
        assert not {"debiased", "unbiased", "fair"} & set(line.replace(",", " ").split())


@pytest.fixture(scope="module")
def noisy():
    return audit(
        (GIVEN, margin(0.2, same=-0.1, noise=0.08, seed=1)),
        (checkpoint("after", "10"), margin(0.12, same=-0.1, noise=0.08, seed=2)),
    )


def test_a_planted_change_is_found_in_noise(noisy):
    for name, prompt, size in (
        ("given", SYNTACTIC, -0.2),
        ("after", BASE, -0.08),
        ("after", SYNTACTIC, -0.28),
    ):
        row = row_of(noisy[0], model=name, prompt=prompt, measure="change")
        assert row.low < size < row.high < 0
        assert row.q < 0.01
        assert row.n == 58


def test_change_agrees_with_a_plain_loop_and_with_scipy(noisy):
    found, records = noisy
    margins = {}
    for name in ("given", "after"):
        for row in records.table(model=name, stage="prompts").iter_rows(named=True):
            prompt = row["tag_kind"]
            chances = dict(zip(row["got_words"], map(math.exp, row["got_logprobs"]), strict=True))
            gap = sum(chances[word] for word in FEMALE) - sum(chances[word] for word in MALE)
            key = row["tag_dominance"], row["tag_occupation"], name, prompt
            margins.setdefault(key, []).append(gap if row["tag_dominance"] == "female" else -gap)
    for prompt in (BASE, SEMANTIC):
        change = {}
        for (dominance, occupation, name, at), values in margins.items():
            if (name, at) == ("after", prompt):
                given = np.mean(margins[dominance, occupation, "given", BASE])
                change.setdefault(dominance, []).append(np.mean(values) - given)
        for dominance, values in change.items():
            row = row_of(found, model="after", prompt=prompt, measure="change", dominance=f"{dominance}-dominated")
            assert row.estimate == pytest.approx(np.mean(values))
            t = stats.ttest_1samp(values, 0.0)
            interval = t.confidence_interval()
            # a studentized bootstrap of nearly normal values comes close to Student's interval
            assert (row.low, row.high) == pytest.approx(tuple(interval), abs=0.2 * (interval.high - interval.low))
            assert row.p == pytest.approx(t.pvalue, abs=0.01)
        both = row_of(found, model="after", prompt=prompt, measure="change")
        assert both.estimate == pytest.approx((np.mean(change["female"]) + np.mean(change["male"])) / 2)


def test_the_same_answers_are_no_measurable_change():
    same = margin(0.2, noise=0.05, seed=1)
    found, _ = audit((GIVEN, same), (checkpoint("after", "0", method="control"), same))
    row = row_of(found, model="after", prompt=BASE, measure="change")
    assert (row.estimate, row.low, row.high, row.p) == (0.0, 0.0, 0.0, 1.0)
    assert "control on occupation, λ = 0" in found.headlines[0]
    assert "shows no change from given" in found.headlines[0]
    assert found.changes[0].state == "no change found"


def test_a_checkpoint_without_its_base_is_compared_with_itself():
    found, _ = audit((checkpoint("after", "10"), margin(0.2)), (model("other"), margin(0.1)))
    assert {(row.labels["base"], row.labels["model"]) for row in rows_of(found)} == {
        ("after", "after"), ("other", "other"),
    }  # fmt: skip
    assert any("not in this run: after" in notice.text for notice in found.notices)
    assert not any("against the base prompt of" in line for line in found.headlines)


def deaf(item):
    """Hardly a gendered word, and none more or less when a gender is named."""
    return WordAnswer(words=("a", "woman", "man"), logprobs=tuple(math.log(each) for each in (0.9, 1e-3, 1e-3)))


def test_a_reason_why_a_prompt_cannot_be_judged_is_in_plain_words_and_names_it_once():
    found, _ = audit((GIVEN, margin(0.2, same=-0.1)), (checkpoint("after", "10"), deaf))
    (line,) = [each for each in found.headlines if each.startswith("after against the base prompt of given")]
    assert line.isprintable()
    assert f"after '{SYNTACTIC}' cannot tell (it gives gendered words little probability" in line
    found, _ = audit((GIVEN, deaf), (checkpoint("after", "10"), margin(0.2)))
    (line,) = [each for each in found.headlines if each.startswith("after against the base prompt of given")]
    assert f"after '{SYNTACTIC}' cannot tell (given: it gives gendered words little probability" in line


def test_prompting_is_compared_without_any_training():
    found, _ = audit((GIVEN, margin(0.2, same=-0.1)))
    assert row_of(found, model="given", prompt=SYNTACTIC, measure="change").estimate == pytest.approx(-0.2)


def test_a_checkpoint_of_a_checkpoint_is_compared_with_the_one_it_began_with():
    found, _ = audit(
        (GIVEN, margin(0.3)),
        (checkpoint("first", "1"), margin(0.2)),
        (checkpoint("second", "1", base="first"), margin(0.15)),
    )
    row = row_of(found, base="first", model="second", prompt=BASE, measure="change")
    assert row.estimate == pytest.approx(-0.05)
    level = [repr((row.estimate, row.low)) for row in rows_of(found, model="first", prompt=BASE, measure="margin")]
    assert len(level) == 2 * 3  # in both families, for three dominances
    assert level[:3] == level[3:]  # and with the same numbers


def test_a_model_beside_others_keeps_its_numbers(noisy):
    alone, _ = audit((GIVEN, margin(0.2, same=-0.1, noise=0.08, seed=1)))
    for measure in ("margin", "change"):
        both = rows_of(noisy[0], model="given", measure=measure)
        for one, other in zip(rows_of(alone, measure=measure), both, strict=True):
            assert repr((one.estimate, one.low, one.high, one.p)) == repr(
                (other.estimate, other.low, other.high, other.p)
            )


def seeded(*after):
    """The model as given, and checkpoints that differ in their seed alone."""
    seeds = [(checkpoint(f"after-seed-{n}", "10", method="embedding"), answer) for n, answer in enumerate(after)]
    infos = [
        (dataclasses.replace(info, tuning={**info.tuning, "seed": str(n)}), answer)
        for n, (info, answer) in enumerate(seeds)
    ]
    return audit((GIVEN, margin(0.2, noise=0.05, seed=9)), *infos)[0]


def test_several_trainings_have_their_mean_with_what_differs_between_them():
    """.2 → .1, .16 and .04: the mean change is −.1, and seeds differ by more than their units allow for."""
    found = seeded(*(margin(at, noise=0.05, seed=n) for n, at in enumerate((0.1, 0.16, 0.04))))
    arm = "after (3 trainings)"
    for table, level in (("mitigation", "margin"), ("mitigation_whole_list", "lean")):
        (rows,) = [each.rows for each in found.tables if each.name == table]
        at = {"prompt": BASE, "dominance": "all"}
        mine = [row for row in rows if all(row.labels[name] == value for name, value in at.items())]
        for measure in (level, "change"):
            own = [row for row in mine if row.labels["measure"] == measure]
            mean = next(row for row in own if row.labels["model"] == arm)
            seeds = [row for row in own if row.labels["model"].startswith("after-seed")]
            assert len(seeds) == 3
            assert mean.estimate == pytest.approx(np.mean([row.estimate for row in seeds]))
            assert mean.high - mean.low > max(row.high - row.low for row in seeds)
            assert (mean.labels["trainings"], mean.labels["training"]) == (3, "embedding on occupation, λ = 10")
        assert mean.p > max(row.p for row in seeds)
        if table == "mitigation":  # what is concluded rests on the top k here: one number has one interval
            change = next(each for each in found.changes if each.after == arm)
            assert (mean.low, mean.high, mean.p) == (change.change_low, change.change_high, change.change_p)
        order = [row.labels["model"] for row in mine if row.labels["measure"] == level]
        assert order == ["given", arm, *(f"after-seed-{n}" for n in range(3))]
    # q is over the changes of the mean, every prompt and dominance
    for table in ("mitigation", "mitigation_whole_list"):
        (rows,) = [each.rows for each in found.tables if each.name == table]
        moved = [row for row in rows if (row.labels["model"], row.labels["measure"]) == (arm, "change")]
        assert len(moved) == 3 * len(PROMPTS)
        p = np.array([row.p for row in moved])
        assert [row.q for row in moved] == pytest.approx(stats.false_discovery_control(p))


def test_the_mean_of_trainings_of_which_one_cannot_be_judged_has_no_number_and_is_not_drawn():
    found = seeded(margin(0.1, noise=0.05, seed=1), margin(0.1, noise=0.05, seed=2), deaf)
    for measure in ("margin", "change"):
        mean = row_of(found, model="after (3 trainings)", prompt=BASE, measure=measure)
        assert math.isnan(mean.estimate)
        assert mean.labels["left_out"] != "no"
    assert math.isnan(row_of(found, model="after (3 trainings)", prompt=BASE, measure="change").q)


def test_a_seed_that_others_began_with_has_no_mean_of_its_own():
    first = [
        (dataclasses.replace(checkpoint(f"first-seed-{n}", "1"), tuning={
            "base": "given", "method": "embedding", "amount": "1", "attribute": "occupation", "data": "text",
            "seed": str(n),
        }), margin(0.2 - 0.05 * n, noise=0.05, seed=n))
        for n in range(2)
    ]  # fmt: skip
    second = checkpoint("second", "1", base="first-seed-0")
    found, _ = audit((GIVEN, margin(0.3)), *first, (second, margin(0.1)))
    rows = rows_of(found, prompt=BASE, measure="margin", dominance="all")
    assert [(row.labels["base"], row.labels["model"]) for row in rows] == [
        ("given", "given"),
        ("given", "first (2 trainings)"),
        ("given", "first-seed-0"),
        ("given", "first-seed-1"),
        ("first-seed-0", "first-seed-0"),
        ("first-seed-0", "second"),
    ]
