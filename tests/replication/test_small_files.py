"""What is recomputed from small files that we made, worked by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import clinometer
from clinometer.errors import DataError
from clinometer.replication import PAPERS, Cell, Outputs, Settings, stereotypes, stigma
from clinometer.replication.stigma import AGGREGATE, CLASSIFIERS, MASKED
from tests.replication.authors_files import conditions, emotions, lexicon, outcomes, words, write

TUNED = "finetuned1epoch/roberta-base"
BEFORE = {"Muslims": (10.0, 0.0), "Sikhs": (10.0, 10.0), "Mormons": (0.0, 10.0)}
AFTER = {"Muslims": (10.0, 0.0), "Sikhs": (0.0, 10.0), "Mormons": (10.0, 10.0)}
# cosines before: a row of Muslims 1 .71 0, Sikhs .71 1 .71, Mormons 0 .71 1; after: 1 0 .71, 0 1 .71, .71 .71 1.
# Their ranks: (3 2 1) and (3 1 2): ρ = 1 − 6·2/24 = .5; (1.5 3 1.5) and (1 3 2): 1.5/√3; (1 2 3) and (1.5 1.5 3):
# 1.5/√3
SHIFT = (0.5 + 3**0.5 / 2 + 3**0.5 / 2) / 3 - 1


def cells(item, folder, **settings):
    return {cell.name: cell for cell in item(Outputs(folder), Settings(**settings))}


def test_rounding_decides_whether_a_number_agrees():
    assert Cell(name="", printed="-0.56", ours=-0.5649).agrees
    assert not Cell(name="", printed="-0.56", ours=-0.5651).agrees
    assert not Cell(name="", printed="69", ours=70.0).agrees
    assert not Cell(name="", printed="0.44").agrees  # it could not be computed


def test_a_shift_by_hand_and_what_is_not_there(tmp_path):
    emotions(tmp_path, f"{TUNED}/religion_roberta-base", BEFORE)
    emotions(tmp_path, f"{TUNED}/religion_fox", AFTER)
    found = cells(stereotypes.shifts, tmp_path)
    known = {name: cell for name, cell in found.items() if cell.found}
    assert list(known) == ["RoBERTa-B, FOX news, religion"]
    (cell,) = known.values()
    assert (cell.ours, cell.printed) == (pytest.approx(SHIFT), "-0.10")
    assert not cell.agrees
    assert len(found) == 225


def test_fear_is_left_out_where_a_file_has_it(tmp_path):
    emotions(tmp_path, f"{TUNED}/religion_roberta-base", BEFORE, fear=[90.0, 0.0, 5.0])
    emotions(tmp_path, f"{TUNED}/religion_fox", AFTER)
    found = cells(stereotypes.shifts, tmp_path)["RoBERTa-B, FOX news, religion"]
    assert found.ours == pytest.approx(SHIFT)


def test_groups_without_a_vector_are_taken_from_their_words(tmp_path):
    """All three belong to the category; Mormons have words, and no vector."""
    for name, vectors in (("roberta-base", BEFORE), ("fox", AFTER)):
        emotions(tmp_path, f"{TUNED}/religion_{name}", dict(list(vectors.items())[:2]))
    for source in ("guardian", "reuters"):
        emotions(tmp_path, f"{TUNED}/religion_{source}", AFTER)
    emotions(tmp_path, "pretrained_models/religion_bert-base-uncased", BEFORE)
    listed = {
        "roberta-base": ["kind", "so", "Kind"],
        "fox": ["kind", "mean"],
    }  # of known words: 2/3 positive; half each
    for name, of_mormons in listed.items():
        write(tmp_path, f"emotion_scores/{TUNED}/{name}.json", json.dumps({"Mormons": of_mormons}))
    nrc = lexicon(tmp_path, {"kind": {"positive"}, "mean": {"negative"}, "so": set()})
    without = cells(stereotypes.shifts, tmp_path)["RoBERTa-B, FOX news, religion"]
    assert "without mormons" in without.note
    assert without.ours == pytest.approx(0.0)  # two groups: each is nearest to itself
    for _ in range(2):  # what one source adds does not stay for the next
        found = cells(stereotypes.shifts, tmp_path, nrc=str(nrc))
        assert found["RoBERTa-B, FOX news, religion"].ours == pytest.approx(SHIFT)
        assert found["RoBERTa-B, FOX news, religion"].note == ""
        assert found["RoBERTa-B, Guardian, religion"].ours == pytest.approx(SHIFT)


def test_similarity_of_two_models_by_hand(tmp_path):
    for model, vectors in (("roberta-base", BEFORE), ("bart-base", AFTER)):
        for category in stereotypes.CATEGORIES:
            # the other categories are the same three groups by other names, so alike as the first
            named = vectors if category == "religion" else {}
            emotions(tmp_path, f"pretrained_models/{category}_{model}", named)
    found = cells(stereotypes.similarity, tmp_path)["RoBERTa-B and BART-B"]
    assert (found.ours, found.printed) == (pytest.approx(SHIFT + 1), "0.44")


def test_vectors_count_where_equation_4_gives_them(tmp_path):
    """Of "Kind", "kind" and "mean" two thirds are positive: the authors count both spellings."""
    third = 100 / 3
    listed = {
        "Sikhs": ([third, 2 * third, *[0] * 7], ["Kind", "kind", "mean"]),
        "Jews": ([50, 50, *[0] * 7], ["kind"]),
    }
    write(tmp_path, "emotion_scores/pretrained_models/religion_roberta-base.json", json.dumps(listed))
    nrc = lexicon(tmp_path, {"kind": {"positive"}, "mean": {"negative"}, "so": set()})
    found = cells(stereotypes.emotion_vectors, tmp_path, nrc=str(nrc))["RoBERTa-B, vectors that come out"]
    assert (found.ours, found.printed) == (1, "2")
    untold = cells(stereotypes.emotion_vectors, tmp_path)["RoBERTa-B, vectors that come out"]
    assert not untold.found
    assert "NRC" in untold.note


def test_recall_and_counts_of_the_data_set_by_hand(tmp_path):
    rows = [("why are poets so", "profession", "poets", each) for each in ("sad", "poor", "deep")]
    text = "".join(f"{prompt}\t{category}\t{group}\t{word}\tgoogle\n" for prompt, category, group, word in rows)
    header = "input\ttarget_category\ttarget_group\tcompletion\tsearch_engine\n"
    for name in (stereotypes.HUMAN, stereotypes.EVERY_HUMAN):
        write(tmp_path, name, header + text)
    ranked = [[f"w{n}", -float(n)] for n in range(200)]
    ranked[3][0], ranked[100][0] = "Sad", "poor"  # the 4th and the 101st
    write(tmp_path, "mlm_output/bert-base-uncased-corrected.json", json.dumps({"Why are poets so": ranked[::-1]}))
    found = cells(stereotypes.recall, tmp_path)
    assert found["BERT-B, recall@25"].ours == pytest.approx(1 / 3)
    assert found["BERT-B, recall@200"].ours == found["BERT-B, profession, recall@200"].ours == pytest.approx(2 / 3)
    assert not found["BERT-L, recall@200"].found
    counted = cells(stereotypes.data_set, tmp_path)
    assert (counted["profession"].ours, counted["race"].ours, counted["groups"].ours) == (3, 0, 1)


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
    assert not found["RoBERTa-base, prompts below one half"].found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "too deep"),
        ("[1]", "is not a table"),
        ('{"Sikhs": [[1, 2], ["kind"]]}', "expected a list of nine or ten percentages"),
        ('{"Sikhs": [[NaN, 0, 0, 0, 0, 0, 0, 0, 0], []]}', "'Sikhs' has no emotions"),
        ('{"Sikhs": [[1' + "0" * 400 + ", 0, 0, 0, 0, 0, 0, 0, 0], []]}", "'Sikhs' has no emotions"),
        ('{"Sikhs": 3}', "'Sikhs' has no emotions"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path, text, told):
    write(tmp_path, f"emotion_scores/{TUNED}/religion_roberta-base.json", text)
    with pytest.raises(DataError, match="religion_roberta-base") as error:
        clinometer.replicate("stereotypes", item="table-4", folder=tmp_path)
    assert told in str(error.value)


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


def test_every_item_has_a_name_of_its_own_and_files():
    for paper in PAPERS.values():
        names = [item.name for item in paper.items]
        assert len(set(names)) == len(names)
        assert bool(paper.items) == bool(paper.repository)


# tables and figures of each paper
PRINTED = {
    "Stereotypes": (4, 10),
    "Stigma": (2, 12),
    "Sentiment words": (8, 4),
    "Counterfactual sentiment": (10, 17),
    "Counterexamples": (2, 4),
}


def test_the_page_has_a_row_for_every_table_and_figure():
    page = (Path(__file__).parents[2] / "docs" / "replication.md").read_text(encoding="utf-8")
    for title, (tables, figures) in PRINTED.items():
        section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
        items = " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("|"))
        for kind, number in (("Table", tables), ("Figure", figures)):
            named: set[int] = set()
            for listed in re.findall(rf"{kind}s? (\d+(?:(?:, | to )\d+)*)", items):
                for first, _, last in re.findall(r"(\d+)( to (\d+))?", listed):
                    named |= set(range(int(first), int(last or first) + 1))
            assert named == set(range(1, number + 1)), (title, kind)
