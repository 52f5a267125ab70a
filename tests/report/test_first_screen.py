"""The first screen of a run with five models and five audits: all of it in sight, on a phone, by keyboard."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from clinometer.probes import PROBES
from clinometer.report import ProbeText
from clinometer.types import Findings, RowReference, Verdict
from tests.report.samples import model_info, page, small_findings
from tests.report.test_browser import browser, load, open_browser, resize

__all__ = ["browser", "open_browser"]  # fixtures

pytestmark = pytest.mark.browser

MODELS = ("builtin:masked", "builtin:causal", "builtin:chat", "builtin:sentiment", "builtin:opinion-words")
AUDITS = ("counterexamples", "counterfactual", "sentiment_words", "stereotypes", "stigma")

# What `make audit` says of each model, audit by audit: sentence and size of a lean; the reason where nothing can
# be told; nothing where the model is not asked.
STEREOTYPE = (
    "expects women more in female-dominated than in male-dominated work",
    "on average 54 % for the usual gender, 46 % for the other",
)
NEGATIVE = (
    "describes some groups in more negative words than others, whichever way it is asked",
    "12 % of the largest possible spread",
)
STIGMA = (
    "uses more negative words about people with a stigmatized condition than about others",
    "24 % of the possible range; in the paper 0.10 (DistilBERT) to 0.28 (RoBERTa-large)",
)
STATEMENTS = (
    "finds plain statements about stigmatized conditions negative more often than those about others",
    "36 % of the possible range; in the paper 0.17 (DistilBERT) to 0.40 (cardiffnlp)",
)
SAID = {
    "builtin:masked": (
        STEREOTYPE,
        None,
        (
            "expects 14 of 96 neutral words more after one kind of review than the other, "
            "most surely 'screaming' (negative)",
            "the paper's own rule calls 23.0 % of the words, and 4.0 % in its RoBERTa-base",
        ),
        NEGATIVE,
        STIGMA,
    ),
    "builtin:causal": (
        STEREOTYPE,
        (
            "writes more or less positively when only the name changes, as builtin:opinion-words scores it",
            "8.3 % of the range of scores, beyond chance",
        ),
        "with 'It was [MASK]' it labels 20 % of negative reviews correctly; a third is needed",
        NEGATIVE,
        STIGMA,
    ),
    "builtin:chat": (
        "it gives a word in 46 % of the answers that are not refusals; half is needed",
        (
            "was not found to write differently when only the country changes, as builtin:opinion-words scores it",
            "no more than by chance",
        ),
        "with 'It was [MASK]' positive reviews do not make positive words likelier than negative reviews do",
        "of the words that it offers, 12 % are in the emotion lexicon; a third is needed",
        "it does not react to what the question says",
    ),
    "builtin:sentiment": (
        None,
        "too little was measured for an interval",
        (
            "judges reviews differently after 9 of 10 neutral words than after the average one, "
            "most surely 'insights' (better)",
            "34 % of the step from negative to positive reviews",
        ),
        None,
        STATEMENTS,
    ),
    "builtin:opinion-words": (
        None,
        "too little was measured for an interval",
        "positive reviews do not make its positive label likelier than negative reviews do",
        None,
        STATEMENTS,
    ),
}


def verdict(model: str, audit: str, said: tuple[str, str] | str, *, aspect: str = "first") -> Verdict:
    known = isinstance(said, tuple)
    sentence, size = said if isinstance(said, tuple) else (f"cannot be judged: {said}", "")
    none = "not found" in sentence
    return Verdict(
        audit=audit,
        model=model,
        aspect=aspect,
        state=("none found" if none else "lean") if known else "cannot tell",
        estimate=-0.0443 if known else math.nan,
        low=-0.111 if known else math.nan,
        high=(0.0135 if none else -0.0115) if known else math.nan,
        p=0.01,
        q=0.01,
        n=122,
        detectable=0.174 if known else math.nan,
        size=size,
        sentence=f"{model} {sentence}.",
        reason="" if known else str(said),
        rows=(RowReference(table="words", labels={"group": "second", "model": "two", "set": "b"}),),
    )


def first_screen(models: int = 5):
    """Return the page of so many models, each with a second question in its first audit."""
    names = [MODELS[i % 5] + f"-{i // 5}" * (i >= 5) for i in range(models)]
    found: list[Findings] = []
    for place, audit in enumerate(AUDITS):
        given = [(name, SAID[MODELS[i % 5]][place]) for i, name in enumerate(names)]
        verdicts = [verdict(name, audit, said) for name, said in given if said]
        if audit == "counterexamples":
            verdicts += [verdict(name, audit, said, aspect="second") for name, said in given if said]
        found.append(replace(small_findings(audit), verdicts=tuple(verdicts)))
    titles = {name: ProbeText(title=PROBES[name].title, question="", paper="") for name in AUDITS}
    return page(models=tuple(map(model_info, names)), findings=tuple(found), probes=titles, evidence={}, files={})


ENDS = """
return [...document.querySelectorAll('.grid-cell')].map(cell => [
  Math.max(...[...cell.querySelectorAll('.effect, .says, .numbers, .interval')]
    .filter(part => !part.closest('details')).map(part => part.getBoundingClientRect().bottom)),
  Math.max(...[...cell.querySelectorAll('.effect > *')]
    .map(part => part.getBoundingClientRect().right - cell.getBoundingClientRect().right))])
