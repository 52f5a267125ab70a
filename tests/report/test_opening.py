"""What is open when the page opens: which figures, at which settings, and what is said of them."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from clinometer.probes import PROBES
from clinometer.probes.protocol import Reading
from clinometer.report import render
from clinometer.report.chart_style import PAGE, PAPER
from clinometer.report.charts import chart, opened_at
from clinometer.report.glossary import Explained
from clinometer.report.rendering import MOST_OPEN, headline_settings, open_figures
from clinometer.report.tables import FOLDED, UNSCRIPTED
from clinometer.types import Figure, Finding, Findings, FindingTable, RowReference, Verdict
from clinometer.workflows.reading import reading_of
from tests.report.samples import page
from tests.report.test_charts import BARS, row, svg, table


def verdict(state="lean", **labels):
    return Verdict(
        audit="p", model="m", aspect="a", state=state, estimate=1, low=0, high=2, p=0.1, q=0.1, n=1, detectable=1,
        size="", sentence="m leans.", rows=(RowReference(table="t", labels=labels),),
    )  # fmt: skip


def test_charts_open_at_the_row_of_the_first_lean():
    found = Findings(
        probe="p",
        tables=(),
        figures=(),
        verdicts=(verdict("cannot tell", model="x"), verdict("none found", model="y"), verdict(model="z", k=3)),
    )
    assert headline_settings(found) == {"model": "z", "k": 3}
    assert headline_settings(replace(found, verdicts=found.verdicts[:2])) == {"model": "y"}
    assert headline_settings(replace(found, verdicts=found.verdicts[:1])) == {}


def test_menus_open_together_where_there_is_something_to_draw():
    rows = table(
        row(1, word="a", model="x", template="first"),
        row(math.nan, word="a", model="y", template="first"),
        row(2, word="a", model="y", template="second"),
        row(3, word="a", model="y", template="third"),
    )
    figure = replace(BARS, menus=("model", "template"))

    def opens(settings, **own):
        return dict(opened_at(replace(figure, opens=own), rows, settings).opens)

    assert opens({}) == {"model": "x", "template": "first"}
    assert opens({"model": "y", "other": 1}) == {"model": "y", "template": "second"}  # nothing to draw at "first"
    assert opens({"model": "y", "template": "third"}) == {"model": "y", "template": "third"}
    assert opens({"model": "x"}, template="third") == {"model": "y", "template": "third"}  # the figure's own first
    drawn = chart(opened_at(figure, rows, {"model": "y"}), rows, colours=PAGE)
    assert [menu.opens for menu in drawn.menus] == [1, 1]
    assert drawn.alt == "F (model y, template second). a: 2.00."


def test_what_was_found_is_said_before_what_was_not():
    found = Findings(
        probe="p",
        tables=(),
        figures=(),
        headlines=("a cannot be judged: x.", "b was not found to lean.", "m leans: by 1."),
        verdicts=(verdict(model="m"),),
    )
    html = render(page(findings=(found,), evidence={}, files={}))
    said = re.findall(r"<li><bdi>(.*?)</bdi></li>", html)
    assert said[:3] == ["m leans: by 1.", "b was not found to lean.", "a cannot be judged: x."]


def test_at_most_eight_figures_are_open():
    for numbers in ([8, 19, 6, 6, 11], [3] * 12, [1], [0, 0], [50, 50]):
        shown = open_figures(numbers)
        assert sum(shown) <= max(MOST_OPEN, len(numbers))
        assert all(0 <= each <= min(3, number) for each, number in zip(shown, numbers, strict=True))
        assert all(each >= 1 for each, number in zip(shown, numbers, strict=True) if number)


def test_a_figure_without_anything_to_draw_is_not_among_the_open_ones():
    rows = (Finding(labels={"word": "w"}, estimate=0.0, n=1),)
    drawn = Figure(name="f", title="F", caption="", table="t", mark="bars", x="word", y="estimate")
    figures = (replace(drawn, name="s", title="S", sure=True), *(replace(drawn, title=f"F{i}") for i in range(3)))
    found = Findings(
        probe="p", tables=(FindingTable(name="t", title="T", caption="", rows=rows),), figures=figures
    )
    html = render(page(findings=(found,), evidence={}, files={}))
    opened, folded = html.split('class="more-figures"')
    assert [f"<bdi>F{i}</bdi></h3>" in opened for i in range(3)] == [True] * 3
    assert "<bdi>S</bdi></h3>" in folded
    assert "the table has no row with an interval" in folded


def test_a_panel_that_would_be_empty_is_not_drawn():
    rows = table(
        row(1, word="a", model="x", scorer="own"),
        row(2, word="a", model="y", scorer="one"),
        row(3, word="a", model="y", scorer="two"),
    )
    figure = replace(BARS, row="model", column="scorer")
    drawn = chart(figure, rows, colours=PAPER, width=600)
    assert (drawn.columns, list(drawn.spec["facet"])) == (3, ["column"])
    picture = svg(figure, rows, width=600)
    assert all(f">{name}</" in picture for name in ("x", "y", "own", "one", "two"))
    assert picture.count('aria-roledescription="bar"') + picture.count("mark-rect role-mark") >= 3
    full = table(*(row(1, word="a", model=m, scorer=s) for m in "xy" for s in "12"))
    assert set(chart(figure, full, colours=PAPER, width=600).spec["facet"]) == {"row", "column"}


def test_terms_are_explained_once_and_by_what_they_mean_in_the_audit():
    terms = Explained("stigma")
    (excess,) = terms.new_in(["Excess of each category"])
    assert "not stigmatized" in excess.says
    assert terms.new_in(["the excess again", "a stopgap", "I.F.x"]) == ()
    (other,) = Explained("counterfactual").new_in(["the excess"])
    assert "chance alone" in other.says
    assert [term.name for term in Explained("counterfactual").new_in(["I.F. is wide.", "G.F.: none"])] == [
        "I.F.",
        "G.F.",
    ]


@pytest.mark.parametrize("name", sorted(PROBES))
def test_every_audit_says_how_it_is_read_what_it_does_not_show_and_whom_to_cite(name):
    reading = reading_of(PROBES[name])
    assert len(reading.how) >= 3
    assert len(reading.not_shown) >= 3
    assert re.match(r"@\w+\{\w+,\n", reading.bibtex)
    assert reading.bibtex.count("{") == reading.bibtex.count("}")
    title = re.search(r"title\s*=\s*\{(.*)\}", reading.bibtex)[1]
    assert title in PROBES[name].paper  # the same paper
    assert not re.search("unbiased|debiased", " ".join((*reading.how, *reading.not_shown)))


def test_an_audit_of_another_package_brings_its_own_reading():
    class Other:
        name = "other"
        reading = Reading(how=("Slowly.",))

    assert reading_of(Other()).how == ("Slowly.",)
    Other.reading = "nonsense"
    assert reading_of(Other()) == Reading()


def test_a_table_with_a_verdict_has_its_rows_without_a_script():
    rows = tuple(Finding(labels={"word": f"w{i}"}, estimate=i, n=1) for i in range(30))
    found = Findings(
        probe="p",
        tables=tuple(FindingTable(name=name, title=name, caption="", rows=rows) for name in ("t", "other")),
        figures=(Figure(name="f", title="F", caption="", table="t", mark="bars", x="word", y="estimate"),),
        verdicts=(verdict(word="w29"),),
    )
    html = render(page(findings=(found,), evidence={}, files={}))
    first, second = re.findall(r'<table class="findings-table">(.*?)</table>', html, re.DOTALL)
    assert (first.count("<tr>") - 1, second.count("<tr>") - 1) == (FOLDED, UNSCRIPTED)
    assert html.count("data-rests=") == 1
    assert f"the first {UNSCRIPTED} rows are here" in html


def test_the_run_is_cited_with_its_release_and_digest():
    html = render(page(provenance={"packages": {"clinometer": "0.2.0"}}, sealed=True))
    assert "@software{clinometer," in html
    for line in ("version = {0.2.0}", "year    = {2031}", "Run 2f1c9d04a7be, digest e3b0c44298fc1c14"):
        assert line in html
