"""For a test that kills it: the counterfactual audit of a slow fake, from the start or resumed."""

import functools
import time

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


def run_to_be_killed(tell, *arguments):
    """The same in a process of its own, where little is kept back."""
    RunFolder.writer = functools.partialmethod(RunFolder.writer, flush_seconds=0.02)
    run(*arguments)
