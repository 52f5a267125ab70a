"""The published data set of human stereotypes: read exactly, matched with our groups."""

from __future__ import annotations

import collections
import os
from pathlib import Path

import pytest

from clinometer.data import Group, HumanStereotype, load_groups, match_groups, read_human_stereotypes
from clinometer.errors import DataError

HEADER = "input\ttarget_category\ttarget_group\tcompletion\tsearch_engine\n"
# as the published file writes a row: three of its five fields are quoted and end with a line break
PUBLISHED = '"why are academics so\n"\tprofession\t"academics\n"\t"pretentious\n"\tgoogle\n'
PUBLISHED_FOLDER = Path(os.environ.get("CLINOMETER_TEST_DATA", "nowhere")) / "stereotypes"


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "stereotypes.csv"
        path.write_bytes(text.encode())
        return path

    return write


def test_line_breaks_inside_quoted_fields(write):
    plain = "why are poets so\tprofession\tpoets\tsad\tmultiple\n"
    assert read_human_stereotypes(write(HEADER + PUBLISHED + plain)) == (
        HumanStereotype(
            group="academics",
            category="profession",
            attribute="pretentious",
            engine="google",
            prompt="why are academics so",
        ),
        HumanStereotype(
            group="poets", category="profession", attribute="sad", engine="multiple", prompt="why are poets so"
        ),
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        (HEADER, "no rows"),
        (HEADER.replace("\t", ",") + "a,b,c,d,e\n", "no column 'input'"),
        ("<!DOCTYPE html>\n<html></html>\n", "no column 'input' in '<!DOCTYPE html>'; expected a first line"),
        (HEADER.replace("completion", "completoin") + PUBLISHED, "no column 'completion'"),
        (HEADER + "why are poets so\tprofession\tpoets\tsad\n", "line 2: 4 values; expected 5"),
        (HEADER + "why are poets so\tprofession\tpoets\t\tgoogle\n", "line 2: nothing in column 'completion'"),
        (HEADER + "why are poets so\tprofession\tbakers\tsad\tgoogle\n", "without its target_group 'bakers'"),
        (HEADER + PUBLISHED.replace('"pretentious\n"', '"mean\nrude\n"'), "a line break inside completion 'mean"),
        (HEADER + "why are poets [MASK]\tprofession\tpoets\tsad\tgoogle\n", "without brackets or braces"),
        # a quote that is never closed swallows the rest of the file
        (HEADER + PUBLISHED[:-20], "expected tab-separated values"),
    ],
)  # fmt: skip
def test_other_files_are_refused(write, text, complaint):
    path = write(text)
    with pytest.raises(DataError) as caught:
        read_human_stereotypes(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def stereotype(group):
    return HumanStereotype(
        group=group, category="x", attribute="mean", engine="google", prompt=f"why are {group} so"
    )


def group(name):
    return Group(name=name, category="x", kind="people")


def test_groups_match_whatever_their_case():
    match = match_groups([stereotype("asians"), stereotype("martians"), stereotype("asians")], [group("Asians")])
    assert match.matched == {"asians": "Asians"}
    assert match.unmatched == ("martians",)


def test_both_spellings_of_millennials_are_one_group():
    rows = [stereotype("millennials"), stereotype("millenials")]
    assert match_groups(rows, [group("millenials")]).matched == {
        "millennials": "millenials", "millenials": "millenials",
    }  # fmt: skip
    # also when one's own list of groups has the other spelling
    assert set(match_groups(rows, [group("Millennials")]).matched.values()) == {"Millennials"}
    # and when it has both, each is itself
    both = match_groups(rows, [group("millenials"), group("millennials")]).matched
    assert both == {"millennials": "millennials", "millenials": "millenials"}


@pytest.mark.parametrize(
    ("name", "rows", "groups", "categories"),
    [
        (
            "single_word_stereo_dataset.csv", 1886, 263,
            {"profession": 650, "race": 377, "country": 352, "gender": 163, "age": 151, "lifestyle": 119,
             "political": 44, "religion": 30},
        ),
        (
            "stereo_dataset.csv", 2099, 274,
            {"profession": 713, "race": 412, "country": 396, "gender": 198, "age": 171, "lifestyle": 123,
             "political": 50, "religion": 36},  # the numbers of the paper's Section 3
        ),
    ],
)  # fmt: skip
def test_the_published_files_are_read_exactly(name, rows, groups, categories):
    path = PUBLISHED_FOLDER / name
    if not path.exists():
        pytest.skip(f"needs the published file stereotypes/{name} in the folder $CLINOMETER_TEST_DATA")
    found = read_human_stereotypes(path)
    assert len(found) == rows
    assert len({row.group for row in found}) == groups
    assert collections.Counter(row.category for row in found) == categories
    assert {row.engine for row in found} == {"google", "yahoo", "duckduckgo", "multiple"}
    match = match_groups(found, load_groups())
    assert match.unmatched == ()
    assert match.matched["millennials"] == match.matched["millenials"] == "millenials"
    assert match.matched["dutch"] == "the Dutch"
    ours = {group.name: group.category for group in load_groups()}
    assert all(ours[match.matched[row.group]] == row.category for row in found)
