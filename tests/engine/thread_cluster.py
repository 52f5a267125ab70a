"""A cluster whose workers are threads that can be killed: the driver's rules, tested in milliseconds."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

from clinometer.engine import Answered
from clinometer.engine.cluster.worker import Arrived, Origin, Ready, Result
from clinometer.types import EmbedAnswer, ModelInfo, ModelSpec

INFO = ModelInfo(
    name="m", kind="encoder", family="x", capabilities=("embed",), weights="w", tokenizer="t", dtype="d", code="c"
)


class Died(Exception):
    """What Ray raises when a worker is gone."""


def origin(key="m", **changes) -> Origin:
    return Origin(key=key, spec=ModelSpec(name=key), device="cpu", release="0", **changes)


class Actor:
    """One worker: does one thing after another, until it is killed."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.thread = ThreadPoolExecutor(1)
        self.waiting: list[Future] = []
        self.dead = threading.Event()
        self.held: list[str] = []

    def do(self, work):
        future: Future = Future()
        self.waiting.append(future)

        def run():
            try:
                if self.dead.is_set():
                    raise Died("it was killed")
                found = work(self)
                if self.dead.is_set():
                    raise Died("it was killed")
                if self.cluster.reply_seconds:
                    threading.Timer(self.cluster.reply_seconds, settle, (future, found)).start()
                else:
                    settle(future, found)
            except BaseException as error:
                settle(future, error)

        self.thread.submit(run)
        return future

    def kill(self):
        self.dead.set()
        for future in self.waiting:
            settle(future, Died("it was killed"))


def settle(future, found):
    with contextlib.suppress(Exception):  # it was settled already
        future.set_exception(found) if isinstance(found, BaseException) else future.set_result(found)


class ThreadCluster:
    """`answer(batch, actor)` may sleep, raise, or kill the actor; by default a text's vector is its length."""

    def __init__(self, *, answer=None, load=None, room=2, node_deaths=(), reply_seconds=0.0):
        self.actors: list[Actor] = []
        self.answer_one = answer or (lambda batch, actor: None)
        self.load_one = load or (lambda origin, actor: None)
        self.room = room
        self.node_deaths = node_deaths
        self.reply_seconds = reply_seconds  # until a reply is there; who dies before takes it along
        self.log: list[tuple[str, object]] = []
        self.lock = threading.Lock()

    def total(self):
        return {"CPU": float(self.room)}

    def start(self):
        self.actors.append(Actor(self))
        return self.actors[-1]

    def end(self, actor):
        actor.kill()

    def hello(self, actor):
        return actor.do(lambda _: Arrived(process=1, machine=f"machine-{self.actors.index(actor)}", node=""))

    def load(self, actor, origin, drop):
        def work(actor):
            self.say("load", origin.key)
            self.load_one(origin, actor)
            actor.held = [*(key for key in actor.held if key not in drop), origin.key]
            return Ready(info=INFO, session={"threads": 1, "executor": "ray"}, seconds=0.01)

        return actor.do(work)

    def answer(self, actor, key, batches):
        def work(actor):
            assert key in actor.held, "a worker is asked for a model that it has not loaded"
            began = time.perf_counter()
            answered = []
            for batch in batches:
                self.say("answer", batch.number)
                self.answer_one(batch, actor)
                if actor.dead.is_set():
                    raise Died("it was killed")
                vectors = tuple(EmbedAnswer(vector=(float(len(each.text)),)) for each in batch.requests)
                answered.append(Answered(batch.number, vectors))
            return Result(answered=tuple(answered), seconds=time.perf_counter() - began)

        return actor.do(work)

    def say(self, what, about):
        with self.lock:
            self.log.append((what, about))

    def is_death(self, error):
        return isinstance(error, Died)

    def is_node_death(self, error, hand):
        return self.actors.index(hand.actor) in self.node_deaths

    def cause(self, error):
        return error
