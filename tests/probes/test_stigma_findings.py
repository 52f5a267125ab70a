"""What the stigma audit concludes: planted leans are found with their size, an even hand stays quiet."""

import math

import numpy as np
import pytest
from fake_attitude import COVERED, RATINGS, FakeAttitude, FakeChat, FakeClassifier, noise_of, row_of, rows_of
from fake_records import MemoryRecords, ask, fake_model, plan_for

from clinometer.data.stigma_data import load_conditions
from clinometer.metrics import overall_attitude
from clinometer.probes.kit import CANNOT_TELL, LEAN
from clinometer.probes.stigma import PROBE, tables
from clinometer.types import ClassifyAnswer, WordAnswer

OURS = {"likely": "positive", "unlikely": "negative", "usual": "irrelevant", "grand": "positive"}
PLANTED = {"homeless", "criminal record", "sex offender"}
CAPABILITY = {"masked": "fill", "classifier": "classify", "chat": "ask"}


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """A small list of ratings in the place of ours, which the audit compares with `OURS`."""
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    path.write_text(RATINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "load_attitudes", lambda: OURS)
        yield str(path)


@pytest.fixture(scope="module")
def summarise(ratings):
    def run(*models, seed=0, **options):
        """Each model is (name, kind, what answers)."""
        options = {
            "templates": ["for me", "impersonal"],
            "draws": 199,
            "ratings_file": ratings,
            "one_word": False,
        } | options
        records, plans = MemoryRecords(), []
        for name, kind, answer in models:
            model = fake_model(name, capabilities=(CAPABILITY[kind],))
            plans.append(plan_for(PROBE, model=model, seed=seed, **options))
            ask(PROBE, plans[-1], answer, records)
        return PROBE.findings(plans, records)

    return run


def stigma_lean(tags):
    """.6 for stigmatized conditions, .4 for others, .3 without a condition; .1 less without "for me"."""
    lean = {"stigmatized": 0.6, "other": 0.4, "baseline": 0.3}[tags["group"]]
    return lean - 0.1 * (tags.get("template") == "impersonal")


@pytest.fixture(scope="module")
def exact(summarise):
    """Two masked models, two classifiers and a chat model, without any noise."""
    negative = FakeClassifier(lambda tags: 0.7 if tags["group"] == "stigmatized" else 0.1)
    binary = FakeClassifier(lambda tags: 0.7 if tags["condition"] in PLANTED else 0.3, neutral=math.nan)
    chat = FakeChat(
        lambda tags, i: (
            ("Definitely unwilling", "2", "As an AI I can't say.", "Hm.")[i % 4]
            if tags["group"] == "stigmatized"
            else "probably willing"
        )
    )
    return summarise(
        ("one", "masked", FakeAttitude(stigma_lean)),
        ("two", "masked", FakeAttitude(lambda tags: 0.5)),
        ("three", "classifier", negative),
        ("four", "classifier", binary),
        ("five", "chat", chat),
        answers=4,
        chat_conditions=6,
    )


@pytest.fixture(scope="module")
def noisy(summarise):
    """.4, but for three stigmatized conditions with .3 more; conditions and prompts differ a bit."""
    lean = FakeAttitude(lambda tags: 0.7 if tags["condition"] in PLANTED else 0.4, noise=0.05, spread=0.03, seed=2)

    def outcome(tags):  # follows the same three conditions, and one sentence in five by chance
        chance = 0.5 + 0.2 * noise_of(7, tags["wording"])
        return 0.9 if tags["condition"] in PLANTED else min(0.95, max(0.05, chance - 0.17))

    return summarise(
        ("masked", "masked", lean),
        ("classifier", "classifier", FakeClassifier(outcome, neutral=math.nan)),
        templates=[],
        draws=399,
    )


def test_levels_by_hand(exact):
    def level(model, template, group):
        return row_of(exact, "levels", model=model, template=template, group=group)

    assert level("one", "for me", "stigmatized").estimate == pytest.approx(0.6)
    assert level("one", "impersonal", "other").estimate == pytest.approx(0.3)
    assert level("one", "all", "stigmatized").estimate == pytest.approx(0.55)  # (.6 + .5)/2
    assert level("one", "all", "baseline").estimate == pytest.approx(0.25)  # (.3 + .2)/2
    assert level("all masked models", "all", "stigmatized").estimate == pytest.approx(0.525)  # (.55 + .5)/2
    assert (level("one", "all", "stigmatized").n, level("one", "all", "other").n) == (93, 29)
    assert level("one", "all", "baseline").n == 7


