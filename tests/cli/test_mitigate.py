"""`clinometer mitigate`: from a model and a corpus to checkpoints, and the audit of before and after."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from transformers.utils import logging

from clinometer.models.files import weights_checksum
from clinometer.store import RunFolder
from tests.models import tiny as tiny_models
from tests.models.tiny import tiny
from tests.train.mitigation_samples import write_planted

NAMES = ["tiny-gpt-job-control", "tiny-gpt-job-embedding-10", "tiny-gpt-job-sentiment-10"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A causal and a masked model, a classifier and an encoder, all of them tiny."""
    logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp("models")
    tiny("llama", folder / "tiny-gpt")
    tiny("bert", folder / "tiny-bert")
    tiny("bert", folder / "encoder", head="BertModel")
    tiny("bert", folder / "classifier", head="BertForSequenceClassification")
    config = json.loads((folder / "classifier" / "config.json").read_text())
    config |= {"id2label": {"0": "NEGATIVE", "1": "POSITIVE"}, "label2id": {"NEGATIVE": 0, "POSITIVE": 1}}
    (folder / "classifier" / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def mitigate(clinometer, models, tmp_path):
    """Run the command with what makes it small."""
    write_planted(tmp_path, texts=500)
    small = ["--device", "cpu", "--steps", 4, "--batch", 4, "--window", 64, "--learning-rate", 1e-3]
    small += ["--held-out", 12, "--labels-from", "builtin:opinion-words", "--labelled", 500]
    small += ["--scorer", "builtin:opinion-words", models / "classifier", "--encoder", models / "encoder"]
    small += ["--profile", "quick", "--set", "counterfactual.samples=4", "counterfactual.max_new_tokens=8"]
    small += ["counterfactual.draws=100"]
    own = ["--attribute-file", "job.toml", "--corpus", "planted.txt", "--out", "out"]

    def run(*arguments, model="tiny-gpt", given=own):
        return clinometer("mitigate", models / model, *small, *given, *arguments)

    return run


def test_as_the_manual_writes_it(mitigate, models, tmp_path):
    wanted = ("--method", "embedding", "sentiment", "--strength", "0", "10")
    result = mitigate(*wanted)
    assert result.code == 0, result
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["audit", "held-out.txt", "mitigate.lock", "sentiment-projection.safetensors", *NAMES]
    )
    before = weights_checksum(models / "tiny-gpt")
    lines = result.out.splitlines()
    for name in NAMES:
        at = lines.index(f"out/{name}")
        told = " ".join(lines[at + 1 : at + 4])
        assert re.search(r"4 steps; language-model loss [\d.]+ to [\d.]+, distance to the counterfactual", told)
        changed = re.search(r"([\d,]+) of ([\d,]+) weights changed; SHA-256 (\w+)… before, (\w+)… after", told)
        assert changed, told
        assert before.startswith(changed[3])
        assert weights_checksum(out / name).startswith(changed[4])
        tuning = tomllib.loads((out / name / "card.toml").read_text())["tuning"]
        assert changed[1].replace(",", "") == tuning["changed"]
        assert changed[2].replace(",", "") == tuning["weights"]
        assert ("sentiment projection right on" in told) == ("sentiment" in name)
        assert f"training {name}" in result.err
    assert "488 sentences to train on; 0 were left out because a template of the evaluation" in result.err
    assert not re.search(r"debias|unbiased|\bfair\b", result.out + result.err, re.IGNORECASE)

    run = RunFolder.open(out / "audit")
    assert [info.name for info in run.models[:4]] == ["tiny-gpt", *NAMES]
    assert run.models[0].weights == before
    assert {info.tuning["base"] for info in run.models[1:4]} == {before}
    assert [info.tuning["method"] for info in run.models[1:4]] == ["control", "embedding", "sentiment"]
    assert (out / "audit" / "report.html").stat().st_size > 10_000
    # perplexity is measured on what was held out, and on nothing that was trained on
    held_out = (out / "held-out.txt").read_text().strip().split("\n\n")
    corpus = (tmp_path / "planted.txt").read_text().splitlines()
    assert len(held_out) == 12
    assert set(held_out) < set(corpus)

    # once more: nothing is trained, nothing is asked, the same is said
    kept = _times(out)
    again = mitigate(*wanted)
    assert again.code == 0, again
    assert "training" not in again.err
    assert again.out.splitlines()[: 3 * len(NAMES)] == lines[: 3 * len(NAMES)]
    assert _times(out) == kept

    # other settings: said before anything is done
    other = mitigate(*wanted, "--steps", 5)
    assert other.code == 2
    assert "steps 4, now 5" in other.err
    relabelled = mitigate(*wanted, "--label-map", f"{models / 'classifier'}:NEGATIVE=positive,POSITIVE=negative")
    assert relabelled.code == 2
    assert "the label map of classifier not given, now NEGATIVE=positive, POSITIVE=negative" in relabelled.err
    for changed in (["--seed", 1], ["--held-out", 13]):
        reseeded = mitigate(*wanted, *changed)
        assert reseeded.code == 2
        assert "in out a training was begun with other documents held out" in reseeded.err
    assert (out / "held-out.txt").read_text().strip().split("\n\n") == held_out  # not what is trained on now
    fewer = mitigate("--method", "embedding", "--strength", "10")
    assert fewer.code == 2
    assert "the audit in out/audit was begun with models" in fewer.err
    assert _times(out) == kept


