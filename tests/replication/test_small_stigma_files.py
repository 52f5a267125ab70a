"""What is recomputed of the stigma paper from small files that we made, worked by hand."""

from __future__ import annotations

import pytest

import clinometer
from clinometer.errors import DataError
from clinometer.replication import stigma
from clinometer.replication.stigma import AGGREGATE, CLASSIFIERS, MASKED
from tests.replication.authors_files import cells, conditions, outcomes, words, write

ALL = ("NEG", "negative")
LABELS = {  # negative of two: homeless 2, sick 1; rich 0, slim 1: .75 − .25
    "homeless": ALL, "sick": ("NEGATIVE", "neutral"), "rich": ("POS", "NEU"), "slim": ("neg", "positive"),
}  # fmt: skip
CALM = {"homeless": ALL, "sick": ("POS", "POS"), "rich": ("POS", "POS"), "slim": ("POS", "POS")}  # .5 − 0


def stigma_files(folder, *, classifiers):
    conditions(folder)
    for number, model in enumerate(classifiers):
        outcomes(folder, model, CALM if number == 3 else LABELS)
    # of eight outcomes: homeless 8, sick 3, rich 0, slim 3
    write(
        folder,
        AGGREGATE,
        "Condition,Negative_Sentiment_Percentage\nHomeless,1\nSick,0.375\nRich,0\nslim,0.375\n",
    )


def test_classifiers_by_hand(tmp_path):
    stigma_files(tmp_path, classifiers=list(CLASSIFIERS))
    found = cells(stigma.differences, tmp_path)
    assert [cell.ours for cell in found.values()] == [pytest.approx(0.5)] * 4
    counted = cells(stigma.conditions_found_negative, tmp_path)
    assert [cell.ours for cell in counted.values()] == [1, 1, 0, 0] * 2
    assert [cell.printed for cell in counted.values()] == ["27", "69", "1", "3"] * 2


def test_the_fourth_classifier_follows_from_the_sums(tmp_path):
    stigma_files(tmp_path, classifiers=list(CLASSIFIERS)[:3])
    # all four sum to homeless 8, sick 3, slim 3; less three times 2, 1, 1: homeless 2, sick 0, slim 0
    found = cells(stigma.differences, tmp_path)
    assert not found["SiEBERT, difference"].found
    derived = found["SiEBERT, difference, by the authors' sums"]
    assert (derived.ours, derived.printed) == (pytest.approx(0.5), "0.28")
    counted = cells(stigma.conditions_found_negative, tmp_path)
    assert [cell.found for cell in counted.values()] == [False] * 4 + [True] * 4


def test_a_number_that_is_printed_once_counts_once(tmp_path):
    """With all four outcomes the conditions are counted twice, from them and from the sums."""
    stigma_files(tmp_path, classifiers=list(CLASSIFIERS))
    whole = clinometer.replicate("stigma", item="section-5.2", folder=tmp_path)
    assert [cell.printed for cell in whole.items[0].cells] == ["27", "69", "1", "3"] * 2
    assert [cell.printed for cell in whole.compared] == ["27", "69", "1", "3"]
    assert [cell["counted"] for cell in whole.as_json()["items"][0]["cells"]] == [True] * 4 + [False] * 4
    (tmp_path / stigma.OUTCOMES / "SiEBERT_stigma_sentiment.csv").unlink()
    sums = clinometer.replicate("stigma", item="section-5.2", folder=tmp_path)
    assert [cell.name.endswith("the authors' sums") for cell in sums.compared] == [True] * 4


def test_outcomes_by_template(tmp_path):
    """Of the two stigmatized conditions the first template makes one negative, the second both."""
    conditions(tmp_path)
    told = {"homeless": ("NEG", "NEG"), "sick": ("NEU", "NEG"), "rich": ("POS", "POS"), "slim": ("NEU", "POS")}
    outcomes(tmp_path, "BERTweet", told)
    for template, expected in (("They are", (0.5, 0.5, 0, 0, 0.5, 0.5)), ("These are", (1, 0, 0, 0, 0, 1))):
        found = cells(stigma.outcomes_by_template(template), tmp_path)
        assert [cell.ours for name, cell in found.items() if name.startswith("BERTweet")] == list(expected)
        assert next(iter(found)) == "DistilBERT SST-2, stigmatized conditions, negative"
        assert not found["DistilBERT SST-2, stigmatized conditions, negative"].found


def test_sums_count_each_wording_once(tmp_path):
    """Of the fourth classifier both sentences about the homeless are negative, and two of four about the sick."""
    conditions(tmp_path, more={"ill": "Sick"})
    calm = dict.fromkeys(("homeless", "sick", "ill", "rich", "slim"), ("POS", "POS"))
    for model in list(CLASSIFIERS)[:3]:
        outcomes(tmp_path, model, calm)
    sums = "Homeless,0.25\nSick,0.125\nRich,0\nSlim,0\n"  # 2 of 8, 2 of 16
    write(tmp_path, AGGREGATE, f"Condition,Negative_Sentiment_Percentage\n{sums}")
    derived = cells(stigma.differences, tmp_path)["SiEBERT, difference, by the authors' sums"]
    assert derived.ours == pytest.approx(4 / 6)


