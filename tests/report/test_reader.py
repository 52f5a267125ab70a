"""The page as people use it: read, follow a claim, filter, change the theme, print, tab through, hear it."""

from __future__ import annotations

import base64
import itertools
import time
from dataclasses import replace

import pytest

from clinometer.report import ProbeText
from clinometer.report.rounding import estimate_text, interval_text
from clinometer.types import Figure, Finding, Findings, FindingTable
from tests.report.samples import evidence, findings, page
from tests.report.test_browser import (
    browser,
    concluded,
    console,
    drawn_page,
    load,
    open_browser,
    requested,
    reveal,
)

__all__ = ["browser", "open_browser"]  # fixtures

pytestmark = pytest.mark.browser

TAB, ENTER = "\ue004", "\ue007"  # as WebDriver writes these keys

TEXT = ProbeText(
    title="A small audit",
    question="Which group?",
    paper="Nobody, 2031",
    how=("First the verdict.",),
    not_shown=("Everything else.",),
    bibtex="@misc{nobody2031,\n  title = {Small}\n}",
)


def whole_page():
    """An audit with a verdict that rests on the last of many rows, prompts, five figures and a term."""
    found, _ = concluded()
    rows = tuple(
        Finding(
            labels={"group": f"group {i}", "model": "one", "set": "a"}, estimate=i / 100, low=0.0, high=1.0, n=3
        )
        for i in range(30)
    )
    table = replace(found.tables[0], rows=(*rows, *found.tables[0].rows))
    figures = tuple(replace(found.figures[0], name=f"figure_{i}") for i in range(5))
    verdict = replace(found.verdicts[0], sentence="builtin:causal prefers one group by the margin.")
    told = replace(found, tables=(table,), figures=figures, verdicts=(verdict,), headlines=("W1 is wide.",))
    return page(
        findings=(told,), probes={told.probe: TEXT}, evidence={told.probe: {"figure_0": evidence()}}, files={}
    )


def wait_for(browser, script: str, *, seconds: float = 10):
    deadline = time.monotonic() + seconds
    while not browser.execute_script(script):
        assert time.monotonic() < deadline, f"did not come true: {script}"
        time.sleep(0.05)


def test_a_reader_goes_from_the_grid_to_a_prompt_and_on_to_paper(browser, tmp_path):
    load(browser, tmp_path, whole_page())
    assert "Prefers one group by the margin." in browser.find_element("css selector", ".grid-cell.lean").text
    assert "detectable from 0.200" in browser.find_element("css selector", ".grid-cell.lean .numbers").text
    reveal(browser, unfold=False)

    # a figure behind a fold
    assert len(browser.find_elements("css selector", ".plot svg")) == 3
    browser.find_element("css selector", ".more-figures > summary").click()
    wait_for(browser, "return document.querySelectorAll('.plot svg').length === 5")

    # how to read it, what a term means, whom to cite
    browser.find_element("css selector", ".probe .reading > summary").click()
    assert "What it does not show" in browser.find_element("css selector", ".probe .reading").text
    assert "W1: how far one would have to move" in browser.find_element("css selector", ".probe > .terms").text
    browser.find_element("css selector", ".bibtex > summary").click()
    cited = browser.find_element("css selector", ".bibtex pre").text
    assert "@software{clinometer," in cited
    assert "@misc{nobody2031," in cited

    # from the claim to its row, from the row to the prompts
    browser.execute_script("arguments[0].click()", browser.find_element("css selector", "a.evidence"))
    wait_for(browser, "return document.querySelector('tr.pointed-at') !== null")
    block = browser.find_element("css selector", ".table-block[open]")
    block.find_element("css selector", ".behind a").click()
    wait_for(browser, "return document.querySelector('.prompts').open")
    assert "works as a" in browser.find_element("css selector", ".exchanges").text

    # filter
    block.find_element("css selector", ".filter").send_keys("group 7")
    wait_for(browser, "return document.querySelector('.counted').textContent.startsWith('1 of 34 rows match')")
    assert console(browser) == []
    assert requested(browser) == [(tmp_path / "report.html").as_uri() + hash_ for hash_ in ("",)]


def test_the_theme_is_switched_by_a_button_and_paper_stays_light(browser, tmp_path):
    load(browser, tmp_path, whole_page())
    reveal(browser, unfold=False)
    colour = "return getComputedStyle(document.body).backgroundColor"
    axis = "return getComputedStyle(document.querySelector('.chart .role-axis-label text')).fill"
    button = browser.find_element("id", "theme")
    seen = []
    for _ in range(3):
        seen.append((button.text, browser.execute_script(colour), browser.execute_script(axis)))
        button.click()
    light, dark = ("rgb(255, 255, 255)", "rgb(28, 31, 36)"), ("rgb(20, 23, 28)", "rgb(231, 233, 237)")
    assert seen == [("Dark", *light), ("Light", *dark), ("Dark", *light)]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.execute_script(colour) == light[0]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_table_of_a_verdict_is_printed_with_its_row_first(browser, tmp_path):
    load(browser, tmp_path, whole_page())
    reveal(browser, unfold=False)
    browser.execute_script(
        "window.addEventListener('beforeprint', () => { const row = document.querySelector('tr.pointed-at');"
        " window.__printed = [document.querySelectorAll('.table-block[open]').length,"
        " row && row.rowIndex, row && row.textContent]; });"
    )
    paper = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert base64.b64decode(paper["data"]).startswith(b"%PDF")
    tables, place, row = browser.execute_script("return window.__printed")
    assert (tables, place) == (1, 1)
    assert row.startswith("second")
    assert not browser.find_elements("css selector", ".table-block[open]")  # folded again on the screen


