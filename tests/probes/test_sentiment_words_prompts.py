"""What the sentiment-words audit asks, verbatim, and that it never holds what it asks."""

import itertools
import math
from dataclasses import replace

import polars as pl
import pytest
from fake_records import MemoryRecords, fake_model, plan_for
from fake_sentiment import FakeSentiment, ask_sentiment, write_reviews, write_words

from clinometer.data.sentiment_lexicons import load_neutral_words, vader_words
from clinometer.errors import DataError, SpecError
from clinometer.probes import get_probe
from clinometer.probes.protocol import Stage
from clinometer.probes.sentiment_words import PROBE, Options
from clinometer.probes.sentiment_words.questions import candidates, choose_words
from clinometer.probes.sentiment_words.words import general_notices
from clinometer.questions import items_of
from clinometer.spec import build
from clinometer.types import Fill


def small(
    tmp_path,
    *,
    words="wow,positive\nyay,positive\nugh,negative\nmeh,negative\ncup,neutral\ntea,neutral",
    **options,
):
    listed = tmp_path / "words.csv"
    listed.write_text(f"word,label\n{words}\n")
    reviews = tmp_path / "reviews.csv"
    rows = "\n".join(f"{label},{label} {'very ' * i}film" for i in range(10) for label in ("positive", "negative"))
    reviews.write_text(f"label,text\n{rows}\n")
    given = {
        "words_file": str(listed),
        "reviews_file": str(reviews),
        "reviews_per_class": 10,
        "ks": (1, 2),
    } | options
    return plan_for(PROBE, **given)


def asked_in(plan, name, *, unknown=()):
    records = ask_sentiment(PROBE, plan, FakeSentiment(unknown=unknown))
    return list(items_of(PROBE.questions(Stage(name=name), plan, records)))


def test_the_three_stages_verbatim(tmp_path):
    plan = small(tmp_path)
    # how many words are appended is not known before the vocabulary has been asked
    sizes = {stage.name: stage.size for stage in PROBE.stages(plan)}
    assert list(sizes.items()) == [("vocabulary", 1), ("association", 20), ("shift", 0)]
    (vocabulary,) = PROBE.questions(Stage(name="vocabulary"), plan, None)
    words = set(vocabulary.request.words)
    assert words == {"wow", "yay", "ugh", "meh", "cup", "tea", "great", "terrible"}
    assert vocabulary.request == Fill(text="It was [MASK]", words=vocabulary.request.words)

    association = asked_in(plan, "association")
    assert len(association) == 20
    first = association[0]
    # shortest first, equal ones by name
    assert [item.request.context for item in association[:3]] == [
        "negative film",
        "positive film",
        "negative very film",
    ]
    assert first.tags == {"template": "It was [MASK]", "review": 0, "label": "negative", "source": "reviews.csv"}
    assert (first.request.text, first.request.normalise) == ("It was [MASK]", "vocabulary")
    assert set(first.request.words) == words

    shift = asked_in(plan, "shift")
    assert len(shift) == 2 * 2 * 20  # words × ks × reviews
    texts = {(item.tags["word"], item.tags["k"]): item.request.text for item in shift}
    assert texts == {
        ("cup", 1): "cup It was [MASK]",
        ("cup", 2): "cup cup It was [MASK]",
        ("tea", 1): "tea It was [MASK]",
        ("tea", 2): "tea tea It was [MASK]",
    }
    assert {item.request.context for item in shift[:4]} == {"negative film"}  # words change fastest
    assert {(item.request.words, item.request.normalise) for item in shift} == {(("great", "terrible"), "words")}
    assert set(shift[0].tags) == {"template", "word", "k", "review"}


def test_further_templates_and_label_words(tmp_path):
    templates, labels = ("It was [MASK]", "Just [MASK]!"), ("great/terrible", "good/bad")
    plan = small(tmp_path, templates=templates, labels=labels)
    association, shift = asked_in(plan, "association"), asked_in(plan, "shift")
    assert [item.tags["template"] for item in association] == [templates[0]] * 20 + [templates[1]] * 20
    assert [stage.size for stage in PROBE.stages(plan)][1] == len(association)
    assert {"good", "bad"} < set(association[0].request.words)
    # other label words are asked about with the main ones, other templates only when wanted
    assert {item.request.words for item in shift} == {("great", "terrible", "good", "bad")}
    assert {item.tags["template"] for item in shift} == {templates[0]}
    assert len(asked_in(small(tmp_path, templates=templates, shift_templates=True), "shift")) == 2 * 80


