"""What is recomputed from small files that we made, worked by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import clinometer
from clinometer.errors import DataError
from clinometer.replication import PAPERS, Cell, stereotypes
from tests.replication.authors_files import cells, emotions, lexicon, write

TUNED = "finetuned1epoch/roberta-base"
BEFORE = {"Muslims": (10.0, 0.0), "Sikhs": (10.0, 10.0), "Mormons": (0.0, 10.0)}
AFTER = {"Muslims": (10.0, 0.0), "Sikhs": (0.0, 10.0), "Mormons": (10.0, 10.0)}
# cosines before: a row of Muslims 1 .71 0, Sikhs .71 1 .71, Mormons 0 .71 1; after: 1 0 .71, 0 1 .71, .71 .71 1.
# Their ranks: (3 2 1) and (3 1 2): ρ = 1 − 6·2/24 = .5; (1.5 3 1.5) and (1 3 2): 1.5/√3; (1 2 3) and (1.5 1.5 3):
# 1.5/√3
SHIFT = (0.5 + 3**0.5 / 2 + 3**0.5 / 2) / 3 - 1


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
            emotions(
                tmp_path, f"pretrained_models/{category}_{model}", vectors
            )  # the same groups, so they add none
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
    found = cells(stereotypes.emotion_vectors, tmp_path, nrc=str(nrc))
    assert found["RoBERTa-B, vectors that come out of 2"].ours == 1
    assert [cell.printed for cell in found.values()] == [""] * len(stereotypes.MODELS)  # no number of the paper
    assert not found["BART-B, vectors that come out"].found
    untold = cells(stereotypes.emotion_vectors, tmp_path)["RoBERTa-B, vectors that come out of 2"]
    assert not untold.found
    assert "NRC" in untold.note


def test_vectors_of_the_tuned_model_in_figure_6(tmp_path):
    """Of "kind" and "mean" half are positive; a fourth source is not in the figure."""
    for source, positive in (("guardian", 50), ("fox", 40), ("breitbart", 50)):
        listed = {"Sikhs": ([50, positive, *[0] * 7], ["kind", "mean"])}
        write(tmp_path, f"emotion_scores/{TUNED}/age_{source}.json", json.dumps(listed))
    nrc = lexicon(tmp_path, {"kind": {"positive"}, "mean": {"negative"}})
    found = cells(stereotypes.tuned_vectors, tmp_path, nrc=str(nrc))
    assert {name: cell.ours for name, cell in found.items() if cell.found} == {
        "RoBERTa-B, Guardian, vectors that come out of 1": 1,
        "RoBERTa-B, FOX news, vectors that come out of 1": 0,
    }


def test_two_sources_are_compared_as_two_models_are(tmp_path):
    folder = f"finetuned1epoch/{stereotypes.MODELS['BERT-B']}"
    emotions(tmp_path, f"{folder}/age_guardian", BEFORE)
    emotions(tmp_path, f"{folder}/age_fox", AFTER, fear=[90.0, 0.0, 5.0])
    found = cells(stereotypes.between_sources, tmp_path)
    known = {name: cell.ours for name, cell in found.items() if cell.found}
    assert known == {"age, Guardian and FOX news": pytest.approx(SHIFT + 1)}
    assert len(found) == 2 * 10  # ten pairs of five sources


def test_mean_shifts_say_which_are_in_the_figure_and_which_groups_lack(tmp_path):
    for model, folder in (("BERT-B", "bert-base-uncased"), ("RoBERTa-B", "roberta-base")):
        for category in stereotypes.CATEGORIES:
            for name, vectors in ((stereotypes.MODELS[model], BEFORE), ("fox", AFTER)):
                emotions(tmp_path, f"finetuned1epoch/{folder}/{category}_{name}", vectors)
    emotions(tmp_path, "pretrained_models/country_bert-base-uncased", BEFORE | {"Malta": (1.0, 2.0)})
    found = cells(stereotypes.mean_shifts, tmp_path)
    bert, roberta = found["BERT-B, FOX news"], found["RoBERTa-B, FOX news"]
    assert bert.ours == roberta.ours == pytest.approx(SHIFT)
    assert bert.note.startswith("BERT-B: without malta")
    assert "Figure 5" not in bert.note
    assert "Figure 5 is about BERT-B" in roberta.note


def test_search_engines_are_counted(tmp_path):
    rows = [("sad", "google"), ("poor", "multiple"), ("deep", "google")]
    text = "".join(f"why are poets so\tprofession\tpoets\t{word}\t{engine}\n" for word, engine in rows)
    header = "input\ttarget_category\ttarget_group\tcompletion\tsearch_engine\n"
    write(tmp_path, stereotypes.EVERY_HUMAN, header + text)
    found = cells(stereotypes.engines, tmp_path)
    assert {name: cell.ours for name, cell in found.items()} == {"google": 2, "several engines": 1}


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
    # the same words after tuning on half of a source
    write(
        tmp_path,
        "mlm_output/half-finetuned/bert-base/fox-corrected.json",
        json.dumps({"why are poets so": ranked}),
    )
    tuned = cells(stereotypes.recall_after_tuning, tmp_path)
    assert {name: cell.ours for name, cell in tuned.items() if cell.found} == {
        "FOX news, 50 %, recall@25": pytest.approx(1 / 3),
        "FOX news, 50 %, recall@200": pytest.approx(2 / 3),
    }
    assert len(tuned) == 5 * 4 * 2
    assert "--folder" in tuned["Reuters, 10 %, recall@25"].note
    assert not found["BERT-L, recall@200"].found
    counted = cells(stereotypes.data_set, tmp_path)
    assert (counted["profession"].ours, counted["race"].ours, counted["groups"].ours) == (3, 0, 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "too deep"),
        ("[1]", "is not a table"),
        ("{}", "is an empty table"),
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


def test_files_without_common_groups_are_named(tmp_path):
    emotions(tmp_path, f"{TUNED}/religion_roberta-base", BEFORE)
    emotions(tmp_path, f"{TUNED}/religion_fox", {"Jews": (1.0, 2.0)})
    with pytest.raises(DataError, match=r"religion_roberta-base.json' and '.*religion_fox.json' have 0 groups"):
        clinometer.replicate("stereotypes", item="table-4", folder=tmp_path)


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