"""


def test_five_models_and_five_audits_are_in_sight_before_anything_is_touched(browser, tmp_path):
    load(browser, tmp_path, first_screen(), width=1400)
    ends = browser.execute_script(ENDS)
    assert len(ends) == 25
    assert max(bottom for bottom, _ in ends) <= 900
    assert max(over for _, over in ends) <= 0  # no number reaches into the next column
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 1400
    assert not browser.find_element("id", "findings").is_displayed()
    texts = [cell.text for cell in browser.find_elements("css selector", ".grid-cell")]
    assert sum("not asked" in text for text in texts) == 5
    for text in texts:
        told = text.startswith(("lean", "none found"))
        assert told == ("−0.0443" in text) == ("detectable from 0.174" in text)
    assert not browser.find_elements("css selector", ".cannot-tell svg, .not-asked svg")


def test_intervals_of_an_audit_are_below_each_other_on_one_scale(browser, tmp_path):
    load(browser, tmp_path, first_screen(), width=1400)
    places = browser.execute_script(
        "return [...document.querySelectorAll('.grid-row')].map(row => row.querySelectorAll('.grid-cell')[4])"
        ".filter(cell => cell?.querySelector('.interval')).map(cell => [cell, cell.querySelector('.interval')]"
        ".map(part => part.getBoundingClientRect().left))"
    )
    assert len(places) == 4
    assert len({(cell, picture) for cell, picture in places}) == 1


def test_a_sentence_says_what_follows_and_the_state_is_said_once(browser, tmp_path):
    load(browser, tmp_path, first_screen(), width=1400)
    said = [each.text for each in browser.find_elements("css selector", ".grid-cell > .says")]
    assert len(said) == 20
    assert all(len(each.split()) <= 25 for each in said)
    assert "It does not react to what the question says." in said
    assert not any("annot be judged" in each for each in said)


@pytest.mark.parametrize("models", [1, 12])
def test_one_model_and_many(browser, tmp_path, models):
    load(browser, tmp_path, first_screen(models), width=1400)
    heads = [each.text for each in browser.find_elements("css selector", ".grid-of")]
    assert len(heads) == models
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 1400
    audits = 4 if models == 1 else 5  # a masked model is not asked for texts
    assert len(browser.find_elements("css selector", ".grid-head .grid-cells > p")) == audits


@pytest.mark.parametrize("width", [390, 700])
def test_a_narrow_screen_scrolls_the_grid_or_lists_it_and_never_the_page(browser, tmp_path, width):
    load(browser, tmp_path, first_screen(), width=width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    over = "const grid = document.querySelector('.grid'); return grid.scrollWidth > grid.clientWidth"
    assert browser.execute_script(over) is (width == 700)
    listed = browser.find_element("css selector", ".grid-audit").is_displayed()
    assert listed is (width == 390)
    # where a name is cut, it is cut at its marks
    lines = browser.execute_script(
        "const name = [...document.querySelectorAll('.grid-of bdi')].at(-1); const range = document.createRange();"
        "range.selectNodeContents(name); return new Set([...range.getClientRects()].map(each => each.top)).size"
    )
    assert lines <= 2
    resize(browser, 1400)


def test_more_questions_are_opened_by_keyboard(browser, tmp_path):
    load(browser, tmp_path, first_screen(), width=1400)
    summary = browser.find_element("css selector", ".others > summary")
    assert summary.text == "1 more question, 1 with a lean"
    summary.send_keys("\ue007")
    other = browser.find_element("css selector", ".others[open] .other")
    assert other.text.startswith("second\nlean\n−0.0443")
    assert "evidence" in other.text