@pytest.mark.parametrize(("which", "words"), [("neutral", 2), ("all", 6), ("none", 0)])
def test_which_words_are_appended(tmp_path, which, words):
    plan = small(tmp_path, shift_words=which)
    records = ask_sentiment(PROBE, plan, FakeSentiment())
    assert len(choose_words(plan, records).shift) == words
    assert (("fake", "shift") in records.tables) == (words > 0)


def test_words_that_are_not_one_token_are_dropped_and_named(tmp_path):
    plan = small(tmp_path)
    records = ask_sentiment(PROBE, plan, FakeSentiment(unknown=("cup", "wow")))
    words = choose_words(plan, records)
    assert words.used == {"positive": ("yay",), "negative": words.used["negative"], "neutral": ("tea",)}
    assert [each.word for each in words.dropped["neutral"]] == ["cup"]
    assert words.scorable == {"positive": 1, "negative": 2, "neutral": 1}
    # the shift test only appends a word, so it may have several tokens
    shift = items_of(PROBE.questions(Stage(name="shift"), plan, records))
    assert {item.tags["word"] for item in shift} == {"cup", "tea"}


def test_a_list_of_all_words_goes_before_a_neutral_file_and_says_so(tmp_path):
    """A data set that the user has added is named in `neutral_file` without being asked for."""
    added = tmp_path / "added.txt"
    added.write_text("spoon\nfork\n")
    plan = small(tmp_path, neutral_file=str(added))
    assert {each.word for each in plan.options.listed_words()["neutral"]} == {"cup", "tea"}
    assert any(
        "'added.txt'" in notice.text and "not used" in notice.text for notice in general_notices(plan.options, 0)
    )


def test_a_neutral_file_is_joined_to_the_printed_words(tmp_path):
    added = tmp_path / "added.txt"
    added.write_text("spoon\nfork\ndeadly\n")  # "deadly" is printed
    options = Options(neutral_file=str(added))
    printed = [each.word for each in load_neutral_words()]
    neutral = [each.word for each in options.listed_words()["neutral"]]
    assert neutral == [*printed, "spoon", "fork"]
    # the printed ones are taken first, whatever the seed
    for seed in range(3):
        order = [each.word for each in candidates(options, seed=seed)["neutral"]]
        assert set(order[: len(printed)]) == set(printed)
        assert set(order[len(printed) :]) == {"spoon", "fork"}
    assert any(
        "printed in the paper's tables" in n.text and "'added.txt'" in n.text for n in general_notices(options, 0)
    )


@pytest.mark.parametrize(("first", "second", "main"), [(1.0, 1.0, 0), (0.0, 1.0, 1), (0.0, 0.0, 0)])
def test_the_shift_test_uses_the_first_template_that_shows_sentiment(tmp_path, first, second, main):
    templates = ("It was [MASK]", "It was [MASK].")
    reviews = write_reviews(tmp_path / "many.csv", per_class=60)
    words = write_words(tmp_path / "sensed.csv", neutral=3)
    plan = small(tmp_path, templates=templates, reviews_file=reviews, reviews_per_class=60)
    plan = replace(plan, options=replace(plan.options, words_file=words))
    fakes = (FakeSentiment(sense=first, seed=3), FakeSentiment(sense=second, seed=3))
    records = ask_sentiment(PROBE, plan, lambda request: fakes[request.text.endswith(".")](request))
    asked = items_of(PROBE.questions(Stage(name="shift"), plan, records))
    assert {item.tags["template"] for item in asked} == {templates[main]}


