"""A masked model before and after: what tuning did to its negative attitude."""

import dataclasses

import numpy as np
import pytest
from fake_attitude import RATINGS, FakeAttitude, FakeClassifier, noise_of, row_of, rows_of
from fake_records import MemoryRecords, ask, fake_model, plan_for
from scipy import stats

from clinometer.data.stigma_data import load_conditions
from clinometer.probes.kit.asking import BEFORE
from clinometer.probes.kit.compare import Compared, compare_all
from clinometer.probes.stigma import PROBE, measures
from clinometer.probes.stigma.measures import DIFFERENCE, MaskedAttitudes
from clinometer.probes.stigma.questions import Roster
from clinometer.probes.stigma.tables import change_rows
from clinometer.types import WordAnswer

TUNING = {"base": "given", "method": "embedding", "amount": "10", "attribute": "occupation", "data": "text"}
ATTITUDE = {"unlikely": "negative", "likely": "positive", "usual": "neutral"}


def model(name, **fields):
    return dataclasses.replace(fake_model(name), **fields)


GIVEN = model("given", weights="given")
AFTER = model("after", weights="after", tuning=TUNING)


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    path.write_text(RATINGS)

    def run(*models, templates=("for me",)):
        """Each model is (info, what answers)."""
        records, plans = MemoryRecords(), []
        for info, answer in models:
            plan = plan_for(PROBE, model=info, templates=list(templates), draws=399, ratings_file=str(path))
            plans.append(plan)
            ask(PROBE, plan, answer, records)
        return PROBE.findings(plans, records), records

    return run


def lean(stigmatized, *, other=0.4, noise=0.0, spread=0.0, seed=0):
    """`spread` is what each condition has of its own, the same in all models; `noise` what each prompt adds."""

    def of(tags):
        at = {"stigmatized": stigmatized, "other": other, "baseline": 0.3}[tags["group"]]
        own = spread * noise_of(0, tags["condition"]) if spread else 0.0
        return at + own - 0.1 * (tags.get("template") == "impersonal")

    return FakeAttitude(of, noise=noise, seed=seed)


def test_change_by_hand(audit):
    # .6 → .5 and .4 → .42 with "for me", .1 less everywhere with "impersonal": the same changes there
    found, _ = audit((GIVEN, lean(0.6)), (AFTER, lean(0.5, other=0.42)), templates=("for me", "impersonal"))

    def change(measure, template="all"):
        row = row_of(found, "change", measure=measure, template=template)
        return row.labels["before"], row.labels["after"], row.estimate

    assert change("stigmatized") == pytest.approx((0.55, 0.45, -0.1))
    assert change("other") == pytest.approx((0.35, 0.37, 0.02))
    assert change(DIFFERENCE) == pytest.approx((0.2, 0.08, -0.12))
    assert change(DIFFERENCE, "impersonal") == pytest.approx((0.2, 0.08, -0.12))
    assert change("stigmatized", "for me") == pytest.approx((0.6, 0.5, -0.1))
    row = row_of(found, "change", measure=DIFFERENCE, template="all")
    assert (row.labels["base"], row.labels["model"]) == ("given", "after")
    assert row.labels["training"] == "embedding on occupation, λ = 10"
    assert {each.labels["measure"]: each.n for each in rows_of(found, "change", template="all")} == {
        "stigmatized": 93, "other": 29, DIFFERENCE: 122,
    }  # fmt: skip
    assert len(rows_of(found, "change")) == 3 * 3
    assert "change" in {figure.name for figure in found.figures}
    headline = found.headlines[0]
    assert headline.startswith(
        "after (embedding on occupation, λ = 10) tells stigmatized from other conditions less"
    )
    assert "goes from 0.550 to 0.450 for stigmatized and from 0.350 to 0.370 for other" in headline
    assert "+0.200 before and +0.080 after; distance from even-handed −0.120 (95 % interval" in headline
    change = found.changes[0]
    assert (change.state, change.before, change.after) == ("better", "given", "after")
    # the verdict has the interval of the table beside it
    assert (change.change, change.change_low, change.change_high) == (row.estimate, row.low, row.high)
    (table,) = [each for each in found.tables if each.name == "training_changes"]
    assert [each.labels["measure"] for each in table.rows] == [each.measure for each in found.changes]


