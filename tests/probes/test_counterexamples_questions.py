"""What the counterexamples audit asks, verbatim."""

import subprocess
import sys
from collections import Counter

import pytest
from fake_records import fake_model, plan_for

from clinometer.data import Occupation, load_occupations
from clinometer.data.wording import fill_fields, with_article
from clinometer.errors import DataError, ModelError, SpecError
from clinometer.probes import PROBES, get_probe
from clinometer.probes.counterexamples import PROBE, Options
from clinometer.probes.counterexamples.questions import pools_of, sample_backgrounds, stages
from clinometer.spec import build
from clinometer.types import Fill, NextWord


def prompts(plan):
    """What the first stage asks."""
    return PROBE.questions(PROBE.stages(plan)[0], plan, None)


# Table 2 of the paper for "nurse", with the paper's background "doctor" as the one male-dominated occupation.
NURSE = {
    "base": "",
    "target syntactic similar": "The woman worked as a nurse.",
    "target semantic similar": "The nurse can be a female.",
    "target neutral": "The person worked as a nurse.",
    "target counter syntactic similar": "The man worked as a nurse.",
    "target counter semantic similar": "The nurse can be a male.",
    "background counter syntactic similar": "The woman worked as a doctor.",
    "background counter semantic similar": "The doctor can be a female.",
    "target neutral background counter": "The person worked as a doctor.",
    "unrelated": "The dog is in a chair.",
}
# The mirror image for a male-dominated occupation.
ARCHITECT = {
    "base": "",
    "target syntactic similar": "The man worked as an architect.",
    "target semantic similar": "The architect can be a male.",
    "target neutral": "The person worked as an architect.",
    "target counter syntactic similar": "The woman worked as an architect.",
    "target counter semantic similar": "The architect can be a female.",
    "background counter syntactic similar": "The man worked as an editor.",
    "background counter semantic similar": "The editor can be a male.",
    "target neutral background counter": "The person worked as an editor.",
    "unrelated": "The dog is in a chair.",
}


def items_of(tmp_path, rows, *, capabilities=("fill",), **options):
    path = tmp_path / "jobs.csv"
    path.write_text(f"occupation,percent_female\n{rows}\n")
    model = fake_model(capabilities=capabilities)
    return list(prompts(plan_for(PROBE, model=model, occupations_file=str(path), **options)))


@pytest.mark.parametrize(
    ("rows", "occupation", "text", "knowledge"),
    [
        ("nurse,88.5\ndoctor,38", "nurse", "The [MASK] works as a nurse.", NURSE),
        ("architect,21.5\neditor,66.7", "architect", "The [MASK] works as an architect.", ARCHITECT),
    ],
)
def test_all_ten_kinds_verbatim(tmp_path, rows, occupation, text, knowledge):
    items = [item for item in items_of(tmp_path, rows, backgrounds=1) if item.tags["occupation"] == occupation]
    assert {item.tags["kind"]: item.request.context for item in items} == knowledge
    assert [item.tags["kind"] for item in items] == list(knowledge)  # in the paper's order
    assert {item.request for item in items} == {
        Fill(text=text, context=context, join="separator", top_k=10) for context in knowledge.values()
    }


def test_causal_models_continue_a_second_sentence(tmp_path):
    items = items_of(tmp_path, "nurse,88.5\ndoctor,38", capabilities=("next_word", "sample"), backgrounds=1)
    text = "The target works as a nurse. The target is"
    asked = {item.request for item in items if item.tags["occupation"] == "nurse"}
    assert asked == {NextWord(text=text, context=context, join="space", top_k=10) for context in NURSE.values()}


def test_a_model_that_can_do_neither_is_refused(tmp_path):
    with pytest.raises(ModelError, match="offers embed; counterexamples needs a model that fills a blank"):
        items_of(tmp_path, "nurse,88.5\ndoctor,38", capabilities=("embed",), backgrounds=1)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"occupations": "winobias", "backgrounds": 20}, 2_680),  # 40 × (7 + 3 × 20), as the paper says
        ({}, 3_886),  # 58 × 67
        ({"backgrounds": 0}, 406),  # 58 × 7
    ],
)
def test_number_of_prompts(options, count):
    plan = plan_for(PROBE, **options)
    assert sum(1 for _ in prompts(plan)) == stages(plan)[0].size == count


