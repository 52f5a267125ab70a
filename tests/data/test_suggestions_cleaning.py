"""The four cleaning steps: what a rule decides, what a person decides, and the data set that comes of both."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from clinometer.data import HumanStereotype, read_human_stereotypes
from clinometer.data.suggestions.cleaning import Candidate, clean, extract, key_term
from clinometer.data.suggestions.collection import Entry
from clinometer.data.suggestions.sheet import judged_stereotypes, read_sheet, write_sheet, write_stereotypes
from clinometer.errors import DataError

PROMPT = "why are russians so"


def entry(engine, *completions, prompt=PROMPT):
    texts = [f"{prompt} {completion}" for completion in completions]
    answer = {
        "google": [prompt, texts],
        "yahoo": {"gossip": {"results": [{"key": text} for text in texts]}},
        "duckduckgo": [{"phrase": text} for text in texts],
    }[engine]
    return Entry(engine=engine, prompt=prompt, group="russians", category="race", time="t", answer=answer)


def only(*completions):
    (candidate,) = clean([entry("google", *completions)]).candidates
    return candidate


@pytest.mark.parametrize(
    ("suggestion", "completion"),
    [
        ("why are russians so tall", "tall"),
        ("Why are Russians so  Tall?", "tall"),
        ("why are russians so tall reddit", "tall reddit"),
        ("why are russians so &quot;tall&quot;", "tall"),
        ("<b>why are russians so</b> tall", "tall"),
        ("why are russians so =tall", "tall"),  # nothing that a spreadsheet would take for a formula
        ("why are russians so don’t-care", "don't-care"),
        ("why are russians so tall\x00\ud800", "tall"),
        ("why are russians so", ""),
        ("why are russians so?", ""),
        ("why are russians sorry", None),
        ("why are russians", None),
        ("are russians so tall", None),
        ("why are all russians so tall", None),
        ("", None),
    ],
)
def test_what_a_suggestion_adds_to_the_question(suggestion, completion):
    assert extract(suggestion, prompt=PROMPT) == completion


def test_the_same_completion_of_two_engines_is_one_of_multiple_engines():
    cleaned = clean(
        [
            entry("google", "tall", "Tall?", "cold"),
            entry("yahoo", "tall"),
            entry("duckduckgo", "rich"),
            replace(entry("yahoo", "poor"), failure="500", answer=None),  # no answer, no suggestion
        ]
    )
    assert [(row.completion, row.engine, row.keep) for row in cleaned.candidates] == [
        ("tall", "multiple", "yes"), ("cold", "google", "yes"), ("rich", "duckduckgo", "yes"),
    ]  # fmt: skip
    assert cleaned.dropped == {"the same from the same engine": 1}


def test_what_never_becomes_a_candidate_is_counted():
    other = Entry(
        engine="google", prompt=PROMPT, group="russians", category="race", time="t",
        answer=[PROMPT, ["why are russian dolls", "why are russians so", "why are russians so tall", "russians"]],
    )  # fmt: skip
    cleaned = clean([other])
    assert [row.completion for row in cleaned.candidates] == ["tall"]
    assert cleaned.dropped == {"another question than the one asked": 2, "nothing after the question": 1}


@pytest.mark.parametrize(
    ("completion", "keep", "reason"),
    [
        ("rude", "yes", "one word"),
        ("well-dressed", "yes", "one word"),
        ("friendly", "yes", "one word"),
        ("fearless", "yes", "one word"),
        ("religious", "yes", "one word"),
        ("many", "no", "not an adjective"),
        ("themselves", "no", "not an adjective"),
        ("called", "no", "a neutral statement"),  # the paper's example
        ("called russians", "no", "a neutral statement"),
        ("2021", "no", "not a word"),
        ("???x1", "no", "not a word"),
        ("quickly", "", "may be an adverb"),
        ("alcoholics", "", "may be a noun in the plural"),
        ("laid back", "no", "several words"),
        ("good at league of legends", "no", "several words"),  # the paper's example of a trend
    ],
)
def test_what_a_rule_decides(completion, keep, reason):
    candidate = only(completion)
    assert (candidate.keep, candidate.reason) == (keep, reason)
    assert candidate.proposed_prompt == candidate.proposed_completion == ""


def test_the_paper_s_alteration_is_proposed_and_left_to_a_person():
    candidate = only("good at playing chess")
    assert candidate.proposed_prompt == "why are russians so good at"
    assert candidate.proposed_completion == "chess"
    assert candidate.keep == ""
    assert candidate.prompt == PROMPT
    assert candidate.completion == "good at playing chess"


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("bad with technology", ("bad with", "technology")),
        ("protective of their sons", ("protective of", "sons")),
        ("against abortion", ("against", "abortion")),
        ("badly paid in canada", ("badly paid in", "canada")),
        ("full of themselves", None),
        ("good at", None),
        ("laid back", None),
        ("important to the third world", None),
        ("good at 2048", None),
    ],
)
def test_key_terms(completion, expected):
    assert key_term(completion) == expected


# ---- the sheet ----


def fill_in(path, **decisions):
    """Write decisions into the sheet as a person would: completion -> keep?"""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["keep?"] = decisions.get(row["completion"].replace(" ", "_"), row["keep?"])
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def sheet(tmp_path):
    path = tmp_path / "review.csv"
    cleaned = clean(
        [
            entry("google", "good at playing chess", "tall", "called", "quickly", "laid back"),
            entry("yahoo", "chess", prompt=PROMPT + " good at"),
        ]
    )
    write_sheet(path, cleaned.candidates)
    return path


def test_the_columns_of_the_sheet(sheet):
    header, *rows = sheet.read_text(encoding="utf-8").splitlines()
    assert header == "keep?,prompt,group,category,completion,engine,reason,proposed_prompt,proposed_completion"
    assert rows[1] == "yes,why are russians so,russians,race,tall,google,one word,,"
    assert rows[0].startswith(",why are russians so,russians,race,good at playing chess,google,")
    assert rows[0].endswith(",why are russians so good at,chess")


def test_a_sheet_that_is_not_filled_in_is_refused(sheet):
    with pytest.raises(DataError) as caught:
        judged_stereotypes(sheet)
    assert "2 of 6 rows have nothing in column 'keep?'" in str(caught.value)
    assert "why are russians so good at playing chess" in str(caught.value)


def test_a_filled_in_sheet_becomes_a_data_set(sheet, tmp_path):
    fill_in(sheet, good_at_playing_chess="Yes", quickly="no", laid_back="yes")
    kept = judged_stereotypes(sheet)
    assert [(row.prompt, row.attribute, row.engine) for row in kept] == [
        # google's by the proposed alteration, yahoo's as it came: the same row of two engines
        (PROMPT + " good at", "chess", "multiple"),
        (PROMPT, "tall", "google"),
        (PROMPT, "laid back", "google"),
    ]
    path = tmp_path / "mine.tsv"
    write_stereotypes(path, kept)
    assert read_human_stereotypes(path) == kept
    assert isinstance(kept[0], HumanStereotype)


def test_a_sheet_on_which_nothing_is_kept(sheet):
    fill_in(sheet, good_at_playing_chess="no", quickly="no", tall="no", chess="no")
    with pytest.raises(DataError, match="keeps no row"):
        judged_stereotypes(sheet)


def test_a_data_set_is_not_overwritten(sheet, tmp_path):
    fill_in(sheet, good_at_playing_chess="no", quickly="no")
    path = tmp_path / "mine.tsv"
    path.write_text("precious", encoding="utf-8")
    with pytest.raises(DataError, match="exists already"):
        write_stereotypes(path, judged_stereotypes(sheet))
    assert path.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("yes,why are russians so,russians,race,tall", "y,why are russians so,russians,race,tall", "keep? 'y'"),
        ("keep?,", "keep,", "no column 'keep?'"),
        ("so good at,chess", "so good at,", "both, or neither"),
        ("so good at,chess", ",chess", "both, or neither"),
        ("why are russians so good at,chess", "why are they so good at,chess", "without its group 'russians'"),
        ("race,tall", "race,", "nothing in column 'completion'"),
    ],
)
def test_a_slip_on_the_sheet_is_named(sheet, old, new, complaint):
    text = sheet.read_text(encoding="utf-8")
    assert old in text
    sheet.write_text(text.replace(old, new, 1) if old != "so good at,chess" or new[0] != "," else
                     text.replace("why are russians so good at,chess", ",chess", 1), encoding="utf-8")  # fmt: skip
    with pytest.raises(DataError) as caught:
        read_sheet(sheet)
    assert complaint in str(caught.value)
    assert str(sheet) in str(caught.value)


def test_what_was_judged_is_kept_when_the_collection_goes_on(sheet):
    fill_in(sheet, good_at_playing_chess="no", tall="no")
    judged = read_sheet(sheet)
    by_hand = Candidate(
        prompt=PROMPT,
        group="russians",
        category="race",
        completion="proud",
        engine="google",
        keep="yes",
        reason="",
    )
    more = clean(
        [
            entry("google", "good at playing chess", "tall", "quickly"),
            entry("duckduckgo", "tall", "brave"),
        ]
    )
    write_sheet(sheet, more.candidates, judged=[*judged, by_hand])
    rows = {row.completion: row for row in read_sheet(sheet)}
    assert rows["good at playing chess"].keep == "no"
    assert rows["tall"].keep == "no"
    assert rows["tall"].engine == "multiple"  # offered by another engine since
    assert rows["quickly"].keep == ""  # not judged yet
    assert rows["brave"].keep == "yes"
    assert rows["proud"] == by_hand


def test_a_sheet_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(DataError, match="give another place"):
        write_sheet(tmp_path, [only("tall")])  # a folder
    assert list(tmp_path.iterdir()) == []