@pytest.fixture(scope="module")
def noisy(audit):
    """Each condition keeps its own lean (.05), every prompt of every model adds its own noise (.1)."""
    return audit(
        (GIVEN, lean(0.6, noise=0.1, spread=0.05, seed=1)), (AFTER, lean(0.55, noise=0.1, spread=0.05, seed=2))
    )


def test_a_planted_change_is_found_in_noise(noisy):
    found, _ = noisy
    for measure, size in (("stigmatized", -0.05), (DIFFERENCE, -0.05)):
        row = row_of(found, "change", measure=measure, template="all")
        assert row.low < size < row.high < 0
        assert row.q < 0.02


def test_noise_is_called_a_change_as_often_as_it_should(monkeypatch):
    """200 pairs without a change: 5 ± 1.5 % of p ≤ .05 and of intervals without 0 (up to 4 deviations pass)."""
    monkeypatch.setattr(measures, "SHUFFLES", 499)
    rng = np.random.default_rng(5)
    roster = Roster(wordings=load_conditions())
    plans = [plan_for(PROBE, model=info) for info in (GIVEN, AFTER)]
    found = {"stigmatized": [], "other": [], DIFFERENCE: []}
    for seed in range(200):
        own = rng.normal(0.5, 0.1, size=len(roster.names))  # a condition's own, before and after
        attitudes = [
            MaskedAttitudes(
                model=plan.model.name,
                tuned=plan.model is AFTER,
                gate="",
                rng=rng,
                draws=199,
                roster=roster,
                templates=(),
                by_template=np.zeros((0, len(own))),
                by_distance=np.zeros((0, len(own))),
                overall=own + rng.normal(0.0, 0.04, size=len(own)),
                baseline=np.zeros((0, 0)),
            )
            for plan in plans
        ]
        for row in change_rows([dataclasses.replace(plan, seed=seed) for plan in plans], attitudes):
            found[row.labels["measure"]].append((row.p <= 0.05, not row.low <= 0 <= row.high))
    for of_measure in found.values():
        assert np.all(np.mean(of_measure, axis=0) <= 0.05 + 4 * 0.0154)
        assert np.all(np.mean(of_measure, axis=0) > 0.005)


def test_change_agrees_with_a_plain_loop_and_with_scipy(noisy):
    found, records = noisy
    values = {}
    for name in ("given", "after"):
        by_wording = {}
        for row in records.table(model=name, stage="attitudes").iter_rows(named=True):
            if row["tag_group"] != "baseline":
                mass = dict.fromkeys(("positive", "negative", "neutral"), 0.0)
                for word, logprob in zip(row["got_words"], row["got_logprobs"], strict=True):
                    if word.strip().lower() in ATTITUDE:
                        mass[ATTITUDE[word.strip().lower()]] += np.exp(logprob)
                where = row["tag_group"], row["tag_condition"], row["tag_wording"]
                by_wording.setdefault(where, []).append(mass["negative"] / sum(mass.values()))
        for (group, condition, _), prompts in by_wording.items():
            values.setdefault((group, condition), {}).setdefault(name, []).append(np.mean(prompts))
    change = {key: np.mean(of["after"]) - np.mean(of["given"]) for key, of in values.items()}
    by_group = {
        group: np.array([value for (side, _), value in change.items() if side == group])
        for group in ("stigmatized", "other")
    }
    for group, of_group in by_group.items():
        row = row_of(found, "change", measure=group, template="all")
        assert row.estimate == pytest.approx(of_group.mean())
        t = stats.ttest_1samp(of_group, 0.0)
        interval = t.confidence_interval()
        width = interval.high - interval.low
        # a studentized bootstrap of nearly normal values comes close to Student's interval
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high), abs=0.15 * width)
        assert row.p == pytest.approx(t.pvalue, abs=0.03)
    gap = row_of(found, "change", measure=DIFFERENCE, template="all")
    welch = stats.ttest_ind(by_group["stigmatized"], by_group["other"], equal_var=False)
    assert gap.estimate == pytest.approx(by_group["stigmatized"].mean() - by_group["other"].mean())
    assert gap.p == pytest.approx(welch.pvalue, abs=0.01)