def test_differences_by_hand(exact):
    where = {"measure": "negative attitude", "template": "all"}
    assert row_of(exact, "difference", model="one", **where).estimate == pytest.approx(0.2)
    assert row_of(exact, "difference", model="one", **where).p == pytest.approx(2 / 10_000)
    assert row_of(exact, "difference", model="all masked models", **where).estimate == pytest.approx(0.1)
    even = row_of(exact, "difference", model="two", **where)
    assert even.estimate == pytest.approx(0, abs=1e-12)
    assert even.p == 1
    # three: 1 for each of 93, 0 for each of 29; four: negative for the three planted conditions only
    share = row_of(exact, "difference", model="three", template="all")
    assert (share.labels["measure"], share.estimate) == ("negative classification", 1)
    assert share.q < 0.01
    wordings = [each for each in load_conditions() if each.stigmatized]
    planted = sum(each.condition in PLANTED for each in wordings) / len(wordings)
    assert row_of(exact, "difference", model="four", template="all").estimate == pytest.approx(planted)
    # five: 3 and 2 of four answers are on the scale: 2.5 against 1
    distance = row_of(exact, "difference", model="five")
    assert distance.labels["measure"] == "social distance"
    assert distance.estimate == pytest.approx(1.5)


def test_categories_and_templates_by_hand(exact):
    for row in rows_of(exact, "categories", model="one"):
        assert row.estimate == pytest.approx(0.2)
        assert row.labels["negative_attitude"] == pytest.approx(0.55)
        assert math.isnan(row.p) == math.isnan(row.low) == (row.labels["conditions"] < 5)
    assert len(rows_of(exact, "categories", model="one")) == 12
    # "for me" minus "impersonal" is .1 for every condition, and nothing for the difference between the groups
    level = row_of(
        exact, "templates", model="one", template="for me", measure="negative attitude of all conditions"
    )
    assert level.estimate == pytest.approx(0.1)
    gap = row_of(exact, "templates", model="one", template="for me", measure="difference stigmatized − other")
    assert gap.estimate == pytest.approx(0, abs=1e-12)


def test_above_half_by_hand(exact):
    where = {"model": "one"}
    assert row_of(exact, "above_half", group="stigmatized", **where).labels["above_half"] == 93
    assert row_of(exact, "above_half", group="other", **where).labels["above_half"] == 0
    # Wilson: of 0 in 29 at most z²/(29 + z²) = 3.8415/32.8415
    assert row_of(exact, "above_half", group="other", **where).high == pytest.approx(0.117, abs=0.001)
    # at exactly .5 it is not above
    assert row_of(exact, "above_half", model="two", group="other").labels["above_half"] == 0


def test_coverage_by_hand(exact):
    def part(name):
        return row_of(exact, "coverage", model="one", template="all", part=name).estimate

    assert part("in the ratio") == pytest.approx(COVERED)
    assert part("irrelevant") == pytest.approx(0.1)
    assert part("unrated") == pytest.approx(0.05)
    assert part("beyond the words read") == pytest.approx(0.05)
    assert part("prompts with less than 0.5 in the ratio") == 0
    assert row_of(exact, "words", model="one", list="unrated").labels["word"] == "zyx"
    assert row_of(exact, "words", model="one", list="positive").labels["word"] == "likely"
    assert row_of(exact, "words", model="one", list="irrelevant").n == 138 * 14
    assert not [notice for notice in exact.notices if "of the probability on average" in notice.text]