def test_nearly_all_is_not_only(tmp_path):
    conditions(tmp_path)
    rows = "Homeless,0.9375\nSick,0.5\nRich,0\nSlim,1\n"
    write(tmp_path, AGGREGATE, f"Condition,Negative_Sentiment_Percentage\n{rows}")
    counted = cells(stigma.conditions_found_negative, tmp_path)
    assert [cell.ours for cell in counted.values() if cell.found] == [0, 1, 1, 1]  # one half is not more than half
    write(tmp_path, AGGREGATE, "Condition,Negative_Sentiment_Percentage\nHomeless,1\n")
    with pytest.raises(DataError, match="no row for 'Sick'"):
        clinometer.replicate("stigma", item="section-5.2", folder=tmp_path)


def test_each_item_lists_its_own_missing_files(tmp_path):
    conditions(tmp_path)
    for item in clinometer.replicate("stigma", folder=tmp_path).items:
        place = {"section-5.1": stigma.BLANKS, "figure-5": stigma.BLANKS}.get(item.name, "Sentiment")
        assert item.missing
        assert all(place in name for name in item.missing), item


def test_attitudes_by_hand(tmp_path):
    conditions(tmp_path)
    rated = write(tmp_path, "ratings.csv", "word,label\nbad,NEG\ngood,POS\n")
    for number, model in enumerate(MASKED):
        words(tmp_path, model, {"rich": 0.2, "slim": 0.6 if number else 0.3})
    found = cells(stigma.attitudes, tmp_path, ratings=str(rated))
    assert found["RoBERTa-large, mean negative attitude to other conditions"].ours == pytest.approx(0.25)
    assert found["other conditions above one half, all six models"].ours == 1  # slim: (.3 + 5 · .6)/6 = .55
    assert found["the highest, Slim, all six models"].ours == pytest.approx(0.55)
    held = cells(stigma.held_by_the_words, tmp_path)
    assert [cell.ours for cell in held.values()] == [0] * 6  # "bad" and "good" hold all
    (tmp_path / stigma.BLANKS / MASKED["DistilBERT"].format(3)).unlink()
    fewer = cells(stigma.attitudes, tmp_path, ratings=str(rated))
    assert not fewer["other conditions above one half, all six models"].found
    assert fewer["the highest, Slim, 5 of six models"].ours == pytest.approx((0.3 + 4 * 0.6) / 5)
    assert "our ratings" in cells(stigma.attitudes, tmp_path)["the highest, Slim, 5 of six models"].note


def test_prompts_whose_words_hold_little_are_counted(tmp_path):
    conditions(tmp_path)
    words(tmp_path, "DistilBERT", {"rich": 0.2, "slim": 0.6})
    for template in (1, 2, 3):  # of eight prompts three lose "good": .2 is left
        file = tmp_path / stigma.BLANKS / MASKED["DistilBERT"].format(template)
        file.write_text("".join(line for line in file.read_text().splitlines(True) if "Good,0.8" not in line))
    found = cells(stigma.held_by_the_words, tmp_path)
    assert found["DistilBERT, prompts of 8 below one half"].ours == 3
    assert not found["DistilBERT, prompts of 8 below one half"].printed  # it is a statement about more prompts
    assert not found["RoBERTa-base, prompts below one half"].found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("They are people who are rich.", "They are people who are new."),
            "about one of the authors' conditions",
        ),
        (("neg", "mixed"), "positive, negative or neutral"),
        (("They are people who are rich.", "We are people who are rich."), "no outcome for 'rich'"),
    ],
)
def test_damaged_outcomes_are_refused(tmp_path, change, told):
    stigma_files(tmp_path, classifiers=list(CLASSIFIERS))
    file = tmp_path / stigma.OUTCOMES / "distilbert_nonstigma_sentiment.csv"
    assert change[0] in file.read_text()
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(DataError, match=told):
        clinometer.replicate("stigma", item="figure-4", folder=tmp_path)


@pytest.mark.parametrize(
    ("side", "plural"),
    [("distilbert_stigma_sentiment.csv", "sick"), ("distilbert_nonstigma_sentiment.csv", "slim")],
)
def test_a_cut_off_file_of_outcomes_is_named(tmp_path, side, plural):
    stigma_files(tmp_path, classifiers=list(CLASSIFIERS))
    file = tmp_path / stigma.OUTCOMES / side
    file.write_text("".join(line for line in file.read_text().splitlines(True) if f"are {plural}." not in line))
    with pytest.raises(DataError, match=f"{side}' has no outcome for '{plural}'"):
        clinometer.replicate("stigma", item="figure-4", folder=tmp_path)


def test_a_cut_off_file_of_words_is_named(tmp_path):
    conditions(tmp_path)
    words(tmp_path, "DistilBERT", {"rich": 0.2, "slim": 0.6})
    file = tmp_path / stigma.BLANKS / MASKED["DistilBERT"].format(2)
    file.write_text("".join(line for line in file.read_text().splitlines(True) if "who is slim" not in line))
    with pytest.raises(DataError, match=r"top50-p2\.csv' has 0 prompts about 'slim'; expected 1"):
        clinometer.replicate("stigma", item="section-5.1", folder=tmp_path)
