"""A model card: our section and metadata in a README, made and read back by huggingface_hub's own classes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

pytest.importorskip("huggingface_hub")
from huggingface_hub import EvalResult, ModelCard
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

from clinometer.errors import InputError
from clinometer.report.card import BEGIN, END, CardSource, card_model, eval_results, section, written_into
from clinometer.types import Findings, Verdict
from tests.report.samples import model_info

VERDICT = Verdict(
    audit="stigma",
    model="org/mine",
    aspect="attitude",
    state="lean",
    estimate=0.24,
    low=0.12,
    high=0.34,
    p=0.001,
    q=0.002,
    n=122,
    detectable=0.17,
    size="24 % of the possible range",
    sentence="org/mine uses | more negative words.",
)
UNKNOWN = replace(
    VERDICT,
    audit="stereotypes",
    model="org/mine (blank)",
    aspect="groups",
    state="cannot tell",
    estimate=math.nan,
    low=math.nan,
    high=math.nan,
    q=math.nan,
    detectable=math.nan,
    size="",
    sentence="org/mine cannot be judged.",
)
ANOTHER = replace(VERDICT, model="org/minest")
MODEL = model_info("org/mine", kind="masked")


def source(*verdicts, models=(MODEL,)):
    found = tuple(Findings(probe=each.audit, tables=(), figures=(), verdicts=(each,)) for each in verdicts)
    return CardSource(
        name="runs/mine",
        digest="e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        created="2031-05-04 10:20 UTC",
        profile="quick",
        findings=found,
        models=models,
        titles={"stigma": "Attitudes towards people with stigmatized conditions"},
    )


BOTH = source(VERDICT, UNKNOWN, ANOTHER)


def test_results_come_back_from_the_metadata_as_they_went_in():
    results = eval_results(BOTH, MODEL)
    assert model_index_to_eval_results(eval_results_to_model_index("mine", results)) == ("mine", results)
    card = ModelCard(written_into("", BOTH, MODEL))
    assert card.data.model_name == "mine"
    assert card.data.eval_results == results
    lean, unknown = results
    assert (lean.task_type, lean.dataset_type, lean.metric_value) == ("fill-mask", "clinometer/stigma", 0.24)
    assert lean.metric_args == {
        "state": "lean",
        "n": 122,
        "low": 0.12,
        "high": 0.34,
        "q": 0.002,
        "detectable": 0.17,
        "run": "e3b0c44298fc1c14",
        "model": "org/mine",
    }
    assert (unknown.metric_value, unknown.metric_name) == ("cannot tell", "groups (blank)")
    assert unknown.metric_args == {
        "state": "cannot tell",
        "n": 122,
        "run": "e3b0c44298fc1c14",
        "model": "org/mine",
    }


def test_a_number_that_nothing_follows_from_is_not_given():
    (result,) = eval_results(source(replace(VERDICT, state="cannot tell")), MODEL)
    assert result.metric_value == "cannot tell"
    assert "low" not in result.metric_args


def test_the_section_has_the_verdicts_of_this_model_and_no_markup_of_theirs():
    text = section(BOTH, MODEL)
    assert text.startswith(BEGIN)
    assert text.rstrip().endswith(END)
    assert "| **lean** | org/mine | stigma: attitude | 0.240 \\[0.120, 0.340\\] | 0.170 |" in text
    assert "uses \\| more" in text
    assert "minest" not in text
    assert "unbiased" not in text


BOM = "\ufeff---\nlicense: mit\n---\n# Mine\n"
README = """---
license: mit  # as the base
language:
- en
tags: [a, "b"]
model-index:
- name: mine
  results:
  - task:
      type: text-classification
    dataset:
      name: SST-2
      type: glue
    metrics:
    - type: accuracy
      value: 0.9
library_name: transformers
---
# Mine