def test_words_behind_the_last_that_is_used_are_not_called_dropped(tmp_path):
    listed = {"positive": "abc", "negative": "de", "neutral": "fg"}
    words = "\n".join(f"{word},{label}" for label, each in listed.items() for word in each)
    plan = small(tmp_path, words_per_class=2, words=words)
    order = [each.word for each in candidates(plan.options, seed=plan.seed)["positive"]]
    for unknown, dropped in ((order[2], []), (order[1], [order[1]])):
        records = ask_sentiment(PROBE, plan, FakeSentiment(unknown=(unknown,)))
        assert [each.word for each in choose_words(plan, records).dropped["positive"]] == dropped


def test_without_label_words_nothing_is_shifted(tmp_path):
    plan = small(tmp_path)
    assert asked_in(plan, "shift", unknown=("terrible",)) == []
    two = small(tmp_path, labels=("great/terrible", "good/bad"))
    assert {item.request.words for item in asked_in(two, "shift", unknown=("terrible",))} == {("good", "bad")}


def test_built_in_lists_take_the_strongest_words_that_the_model_has(tmp_path):
    plan = plan_for(PROBE, words_per_class=400, shift_words="none", reviews_per_class=10)
    strongest = [each.word for each in vader_words(sign="positive")]
    records = MemoryRecords()
    stage = Stage(name="vocabulary")
    (item,) = PROBE.questions(stage, plan, records)
    lost = set(strongest[:3])
    answer = FakeSentiment(unknown=lost)(item.request)
    records.tables["fake", "vocabulary"] = pl.DataFrame(
        {"got_words": [list(answer.words)], "got_logprobs": [list(answer.logprobs)]}
    )
    words = choose_words(plan, records)
    neutral = {each.word for each in load_neutral_words()}
    kept = [word for word in strongest[3:] if word.lower() not in {each.lower() for each in neutral}]
    assert words.used["positive"] == tuple(kept[:400])
    assert {each.word for each in words.dropped["positive"]} == lost  # not those behind the last that is used
    assert set(words.used["neutral"]) == neutral
    assert not neutral & set(words.used["positive"] + words.used["negative"])  # precious, screaming, …


def test_the_papers_size_is_asked_without_being_held(tmp_path):
    """400 × 3 × 4,000 = 4.8 million prompts, and 4,000 for the association test."""
    reviews = write_reviews(tmp_path / "reviews.csv", per_class=2000)
    words = write_words(tmp_path / "words.csv", positive=400, negative=400, neutral=400)
    options = PROBE.profiles["paper"] | {"reviews_file": reviews, "words_file": words}
    plan = plan_for(PROBE, **options)
    records = MemoryRecords()
    (item,) = PROBE.questions(Stage(name="vocabulary"), plan, records)
    records.tables["fake", "vocabulary"] = pl.DataFrame(
        {"got_words": [list(item.request.words)], "got_logprobs": [[-1.0] * len(item.request.words)]}
    )
    assert sum(1 for _ in PROBE.questions(Stage(name="association"), plan, records)) == 4_000
    asked = items_of(PROBE.questions(Stage(name="shift"), plan, records))
    window = list(itertools.islice(asked, 16_384))  # what the engine plans together
    per_review = sum(item.tags["review"] == 0 for item in window)
    assert per_review == 1_200
    assert per_review * len(plan.options.chosen_reviews(0)) == 4_800_000
    lengths = [len(item.request.context) for item in window]
    assert max(lengths) - min(lengths) <= 1  # requests that are batched together differ by their words only
    assert len({id(item.request.context) for item in window}) == math.ceil(16_384 / 1_200)  # one object a review
    assert len({id(item.request.words) for item in window}) == 1


def test_a_sample_of_words_is_the_same_for_models_with_other_vocabularies(tmp_path):
    words = write_words(tmp_path / "words.csv", neutral=60)
    reviews = write_reviews(tmp_path / "reviews.csv", per_class=10)
    options = {
        "words_file": words,
        "reviews_file": reviews,
        "reviews_per_class": 10,
        "ks": (1,),
        "shift_words_limit": 12,
    }
    found = {}
    for name, unknown in (("one", ()), ("two", [f"plain{i}" for i in range(5)])):
        plan = plan_for(PROBE, model=fake_model(name), **options)
        found[name] = set(choose_words(plan, ask_sentiment(PROBE, plan, FakeSentiment(unknown=unknown))).shift)
    assert {len(chosen) for chosen in found.values()} == {12}
    assert found["one"] - set(unknown) <= found["two"]
    other = plan_for(PROBE, seed=1, **options)
    assert set(choose_words(other, ask_sentiment(PROBE, other, FakeSentiment())).shift) != found["one"]