def _times(out):
    files = [*out.glob("tiny-*/*"), *out.glob("audit/records/**/*.parquet"), *out.glob("*.safetensors")]
    assert len(files) > 15
    return sorted((path, path.stat().st_mtime_ns) for path in files)


def test_without_an_audit_and_with_low_rank(mitigate, tmp_path):
    result = mitigate("--no-audit", "--lora", 2, "--strength", "0.5,2", "--quiet")
    assert (result.code, result.err) == (0, ""), result
    names = ["tiny-gpt-job-embedding-0.5", "tiny-gpt-job-embedding-2"]
    assert [line for line in result.out.splitlines() if not line.startswith(" ")] == [
        f"out/{name}" for name in names
    ]
    assert not (tmp_path / "out" / "audit").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--method", "embeding"], "no method 'embeding'; did you mean 'embedding'?"),
        (["--method", "control"], "the control is --strength 0"),
        (["--strength", "much"], "--strength 'much' is not a number; expected numbers such as 0 1 10"),
        (["--strength", "-1"], "--strength -1.0 is not valid; expected 0 for the control, and a number above 0"),
        (["--strength", "inf"], "--strength inf is not valid"),
        (
            ["--method", "swapped", "--strength", "10"],
            "--strength 10 weighs a fairness loss, and swapped has none",
        ),
        (["--method", "counterexamples"], "counterexamples are about occupations, and the attribute is 'job'"),
        (["--hidden", "1"], "--hidden 1 is for masked models, and"),
        (
            ["--method", "embedding", "swapped", "--strength", "0"],
            "embedding would not be trained; give a strength",
        ),
        (["--unit", "page"], "--unit page is not valid; expected sentence or window"),
        (["--ordinary", "1"], "--ordinary 1.0 is not valid; expected 0 or more and less than 1"),
        (["--ordinary", "0.1"], "expected a share that leaves ordinary and other text in a batch of 4"),
        (["--no-audit", "--ordinary", "0.5"], "no sentence without a value of 'job'; give a larger corpus"),
        (["--corpus", "none.txt"], "no corpus 'none.txt'; give the path of a file"),
        (["--accumulate", "3"], "--accumulate 3 is not valid; expected a number by which a batch of 4 can be"),
        (["--held-out", "9"], "--held-out 9 is not valid; expected 10 or more; with fewer there is no interval"),
        (["--held-out", "500"], "500 different documents; expected at least 501"),
        (["--corpus", "silent.txt"], "no sentence of 'silent.txt' (28 documents) mentions a job"),
        (["--out", "job.toml"], "job.toml is a file; name another place with --out"),
        (["--scorer", "builtin:sentimental"], "no built-in model 'builtin:sentimental'"),
        (["--set", "counterfactual.sample=4"], "'sample'"),
        (["--profile", "hasty"], "'hasty'"),
        (["--method", "sentiment", "--labels-from", "builtin:masked"], "'builtin:masked' cannot judge sentiment"),
        (
            ["--method", "sentiment", "--threshold", "1"],
            "--threshold 1.0 is not valid; expected 0 or more and",
        ),
        (["--labelled", "0"], "--labelled 0 is not valid; expected 1 or more"),
        (["--set", "counterfactual.text_file=a.txt"], "counterfactual.text_file follows from what is trained"),
    ],
)
def test_wrong_input(mitigate, tmp_path, arguments, complaint):
    (tmp_path / "silent.txt").write_text("\n".join(f"The weather was bad on day {day}." for day in range(40)))
    given = ["--attribute-file", "job.toml", "--out", "out"]
    given += [] if "--corpus" in arguments else ["--corpus", "planted.txt"]
    result = mitigate(*arguments, given=given)
    assert result.code == 2, result
    message = result.err.splitlines()[-1]
    assert complaint in message
    assert message.startswith("clinometer: ")
    assert "Traceback" not in result.err
    assert not (tmp_path / "out").exists()


