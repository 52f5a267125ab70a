"""Audits of models behind an address: nothing lost, nothing recorded twice, stopped cleanly, resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import clinometer
from clinometer.engine import Limits, Silent
from clinometer.engine.journal import NAME
from clinometer.errors import EndpointError, ModelError, SpecError, StoppedError
from clinometer.models.endpoint import transport
from clinometer.models.endpoint.model import EndpointModel
from clinometer.models.endpoint.sending import Patience
from clinometer.models.endpoint.transport import Arrived
from clinometer.models.load import load_model
from clinometer.store import RunFolder, StageKey, findings_digest
from clinometer.types import AuditSpec, ModelSpec
from clinometer.workflows import Execution
from clinometer.workflows.checks import check_addresses
from tests.digits_probe import Digits
from tests.endpoint_server import MISCHIEF, Endpoint, serve_endpoint

pytest.importorskip("openai", reason="not installed: openai; see `make setup`")

KEY = StageKey(probe="digits", model="m", stage="first")
ROOT = Path(__file__).parents[2]
HASTY = Patience(first=0.002, longest=0.05)


class Notes(Silent):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def spec_of(endpoint, **more):
    return ModelSpec(name="openai:m", base_url=endpoint.url, alias="m", **more)


def ask(endpoint, folder, *, answers=1, progress=None, price=None, **execution):
    """84 questions, each so many times."""
    chosen = Execution(**{"concurrency": 16, "patience": HASTY, **execution})
    return clinometer.audit(
        spec_of(endpoint, price=price or {}), probes=Digits(), options={"digits": {"answers": answers}},
        folder=folder, execution=chosen, progress=progress,
    )  # fmt: skip


def resume(folder, **execution):
    return clinometer.resume(folder, probes=[Digits()], execution=Execution(patience=HASTY, **execution))


def verified(run):
    return clinometer.verify(run, probes=[Digits()]).problems == ()


def texts_of(folder):
    return RunFolder.open(folder).table(KEY, columns=["index", "got_texts"]).rows()


def questions(endpoint):
    """Those of the audit, without those that find out what is offered."""
    return [body for body in endpoint.bodies if "which digit" in str(body)]


class Direct:
    """Carries calls to an endpoint without a network: what a healthy server would answer."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    async def post(self, path, body):
        return Arrived(body=json.loads(self.endpoint.good(path, dict(body))), headers={})

    async def close(self):
        pass


def test_a_hostile_server_gives_the_findings_of_a_healthy_one(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "LARGEST_BODY", 1 << 20)
    hostile = Endpoint(many=False, seed=3, huge=(1 << 20) + 1)
    progress = Notes()
    with serve_endpoint(hostile):
        found = load_model(spec_of(hostile))  # what it offers is found out in a good moment
        hostile.bad = 0.4
        second = ask(hostile, tmp_path / "hostile", answers=24, progress=progress)
    info = replace(found.info, name="m")
    healthy = EndpointModel(info=info, transport=Direct(hostile), offer=found.offer, served="m", where="here")
    options = {"digits": {"answers": 24}}
    first = clinometer.audit(healthy, probes=Digits(), options=options, folder=tmp_path / "healthy")
    asked = [name for name in hostile.asked if "which digit" in name]
    assert len(asked) == 84 * 24  # 2,016
    assert set(hostile.mischief) == set(MISCHIEF)
    assert sum(hostile.mischief.values()) > 700
    assert texts_of(tmp_path / "hostile") == texts_of(tmp_path / "healthy")
    assert len(texts_of(tmp_path / "hostile")) == 84
    assert findings_digest(first.findings) == findings_digest(second.findings)
    # every attempt is counted, and what was answered well was asked again only where an answer came twice
    table = RunFolder.open(tmp_path / "hostile").table(KEY)
    assert table["from_tries"].sum() == sum(hostile.asked[name] for name in asked)
    assert any("were sent again" in note for note in progress.notes)
    again = sum(hostile.answered[name] - 1 for name in asked)
    assert 0 <= again <= hostile.mischief["old answer"]
    assert not list(tmp_path.rglob(NAME))
    assert len(list((tmp_path / "hostile" / "records").rglob("*.parquet"))) == 1


