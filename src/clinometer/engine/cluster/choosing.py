"""Which batches a free worker is given. Pure rules over what waits and who has which model.

A worker stays with the models it has: loading one takes as long as many batches. One that has nothing to do loads
the model that the fewest workers have, so that the next model is loaded while others finish the present one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

TASK_SECONDS = 0.25  # of work in one message to a worker: long beside what a message costs
MOST_BATCHES = 8  # in one message; as many as a GPU gets ahead
STARVED_SECONDS = 0.5  # how long a worker waits for more of what it has before it loads something else


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one stream of batches asks of the cluster, as it is now."""

    model: str
    waiting: int  # batches that nobody has
    open: bool = True  # whether more will come
    holders: int = 0  # workers that have the model, or are loading it
    batch_seconds: float = 0.0  # of one batch; 0: not known yet
    load_seconds: float = 0.0  # of the model; 0: not known yet
    empty_seconds: float = 0.0  # for how long nothing has been waiting


def choose(demands: Sequence[Demand], *, has: Collection[str], busy: bool) -> int | None:
    """Return the place of the stream from which a worker is given batches; None: it waits.

    `has` are the models it has loaded, `busy` says whether it has work. Streams come in the order of
    their opening.

    >>> choose([Demand(model="a", waiting=3), Demand(model="b", waiting=9)], has={"b"}, busy=False)
    1
    """
    for place, demand in enumerate(demands):
        if demand.waiting and demand.model in has:
            return place
    if busy:  # a model that is loaded now would wait behind the work, and work behind it
        return None
    soon = any(each.open and each.model in has and each.empty_seconds < STARVED_SECONDS for each in demands)
    if soon:
        return None
    worth = [place for place, demand in enumerate(demands) if demand.waiting and _is_worth_loading(demand)]
    return min(worth, key=lambda place: (demands[place].holders, place), default=None)


def _is_worth_loading(demand: Demand) -> bool:
    """Tell whether one more worker would have the model before the others are through."""
    if not demand.holders or demand.open or not demand.batch_seconds:
        return True
    left = demand.waiting * demand.batch_seconds / demand.holders
    return left > demand.load_seconds


def batches_in_a_task(demand: Demand, *, workers: int) -> int:
    """Return how many batches go in one message: many short ones, but never so many that others have none.

    >>> batches_in_a_task(Demand(model="a", waiting=100, batch_seconds=0.05), workers=2)
    5
    >>> batches_in_a_task(Demand(model="a", waiting=6, batch_seconds=0.05), workers=2)
    2
    """
    if not demand.batch_seconds:
        return 1
    long_enough = round(TASK_SECONDS / demand.batch_seconds)
    fair = -(-demand.waiting // (2 * max(1, workers)))
    return max(1, min(long_enough, MOST_BATCHES, fair))


def is_late(seconds: float, *, usual: float, batches: int, patience: float) -> bool:
    """Tell whether a task runs so long that it is given to somebody else, too.

    `usual` is how long one of its batches usually takes; the longest come first, so five times that is much.

    >>> is_late(31, usual=0.1, batches=2, patience=30), is_late(31, usual=4.0, batches=2, patience=30)
    (True, False)
    """
    return seconds > max(patience, 5.0 * usual * max(1, batches))