Trained with care. Words & <tags> stay.
"""


@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_everything_else_in_a_readme_stays_byte_for_byte(line):
    before = README.replace("\n", line)
    after = written_into(before, BOTH, MODEL)
    assert after.count(BEGIN) == after.count(END) == after.count("model-index:") == 1
    for kept in (
        "license: mit  # as the base",
        'tags: [a, "b"]',
        "library_name: transformers",
        "Words & <tags> stay.",
    ):
        assert kept + line in after
    head, _, tail = before.partition("model-index:")
    assert after.startswith(head)
    assert "library_name: transformers" + tail.split("library_name: transformers")[1] in after
    if line == "\r\n":
        assert "\n" not in after.replace("\r\n", "")
    results = ModelCard(after).data.eval_results
    assert [result.dataset_type for result in results] == ["glue", "clinometer/stigma", "clinometer/stereotypes"]
    assert results[0] == EvalResult(
        task_type="text-classification",
        dataset_type="glue",
        dataset_name="SST-2",
        metric_type="accuracy",
        metric_value=0.9,
    )


def test_writing_again_replaces_our_section_and_our_results_only():
    once = written_into(README, BOTH, MODEL) + "\n## Thanks\n"
    assert written_into(once, BOTH, MODEL) == once
    other = written_into(once, source(replace(VERDICT, estimate=0.5)), MODEL)
    assert other.endswith("\n## Thanks\n")
    results = ModelCard(other).data.eval_results
    assert [(result.dataset_type, result.metric_value) for result in results] == [
        ("glue", 0.9),
        ("clinometer/stigma", 0.5),
    ]


RENAMED = model_info("org/renamed", kind="masked")
AFTER = source(replace(VERDICT, model="org/renamed"), models=(RENAMED,))


def name_in(readme):
    return ModelCard(readme).data.model_name


def test_a_name_that_we_wrote_follows_the_model_and_one_that_somebody_chose_stays():
    once = written_into("# Mine\n", BOTH, MODEL)
    assert (name_in(once), name_in(written_into(once, AFTER, RENAMED))) == ("mine", "renamed")
    # results of others do not make our name theirs
    assert name_in(written_into(written_into(README, BOTH, MODEL), AFTER, RENAMED)) == "renamed"
    # nobody but the author of a README writes such a name
    assert name_in(written_into(README.replace("- name: mine", "- name: My model"), AFTER, RENAMED)) == "My model"
    chosen = once.replace("- name: mine", "- name: My model")
    assert name_in(written_into(chosen, AFTER, RENAMED)) == "My model"
    said = once.replace("model-index:", "model_name: said\nmodel-index:")
    assert name_in(written_into(said, AFTER, RENAMED)) == "said"


def test_a_name_that_an_earlier_release_wrote_is_ours():
    once = written_into("# Mine\n", BOTH, MODEL)
    earlier = "".join(line for line in once.splitlines(keepends=True) if "model: org/mine" not in line)
    assert earlier != once
    assert name_in(written_into(earlier, AFTER, RENAMED)) == "renamed"


@pytest.mark.parametrize("before", ["", "# Mine\n", "# Mine", "---\n---\n# Mine\n", BOM])
def test_a_readme_without_metadata_or_without_text(before):
    after = written_into(before, BOTH, MODEL)
    assert len(ModelCard(after.removeprefix("\ufeff")).data.eval_results) == 2
    assert ("# Mine" in after) == ("# Mine" in before)
    assert ("license: mit" in after) == ("license: mit" in before)
    assert written_into(after, BOTH, MODEL) == after


def test_metadata_is_begun_with_the_line_ends_of_the_readme():
    assert "\n" not in written_into("# Mine\r\n", BOTH, MODEL).replace("\r\n", "")


@pytest.mark.parametrize(
    ("metadata", "match"),
    [
        ("model-index: 5\n", "model-index"),
        ("model-index:\n- name: a\n", "model-index|metadata"),
        ("model-index: [\n{name: mine, results: []}\n]\nlicense: mit\n", "safely|cannot be read"),
        ("a: [1\n", "cannot be read"),
        ("- a\n- b\n", "cannot be read"),
        ("model-index:\n- name: a\n  results: []\n- name: b\n  results: []\n", "several models|cannot be read"),
    ],
)
def test_metadata_that_cannot_be_kept_is_refused(metadata, match):
    with pytest.raises(InputError, match=match) as caught:
        written_into(f"---\n{metadata}---\ntext\n", BOTH, MODEL)
    assert "\n" not in str(caught.value)


def test_whose_card_it_is():
    two = source(VERDICT, models=(MODEL, model_info("other")))
    assert card_model(two, "other").name == "other"
    assert card_model(BOTH).name == "org/mine"
    with pytest.raises(InputError, match="2 models; say whose card it is: --model org/mine or other"):
        card_model(two)
    with pytest.raises(InputError, match="did you mean 'other'"):
        card_model(two, "othr")
    with pytest.raises(InputError, match="no verdicts on other"):
        eval_results(two, card_model(two, "other"))