def test_a_row_without_some_number_is_found_and_printed_like_any_other(browser, tmp_path):
    """A label of the row that a verdict rests on may not have been computed, and JSON has no word for that."""
    whole = whole_page()
    (found,) = whole.findings
    rows = tuple(
        replace(row, labels={**row.labels, "detectable": float("nan") if i % 2 else 1.0})
        for i, row in enumerate(found.tables[0].rows)
    )
    reference = replace(found.verdicts[0].rows[0], labels=rows[-1].labels)
    told = replace(
        found,
        tables=(replace(found.tables[0], rows=rows),),
        verdicts=(replace(found.verdicts[0], rows=(reference,)),),
    )
    load(browser, tmp_path, replace(whole, findings=(told,)))
    reveal(browser, unfold=False)
    browser.execute_script(
        "window.addEventListener('beforeprint', () => {"
        " window.__printed = document.querySelector('tr.pointed-at')?.textContent; });"
    )
    browser.execute_cdp_cmd("Page.printToPDF", {})
    assert browser.execute_script("return window.__printed").startswith("secondtwob–")
    browser.execute_script("arguments[0].click()", browser.find_element("css selector", "a.evidence"))
    wait_for(browser, "return document.querySelector('tr.pointed-at') !== null")
    assert console(browser) == []


def test_before_the_reader_agrees_paper_shows_the_grid_alone(browser, tmp_path):
    load(browser, tmp_path, whole_page())
    browser.execute_cdp_cmd("Page.printToPDF", {})
    assert not browser.find_elements("css selector", ".table-block[open]")
    assert not browser.find_element("id", "findings").is_displayed()


def test_the_page_can_be_used_by_keyboard_alone(browser, tmp_path):
    load(browser, tmp_path, whole_page())
    active = "const e = document.activeElement;"
    focused = f"{active} return e.id || e.className || e.tagName + ' ' + e.textContent.slice(0, 20)"
    body = browser.find_element("tag name", "body")
    stops = []
    for _ in range(40):
        (browser.switch_to.active_element if stops else body).send_keys(TAB)
        stops.append(browser.execute_script(focused))
        if stops[-1] == "reveal":
            break
    assert stops[0] == "theme"
    assert "evidence" in stops
    assert stops[-1] == "reveal"
    assert not any("summary" in stop.lower() and "figures" in stop for stop in stops)  # nothing that is hidden
    browser.switch_to.active_element.send_keys(" ")
    wait_for(browser, "return document.documentElement.dataset.charts === 'drawn'")
    after = []
    for _ in range(60):
        browser.switch_to.active_element.send_keys(TAB)
        after.append(browser.execute_script(focused))
    assert any("How to read this, an" in stop for stop in after)
    assert any("more figures" in stop for stop in after)
    summary = browser.find_element("css selector", ".table-block > summary")
    summary.send_keys(ENTER)
    wait_for(browser, "return document.querySelector('.table-block').open")


def test_what_a_screen_reader_is_told(browser, tmp_path):
    found = findings()
    load(browser, tmp_path, page(findings=(found,), files={}))
    reveal(browser)
    levels = browser.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3, h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert browser.execute_script("return document.querySelectorAll('th:not([scope])').length") == 0
    browser.execute_script("document.querySelectorAll('.table-block').forEach(block => { block.open = true; })")
    wait_for(browser, "return document.querySelectorAll('.findings-table tbody th[scope=row]').length > 20")
    assert browser.execute_script("return document.querySelectorAll('th:not([scope])').length") == 0
    charts = browser.execute_script(
        "return [...document.querySelectorAll('.plot')].map(plot => [plot.getAttribute('role'), plot.ariaLabel])"
    )
    assert {role for role, _ in charts} == {"img"}
    assert all(len(label) > 40 and any(letter.isdigit() for letter in label) for _, label in charts)
    # 26 points at k = 3: the range of them, with the names of the ends
    rows = [row for row in found.tables[0].rows if row.labels["k"] == 3 and row.estimate == row.estimate]
    least = min(rows, key=lambda row: row.estimate)
    said = f"{least.labels['kind']}, {least.labels['model']}: {estimate_text(least.estimate)}"
    assert f"(k 3). 26 points, from {said} {interval_text(least.low, least.high)} to" in charts[0][1]