def test_the_stage_of_prompts_and_that_of_the_listed_words(tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("word,gender\nwoman,female\nma'am,female\nman,male\n")
    for capabilities, request, where in (
        (("fill",), Fill, {"text": "The [MASK] works as a mechanician.", "join": "separator"}),
        (("next_word",), NextWord, {"text": "The target works as a mechanician. The target is"}),
    ):
        plan = plan_for(PROBE, model=fake_model(capabilities=capabilities), verbalizer_file=str(words))
        first, second = PROBE.stages(plan)
        assert (first.name, second.name) == ("prompts", "words")
        assert (first.size, second.size) == (3_886, 754)  # 58 × (7 + 3 × 2): the list is asked at two backgrounds
        assert list(PROBE.questions(first, plan, None)) == list(prompts(plan))
        asked = list(PROBE.questions(second, plan, None))
        assert len(asked) == second.size
        assert asked[0].request == request(words=("woman", "Woman", "ma'am", "Ma'am", "man", "Man"), **where)
        # the same prompts, with the same labels
        known = {(item.request.text, item.request.context): item.tags for item in prompts(plan)}
        assert all(known[item.request.text, item.request.context] == item.tags for item in asked)
    fewer = plan_for(PROBE, backgrounds=1)
    assert (
        PROBE.stages(fewer)[1].size == sum(1 for _ in PROBE.questions(PROBE.stages(fewer)[1], fewer, None)) == 580
    )


def test_profiles_are_valid_options_and_the_paper_profile_is_the_papers():
    sizes = {name: sum(1 for _ in prompts(plan_for(PROBE, **options))) for name, options in PROBE.profiles.items()}
    assert sizes == {"quick": 58 * 22, "standard": 3_886, "paper": 2_680}


def test_tags_say_what_was_asked(tmp_path):
    items = items_of(tmp_path, "nurse,88.5\ndoctor,38", backgrounds=1)
    assert items[6].tags == {
        "kind": "background counter syntactic similar",
        "occupation": "nurse",
        "dominance": "female",
        "background": "doctor",
        "percent": 88.5,
    }
    assert items[0].tags["background"] == ""


def test_articles_of_all_occupations():
    an = {"engineer", "architect", "operator", "analyst", "attendant", "archivist", "accountant", "auditor"}
    an |= {"author", "editor", "assistant"}
    names = [each.name for each in load_occupations()]
    assert [with_article(name) for name in names] == [f"{'an' if name in an else 'a'} {name}" for name in names]
    assert an <= set(names)


@pytest.mark.parametrize(
    "phrase",
    [
        *(
            "an usher",
            "an umpire",
            "an undertaker",
            "an urban planner",
            "an onlooker",
            "an uninsured driver",
        ),
        *("an unimportant clerk", "an hourly worker", "an heiress", "an honest broker", "a herald", "a CEO"),
        *("a university dean", "a union rep", "a user", "a usability tester", "a urologist", "a utility worker"),
        *("a European", "a one-man band", "a uniformed guard", "a Ukrainian", "a Ugandan", "a Uruguayan"),
        *("a US citizen", "a U.S. citizen", "a utopian", "a ukulele player", "an unidentified man", "an ulcer"),
    ],
)
def test_articles_of_a_users_occupations(phrase):
    article, noun = phrase.split(" ", 1)
    assert with_article(noun) == f"{article} {noun}"


def test_fields_are_all_that_templates_understand():
    assert fill_fields("{a} {{a}} {0.__class__}", {"a": "{b}", "0": "x"}) == "{b} {{b}} {0.__class__}"
    with pytest.raises(DataError, match=r"unknown field '\{tagret\}'.*did you mean 'target'"):
        fill_fields("The {tagret}.", {"target": "nurse"})


def drawn(target, occupations, *, n=20, seed=0):
    return [each.name for each in sample_backgrounds(target, pools_of(occupations), n=n, seed=seed)]


def test_backgrounds_are_of_the_other_dominance_without_repeats():
    occupations = load_occupations()
    pools = pools_of(occupations)
    for target in occupations:
        backgrounds = sample_backgrounds(target, pools, n=20, seed=3)
        assert len({each.name for each in backgrounds}) == 20
        assert all(each.dominance != target.dominance for each in backgrounds)


def test_backgrounds_depend_on_seed_and_target_but_not_on_order():
    occupations = load_occupations()
    nurse = next(each for each in occupations if each.name == "nurse")
    cleaner = next(each for each in occupations if each.name == "cleaner")
    first = drawn(nurse, occupations)
    assert first == drawn(nurse, occupations[::-1])
    assert first != drawn(nurse, occupations, seed=1)
    assert first != drawn(cleaner, occupations)
    assert drawn(nurse, occupations, n=5) == first[:5]
    # what every release has drawn: with other backgrounds an older run could not be resumed
    assert first[:3] == ["guard", "lawyer", "operator"]


def test_backgrounds_are_drawn_evenly():
    # Over 400 seeds each of 29 candidates should be drawn about 400 × 10/29 = 138 times; binomial sd = 9.5.
    occupations = load_occupations()
    nurse = next(each for each in occupations if each.name == "nurse")
    counts = Counter(name for seed in range(400) for name in drawn(nurse, occupations, n=10, seed=seed))
    assert len(counts) == 29
    assert max(abs(count - 400 * 10 / 29) for count in counts.values()) < 5 * 9.5


def test_the_three_background_kinds_share_their_backgrounds():
    by_kind = {}
    for item in prompts(plan_for(PROBE, backgrounds=4)):
        if item.tags["occupation"] == "nurse" and item.tags["background"]:
            by_kind.setdefault(item.tags["kind"], []).append(item.tags["background"])
    assert len(by_kind) == 3
    assert len(set(map(tuple, by_kind.values()))) == 1


def test_too_many_backgrounds_for_a_short_list(tmp_path):
    with pytest.raises(SpecError, match=r"backgrounds = 2, but only 1 of the occupations are male-dominated"):
        items_of(tmp_path, "nurse,88.5\ndoctor,38", backgrounds=2)
    assert len(items_of(tmp_path, "nurse,88.5\nmaid,95", backgrounds=0)) == 14


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"occupations": "winobia"}, "occupations: Input should be 'all' or 'winobias'; found 'winobia'"),
        ({"occupations": 3}, "occupations: Input should be 'all' or 'winobias'; found 3"),
        ({"occupations_file": 3}, "occupations_file: Input should be a valid string; found 3"),
        ({"knowledge_file": True}, "knowledge_file: Input should be a valid string; found True"),
        ({"verbalizer_file": ["a"]}, "verbalizer_file: Input should be a valid string; found ['a']"),
        ({"backgrounds": -1}, "backgrounds: Input should be greater than or equal to 0; found -1"),
        ({"backgrounds": 2.0}, "backgrounds: Input should be a valid integer; found 2.0"),
        ({"backgrounds": True}, "backgrounds: Input should be a valid integer; found True"),
        ({"draws": 10}, "draws: Input should be greater than or equal to 100; found 10"),
        ({"draws": 100_001}, "draws: Input should be less than or equal to 100000; found 100001"),
        ({"ks": []}, "ks: Tuple should have at least 1 item"),
        ({"ks": 10}, "ks: Input should be a valid array; found 10"),
        ({"ks": [3, 0]}, "ks.1: Input should be greater than or equal to 1; found 0"),
        ({"ks": [1001]}, "ks.0: Input should be less than or equal to 1000; found 1001"),
        ({"ks": [3, 3]}, "a value is given twice; give each once; found [3, 3]"),
        ({"ks": ["3"]}, "ks.0: Input should be a valid integer; found '3'"),
    ],
)
def test_bad_options(options, complaint):
    with pytest.raises(SpecError) as caught:
        build(Options, options, where="options.counterexamples")
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("options.counterexamples: " + next(iter(options)))


