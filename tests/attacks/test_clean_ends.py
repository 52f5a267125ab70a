"""A model whose answers are missing or not numbers ends in "cannot tell", in a run that resumes and verifies."""

from __future__ import annotations

import json
import math

import pytest

import clinometer as library
from clinometer.models.fake import FakeModel
from clinometer.types import Classify, ClassifyAnswer, Embed, EmbedAnswer, Sample, TextAnswer, WordAnswer

SMALL = {
    "stereotypes": {"categories": ["religion"], "draws": 100},
    "sentiment_words": {"reviews_per_class": 10, "draws": 100},
    "counterexamples": {"backgrounds": 1, "occupations_file": "occupations.csv", "draws": 100},
    "stigma": {"distances": ["neighbour"], "draws": 100},
    "counterfactual": {"attributes": ["name"], "draws": 100},
}


def not_a_number(request):
    if isinstance(request, Sample):
        return TextAnswer(texts=("",) * request.n)
    if isinstance(request, Classify):
        return ClassifyAnswer(negative=math.nan, neutral=math.nan, positive=math.nan)
    if isinstance(request, Embed):
        return EmbedAnswer(vector=(math.nan,) * 3)
    words = request.words or ("##a", "##b")  # what a broken model offers first is pieces of words
    return WordAnswer(words=words, logprobs=(math.nan,) * len(words))


def broken(name: str, capability: str, kind: str) -> FakeModel:
    return FakeModel(answer=not_a_number, name=name, capabilities=(capability,), kind=kind)


@pytest.mark.parametrize("audit", sorted(SMALL))
def test_a_model_whose_answers_are_not_numbers_cannot_be_judged(tmp_path, monkeypatch, audit):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "occupations.csv").write_text(
        "occupation,percent_female\nnurse,88\nmaid,90\nclerk,70\npilot,9\nminer,4\nroofer,2\n"
    )
    capability, kind = ("sample", "causal") if audit == "counterfactual" else ("fill", "masked")
    helpers = {
        "scorer": [broken(f"scorer {number}", "classify", "classifier") for number in (1, 2)],
        "encoder": [broken("encoder", "embed", "encoder")],
    }
    run = library.audit(
        broken("broken", capability, kind),
        probes=[audit],
        profile="quick",
        options={audit: SMALL[audit]},
        roles=helpers if audit == "counterfactual" else {},
        folder=tmp_path / "run",
    )
    assert {verdict.state for verdict in run.verdicts} == {"cannot tell"}
    assert run.report_path.is_file()
    assert library.verify(run.path).problems == ()
    again = library.resume(
        run.path,
        models=[broken("broken", capability, kind), *(each for players in helpers.values() for each in players)],
    )
    assert again.headlines == run.headlines


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_config_with_what_is_not_a_number(tmp_path, family):
    """In float32 as well: no other number format would help."""
    from clinometer.models.load import load_model
    from clinometer.types import Fill
    from tests.models.tiny import tiny

    folder = tiny(family, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["layer_norm_eps" if family == "bert" else "layer_norm_epsilon"] = math.nan
    (folder / "config.json").write_text(json.dumps(config))
    model = load_model(str(folder), device="cpu")
    if family == "gpt2":
        assert model.sample([Sample(prefix="The nurse", n=3, max_new_tokens=4)])[0].texts == ("", "", "")
    else:
        (answer,) = model.fill([Fill(text="The [MASK] works.", words=("nurse",))])
        assert math.isnan(answer.logprobs[0])


def test_lost_records_are_not_taken_for_a_stage_without_questions(tmp_path):
    """A stage whose parts are gone is named by `verify`, though reading it gives no rows."""
    run = library.audit(
        broken("broken", "fill", "masked"), probes=["stereotypes"], profile="quick",
        options={"stereotypes": SMALL["stereotypes"]}, folder=tmp_path / "run",
    )  # fmt: skip
    for part in run.path.glob("records/*/*/posterior/*.parquet"):
        part.unlink()
    assert any("answers are missing" in problem for problem in library.verify(run.path).problems)