def test_a_server_that_dies_loses_nothing_that_was_answered(tmp_path):
    dying = Endpoint(die_after=60)
    short = Patience(first=0.002, longest=0.01, tries=4)
    with serve_endpoint(dying):
        spec = spec_of(dying)
        with pytest.raises(EndpointError, match="gave no answer in 4 attempts"):
            ask(dying, tmp_path / "run", patience=short)
    kept = RunFolder.open(tmp_path / "run").done(KEY)
    assert 30 <= len(kept) < 84
    port = int(spec.base_url.rsplit(":", 1)[1].removesuffix("/v1"))
    with serve_endpoint(Endpoint(), port=port) as revived:
        run = resume(tmp_path / "run")
    assert len(questions(revived)) == 84 - len(kept)
    assert len(texts_of(tmp_path / "run")) == 84
    assert verified(run)


@pytest.mark.parametrize("limits", [Limits(requests=40), Limits(tokens=1_000)])
def test_a_budget_stops_cleanly_and_the_rest_can_be_asked_later(tmp_path, limits):
    with serve_endpoint() as endpoint:
        with pytest.raises(StoppedError, match="is used up"):
            ask(endpoint, tmp_path / "run", limits=limits)
        sent = endpoint.number
        if limits.requests:
            assert sent == 40
        assert 0 < len(RunFolder.open(tmp_path / "run").done(KEY)) == len(questions(endpoint))
        resume(tmp_path / "run")
        assert len(questions(endpoint)) == 84  # nothing was asked twice
    assert len(texts_of(tmp_path / "run")) == 84


PRICE = {"input": 100.0, "output": 1_000.0}  # for a million tokens


def bill(endpoint):
    """What the answers of this server cost, as it counts them: 10 tokens in, 4 out for each text."""
    return sum(10 * 100e-6 + 4 * body.get("n", 1) * 1_000e-6 for body in endpoint.bodies)


@pytest.mark.parametrize("limits", [Limits(requests=7), Limits(tokens=100), Limits(cost=0.03)])
def test_finding_out_what_is_offered_stays_within_the_budget(tmp_path, limits):
    with serve_endpoint() as endpoint:
        with pytest.raises(SpecError, match="does not suffice to find out what the endpoint offers"):
            ask(endpoint, tmp_path / "run", limits=limits, price=PRICE)
        assert 0 < endpoint.number <= 7
        assert bill(endpoint) <= 0.03 or not limits.cost
    assert not (tmp_path / "run").exists()


def test_the_cost_of_finding_out_is_part_of_what_a_command_may_spend(tmp_path):
    with serve_endpoint() as endpoint:
        load_model(spec_of(endpoint))
        trials = bill(endpoint)
    with serve_endpoint() as endpoint:
        with pytest.raises(StoppedError, match="--max-cost"):
            ask(endpoint, tmp_path / "run", limits=Limits(cost=trials + 0.1), price=PRICE)
        assert trials < bill(endpoint) <= trials + 0.1
        assert len(questions(endpoint)) >= 10
        # what was found out is known in this process: it is not counted twice
        with pytest.raises(StoppedError, match="--max-cost"):
            resume(tmp_path / "run", limits=Limits(cost=0.1))
        assert len(questions(endpoint)) >= 20


def test_a_limit_on_cost_without_prices_is_refused_before_anything_is_sent(tmp_path):
    with serve_endpoint() as endpoint:
        with pytest.raises(SpecError, match="--price"):
            ask(endpoint, tmp_path / "run", limits=Limits(cost=1.0))
        assert endpoint.number == 0


def test_an_endpoint_that_changes_within_a_run_is_reported(tmp_path):
    changing = Endpoint(fingerprint=lambda number: "fp-1" if number < 50 else "fp-2")
    progress = Notes()
    with serve_endpoint(changing):
        run = ask(changing, tmp_path / "run", progress=progress)
    assert any("now says it is m, fp-2" in note for note in progress.notes)
    (warning,) = [notice.text for notice in run.findings[0].notices if "different models" in notice.text]
    assert "fp-1" in warning
    assert "fp-2" in warning
    assert verified(run)


