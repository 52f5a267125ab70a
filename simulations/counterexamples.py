"""How often the counterexamples audit says "lean" of models without one, and of those with the smallest it sees.

`python simulations/counterexamples.py [SEEDS] [--jobs N]` makes models whose gendered words are noise around what
is planted, reads their answers as the audit does, and prints how often each question ends in "lean". Two worlds:
gendered words among the top 10, and far below them, where the whole list decides.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import polars as pl
from jobs import Run, arguments, shared_out

from clinometer.probes.counterexamples import PROBE, measures, tables
from clinometer.probes.counterexamples.answers import read_answers
from clinometer.probes.counterexamples.words import verdicts
from clinometer.probes.kit import LEAN
from clinometer.probes.protocol import Plan
from clinometer.types import ModelInfo, Verdict

MODEL = ModelInfo(
    name="simulated", kind="masked", family="", capabilities=("fill",), weights="", tokenizer="", dtype="", code=""
)
Judged = Mapping[str, tuple[str, float]]  # aspect -> state, smallest detectable effect
NOISE = 0.15  # standard deviation of the normalised gap of a prompt
SHARE = {"top 10": 0.6, "whole list": 0.004}  # of the probability that "woman" and "man" have
REACTION = 0.6  # of the normalised gap, where the knowledge names a gender

# what is planted in the normalised gap
ASPECTS: Mapping[str, tuple[float, float, float]] = {  # times the dominance, everywhere, where unrelated
    "stereotype": (1.0, 0.0, 0.0),
    "preference for one gender": (0.0, 1.0, 0.0),
    "unrelated knowledge": (0.0, 0.0, 1.0),
}


class World:
    """The questions of the audit, once, and the verdicts on a model that answers them by chance."""

    def __init__(self, counted: str, *, draws: int = 999) -> None:
        self.counted = counted
        self.plan = Plan(options=PROBE.options(backgrounds=0, ks=(10,), draws=draws), seed=0, model=MODEL)
        self.asked = {
            stage.name: list(PROBE.questions(stage, self.plan, None)) for stage in PROBE.stages(self.plan)
        }
        items = self.asked["prompts"]
        self.words = self.asked["words"][0].request.words
        self.kind = np.array([item.tags["kind"] for item in items])
        self.sign = np.array([1 if item.tags["dominance"] == "female" else -1 for item in items])
        contexts = [item.request.context.rstrip(".").split() for item in items]
        self.named = np.array([bool({"woman", "female"} & {*c}) - bool({"man", "male"} & {*c}) for c in contexts])
        self.tags = {f"tag_{key}": [item.tags[key] for item in items] for key in items[0].tags}

    def table(self, *, model: str, stage: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the answers as the audit reads them."""
        words, logprobs = self.answers[stage]
        return pl.DataFrame({**self.tags, "got_words": words, "got_logprobs": logprobs})

    def verdicts(self, seed: int, *, aspect: str = "stereotype", effect: float = 0.0) -> tuple[Verdict, ...]:
        """Return the verdicts on a model with the effect planted in one aspect; 0: an even hand."""
        rng = np.random.default_rng(seed)
        by_sign, everywhere, unrelated = (effect * part for part in ASPECTS[aspect])
        share = SHARE[self.counted]
        lean = by_sign * self.sign + everywhere + unrelated * (self.kind == "unrelated") + REACTION * self.named
        gap = np.clip(lean + NOISE * rng.standard_normal(len(lean)), -0.99, 0.99)
        both = np.log(share * np.stack([1 + gap, 1 - gap], axis=1) / 2)
        listed = np.full((len(gap), len(self.words)), -40.0)
        listed[:, [self.words.index("woman"), self.words.index("man")]] = both
        top, offered = (both, ["woman", "man"]) if self.counted == "top 10" else (0 * both - 2.0, ["a", "the"])
        self.answers = {
            "prompts": ([offered] * len(gap), top.tolist()),
            "words": ([list(self.words)] * len(gap), listed.tolist()),
        }
        plan = replace(self.plan, seed=seed)
        measured = measures.measure(read_answers(plan, self, plan.options.chosen_verbalizer()), plan)
        rows = {"lean": tables.lean_rows(measured), "change": tables.change_rows(measured)}
        rows |= tables.whole_list_rows(measured)
        rows["conclusions"] = tables.conclusion_rows(measured, rows)
        assert (measured.judged, measured.gate) == (self.counted, "")
        return verdicts(measured, rows)


@cache
def world(counted: str, draws: int) -> World:
    """Return the world of this process."""
    return World(counted, draws=draws)


def judged(seed: int, *, counted: str, draws: int, aspect: str = "stereotype", effect: float = 0.0) -> Judged:
    """Return the state and the smallest detectable effect of each verdict on one model."""
    found = world(counted, draws).verdicts(seed, aspect=aspect, effect=effect)
    return {each.aspect: (each.state, each.detectable) for each in found}


def simulate(seeds: int, *, draws: int = 999, run: Run = map) -> Mapping[tuple[str, str], tuple[float, int]]:
    """Return the planted effect and how many of the seeds were found, by world and aspect; "": an even hand."""
    found = {}
    for counted, share in SHARE.items():
        ask = partial(judged, counted=counted, draws=draws)
        even = list(run(ask, range(seeds)))
        leans = sum(any(state == LEAN for state, _ in each.values()) for each in even)
        found[counted, ""] = 0.0, leans
        # planted is the normalised gap: what the top 10 show of it is their share
        scale = share if counted == "top 10" else 1.0
        for aspect in ASPECTS:
            effect = float(np.mean([each[aspect][1] for each in even]))
            planted = run(partial(ask, aspect=aspect, effect=effect / scale), range(seeds, 2 * seeds))
            found[counted, aspect] = effect, sum(each[aspect][0] == LEAN for each in planted)
    return found


def main() -> None:
    """Print the result for the number of seeds given; fails where an error rate is out of bounds."""
    given = arguments(__doc__)
    seeds, wrong = given.seeds, 0
    # what exact 5 % and 80 % give 99 times in 100: 18 and 146 of 200
    most, least = math.ceil(0.09 * seeds), math.floor(0.73 * seeds)
    with shared_out(given.jobs) as run:
        for (counted, aspect), (effect, hits) in simulate(seeds, run=run).items():
            what = f"{aspect}, planted {effect:.3f}" if aspect else "an even hand: any lean"
            bound = f"at least {least}" if aspect else f"at most {most}"
            wrong += hits < least if aspect else hits > most
            print(f"{counted:10}  {what}: {hits} of {seeds} ({bound})", flush=True)
    if wrong:
        sys.exit(f"{wrong} error rates are out of bounds")


if __name__ == "__main__":
    main()
