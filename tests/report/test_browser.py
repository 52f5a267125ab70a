"""The report in a real browser: it draws, sorts, filters and hides, fetches nothing, and runs nothing foreign."""

from __future__ import annotations

import json
import math
import shutil
import time
from dataclasses import replace

import pytest

from clinometer.report import Evidence, Exchange, ProbeText, render
from clinometer.report.rounding import count_text, estimate_text, interval_text, label_text, probability_text
from clinometer.report.tables import FOLDED
from clinometer.types import Figure, Finding, Findings, FindingTable, RowReference, Verdict
from tests.report.payloads import PAYLOADS
from tests.report.samples import PLACES_OF_MODELS, evidence, page, small_findings, with_suffix

pytestmark = pytest.mark.browser

SECRET = "offensiveword"
TIES = (
    2.125,
    -2.125,
    0.0005,
    99.95,
    99.949,
    1e-7,
    1234.5,
    -1234.5,
    -0.5,
    0.0,
    0.04050000001,
    7.0,
    0.001,
    0.00099999,
)


@pytest.fixture(scope="module")
def open_browser(tmp_path_factory):
    """Return a function that starts Chromium; each has its own empty profile."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install '.[dev]'")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip("NO BROWSER: the report was not opened; install chromium and chromedriver to test it")
    started = []

    def start(*, script: bool = True):
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        if not script:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
        started.append(browser)
        return browser

    yield start
    for browser in started:
        browser.quit()


@pytest.fixture(scope="module")
def browser(open_browser):
    return open_browser()


def resize(browser, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def load(browser, folder, whole, *, width: int = 1100) -> None:
    path = folder / "report.html"
    path.write_bytes(render(whole).encode("utf-8", "replace"))
    browser.get_log("browser")
    browser.get_log("performance")
    resize(browser, width)
    browser.get(path.as_uri())


def reveal(browser, *, unfold: bool = True) -> None:
    if unfold:
        browser.execute_script("document.querySelectorAll('.more-figures').forEach(fold => { fold.open = true; })")
    browser.find_element("css selector", "label.button").click()
    deadline = time.monotonic() + 60
    while browser.execute_script("return document.documentElement.dataset.charts") != "drawn":
        assert time.monotonic() < deadline, f"charts were not drawn: {browser.get_log('browser')}"
        time.sleep(0.05)


def console(browser) -> list[str]:
    # Vega-Lite notes that a chart with a fixed step down the page is fitted across only: that is what we want.
    return [e["message"] for e in browser.get_log("browser") if 'Dropping \\"fit-y\\"' not in e["message"]]


def open_tables(browser) -> None:
    browser.execute_script("document.querySelectorAll('.table-block').forEach(block => { block.open = true; })")
    time.sleep(0.1)  # the browser says so a moment later


def requested(browser) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    # the browser's own empty tab, loaded from the browser itself, may still be in the log
    return [each["request"]["url"] for each in sent if not each["documentURL"].startswith(("chrome://", "data:,"))]


def cells(browser, table: int) -> list[list[str]]:
    return browser.execute_script(
        "return [...document.querySelectorAll('.findings-table')[arguments[0]].tBodies[0].rows]"
        ".map(row => [...row.cells].map(cell => cell.textContent))",
        table,
    )


def test_every_chart_is_drawn_without_an_error_and_without_a_request(browser, tmp_path):
    load(browser, tmp_path, page())
    reveal(browser)
    marks = browser.execute_script(
        "return [...document.querySelectorAll('.chart')].map(chart => chart.querySelectorAll("
        "'svg .mark-symbol.role-mark path, svg .mark-rect.role-mark path').length)"
    )
    # change: 9 kinds × 3 models at k = 3, less one not computed; gendered: 10 kinds × 2; lean: 42 occupations;
    # women: 42 × 3; recall: 8 × 3 in each of two panels; similarity: 9 × 9
    assert marks == [26, 60, 42, 126, 48, 81]
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert console(browser) == []
    assert requested(browser) == [(tmp_path / "report.html").as_uri()]


def test_categories_come_in_the_order_of_the_table(browser, tmp_path):
    load(browser, tmp_path, page())
    reveal(browser)
    labels = browser.execute_script(
        "return [...document.querySelectorAll('.chart')[0].querySelectorAll('.role-axis-label text')]"
        ".map(text => [text.textContent, text.getBoundingClientRect().top])"
    )
    kinds = [text for text, _ in sorted(labels, key=lambda label: label[1])][:9]
    assert kinds == list(dict.fromkeys(row.labels["kind"] for row in page().findings[0].tables[0].rows))


def test_a_menu_changes_what_is_drawn(browser, tmp_path):
    load(browser, tmp_path, page())
    reveal(browser)
    drawn = "return document.querySelectorAll('.chart')[0].querySelectorAll('.mark-symbol.role-mark path').length"
    assert browser.execute_script(drawn) == 26
    browser.find_element("css selector", ".chart select option:nth-child(2)").click()
    deadline = time.monotonic() + 10
    while browser.execute_script(drawn) != 27 and time.monotonic() < deadline:  # k = 5 lacks nothing
        time.sleep(0.05)
    assert browser.execute_script(drawn) == 27


def test_a_chart_opens_at_the_value_that_the_figure_names(browser, tmp_path):
    rows = [Finding(labels={"word": f"w{i}", "k": k}, estimate=i) for k in (5, 10, 20) for i in range(k // 5)]
    figure = {"mark": "intervals", "x": "estimate", "y": "word", "menus": ("k",)}
    for opens, chosen, words in (({"k": 10}, "10", 2), ({}, "5", 1), ({"k": 7}, "5", 1)):
        load(browser, tmp_path, drawn_page(rows, **figure, opens=opens))
        reveal(browser)
        shown = browser.execute_script(
            "const select = document.querySelector('.chart select');"
            "return [select.selectedOptions[0].text, [...select.options].map(option => option.text)]"
        )
        assert shown == [chosen, ["5", "10", "20"]]
        assert names_down(browser) == [f"w{i}" for i in range(words)]


def drawn_page(rows, **figure):
    """A page with one chart of the rows."""
    table = FindingTable(name="t", title="T", caption="", rows=tuple(rows))
    drawn = Figure(name="f", title="F", caption="", table="t", **figure)
    return page(findings=(Findings(probe="p", tables=(table,), figures=(drawn,)),), evidence={}, files={})


def names_down(browser) -> list[str]:
    labels = browser.execute_script(
        "return [...document.querySelectorAll('.chart .role-axis-label text')]"
        ".map(text => [text.textContent, text.getBoundingClientRect().top])"
    )
    return [text for text, _ in sorted(labels, key=lambda label: label[1]) if text.startswith("w")]


def test_numbers_stand_in_cells_when_the_choice_is_small_enough(browser, tmp_path):
    """Two choices of 5 × 100 and of 5 × 6 cells: together too many, each for itself not; 40 × 6 are too narrow."""
    shapes = {"long": (5, 100), "short": (5, 6), "wide": (40, 6)}
    rows = [
        Finding(labels={"a": f"a{i}", "b": f"w{j}", "shape": name}, estimate=i - j, n=1)
        for name, (across, down) in shapes.items()
        for i in range(across)
        for j in range(down)
    ]
    load(browser, tmp_path, drawn_page(rows, mark="heatmap", x="a", y="b", menus=("shape",)), width=1100)
    reveal(browser)
    numbers = (
        "return [...document.querySelectorAll('.chart .mark-text.role-mark text')].map(text => text.textContent)"
    )
    assert len(browser.execute_script(numbers)) == 5 * 50  # the first page of a hundred
    choose(browser, 2)
    assert browser.execute_script(numbers) == [
        f"{i - j:.2f}".replace("-", "−") for i in range(5) for j in range(6)
    ]
    choose(browser, 3)
    assert browser.execute_script(numbers) == []
    assert console(browser) == []


def ranked(models: int, names: int, **figure):
    """A ranking that is the other way round for every second model."""
    rows = [
        Finding(
            labels={"model": f"m{m}", "word": f"w{i if m % 2 == 0 else names - 1 - i}"},
            estimate=i,
            low=i - 0.5,
            high=i + 0.5,
            n=1,
        )
        for m in range(models)
        for i in range(names)
    ]
    return drawn_page(rows, mark="intervals", x="estimate", y="word", menus=("model",), **figure)


def test_a_long_ranking_is_drawn_a_page_at_a_time_on_one_axis(browser, tmp_path):
    load(browser, tmp_path, ranked(2, 122))
    reveal(browser)
    ticks = "return [...document.querySelectorAll('.chart .role-axis-label text')].map(e => e.textContent)"
    axis = [text for text in browser.execute_script(ticks) if not text.startswith("w")]
    pages = browser.find_element("css selector", ".chart .page select")
    assert [option.text for option in pages.find_elements("tag name", "option")] == [
        *("1–50 of 122", "51–100 of 122", "101–122 of 122", "all 122")
    ]
    assert names_down(browser) == [f"w{i}" for i in range(50)]
    for option, first, last in ((3, 100, 122), (4, 0, 122)):
        browser.find_element("css selector", f".chart .page option:nth-child({option})").click()
        time.sleep(0.5)
        assert names_down(browser) == [f"w{i}" for i in range(first, last)]
        assert [text for text in browser.execute_script(ticks) if not text.startswith("w")] == axis
    box = browser.execute_script("return document.querySelector('.chart-box').clientHeight")
    assert box <= 62 * 16  # "all" scrolls in its own box
    assert console(browser) == []


@pytest.mark.parametrize(("models", "goes_on"), [(4, False), (12, True)])
def test_a_chart_that_is_higher_than_its_box_says_so(browser, tmp_path, models, goes_on):
    rows = [
        Finding(labels={"model": f"m{m}", "word": f"w{i}"}, estimate=0.5, low=0.4, high=0.6, n=1)
        for m in range(models)
        for i in range(10)
    ]
    load(browser, tmp_path, drawn_page(rows, mark="intervals", x="estimate", y="word", row="model"))
    reveal(browser)
    hidden, hint = browser.execute_script(
        "const box = document.querySelector('.chart-box');"
        "const hint = getComputedStyle(box, '::after').content;"
        "return [box.querySelector('svg').clientHeight > box.clientHeight, hint]"
    )
    assert hidden == goes_on
    assert ("scroll" in hint) == goes_on


LONG = "an-organisation/a-model-of-some-size-occupation-embedding"
LIKE_NAMES = {
    "differ at the end": [f"{LONG}-{10**i}" for i in range(4)],
    "differ at the beginning": [f"{letter}{LONG}" for letter in "pqrs"],
    "wide": [f"WWWWMMMMMM_{LONG.upper()}_{i}" for i in range(4)],
}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("names", LIKE_NAMES.values(), ids=LIKE_NAMES)
@pytest.mark.parametrize("roles", PLACES_OF_MODELS)
def test_of_long_names_of_models_both_ends_are_shown(browser, tmp_path, roles, names, width):
    rows = [
        Finding(labels={"model": name, "word": "w", "measure": measure}, estimate=0.5, low=0.4, high=0.6, n=1)
        for name in names
        for measure in ("one", "two")
    ]
    load(browser, tmp_path, drawn_page(rows, mark="intervals", x="estimate", **roles), width=width)
    reveal(browser)
    texts = browser.execute_script(
        "return [...document.querySelectorAll('.chart svg text')].map(text => text.textContent)"
    )
    assert whole_or_cut(names, texts) == names
    assert console(browser) == []


def whole_or_cut(names, texts) -> list[str]:
    """The names of which both ends, or the whole, stand among the texts, and nothing else in their stead."""
    shown = {text for text in texts if "…" in text or text in names}
    found = []
    for text in shown:
        begin, _, end = text.partition("…")
        found += [
            name for name in names if name == text or (name.startswith(begin) and name.endswith(end) and end)
        ]
    return sorted(found, key=names.index)


def test_each_choice_has_the_order_of_its_own_rows(browser, tmp_path):
    load(browser, tmp_path, ranked(2, 20))
    reveal(browser)
    assert not browser.find_elements("css selector", ".chart .page")
    assert names_down(browser) == [f"w{i}" for i in range(20)]
    choose(browser, 2)
    assert names_down(browser) == [f"w{i}" for i in reversed(range(20))]


def test_a_link_opens_the_table_of_a_figure(browser, tmp_path):
    load(browser, tmp_path, page())
    reveal(browser)
    table = browser.find_element("id", "table-1-1")
    assert not table.is_displayed()
    browser.find_element("css selector", "#figure-1-1 .behind a").click()
    time.sleep(0.3)
    assert table.is_displayed()
    assert browser.find_element("css selector", ".filter").is_displayed()  # and its controls are ready


def test_a_very_long_table_is_unfolded_in_steps(browser, tmp_path):
    rows = tuple(Finding(labels={"i": i}, estimate=i, n=1) for i in range(1200))
    table = FindingTable(name="t", title="T", caption="", rows=rows)
    load(browser, tmp_path, page(findings=(Findings(probe="p", tables=(table,), figures=()),)))
    reveal(browser)
    open_tables(browser)
    unfold = browser.find_element("css selector", ".unfold")
    steps = []
    for _ in range(5):
        steps.append((len(cells(browser, 0)), unfold.text))
        unfold.click()
    assert steps == [
        (FOLDED, "Show 500 more of 1,200"),
        (FOLDED + 500, "Show 500 more of 1,200"),
        (FOLDED + 1000, "Show all 1,200"),
        (1200, f"Show the first {FOLDED}"),
        (FOLDED, "Show 500 more of 1,200"),
    ]


def partly_known(**figure):
    """A page with one chart whose menu offers all numbers, estimates without intervals, and nothing."""
    numbers = {"all": (1.0, 0.5, 1.5), "no interval": (2.0, math.nan, math.nan), "nothing": (math.nan,) * 3}
    rows = (
        Finding(labels={"word": word, "side": side, "known": known}, estimate=estimate, low=low, high=high, n=1)
        for known, (estimate, low, high) in numbers.items()
        for word in ("a", "b")
        for side in ("left", "right")
    )
    return drawn_page(rows, x="word", y="estimate", menus=("known",), **figure)


def choose(browser, option: int) -> None:
    browser.find_element("css selector", f".chart select option:nth-child({option})").click()
    time.sleep(0.3)


@pytest.mark.parametrize("column", ["", "side"])
@pytest.mark.parametrize("mark", ["bars", "intervals", "lines", "scatter"])
def test_a_choice_without_numbers_says_so_and_leaves_no_warning(browser, tmp_path, mark, column):
    load(browser, tmp_path, partly_known(mark=mark, column=column))
    reveal(browser)
    chart = browser.find_element("css selector", ".chart")
    for option in (2, 3, 1):
        choose(browser, option)
        assert ("nothing to draw for this choice" in chart.text) == (option == 3)
        assert bool(chart.find_elements("css selector", "svg")) == (option != 3)
    assert console(browser) == []


def test_a_choice_outlives_a_change_of_the_width(browser, tmp_path):
    load(browser, tmp_path, partly_known(mark="bars", column="side"), width=1100)
    reveal(browser)
    choose(browser, 2)
    wide = "return document.querySelector('.chart svg').clientWidth"
    drawn = (
        "return [...document.querySelectorAll('.chart .mark-rect.role-mark path')].map(e => e.__data__.datum.c2)"
    )
    before = browser.execute_script(wide)
    resize(browser, 600)
    deadline = time.monotonic() + 10
    while browser.execute_script(wide) == before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert browser.execute_script(wide) < before
    assert browser.execute_script("return document.querySelector('.chart select').selectedIndex") == 1
    assert browser.execute_script(drawn) == ["no interval"] * 4
    assert len(browser.find_elements("css selector", ".chart svg")) == 1


def test_a_tooltip_shows_labels_and_all_numbers(browser, tmp_path):
    load(browser, tmp_path, page())
    reveal(browser)
    browser.execute_script(
        "const mark = document.querySelector('.chart .mark-symbol.role-mark path');"
        "mark.scrollIntoView({block: 'center'}); const box = mark.getBoundingClientRect();"
        "const at = {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};"
        "for (const kind of ['pointerover', 'mouseover', 'pointermove', 'mousemove'])"
        "  mark.dispatchEvent(new (kind.startsWith('p') ? PointerEvent : MouseEvent)(kind, at));"
    )
    row = page().findings[0].tables[0].rows[0]
    shown = browser.find_element("id", "tip").text.split("\n")
    assert shown == [
        *("model", "builtin:causal", "kind", "factual", "k", "3"),
        *("estimate", estimate_text(row.estimate), "interval", interval_text(row.low, row.high)),
        *("p", probability_text(row.p), "q", probability_text(row.q), "n", "58"),
    ]


def test_words_are_hidden_until_the_reader_agrees(browser, tmp_path):
    load(browser, tmp_path, with_suffix(page(), SECRET))
    seen = browser.execute_script("return document.querySelector('main').innerText")
    assert "Before you read on" in seen
    assert SECRET not in seen
    assert not browser.find_element("id", "findings").is_displayed()
    browser.execute_script("document.getElementById('reveal').focus()")
    browser.switch_to.active_element.send_keys(" ")  # by keyboard
    assert browser.find_element("id", "findings").is_displayed()
    assert SECRET in browser.execute_script("return document.querySelector('main').innerText")
    browser.get(browser.current_url + "#figure-1-1")  # a link into the findings does not open them
    browser.refresh()
    assert not browser.find_element("id", "findings").is_displayed()


def concluded(state: str = "lean", sentence: str = "prefers one group."):
    """Findings with a verdict that rests on the last row of the first table."""
    found = small_findings()
    table = found.tables[0]
    row = table.rows[-1]
    verdict = Verdict(
        audit=found.probe,
        model="builtin:causal",
        aspect="preference",
        state=state,
        estimate=0.3,
        low=0.1,
        high=0.5,
        p=0.01,
        q=0.02,
        n=9,
        detectable=0.2,
        size="30 % of the possible range",
        sentence=f"builtin:causal {sentence}",
        rows=(RowReference(table=table.name, labels=row.labels),),
    )
    return replace(found, verdicts=(verdict,)), [label_text(value) for value in row.labels.values()]


def test_the_first_screen_answers_before_the_reader_agrees(browser, tmp_path):
    found, _ = concluded()
    load(browser, tmp_path, page(findings=(found,)))
    cell = browser.find_element("css selector", ".grid-cell.lean")
    assert cell.is_displayed()
    assert "Prefers one group." in cell.text
    assert "0.300 [0.100, 0.500]" in " ".join(cell.text.split())
    assert cell.location["y"] + cell.size["height"] < 900  # on the first screen
    assert not browser.find_element("id", "findings").is_displayed()
    # drawn to scale: from −0.2 (detectable) to 0.5, so 0 is at 2 + 96 · 2/7
    zero = browser.find_element("css selector", ".grid-cell .interval .zero").get_attribute("d")
    assert zero == "M29.43 0V10"
    assert console(browser) == []


def test_a_verdict_leads_to_its_row_and_the_row_to_its_prompts(browser, tmp_path):
    found, labels = concluded()
    shown = {found.probe: {found.figures[0].name: evidence()}}
    load(browser, tmp_path, page(findings=(found,), evidence=shown))
    link = browser.find_element("css selector", "a.evidence")
    link.click()  # before the reader agrees it leads to the question, and shows nothing
    assert not browser.find_element("id", "findings").is_displayed()
    reveal(browser)
    browser.execute_script("arguments[0].click()", link)
    time.sleep(0.2)
    row = browser.find_element("css selector", "tr.pointed-at")
    assert row.is_displayed()
    assert [cell.text for cell in row.find_elements("css selector", ".label")] == labels
    block = browser.execute_script("return arguments[0].closest('.table-block')", row)
    browser.execute_script("arguments[0].click()", block.find_element("css selector", ".behind a"))
    time.sleep(0.2)
    assert browser.find_element("css selector", ".prompts .exchanges").is_displayed()
    assert console(browser) == []


def test_most_figures_are_folded_and_drawn_when_they_are_opened(browser, tmp_path):
    found = small_findings()
    figures = tuple(replace(found.figures[0], name=f"figure_{i}") for i in range(5))
    load(browser, tmp_path, page(findings=(replace(found, figures=figures),)))
    reveal(browser, unfold=False)
    assert len(browser.find_elements("css selector", ".plot svg")) == 3
    browser.find_element("css selector", ".more-figures > summary").click()
    deadline = time.monotonic() + 20
    while len(browser.find_elements("css selector", ".plot svg")) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_notice_and_tables_work_without_script(open_browser, tmp_path):
    browser = open_browser(script=False)
    load(browser, tmp_path, page())
    assert not browser.find_element("id", "findings").is_displayed()
    browser.find_element("css selector", "label.button").click()
    assert browser.find_element("id", "findings").is_displayed()
    assert "The table below has the same numbers" in browser.find_element("css selector", ".chart").text
    assert not browser.find_element("css selector", ".findings-table").is_displayed()
    browser.find_element("css selector", ".table-block summary").click()
    assert browser.find_element("css selector", ".findings-table").is_displayed()
    assert len(browser.find_elements("css selector", ".table-part:first-of-type tbody tr")) >= FOLDED
    assert not browser.find_element("css selector", ".filter").is_displayed()


def test_sorting_filtering_and_unfolding(browser, tmp_path):
    load(browser, tmp_path, page())
    reveal(browser)
    rows = page().findings[0].tables[0].rows
    browser.find_element("css selector", ".table-block summary").click()
    table = browser.find_element("css selector", ".table-part")
    assert table.find_element("css selector", ".filter").is_displayed()
    assert len(cells(browser, 0)) == FOLDED

    header = table.find_element("css selector", "th.estimate button")
    known = sorted(row.estimate for row in rows if not math.isnan(row.estimate))
    header.click()
    assert [row[3] for row in cells(browser, 0)] == [estimate_text(value) for value in known[:FOLDED]]
    header.click()
    assert [row[3] for row in cells(browser, 0)] == [estimate_text(value) for value in known[::-1][:FOLDED]]

    table.find_element("css selector", ".unfold").click()
    assert len(cells(browser, 0)) == 81
    assert cells(browser, 0)[-1][3] == "–"  # not computed comes last, whichever way it is sorted

    table.find_element("css selector", ".filter").send_keys("Roberta")
    assert {row[0] for row in cells(browser, 0)} == {"roberta-large"}
    assert "27 of 81 rows match" in table.find_element("css selector", ".counted").text


def test_the_browser_writes_numbers_as_the_page_does(browser, tmp_path):
    rows = [
        Finding(
            labels={"a": i, "b": i / 4},
            estimate=value,
            low=value,
            high=math.nan,
            p=abs(value) % 1,
            q=math.nan,
            n=i * 999,
        )
        for i, value in enumerate((*TIES, math.inf, -math.inf, math.nan))
    ]
    rows[3] = Finding(labels=rows[3].labels, estimate=1.0, q=0.0405)
    table = FindingTable(name="ties", title="Ties", caption="", rows=tuple(rows))
    load(browser, tmp_path, page(findings=(Findings(probe="p", tables=(table,), figures=()),)))
    open_tables(browser)
    browser.execute_script("document.querySelector('.unfold').click()")
    from_python = [
        [
            str(row.labels["a"]),
            f"{row.labels['b']:g}",
            estimate_text(row.estimate),
            interval_text(row.low, row.high),
            probability_text(row.p),
            probability_text(row.q),
            count_text(row.n),
        ]
        for row in rows
    ]
    assert cells(browser, 0) == from_python  # the script has written the table anew by now


def test_payloads_do_not_run_and_stay_text(browser, tmp_path):
    """Every payload in every text of its own audit, all on one page."""
    audits, texts, evidence = [], {}, {}
    for i, payload in enumerate(PAYLOADS):
        audit = with_suffix(small_findings(f"probe {i}"), payload)
        asked = Exchange(model=payload, tags={payload: payload}, context=payload, text=payload, answers=(payload,))
        audits.append(audit)
        texts[audit.probe] = ProbeText(title=payload, question=payload, paper=payload)
        evidence[audit.probe] = {audit.figures[0].name: Evidence(shown=(asked,), total=1, where=(payload,))}
    whole = page(
        findings=tuple(audits),
        probes=texts,
        evidence=evidence,
        spec="\n".join(PAYLOADS),
        provenance={payload: payload for payload in PAYLOADS},
        files={},
    )
    load(browser, tmp_path, whole)
    reveal(browser)
    browser.execute_script("document.querySelectorAll('details').forEach(part => { part.open = true; });")
    time.sleep(0.3)
    browser.execute_script(
        "document.querySelectorAll('.findings-table th button').forEach(button => button.click());"
        "document.querySelectorAll('.chart path').forEach(mark => "
        "  mark.dispatchEvent(new MouseEvent('mousemove', {bubbles: true, clientX: 5, clientY: 5})));"
    )
    time.sleep(0.3)
    assert browser.execute_script("return window.__pwned") is None
    assert console(browser) == []  # a blocked script would have left a line here
    assert requested(browser) == [(tmp_path / "report.html").as_uri()]
    foreign = ("img", "iframe", "object", "embed", "base", "link", "math", "noscript", "main style")
    foreign += ("main script:not([type])", "form:not(.vega-bindings)")  # Vega keeps its menus in a form
    assert browser.execute_script("return document.querySelectorAll(arguments[0]).length", ", ".join(foreign)) == 0
    assert browser.execute_script("return document.querySelectorAll('.chart svg').length") == 2 * len(PAYLOADS)
    titles = browser.execute_script("return [...document.querySelectorAll('.probe h2')].map(h => h.textContent)")
    assert titles == list(PAYLOADS)
    asked = browser.execute_script("return [...document.querySelectorAll('.context')].map(e => e.textContent)")
    assert asked == list(PAYLOADS)


@pytest.mark.parametrize("whole", [page(), with_suffix(page(), "w" * 3000)], ids=["usual", "very long words"])
def test_a_narrow_screen_does_not_scroll_sideways(browser, tmp_path, whole):
    load(browser, tmp_path, whole, width=400)
    reveal(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    widths = browser.execute_script("return [...document.querySelectorAll('.chart svg')].map(e => e.clientWidth)")
    assert len(widths) == 6
    assert min(widths) > 150


def test_charts_follow_the_width_of_the_window(browser, tmp_path):
    load(browser, tmp_path, page(), width=1100)
    reveal(browser)
    wide = "return [...document.querySelectorAll('.chart svg')].map(e => e.clientWidth)"
    before = browser.execute_script(wide)
    resize(browser, 600)
    deadline = time.monotonic() + 10
    while max(browser.execute_script(wide)) > 600 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert min(before) > 700
    assert max(browser.execute_script(wide)) <= 600
    assert console(browser) == []


def test_colours_follow_dark_mode_without_drawing_anew(browser, tmp_path):
    load(browser, tmp_path, page())
    reveal(browser)
    look = (
        "const style = (place) => getComputedStyle(document.querySelector(place));"
        "return [style('body').backgroundColor, style('.chart .role-axis-label text').fill,"
        " style('.chart .mark-symbol.role-mark path').fill]"
    )
    seen = {}
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        seen[scheme] = browser.execute_script(look)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert seen["light"] == ["rgb(255, 255, 255)", "rgb(28, 31, 36)", "rgb(0, 114, 178)"]
    assert seen["dark"] == ["rgb(20, 23, 28)", "rgb(231, 233, 237)", "rgb(75, 163, 221)"]
