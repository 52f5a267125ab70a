"""The page as text: what is shown, and that nothing shown is ever markup."""

from __future__ import annotations

import functools
import json
import math
import re
import struct
import subprocess
import sys
import time
from dataclasses import replace
from html import escape as html_escape
from html.parser import HTMLParser

import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from clinometer.errors import RecordsError
from clinometer.report import Evidence, Exchange, render, rendering
from clinometer.report.packing import LETTERS, _by_bits, code_width, packed
from clinometer.types import Figure, Finding, Findings, FindingTable, Notice
from tests.report.payloads import PAYLOADS
from tests.report.samples import evidence, findings, model_info, page, small_findings, with_suffix


class _Structure(HTMLParser):
    """Collects elements with the names of their attributes, and the text outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, ...]] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.blocks: list[str] = []  # application/json
        self._inside = ""

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, *(name for name, _ in attrs)))
        self.links += [value for name, value in attrs if name in ("href", "src", "action", "data", "srcdoc")]
        self._inside = (
            "json" if ("type", "application/json") in attrs else tag if tag in ("script", "style") else ""
        )

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "json":
            self.blocks.append(data)
        elif not self._inside:
            self.texts.append(data)

    def handle_comment(self, data):
        self.elements.append(("comment",))


def parse(html: str) -> _Structure:
    structure = _Structure()
    structure.feed(html)
    structure.close()
    return structure


def poisoned(payload: str):
    small = small_findings()
    text = Exchange(
        model="m", tags={"kind": "k"}, context="before", separator="[SEP]", text="asked", answers=("said",)
    )
    whole = page(
        findings=(small,),
        models=(model_info(),),
        probes={"small": page().probes["counterexamples"]},
        evidence={"small": {"words": Evidence(shown=(text,), total=1, where=("records/small",))}},
        files={"small": {"words": "findings/small/words.csv"}},
    )
    return with_suffix(whole, payload)


@functools.cache
def parsed(payload: str) -> _Structure:
    return parse(render(poisoned(payload)))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payload_in_every_text_changes_no_element_and_no_attribute(payload):
    found = parsed(payload)
    assert found.elements == parsed(" harmless").elements
    assert all(link.startswith("#") for link in found.links)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payload_is_shown_as_it_is(payload):
    found = parsed(payload)
    text = "".join(found.texts)
    for before in ("builtin:causal", "careful", "What it shows.", "asked", "before", "said", "kind", page().spec):
        assert before + payload in text
    groups = values_of(json.loads(found.blocks[-1])["columns"][0]["label"])
    assert set(groups) == {"first" + payload, "second" + payload}


def values_of(packed) -> list:
    """Read a column as assets/findings.js does."""
    if isinstance(packed, list):
        return packed
    if "bits" in packed:
        halves = struct.pack(f">{len(packed['bits']) // 5}L", *places(packed["bits"], 5))
        return [None if math.isnan(value) else value for (value,) in struct.iter_unpack(">d", halves)]
    if "words" in packed:
        return [" ".join(coded(text, packed["words"])) for text in packed["texts"]]
    return coded(packed["at"], values_of(packed["each"]))


def coded(codes: str, values: list) -> list:
    return [values[place] for place in places(codes, code_width(len(values)))]


def places(codes: str, width: int) -> list[int]:
    found = []
    for i in range(0, len(codes), width):
        place = 0
        for letter in codes[i : i + width]:
            place = place * len(LETTERS) + LETTERS.index(letter)
        found.append(place)
    return found


def test_a_page_without_escaping_would_be_noticed():
    raw = render(poisoned(" harmless")).replace("asked harmless", "asked <img src=x>")
    assert parse(raw).elements != parsed(" harmless").elements


def test_no_json_block_can_end_its_script_element():
    html = render(poisoned("</script><!--\u2028"))
    blocks = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, flags=re.DOTALL)
    assert len(blocks) == 3  # two charts, one table
    for block in blocks:
        assert not set("<>&\u2028") & set(block)
        json.loads(block)


def test_the_policy_allows_the_two_scripts_and_the_style_and_nothing_else():
    html = render(page())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-\S+' 'sha256-\S+'; style-src 'sha256-\S+'; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )
    elements = parse(html).elements
    assert elements.count(("script",)) == 2
    assert elements.count(("style",)) == 1
    assert not [
        element for element in elements if element[0] in ("img", "iframe", "link", "object", "base", "form")
    ]


def test_the_page_says_what_was_audited_and_how_to_check_it():
    text = " ".join(" ".join(parse(render(page())).texts).split())
    for expected in (
        "builtin:causal causal llama 135 M float32 9f86d081884c",
        "Profile quick",
        "Seed 7",
        "Warning builtin:causal: 14 of 126",
        "How does the gender that a model expects",
        "After A. Author",
        "60 of 3,886 shown; all in records/counterexamples/ask",
        "1 row without an estimate not drawn",
        "81 rows",
        "With all digits: findings/counterexamples/change.csv",
        "Not computed in this table: interval, p, q.",  # the similarity table
        "clinometer resume RUN",
        "clinometer verify RUN",
        "machine.cores",
    ):
        assert expected in text
    assert "unbiased" not in text
    assert "debiased" not in text


def test_numbers_are_rounded_in_sight_and_whole_in_the_title():
    rows = (
        Finding(labels={"a": "x"}, estimate=0.123456, low=0.1, high=0.2, p=0.00001, q=0.0412, n=1234),
        Finding(labels={"a": "y"}, estimate=math.nan),
    )
    found = Findings(probe="t", tables=(FindingTable(name="t", title="T", caption="C", rows=rows),), figures=())
    html = render(page(findings=(found,)))
    for cell in (
        '<td class="estimate" title="0.123456">0.123</td>',
        '<td class="interval" title="0.1, 0.2">[0.100, 0.200]</td>',
        '<td class="probability" title="1e-05">&lt;0.001</td>',
        '<td class="probability" title="0.0412">0.041</td>',
        '<td class="count" title="1234">1,234</td>',
        '<td class="estimate" title="not computed">–</td>',
    ):
        assert cell in html


def test_a_run_without_findings_says_so():
    text = "".join(parse(render(page(findings=(), evidence={}, models=(), digest=""))).texts)
    assert "This run has no findings yet." in text
    assert "This run names no model" in text


def test_tables_without_rows_or_without_any_number():
    nothing = FindingTable(name="nothing", title="Nothing", caption="", rows=())
    unknown = FindingTable(
        name="unknown", title="Unknown", caption="", rows=(Finding(labels={"a": "x"}, estimate=math.nan),)
    )
    figures = tuple(
        Figure(name=table, title=table, caption="", table=table, mark="bars", x="a", y="estimate", menus=("a",))
        for table in ("nothing", "unknown")
    )
    text = "".join(
        parse(render(page(findings=(Findings(probe="p", tables=(nothing, unknown), figures=figures),)))).texts
    )
    assert text.count("Nothing to draw") == 2
    assert "This table has no rows." in text


def test_a_figure_of_a_table_that_is_not_there_is_named_with_the_nearest():
    figure = Figure(name="f", title="", caption="", table="wrds", mark="bars", x="group", y="estimate")
    broken = Findings(probe="p", tables=small_findings().tables, figures=(figure,))
    with pytest.raises(RecordsError, match=r"draws the table 'wrds'.*did you mean 'words'"):
        render(page(findings=(broken,)))


def test_ten_thousand_rows_render_quickly_and_small():
    rows = tuple(
        Finding(labels={"word": f"word {i}", "model": "m"}, estimate=i / 7, low=0.1, high=0.2, p=0.5, q=0.5, n=9)
        for i in range(10_000)
    )
    table = FindingTable(name="big", title="Big", caption="", rows=rows)
    figure = Figure(name="big", title="", caption="", table="big", mark="scatter", x="word", y="estimate")
    big = page(findings=(findings(), Findings(probe="big", tables=(table,), figures=(figure,))))
    render(page())  # the script library is unpacked once in a process
    start = time.perf_counter()
    html = render(big)
    assert time.perf_counter() - start < 10  # about 1 s on an idle core; the machine may be busy
    assert len(html.encode()) < 4_000_000
    assert html.count("<tr>") < 1_000  # the rest waits in the data


def test_the_values_of_a_table_stand_once_on_the_page_whole_and_in_order():
    known = [
        Finding(labels={"a": f"a{i % 2}", "k": i}, estimate=i / 7, low=0.0, high=i / 3, n=9) for i in range(40)
    ]
    rows = (*known, Finding(labels={"a": "a1", "k": 40}, estimate=math.nan, low=-math.inf, high=math.inf))
    table = FindingTable(name="t", title="T", caption="", rows=rows)
    figures = tuple(
        Figure(name=f"f{i}", title="", caption="", table="t", mark="scatter", x="k", y="estimate")
        for i in range(3)
    )
    html = render(page(findings=(Findings(probe="p", tables=(table,), figures=figures),)))
    assert html.count(_by_bits([37 / 7])["bits"]) == 1  # row 37 is in the data, and nowhere else
    assert repr(37 / 7) not in html
    *charts, data = [json.loads(block) for block in parse(html).blocks]
    assert [chart["table"] for chart in charts] == ["data-1-1"] * 3
    assert data["size"] == 41
    columns = {name: values_of(column[name]) for column in data["columns"] for name in column if name != "kind"}
    assert columns == {
        "label": [row.labels["k"] for row in rows],  # the last column of labels
        "estimate": [*(row.estimate for row in known), None],
        "low": [0] * 40 + ["−∞"],
        "high": [*(row.high for row in known), "∞"],
        "n": [9] * 40 + [0],
    }  # p and q were not computed: they are not there
    assert values_of(data["columns"][0]["label"]) == [row.labels["a"] for row in rows]
    assert data["columns"][0]["label"]["each"] == ["a0", "a1"]


@given(
    st.lists(
        st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**60), 2**60)),
        max_size=300,
    )
    | st.lists(st.text(st.sampled_from('ab ,é\\"<&'), max_size=8), max_size=300)
    | st.lists(st.sampled_from(["man", "woman", 3, 0.5, None, "∞"]), max_size=300)
)
def test_what_is_packed_is_read_back_whole(values):
    """Every bit of a number, every space of a text, whatever way is the shortest."""
    written = json.loads(json.dumps(packed(values)))
    read = values_of(written)
    assert read == values
    assert len(json.dumps(written, separators=(",", ":"))) <= len(json.dumps(values, separators=(",", ":")))


def test_numbers_are_packed_by_their_bits_and_whole_ones_that_would_lose_some_are_not():
    fractions = [i / 7 for i in range(50)]
    for values in ([*fractions, None], [None, *fractions, *fractions, None], [2**60 + i for i in range(50)]):
        assert values_of(json.loads(json.dumps(packed(values)))) == values
    assert "bits" in packed([*fractions, None])


def test_more_values_than_letters_are_told_apart():
    values = [f"word {i % 5_000}" for i in range(20_000)]
    assert values_of(packed(values)) == values
    assert len(json.dumps(packed(values))) < 110_000  # of 270,000


def test_a_figure_costs_little_however_long_its_table_is():
    """Five models, 373 groups, ten emotions: each figure more must not bring the rows again."""
    rows = tuple(
        Finding(
            labels={"model": f"m{m}", "group": f"group {g}", "emotion": f"e{e}"}, estimate=(g * e % 97) / 97, n=20
        )
        for m in range(5)
        for g in range(373)
        for e in range(10)
    )
    table = FindingTable(name="emotions", title="Emotions", caption="", rows=rows)
    figure = Figure(
        name="f", title="", caption="", table="emotions", mark="heatmap", x="emotion", y="group", menus=("model",)
    )
    sizes = [
        len(render(page(findings=(Findings(probe="p", tables=(table,), figures=(figure,) * count),))).encode())
        for count in (0, 1, 3)
    ]
    assert sizes[0] < 1_300_000  # of which Vega is 0.9 MB: 18,650 rows take about 20 bytes each
    assert sizes[1] - sizes[0] < 10_000
    assert sizes[2] - sizes[0] < 30_000


def test_prompts_that_an_earlier_figure_shows_are_not_repeated():
    small = small_findings()
    first, second = small.figures
    same, other = evidence(), Evidence(shown=evidence().shown[:1], total=1, where=("elsewhere",))
    for behind, links in ((same, 1), (other, 0)):
        html = render(page(findings=(small,), evidence={"small": {first.name: same, second.name: behind}}))
        assert html.count("Same prompts as figure 1") == links
        assert html.count('<details class="prompts">') == 2 - links
        assert html.count('href="#prompts-1-1">Same prompts') == links
        assert 'id="prompts-1-1"' in html


def test_every_link_leads_to_a_part_of_the_page_and_no_two_parts_have_one_name():
    html = render(page(findings=(findings(), small_findings())))
    names = re.findall(r'\bid="([^"]*)"', re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL))
    assert len(names) == len(set(names))
    links = [link.removeprefix("#") for link in parse(html).links]
    assert {"contents", "probe-1", "figure-1-1", "tables-2", "table-2-1"} <= set(links)
    assert set(links) <= set(names)


def test_tables_are_folded_under_their_title_and_the_number_of_their_rows():
    found = findings()
    html = render(page(findings=(found,)))
    titles = re.findall(
        r'<details class="table-block">\s*<summary><bdi>(.*?)</bdi> <span class="rows">(.*?)</span>', html
    )
    assert titles == [
        (html_escape(table.title), f"{len(table.rows):,} row{'s' if len(table.rows) != 1 else ''}")
        for table in found.tables
    ]


def test_many_warnings_are_folded_after_the_first():
    warnings = tuple(Notice(level="warning", text=f"warning number {i}") for i in range(7))
    notes = (Notice(level="info", text="a note"),)
    for shown, more in ((4, ""), (5, "1 more warning<"), (7, "3 more warnings<")):
        html = render(page(findings=(replace(small_findings(), notices=warnings[:shown] + notes),)))
        assert html.count("warning number") == shown
        assert more in html
        assert ("more warning" in html) == bool(more)
        assert html.count('<details class="notes">') == (2 if more else 1)
        assert html.count("<details") == html.count("</details>")


def test_strange_text_is_kept():
    strange = "شكرا 👩🏽‍⚕️ \x00 " + "w" * 50_000 + " \ud800 שלום"
    html = render(poisoned(strange))
    html.encode("utf-8", "replace")
    assert parse(html).elements == parsed(" harmless").elements


def test_a_typical_page_is_small():
    every = {figure.name: evidence() for figure in findings().figures}
    whole = page(findings=(findings(),) * 5, evidence={"counterexamples": every})
    assert len(render(whole).encode()) < 4_000_000


def test_rendering_needs_no_torch():
    code = (
        "import sys; from tests.report.samples import page; from clinometer.report import render; render(page());"
        "sys.exit(any(name.split('.')[0] in ('torch', 'transformers') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_how_to_read_says_what_intervals_q_and_n_are():
    words = " ".join(re.sub(r"<[^>]+>", "", render(page())).split())
    assert "95 of 100 such intervals would cover the true value" in words
    assert "within the family that the caption names, at most 5 % are false alarms on average" in words
    assert "the caption says whether that is occupations, prompts or something else" in words


def test_the_chart_script_is_kept_and_nobody_can_put_another_in_its_place(tmp_path, monkeypatch):
    monkeypatch.setenv("CLINOMETER_CACHE", str(tmp_path))
    made = []
    bundle = vl_convert.javascript_bundle
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet: made.append(snippet) or bundle(snippet))
    fresh = rendering._vega.__wrapped__
    script = fresh()
    assert fresh() == script
    assert len(made) == 1
    (kept,) = (tmp_path / "report").iterdir()
    assert "</script" not in script
    kept.write_text("alert('not the script')")
    assert fresh() == script == kept.read_text(encoding="utf-8")
    assert len(made) == 2


def test_without_a_cache_and_with_an_unknown_release_a_report_has_its_script(tmp_path, monkeypatch):
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    monkeypatch.setenv("CLINOMETER_CACHE", str(nowhere))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet: "made</script>")
    assert rendering._vega.__wrapped__() == "made<\\/script>"
    monkeypatch.setenv("CLINOMETER_CACHE", str(tmp_path))
    monkeypatch.setattr(rendering, "_KNOWN_VEGA", {})
    assert rendering._vega.__wrapped__() == "made<\\/script>"
    assert sorted(tmp_path.iterdir()) == [nowhere]


def test_a_table_that_counts_nothing_has_no_prompts_behind_it():
    """The numbers that a paper prints rest on nobody's prompts here."""
    small = small_findings()
    figure = small.figures[0]
    about = {"name": "printed", "title": "Printed elsewhere", "caption": "As printed."}
    row = Finding(labels={"model": "theirs"}, estimate=0.5)

    def links(n):
        table = FindingTable(**about, rows=(replace(row, n=n),))
        found = replace(small, tables=(*small.tables, table))
        html = render(page(findings=(found,), evidence={"small": {figure.name: evidence()}}, files={}))
        return html.count("Prompts and answers behind these numbers")

    assert links(3) == links(0) + 1
