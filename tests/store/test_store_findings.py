"""Findings on disk: exact, deterministic, checked."""

import csv
import dataclasses
import json
import math
import types

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from clinometer.errors import StoreError
from clinometer.store import RunFolder, compare_findings
from clinometer.store.findings import findings_digest
from clinometer.types import Figure, Finding, Findings, FindingTable, Notice

NAN = math.nan
TABLE = FindingTable(
    name="mass",
    title="Mass",
    caption='What it is: "mass", <b>',
    rows=(
        Finding(
            labels={"word": "nurse, 'x' \"y\"\n", "k": 3, "share": 0.1}, estimate=1 / 3, low=-0.0, high=1e-300, n=7
        ),
        Finding(labels={"word": "", "k": -5, "share": NAN}, estimate=NAN, low=math.inf, p=0.05, q=0.1, n=0),
    ),
)
FIGURE = Figure(
    name="f",
    title="t",
    caption="c",
    table="mass",
    mark="bars",
    x="word",
    y="estimate",
    filters={"k": 3, "share": 0.5, "word": "é"},
    menus=("k", "share"),
    reference=0.0,
    evidence="ask",
)


def findings(*tables, probe="counterexamples"):
    return Findings(
        probe=probe,
        tables=tables,
        figures=(FIGURE, dataclasses.replace(FIGURE, name="g", reference=None)),
        notices=(Notice(level="warning", text="read \ud800 this"),),
        headlines=("0.1 [0.0, 0.2]", "a second"),
    )


