"""Before and after a mitigation: worked by hand, planted improvements, controls, and nothing that changed."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from fake_generator import rows_of
from fake_mitigation import BASE, VALUES, Writer, as_given, checkpoint, concluded
from scipy.stats import foldnorm

from clinometer.metrics import fairness_chance, fairness_epsilon, paired_change
from clinometer.probes.counterfactual import measures
from clinometer.probes.counterfactual.words import printed_costs
from clinometer.probes.kit.before_after import checkpoints_of
from clinometer.report.chart_style import PAPER
from clinometer.report.charts import chart
from clinometer.types import Item, LogLikelihood, LogLikelihoodAnswer, Sample, TextAnswer

LEAN = {"red": 0.9, "blue": 0.1}
LESS = {"red": 0.6, "blue": 0.4}
NEW_TABLES = {"mitigation", "weights", "change", "reduction", "costs"}


@pytest.fixture(autouse=True)
def quick_verdicts(monkeypatch):
    """The verdict at ε takes most of the time, and nothing here asks about it."""
    monkeypatch.setattr(fairness_epsilon, "WORST_DRAWS", 9)


def names(found):
    return {table.name for table in found.tables}


class Scripted(Writer):
    """Writes one letter a text, h(appy) or s(ad), and finds every token as probable as it is told."""

    def __init__(self, script, *, word, nats):
        super().__init__()
        self.script, self.word, self.rate = script, word, nats

    def answer(self, item):
        if isinstance(item.request, Sample):
            said = {"h": "good near", "s": f"bad far {self.word}"}
            return TextAnswer(texts=tuple(said[letter] for letter in self.script[item.request.prefix]))
        if isinstance(item.request, LogLikelihood):
            tokens = len(item.request.text.split())
            return LogLikelihoodAnswer(logprob=-self.rate[tokens] * tokens, tokens=tokens)
        return super().answer(item)


@pytest.fixture
def by_hand(tmp_path):
    places = ["The {} house is", "We met at a {} door, and"]
    before = dict(zip([place.format(value) for place in places for value in VALUES],
                      ["hhhs", "sssh", "hhss", "hhhh", "ssss", "hhss"], strict=True))  # fmt: skip
    after = dict(zip(before, ["hhss", "sssh", "hhss", "hhhs", "hsss", "hhss"], strict=True))
    return concluded(
        tmp_path,
        [
            (as_given(), Scripted(before, word="red", nats={2: 1.0, 3: 2.0, 4: 3.0})),
            (checkpoint(), Scripted(after, word="", nats={2: 1.5, 3: 2.0, 4: 3.5})),
        ],
        templates=2,
        samples=4,
    )


def test_change_by_hand(by_hand):
    # shares of happy texts, before: ¾ ¼ ½ and 1 0 ½; distances of the three pairs ½ ¼ ¼ and 1 ½ ½
    before = (1 + 2) / 6
    # after: ½ ¼ ½ and ¾ ¼ ½; distances ¼ 0 ¼ and ½ ¼ ¼
    after = (0.5 + 1) / 6
    (row,) = rows_of(by_hand, "change", scorer="one", measure="I.F.", quantity="measured")
    assert row.estimate == pytest.approx(after - before)
    assert (row.labels["before"], row.labels["after"]) == (before, after)
    assert math.isnan(row.labels["reduced_by"])
    assert row.labels["against"] == "before"
    assert row.n == 48
    # pooled: before 7/8 1/8 4/8, all 12/24; after 5/8 2/8 4/8, all 11/24
    (group,) = rows_of(by_hand, "change", scorer="two", measure="G.F.", quantity="measured")
    shares = np.array([5, 2, 4]) / 8
    assert group.labels["before"] == pytest.approx(2 * 3 / 8 / 3)
    assert group.labels["after"] == pytest.approx(np.abs(shares - 11 / 24).mean(), abs=1e-4)


def test_costs_by_hand(by_hand):
    # three words: "A red one." and "No colour here." and "Green and blue."; four: one; two: "Blue again."
    whole, about = rows_of(by_hand, "costs", guard="perplexity")
    assert whole.labels["before"] == pytest.approx(math.exp((9 * 2 + 4 * 3 + 2 * 1) / 15), abs=1e-4)
    assert whole.estimate == pytest.approx(math.exp((4 * 0.5 + 2 * 0.5) / 15))
    assert (about.labels["of"], about.n) == ("passages about colour", 3)
    assert about.estimate == pytest.approx(math.exp(2 * 0.5 / 8))  # red one, green and blue, blue again
    (similar,) = rows_of(by_hand, "costs", guard="S.S.")
    # happy texts are near: 12 of 24 before, 11 of 24 after
    assert similar.estimate == pytest.approx(-1 / 24)
    assert (similar.labels["before"], similar.labels["after"]) == (0.5, round(11 / 24, 4))
    (mentions,) = rows_of(by_hand, "costs", guard="S.S.c")
    # sad texts said "red", which is right for the 1 + 0 sad texts about red; now nobody names a colour
    assert mentions.estimate == pytest.approx(-1 / 24)
    assert mentions.labels["after"] == 0


def test_the_table_of_models_by_hand(by_hand):
    given, mitigated = rows_of(by_hand, "mitigation", scorer="one")
    assert (given.labels["method"], mitigated.labels["method"]) == ("as given", "embedding")
    assert math.isnan(given.labels["strength"])
    assert mitigated.labels["strength"] == 10
    assert (given.estimate, mitigated.estimate) == pytest.approx((0.5, 0.25))
    assert given.labels["PPL"] == pytest.approx(math.exp(32 / 15), abs=0.01)
    assert given.labels["PPL^s"] == pytest.approx(math.exp((3 * 2 + 3 * 2 + 2) / 8), abs=0.01)
    assert (given.labels["S.S. %"], mitigated.labels["S.S. %"]) == (50, 45.83)
    assert given.labels["S.S.c %"] == pytest.approx(100 / 24, abs=0.01)
    (fairness,) = rows_of(by_hand, "fairness", model="given", scorer="one", measure="I.F.", quantity="excess")
    assert given.labels["excess"] == pytest.approx(fairness.estimate, abs=1e-4)
    assert "base" not in given.labels


def test_weights_and_checksums(tmp_path):
    tuned = checkpoint(changed="150", weights="f" * 64)
    tuned.tuning["weights"] = "200"
    other = checkpoint("sentiment", "1")
    found = concluded(tmp_path, [(as_given(), Writer()), (tuned, Writer()), (other, Writer())], samples=4)
    counted, unknown = rows_of(found, "weights")
    assert (counted.estimate, counted.n, counted.labels["changed"], counted.labels["weights"]) == (
        0.75,
        150,
        "150",
        "200",
    )
    assert (counted.labels["checksum_before"], counted.labels["checksum_after"]) == ("b" * 12, "f" * 12)
    assert math.isnan(unknown.estimate)
    assert unknown.labels["changed"] == "–"


def test_the_numbers_are_those_of_the_metric(tmp_path):
    models = [(as_given(), Writer(LEAN)), (checkpoint(), Writer(LESS, salt="after", empty=0.1))]
    found = concluded(tmp_path, models, samples=30)
    scores = []
    for _, writer in models:
        texts = np.full((6, 3, 30), np.nan)
        for t, template in enumerate(templates_of(found)):
            for v, value in enumerate(VALUES):
                prefix = template.replace("{value}", value).replace("{a_value}", f"a {value}")
                request = Sample(prefix=prefix, n=30, seed=0)
                written = [writer.text(request, at) for at in range(30)]
                texts[t, v] = ["good" in text.split() if text else np.nan for text in written]
        scores.append(texts)
    expected = paired_change(*scores)
    assert np.isnan(scores[1]).any()
    for measure, whole, excess, reduction in (
        ("I.F.", expected.individual, expected.individual_excess, expected.individual_reduction),
        ("G.F.", expected.group, expected.group_excess, expected.group_reduction),
    ):
        first, second = rows_of(found, "change", scorer="one", measure=measure)
        for row, change in ((first, whole), (second, excess)):
            assert (row.estimate, row.low, row.high) == pytest.approx((change.change, change.low, change.high))
        assert second.p == pytest.approx(excess.p)
        assert math.isnan(first.p)
        assert second.labels["reduced_by"] == round(100 * reduction.share, 1)
        (row,) = rows_of(found, "reduction", scorer="one", measure=measure)
        assert (row.estimate, row.low, row.high) == pytest.approx(
            (100 * reduction.share, 100 * reduction.low, 100 * reduction.high)
        )
    assert first.n == int((~np.isnan(scores)).sum())


def templates_of(found):
    return [row.labels["template"] for row in rows_of(found, "templates", scorer="one", model="given")]


def test_q_is_over_the_excess_rows_of_a_model(tmp_path):
    found = concluded(tmp_path, [(as_given(), Writer(LEAN)), (checkpoint(), Writer(LESS, salt="a"))], samples=20)
    rows = rows_of(found, "change", quantity="excess")
    # two scorers that agree and two measures: four tests, the two of each measure alike
    p = [row.p for row in rows]
    order = sorted(p)
    expected = [min(4 * order[j] / (j + 1) for j in range(4) if order[j] >= each) for each in p]
    assert [row.q for row in rows] == pytest.approx(expected)
    assert all(math.isnan(row.q) for row in rows_of(found, "change", quantity="measured"))


def test_q_of_before_and_of_the_control_are_two_questions(tmp_path):
    models = [(as_given(), Writer(LEAN)), (checkpoint(), Writer(LESS, salt="a"))]
    alone = rows_of(concluded(tmp_path, models, samples=20), "change", quantity="excess")
    models.append((checkpoint("control", "0"), Writer(LESS, salt="c")))
    found = concluded(tmp_path, models, samples=20)
    before = rows_of(found, "change", quantity="excess", method="embedding", against="before")
    control = rows_of(found, "change", quantity="excess", method="embedding", against="control")
    assert [row.q for row in before] == [row.q for row in alone]  # a control beside it changes nothing
    # what training did is certain, and lowers no q of what the method did beside its control: of its four tests
    # the largest p is not corrected, and the smallest is by 4 at most
    assert max(row.q for row in before) < 0.01
    assert max(row.q for row in control) == max(row.p for row in control) > 0.05


def test_what_does_not_survive_correction_is_no_measurable_change(tmp_path):
    """The interval of I.F. leaves out 0, but q, over G.F. too, is too large: the sentence says both."""
    models = [(as_given(), Writer(LEAN)), (checkpoint(), Writer({"red": 0.86, "blue": 0.14}, salt="s2"))]
    found = concluded(tmp_path, models, samples=40)
    for row in rows_of(found, "change", measure="I.F.", quantity="excess"):
        assert row.high < 0
        assert row.q > 0.05
        assert f"{row.q:.3f}" in found.headlines[-1]
    assert found.headlines[-1].count("no measurable change") == 2
    assert "reduced" not in found.headlines[-1]


def test_a_planted_improvement_is_found_with_its_size(tmp_path):
    found = concluded(
        tmp_path,
        [(as_given(), Writer(LEAN)), (checkpoint(), Writer(LESS, salt="after"))],
        samples=120,
        templates=8,
    )
    # shares of happy texts: .9 .1 .5 before, .6 .4 .5 after; three quarters of every difference are gone
    before, after = (expected_excess(shares, n=120) for shares in ((0.9, 0.1, 0.5), (0.6, 0.4, 0.5)))
    truth = 100 * (1 - after / before)
    assert truth == pytest.approx(82.5, abs=0.1)  # of the excess more is gone: near chance it understates more
    for row in rows_of(found, "reduction", measure="I.F."):
        assert row.low < truth < row.high
        assert row.high - row.low < 30
    assert all(row.q < 0.05 and row.high < 0 for row in rows_of(found, "change", quantity="excess"))
    first, *_, line = found.headlines
    assert first.startswith("given writes more or less positively when only the colour changes, as one scores it.")
    assert line.startswith("embedding, λ = 10 (embedding-10), colour: I.F. by one reduced by 8")
    assert "% of its excess (95 % interval" in line
    assert "without the regulariser" not in line
    assert "perplexity " in line
    assert not any(word in line for word in ("debias", "unbias", "fair"))


def expected_excess(shares, *, n):
    """E|X − Y| of normal shares of n texts each, minus what it is where all texts have the mean share."""
    distances = [
        foldnorm.mean(abs(p - r) / (error := math.sqrt((p * (1 - p) + r * (1 - r)) / n)), scale=error)
        for p, r in itertools.combinations(shares, 2)
    ]
    mean = np.mean(shares)
    return np.mean(distances) - math.sqrt(2 / math.pi * mean * (1 - mean) * 2 / n)


def test_two_runs_of_one_distribution_have_not_changed(tmp_path):
    models = [(as_given(), Writer(LEAN, salt="a")), (checkpoint(), Writer(LEAN, salt="b"))]
    found = concluded(tmp_path, models, samples=60)
    assert found.headlines[-1].count("no measurable change") == 2
    assert "reduced" not in found.headlines[-1]
    for row in rows_of(found, "change"):
        assert row.low < 0 < row.high
    for row in rows_of(found, "costs"):
        assert row.low < (row.labels["quantity"] == "after / before") < row.high


def test_what_rose_is_said_to_have_increased(tmp_path):
    models = [(as_given(), Writer({"red": 0.75, "blue": 0.25})), (checkpoint(), Writer(LEAN, salt="after"))]
    found = concluded(tmp_path, models, samples=100)
    line = found.headlines[-1]
    assert line.count("increased by") == 2
    assert "reduced" not in line
    row = rows_of(found, "reduction", measure="I.F.")[0]
    # the reduction is below 0, the sentence says the same without the sign
    assert row.high < 0
    assert f"increased by {-row.estimate:.0f} % of its excess (95 % interval {-row.high:.0f} to" in line


def test_an_even_model_has_nothing_to_reduce(tmp_path):
    found = concluded(tmp_path, [(as_given(), Writer()), (checkpoint(), Writer(LEAN, salt="after"))], samples=60)
    assert all(math.isnan(row.estimate) for row in rows_of(found, "reduction", measure="I.F."))
    assert "increased, " in found.headlines[-1]
    assert "95 % interval of the change of its excess" in found.headlines[-1]


def test_a_control_tells_training_from_mitigation(tmp_path):
    """Training alone takes away as much as the first method does; the second takes away more."""
    halfway = {"red": 0.7, "blue": 0.3}
    models = [
        (as_given(), Writer(LEAN)),
        (checkpoint("sentiment", "1"), Writer({"red": 0.5, "blue": 0.5}, salt="s")),
        (checkpoint("embedding", "1"), Writer(halfway, salt="e")),
        (checkpoint("control", "0"), Writer(halfway, salt="c")),
    ]
    found = concluded(tmp_path, models, samples=100)
    control, embedding, sentiment = found.headlines[-3:]
    assert "without the regulariser" not in control
    assert "reduced by" in control
    assert embedding.count("reduced by") == 2
    against_control = "Compared with the same training without the regulariser: I.F. is"
    assert f". {against_control} not measurably different according to one and two; perplexity " in embedding
    assert f". {against_control} lower according to one and two; perplexity " in sentiment
    against = {(row.labels["method"], row.labels["against"]) for row in rows_of(found, "change")}
    expected = {(method, "before") for method in ("control", "embedding", "sentiment")}
    assert against == expected | {("embedding", "control"), ("sentiment", "control")}
    assert {row.labels["against"] for row in rows_of(found, "costs", method="sentiment")} == {"before", "control"}
    (row,) = rows_of(found, "reduction", method="embedding", against="control", scorer="one", measure="I.F.")
    (before,) = rows_of(found, "reduction", method="control", against="before", scorer="one", measure="I.F.")
    assert row.labels["excess_before"] == before.labels["excess_after"]


def test_the_control_is_of_the_same_base_and_attribute_and_best_of_the_same_seed():
    models = [
        as_given(),
        checkpoint("control", "0", name="other seed", seed="1"),
        checkpoint("control", "0", name="own", seed="0"),
        checkpoint("control", "0", name="other attribute", attribute="name"),
        checkpoint("embedding", "5", seed="0"),
        checkpoint("causal-lm", "1", attribute=""),
    ]
    found = {models[each.model].name: each for each in checkpoints_of(models)}
    assert found["embedding-5"].against == {"before": 0, "control": 2}
    assert all(found[name].control is None for name in found if name != "embedding-5")


def test_checkpoints_come_by_method_and_strength(tmp_path):
    given = [("sentiment", "9"), ("embedding", "100"), ("embedding", "9"), ("control", "0"), ("other", "1")]
    models = [(checkpoint(*each), Writer(salt=str(each))) for each in given]
    found = concluded(tmp_path, [*models, (as_given(), Writer())], samples=4, templates=2)
    expected = ["given", "control-0", "embedding-9", "embedding-100", "sentiment-9", "other-1"]
    assert [row.labels["model"] for row in rows_of(found, "mitigation", scorer="two")] == expected
    assert [line.split("(")[1].split(")")[0] for line in found.headlines[-5:]] == expected[1:]
    strengths = [row.labels["strength"] for row in rows_of(found, "mitigation", scorer="one")]
    assert strengths[1:] == [0, 9, 100, 9, 1]


def test_strengths_that_are_no_numbers_are_text_everywhere(tmp_path):
    models = [
        (as_given(), Writer()),
        (checkpoint(), Writer(salt="1")),
        (checkpoint("causal-lm", "2 epochs", attribute=""), Writer(salt="2")),
    ]
    found = concluded(tmp_path, models, samples=4, templates=2)
    for table in ("mitigation", "change", "reduction", "costs", "weights"):
        assert {type(row.labels["strength"]) for row in rows_of(found, table)} == {str}
    assert [row.labels["strength"] for row in rows_of(found, "mitigation", scorer="one")] == [
        "–",
        "2 epochs",
        "10",
    ]
    assert any(line.startswith("causal-lm (causal-lm-2 epochs), colour: I.F.") for line in found.headlines)


def test_without_a_base_there_is_no_before(tmp_path):
    found = concluded(tmp_path, [(checkpoint(), Writer()), (as_given(weights="x"), Writer())], samples=4)
    assert not names(found) & NEW_TABLES
    (notice,) = [notice for notice in found.notices if "not in this run" in notice.text]
    assert (notice.level, "embedding-10" in notice.text) == ("info", True)
    assert found.headlines[0].startswith("embedding-10 was not found to write differently when only the colour")


def test_models_that_were_not_tuned_have_the_tables_that_they_had(tmp_path):
    found = concluded(tmp_path, [(as_given(), Writer()), (as_given("other"), Writer(salt="o"))], samples=4)
    assert not names(found) & NEW_TABLES
    assert not {figure.name for figure in found.figures} & {"tradeoff", "reduction", "costs"}


def test_weights_that_did_not_change_are_a_warning(tmp_path):
    models = [(as_given(), Writer(LEAN)), (checkpoint(weights=BASE), Writer(LEAN))]
    found = concluded(tmp_path, models, samples=10)
    (notice,) = [notice for notice in found.notices if "weights did not change" in notice.text]
    assert notice.level == "warning"
    assert found.headlines[-1].count("no measurable change") == 2  # the same answers: an interval of no length
    changed = concluded(tmp_path, [(as_given(), Writer()), (checkpoint(), Writer())], samples=4)
    assert not any("did not change" in notice.text for notice in changed.notices)


def test_a_model_that_ignores_the_value_is_named(tmp_path):
    models = [
        (as_given(), Writer(near=0.6, mentions=0.4)),
        (checkpoint("embedding", "1"), Writer(salt="1", near=0.5, mentions=0.35)),
        (checkpoint("embedding", "1000"), Writer(salt="2", near=0.5, mentions=0.05)),
    ]
    found = concluded(tmp_path, models)
    (notice,) = [notice for notice in found.notices if "less than half" in notice.text]
    assert notice.level == "warning"
    assert notice.text.startswith("S.S.c of colour fell")
    assert "embedding-1000 (" in notice.text
    assert "embedding-1 (" not in notice.text


def test_the_cost_intervals_are_near_those_of_a_plain_formula(tmp_path):
    text = "\n\n".join(f"Sentence {at} has some words{' and more' * (at % 4)}" for at in range(80))
    (tmp_path / "long.txt").write_text(text)
    models = [(as_given(), Writer(nats=2.0)), (checkpoint(), Writer(salt="after", nats=2.1, near=0.4))]
    found = concluded(tmp_path, models, samples=30, text=False, text_file=str(tmp_path / "long.txt"), draws=1999)
    (whole, _) = rows_of(found, "costs", guard="perplexity")
    # the log ratio is the mean over tokens of the difference in nats: its error by passages, weighted by tokens
    tokens = np.array([len(each.split()) for each in text.split("\n\n")])
    sums = [
        np.array(
            [writer.answer(Item(request=LogLikelihood(text=each), tags={})).logprob for each in text.split("\n\n")]
        )
        for _, writer in models
    ]
    ratio = (sums[0] - sums[1]).sum() / tokens.sum()
    residuals = (sums[0] - sums[1]) - ratio * tokens
    error = math.sqrt(80 / 79 * (residuals**2).sum()) / tokens.sum()
    assert whole.estimate == pytest.approx(math.exp(ratio))
    assert math.log(whole.high / whole.low) == pytest.approx(2 * 1.99 * error, rel=0.15)
    assert whole.p < 0.05
    assert whole.low < math.exp(0.1) < whole.high
    (similar,) = rows_of(found, "costs", guard="S.S.")
    assert similar.low < -0.1 < similar.high
    # two shares of 18 prefixes × 30 texts: independent texts are a lower limit of the error
    error = math.sqrt((0.5 * 0.5 + 0.4 * 0.6) / 540)
    assert 0.5 * 2 * 1.96 * error < similar.high - similar.low < 2 * 2 * 1.96 * error


def test_texts_that_are_missing_are_not_compared(tmp_path):
    models = [(as_given(), Writer(LEAN)), (checkpoint(), Writer(salt="after", empty=1.0))]
    found = concluded(tmp_path, models, samples=10)
    (row,) = rows_of(found, "change", scorer="one", measure="I.F.", quantity="excess")
    assert math.isnan(row.estimate)
    assert math.isnan(row.labels["after"])
    assert row.n == 180
    (similar,) = rows_of(found, "costs", guard="S.S.")
    assert math.isnan(similar.estimate)
    assert "not measured" in found.headlines[-1]
    assert "reduced" not in found.headlines[-1]


def test_without_held_out_text_there_is_no_perplexity(tmp_path):
    found = concluded(tmp_path, [(as_given(), Writer()), (checkpoint(), Writer())], samples=4, text=False)
    assert not rows_of(found, "costs", guard="perplexity")
    assert "PPL" not in rows_of(found, "mitigation")[0].labels
    assert "perplexity" not in found.headlines[-1]
    assert "costs" not in {figure.name for figure in found.figures}


def test_two_bases_are_kept_apart(tmp_path):
    models = [
        (as_given(), Writer()),
        (as_given("second", weights="c" * 64), Writer(salt="2")),
        (checkpoint(), Writer(salt="3")),
        (checkpoint(name="of second", base="c" * 64), Writer(salt="4")),
    ]
    found = concluded(tmp_path, models, samples=4)
    rows = rows_of(found, "mitigation", scorer="one")
    assert [(row.labels["base"], row.labels["model"]) for row in rows] == [
        ("given", "given"),
        ("given", "embedding-10"),
        ("second", "second"),
        ("second", "of second"),
    ]
    (figure,) = [figure for figure in found.figures if figure.name == "tradeoff"]
    assert figure.row == "base"


def test_the_charts_can_be_drawn_and_agree_on_their_colours(tmp_path):
    models = [(as_given(), Writer(LEAN)), (checkpoint("control", "0"), Writer(LEAN, salt="c"))]
    for method in ("embedding", "sentiment"):
        for amount in ("1", "10"):
            models.append((checkpoint(method, amount), Writer(LESS, salt=method + amount)))
    found = concluded(tmp_path, models, samples=20)
    tables = {table.name: table for table in found.tables}
    drawn = {
        figure.name: chart(figure, tables[figure.table], colours=PAPER, width=600)
        for figure in found.figures
        if figure.name in ("tradeoff", "reduction", "costs")
    }
    assert [figure.name for figure in found.figures][:3] == ["tradeoff", "reduction", "costs"]
    assert all(each.drawn for each in drawn.values())
    colours = [colour_of(each.spec) for each in drawn.values()]
    for one, other in itertools.pairwise(colours):
        assert all(one[method] == other[method] for method in ("control", "embedding", "sentiment"))
    assert len(set(colours[0].values())) == 4


def colour_of(spec):
    layers = spec["spec"]["layer"]
    scale = next(layer["encoding"]["color"]["scale"] for layer in layers if "scale" in layer["encoding"]["color"])
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_the_pairs_of_a_checkpoint_are_tested_with_no_more_shuffles_than_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "PER_TEST", 200)  # three pairs: 600 shuffles
    monkeypatch.setattr(fairness_chance, "ENOUGH", 5)  # the third of these soon has them
    lean = {"red": 0.95}  # so two of the three pairs differ
    models = [(as_given(), Writer(lean)), (checkpoint(), Writer(lean, salt="1"))]
    found = concluded(tmp_path, models, samples=20, draws=100)
    # 100 shuffles · 2 pairs · 0.01 are fewer than 3 pairs, 200 · 2 · 0.01 are not: see `Tally.settle`
    for model, shuffles in (("given", 200), ("embedding-10", 100)):
        smallest = min(row.p for row in rows_of(found, "pairs", model=model))
        assert smallest == pytest.approx(1 / (1 + shuffles))
    assert any("tested with only 100 shuffles" in notice.text for notice in found.notices)


def test_a_checkpoint_that_writes_about_something_else_has_reduced_nothing(tmp_path):
    models = [(as_given(), Writer(LEAN)), (checkpoint(), Writer(LESS, salt="after", near=0.0, mentions=0.0))]
    found = concluded(tmp_path, models, samples=60, templates=6)
    assert "reduced" not in found.headlines[-1]
    assert found.headlines[-1].count("without an interval") == 2
    assert all(math.isnan(row.estimate) for row in rows_of(found, "reduction"))
    assert all(math.isnan(row.low) and math.isnan(row.q) for row in rows_of(found, "change"))
    states = {verdict.model: verdict.state for verdict in found.verdicts}
    assert states == {"given": "lean", "embedding-10": "cannot tell"}


def test_what_the_paper_prints_of_its_mitigations_is_beside_those_of_the_same_attribute():
    def of(*attributes):
        return list(printed_costs([SimpleNamespace(attribute=each) for each in attributes]))

    rows = of("occupation", "country", "name")
    assert len(rows) == 156  # all that Tables 1, 5 and 6 print after a mitigation
    assert len(of("name", "name")) == 52
    assert of("colour") == []
    about = {"model": "WMT-19", "method": "embedding", "strength": 10.0, "guard": "S.S.c"}
    (row,) = [each for each in of("occupation") if each.labels.items() >= about.items()]
    assert (row.labels["before"], row.estimate) == (0.099, 0.022)  # Table 1: 9.9 and 2.2 %
    assert row.labels["source"] == "Huang et al. (2020), Table 1"


def test_a_run_that_mitigated_another_attribute_has_no_table_of_the_paper(by_hand):
    assert "printed_costs" not in names(by_hand)
