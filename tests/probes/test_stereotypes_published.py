"""The audit's measures on the authors' own files, where these are present."""

import json
import math
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from fake_stereotypes import FakeAttributes, conclude, fake, groups_file, lexicon_file, row_of

from clinometer.data.stereotypes_data import load_published_values, read_human_stereotypes
from clinometer.metrics import emotion_profile, recall_at_k, representational_similarity
from clinometer.probes.stereotypes import Options, answers

DATA = Path(os.environ["CLINOMETER_TEST_DATA"])
# the order of the authors' vectors
ORDER = ("negative", "positive", "disgust", "anger", "sadness", "trust", "joy", "surprise", "anticipation")
CASED = ("roberta-base", "bart-base", "xlm-roberta-base")
TUNED = "emotion_scores/finetuned1epoch/bert-base-uncased"
FIGURE_5 = {"new_yorker": -0.427, "guardian": -0.327, "reuters": -0.573, "fox": -0.332, "breitbart": -0.330}
CATEGORIES = ["religion", "profession", "lifestyle", "sexuality", "race", "gender", "country", "age", "political"]


@pytest.fixture(scope="module", autouse=True)
def models_of_six_words():
    """Models so small that lists can be written by hand; the gate would ask for more different words."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "BEYOND_CHANCE", 0.0)
        patch.setattr(answers, "RANDOM_SHARE", {"complete": 0.0, "emotional": 0.0})
        yield


@pytest.fixture(scope="module")
def archive():
    file = DATA / "published" / "stereotypes_in_lms.tar.xz"
    if not file.is_file():
        pytest.skip("needs published/stereotypes_in_lms.tar.xz in the folder $CLINOMETER_TEST_DATA")
    with tarfile.open(file) as packed:
        wanted = [
            *(f"emotion_scores/pretrained_models/{each}_{model}" for each in CATEGORIES for model in CASED),
            *(f"{TUNED}/{each}_{name}" for each in CATEGORIES for name in ("bert-base-uncased", *FIGURE_5)),
            "mlm_output/bert-base-uncased-corrected",
            "mlm_output/bert-base-uncased_priors",
        ]
        files = {member.name: packed.extractfile(member).read() for member in packed if member.isfile()}
    return {f"{name}.json": json.loads(files[f"stereotypes_in_lms/{name}.json"]) for name in wanted}


def test_all_published_vectors_come_out(archive):
    """374 groups in each of three cased models; 416 of the lists hold a word in two spellings."""
    lexicon = DATA / "lexicons" / "NRC-Emotion-Lexicon-Wordlevel-v0.92.txt"
    if not lexicon.is_file():
        pytest.skip("needs the NRC lexicon in the folder $CLINOMETER_TEST_DATA")
    words = Options(emotions="published", emotions_file=str(lexicon)).chosen_lexicon().words
    equal = {True: 0, False: 0}
    groups = twice = 0
    for model in CASED:
        for category in CATEGORIES:
            for vector, listed in archive[f"emotion_scores/pretrained_models/{category}_{model}.json"].values():
                groups += 1
                twice += len({word.lower() for word in listed}) < len(listed)
                for distinct in equal:
                    profile = emotion_profile(listed, words, emotions=ORDER, distinct=distinct)
                    equal[distinct] += np.allclose(100 * profile.vector, vector)
    assert (groups, twice, equal[False], equal[True]) == (1122, 416, 1122, 706)


def test_figure_5_is_the_mean_over_categories(archive):
    for source, mean in FIGURE_5.items():
        shifts = []
        for category in CATEGORIES:
            before, after = (archive[f"{TUNED}/{category}_{name}.json"] for name in ("bert-base-uncased", source))
            both = [group for group in before if group in after]
            vectors = [[each[group][0] for group in both] for each in (before, after)]
            shifts.append(representational_similarity(*vectors).mean - 1)
        assert np.mean(shifts) == pytest.approx(mean, abs=0.0005)
        assert 0.05 < np.std(shifts, ddof=1) < 0.2


def test_re_ranking_lowers_recall_in_the_authors_own_outputs(archive):
    human = DATA / "stereotypes" / "single_word_stereo_dataset.csv"
    if not human.is_file():
        pytest.skip("needs the human stereotypes in the folder $CLINOMETER_TEST_DATA")
    gold: dict[str, set[str]] = {}
    for row in read_human_stereotypes(human):
        gold.setdefault(row.prompt.strip().lower(), set()).add(row.attribute)
    scores = archive["mlm_output/bert-base-uncased-corrected.json"]
    priors = archive["mlm_output/bert-base-uncased_priors.json"]
    # a score is the log of posterior over prior: adding the prior's log gives the model's own order
    orders = {
        "after": {prompt: sorted(words, key=lambda each: -each[1]) for prompt, words in scores.items()},
        "before": {
            prompt: sorted(words, key=lambda each: -each[1] - math.log(priors[each[0]]))
            for prompt, words in scores.items()
        },
    }
    recall = {
        name: recall_at_k({prompt: [word for word, _ in words] for prompt, words in ranked.items()}, gold, ks=[25])
        for name, ranked in orders.items()
    }
    assert (recall["before"][25], recall["after"][25]) == (
        pytest.approx(0.273, abs=5e-4),
        pytest.approx(0.215, abs=5e-4),
    )


def test_the_printed_values_are_those_of_table_4():
    values = load_published_values()
    assert len(values) == 5 * 5 * 9
    assert (min(each.value for each in values), max(each.value for each in values)) == (-0.86, -0.08)
    assert {each.model for each in values} >= {"BERT-B, NewYorker", "XLMR-B, BreitBart"}


# ---- spellings, by hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("emotions", "negative", "n"), [("paper", 1 / 2, 2), ("published", 2 / 3, 3)])
def test_spellings_count_once_or_each(tmp_path, emotions, negative, n):
    words = {"Smart": 1.0, "mean": 5.0, "Mean": 3.0}
    options = {
        "groups_file": groups_file(tmp_path, {"kids": "age", "nurses": "profession"}),
        "emotions_file": lexicon_file(tmp_path, {"smart": {"positive"}, "mean": {"negative"}, "so": set()}),
    }
    found, _ = conclude(fake(FakeAttributes(words)), **options, emotions=emotions)
    row = row_of(found, "emotions", group="kids", emotion="negative")
    assert (row.estimate, row.n) == (pytest.approx(negative), n)
    # the share of positive ones follows: negativity 0 of two words, or 1/3 of three
    assert row_of(found, "negativity", group="kids").labels["negativity"] == pytest.approx(2 * negative - 1)


def test_the_authors_read_serious_for_seriousness(tmp_path):
    file = lexicon_file(tmp_path, {"seriousness": {"fear", "sadness"}, "so": set()})
    assert "serious" not in Options(emotions_file=file).chosen_lexicon().words
    published = Options(emotions_file=file, emotions="published").chosen_lexicon().words
    assert published["serious"] == {"fear", "sadness"}
