"""Several trainings of one kind: told as one, with what differs between them in every interval."""

import itertools
import math
from types import SimpleNamespace

import pytest
from fake_generator import rows_of
from fake_mitigation import Writer, as_given, checkpoint, concluded

from clinometer.metrics import fairness_epsilon, widened_reduction
from clinometer.probes.counterfactual import checkpoints, probe
from clinometer.report.chart_style import PAPER
from clinometer.report.charts import chart

LEAN = {"red": 0.9, "blue": 0.1}
HALFWAY = {"red": 0.75, "blue": 0.25}
LITTLE = {"red": 0.55, "blue": 0.45}
SEVERAL = "Means of 3 trainings; intervals hold what differs between them."


@pytest.fixture(scope="module", autouse=True)
def quick_verdicts():
    """The verdict at ε takes most of the time, and nothing here asks about it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fairness_epsilon, "WORST_DRAWS", 9)
        yield


def trained(method, amount, writers):
    """One arm: a training for each writer."""
    for seed, writer in enumerate(writers):
        yield checkpoint(method, amount, name=f"{method}-{amount}-seed-{seed}", seed=str(seed),
                         weights=f"{method}{amount}{seed}".ljust(64, "0")), writer  # fmt: skip


def arm(moods, salt, **more):
    return [Writer(mood, salt=f"{salt}{seed}", **more) for seed, mood in enumerate(moods)]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Training alone takes half away, the method nearly all; it costs perplexity and relevance."""
    models = [
        (as_given(), Writer(LEAN, near=0.6)),
        *trained("control", "0", arm([HALFWAY] * 3, "c", near=0.6)),
        *trained("embedding", "10", arm([LITTLE] * 3, "e", near=0.4, nats=2.3)),
    ]
    return concluded(tmp_path_factory.mktemp("planted"), models, samples=60)


def sentence(found, start):
    (line,) = [each for each in found.headlines if each.startswith(start)]
    return line


def test_an_arm_is_told_its_costs_and_its_control_like_one_training(planted):
    line = sentence(planted, "embedding, λ = 10 (embedding-10 (3 trainings)), colour: I.F. by one reduced by ")
    assert line.count("reduced by") == 2
    before, control = line.split(" Compared with the same training without the regulariser: ")
    assert control.startswith("I.F. is lower according to one and two; perplexity +")
    assert control.endswith(SEVERAL)
    for said, against in ((before, "before"), (control, "control")):
        for guard in ("perplexity", "S.S.", "S.S.c"):
            row = rows_of(planted, "costs", model="embedding-10 (3 trainings)", against=against, guard=guard)[0]
            less = 1 if guard == "perplexity" else 0
            low, high = (f"{100 * (each - less):.1f}".replace("-", "−") for each in (row.low, row.high))
            assert f"({low} to {high})" in said
    assert "perplexity" in sentence(planted, "control, λ = 0 (control-0 (3 trainings)), colour: I.F.")
    # a sentence for each arm, none for a single training
    assert not any("-seed-" in each for each in planted.headlines)


def test_the_rows_of_an_arm_are_what_its_verdicts_say(planted):
    verdicts = {(each.after, each.before, each.measure): each for each in planted.changes}
    others = {"before": "given", "control": "control-0 (3 trainings)"}
    rows = [row for row in rows_of(planted, "change", quantity="excess") if row.labels["trainings"] == 3]
    assert len(rows) == 3 * 2 * 2  # control before; embedding before and control; measures; scorers
    for row in rows:
        name = f"{row.labels['measure']} of colour by {row.labels['scorer']} (beyond chance)"
        verdict = verdicts[row.labels["model"], others[row.labels["against"]], name]
        assert (row.estimate, row.low, row.high, row.p, row.q) == pytest.approx(
            (verdict.change, verdict.change_low, verdict.change_high, verdict.p, verdict.q)
        )
        about = {key: row.labels[key] for key in ("model", "against", "scorer", "measure")}
        (reduction,) = rows_of(planted, "reduction", **about)
        assert (reduction.low > 0) == (row.high < 0)
        (before,) = rows_of(planted, "change", quantity="excess", **about)
        gone = 1 - before.labels["after"] / before.labels["before"]
        assert reduction.estimate == pytest.approx(100 * gone, abs=0.2)
        assert before.labels["reduced_by"] == pytest.approx(reduction.estimate, abs=0.06)


@pytest.mark.parametrize("table", ["change", "costs", "mitigation"])
def test_an_arm_is_the_mean_of_its_trainings_and_less_sure_than_they_are(planted, table):
    told = ("attribute", "scorer", "against", "measure", "quantity", "guard", "of", "by")
    for name in ("control-0", "embedding-10"):
        for row in rows_of(planted, table, model=f"{name} (3 trainings)"):
            about = {key: row.labels[key] for key in told if key in row.labels}
            each = [
                one for seed in range(3) for one in rows_of(planted, table, model=f"{name}-seed-{seed}", **about)
            ]
            assert [one.labels["line"] for one in each] == [f"{row.labels['line']}, seed {n}" for n in range(3)]
            log = math.log if row.labels.get("guard") == "perplexity" else float
            assert log(row.estimate) == pytest.approx(sum(log(one.estimate) for one in each) / 3)
            if table == "change":  # a jackknife and Student's distribution are symmetric
                assert (row.low + row.high) / 2 == pytest.approx(row.estimate)
            if table != "mitigation" and not math.isnan(row.low):
                units = sum(log(one.high) - log(one.low) for one in each) / 3
                assert log(row.high) - log(row.low) > units