def test_classes_by_hand(exact):
    def share(model, group, name, template="all"):
        return row_of(exact, "classes", model=model, template=template, group=group, **{"class": name})

    assert share("three", "stigmatized", "negative").estimate == 1
    assert share("three", "other", "positive").estimate == 1  # .1, .2, .7
    assert share("three", "baseline", "positive", "they").estimate == 1
    assert share("three", "baseline", "positive").n == 2
    assert math.isnan(share("four", "stigmatized", "neutral").estimate)  # a classifier with two classes
    assert share("four", "baseline", "negative").estimate == 0
    # over both classifiers: negative twice of two for the planted, once for the other stigmatized ones
    shares = {
        row.labels["condition"]: row.estimate
        for row in rows_of(exact, "condition_classes", model="all classifiers")
    }
    assert {shares[name] for name in PLANTED} == {1}
    assert shares["transgender"] == 0.5
    assert shares["slim"] == 0
    assert row_of(exact, "condition_classes", model="three", condition="Latina/Latino").n == 6  # 3 wordings × 2


def test_chat_answers_by_hand(exact):
    scores = {row.labels["group"]: row.estimate for row in rows_of(exact, "social_distance")}
    assert scores == {"stigmatized": 2.5, "other": 1}
    assert len(rows_of(exact, "social_distance")) == 12
    readings = {row.labels["reading"]: row.estimate for row in rows_of(exact, "readings", group="stigmatized")}
    assert readings == pytest.approx(
        {
            "definitely willing": 0,
            "probably willing": 0,
            "probably unwilling": 0.25,
            "definitely unwilling": 0.25,
            "refusal": 0.25,
            "unclear": 0.25,
        }
    )
    level = row_of(exact, "distance_levels", model="five", group="baseline")
    assert level.estimate == 1
    warnings = [notice.text for notice in exact.notices if notice.level == "warning"]
    assert any(text.startswith("five: ") and "are refusals" in text for text in warnings)
    assert any(
        "five was asked about 6 stigmatized and 6 other conditions" in notice.text for notice in exact.notices
    )


def test_agreement_of_ratings_by_hand(exact):
    # shared: likely and unlikely agree, "usual" is neutral there and irrelevant here; "grand", "blue" in one only.
    # observed 2/3; expected (1·1 + 1·1)/9 = 2/9; κ = (6/9 − 2/9)/(7/9) = 4/7
    row = row_of(exact, "ratings_agreement", ratings="all four")
    assert row.n == 3
    assert row.estimate == pytest.approx(4 / 7)
    assert row.labels["agreement"] == pytest.approx(2 / 3)
    assert row_of(exact, "ratings_agreement", ratings="negative or not").estimate == 1


def test_a_sub_condition_weighs_as_a_part_of_its_condition(summarise):
    """Latina .2, Latino .4 and Latine .9 are one condition of .5."""
    leans = {"Latina": 0.2, "Latino": 0.4, "Latine": 0.9}
    found = summarise(
        ("m", "masked", FakeAttitude(lambda tags: leans.get(tags["wording"], 0.3))), templates=["for me"]
    )
    assert row_of(found, "conditions", condition="Latina/Latino").estimate == pytest.approx(0.5)
    assert row_of(found, "conditions", condition="Latina/Latino").labels["rank"] == 1
    assert row_of(found, "excess", condition="Latina/Latino").estimate == pytest.approx(0.2)


def test_estimates_are_the_metrics(summarise):
    """The table of conditions is `overall_attitude` of `negative_attitude`, from answers read anew."""
    fake = FakeAttitude(stigma_lean, noise=0.1, spread=0.1, seed=4)
    found = summarise(("m", "masked", fake))
    plan = plan_for(PROBE, templates=["for me", "impersonal"])
    wordings = [each.name for each in load_conditions()]
    values = {}
    for item in PROBE.questions(PROBE.stages(plan)[0], plan, None):
        answer = fake(item)
        p = {
            word.strip().lower(): math.exp(logprob)
            for word, logprob in zip(answer.words, answer.logprobs, strict=True)
        }
        values[item.tags["template"], item.tags["wording"], item.tags["distance"]] = p["unlikely"] / (
            p["unlikely"] + p["likely"] + p["usual"]
        )
    array = [
        [[values[template, name, distance] for distance in plan.options.distances] for name in wordings]
        for template in plan.options.templates
    ]
    expected = overall_attitude([array], [each.condition for each in load_conditions()])
    estimates = {row.labels["condition"]: row.estimate for row in rows_of(found, "conditions")}
    assert [estimates[name] for name in expected.conditions] == pytest.approx(expected.overall)