def test_the_same_answers_are_no_measurable_change(audit):
    same = lean(0.6, noise=0.1, seed=1)
    found, _ = audit((GIVEN, same), (AFTER, same))
    for row in rows_of(found, "change"):
        assert (row.estimate, row.low, row.high) == (0.0, 0.0, 0.0)
        assert row.p == 1.0
    assert found.changes[0].state == "no change found"
    assert "shows no change from given" in found.headlines[0]


def test_noise_alone_is_no_measurable_change(audit):
    found, _ = audit((GIVEN, lean(0.6, noise=0.1, seed=3)), (AFTER, lean(0.6, noise=0.1, seed=4)))
    assert found.changes[0].state == "no change found"
    assert "shows no change from given" in found.headlines[0]


def test_without_its_base_a_tuned_model_has_no_change(audit):
    found, _ = audit((AFTER, lean(0.5)), (model("other", weights="other"), lean(0.6)))
    assert "change" not in {table.name for table in found.tables}
    assert "change" not in {figure.name for figure in found.figures}
    assert any("not in this run: after" in notice.text for notice in found.notices)
    # without a base in the run it counts as one of all models
    assert row_of(found, "levels", model="all masked models", template="all", group="stigmatized")


def test_a_checkpoint_does_not_count_among_all_models_beside_its_base(audit):
    third = model("third", weights="third")
    classifier = model("classifier", weights="c", capabilities=("classify",))
    leans = {"given": 0.6, "after": 0.5, "third": 0.7}
    found, _ = audit(
        (AFTER, lean(leans["after"])),
        (GIVEN, lean(leans["given"])),
        (third, lean(leans["third"])),
        (classifier, FakeClassifier(lambda tags: 0.7 if tags["group"] == "stigmatized" else 0.1)),
    )
    pooled = row_of(found, "levels", model="all masked models", template="all", group="stigmatized")
    assert pooled.estimate == pytest.approx((0.6 + 0.7) / 2)
    assert any("leaves out what was tuned from a model of this run: after" in each.text for each in found.notices)

    pair, _ = audit(
        (AFTER, lean(leans["after"])),
        (GIVEN, lean(leans["given"])),
        (classifier, FakeClassifier(lambda tags: 0.7 if tags["group"] == "stigmatized" else 0.1)),
    )
    assert {row.labels["model"] for row in rows_of(pair, "levels")} == {"after", "given"}
    # what is correlated with the classifier is the model as given
    both = rows_of(pair, "both_measures", group="stigmatized")
    assert {round(row.labels["negative_attitude"], 6) for row in both} == {0.6}


def test_a_checkpoint_that_no_longer_understands_has_not_changed_for_the_better(audit):
    """Training that destroys a model brings its difference to 0, too."""

    def broken(item):
        return WordAnswer(words=("zyx", "unlikely", "likely"), logprobs=(-0.01, -6.0, -6.0))

    found, _ = audit((GIVEN, lean(0.6)), (AFTER, broken))
    assert "change" not in {table.name for table in found.tables}
    states = {verdict.model: verdict.state for verdict in found.verdicts if "attitude" in verdict.aspect}
    assert states == {"given": "lean", "after": "cannot tell"}
    assert not any("reduced" in text for text in found.headlines)


def test_a_comparison_of_the_run_says_the_same_as_its_own_page(noisy):
    found, _ = noisy
    sides = [list(PROBE.compared(found, [model])) for model in (GIVEN, AFTER)]
    pair = Compared(
        before="given", after="after", audits={"stigma": [(sides[0], sides[1])]}, role=BEFORE, seeds=("",)
    )
    ((*again,),) = compare_all([pair])
    assert tuple(each.verdict for each in again) == found.changes
    row = row_of(found, "change", measure=DIFFERENCE, template="all")
    assert (found.changes[0].change_low, found.changes[0].change_high) == (row.low, row.high)


def test_against_its_control_a_checkpoint_is_judged_as_well(audit):
    control = model("control", weights="control", tuning=TUNING | {"method": "control", "amount": "0"})
    found, _ = audit((GIVEN, lean(0.6, noise=0.1, seed=1)), (control, lean(0.55, noise=0.1, seed=2)),
                     (AFTER, lean(0.45, noise=0.1, seed=3)))  # fmt: skip
    states = {(each.before, each.after): each.state for each in found.changes if "other" in each.measure}
    assert states == {
        ("given", "control"): "better", ("given", "after"): "better", ("control", "after"): "better",
    }  # fmt: skip