def exact(value):
    """A form in which NaN equals NaN, and 1 differs from 1.0 and True."""
    if dataclasses.is_dataclass(value):
        return {field.name: exact(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [exact(inner) for inner in value]
    return type(value).__name__, repr(value)


def files(run):
    return {path.name: path.read_bytes() for path in sorted((run.path / "findings").rglob("*")) if path.is_file()}


def test_findings_round_trip(run):
    written = findings(TABLE, FindingTable(name="empty", title="", caption="", rows=()))
    run.write_findings(written)
    (read,) = RunFolder.open(run.path).read_findings()
    assert exact(read) == exact(written)
    assert set(files(run)) == {"mass.parquet", "mass.csv", "empty.parquet", "empty.csv", "index.json"}


@settings(max_examples=40, deadline=None)
@given(
    kinds=st.lists(st.sampled_from([st.text(), st.integers(-(2**63), 2**63 - 1), st.floats()]), max_size=4),
    height=st.integers(0, 4),
    data=st.data(),
)
def test_any_table_round_trips(tmp_path_factory, kinds, height, data):
    name = st.text(min_size=1, max_size=5).filter(str.isprintable)
    names = data.draw(st.lists(name, min_size=len(kinds), max_size=len(kinds), unique=True))
    row = st.builds(
        Finding,
        labels=st.fixed_dictionaries(dict(zip(names, kinds, strict=True))),
        **dict.fromkeys(("estimate", "low", "high", "p", "q"), st.floats()),
        n=st.integers(0, 2**40),
    )
    rows = tuple(data.draw(row) for _ in range(height))
    written = findings(FindingTable(name="t", title=data.draw(st.text()), caption="", rows=rows))
    run = RunFolder.create(tmp_path_factory.mktemp("run"), spec="", provenance={}, models=[])
    reserved = {"estimate", "low", "high", "p", "q", "n"} & set(names)
    if reserved and rows:
        with pytest.raises(StoreError, match="which is the name of a number"):
            run.write_findings(written)
        return
    run.write_findings(written)
    (read,) = run.read_findings()
    assert exact(read) == exact(written)
    assert findings_digest(run.read_findings()) == findings_digest([written])


def test_the_files_open_elsewhere(run):
    run.write_findings(findings(TABLE))
    folder = run.path / "findings" / "counterexamples"
    table = pl.read_parquet(folder / "mass.parquet")
    assert table.columns == ["word", "k", "share", "estimate", "low", "high", "p", "q", "n"]
    assert table.dtypes == [pl.String, pl.Int64, *[pl.Float64] * 6, pl.Int64]
    assert table["high"].to_list()[0] == 1e-300
    assert table["estimate"].is_nan().to_list() == [False, True]
    assert table.null_count().sum_horizontal().item() == 0
    with open(folder / "mass.csv", newline="") as file:
        header, first, second = csv.reader(file)
    assert header == table.columns
    assert first[0] == "nurse, 'x' \"y\"\n"
    assert float(first[3]) == 1 / 3
    assert second[3] == "NaN"
    assert float(second[4]) == math.inf


def test_equal_findings_give_equal_bytes(run, tmp_path):
    run.write_findings(findings(TABLE))
    first = files(run)
    run.write_findings(findings(TABLE))
    assert files(run) == first
    other = RunFolder.create(tmp_path / "other", spec="", provenance={}, models=[])
    copied = tuple(dataclasses.replace(row, labels=types.MappingProxyType(dict(row.labels))) for row in TABLE.rows)
    other.write_findings(findings(dataclasses.replace(TABLE, rows=copied)))
    assert files(other) == first
    assert findings_digest(other.read_findings()) == findings_digest(run.read_findings())


def changed(**values):
    return dataclasses.replace(TABLE, rows=(dataclasses.replace(TABLE.rows[0], **values), TABLE.rows[1]))


LAST_BIT = findings(changed(estimate=math.nextafter(1 / 3, 1)))
SIGN_OF_ZERO = findings(changed(low=0.0))
OTHER_PROBE = findings(TABLE, probe="stigma")


@pytest.mark.parametrize(
    "other",
    [
        LAST_BIT,
        findings(changed(estimate=1 / 3 + 1e-5)),
        SIGN_OF_ZERO,
        findings(changed(high=NAN)),
        findings(changed(n=8)),
        findings(changed(labels={**TABLE.rows[0].labels, "word": "nurse"})),
        findings(dataclasses.replace(TABLE, rows=TABLE.rows[::-1])),
        findings(dataclasses.replace(TABLE, caption="")),
        OTHER_PROBE,
        findings(),
        dataclasses.replace(findings(TABLE), figures=()),
        dataclasses.replace(findings(TABLE), notices=()),
        dataclasses.replace(findings(TABLE), headlines=()),
    ],
)
def test_the_digest_sees_every_change(other):
    assert findings_digest([other]) != findings_digest([findings(TABLE)])
    # what another processor rounds otherwise is the same finding; whatever a reader would notice is not
    compared = compare_findings(findings(TABLE), other)
    assert compared.versions == ()
    assert (compared.numbers + compared.wording == ()) == (other in (LAST_BIT, SIGN_OF_ZERO, OTHER_PROBE))


def test_numbers_words_and_versions_are_told_apart():
    stored = findings(TABLE)
    reworded = compare_findings(stored, findings(dataclasses.replace(TABLE, caption="other words")))
    assert reworded.numbers == reworded.versions == ()
    assert reworded.wording == (f"the title or caption of table {TABLE.name!r}",)
    (wrong,) = compare_findings(stored, findings(changed(estimate=0.5))).numbers
    assert wrong == f"table {TABLE.name!r}, row 1, estimate: {1 / 3} is stored, 0.5 follows"
    newer = compare_findings(stored, findings(dataclasses.replace(changed(estimate=0.5), version=2)))
    assert newer.numbers == ()  # another estimator may give another number
    assert "version 1 of its estimator, this release has version 2" in newer.versions[0]
    # a table that another release did not have is no damage; one that this release should have written is
    fewer = findings()
    assert compare_findings(fewer, stored).numbers
    older = dataclasses.replace(fewer, release="0.0")
    assert compare_findings(older, stored).numbers == ()
    assert compare_findings(older, stored).versions


def test_versions_and_release_survive_the_disk(run):
    written = dataclasses.replace(findings(dataclasses.replace(TABLE, version=3)), release="9.9")
    run.write_findings(written)
    (read,) = run.read_findings()
    assert (read.release, read.tables[0].version) == ("9.9", 3)


def test_the_digest_of_several_probes_does_not_depend_on_their_order(run):
    both = [findings(TABLE, probe="stigma"), findings(TABLE)]
    for each in both:
        run.write_findings(each)
    assert [each.probe for each in run.read_findings()] == ["counterexamples", "stigma"]
    assert findings_digest(run.read_findings()) == findings_digest(both) == findings_digest(both[::-1])


def test_no_findings_yet(run):
    assert run.read_findings() == ()
    assert findings_digest(run.read_findings()) == findings_digest([])


def test_numpy_values_are_plain_when_read(run):
    row = Finding(
        labels={"a": np.str_("x"), "b": np.int64(3), "c": np.float32(0.5), "d": True},
        estimate=np.float64(1),
        n=np.int32(2),
    )
    written = findings(FindingTable(name="t", title="", caption="", rows=(row,)))
    run.write_findings(written)
    read = run.read_findings()[0].tables[0].rows[0]
    assert exact(read.labels) == exact({"a": "x", "b": 3, "c": 0.5, "d": 1})
    assert (type(read.estimate), type(read.n)) == (float, int)
    assert findings_digest(run.read_findings()) == findings_digest([written])


def test_an_earlier_conclusion_is_replaced_whole(run):
    run.write_findings(findings(TABLE, dataclasses.replace(TABLE, name="other")))
    run.write_findings(findings(TABLE))
    assert set(files(run)) == {"mass.parquet", "mass.csv", "index.json"}


@pytest.mark.parametrize("name", ["mass.parquet", "mass.csv"])
def test_a_changed_table_is_named(run, name):
    run.write_findings(findings(TABLE))
    path = run.path / "findings" / "counterexamples" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match=f"{name} is not as it was written.*clinometer resume"):
        run.read_findings()
    path.unlink()
    with pytest.raises(StoreError, match=f"{name} cannot be read"):
        findings_digest(run.read_findings())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"sha256": {}, "probe": "p", "tables": [{}]}'])