def test_planted_conditions_are_found_with_their_size(noisy):
    excess = rows_of(noisy, "excess")
    assert {row.labels["condition"] for row in excess[:3]} == PLANTED
    for row in excess[:3]:
        assert row.q < 0.001
        # planted .3; prompts add .05/√28 = .01, the condition's own lot .03, the mean of the others .03/√29 = .006
        assert row.estimate == pytest.approx(0.3, abs=3 * 0.033)
        assert row.low > 0.15
    assert sum(row.q < 0.05 for row in excess[3:]) == 0
    assert "singles out 3 of 93 stigmatized conditions, most of all " in noisy.headlines[1]
    conditions = {row.labels["condition"]: row for row in rows_of(noisy, "conditions")}
    assert all(conditions[name].low > 0.5 for name in PLANTED)
    assert row_of(noisy, "above_half", group="stigmatized").labels["above_half"] == 3


def test_a_difference_of_the_groups_is_found_with_its_size(summarise):
    found = summarise(("m", "masked", FakeAttitude(stigma_lean, noise=0.1, spread=0.1, seed=5)), draws=399)
    row = row_of(found, "difference", template="all")
    assert row.low < 0.2 < row.high
    assert row.q < 0.001
    assert row.n == 122
    assert found.headlines[0].startswith("m uses more negative words about people with a stigmatized condition")
    assert found.verdicts[0].state == LEAN


def test_the_correlation_is_found(noisy):
    row = row_of(noisy, "correlation", conditions="all")
    assert row.n == 122
    attitude = [each.labels["negative_attitude"] for each in rows_of(noisy, "both_measures")]
    share = [each.estimate for each in rows_of(noisy, "both_measures")]
    assert row.estimate == pytest.approx(np.corrcoef(attitude, share)[0, 1])
    assert row.low > 0
    assert any("correlate with r = 0." in line for line in noisy.headlines)


def test_a_planted_correlation_is_recovered(summarise):
    """Both measures follow one number of the condition; 122 conditions: r of 1 but for the two outcomes' steps."""
    lot = {each.condition: noise_of(3, each.condition) for each in load_conditions()} | {"": 0.0}
    masked = FakeAttitude(lambda tags: 0.5 + 0.1 * lot[tags["condition"]])
    steps = [
        FakeClassifier(lambda tags, cut=cut: 0.9 if lot[tags["condition"]] > cut else 0.05) for cut in (-1, 0, 1)
    ]
    found = summarise(
        ("m", "masked", masked),
        *((f"c{at}", "classifier", each) for at, each in enumerate(steps)),
        templates=["for me"],
    )
    values = np.array([lot[name] for name in dict.fromkeys(each.condition for each in load_conditions())])
    attitudes = np.clip(0.5 + 0.1 * values, 0.01, 0.9)
    shares = np.mean([values > cut for cut in (-1, 0, 1)], axis=0)
    expected = np.corrcoef(attitudes, shares)[0, 1]
    assert expected > 0.9
    pooled = {"masked": "m", "classifier": "all classifiers", "conditions": "all"}
    assert row_of(found, "correlation", **pooled).estimate == pytest.approx(expected)
    # and with each classifier alone, where one step of three is left
    for at, cut in enumerate((-1, 0, 1)):
        one = row_of(found, "correlation", masked="m", classifier=f"c{at}", conditions="all")
        assert one.estimate == pytest.approx(np.corrcoef(attitudes, values > cut)[0, 1])
    assert len(rows_of(found, "correlation")) == 3 * (1 + 3)


def test_an_even_model_stays_quiet(summarise):
    """Conditions and prompts differ by chance. Of 8 seeds 5 % should find something: 3 and more come in 0.6 %."""
    found_gap, found_condition, found_category = 0, 0, 0
    for seed in range(8):
        fake = FakeAttitude(lambda tags: 0.4, noise=0.08, spread=0.05, seed=seed)
        found = summarise(("even", "masked", fake), seed=seed, templates=["for me"])
        sure = found.verdicts[0].state == LEAN
        row = row_of(found, "difference", template="all")
        assert sure == (row.q < 0.05 and not row.low <= 0 <= row.high)
        assert row.q == row.p  # one question, not corrected for what is explored beside it
        found_gap += sure
        found_condition += any(row.q < 0.05 for row in rows_of(found, "excess"))
        found_category += any(row.q < 0.05 for row in rows_of(found, "categories"))
    assert max(found_gap, found_condition, found_category) <= 2


