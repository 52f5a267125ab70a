"""A child process for a test that kills it: the counterfactual audit of a slow fake, from the start or resumed.

python tests/probes/interrupted_counterfactual.py FOLDER SECONDS_PER_BATCH ATTRIBUTE_FILE
"""

import functools
import sys
import time
from pathlib import Path

from fake_generator import encoder, generator, scorer
from tests.runs import resume_audit, start_audit

from clinometer.models.callable_scorer import CallableScorer
from clinometer.store import RunFolder
from clinometer.types import AuditSpec, ModelSpec
from clinometer.workflows import Execution


def spec(attribute_file):
    options = {"attributes": (), "attribute_file": attribute_file, "samples": 30, "draws": 100}
    return AuditSpec(
        probes=("counterfactual",),
        models=(ModelSpec(name="writer"),),
        roles={
            "scorer": (ModelSpec(name="words"), ModelSpec(name="slow")),
            "encoder": (ModelSpec(name="encoder"),),
        },
        profile="standard",
        options={"counterfactual": options},
    )


def slow_scorer(seconds):
    def scores(texts):
        time.sleep(seconds)
        return [0.5 + (0.5 if "good" in text else -0.5) * (len(text) % 7) / 7 for text in texts]

    return CallableScorer("slow", scores, version="1")


def run(folder, seconds, attribute_file):
    everyone = [generator({"red": 0.9}), scorer(), slow_scorer(seconds), encoder()]
    models, execution = {each.info.name: each for each in everyone}, Execution(batch_tokens=60)
    if (folder / "provenance.json").exists():
        resume_audit(RunFolder.open(folder), loaded=models, execution=execution)
    else:
        start_audit(spec(attribute_file), folder, loaded=models, execution=execution)


if __name__ == "__main__":
    RunFolder.writer = functools.partialmethod(RunFolder.writer, flush_seconds=0.02)
    print("working", flush=True)
    run(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