def test_profiles_are_valid_options_and_the_paper_profile_is_the_papers():
    assert get_probe("sentiment_words") is PROBE
    options = {name: build(Options, values, where=name) for name, values in PROBE.profiles.items()}
    paper = options["paper"]
    assert (paper.words_per_class, paper.reviews_per_class, paper.longest_review) == (400, 2000, 0)
    assert (paper.ms, paper.ks, paper.shift_words_limit) == ((0.5, 1.0, 1.5), (5, 10, 15), 0)
    assert (paper.templates, paper.main_m, paper.pairs[0].name) == (("It was [MASK]",), 1.0, "great/terrible")
    for name in ("quick", "standard"):
        assert options[name].templates == ("It was [MASK]", "It was [MASK].")
    given = build(Options, {"ms": [2, 1], "ks": [7, 3]}, where="options")
    assert (given.ms, given.ks) == ((1.0, 2.0), (3, 7))  # sorted, so that the main m is the middle one


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("templates", ["It was"], "exactly one"),
        ("templates", ["[MASK] [MASK]"], "exactly one"),
        ("templates", ["[MASK] [HIDDEN]"], "exactly one"),
        ("templates", [1], "string"),
        ("templates", [], "at least 1 item"),
        ("templates", ["It was [MASK]"] * 2, "each once"),
        ("labels", ["great"], "a positive and a negative word"),
        ("labels", ["great/great"], "a positive and a negative word"),
        ("labels", ["great/"], "a positive and a negative word"),
        ("labels", ["great/ terrible"], "a positive and a negative word"),
        ("labels", ["good/bad"] * 2, "each once"),
        ("ms", [-1], "greater than or equal to 0"),
        ("ms", [101], "less than or equal to 100"),
        ("ms", [float("nan")], "finite number"),
        ("ms", [True], "valid number"),
        ("ms", [1, 1.0], "each once"),
        ("ks", [0], "greater than or equal to 1"),
        ("ks", [101], "less than or equal to 100"),
        ("ks", [True], "valid integer"),
        ("ks", [], "at least 1 item"),
        ("shift_words", "nuetral", "'neutral', 'all' or 'none'"),
        ("shift_words_limit", 1, "2 and more"),
        ("shift_words_limit", -1, "greater than or equal to 0"),
        ("reviews_per_class", 5, "greater than or equal to 10"),
        ("words_per_class", 1, "greater than or equal to 2"),
        ("longest_review", -1, "greater than or equal to 0"),
        ("draws", 10, "greater than or equal to 100"),
        ("draws", 100_001, "less than or equal to 100000"),
        ("shift_templates", 1, "valid boolean"),
        ("words_file", 3, "valid string"),
    ],
)
def test_options_that_cannot_be_used_are_named(option, value, message):
    with pytest.raises(SpecError, match=rf"options\.sentiment_words: {option}\b.*{message}"):
        build(Options, {option: value}, where="options.sentiment_words")


def test_lists_without_a_class_and_too_few_reviews_are_refused_before_anything_is_asked(tmp_path):
    with pytest.raises(DataError, match="0 negative words; expected at least 2"):
        PROBE.check(small(tmp_path, words="wow,positive\nyay,positive\ncup,neutral\ntea,neutral").options)
    with pytest.raises(DataError, match="asked for 10 reviews"):
        PROBE.check(small(tmp_path, longest_review=3).options)  # "positive very film" and shorter: two of each


def test_a_file_with_fewer_reviews_than_asked_for_gives_all_it_has(tmp_path):
    options = small(tmp_path, reviews_per_class=11).options  # the file has 10 of each class
    PROBE.check(options)
    assert len(options.chosen_reviews(seed=0)) == 20
    texts = [notice.text for notice in general_notices(options, 0)]
    assert any("11 reviews of each class were asked for; 10 have texts that differ" in text for text in texts)
