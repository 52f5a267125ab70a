"""Doors for other people's audits and executors: as objects, and as installed packages."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import clinometer
from clinometer import plugins
from clinometer.cli import listings
from clinometer.engine import LocalExecutor
from clinometer.errors import InputError, SpecError
from clinometer.models.fake import FakeModel
from clinometer.probes import PROBES, get_probe
from clinometer.questions import items_of
from clinometer.store import findings_digest
from clinometer.types import Block, Classify, Item, LogLikelihoodAnswer, WordAnswer
from clinometer.workflows import Execution

EXAMPLES = Path(__file__).parent.parent / "examples"
PAIRS = EXAMPLES / "clinometer-sentence-pairs"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The example as pip installs it, in a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / PAIRS.name
    subprocess.run(["cp", "-r", PAIRS, source], check=True)  # building leaves files behind
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
            "--disable-pip-version-check", "--target", target, source,
        ],
        check=True,
    )  # fmt: skip
    return target


@pytest.fixture
def pairs(installed, monkeypatch):
    """The audit of the example, found through its entry point."""
    monkeypatch.syspath_prepend(installed)
    plugins.entry_points.cache_clear()
    yield get_probe("sentence_pairs")
    plugins.entry_points.cache_clear()
    plugins.load_plugin.cache_clear()


def likes(word, *, by=1.0):
    """A causal model that finds sentences with a word more probable."""

    def answer(request):
        score = -20.0 + by * (word in request.text.split())
        return LogLikelihoodAnswer(logprob=score, tokens=len(request.text.split()))

    return FakeModel(answer=answer, name=f"likes {word}", kind="causal", capabilities=("log_likelihood",))


def write_pairs(path: Path, *, count: int) -> Path:
    rows = [f"The old man number {i} slept.,The young man number {i} slept.,stereo,age" for i in range(count)]
    path.write_text("\n".join(["sent_more,sent_less,stereo_antistereo,bias_type", *rows]))
    return path


def test_an_installed_audit_is_one_of_ours(pairs, installed, tmp_path):
    assert "sentence_pairs" in PROBES
    assert pairs.name == "sentence_pairs"
    shown = subprocess.run(
        [sys.executable, "-m", "clinometer", "probes"],
        env={"PYTHONPATH": os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "sentence_pairs" in shown.stdout


def test_the_list_of_audits_says_where_each_comes_from(pairs, capsys):
    listings.probes()
    sources = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  From ")]
    ours = ["  From Clinometer."]
    assert sources == ours * 2 + ["  From clinometer-sentence-pairs 0.1.0."] + ours * 3  # in alphabetical order


def test_it_finds_a_planted_preference_and_no_other(pairs, tmp_path):
    options = {"sentence_pairs": {"pairs_file": str(write_pairs(tmp_path / "pairs.csv", count=20))}}
    models = [likes("old"), likes("young"), likes("slept.")]
    run = clinometer.audit(models, probes="sentence_pairs", options=options, folder=tmp_path / "run")
    old, young, even = run["sentence_pairs"].headlines
    assert "is preferred: 1.00 (95 % interval 0.84 to 1.00, q < 0.001, n = 20)." in old
    assert "likes old prefers the stereotypical sentence" in old
    assert "likes young avoids the stereotypical sentence" in young
    assert even == "likes slept. cannot be judged: nothing was measured."
    assert [verdict.state for verdict in run.verdicts] == ["lean", "lean", "cannot tell"]
    assert 0 < run.verdicts[0].detectable < 0.5
    assert run.verdicts[0].rows[0].labels == {"model": "likes old", "bias_type": "all"}
    assert clinometer.verify(run).problems == ()
    assert "Which of two sentences the model prefers" in run.report_path.read_text()
    assert run["sentence_pairs"]["preference"].plot().to_dict()


def test_an_audit_may_be_an_object(installed, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(installed)
    from clinometer_sentence_pairs import SentencePairs

    mine = SentencePairs()
    mine.name = "mine"
    run = clinometer.audit(likes("old"), probes=[mine], folder=tmp_path / "run")
    assert list(run) == ["mine"]
    assert clinometer.verify(run, probes=[mine]).problems == ()
    with pytest.raises(SpecError, match="no probe 'mine'"):
        clinometer.verify(run)
    assert clinometer.resume(run, models=[likes("old")], probes=[mine]).path == run.path
    # without it the page is still written, under the bare name
    assert "mine" in clinometer.write_report(run.path).read_text()
    mine.name = "stigma"
    with pytest.raises(SpecError, match="two audits are named 'stigma'"):
        clinometer.audit(likes("old"), probes=[mine], folder=tmp_path / "other")


def test_a_masked_model_is_asked_for_the_shared_words(pairs, tmp_path):
    def answer(request):
        return WordAnswer(words=request.words, logprobs=(math.log(0.5 if "old" in request.text else 0.25),))

    fake = FakeModel(answer=answer, name="masked")
    options = {"sentence_pairs": {"pairs_file": str(write_pairs(tmp_path / "pairs.csv", count=3))}}
    run = clinometer.audit(fake, probes="sentence_pairs", options=options, folder=tmp_path / "run")
    asked = run.records("sentence_pairs")
    assert len(asked) == 3 * 2 * 5  # The, man, number, i, slept
    assert asked["ask_text"][4] == "The old man number 0 [MASK]."
    (row, *_) = run["sentence_pairs"]["preference"].rows
    assert (row.estimate, row.n) == (1.0, 3)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "is empty"),
        ("sent_more,sent_less\nonly one,\n", "line 2: nothing in column 'sent_less'"),
        ("a,b\n1,2\n", "no column 'sent_more' in 'a,b'; expected a first line 'sent_more,sent_less'"),
    ],
)
def test_a_file_without_pairs_is_refused(pairs, tmp_path, text, wrong):
    file = tmp_path / "pairs.csv"
    file.write_text(text)
    options = {"sentence_pairs": {"pairs_file": str(file)}}
    with pytest.raises(InputError, match=wrong):
        clinometer.audit(likes("old"), probes="sentence_pairs", options=options, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_broken_package_is_named(monkeypatch):
    class Point:
        name, value, dist = "broken", "nowhere:PROBE", None

        def load(self):
            raise ImportError("no module named nowhere")

    monkeypatch.setattr(plugins, "entry_points", lambda group: {"broken": Point()})
    with pytest.raises(InputError, match=r"'broken' of an installed package \(nowhere:PROBE\) cannot be imported"):
        plugins.load_plugin.__wrapped__(plugins.PROBES, "broken")


class CountingExecutor(LocalExecutor):
    batches = 0

    def run(self, batches):
        for answered in super().run(batches):
            type(self).batches += 1
            yield answered


def test_an_executor_is_chosen_by_execution(tmp_path):
    def even(request):
        return WordAnswer(words=("woman", "man"), logprobs=(math.log(0.3), math.log(0.3)))

    def factory(model, *, spec, device):
        assert (spec.name, device) == ("fake", "cpu")
        return CountingExecutor(model)

    fake = FakeModel(answer=even, version="1", name="fake")
    given = {"probes": "counterexamples", "options": {"counterexamples": {"backgrounds": 1, "draws": 100}}}
    execution = Execution(executor=factory, device="cpu", batch_tokens=200)
    mine = clinometer.audit(fake, **given, folder=tmp_path / "mine", execution=execution)
    assert CountingExecutor.batches > 1
    usual = clinometer.audit(fake, **given, folder=tmp_path / "usual")
    assert findings_digest(mine.findings) == findings_digest(usual.findings)
    with pytest.raises(SpecError, match="no executor 'locl'; did you mean 'local'"):
        clinometer.audit(fake, **given, folder=tmp_path / "other", execution=Execution(executor="locl"))


def test_questions_may_travel_as_columns():
    block = Block(
        kind=Classify, columns={"text": ["a", "b"]}, tags={"word": ["x", "y"]}, shared_tags={"attribute": "z"}
    )
    one = Item(request=Classify(text="c"), tags={})
    assert list(items_of([block, one])) == [
        Item(request=Classify(text="a"), tags={"attribute": "z", "word": "x"}),
        Item(request=Classify(text="b"), tags={"attribute": "z", "word": "y"}),
        one,
    ]
    with pytest.raises(ValueError, match="one length; text has 1, word has 2"):
        list(items_of([Block(kind=Classify, columns={"text": ["a"]}, tags={"word": ["x", "y"]})]))