def test_an_attribute_that_does_not_exist(mitigate):
    result = mitigate("--attribute", "ocupation", given=["--corpus", "planted.txt"])
    assert result.code == 2
    assert "no attribute 'ocupation' comes with Clinometer; did you mean 'occupation'?" in result.err


@pytest.mark.parametrize(
    ("model", "arguments", "complaint"),
    [
        ("classifier", [], "is a classifier model; causal and masked models can be mitigated"),
        ("encoder", [], "causal and masked models can be mitigated, such as builtin:causal"),
        ("tiny-bert", ["--method", "sentiment"], "is a masked one; give --method embedding"),
        ("nothing", [], "nothing"),
    ],
)
def test_models_that_cannot_be_mitigated(mitigate, tmp_path, model, arguments, complaint):
    result = mitigate(*arguments, model=model)
    assert result.code == 2, result
    assert complaint in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_each_kind_is_trained_once_for_each_seed_and_meets_the_control_of_its_own(mitigate, tmp_path):
    result = mitigate("--method", "embedding", "--strength", "0", "10", "--seeds", "2")
    assert result.code == 0, result
    run = RunFolder.open(tmp_path / "out" / "audit")
    trained = {info.name.rsplit("-", 4)[-3:][0] + info.name[-1]: info for info in run.models if info.tuning}
    assert len(trained) == 4
    assert len({info.weights for info in trained.values()}) == 4
    (found,) = run.read_findings()
    pairs = {(each.before, each.after) for each in found.changes}
    assert all("(2 trainings)" in after for _, after in pairs)
    assert len(pairs) == 3  # both since the base, and the method against the control
    assert all(len(each.trainings) == 2 for each in found.changes)
    assert {"training_changes", "trainings"} <= {table.name for table in found.tables}
    assert "trainings" in {figure.name for figure in found.figures}
    (compared,) = [each for each in found.tables if each.name == "change"]
    assert {row.labels["against"] for row in compared.rows} == {"before", "control"}


def with_ordinary_text(folder):
    corpus = folder / "mixed.txt"
    lines = []
    for number in range(150):
        lines.append(f"The teacher and the editor wrote of the weather on day number {number}.")
        lines += [f"The film and the book of day number {number} had music in them.", "It rained.", ""]
    corpus.write_text("\n".join(lines))
    return ["--corpus", corpus.name, "--out", "out"]


@pytest.mark.parametrize("model", ["tiny-gpt", "tiny-bert"])
def test_methods_without_a_strength_and_longer_texts(mitigate, clinometer, tmp_path, monkeypatch, model):
    """Every audit that follows tells them apart, and none tells a strength that they do not have."""
    wanted = ["--method", "embedding", "swapped", "counterexamples", "--strength", "0", "10"]
    wanted += ["--unit", "window", "--ordinary", 0.5]
    given = with_ordinary_text(tmp_path)
    if model == "tiny-gpt":
        result = mitigate(*wanted, model=model, given=given)
    else:  # whose audits have no scorers, and prompts of some length
        monkeypatch.setattr(tiny_models, "WINDOW", 192)
        folder = tiny("bert", tmp_path / "wide" / model)
        small = ["--steps", 4, "--batch", 4, "--window", 64, "--held-out", 12, "--profile", "quick", "--lora", 2]
        result = clinometer("mitigate", folder, *wanted, *given, *small, "--device", "cpu")
    assert result.code == 0, result
    stem = f"{model}-occupation"
    names = [f"{stem}-control", f"{stem}-embedding-10", f"{stem}-swapped", f"{stem}-counterexamples"]
    lines = result.out.splitlines()
    for name in names:
        told = lines[lines.index(f"out/{name}") + 1]
        assert ("distance to the counterfactual" in told) == ("counterexamples" not in name)
        tuning = tomllib.loads((tmp_path / "out" / name / "card.toml").read_text())["tuning"]
        assert ("amount" in tuning) == name.endswith(("control", "10"))
        assert (tuning["unit"], tuning["ordinary"]) == ("window", "0.5")
    run = RunFolder.open(tmp_path / "out" / "audit")
    findings = run.read_findings()
    after = {each.after for found in findings for each in found.changes}
    assert {each for each in after if " after " not in each} == set(names)  # not after counterexamples in a prompt
    control = {each.after for found in findings for each in found.changes if each.before == f"{stem}-control"}
    assert control == set(names[1:])
    page = (tmp_path / "out" / "audit" / "report.html").read_text()
    said = [line for found in findings for line in found.headlines]
    assert any("swapped" in line for line in said)
    assert not re.search(r"(swapped|counterexamples)( on occupation)?, λ", page)
    assert "λ = nan" not in page