def test_a_broken_index_is_named(run, content):
    run.write_findings(findings(TABLE))
    path = run.path / "findings" / "counterexamples" / "index.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"index.json is damaged"):
        run.read_findings()


def test_a_changed_title_changes_the_digest(run):
    run.write_findings(findings(TABLE))
    path = run.path / "findings" / "counterexamples" / "index.json"
    index = json.loads(path.read_bytes())
    index["tables"][0]["title"] = "Other"
    path.write_text(json.dumps(index))
    assert findings_digest(run.read_findings()) != findings_digest([findings(TABLE)])


def row(**labels):
    return Finding(labels=labels, estimate=1.0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((row(a=1), row(b=1)), "has a row with the labels b; all rows must have those of the first: a"),
        ((row(a=1), row(a=1, b=2)), "has a row with the labels a, b"),
        ((row(a=1), row(a="x")), "a label has values of type int, str"),
        ((row(a=1), row(a=1.5)), "a label has values of type float, int"),
        ((row(a=None),), "a label has values of type NoneType"),
        ((row(a=2**63),), "cannot be written"),
        ((row(a="\ud800"),), "cannot be written"),
        ((row(**{"a\0": 1}),), "label 'a.x00' cannot be a column: its name must be printable"),
        ((row(estimate="x"),), "a label named 'estimate', which is the name of a number"),
        ((Finding(labels={}, estimate=None),), "cannot be written"),
    ],
)
def test_a_table_that_cannot_be_written_exactly_is_refused(run, rows, message):
    run.write_findings(findings(TABLE))
    before = files(run)
    with pytest.raises(StoreError, match=message):
        run.write_findings(findings(FindingTable(name="t", title="", caption="", rows=rows)))
    assert files(run) == before


def test_names_are_checked(run):
    with pytest.raises(StoreError, match="two finding tables named 'mass'"):
        run.write_findings(findings(TABLE, TABLE))
    with pytest.raises(StoreError, match=r"finding table '\.\./x' cannot be a file name"):
        run.write_findings(findings(dataclasses.replace(TABLE, name="../x")))
    with pytest.raises(StoreError, match="probe '' cannot be a file name"):
        run.write_findings(findings(TABLE, probe=""))
    assert not (run.path / "findings").exists()
