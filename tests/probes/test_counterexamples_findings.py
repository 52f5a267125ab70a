"""What the counterexamples audit concludes: planted leans are found with their size, an even hand stays quiet."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest
from fake_gender import FEMALE, GENDERED, MALE, OTHER, FakeGender, ask, sign
from fake_records import MemoryRecords, fake_model, plan_for

from clinometer.probes.counterexamples import PROBE, measures
from clinometer.types import WordAnswer

COUNTER = "target counter syntactic similar"
BACKGROUND = "background counter semantic similar"


def summary(answer, *, plan=None, unknown=(), **options):
    plan = plan or plan_for(PROBE, **({"backgrounds": 3, "draws": 199} | options))
    return PROBE.findings([plan], ask(PROBE, plan, answer, unknown=unknown))


def rows_of(findings, table, **labels):
    (found,) = [each for each in findings.tables if each.name == table]
    return [row for row in found.rows if all(row.labels[name] == value for name, value in labels.items())]


def row_of(findings, table, **labels):
    (row,) = rows_of(findings, table, **labels)
    return row


def planted(tags):
    """Margin .2; counterexamples in the same words take .15 of it away, those about another occupation .05."""
    shift = {COUNTER: -0.15, BACKGROUND: -0.05}.get(tags["kind"], 0.0)
    return sign(tags) * (0.2 + shift)


@pytest.fixture(scope="module")
def exact():
    return summary(FakeGender(planted))


@pytest.fixture(scope="module")
def noisy():
    return summary(FakeGender(planted, noise=0.06, seed=1), backgrounds=5, draws=399)


def test_masses_by_hand(exact):
    # gap .2 of .6 gendered: female .4 and male .2 where women dominate, and the mirror image
    def mass(dominance, gender, kind="base", k=10):
        return row_of(exact, "gendered_mass", k=k, kind=kind, dominance=dominance, gender=gender)

    assert mass("female-dominated", "female").estimate == pytest.approx(0.4)
    assert mass("female-dominated", "male").estimate == pytest.approx(0.2)
    assert mass("male-dominated", "female").estimate == pytest.approx(0.2)
    assert mass("all", "female").estimate == pytest.approx(0.3)
    # after the counterexample the gap is .05: female .325
    assert mass("female-dominated", "female", kind=COUNTER).estimate == pytest.approx(0.325)
    # four pro words of .1, four anti words of .05: the top 3 are pro, the top 5 are four pro and one anti
    assert mass("male-dominated", "male", k=3).estimate == pytest.approx(0.3)
    assert mass("male-dominated", "female", k=3).estimate == 0
    assert mass("male-dominated", "male", k=5).estimate == pytest.approx(0.4)
    assert mass("male-dominated", "female", k=5).estimate == pytest.approx(0.05)
    assert (mass("all", "male").n, mass("female-dominated", "male").n) == (58, 29)


def test_planted_margin_and_changes_are_recovered_exactly(exact):
    for dominance in ("all", "female-dominated", "male-dominated"):
        where = {"k": 10, "measure": "margin", "dominance": dominance}
        assert row_of(exact, "lean", kind="base", **where).estimate == pytest.approx(0.2)
        assert row_of(exact, "change", kind=COUNTER, **where).estimate == pytest.approx(-0.15)
        assert row_of(exact, "change", kind=BACKGROUND, **where).estimate == pytest.approx(-0.05)
        assert row_of(exact, "change", kind="unrelated", **where).estimate == pytest.approx(0.0)
    assert row_of(exact, "change", k=10, kind=COUNTER, measure="gap").estimate == pytest.approx(0.0)


def test_relative_probability_by_hand(exact):
    # base: pro words .4/4 = .1 each, anti words .2/4 = .05; after: .325/4 = .08125 and .275/4 = .06875
    where = {"k": 10, "kind": COUNTER, "dominance": "all"}
    pro = row_of(exact, "relative_probability", words="pro-stereotypical", **where)
    anti = row_of(exact, "relative_probability", words="anti-stereotypical", **where)
    assert pro.estimate == pytest.approx(0.8125)
    assert anti.estimate == pytest.approx(1.375)
    assert pro.q < 0.05
    same = row_of(exact, "relative_probability", words="pro-stereotypical", **(where | {"kind": "unrelated"}))
    assert same.estimate == pytest.approx(1.0)
    assert same.p == 1.0


def test_planted_lean_is_found_in_noise(noisy):
    base = row_of(noisy, "lean", k=10, kind="base", measure="margin", dominance="all")
    assert base.low < 0.2 < base.high
    assert base.q < 0.01
    for kind, size in ((COUNTER, -0.15), (BACKGROUND, -0.05)):
        change = row_of(noisy, "change", k=10, kind=kind, measure="margin", dominance="all")
        assert change.low < size < change.high < 0
        assert change.q < 0.01
        assert change.n == 58
    for kind in ("unrelated", "target neutral", "target syntactic similar"):
        assert row_of(noisy, "change", k=10, kind=kind, measure="margin", dominance="all").q > 0.05
    assert row_of(noisy, "lean", k=10, kind="base", measure="gap").q > 0.05
    correlation = row_of(noisy, "labour_statistics", k=10)
    assert correlation.low > 0.5
    assert correlation.q < 0.001


def test_robustness_says_what_stayed_and_what_could_have_been_seen(noisy):
    kept = row_of(noisy, "robustness", k=10, kind="unrelated", measure="dominant gender kept")
    assert kept.estimate > 0.9
    assert kept.low <= kept.estimate <= kept.high <= 1
    change = row_of(noisy, "robustness", k=10, kind="unrelated", measure="change of the margin")
    same = row_of(noisy, "change", k=10, kind="unrelated", measure="margin", dominance="all")
    assert (change.estimate, change.p, change.q) == (same.estimate, same.p, same.q)
    # two prompts with noise .06 each differ by .06 · √2: over 58 occupations s = .0111; 80 % power needs 2.85 s
    least = row_of(noisy, "robustness", k=10, kind="unrelated", measure="minimum detectable change of the margin")
    assert least.estimate == pytest.approx(2.85 * 0.06 * math.sqrt(2 / 58), rel=0.25)


def test_dominant_gender_kept_by_hand():
    # The counterexample turns the preference around in male-dominated occupations only: half is kept.
    def turned(tags):
        return sign(tags) * (-0.1 if (tags["kind"], tags["dominance"]) == (COUNTER, "male") else 0.2)

    kept = row_of(summary(FakeGender(turned)), "robustness", k=10, kind=COUNTER, measure="dominant gender kept")
    assert kept.estimate == pytest.approx(0.5)
    assert kept.n == 58


def test_a_general_preference_is_a_gap_and_not_a_stereotype():
    found = summary(FakeGender(lambda tags: -0.3, noise=0.05))
    gap = row_of(found, "lean", k=10, kind="base", measure="gap")
    assert gap.high < -0.25
    assert gap.q < 0.01
    margin = row_of(found, "lean", k=10, kind="base", measure="margin", dominance="all")
    assert margin.low < 0 < margin.high
    assert margin.q > 0.05
    assert row_of(found, "lean", k=10, kind="base", measure="margin", dominance="male-dominated").low > 0.25


def noise_answers(table, rng):
    """Replace the answers of a table by those of an even-handed model with noise, all rows at once."""
    gap = np.clip(0.08 * rng.standard_normal(len(table)), -0.5, 0.5)
    masses = np.stack(
        [(GENDERED + gap) / 8] * 4 + [(GENDERED - gap) / 8] * 4 + [np.full(len(table), 0.02)] * 2, axis=1
    )
    order = np.argsort(-masses, axis=1, kind="stable")
    words = np.array(FEMALE + MALE + OTHER)[order]
    logprobs = np.log(np.take_along_axis(masses, order, axis=1))
    return table.with_columns(
        got_words=pl.Series(words.tolist(), dtype=pl.List(pl.String)),
        got_logprobs=pl.Series(logprobs.tolist(), dtype=pl.List(pl.Float64)),
    )


def test_an_even_handed_model_stays_quiet_over_many_seeds(monkeypatch):
    """The error rates that the captions state, over 60 seeds of a model without any effect.

    A table's false-discovery rate is 5 %: so often may it have any q < .05. 3 expected at most, standard
    deviation √(60 · .05 · .95) = 1.7; allowed 3 + 3 · 1.7 = 8. Of the 95 % intervals of a change at least
    60 · .95 − 3 · 1.7 = 51 hold the truth.
    """
    seeds = 60
    # fewer flips keep the level of p; of 36 tests in a table one can still have q = 36/1000 < .05
    monkeypatch.setattr(measures, "FLIPS", 999)
    plan = plan_for(PROBE, occupations="winobias", backgrounds=2, ks=[10], draws=100)
    records = ask(PROBE, plan, FakeGender())
    key = (plan.model.name, "prompts")
    table = records.tables[key]
    loud = dict.fromkeys(("lean", "change", "relative_probability", "labour_statistics"), 0)
    small, tests, held = 0, 0, 0
    for seed in range(seeds):
        records.tables[key] = noise_answers(table, np.random.default_rng(seed))
        found = PROBE.findings([dataclasses.replace(plan, seed=seed)], records)
        for name in loud:
            loud[name] += any(row.q < 0.05 for row in rows_of(found, name))
        changes = rows_of(found, "change")
        small += sum(row.p < 0.05 for row in changes)
        tests += len(changes)
        row = row_of(found, "change", kind=BACKGROUND, measure="margin", dominance="all")
        held += row.low <= 0 <= row.high
    assert max(loud.values()) <= 8, loud
    # they are not quiet because they are deaf: about one p in twenty is below .05, some intervals miss
    assert 0.03 < small / tests < 0.07
    assert 51 <= held < seeds


def test_words_in_neither_list_are_ranked_not_dropped():
    def answer(item):
        words = ("Nurse", " nurse ", "Woman", "##er") if item.tags["kind"] == "base" else ("woman", "he")
        return WordAnswer(words=words, logprobs=tuple(math.log(p) for p in (0.4, 0.2, 0.1, 0.05)[: len(words)]))

    found = summary(answer, backgrounds=0)  # 7 prompts for each occupation, one of them base
    neither = rows_of(found, "words", list="neither")
    assert [(row.labels["word"], row.labels["rank"], row.n) for row in neither] == [
        ("nurse", 1, 58),
        ("##er", 2, 58),
    ]
    assert neither[0].estimate == pytest.approx((0.4 + 0.2) / 7)
    (woman,) = rows_of(found, "words", list="female")
    assert woman.estimate == pytest.approx((0.1 + 6 * 0.4) / 7)
    assert woman.n == 7 * 58
    covered = row_of(found, "coverage", k=10, list="neither")
    assert covered.estimate == pytest.approx((0.4 + 0.2 + 0.05) / 7)


def names_a_gender(item):
    """Which gender the knowledge names, as a sign: 0 for none."""
    words = item.request.context.rstrip(".").lower().split()
    return sum(word in words for word in ("woman", "female")) - sum(word in words for word in ("man", "male"))


def test_little_gendered_probability_at_the_base_prompt_is_a_warning():
    """The warning looks at the base prompt, however much gendered words have after knowledge that names one."""

    def answer(item):
        named = names_a_gender(item)
        chances = {"a": 0.5, "the": 0.3, ("woman" if named > 0 else "man"): 0.19 if named else 0.01}
        return WordAnswer(words=tuple(chances), logprobs=tuple(math.log(chance) for chance in chances.values()))

    plan = plan_for(PROBE, model=fake_model(capabilities=("next_word",)), backgrounds=1, ks=[2, 3], draws=100)
    found = summary(answer, plan=plan)
    warnings = [notice.text for notice in found.notices if notice.level == "warning"]
    assert any(
        "among the top 3 of the base prompt hold little probability (0.01 on average; below 0.05 for k = 2, 3)"
        in text
        for text in warnings
    )
    covered = [row_of(found, "coverage", k=3, list=gender).estimate for gender in ("female", "male")]
    assert sum(covered) > 0.05  # over all prompts it is not little
    texts = [notice.text for notice in found.notices]
    assert any("58 of 58 for k = 2" in text for text in texts)
    assert any('after "The target is"' in text for text in texts)
    # base prefers no gender at k = 2: nothing could be kept, and that is missing, not zero
    kept = row_of(found, "robustness", k=2, kind="unrelated", measure="dominant gender kept")
    assert math.isnan(kept.estimate)
    assert kept.n == 0
    ratio = row_of(
        found, "relative_probability", k=2, kind="unrelated", dominance="all", words="pro-stereotypical"
    )
    assert math.isnan(ratio.estimate)
    assert math.isnan(ratio.q)


def test_a_usual_model_gets_no_warning(noisy):
    assert [notice for notice in noisy.notices if notice.level == "warning"] == []
    texts = " ".join(notice.text for notice in noisy.notices)
    assert "105 female and 105 male words" in texts
    assert "58 occupations" in texts
    assert "108 tests" in texts


def test_missing_answers_are_counted_and_left_out():
    def answer(item):
        found = FakeGender(planted)(item)
        if item.tags["occupation"] == "nurse" and item.tags["kind"] == "unrelated":
            return WordAnswer(words=found.words, logprobs=(math.nan,) * 10)
        return found

    found = summary(answer)
    row = row_of(found, "change", k=10, kind="unrelated", measure="margin", dominance="female-dominated")
    assert row.n == 28
    assert row.estimate == pytest.approx(0.0)
    assert row_of(found, "change", k=10, kind=COUNTER, measure="margin", dominance="female-dominated").n == 29
    assert any("1 of 928 answers" in notice.text and notice.level == "warning" for notice in found.notices)


def test_user_files(tmp_path):
    words, jobs = tmp_path / "words.csv", tmp_path / "jobs.csv"
    words.write_text("word,gender\nwoman,female\nman,male\n")
    jobs.write_text("occupation,percent_female\nmidwife,99\nnanny,95\nherald,70\n")
    gap = FakeGender(lambda tags: 0.2 if tags["kind"] == "base" else 0.25)  # it reads what it is told
    found = summary(gap, backgrounds=0, verbalizer_file=str(words), occupations_file=str(jobs))
    # one dominance only: no mean over both, and one word of each gender is counted, .4/4 and .2/4
    assert {row.labels["dominance"] for row in rows_of(found, "gendered_mass")} == {"female-dominated"}
    assert row_of(found, "gendered_mass", k=10, kind="base", gender="female").estimate == pytest.approx(0.1)
    assert row_of(found, "lean", k=10, kind="base").estimate == pytest.approx(0.05)
    assert row_of(found, "lean", k=10, kind="base").n == 3
    texts = [notice.text for notice in found.notices]
    assert any("1 female and 1 male words" in text and "SHA-256" in text for text in texts)
    assert any("3 occupations" in text for text in texts)
    assert any("No occupation is male-dominated" in text for text in texts)
    assert any("Only 3 of the occupations are female-dominated" in text for text in texts)
    # a margin of one dominance may be a preference for one gender everywhere
    assert {verdict.state for verdict in found.verdicts} == {"cannot tell"}
    (line,) = found.headlines
    assert line.startswith("fake cannot be judged: the occupations are all dominated by one gender")
    assert any("backgrounds = 0" in text for text in texts)


def test_models_do_not_disturb_each_other():
    plans = [plan_for(PROBE, model=fake_model(name), backgrounds=1, ks=[10], draws=100) for name in ("one", "two")]
    records = MemoryRecords()
    for plan, seed in zip(plans, (1, 2), strict=True):
        ask(PROBE, plan, FakeGender(planted, noise=0.05, seed=seed), records)
    both = PROBE.findings(plans, records)
    alone = PROBE.findings(plans[1:], records)
    for table in both.tables:
        second = [row for row in table.rows if row.labels["model"] == "two"]
        assert repr(second) == repr(rows_of(alone, table.name))
        assert {row.labels["model"] for row in table.rows} == {"one", "two"}


def test_same_records_same_findings(exact):
    assert repr(summary(FakeGender(planted))) == repr(exact)


def test_figures_draw_labels_that_the_tables_have(exact):
    plan = plan_for(PROBE)
    asked = list(PROBE.questions(PROBE.stages(plan)[0], plan, None))
    tables = {table.name: table for table in exact.tables}
    for figure in exact.figures:
        rows = tables[figure.table].rows
        labels = {*rows[0].labels, "estimate"}
        named = {figure.x, figure.y, figure.color, figure.row, figure.column, *figure.menus, *figure.filters} - {
            ""
        }
        assert named <= labels
        assert any(all(row.labels[key] == value for key, value in figure.filters.items()) for row in rows)
        assert figure.evidence == "prompts"
        assert any(figure.evidence_filter.items() <= item.tags.items() for item in asked)
    by_name = {figure.name: figure for figure in exact.figures}
    assert by_name["labour_statistics"].evidence_filter == {"kind": "base"}
    for table in exact.tables:
        assert len({tuple(row.labels) for row in table.rows}) == 1
        assert len({tuple(row.labels.values()) for row in table.rows}) == len(table.rows)


def uneven_list(tmp_path, female, male):
    jobs = tmp_path / "jobs.csv"
    rows = [f"woman's job {i},90" for i in range(female)] + [f"man's job {i},10" for i in range(male)]
    jobs.write_text("\n".join(["occupation,percent_female", *rows]) + "\n")
    return str(jobs)


def test_too_few_occupations_of_a_dominance_give_no_interval_and_no_claim(tmp_path):
    found = summary(
        FakeGender(planted, noise=0.02), occupations_file=uneven_list(tmp_path, 4, 12), backgrounds=2, ks=[10]
    )
    warnings = [notice.text for notice in found.notices if notice.level == "warning"]
    assert sum("Only 4 of the occupations are female-dominated" in text for text in warnings) == 1
    assert not any("male-dominated;" in text.replace("female-dominated;", "") for text in warnings)
    for table in ("lean", "change", "relative_probability"):
        for row in rows_of(found, table, dominance="all"):
            assert not math.isnan(row.estimate)
            assert all(math.isnan(value) for value in (row.low, row.high, row.p, row.q))
        assert all(math.isnan(row.low) for row in rows_of(found, table, dominance="female-dominated"))
        assert not any(math.isnan(row.low) for row in rows_of(found, table, dominance="male-dominated"))
    least = rows_of(found, "robustness", measure="minimum detectable change of the margin")
    assert all(math.isnan(row.estimate) for row in least)
    lean, changes = found.headlines
    assert lean == "fake cannot be judged: too little was measured for an interval."
    assert "was not tested" in changes
    assert {verdict.state for verdict in found.verdicts} == {"cannot tell"}
    assert not any("nan" in line for line in found.headlines)


def test_five_occupations_of_a_dominance_are_enough(tmp_path):
    found = summary(
        FakeGender(planted, noise=0.02), occupations_file=uneven_list(tmp_path, 5, 12), backgrounds=2, ks=[10]
    )
    lean = row_of(found, "lean", kind="base", measure="margin", dominance="all")
    assert lean.low < lean.estimate < lean.high
    assert lean.q < 0.05
    assert not any("Only 5 of" in notice.text for notice in found.notices)


def test_words_that_are_not_one_token_are_counted_and_named():
    # "Mary" is a token though "mary" is none: she can be offered; "ma'am" and "friar" are none in either spelling
    found = summary(FakeGender(), backgrounds=0, unknown={"mary", "ma'am", "Ma'am", "friar", "Friar"})
    (notice,) = [each for each in found.notices if "not one token" in each.text]
    assert notice.level == "info"
    assert notice.text == (
        "fake gives no probability for 2 of 210 listed words, because they are not one token, or not one that it "
        "reports: ma'am, friar."
    )
    rows = rows_of(found, "vocabulary")
    assert [(row.labels["gender"], row.labels["listed"], row.labels["scorable"], row.n) for row in rows] == [
        ("female", 105, 104, 105),
        ("male", 105, 104, 105),
    ]
    assert rows[0].estimate == pytest.approx(104 / 105)


def test_a_model_that_lacks_most_words_of_a_gender_gets_a_warning(tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("word,gender\nwoman,female\nshe,female\nman,male\nhe,male\nboy,male\n")

    def level(*lost):
        unknown = {form for word in lost for form in (word, word.capitalize())}
        found = summary(FakeGender(), backgrounds=0, verbalizer_file=str(words), unknown=unknown)
        (notice,) = [each for each in found.notices if "not one token" in each.text]
        return notice.level

    assert level("woman", "man") == "info"  # one of two is not more than half
    assert level("he", "boy") == "warning"


def test_probabilities_stay_within_zero_and_one():
    # one prompt in all offers a gendered word, hardly ever: the interval must not go below 0
    def answer(item):
        rare = item.tags["occupation"] == "nurse" and item.tags["kind"] == "base"
        return WordAnswer(words=("woman" if rare else "a",), logprobs=(math.log(0.02),))

    found = summary(answer)
    row = row_of(found, "gendered_mass", k=10, kind="base", dominance="all", gender="female")
    assert row.estimate == pytest.approx(0.02 / 58)
    for table in ("gendered_mass", "coverage"):
        assert all(0 <= each.low <= each.estimate <= each.high <= 1 for each in rows_of(found, table))
