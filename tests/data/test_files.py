"""Files that people wrote: read strictly, refused with what and where; cells are read back unchanged."""

import csv
import errno
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinometer.data import packaged, read_csv, read_text, read_toml
from clinometer.data.files import to_csv
from clinometer.errors import DataError
from clinometer.plain import escaped, unescaped


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "mine.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_reads_what_a_spreadsheet_writes(write):
    path = write('\ufeffword,gender\r\n\r\n "a, b" , x \r\n'.encode())  # byte-order mark, CRLF, a blank line
    # the space before the quote makes the quote part of the value in CSV; without it the comma is kept
    with pytest.raises(DataError, match="line 3: 3 values; expected 2"):
        read_csv(path, columns=("word", "gender"))
    path = write('\ufeffword,gender\r\n\r\n"a, b", x \r\n'.encode())
    (row,) = read_csv(path, columns=("word", "gender"))
    assert dict(row.values) == {"word": "a, b", "gender": "x"}
    assert row.line == 3


def test_columns_in_any_order_and_optional_ones(write):
    (row,) = read_csv(write("b,a\n1,2\n"), columns=("a", "b"), optional=("c",))
    assert dict(row.values) == {"a": "2", "b": "1", "c": ""}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"word,gender\0\n", "binary file"),
        (b"\x89PNG\r\n\x1a\n\0\0", "binary file"),
        ("word,gender\ncafé,female\n".encode("latin-1"), "line 2: byte 0xe9 is not UTF-8"),
        (",,\n", "only separators"),
        ("word,gender\n", "no rows"),
        ("word\nshe\n", "line 1: no column 'gender'"),
        ("word,gender,gruop\nshe,female,x\n", "unknown column 'gruop'; did you mean 'group'?"),
        ("word,gender,gender\nshe,female,male\n", "'gender' appears twice"),
        ("word,gender\nshe\n", "line 2: 1 values; expected 2"),
        ("word,gender\nshe,female,x\n", "line 2: 3 values; expected 2"),
        ('word,gender\n"she,female\n', "line 2: unexpected end of data"),
        ('word,gender\n"she"x,female\n', "line 2: ',' expected after '\"'"),
    ],
)
def test_bad_csv_is_refused_with_file_and_line(write, content, complaint):
    path = write(content)
    with pytest.raises(DataError) as caught:
        read_csv(path, columns=("word", "gender"), optional=("group",))
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DataError, match="no file"):
        read_text(tmp_path / "none.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_text(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        read_text("a\0b")


def test_unreadable_file(write, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    path = write("word,gender\nshe,female\n")
    # root, who runs tests in containers, may read anything
    monkeypatch.setattr("clinometer.limits.open_plain", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        read_text(path)


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("percent", "ten", "line 2: percent 'ten'; expected a number from 0 to 100"),
        ("percent", "nan", "percent 'nan'"),
        ("percent", "101", "percent '101'"),
        ("percent", "", "percent ''"),
        ("gender", "woman", "gender 'woman'; expected female or male"),
        ("word", "", "nothing in column 'word'"),
    ],
)
def test_bad_values_are_refused_with_line(write, column, value, complaint):
    values = {"word": "she", "gender": "Female", "percent": "100"} | {column: value}
    path = write("word,gender,percent\n" + ",".join(values.values()) + "\n")
    (row,) = read_csv(path, columns=("word", "gender", "percent"))
    with pytest.raises(DataError) as caught:
        row.text("word"), row.choice("gender", ("female", "male")), row.number("percent", low=0, high=100)
    assert complaint in str(caught.value)


def test_toml_is_strict(write):
    assert read_toml(write('title = "x"'), keys=("title",)) == {"title": "x"}
    with pytest.raises(DataError, match="is not TOML"):
        read_toml(write("title"), keys=("title",))
    with pytest.raises(DataError, match="unknown key 'titel'; did you mean 'title'"):
        read_toml(write('titel = "x"'), keys=("title",))
    with pytest.raises(DataError, match="no key 'title'"):
        read_toml(write('notes = "x"'), keys=("title",), optional=("notes",))


def test_packaged_files_are_found():
    assert "kinds" in read_text(packaged("counterexamples", "knowledge.toml"))


@given(st.text())
def test_every_text_comes_back(text):
    assert unescaped(escaped(text)) == text


@given(st.text())
def test_no_cell_begins_like_a_formula(text):
    assert escaped(text)[:1] not in tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def test_what_a_spreadsheet_would_turn_into_something_else():
    for text in ("=HYPERLINK(1)", "+1", "-x", "@SUM", "TRUE", "false", "1e5", "3-4", "'"):
        assert escaped(text) == "'" + text
    for text in ("easy", "truest", "i1234", "x=1", ""):
        assert escaped(text) == text


def test_an_apostrophe_that_somebody_wrote_stays():
    assert unescaped("'tis") == "'tis"


def test_csv_with_separators_inside():
    text = to_csv(("word", "note"), [("a,b", 'said "x"'), ("=1", "")])
    assert text == 'word,note\r\n"a,b","said ""x"""\r\n\'=1,\r\n'
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == ["a,b", 'said "x"']