def test_missing_and_unrated_answers_are_counted_and_left_out(summarise):
    fake = FakeAttitude(stigma_lean)

    def answer(item):
        if item.tags["wording"] == "homeless" and item.tags["distance"] == "neighbour":
            return WordAnswer(words=("likely",), logprobs=(math.nan,))
        if item.tags["wording"] == "slim":
            return WordAnswer(words=("zyx", "blue"), logprobs=(math.log(0.6), math.log(0.3)))
        return fake(item)

    found = summarise(("m", "masked", answer))
    homeless = row_of(found, "conditions", condition="homeless")
    assert homeless.estimate == pytest.approx(0.55)
    assert homeless.n == 6
    assert math.isnan(row_of(found, "conditions", condition="slim").estimate)
    assert row_of(found, "difference", template="all").n == 121
    warnings = [notice.text for notice in found.notices if notice.level == "warning"]
    assert any("2 of 1932 answers have a probability that is not a number" in text for text in warnings)
    assert any("at 14 of 1932 prompts, none of the words that were read is rated" in text for text in warnings)


def test_low_coverage_is_a_warning_and_is_in_the_headline(summarise):
    def answer(item):
        return WordAnswer(words=("zyx", "unlikely", "likely"), logprobs=tuple(map(math.log, (0.7, 0.1, 0.1))))

    found = summarise(("m", "masked", answer), templates=["for me"])
    warnings = [notice.text for notice in found.notices if notice.level == "warning"]
    assert any("hold 0.20 of the probability on average" in text and "zyx" in text for text in warnings)
    assert "but rated words hold only 0.20 of the probability" in found.headlines[0]


def test_a_few_prompts_with_low_coverage_are_a_warning_that_says_where(summarise):
    """One distance of seven, in one template of two, holds .2: on average (13 · .8 + .2)/14 = .757."""
    fake = FakeAttitude(stigma_lean)

    def answer(item):
        if (item.tags["template"], item.tags["distance"]) == ("impersonal", "same job"):
            return WordAnswer(words=("blue", "unlikely", "likely"), logprobs=tuple(map(math.log, (0.7, 0.1, 0.1))))
        return fake(item)

    found = summarise(("m", "masked", answer))
    (warning,) = [notice.text for notice in found.notices if notice.level == "warning"]
    assert "hold 0.76 of the probability on average, and less than 0.5 at 138 of 1,932 prompts" in warning
    assert "(most often in 'impersonal', 'same job': 100%)" in warning
    assert "but rated words" not in found.headlines[0]


def test_low_coverage_of_one_model_is_in_the_headline_of_all(summarise):
    def answer(item):
        return WordAnswer(words=("zyx", "unlikely", "likely"), logprobs=tuple(map(math.log, (0.7, 0.1, 0.1))))

    found = summarise(("low", "masked", answer), ("m", "masked", FakeAttitude(stigma_lean)), templates=["for me"])
    (headline,) = [text for text in found.headlines if text.startswith("all masked models uses")]
    assert "but rated words hold only 0.20 (low) of the probability" in headline
    (headline,) = [text for text in found.headlines if text.startswith("m uses")]
    assert "but rated words" not in headline


def test_ties_are_undecided(summarise):
    def tie(item):
        return ClassifyAnswer(negative=0.5, neutral=0.0, positive=0.5)

    found = summarise(("c", "classifier", tie))
    row = row_of(found, "classes", template="all", group="other", **{"class": "undecided"})
    assert row.estimate == 1
    assert any("no sentence comes out negative" in notice.text for notice in found.notices)
    assert any("needs both in one run; add a masked model" in notice.text for notice in found.notices)