def test_what_is_told_of_a_chart_is_the_same_with_and_without_script(browser, tmp_path):
    load(browser, tmp_path, page())
    told = "return [...document.querySelectorAll('.plot')].map(plot => plot.ariaLabel)"
    before = browser.execute_script(told)
    reveal(browser)
    assert browser.execute_script(told) == before
    browser.find_element("css selector", ".chart select option:nth-child(2)").click()
    wait_for(browser, "return document.querySelector('.plot').ariaLabel.includes('(k 5)')")


KINDS = [
    f"{a} {b}{c} similar"
    for a in ("target", "background")
    for b in ("", "counter ")
    for c in ("syntactic", "semantic")
]


@pytest.mark.parametrize("groups", [["men", "women"], [f"people who have {what}" for what in "abc"], KINDS])
def test_names_can_be_told_apart_on_a_phone(browser, tmp_path, groups):
    """Names of models that share their beginning, and categories whose names are long."""
    models = [f"organisation/a-rather-long-name-of-a-model-{size}-{kind}" for size in (7, 13) for kind in "ab"]
    rows = [
        Finding(labels={"model": model, "group": group}, estimate=i + j, low=i, high=i + j + 1, n=1)
        for i, model in enumerate(models)
        for j, group in enumerate(groups)
    ]
    load(
        browser,
        tmp_path,
        drawn_page(rows, mark="intervals", x="estimate", y="group", color="model", column="model"),
        width=390,
    )
    reveal(browser)
    shown = browser.execute_script(
        "return ['.role-axis-label text', '.role-legend-label text']"
        ".map(place => [...new Set([...document.querySelectorAll('.chart ' + place)].map(t => t.textContent))]"
        ".filter(text => /[a-z]/.test(text)))"
    )
    assert len(shown[0]) == len(groups)
    assert len(shown[1]) == len(models)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_the_grid_on_a_phone_names_model_and_audit_of_each_cell(browser, tmp_path):
    load(browser, tmp_path, whole_page(), width=390)
    row = browser.find_element("css selector", ".grid-row:has(.grid-cell.lean)")
    assert row.text.startswith("builtin:causal\nA small audit\nlean\n0.300")
    assert not browser.find_element("css selector", ".grid-head").is_displayed()
    assert "not asked" in browser.find_element("css selector", ".grid").text
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


FILLS = (
    "return [...document.querySelectorAll('.chart .mark-rect.role-mark path')]"
    ".map(cell => cell.getAttribute('fill'))"
)


def heat_map(chance):
    """Three pairs; the nearest is the furthest beyond chance."""
    rows = tuple(
        Finding(labels={"a": a, "b": b, "by_chance": by}, estimate=value, n=9)
        for (a, b, value), by in zip((("x", "y", 0.3), ("x", "z", 0.2), ("y", "z", 0.1)), chance, strict=True)
    )
    table = FindingTable(name="t", title="Distance", caption="", rows=rows)
    figure = Figure(name="f", title="F", caption="", table="t", mark="heatmap", x="a", y="b", chance="by_chance")
    return page(findings=(Findings(probe="p", tables=(table,), figures=(figure,)),), evidence={}, files={})


def test_distances_are_coloured_by_what_they_have_beyond_chance(browser, tmp_path):
    load(browser, tmp_path, heat_map((0.3, 0.3, 0.0)))
    reveal(browser)
    even, below, beyond = browser.execute_script(FILLS)
    assert even == "rgb(244, 241, 234)"  # the middle of the scale: as far apart as chance alone gives
    red = [int(part) for part in beyond[4:-1].split(", ")]
    blue = [int(part) for part in below[4:-1].split(", ")]
    assert red[0] > red[2]
    assert blue[0] < blue[2]
    numbers = "return [...document.querySelectorAll('.chart .mark-text.role-mark text')].map(e => e.textContent)"
    assert browser.execute_script(numbers) == ["0.30", "0.20", "0.10"]  # as measured
    assert console(browser) == []


def test_where_chance_is_not_known_a_heat_map_shows_the_distance(browser, tmp_path):
    load(browser, tmp_path, heat_map((float("nan"),) * 3))
    reveal(browser)
    assert len(set(browser.execute_script(FILLS))) == 3
    assert console(browser) == []


def test_what_has_no_interval_is_not_drawn_where_a_figure_wants_one(browser, tmp_path):
    """A classifier that was asked too little has no point at 0 that looks like an even hand."""
    rows = [
        Finding(labels={"word": "known"}, estimate=0.2, low=0.1, high=0.3, n=9),
        Finding(labels={"word": "unknown"}, estimate=0.0, n=9),
    ]
    figure = {"mark": "intervals", "x": "estimate", "y": "word", "reference": 0.0}
    points = "return document.querySelectorAll('.chart .mark-symbol.role-mark path').length"
    for sure in (True, False):
        load(browser, tmp_path, drawn_page(rows, **figure, sure=sure))
        reveal(browser)
        assert browser.execute_script(points) == (1 if sure else 2)
        told = browser.find_element("css selector", ".plot").get_attribute("aria-label")
        assert ("unknown" in told) is not sure
        caption = browser.find_element("css selector", "figcaption").text
        assert ("1 row without an interval not drawn." in caption) is sure