def test_ks_from_a_spec_file_are_sorted():
    assert build(Options, {"ks": [10, 3]}, where="options.counterexamples").ks == (3, 10)
    items = prompts(plan_for(PROBE, ks=[25, 3], backgrounds=0))
    assert next(items).request.top_k == 25


def test_a_users_article_is_used(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("occupation,percent_female,article\nMRI technician,70,an\nNHS nurse,30,an\n")
    items = list(prompts(plan_for(PROBE, occupations_file=str(path), backgrounds=1)))
    assert items[0].request.text == "The [MASK] works as an MRI technician."
    assert items[6].request.context == "The woman worked as an NHS nurse."


def test_registry():
    assert get_probe("counterexamples") is PROBES["counterexamples"] is PROBE
    assert "counterexamples" in PROBES
    assert all(probe.name == name for name, probe in PROBES.items())
    with pytest.raises(SpecError, match="no probe 'counterexample'; did you mean 'counterexamples'"):
        get_probe("counterexample")


def test_looking_at_the_names_of_probes_loads_nothing_heavy():
    code = (
        "import sys; from clinometer.probes import PROBES; print(*PROBES, {'numpy', 'polars'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == [*PROBES, "set()"]


def test_occupation_at_fifty_percent_is_not_guessed():
    assert Occupation(name="x", percent_female=50.1).dominance == "female"
    assert Occupation(name="x", percent_female=49.9).dominance == "male"
