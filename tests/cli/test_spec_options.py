"""The options of a command become the spec that they describe."""

from __future__ import annotations

import pytest

import clinometer
from clinometer.cli.spec_options import spec_from_options
from clinometer.errors import SpecError
from clinometer.types import ModelSpec
from clinometer.workflows.specs import default_models, describe_audit, new_run_folder


def spec(**changes):
    plain = {
        "models": ["org/a", "builtin:masked"], "probes": ["counterexamples"], "profile": "quick", "seed": 0,
        "dtype": "auto", "settings": [], "shortcuts": {}, "roles": {}, "label_maps": [], "trusted": [],
    }  # fmt: skip
    return spec_from_options(**{**plain, **changes})


def test_a_label_map_belongs_to_the_model_that_it_names():
    found = spec(label_maps=["org/a:LABEL_0=negative,LABEL_1=positive", "builtin:masked:x y=neutral"])
    assert dict(found.models[0].label_map) == {"LABEL_0": "negative", "LABEL_1": "positive"}
    assert dict(found.models[1].label_map) == {"x y": "neutral"}


def test_one_model_need_not_be_named_in_a_label_map():
    found = spec(models=["org/a"], label_maps=["0=negative,1=positive"])
    assert dict(found.models[0].label_map) == {"0": "negative", "1": "positive"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("org/a", "expected MODEL:"),
        ("LABEL_0=negative", "say which model it is for"),
        ("org/b:LABEL_0=negative", "'org/b' is not a model of this audit"),
        ("org/a:LABEL_0=negative,LABEL_1", "'LABEL_1' is not LABEL=class"),
    ],
)
def test_a_label_map_that_cannot_be_read(given, words):
    with pytest.raises(SpecError, match=words):
        spec(label_maps=[given])


def test_flags_of_one_audit_become_its_options():
    found = spec(shortcuts={"sentiment_words": {"templates": ["It was [MASK]."], "reviews_file": None}})
    assert found.options == {"sentiment_words": {"templates": ["It was [MASK]."]}}


def test_an_option_by_flag_and_by_set_is_refused():
    with pytest.raises(SpecError, match=r"sentiment_words\.labels is given twice"):
        spec(
            settings=["sentiment_words.labels=good/bad"],
            shortcuts={"sentiment_words": {"labels": ["great/terrible"]}},
        )


def test_models_beside_the_audited_one_get_their_label_maps():
    found = spec(
        roles={"scorer": ["org/s", "builtin:sentiment"], "encoder": None}, label_maps=["org/s:a=positive"]
    )
    assert [model.name for model in found.roles["scorer"]] == ["org/s", "builtin:sentiment"]
    assert dict(found.roles["scorer"][0].label_map) == {"a": "positive"}
    assert set(found.roles) == {"scorer"}


@pytest.mark.parametrize(
    ("models", "audits"),
    [
        (["builtin:masked"], {"counterexamples", "sentiment_words", "stereotypes", "stigma"}),
        (["builtin:opinion-words"], {"counterfactual", "sentiment_words", "stigma"}),
        (
            ["builtin:masked", "builtin:sentiment"],
            {"counterexamples", "counterfactual", "sentiment_words", "stereotypes", "stigma"},
        ),
    ],
)
def test_without_a_probe_those_are_run_that_can_ask_the_models(models, audits):
    assert set(spec(models=models, probes=None).probes) == audits


def test_both_doors_describe_the_same_audit_by_the_same_spec():
    scorer = ModelSpec(name="org/s", label_map={"a": "positive"})
    called = describe_audit(
        ["org/a", ModelSpec(name="builtin:masked")],
        probes=["counterexamples"],
        profile="quick",
        seed=7,
        options={"counterexamples": {"backgrounds": 3}},
        roles={"scorer": [scorer]},
        where="audit()",
    )
    typed = spec(
        seed=7,
        settings=["counterexamples.backgrounds=3"],
        roles={"scorer": ["org/s"], "encoder": None},
        label_maps=["org/s:a=positive"],
    )
    assert called.spec == typed


def test_a_wrong_value_is_refused_under_the_name_of_its_door():
    with pytest.raises(SpecError, match=r"command line: models\.0\.dtype: .*found 'float8'"):
        spec(dtype="float8")
    with pytest.raises(SpecError, match=r"audit\(\): seed"):
        clinometer.audit("org/a", probes=["stigma"], seed="7")


def test_a_trusted_model_must_be_one_of_the_audit():
    found = spec(trusted=["org/a"])
    assert [model.trust_remote_code for model in found.models] == [True, False]
    with pytest.raises(SpecError, match="org/b: not a model of this audit; did you mean 'org/a'"):
        spec(trusted=["org/b"])


def test_without_a_model_each_audit_brings_its_own_in_the_order_of_the_audits():
    scorers = ["builtin:sentiment", "builtin:opinion-words"]
    assert default_models(["counterfactual", "stereotypes"]) == ["builtin:causal", *scorers, "builtin:masked"]
    assert default_models(None)[:2] == ["builtin:masked", "builtin:causal"]


def test_a_run_is_named_after_its_first_model():
    folder = new_run_folder(spec(models=["/models/BERT base!", "gpt2"]))
    assert folder.parent.name == "runs"
    assert folder.name.endswith("-bert-base-and-1-more-quick")
    with pytest.raises(SpecError, match="the list of models is empty"):
        new_run_folder(spec(models=[]))
