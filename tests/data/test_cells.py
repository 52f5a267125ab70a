"""Cells of a spreadsheet: nothing is run, nothing is changed, everything is read back."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from clinometer.data.files import escaped, to_csv, unescaped


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