def test_a_label_map_without_positive_leaves_that_class_empty(summarise):
    def harmful_or_not(item):
        harmful = item.tags["group"] == "stigmatized" or item.tags.get("sense") == "negative"
        negative = 0.9 if harmful else 0.2
        return ClassifyAnswer(negative=negative, neutral=1 - negative, positive=math.nan)

    found = summarise(("c", "classifier", harmful_or_not))
    shares = {
        row.labels["class"]: row.estimate for row in rows_of(found, "classes", template="all", group="other")
    }
    assert (shares["negative"], shares["neutral"]) == (0, 1)
    assert math.isnan(shares["positive"])
    assert row_of(found, "difference", template="all").estimate == 1


def test_a_chat_model_that_always_refuses(summarise):
    found = summarise(("c", "chat", FakeChat(lambda tags, i: "I'm sorry, but I can't answer.")), answers=2)
    assert not {"social_distance", "distance_levels", "difference"} & {table.name for table in found.tables}
    assert row_of(found, "readings", group="other", reading="refusal").estimate == pytest.approx(1)
    warnings = " ".join(notice.text for notice in found.notices if notice.level == "warning")
    assert "no answer on the scale for 122 of 122 conditions" in warnings
    assert found.headlines == (
        "c cannot be judged: only 0% of its answers are on the scale, and it takes 50%. It refused 100% of the "
        "answers, and 0% were unclear.",
    )
    assert found.verdicts[0].state == CANNOT_TELL


def test_few_conditions_give_no_test(summarise, tmp_path):
    path = tmp_path / "conditions.csv"
    path.write_text("name,verb,singular,stigmatized\nhomeless,be,homeless,yes\nrich,be,rich,no\nslim,be,slim,no\n")
    found = summarise(("m", "masked", FakeAttitude(stigma_lean)), conditions_file=str(path))
    gap = row_of(found, "difference", template="all")
    assert gap.estimate == pytest.approx(0.2)
    assert math.isnan(gap.low)
    assert math.isnan(gap.p)
    warnings = [notice.text for notice in found.notices if notice.level == "warning"]
    assert any("Only 1 stigmatized condition:" in text for text in warnings)
    assert found.headlines[0] == "m cannot be judged: too little was measured for an interval."


def test_few_distances_give_no_interval_of_a_condition(summarise):
    found = summarise(("m", "masked", FakeAttitude(stigma_lean)), distances=["neighbour", "recommend"])
    assert all(math.isnan(row.low) and math.isnan(row.p) for row in rows_of(found, "conditions"))
    assert any("fewer than 5 social distances" in notice.text for notice in found.notices)


def test_models_do_not_disturb_each_other(summarise):
    both = summarise(
        ("one", "masked", FakeAttitude(stigma_lean, noise=0.1, seed=1)),
        ("two", "masked", FakeAttitude(stigma_lean, noise=0.1, seed=2)),
        templates=["for me"],
    )
    alone = summarise(("two", "masked", FakeAttitude(stigma_lean, noise=0.1, seed=2)), templates=["for me"])
    for table in alone.tables:
        if table.name != "ratings_agreement":
            assert repr(rows_of(both, table.name, model="two")) == repr(list(table.rows))


def test_same_records_same_findings(summarise):
    def once():
        return summarise(("m", "masked", FakeAttitude(stigma_lean, noise=0.1)), templates=["for me"])

    assert repr(once()) == repr(once())


def test_figures_draw_labels_that_the_tables_have(exact, summarise):
    tables = {table.name: table for table in exact.tables}
    assert len(exact.figures) == 15
    for figure in exact.figures:
        rows = tables[figure.table].rows
        named = {figure.x, figure.y, figure.color, figure.row, figure.column, *figure.menus, *figure.filters}
        assert named - {""} <= {*rows[0].labels, "estimate"}
        assert any(all(row.labels[key] == value for key, value in figure.filters.items()) for row in rows)
        assert figure.evidence in ("attitudes", "sentences", "scale")
    for table in exact.tables:
        assert len({tuple(row.labels) for row in table.rows}) == 1
        assert len({tuple(row.labels.values()) for row in table.rows}) == len(table.rows)
    only_chat = summarise(("c", "chat", FakeChat(lambda tags, i: "1")), answers=1, chat_conditions=5)
    assert {figure.name for figure in only_chat.figures} == {"social_distance", "readings", "refusals"}
