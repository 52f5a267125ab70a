"""The page of a comparison: what it shows first, what it escapes, and how it behaves in a browser."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

import clinometer
from clinometer.report.comparison import ComparisonPage, change_rows, render_comparison, standing_columns
from tests.compared import stigma_run
from tests.report.test_browser import browser, open_browser, resize  # noqa: F401  (fixtures)


def page_of(compared) -> ComparisonPage:
    names = ("models", "pairs", "verdicts", "leans", "tables", "audits", "notes", "sources")
    return ComparisonPage(**{name: getattr(compared, name) for name in names})


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    return clinometer.compare(
        stigma_run(folder / "before", "m", seed=1), stigma_run(folder / "after", "m", seed=2, lean=0.1)
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    return clinometer.compare(
        *(stigma_run(folder / f"r{i}", f"model {i}", seed=i, lean=0.03 * i) for i in range(7)),
        stigma_run(folder / "gated", "gated", gate="it did not understand"),
    )


def test_the_worst_speaks_first_for_an_audit(two):
    (row,) = change_rows(page_of(two))
    (cell,) = row.cells
    assert cell.state == "worse"
    assert [other.verdict.state for other in cell.others] == ["no change found"]
    assert cell.first.interval.low > cell.first.interval.zero
    assert "; 60 conditions of both; detectable from 0.0" in cell.first.numbers


def test_first_sentences_are_short_and_plain(two):
    for verdict in two.verdicts:
        assert len(verdict.sentence.split()) <= 25


def test_names_of_units_come_after_the_consent(two):
    html = render_comparison(page_of(two))
    before, after = html.split('id="reveal"')
    assert "condition 3" not in before
    assert "condition 3" in after


def test_markup_in_names_stays_text(tmp_path):
    evil = "<script>alert(1)</script>"
    compared = clinometer.compare(
        stigma_run(tmp_path / "before", evil, seed=1), stigma_run(tmp_path / "after", evil, seed=2)
    )
    html = render_comparison(page_of(compared))
    assert evil not in html
    assert "&lt;script&gt;" in html
    assert "http" not in re.sub(r"http-equiv", "", html.split("</style>")[0].replace("http://www.w3.org", ""))


def test_the_table_of_all_models_shows_letters_instead_of_ranks(many):
    (column,) = standing_columns(page_of(many))
    assert column.standings["gated"].letters == ""
    assert column.standings["gated"].reason == "it did not understand"
    assert column.standings["model 0"].letters.startswith("a")
    assert column.standings["model 6"].letters != column.standings["model 0"].letters
    assert not math.isnan(column.standings["model 6"].distance)


def test_who_was_asked_by_another_measure_is_not_said_to_be_unasked(many):
    page = page_of(many)
    tables = [
        replace(each, rows=tuple(row for row in each.rows if row.labels.get("model") != "model 3"))
        for each in page.tables
    ]
    (column,) = standing_columns(replace(page, tables=tuple(tables)))
    assert column.standings["model 3"].numbers == "by another measure"
    assert column.standings["model 3"].state == "none found"
    (column,) = standing_columns(replace(page, tables=tuple(tables), leans={**page.leans, "model 3": ()}))
    assert "model 3" not in column.standings


def test_no_number_stands_beside_what_cannot_be_told(many):
    page = page_of(many)
    leans = {**page.leans, "model 3": tuple(replace(each, state="cannot tell") for each in page.leans["model 3"])}
    (column,) = standing_columns(replace(page, leans=leans))
    standing = column.standings["model 3"]
    assert (standing.numbers, standing.letters, standing.distance, standing.interval) == ("", "", None, None)


def test_refusing_nobody_more_than_others_is_not_an_even_hand(many):
    page = page_of(many)
    (gated,) = page.leans["gated"]
    refusals = replace(gated, state="none found", aspect="for whom it refuses to answer", concerns="refusals")
    (column,) = standing_columns(replace(page, leans={**page.leans, "gated": (gated, refusals)}))
    assert column.standings["gated"].state == "cannot tell"


def test_every_measure_is_counted_as_the_command_counts(two):
    tally = re.search(r'<p class="tally">(.*?)</p>', render_comparison(page_of(two)))[1]
    assert re.findall(r">(\d × [a-z ]+)<", tally) == ["1 × worse", "1 × no change found"]


def test_a_page_without_anything_compared_says_so(two):
    assert "nothing is compared" in render_comparison(replace(page_of(two), verdicts=()))
    assert "nothing is compared" not in render_comparison(page_of(two))


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 390])
def test_a_person_reads_the_answer_and_opens_the_tables(browser, tmp_path, two, width):
    path = two.write_page(tmp_path / "page.html")
    resize(browser, width)
    browser.get(path.as_uri())
    assert "worse" in browser.find_element("css selector", ".grid-cell").text
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert not browser.find_element("id", "findings").is_displayed()
    browser.execute_script("document.getElementById('reveal').click()")
    blocks = browser.find_elements("css selector", ".table-block")
    assert len(blocks) >= 3
    blocks[1].find_element("tag name", "summary").click()
    assert "condition" in blocks[1].text
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.mark.browser
def test_the_table_of_all_models_is_sorted_by_a_click(browser, tmp_path, many):
    path = many.write_page(tmp_path / "page.html")
    resize(browser, 1400)
    browser.get(path.as_uri())
    header = browser.find_elements("css selector", ".standings thead button")[1]
    rows = lambda: [each.text for each in browser.find_elements("css selector", ".standings tbody th")]  # noqa: E731
    header.click()
    assert rows()[-1] == "gated"
    assert rows()[0] in ("model 0", "model 1")
    header.click()
    assert rows()[0] == "model 6"
    assert rows()[-1] == "gated"


@pytest.mark.browser
def test_each_of_several_pairs_is_named(browser, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    three = [stigma_run(folder / f"r{i}", f"model {i}", seed=i, lean=0.05 * i) for i in range(3)]
    page = clinometer.compare(*three).write_page(tmp_path / "page.html")
    resize(browser, 1400)
    browser.get(page.as_uri())
    named = [each.text for each in browser.find_elements("css selector", ".grid-of")]
    assert named == ["model 0 → model 1", "model 0 → model 2"]


@pytest.mark.browser
def test_on_a_phone_the_names_of_many_models_break_at_their_marks_alone(browser, tmp_path):
    names = ("builtin:opinion-words", "organisation/a-rather-long-name-of-a-model-7b", "meta-llama/Llama-3.2-1B")
    folder = tmp_path / "runs"
    folder.mkdir()
    runs = [stigma_run(folder / f"r{i}", f"{name}-{i}", seed=i) for i, name in enumerate(names * 2)]
    page = clinometer.compare(*runs).write_page(tmp_path / "page.html")
    resize(browser, 390)
    browser.get(page.as_uri())
    torn = browser.execute_script(
        "const torn = []; for (const cell of document.querySelectorAll('.standings th')) {"
        "  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);"
        "  while (walker.nextNode()) for (const found of walker.currentNode.data.matchAll(/\\S+/g)) {"
        "    const range = document.createRange(); range.setStart(walker.currentNode, found.index);"
        "    range.setEnd(walker.currentNode, found.index + found[0].length);"
        "    if (new Set([...range.getClientRects()].map(each => each.top)).size > 1) torn.push(found[0]);"
        "  } } return torn"
    )
    assert torn == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    shown = [each.text for each in browser.find_elements("css selector", ".standings tbody th")]
    assert {each.replace("\n", "") for each in shown} == {f"{name}-{i}" for i, name in enumerate(names * 2)}
    resize(browser, 1400)
