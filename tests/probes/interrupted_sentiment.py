"""For a test that kills it: the sentiment-words audit of a slow fake, from the start or resumed."""

import functools

from tests.interrupted_run import treacherous
from tests.runs import resume_audit, start_audit

from clinometer.store import RunFolder
from clinometer.types import AuditSpec, ModelSpec
from clinometer.workflows import Execution


def spec(reviews, words):
    options = {
        "reviews_file": reviews,
        "words_file": words,
        "reviews_per_class": 20,
        "ks": [1, 2],
        "draws": 100,
    }
    return AuditSpec(
        probes=("sentiment_words",),
        models=(ModelSpec(name="fake"),),
        profile="quick",
        options={"sentiment_words": options},
    )


def run(folder, seconds, reviews, words):
    models, execution = {"fake": treacherous(seconds)}, Execution(batch_tokens=600)
    if (folder / "provenance.json").exists():
        resume_audit(RunFolder.open(folder), loaded=models, execution=execution)
    else:
        start_audit(spec(reviews, words), folder, loaded=models, execution=execution)


def run_to_be_killed(tell, *arguments):
    """The same in a process of its own, where little is kept back."""
    RunFolder.writer = functools.partialmethod(RunFolder.writer, flush_seconds=0.05)
    run(*arguments)