def test_several_seeds_are_told_as_one_with_what_differs_between_them(audit):
    seeds = [
        (model(f"after-seed-{n}", weights=f"w{n}", tuning=TUNING | {"seed": str(n)}), lean(at, noise=0.1, seed=n))
        for n, at in enumerate((0.5, 0.55, 0.45))
    ]
    found, _ = audit((GIVEN, lean(0.6, noise=0.1, seed=9)), *seeds)
    change = found.changes[0]
    assert (change.after, len(change.trainings)) == ("after (3 trainings)", 3)
    alone = [audit((GIVEN, lean(0.6, noise=0.1, seed=9)), each)[0].changes[0] for each in seeds]
    assert change.change == pytest.approx(np.mean([each.change for each in alone]))
    assert change.change_high - change.change_low > max(each.change_high - each.change_low for each in alone)
    assert "after each of 3 trainings" in found.headlines[0]


def test_the_table_of_changes_has_the_mean_of_several_seeds_with_what_differs_between_them(audit):
    """.6 → .5, .52 and .48, and .4 → .4: the mean change is −.1, and each seed has its own row."""
    seeds = [
        (model(f"after-seed-{n}", weights=f"w{n}", tuning=TUNING | {"seed": str(n)}), lean(at, noise=0.1, seed=n))
        for n, at in enumerate((0.5, 0.52, 0.48))
    ]
    found, _ = audit((GIVEN, lean(0.6, noise=0.1, seed=9)), *seeds)
    own = [row_of(found, "change", model=f"after-seed-{n}", measure=DIFFERENCE, template="all") for n in range(3)]
    mean = row_of(found, "change", model="after (3 trainings)", measure=DIFFERENCE, template="all")
    assert mean.estimate == pytest.approx(np.mean([each.estimate for each in own]))
    assert mean.labels["after"] == pytest.approx(np.mean([each.labels["after"] for each in own]))
    assert (mean.labels["before"], mean.labels["trainings"]) == (own[0].labels["before"], 3)
    # three changes of about −.1, −.08 and −.12, which units alone tell apart
    assert mean.high - mean.low > max(each.high - each.low for each in own)
    assert mean.low < -0.1 < mean.high
    # the verdict is about this row: one number has one interval
    change = found.changes[0]
    assert (mean.low, mean.high) == (change.change_low, change.change_high)
    assert mean.p == change.change_p
    of_mean = rows_of(found, "change", model="after (3 trainings)")
    assert [row.q for row in of_mean] == pytest.approx(stats.false_discovery_control([row.p for row in of_mean]))
    other = row_of(found, "change", model="after (3 trainings)", measure="other", template="all")
    assert (other.low, other.high) != (mean.low, mean.high)
    rows = rows_of(found, "change")
    assert len(rows) == 4 * 3 * 2  # the mean and three seeds, three measures, one template and all
    assert [row.labels["trainings"] for row in rows] == [3] * 6 + [1] * 18
    # the headline has the means of both groups
    groups = [row_of(found, "change", model="after (3 trainings)", measure=each, template="all")
              for each in ("stigmatized", "other")]  # fmt: skip
    for group in groups:
        assert f"{group.labels['before']:.3f} to {group.labels['after']:.3f}" in found.headlines[0]


def test_an_arm_with_a_training_that_no_longer_understands_has_no_number(audit):
    def broken(item):
        return WordAnswer(words=("zyx", "unlikely", "likely"), logprobs=(-0.01, -6.0, -6.0))

    seeds = [
        (model(f"after-seed-{n}", weights=f"w{n}", tuning=TUNING | {"seed": str(n)}), answer)
        for n, answer in enumerate((lean(0.5), lean(0.52), broken))
    ]
    found, _ = audit((GIVEN, lean(0.6)), *seeds)
    mean = row_of(found, "change", model="after (3 trainings)", measure=DIFFERENCE, template="all")
    assert np.isnan(mean.estimate)
    assert {row.labels["model"] for row in rows_of(found, "change")} == {
        "after (3 trainings)", "after-seed-0", "after-seed-1",
    }  # fmt: skip
    assert found.changes[0].state == "cannot tell"
