from __future__ import annotations

import pytest

from clinometer.engine import Batch, LocalExecutor
from clinometer.engine import executor as executor_module
from clinometer.errors import ModelError
from clinometer.types import Embed, EmbedAnswer, ModelInfo


class OutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


class SmallMemory:
    """Embeds a text as its length; runs out of memory above so many padded tokens."""

    info = ModelInfo(
        name="small",
        kind="encoder",
        family="x",
        capabilities=("embed",),
        weights="",
        tokenizer="",
        dtype="",
        code="",
    )

    def __init__(self, limit, error=OutOfMemoryError):
        self.limit, self.error, self.tried = limit, error, []

    def cost(self, requests):
        return [len(request.text) for request in requests]

    def embed(self, batch):
        self.tried.append(len(batch))
        if max(self.cost(batch)) * len(batch) > self.limit:
            raise self.error("CUDA out of memory")
        return [EmbedAnswer(vector=(float(len(request.text)),)) for request in batch]


def texts(*lengths):
    return tuple(Embed(text="x" * length) for length in lengths)


def answers(executor, *batches):
    return [
        [answer.vector[0] for answer in answered.answers]
        for answered in executor.run(Batch(number, requests) for number, requests in enumerate(batches))
    ]


def test_a_batch_that_does_not_fit_is_split_and_its_order_kept():
    model = SmallMemory(limit=20)
    assert answers(LocalExecutor(model), texts(9, 8, 7, 6, 5)) == [[9, 8, 7, 6, 5]]
    # 5 × 9 and then 3 × 7 of the second half do not fit
    assert model.tried == [5, 2, 3, 1, 2]


def test_what_did_not_fit_once_is_not_tried_again():
    model = SmallMemory(limit=20)
    executor = LocalExecutor(model)
    answers(executor, texts(6, 6, 6, 6))
    model.tried.clear()
    assert answers(executor, texts(6, 6, 6, 6)) == [[6, 6, 6, 6]]
    assert model.tried == [2, 2]


@pytest.mark.parametrize("error", [MemoryError, OutOfMemoryError])
def test_one_request_that_does_not_fit_is_a_clear_error(error):
    with pytest.raises(ModelError, match=r"small ran out of memory on one request of 30 tokens"):
        answers(LocalExecutor(SmallMemory(limit=20, error=error)), texts(30))


def test_another_error_is_not_taken_for_memory():
    class Broken(SmallMemory):
        def embed(self, batch):
            raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        answers(LocalExecutor(Broken(limit=1)), texts(1, 2))


def test_an_adapter_that_loses_answers_is_found_out():
    class Forgetful(SmallMemory):
        def embed(self, batch):
            return super().embed(batch)[1:]

    with pytest.raises(ModelError, match="gave 1 answers to 2 requests"):
        answers(LocalExecutor(Forgetful(limit=99)), texts(1, 2))


class Launching(SmallMemory):
    """Works on by itself: remembers in which order batches are begun and read."""

    runs_in_background = True

    def __init__(self, limit=10**6):
        super().__init__(limit)
        self.log = []

    def launch(self, batch):
        found = self.embed(batch)
        self.log.append(("begin", len(batch)))

        def read():
            self.log.append(("read", len(batch)))
            return found

        return read


def test_a_device_is_given_batches_ahead_and_read_in_order(monkeypatch):
    monkeypatch.setattr(executor_module, "_AHEAD", 2)
    model = Launching()
    assert answers(LocalExecutor(model), *(texts(*[number] * number) for number in (1, 2, 3, 4))) == [
        [1],
        [2, 2],
        [3, 3, 3],
        [4, 4, 4, 4],
    ]
    begun = [("begin", 1), ("begin", 2), ("begin", 3), ("read", 1), ("begin", 4)]
    assert model.log == [*begun, ("read", 2), ("read", 3), ("read", 4)]


def test_without_such_a_device_a_batch_is_read_before_the_next_begins():
    model = Launching()
    model.runs_in_background = False
    answers(LocalExecutor(model), texts(1), texts(2, 2))
    assert model.log == [("begin", 1), ("read", 1), ("begin", 2), ("read", 2)]


def test_a_launched_batch_that_does_not_fit_is_split():
    model = Launching(limit=20)
    assert answers(LocalExecutor(model), texts(9, 8, 7, 6, 5), texts(2, 1)) == [[9, 8, 7, 6, 5], [2, 1]]
