"""Who answers which batch, and what happens when workers die: the driver, on workers that are threads."""

from __future__ import annotations

import contextlib
import random
import threading
import time

import pytest

from clinometer.engine import Batch, ClusterSettings
from clinometer.engine.cluster.choosing import Demand, batches_in_a_task, choose
from clinometer.engine.cluster.driver import Driver
from clinometer.engine.cluster.executor import RayExecutor
from clinometer.engine.cluster.hands import Hand, Job, Stream
from clinometer.engine.cluster.settings import read_resources
from clinometer.errors import ModelError, PoisonedError, SpecError, WorkerError
from clinometer.types import Embed, ModelInfo
from tests.engine.thread_cluster import INFO, ThreadCluster, origin


def batches(count, *, size=2):
    return [Batch(number, [Embed(text="x" * (number + 1))] * size) for number in range(count)]


@contextlib.contextmanager
def driving(cluster, *, workers=2, patience=30.0):
    driver = Driver(ClusterSettings(workers=workers), cluster, patience=patience)
    try:
        yield driver
    finally:
        driver.close()


def lengths(answered):
    return {each.number: [answer.vector[0] for answer in each.answers] for each in answered}


def expected(count, *, size=2):
    return {number: [float(number + 1)] * size for number in range(count)}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_every_batch_is_answered_once(workers):
    with driving(ThreadCluster(), workers=workers) as driver:
        answered = list(RayExecutor(driver, origin()).run(batches(100)))
    assert len(answered) == 100
    assert lengths(answered) == expected(100)


def test_batches_are_not_planned_long_before_they_are_answered():
    planned = []

    def plan():
        for batch in batches(500):
            planned.append(batch.number)
            yield batch

    most = 0
    with driving(ThreadCluster(), workers=2) as driver:
        for count, _ in enumerate(RayExecutor(driver, origin()).run(plan())):
            most = max(most, len(planned) - count)
    assert most <= 8 * 3 + 1, "with two workers, at most 24 batches are under way"


def test_workers_that_are_killed_at_random_lose_and_repeat_nothing():
    rng = random.Random(7)

    def sometimes(batch, actor):
        time.sleep(0.001)
        if rng.random() < 0.05:
            actor.kill()

    with driving(ThreadCluster(answer=sometimes), workers=3) as driver:
        answered = list(RayExecutor(driver, origin()).run(batches(300)))
        assert len(driver.notes()) > 5, "workers died, and the user is told"
    assert sorted(each.number for each in answered) == list(range(300))
    assert lengths(answered) == expected(300)


def test_a_batch_that_kills_every_worker_is_given_up_after_three_tries_and_named():
    def poison(batch, actor):
        if batch.number == 5:
            actor.kill()

    cluster = ThreadCluster(answer=poison)
    answered = []
    with driving(cluster) as driver, pytest.raises(PoisonedError) as error:
        answered.extend(RayExecutor(driver, origin()).run(batches(40)))
    assert sorted(each.number for each in answered) == [number for number in range(40) if number != 5]
    assert cluster.log.count(("answer", 5)) == 3
    assert "batch 5 (2 requests, the longest: 'xxxxxx') of m died, three in a row" in str(error.value)


@pytest.mark.parametrize("number", [0, 5])
def test_a_batch_that_kills_before_the_reply_to_what_came_before_it_is_there_accuses_nothing_else(number):
    """A worker that dies takes along what it has just said: of the model that it loaded, of the batch before."""

    def poison(batch, actor):
        if batch.number == number:
            actor.kill()

    cluster = ThreadCluster(answer=poison, reply_seconds=0.02)
    answered = []
    with driving(cluster) as driver, pytest.raises(PoisonedError) as error:
        answered.extend(RayExecutor(driver, origin()).run(batches(12)))
    assert sorted(each.number for each in answered) == [each for each in range(12) if each != number]
    assert f"batch {number} (2 requests" in str(error.value)
    assert "three in a row" in str(error.value)


