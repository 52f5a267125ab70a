"""What an audit will cost: requests and tokens, and for a model that runs here about how long it will take.

Nothing is sent and nothing is recorded. A model here is loaded, and a few of the audit's own questions are timed.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from clinometer.engine import WINDOW, LocalExecutor, default_budget
from clinometer.engine.batching import plan_batches
from clinometer.engine.executor import Batch
from clinometer.models.endpoint.asking import prompt_tokens
from clinometer.models.load import Providers, load_model
from clinometer.models.protocols import CanSend, Model
from clinometer.models.providers.protocol import CanPlan, GivenModels
from clinometer.spec import with_folders
from clinometer.types import Item, ModelSpec, Request
from clinometer.workflows.audit import AuditRequest
from clinometer.workflows.checks import check_spec
from clinometer.workflows.planned import PlannedStage, planned_stages
from clinometer.workflows.plans import all_models, labels_of, probes_of, with_roles, with_user_data

_TIMED_SECONDS = 5.0  # of each model: then the rest is estimated from what was timed
_TIMED_BATCHES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEstimate:
    """What one stage of one audit asks of one model."""

    audit: str
    model: str
    stage: str
    requests: int  # to an endpoint: calls; here: questions. 0: not known before earlier answers are
    tokens_in: int
    tokens_out: int  # at most
    seconds: float = 0.0  # of a model here, from what was timed; 0: not estimated
    cost: float = 0.0  # by the spec's price
    sent: bool = False  # whether requests go to an endpoint


def estimate_audit(request: AuditRequest) -> Iterator[StageEstimate]:
    """Yield what every stage will ask; the first stages exactly, later ones by their size where it is known."""
    spec = with_folders(request.spec, base=Path.cwd())
    probes = probes_of(spec, given=request.probes)
    spec = with_roles(with_user_data(spec, probes), probes)
    check_spec(spec, probes)
    providers = Providers(GivenModels(request.models))
    labels = labels_of(all_models(spec))
    for label, model_spec in zip(labels, spec.models, strict=False):
        provider = providers.of(model_spec.name)
        if isinstance(provider, CanPlan):
            model: Model = provider.planned(model_spec)
        else:
            model = load_model(model_spec, device=request.execution.device, providers=providers)
        info = replace(model.info, name=label)
        for planned in planned_stages(spec, probes, model, info):
            yield _estimated(planned, model, model_spec, label, device=request.execution.device)


def _estimated(planned: PlannedStage, model: Model, spec: ModelSpec, label: str, *, device: str) -> StageEstimate:
    known = StageEstimate(
        audit=planned.audit, model=label, stage=planned.stage.name, requests=0, tokens_in=0, tokens_out=0
    )
    if planned.items is None:
        return replace(known, requests=planned.stage.size, sent=isinstance(model, CanSend))
    if isinstance(model, CanSend):
        return _of_calls(known, model, spec, planned.items)
    return _timed(known, model, planned.items, budget=default_budget(device))


def _of_calls(known: StageEstimate, model: CanSend, spec: ModelSpec, items: Iterable[Item]) -> StageEstimate:
    """Count the calls to an endpoint; identical questions are asked once."""
    requests = given = made = 0
    for distinct in _distinct(items):
        for call in model.calls(distinct):
            asked = prompt_tokens(call.body)
            requests, given, made = requests + 1, given + asked, made + call.tokens - asked
    cost = (given * spec.price.get("input", 0.0) + made * spec.price.get("output", 0.0)) / 1_000_000
    return replace(known, requests=requests, tokens_in=given, tokens_out=made, cost=cost, sent=True)


def _timed(known: StageEstimate, model: Model, items: Iterable[Item], *, budget: int) -> StageEstimate:
    """Count tokens, and time some batches of the first window, from its longest to its shortest."""
    requests = tokens = 0
    seconds = 0.0
    for number, window in enumerate(_windows(items)):
        costs = model.cost(window)
        requests, tokens = requests + len(window), tokens + sum(costs)
        if number == 0:
            per_token = _seconds_per_token(model, window, costs, budget)
    if requests:
        seconds = per_token * tokens
    return replace(known, requests=requests, tokens_in=tokens, seconds=seconds)


def _seconds_per_token(model: Model, window: list[Request], costs: list[int], budget: int) -> float:
    plan = plan_batches(costs, budget=budget)
    chosen = [plan[place * (len(plan) - 1) // max(1, _TIMED_BATCHES - 1)] for place in range(_TIMED_BATCHES)]
    executor = LocalExecutor(model)
    began, tokens = time.perf_counter(), 0
    for number, places in enumerate(chosen[: len(plan)]):
        some = places[: max(1, len(places) // 4)] if len(plan) == 1 else places
        list(executor.run([Batch(number, [window[place] for place in some])]))
        tokens += sum(costs[place] for place in some)
        if time.perf_counter() - began > _TIMED_SECONDS:
            break
    return (time.perf_counter() - began) / max(1, tokens)


def _windows(items: Iterable[Item]) -> Iterator[list[Request]]:
    remaining = iter(items)
    while some := [item.request for item in itertools.islice(remaining, WINDOW)]:
        yield list(dict.fromkeys(some))


def _distinct(items: Iterable[Item]) -> Iterator[Request]:
    return itertools.chain.from_iterable(_windows(items))
