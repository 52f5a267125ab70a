"""What a command may spend on endpoints, counted before every attempt and settled after it.

An attempt that got no answer may still have been charged: where the endpoint may have worked on it (a cut
connection, a time-out, an unreadable answer), all that it could have cost is counted. So the limits hold, and the
bill is at most what is counted, as far as the endpoint counts tokens as we estimate them before it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clinometer.errors import SpecError, StoppedError
from clinometer.models.protocols import Call, Reply

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one command may spend; 0: no limit."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.requests or self.tokens or self.cost)


@dataclass(slots=True)
class Spent:
    """What was spent, resent attempts included."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0

    def __str__(self) -> str:
        cost = f", cost {self.cost:,.4g}" if self.cost else ""
        return f"{self.requests:,} requests, {self.tokens:,} tokens{cost}"


@dataclass(slots=True)
class Budget:
    """The limits of a command, and what all its models have spent so far."""

    limits: Limits = field(default_factory=Limits)
    spent: Spent = field(default_factory=Spent)
    reserved: Spent = field(default_factory=Spent)

    def meter(self, price: Mapping[str, float]) -> PricedMeter:
        """Return what counts for one model."""
        if self.limits.cost and not price:
            raise SpecError(
                "--max-cost needs prices: give --price INPUT/OUTPUT (for a million tokens), or in the spec "
                "price = {input = 0.15, output = 0.60}"
            )
        return PricedMeter(self, price)

    def require(self, *, requests: int, tokens: int, cost: float) -> None:
        """Raise StoppedError unless so much more may be spent."""
        for name, limit, more in (
            ("requests", self.limits.requests, requests),
            ("tokens", self.limits.tokens, tokens),
            ("cost", self.limits.cost, cost),
        ):
            if limit and getattr(self.spent, name) + getattr(self.reserved, name) + more > limit:
                raise StoppedError(f"--max-{name} {limit:,} is used up ({self.spent})")


@dataclass(frozen=True, slots=True)
class PricedMeter:
    """Counts the attempts of one model with its prices."""

    budget: Budget
    price: Mapping[str, float]

    def reserve(self, call: Call) -> None:
        """Count an attempt, or raise StoppedError if it could exceed a limit."""
        most = self._most(call)
        self.budget.require(requests=1, tokens=call.tokens, cost=most)
        self.budget.spent.requests += 1
        self.budget.reserved.tokens += call.tokens
        self.budget.reserved.cost += most

    def settle(self, call: Call, reply: Reply | None) -> None:
        """Put what an attempt cost in the place of what it could have cost."""
        most = self._most(call)
        self.budget.reserved.tokens -= call.tokens
        self.budget.reserved.cost -= most
        if reply is None:
            return
        given, made = _tokens(reply, "tokens_in"), _tokens(reply, "tokens_out")
        counted = bool(given or made)  # an endpoint that does not count is believed to have taken all it could
        self.budget.spent.tokens += given + made if counted else call.tokens
        self.budget.spent.cost += self._cost(given, made) if counted else most

    def _most(self, call: Call) -> float:
        answer = int(call.body.get("max_tokens") or call.body.get("max_completion_tokens") or 0)
        made = min(call.tokens, answer * int(call.body.get("n", 1)))
        return self._cost(call.tokens - made, made)

    def _cost(self, given: int, made: int) -> float:
        return (given * self.price.get("input", 0.0) + made * self.price.get("output", 0.0)) / _MILLION


def _tokens(reply: Reply, name: str) -> int:
    value = reply.source.get(name, 0)
    return value if isinstance(value, int) else 0
