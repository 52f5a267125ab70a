"""One checkpoint asked in two ways, and who is asked what."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest

from clinometer import audit, verify
from clinometer.errors import SpecError
from clinometer.models.fake import FakeModel
from clinometer.probes import get_probe
from clinometer.probes.protocol import Stage
from clinometer.spec import dump_spec, parse_spec
from clinometer.types import (
    Ask,
    AuditSpec,
    Fill,
    Findings,
    Item,
    Message,
    ModelSpec,
    Sample,
    TextAnswer,
    WordAnswer,
)
from clinometer.workflows.checks import check_capabilities, check_spec
from clinometer.workflows.plans import all_models, labels_of
from clinometer.workflows.specs import asked_as
from tests.models.tiny import tiny

BUILT_IN = [ModelSpec(name="builtin:masked"), ModelSpec(name="builtin:causal"), ModelSpec(name="builtin:chat")]


def ways(models, *given):
    return [(model.alias or model.name, model.kind) for model in asked_as(models, given)]


def test_a_way_holds_for_every_model_that_continues_text():
    assert ways(BUILT_IN) == [("builtin:masked", ""), ("builtin:causal", ""), ("builtin:chat", "")]
    assert ways(BUILT_IN, "chat") == [("builtin:masked", ""), ("builtin:causal", "chat"), ("builtin:chat", "chat")]
    assert ways(BUILT_IN, "builtin:causal=chat")[1:] == [("builtin:causal", "chat"), ("builtin:chat", "")]
    assert ways([ModelSpec(name="builtin:chat", alias="mine")], "mine=causal") == [("mine", "causal")]


def test_both_ways_make_two_models_of_the_run():
    models = asked_as([ModelSpec(name="builtin:causal")], ["chat", "causal", "chat"])
    assert [model.kind for model in models] == ["chat", "causal"]
    assert labels_of(models) == ["builtin:causal (chat)", "builtin:causal (causal)"]
    assert len(all_models(AuditSpec(probes=(), models=tuple(models)))) == 2
    by_dtype = [
        ModelSpec(name="m", kind=kind, dtype=dtype) for kind in ("", "chat") for dtype in ("auto", "float32")
    ]
    assert labels_of(by_dtype) == ["m (auto)", "m (float32)", "m (chat, auto)", "m (chat, float32)"]


def test_what_is_not_a_way_to_ask():
    for given, message in (
        ("cat", "expected chat or causal"),
        ("gpt=chat", "'gpt' is not a model of this audit"),
    ):
        with pytest.raises(SpecError, match=message):
            asked_as(BUILT_IN, [given])
    with pytest.raises(SpecError, match="none of these models continues text: builtin:masked"):
        asked_as(BUILT_IN[:1], ["chat"])


def test_a_spec_says_it_in_toml():
    text = 'version = 1\nprobes = ["counterexamples"]\nmodels = [{name = "gpt2", kind = "chat"}, {name = "gpt2"}]'
    spec = parse_spec(text)
    assert [model.kind for model in spec.models] == ["chat", ""]
    assert parse_spec(dump_spec(spec)) == spec
    assert dump_spec(spec).count("kind") == 1
    check_spec(spec, {"counterexamples": get_probe("counterexamples")})  # the two are not one model named twice
    with pytest.raises(SpecError, match="kind"):
        parse_spec(text.replace("chat", "masked"))


class Notes:
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def info(name, kind, *capabilities):
    return FakeModel(answer=print, name=name, kind=kind, capabilities=capabilities).info


def test_what_cannot_be_asked_is_one_table():
    probes = {name: get_probe(name) for name in ("counterexamples", "counterfactual")}
    infos = [info("bert", "masked", "fill"), info("smol", "causal", "sample", "next_word")]
    progress = Notes()
    check_capabilities(probes, infos, progress)
    head, columns, *rows = progress.notes
    assert not any("\n" in line for line in progress.notes)  # the command line escapes what breaks a line
    assert head.startswith("Who is asked what")
    assert columns.split() == ["asked", "as", "counterexamples", "counterfactual"]
    assert [row.split() for row in rows] == [["bert", "masked", "yes", "–"], ["smol", "causal", "yes", "yes"]]
    said = len(progress.notes)
    check_capabilities(probes, infos[1:], progress)
    assert len(progress.notes) == said  # where everybody is asked everything there is nothing to say


@dataclass(frozen=True)
class NoOptions:
    """Nothing to choose."""


class OneQuestion:
    """An audit that puts one question to whoever can talk, and finds nothing."""

    name = title = question = paper = sources = "one_question"
    capabilities: tuple[str, ...] = ("ask", "sample")
    roles = ()
    options = NoOptions
    user_data: ClassVar = {}
    profiles: ClassVar = {"quick": {}, "standard": {}, "paper": {}}

    def check(self, options):
        pass

    def stages(self, plan):
        return (Stage(name="ask"),)

    def questions(self, stage, plan, records):
        if "ask" in plan.model.capabilities:
            yield Item(request=Ask(messages=(Message(role="user", content="Why?"),), max_new_tokens=2), tags={})
        else:
            yield Item(request=Sample(prefix="Why?", n=1, max_new_tokens=2), tags={})

    def findings(self, plans, records):
        return Findings(probe=self.name, tables=(), figures=())


@pytest.fixture
def tiny_chat(tmp_path):
    folder = tiny("gpt2", tmp_path / "smol")
    template = "{{ messages[0]['content'] }}{% if add_generation_prompt %}!{% endif %}"
    (folder / "chat_template.jinja").write_text(template)
    return str(folder)


def test_one_checkpoint_audited_both_ways(tiny_chat, tmp_path):
    """Asked as chat and as a plain model in one run: each has its records, and the run says how it was asked."""
    models = [ModelSpec(name=tiny_chat, alias="smol"), ModelSpec(name=tiny_chat, alias="smol", kind="causal")]
    run = audit(models, probes=[OneQuestion()], folder=tmp_path / "run")
    assert [(each.name, each.kind) for each in run.models] == [("smol", "chat"), ("smol (causal)", "causal")]
    kept = json.loads((tmp_path / "run" / "models.json").read_text())
    assert [model["kind"] for model in kept["audited"]] == ["chat", "causal"]
    records = [run.records("one_question", model=each.name) for each in run.models]
    assert [set(table["ask_kind"]) for table in records] == [{"Ask"}, {"Sample"}]
    assert not set(records[0]["key"]) & set(records[1]["key"])
    assert (tmp_path / "run" / "report.html").read_text().count("<td>causal</td>") == 1


def test_a_notice_names_whom_an_audit_could_not_ask(tmp_path):
    class Filled(OneQuestion):
        name = title = question = paper = sources = "filled"
        capabilities = ("fill",)

        def questions(self, stage, plan, records):
            yield Item(request=Fill(text="a [MASK]", words=("b",)), tags={})

    answers = {Ask: TextAnswer(texts=("a",)), Fill: WordAnswer(words=("b",), logprobs=(0.0,))}
    models = [
        FakeModel(answer=lambda request: answers[type(request)], name=name, kind=kind, capabilities=(capability,))
        for name, kind, capability in (("talker", "chat", "ask"), ("filler", "masked", "fill"))
    ]
    run = audit(models, probes=[OneQuestion(), Filled()], folder=tmp_path / "run")
    said = {found.probe: [notice.text for notice in found.notices] for found in run.findings}
    assert said == {
        "filled": ["Not asked here: talker (chat). This audit asks models that offer fill."],
        "one_question": ["Not asked here: filler (masked). This audit asks models that offer ask or sample."],
    }
    assert verify(run.folder, probes=[OneQuestion(), Filled()]).problems == ()