class InLine(ThreadCluster):
    """Notes what each worker has in line whenever it is given something: numbers of batches, or "load"."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.lines = []  # (what it is given, what it has in line)
        self.sent = {}

    def load(self, actor, origin, drop):
        return self._noted(actor, ("load",), super().load(actor, origin, drop))

    def answer(self, actor, key, batches):
        numbers = tuple(batch.number for batch in batches)
        return self._noted(actor, numbers, super().answer(actor, key, batches))

    def _noted(self, actor, given, future):
        line = self.sent.setdefault(actor, [])
        self.lines.append((given, [other for other, reply in line if not reply.done()]))
        line.append((given, future))
        return future


@pytest.mark.parametrize("number", [0, 5])
def test_what_was_in_line_with_a_death_is_tried_alone_with_nothing_before_or_behind_it(number):
    deaths = []

    def once(batch, actor):
        if batch.number == number and not deaths:
            deaths.append([given for given, reply in cluster.sent[actor] if not reply.done()])
            deaths.append(len(cluster.lines))
            actor.kill()

    cluster = InLine(answer=once, reply_seconds=0.02)
    with driving(cluster, workers=1) as driver:
        assert lengths(RayExecutor(driver, origin()).run(batches(12))) == expected(12)
    line, before = deaths
    assert len(line) > 1, "something else was in line"
    suspects = {each for given in line for each in given}
    after = cluster.lines[before:]
    for given, waiting in after:
        if suspects & {*given}:
            assert len(given) == 1
            assert waiting == [], "it waits until the worker has nothing to do"
        assert not suspects & {each for other in waiting for each in other}, "and nothing is put behind it"
    assert suspects <= {each for given, _ in after for each in given}


def test_a_node_that_goes_down_accuses_no_batch():
    deaths = set(range(100))

    def unlucky(batch, actor):
        if batch.number == 3 and cluster.log.count(("answer", 3)) <= 4:
            actor.kill()

    cluster = ThreadCluster(answer=unlucky, node_deaths=deaths)
    with driving(cluster) as driver:
        answered = list(RayExecutor(driver, origin()).run(batches(10)))
    assert lengths(answered) == expected(10)
    assert cluster.log.count(("answer", 3)) == 5


def test_what_a_late_worker_has_is_given_to_another_and_the_first_answer_counts():
    hanging = threading.Event()

    def slow(batch, actor):
        if batch.number == 2 and not hanging.is_set():
            hanging.set()
            actor.dead.wait(20)

    with driving(ThreadCluster(answer=slow), patience=0.3) as driver:
        began = time.monotonic()
        answered = list(RayExecutor(driver, origin()).run(batches(12)))
        assert time.monotonic() - began < 10
        assert any("is late" in note for note in driver.notes())
    assert sorted(each.number for each in answered) == list(range(12))


def test_the_second_answer_to_a_batch_is_not_counted():
    asked = []

    def slow(batch, actor):
        if batch.number == 2:
            asked.append(actor)
            time.sleep(0.9)  # the first is late, and answers before the second

    def plan():
        yield from batches(4)
        time.sleep(2.2)
        yield Batch(4, [Embed(text="xxxxx")] * 2)

    with driving(ThreadCluster(answer=slow), workers=3, patience=0.3) as driver:
        answered = list(RayExecutor(driver, origin()).run(plan()))
    assert len(asked) == 2, "it was given to a second worker"
    assert sorted(each.number for each in answered) == list(range(5))


def test_a_batch_with_which_a_worker_died_goes_alone():
    stream = Stream(origin())
    jobs = [Job(stream, batch) for batch in batches(4)]
    jobs[1].suspect = True
    stream.waiting.extend(jobs)
    assert [[job.batch.number for job in stream.take(3)] for _ in range(3)] == [[0], [1], [2, 3]]


def test_an_error_of_the_model_is_raised_as_it_is():
    def wrong(batch, actor):
        raise ModelError("one request of 30 tokens does not fit")

    with driving(ThreadCluster(answer=wrong)) as driver, pytest.raises(ModelError, match="30 tokens"):
        list(RayExecutor(driver, origin()).run(batches(3)))


def test_a_worker_whose_gpu_is_lost_is_replaced():
    def broken(batch, actor):
        if len(cluster.actors) == 1:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    cluster = ThreadCluster(answer=broken)
    with driving(cluster, workers=1) as driver:
        assert lengths(RayExecutor(driver, origin()).run(batches(4))) == expected(4)
    assert len(cluster.actors) == 2


def test_a_model_that_kills_whoever_loads_it_is_an_error():
    cluster = ThreadCluster(load=lambda origin, actor: actor.kill())
    with driving(cluster) as driver, pytest.raises(WorkerError, match="3 workers died while they loaded m"):
        list(RayExecutor(driver, origin()).run(batches(3)))


def test_workers_that_never_begin_are_an_error():
    class Stillborn(ThreadCluster):
        def hello(self, actor):
            actor.kill()
            return super().hello(actor)

    with driving(Stillborn()) as driver, pytest.raises(WorkerError, match="ended as soon as they began"):
        list(RayExecutor(driver, origin()).run(batches(3)))


def test_another_model_than_the_run_began_with_is_refused():
    other = ModelInfo(**{name: getattr(INFO, name) for name in INFO.__slots__} | {"weights": "other"})
    with (
        driving(ThreadCluster()) as driver,
        pytest.raises(ModelError, match=r"m on machine-\d is not the model of this run: it has another weights"),
    ):
        list(RayExecutor(driver, origin(expected=other)).run(batches(3)))


def test_several_models_are_answered_at_once_and_each_worker_stays_with_its_own():
    cluster = ThreadCluster(answer=lambda *_: time.sleep(0.005))
    found = {}
    with driving(cluster, workers=2) as driver:

        def ask(key):
            found[key] = lengths(RayExecutor(driver, origin(key)).run(batches(60)))

        threads = [threading.Thread(target=ask, args=(key,)) for key in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {"a": expected(60), "b": expected(60)}
    assert [what for what, _ in cluster.log].count("load") <= 4, "no worker loads a model twice"


def test_the_next_model_is_loaded_while_the_last_batches_of_the_present_one_run():
    def slow_at_the_end(batch, actor):
        time.sleep(1.0 if batch.number == 29 else 0.01)
        cluster.say("answered", batch.number)

    cluster = ThreadCluster(answer=slow_at_the_end)
    later = [Batch(1000 + number, [Embed(text="x")]) for number in range(4)]
    with driving(cluster, workers=2) as driver:
        following = threading.Thread(target=lambda: list(RayExecutor(driver, origin("b")).run(later)))
        present = RayExecutor(driver, origin("a")).run(batches(30))
        next(present)
        following.start()
        list(present)
        following.join()
    assert cluster.log.index(("load", "b")) < cluster.log.index(("answered", 29))


def test_workers_come_when_there_is_room():
    cluster = ThreadCluster(room=1, answer=lambda *_: time.sleep(0.02))
    driver = Driver(ClusterSettings(), cluster)
    try:
        stream = RayExecutor(driver, origin()).run(batches(400))
        next(stream)
        assert len(cluster.actors) == 1
        cluster.room = 3
        for _ in stream:
            if len(cluster.actors) == 3:
                break
        assert len(cluster.actors) == 3
    finally:
        driver.close()


def test_whoever_waits_when_the_cluster_is_closed_is_told():
    cluster = ThreadCluster(answer=lambda batch, actor: actor.dead.wait(5))
    driver = Driver(ClusterSettings(workers=1), cluster)
    threading.Timer(0.3, driver.close).start()
    with pytest.raises(WorkerError, match="closed"):
        list(RayExecutor(driver, origin()).run(batches(3)))


# -- the rules


def test_a_worker_remembers_only_its_last_seconds_even_if_nobody_asks_for_its_rate():
    hand = Hand(1, actor=None)
    for second in range(100_000):
        hand.learn(0.5, 64, now=float(second))
    assert len(hand.past) == 31
    assert hand.worked == 50_000
    assert hand.rate(99_999.0) == pytest.approx(64 * 31 / 30)


def test_a_free_worker_loads_what_the_fewest_have():
    demands = [Demand(model="a", waiting=9, holders=2), Demand(model="b", waiting=1), Demand(model="c", waiting=9)]
    assert choose(demands, has=(), busy=False) == 1
    assert choose(demands, has=("c",), busy=False) == 2
    assert choose(demands, has=(), busy=True) is None


def test_a_worker_waits_a_little_for_more_of_what_it_has():
    soon = Demand(model="a", waiting=0, holders=1, empty_seconds=0.1)
    other = Demand(model="b", waiting=5)
    assert choose([soon, other], has=("a",), busy=False) is None
    starved = Demand(model="a", waiting=0, holders=1, empty_seconds=9.0)
    assert choose([starved, other], has=("a",), busy=False) == 1


def test_a_model_is_not_loaded_for_the_last_batch_of_another_worker():
    last = Demand(model="a", waiting=1, open=False, holders=1, batch_seconds=0.1, load_seconds=5.0)
    assert choose([last], has=(), busy=False) is None
    many = Demand(model="a", waiting=100, open=False, holders=1, batch_seconds=0.1, load_seconds=5.0)
    assert choose([many], has=(), busy=False) == 0


def test_a_message_never_takes_what_others_need():
    assert batches_in_a_task(Demand(model="a", waiting=1000, batch_seconds=0.001), workers=4) == 8
    assert batches_in_a_task(Demand(model="a", waiting=4, batch_seconds=0.001), workers=4) == 1
    assert batches_in_a_task(Demand(model="a", waiting=1000, batch_seconds=3.0), workers=4) == 1


def test_resources_as_they_are_written():
    assert read_resources(["GPU=2", "cpu=4,a100=0.5"]) == {"gpu": 2.0, "cpu": 4.0, "a100": 0.5}
    for wrong in ("gpu", "gpu=", "=1", "gpu=-1", "gpu=nan", "gpu=many"):
        with pytest.raises(SpecError, match="expected NAME=NUMBER"):
            read_resources([wrong])
    settings = ClusterSettings(resources={"gpu": 2.0, "a100": 0.5, "memory": 1e9})
    assert settings.actor_options() == {
        "num_cpus": 1.0,
        "num_gpus": 2.0,
        "resources": {"a100": 0.5},
        "memory": 1_000_000_000,
    }
    assert settings.room_in({"CPU": 64, "GPU": 8, "a100": 8, "memory": 3.5e9}) == 3
    assert ClusterSettings(resources={"gpu": 0.5}).device("auto") == "cuda"
    assert ClusterSettings(resources={"gpu": 1}).device("cpu") == "cpu"
    assert ClusterSettings(resources={"cpu": 4}).threads_of_worker == 4
    assert ClusterSettings(resources={"cpu": 4}, threads=2).threads_of_worker == 2