def test_of_a_control_half_of_what_trainings_differ_in_is_its_own(tmp_path, monkeypatch):
    asked = []

    def record(reduction, change, *, shared):
        asked.append((round(change.before, 9), shared))
        return widened_reduction(reduction, change, shared=shared)

    monkeypatch.setattr(probe, "widened_reduction", record)
    models = [(as_given(), Writer(LEAN)), *trained("control", "0", arm([HALFWAY] * 2, "c")),
              *trained("embedding", "10", arm([LITTLE] * 2, "e"))]  # fmt: skip
    found = concluded(tmp_path, models, samples=20)
    for scorer, measure in itertools.product(("one", "two"), ("I.F.", "G.F.")):
        about = {"scorer": scorer, "measure": measure, "model": "embedding-10 (2 trainings)"}
        for against, shared in (("before", False), ("control", True)):
            (row,) = rows_of(found, "change", quantity="excess", against=against, **about)
            assert {which for before, which in asked if round(before, 4) == row.labels["before"]} == {shared}
    assert len(asked) == 3 * 2 * 2


def test_trainings_that_disagree_have_reduced_nothing(tmp_path):
    """One of three takes nearly everything away, one adds; each alone is sure of itself."""
    moods = [{"red": 0.52, "blue": 0.48}, LEAN, {"red": 0.97, "blue": 0.03}]
    models = [(as_given(), Writer({"red": 0.85, "blue": 0.15})), *trained("embedding", "10", arm(moods, "e"))]
    found = concluded(tmp_path, models, samples=60)
    line = sentence(found, "embedding, λ = 10 (embedding-10 (3 trainings)), colour: I.F.")
    # of so wide an interval no more may follow than that nothing can be told
    assert line.count("no measurable change") + line.count("could not be compared (only a change of") == 2
    assert line.endswith(SEVERAL)
    seeds = [row for row in rows_of(found, "change", measure="I.F.", quantity="excess", scorer="one")
             if row.labels["trainings"] == 1]  # fmt: skip
    assert any(row.high < 0 for row in seeds)  # the first alone would have been called a reduction


def test_trainings_that_change_nothing_are_quiet(tmp_path):
    models = [(as_given(), Writer(LEAN)), *trained("control", "0", arm([LEAN] * 3, "c")),
              *trained("embedding", "10", arm([LEAN] * 3, "e"))]  # fmt: skip
    found = concluded(tmp_path, models, samples=40)
    for line in found.headlines[-2:]:
        assert line.count("no measurable change") == 2
        assert "reduced by" not in line
        assert "increased by" not in line
    assert "I.F. is not measurably different according to one and two" in found.headlines[-1]
    for row in rows_of(found, "costs"):
        if row.labels["trainings"] == 3:
            assert row.low < (row.labels["quantity"] == "after / before") < row.high


def test_of_one_training_the_sentence_says_what_its_interval_leaves_out(tmp_path):
    found = concluded(tmp_path, [(as_given(), Writer(LEAN)), (checkpoint(), Writer(LITTLE, salt="1"))], samples=20)
    assert found.headlines[-1].endswith("One training: intervals leave out what another seed would change.")
    for name in ("mitigation", "change", "reduction", "costs"):
        assert "line" not in rows_of(found, name)[0].labels
        assert not [figure for figure in found.figures if figure.table == name and figure.color == "line"]


def test_many_arms_have_an_overview_that_counts_arms(tmp_path):
    models = [(as_given(), Writer(LEAN)), *trained("control", "0", arm([HALFWAY] * 2, "c"))]
    for strength in ("1", "10", "100"):
        models += trained("embedding", strength, arm([LITTLE] * 2, f"e{strength}"))
    found = concluded(tmp_path, models, samples=40)
    line = sentence(found, "given, colour: I.F. is measurably lower than before by every scorer in ")
    assert "of 3 checkpoints and in " in line
    assert "of 1 controls" in line
    assert line.endswith("Means of 2 trainings each; intervals hold what differs between them.")
    assert [each.split("(")[1].split(" (")[0] for each in found.headlines[-4:]] == [
        "control-0 ", "embedding-1 ", "embedding-10 ", "embedding-100 ",
    ]  # fmt: skip
    figures = {figure.name: figure for figure in found.figures}
    tables = {table.name: table for table in found.tables}
    for name in ("tradeoff", "reduction", "costs"):
        figure = figures[name]
        assert figure.color == "line"
        assert chart(figure, tables[figure.table], colours=PAPER, width=600).drawn
        # on one line of a chart, no strength has two points: no line goes through several seeds
        shown = [row for row in tables[figure.table].rows if figure.filters.items() <= row.labels.items()]
        at = [
            tuple(row.labels[key] for key in ("line", "strength", *figure.menus, figure.column)) for row in shown
        ]
        assert len(set(map(repr, at))) == len(at)
    order = [row.labels["scorer"] for row in tables["mitigation"].rows]
    assert [scorer for scorer, _ in itertools.groupby(order)] == ["one", "two"]  # side by side
    assert all(row.low >= 0 or math.isnan(row.low) for row in tables["mitigation"].rows)


@pytest.mark.parametrize(
    ("numbers", "fewer", "said"),
    [
        ((1,), False, "One training: intervals leave out what another seed would change."),
        ((3,), False, "Means of 3 trainings; intervals hold what differs between them."),
        ((3, 2), False, "Means of 2 to 3 trainings each; intervals hold what differs between them."),
        (
            (3, 3),
            True,
            "between them; the control was trained less often, and what another seed would change",
        ),
        ((3, 1), False, "Intervals of one training leave out what another seed would change; those of several"),
    ],
)
def test_how_many_trainings_a_sentence_rests_on(numbers, fewer, said):
    results = [
        SimpleNamespace(trainings=n, tested=lambda _against: {"s": SimpleNamespace(fewer_controls=fewer)})
        for n in numbers
    ]
    assert said in checkpoints._noise(results)