def test_an_audit_that_would_rescore_says_that_it_asks_for_one_word(tmp_path):
    class Rescoring(Digits):
        capabilities = ("rescore", "ask")

    with serve_endpoint() as endpoint:
        options = {"digits": {"questions": 3}}
        told, untold = (
            clinometer.audit(spec_of(endpoint), probes=probe, options=options, folder=tmp_path / str(number))
            for number, probe in enumerate((Rescoring(), Digits()))
        )
    assert "it is asked for one word" in told.findings[0].notices[-1].text
    assert not [notice for notice in untold.findings[0].notices if "rescoring" in notice.text]


def test_a_later_stage_that_asks_nothing_does_not_end_the_audit(tmp_path):
    with serve_endpoint() as endpoint:
        options = {"digits": {"questions": 3, "then": -1}}
        run = clinometer.audit(spec_of(endpoint), probes=Digits(), options=options, folder=tmp_path / "run")
    assert {row.labels["stage"] for row in run.findings[0].tables[0].rows} == {"first"}
    assert verified(run)


def test_a_change_is_reported_when_answers_come_from_the_cache(tmp_path):
    with serve_endpoint() as endpoint:
        ask(endpoint, tmp_path / "first", cache=tmp_path / "cache")
        asked = len(questions(endpoint))
        again = ask(endpoint, tmp_path / "second", cache=tmp_path / "cache")
        assert len(questions(endpoint)) == asked == 84
        assert not [notice for notice in again.findings[0].notices if notice.level == "warning"]
        assert RunFolder.open(tmp_path / "second").table(KEY)["from_fingerprint"].unique().to_list() == ["fp-1"]
        # the same address later says that it is another model
        from clinometer.models.providers import openai

        openai._offer.cache_clear()
        endpoint.fingerprint = lambda number: "fp-2"
        progress = Notes()
        third = ask(endpoint, tmp_path / "third", cache=tmp_path / "cache", progress=progress)
        assert len(questions(endpoint)) == 84
    assert any("the cache has answers of an endpoint that said it was m, fp-1" in note for note in progress.notes)
    (warning,) = [notice for notice in third.findings[0].notices if notice.level == "warning"]
    assert "an endpoint that said it was m, fp-1, server: test; when this run began" in warning.text
    assert "it said it was m, fp-2, server: test" in warning.text
    assert verified(third)


def test_a_run_of_somebody_else_does_not_lead_to_an_address_that_nobody_named(monkeypatch):
    monkeypatch.delenv("CLINOMETER_API_URL", raising=False)

    def spec(url):
        return AuditSpec(probes=("stigma",), models=(ModelSpec(name="openai:m", base_url=url),))

    with pytest.raises(ModelError, match=r"say so with --base-url https://models\.example/v1"):
        check_addresses(spec("https://models.example/v1"))
    monkeypatch.setenv("CLINOMETER_API_URL", "https://models.example/v1")
    check_addresses(spec("https://models.example/v1"))
    for known in ("", "http://127.0.0.1:8080/v1", "https://api.openai.com/v1"):
        check_addresses(spec(known))


SCRIPT = """
import sys
import clinometer
from clinometer.types import AuditSpec, ModelSpec
from clinometer.workflows import Execution
from clinometer.workflows.checks import check_addresses
spec = ModelSpec(name="openai:m", base_url=sys.argv[1], alias="m")
from tests.digits_probe import Digits
clinometer.audit(spec, probes=Digits(), folder=sys.argv[2], execution=Execution(concurrency=4))
"""


def test_a_kill_loses_at_most_what_was_in_the_air(tmp_path):
    place = tmp_path / "run"

    def slowly(path, body):
        time.sleep(0.01)  # the server does one thing at a time
        return [f"{len(str(body)) % 4}"] * body.get("n", 1)

    with serve_endpoint(Endpoint(answer=slowly)) as endpoint:
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, endpoint.url, str(place)], cwd=ROOT)
        deadline = time.monotonic() + 60
        while len(questions(endpoint)) < 30 and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.1)  # what was in the air is answered to nobody
        before = len(questions(endpoint))
        (journal,) = place.rglob(NAME)
        kept = journal.read_bytes().count(b"\n")
        assert before - 4 <= kept <= before
        resume(place)
        assert len(questions(endpoint)) - before == 84 - kept
    assert len(texts_of(place)) == 84
