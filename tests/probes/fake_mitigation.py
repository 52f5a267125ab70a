"""A model and checkpoints of it: fakes that write by mood, and whoever scores and compares their texts."""

from dataclasses import replace

from fake_generator import uniform, write_attribute
from fake_records import MemoryRecords, ask, fake_model, plan_for

from clinometer.probes.counterfactual import PROBE
from clinometer.types import Classify, ClassifyAnswer, Embed, EmbedAnswer, LogLikelihoodAnswer, Sample, TextAnswer

VALUES = ["red", "blue", "green"]
BASE = "b" * 64
HELD_OUT = "A red one.\n\nNo colour here.\n\nGreen and blue.\n\nFour words are here.\n\nBlue again.\n"


def as_given(name="given", *, weights=BASE):
    return replace(fake_model(name, capabilities=("sample", "log_likelihood")), weights=weights)


def checkpoint(method="embedding", amount="10", *, name="", weights="", base=BASE, attribute="colour", **tuning):
    """A checkpoint as the seam describes it; an attribute of "" is none."""
    made = {"base": base, "method": method, "amount": amount, "data": "wiki", "seed": "0", **tuning}
    return replace(
        as_given(name or f"{method}-{amount}", weights=weights or f"{method}{amount}".ljust(64, "0")),
        tuning={**made, "attribute": attribute} if attribute else made,
    )


class Writer:
    """Is happy with the probability of its mood; some texts are near the prefix, some mention its value."""

    def __init__(
        self, moods=None, *, salt="", default=0.5, near=0.5, mentions=0.5, empty=0.0, nats=2.0, spread=0.2
    ):
        self.moods, self.salt, self.default = moods or {}, salt, default
        self.near, self.mentions, self.empty, self.nats, self.spread = near, mentions, empty, nats, spread

    def text(self, request, at):
        def chance(what):
            return uniform(what, self.salt, request.seed, request.prefix, at)

        if chance("empty") < self.empty:
            return ""
        value = next(value for value in VALUES if value in request.prefix.split())
        words = ["good" if chance("mood") < self.moods.get(value, self.default) else "bad"]
        words.append("near" if chance("near") < self.near else "far")
        if chance("mention") < self.mentions:
            words.append(value)
        return f" {' '.join(words)} {at}"

    def answer(self, item):
        request = item.request
        match request:
            case Sample():
                numbers = range(request.first, request.first + request.n)
                return TextAnswer(texts=tuple(self.text(request, at) for at in numbers))
            case Classify():
                happy = float("good" in request.text.split())
                return ClassifyAnswer(negative=1 - happy, neutral=0.0, positive=happy)
            case Embed():
                return EmbedAnswer(vector=(0.0, 1.0) if "far" in request.text.split() else (1.0, 0.0))
        tokens = len(request.text.split())
        nats = self.nats + self.spread * (uniform("nats", self.salt, request.text) - 0.5)
        return LogLikelihoodAnswer(logprob=-nats * tokens, tokens=tokens)


def concluded(folder, models, *, templates=6, samples=40, text=True, seed=0, **options):
    """Run the audit over pairs of a model and its writer."""
    file = write_attribute(folder / "colour.toml", values=VALUES, templates=templates)
    if text:
        (folder / "held-out.txt").write_text(HELD_OUT)
        options["text_file"] = str(folder / "held-out.txt")
    scorers = [replace(fake_model(name, capabilities=("classify",)), family="f") for name in ("one", "two")]
    roles = {"scorer": tuple(scorers), "encoder": (fake_model("e", capabilities=("embed",)),)}
    plans, records = [], MemoryRecords()
    for model, writer in models:
        given = {"attributes": (), "attribute_file": file, "samples": samples, "draws": 199, **options}
        plan = replace(plan_for(PROBE, model=model, seed=seed, **given), roles=roles)
        ask(PROBE, plan, writer.answer, records)
        plans.append(plan)
    return PROBE.findings(plans, records)
