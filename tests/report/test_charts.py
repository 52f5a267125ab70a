"""Charts: what is drawn of a table, in which order, and that foreign text stays out of Vega's names."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
import vl_convert

from clinometer.errors import RecordsError
from clinometer.report.chart_style import PAGE, PAPER
from clinometer.report.charts import chart
from clinometer.report.plot_data import plot_data
from clinometer.report.rounding import estimate_text
from clinometer.types import Figure, Finding, FindingTable
from tests.report.samples import PLACES_OF_MODELS, findings


def table(*rows: Finding) -> FindingTable:
    return FindingTable(name="t", title="Measure", caption="", rows=rows)


def row(estimate: float, low: float = math.nan, high: float = math.nan, **labels: str | int | float) -> Finding:
    return Finding(labels=labels, estimate=estimate, low=low, high=high, n=1)


BARS = Figure(name="f", title="F", caption="", table="t", mark="bars", x="word", y="estimate")


def svg(figure: Figure, rows: FindingTable, *, width: int = 400) -> str:
    drawn = chart(figure, rows, colours=PAPER, width=width)
    return vl_convert.vegalite_to_svg(drawn.whole(), allowed_base_urls=[])


def test_rows_keep_their_order_and_lose_only_what_has_no_estimate():
    data = plot_data(BARS, table(row(1, word="z"), row(math.nan, word="m"), row(2, word="a")))
    assert data.values["word"] == ("z", "m", "a")  # "m" keeps its place though it is not drawn
    assert [record["c0"] for record in data.records()] == ["z", "a"]
    assert [record["o0"] for record in data.records()] == [0, 2]
    assert data.missing == 1


def test_filters_choose_rows():
    rows = table(row(1, word="a", k=3), row(2, word="a", k=5))
    (only,) = plot_data(replace(BARS, filters={"k": 5}), rows).rows
    assert only.estimate == 2


def test_numbers_are_a_ruler_for_points_and_names_for_bars():
    rows = table(row(1, k=1), row(2, k=10))
    assert chart(replace(BARS, x="k"), rows, colours=PAPER).spec["layer"][0]["encoding"]["x"]["type"] == "nominal"
    points = chart(replace(BARS, x="k", mark="scatter"), rows, colours=PAPER).spec
    assert points["layer"][-1]["encoding"]["x"]["type"] == "quantitative"


def test_an_interval_is_drawn_only_where_both_ends_are_known():
    rows = table(
        row(1, 0.5, 1.5, word="a"), row(2, 1, math.nan, word="b"), row(3, word="c"), row(4, 3, 5, word="d")
    )
    for mark in ("bars", "intervals", "lines", "scatter"):
        drawing = svg(replace(BARS, mark=mark), rows)
        rules = drawing.split('class="mark-rule role-mark')[1].split("</g>")[0]
        assert rules.count("<line") == 2, mark


def test_without_any_interval_none_is_drawn():
    """An axis that has no number on it makes Vega warn."""
    rows = table(row(1, word="a", k=1), row(2, word="b", k=2))
    for mark, x in (("bars", "word"), ("intervals", "word"), ("lines", "word"), ("lines", "k"), ("scatter", "k")):
        spec = chart(replace(BARS, mark=mark, x=x), rows, colours=PAPER).spec
        assert '"low"' not in json.dumps(spec["layer"])
        assert '"low"' in json.dumps(
            chart(replace(BARS, mark=mark, x=x), table(row(1, 0, 2, word="a", k=1)), colours=PAPER).spec["layer"]
        )


def test_a_menu_offers_every_value_in_order_and_says_which_label_it_is():
    rows = table(row(1, word="a", top_k=5), row(math.nan, word="b", top_k=3), row(3, word="c", top_k=5))
    drawn = chart(replace(BARS, menus=("top_k",)), rows, colours=PAPER)
    (menu,) = drawn.menus
    assert (menu.title, menu.options) == ("top k", ("5", "3"))
    assert drawn.data.labels[menu.label] == "top_k"


def test_the_reference_is_one_line_and_where_bars_begin():
    rows = table(row(1.5, word="a"), row(0.5, word="b"), row(2, word="c"))
    drawing = svg(replace(BARS, reference=1.0), rows)
    assert drawing.count("stroke-dasharray") == 1
    start = chart(replace(BARS, reference=1.0), rows, colours=PAPER).spec["layer"][0]["encoding"]["y2"]
    assert start == {"datum": 1.0}


def test_no_label_reaches_a_field_name_or_an_expression():
    evil = "datum['x'] || alert(1)"
    rows = table(*(Finding(labels={evil: f"{evil}{i}", "b": evil}, estimate=i, low=0, high=1) for i in range(3)))
    for mark in ("bars", "intervals", "lines"):
        figure = replace(BARS, mark=mark, x=evil, color="b", column="b", menus=("b",), reference=0.0)
        compiled = vl_convert.vegalite_to_vega(chart(figure, rows, colours=PAGE).whole())
        texts = list(_code(compiled))
        assert len(texts) > 10
        assert not [text for text in texts if "alert" in text]


def _code(value):
    """Yield every expression and every field name of a Vega specification."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("signal", "expr", "test", "update", "field") and isinstance(inner, str):
                yield inner
            else:
                yield from _code(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _code(inner)


def test_heat_map_colours_are_centred_on_no_lean():
    rows = table(row(-0.2, a="x", b="y"), row(0.6, a="z", b="y"))
    figure = replace(BARS, mark="heatmap", x="a", y="b", reference=0.1)
    cells = chart(figure, rows, colours=PAPER).spec["layer"][0]["encoding"]["color"]["scale"]
    # the farthest is 0.6, at a distance of 0.5 from 0.1
    assert cells["domain"] == pytest.approx([-0.4, 0.6])


def heat_map(across: int, down: int, *, unit: float = 0.01) -> tuple[Figure, FindingTable]:
    rows = [row(unit * (i - j), a=f"a{i}", b=f"b{j}") for i in range(across) for j in range(down)]
    return replace(BARS, mark="heatmap", x="a", y="b", reference=0.0), table(*rows)


def in_cells(drawing: str) -> list[str]:
    marks = drawing.split('class="mark-text role-mark')[1:]
    return [text for mark in marks for text in re.findall(r">([^<>]+)</text>", mark.split("</g>")[0])]


def test_numbers_stand_in_the_cells_of_a_heat_map_on_paper_unless_they_are_too_many():
    numbers = [f"{(i - j) / 10:z.2f}".replace("-", "−") for i in range(3) for j in range(4)]
    assert "0.00" in numbers
    assert "−0.30" in numbers
    assert in_cells(svg(*heat_map(3, 4, unit=0.1))) == numbers
    assert in_cells(svg(*heat_map(3, 201))) == []  # 603 cells
    assert in_cells(svg(*heat_map(13, 2))) == []  # 13 side by side


def test_numbers_in_cells_are_written_as_elsewhere_where_two_decimals_are_too_few():
    values = (0.0, 0.00012345, -0.00012345, 0.0421, -0.0999)  # the colours reach from -0.0999 to 0.0999
    figure = replace(BARS, mark="heatmap", x="a", y="b", reference=0.0)
    drawing = svg(figure, table(*(row(value, a=f"a{i}", b="b") for i, value in enumerate(values))))
    assert in_cells(drawing) == [estimate_text(value) for value in values]
    large = table(row(1234.56, a="a0", b="b"), row(1234.5, a="a1", b="b"))  # 0.06 apart
    assert in_cells(svg(replace(figure, reference=None), large)) == ["1235", "1235"]


def test_what_is_sent_to_the_page_has_no_rows_and_says_where_they_are():
    rows = table(row(1, word="a", k=3), row(2, word="b", k=5), row(3, word="c", k=5))
    sent = chart(replace(BARS, filters={"k": 5}, menus=("word",)), rows, colours=PAGE).for_page("data-1-1")
    assert (sent["table"], sent["filters"], sent["menus"][0]["label"]) == ("data-1-1", [[1, 5]], 0)
    assert (sent["across"], sent["down"]) == (0, -1)
    small = len(json.dumps(sent))
    many = table(*(row(i, word=f"w{i}", k=5) for i in range(1000)))
    assert (
        len(json.dumps(chart(replace(BARS, filters={"k": 5}), many, colours=PAGE).for_page("data-1-1")))
        < small + 10
    )


def test_colours_stand_side_by_side_only_where_a_name_has_several():
    ranked = replace(BARS, mark="intervals", x="estimate", y="word", color="group")
    alone = table(row(1, word="a", group="x"), row(2, word="b", group="y"))
    both = table(row(1, word="a", group="x"), row(2, word="a", group="y"))
    assert "yOffset" not in json.dumps(chart(ranked, alone, colours=PAPER).spec)
    assert "yOffset" in json.dumps(chart(ranked, both, colours=PAPER).spec)
    # in different panels, or behind different choices, they are alone as well
    assert "yOffset" not in json.dumps(chart(replace(ranked, column="group"), both, colours=PAPER).spec)
    assert "yOffset" not in json.dumps(chart(replace(ranked, menus=("group",)), both, colours=PAPER).spec)


def test_on_paper_the_title_of_an_axis_is_no_wider_than_its_panel():
    rows = table(*(row(i, word="a", side=f"s{i}") for i in range(4)))
    rows = replace(rows, title="Distance between the distributions of sentiment")
    beside = replace(BARS, x="estimate", y="word", column="side")

    def title(figure: Figure, width: int | None) -> list[str] | str:
        panel = chart(figure, rows, colours=PAPER, width=width).spec["spec"]
        return panel["layer"][0]["encoding"]["x"]["title"]

    lines = title(beside, 640)  # four panels of 160 pixels: 22 letters
    assert " ".join(lines) == rows.title
    assert max(map(len, lines)) <= 22
    assert title(beside, None) == rows.title  # the page's script wraps it


def test_a_single_row_of_panels_is_named_above_them():
    rows = table(row(1, word="a", side="left", model="m"), row(2, word="a", side="right", model="m"))
    both = chart(replace(BARS, row="model", column="side"), rows, colours=PAPER).spec["facet"]
    assert list(both) == ["column"]
    assert both["column"]["title"] == "m"  # "left" and "right" need no "side" above them
    alone = chart(replace(BARS, row="model"), rows, colours=PAPER).spec["facet"]
    assert (list(alone), alone["column"]["title"]) == (["column"], None)
    two = chart(replace(BARS, row="side", column="model"), rows, colours=PAPER).spec["facet"]
    assert set(two) == {"row", "column"}


def test_the_height_of_a_row_depends_on_what_is_shown_at_once():
    def step(figure: Figure) -> int:
        names = [row(i, word=f"w{i}", group=f"g{i % 3}") for i in range(90)]
        return chart(figure, table(*names), colours=PAPER).spec["height"]["step"]

    ranked = replace(BARS, mark="intervals", x="estimate", y="word")
    assert step(ranked) < step(replace(ranked, menus=("group",)))  # 90 names, or 30 at a time


def trade_off(**changes) -> tuple[Figure, FindingTable]:
    rows = [row(0.3 - 0.1 * i, k=float(i), word=word, size=size)
            for word, sizes in (("a", (10, 1)), ("b", (7,)))
            for i, size in enumerate(sizes)]  # fmt: skip
    figure = replace(BARS, mark="scatter", x="k", y="estimate", color="word", **changes)
    return figure, table(*rows, row(0.5, k=2.0, word="c", size=math.nan))


def test_an_axis_can_be_reversed():
    def scale(figure: Figure, side: str) -> dict[str, object]:
        return chart(figure, trade_off()[1], colours=PAPER).spec["layer"][-1]["encoding"][side]["scale"]

    figure, _ = trade_off(reversed="estimate")
    assert scale(figure, "y") == {"zero": False, "reverse": True}
    assert "reverse" not in scale(figure, "x")
    assert scale(replace(figure, reversed="k"), "x")["reverse"] is True

    def heights(figure: Figure) -> list[float]:
        points = re.findall(r'translate\([\d.]+,([-\d.e]+)\)"[^>]*opacity="0.8"', svg(figure, trade_off()[1]))
        return [float(height) for height in points]

    # from the top of 300 pixels: .3, .2, .3 and .5 on an axis from .2 to .5
    assert heights(trade_off()[0]) == pytest.approx([200, 300, 200, 0], abs=1e-6)
    assert heights(figure) == pytest.approx([100, 0, 100, 300], abs=1e-6)


def test_points_are_joined_in_the_order_in_which_the_table_names_them():
    figure, rows = trade_off(joined="size")
    (line,) = [
        layer for layer in chart(figure, rows, colours=PAPER).spec["layer"] if layer["mark"]["type"] == "line"
    ]
    # "size" is the third label; its order of first appearance, not its number, is the order of the line
    assert line["encoding"]["order"] == {"field": "o2", "type": "quantitative"}
    assert line["encoding"]["color"]["field"] == "c1"
    assert not [
        layer for layer in chart(*trade_off(), colours=PAPER).spec["layer"] if layer["mark"]["type"] == "line"
    ]


def test_a_label_is_written_at_each_point_that_has_it():
    drawing = svg(*trade_off(text="size"))
    written = [mark.split("</g>")[0] for mark in drawing.split('class="mark-text role-mark')[1:]]
    assert sorted(text for mark in written for text in re.findall(r">([^<>]+)</text>", mark)) == ["1", "10", "7"]


def test_texts_of_every_second_colour_stand_above_the_points():
    rows = table(*(row(i, method=name, size=f"at {name}", similar=i) for i, name in enumerate("abcd")))
    figure = replace(BARS, mark="scatter", x="similar", color="method", text="size")
    written = re.findall(r'translate\([^,]+,(-?[\d.]+)\)"[^>]*>(at \w)<', svg(figure, rows))
    height = {text: float(down) for down, text in written}
    steps = [height[f"at {a}"] - height[f"at {b}"] for a, b in ("ab", "bc", "cd")]
    assert steps[0] == pytest.approx(steps[2])  # below to above, above to below, below to above
    assert steps[0] - steps[1] > 30


@pytest.mark.parametrize("width", [400, 640])
@pytest.mark.parametrize("roles", PLACES_OF_MODELS)
def test_on_paper_the_middle_is_cut_out_of_long_names_of_models(roles, width):
    long = "an-organisation/a-model-of-some-size-occupation-embedding"
    names = [f"{long}-1", f"{long}-1000", f"p{long}-1", f"q{long}-1"]
    rows = table(
        *(row(0.5, 0.4, 0.6, model=name, word="w", measure=measure) for name in names for measure in "ab")
    )
    figure = replace(BARS, mark="intervals", x="estimate", **roles)
    texts = set(re.findall(r">([^<>]*…[^<>]*)</text>", svg(figure, rows, width=width)))
    ends = {(text.partition("…")[0][0], text.rpartition("-")[-1]) for text in texts}
    assert ends == {("a", "1"), ("a", "1000"), ("p", "1"), ("q", "1")}
    assert len(texts) == 4


def test_a_figure_may_name_its_measure():
    assert ">Measure</text>" in svg(BARS, table(row(1, word="a")))
    named = svg(replace(BARS, measure="after / before"), table(row(1, word="a")))
    assert ">after / before</text>" in named
    assert ">Measure</text>" not in named


def test_several_figures_can_agree_on_their_colours():
    def colours(figure: Figure) -> dict[str, str]:
        scale = chart(figure, trade_off()[1], colours=PAPER).spec["layer"][-1]["encoding"]["color"]["scale"]
        return dict(zip(scale["domain"], scale["range"], strict=True))

    figure, _ = trade_off()
    assert colours(figure) == dict(zip("abc", PAPER.palette[:3], strict=True))
    ordered = colours(replace(figure, colors=("z", "c", "a")))
    assert ordered == {"a": PAPER.palette[2], "b": PAPER.palette[3], "c": PAPER.palette[1]}
    assert colours(replace(figure, colors=("z", "c", "a"), filters={"word": "b"})) == {"b": PAPER.palette[3]}


def test_all_marks_compile_and_carry_no_not_a_number():
    found = findings()
    tables = {table.name: table for table in found.tables}
    for figure in found.figures:
        spec = chart(figure, tables[figure.table], colours=PAPER, width=600).whole()
        json.dumps(spec, allow_nan=False)
        assert "<svg" in vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": "wrod"}, "draws 'wrod', which is not a label of table 't': did you mean 'word'?"),
        ({"menus": ("model",)}, "draws 'model'"),
        ({"y": "word"}, "one of the two must be 'estimate'"),
        ({"text": "wodr"}, "draws 'wodr', which is not a label of table 't': did you mean 'word'?"),
        ({"joined": "k"}, "draws 'k'"),
        ({"reversed": "k"}, "reverses 'k', which is on neither of its axes"),
        ({"mark": "heatmap"}, "x and y must be labels"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_explained(changes, message):
    with pytest.raises(RecordsError) as caught:
        chart(replace(BARS, **changes), table(row(1, word="a")), colours=PAPER)
    assert message in str(caught.value)


def test_nothing_to_draw_is_no_error():
    for rows in (table(), table(row(math.nan, word="a"))):
        empty = chart(replace(BARS, column="word", menus=("word",)), rows, colours=PAPER)
        assert (empty.spec, empty.drawn) == ({}, 0)


def looks(figure: Figure, names: int) -> dict[str, list]:
    """The colours, dashes and shapes of so many names, in their order."""
    rows = table(*(row(i + k, word=f"m{i}", k=k) for i in range(names) for k in (1, 2)))
    layers = chart(figure, rows, colours=PAPER).spec["layer"]
    found = {}
    for layer in layers:
        for channel in ("color", "strokeDash", "shape"):
            if channel in layer["encoding"]:
                found[channel] = layer["encoding"][channel]["scale"]["range"]
                assert layer["encoding"][channel]["scale"]["domain"] == [f"m{i}" for i in range(names)]
    return found


@pytest.mark.parametrize(
    ("mark", "telling"), [("lines", "strokeDash"), ("intervals", "shape"), ("scatter", "shape")]
)
def test_more_names_than_colours_are_told_apart(mark, telling):
    figure = replace(BARS, mark=mark, x="k", color="word")
    assert set(looks(figure, len(PAPER.palette))) == {"color"}
    found = looks(figure, 21)
    assert len({(colour, str(look)) for colour, look in zip(found["color"], found[telling], strict=True)}) == 21
    # a figure that fixes its first colours fixes dashes and shapes with them
    fixed = looks(replace(figure, colors=("not here", "m3")), 21)
    assert fixed["color"][3] == PAPER.palette[1]
    assert fixed[telling][:7] == found[telling][:7]
    assert fixed[telling][7] != found[telling][7]


def test_dashes_and_shapes_are_in_one_legend_with_the_colours():
    rows = table(*(row(i + k, word=f"m{i}", k=k) for i in range(10) for k in (1, 2)))
    drawing = svg(replace(BARS, mark="lines", x="k", color="word"), rows)
    assert drawing.count(">m9<") == 1
    assert drawing.count('stroke-dasharray="6,3"') >= 2


def test_lines_of_single_trainings_are_thin_and_have_no_band():
    rows = table(*(
        row(value + k, value + k - 1, value + k + 1, word=word, k=k, trainings=trainings)
        for word, value, trainings in (("mean", 1.0, 2), ("seed 0", 0.5, 1), ("seed 1", 1.5, 1))
        for k in (1, 2)
    ))  # fmt: skip
    figure = replace(BARS, mark="lines", x="k", color="word")

    plain, apart = svg(figure, rows), svg(replace(figure, repeated="trainings"), rows)
    bands = [len(re.findall(r'class="mark-area', each)) for each in (plain, apart)]
    lines = [len(re.findall(r'class="mark-line', each)) for each in (plain, apart)]
    assert (bands, lines) == ([3, 1], [3, 3])
    # where nothing was repeated all are alike
    once = table(*(each for each in rows.rows if each.labels["trainings"] == 1))
    assert svg(replace(figure, repeated="trainings"), once) == svg(figure, once)
    with pytest.raises(RecordsError, match="'seeds', which is not a label"):
        chart(replace(figure, repeated="seeds"), rows, colours=PAPER)
