"""A child process for a test that kills it: the sentiment-words audit of a slow fake, from the start or resumed.

python tests/probes/interrupted_sentiment.py FOLDER SECONDS_PER_BATCH REVIEWS_FILE WORDS_FILE
"""

import functools
import sys
from pathlib import Path

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


if __name__ == "__main__":
    RunFolder.writer = functools.partialmethod(RunFolder.writer, flush_seconds=0.05)
    print("working", flush=True)
    run(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4])
