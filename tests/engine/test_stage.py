"""One stage: what is asked, how often, in which batches, and what is recorded."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from clinometer.engine import AnswerCache, LocalExecutor, RequestIdentity, Silent, Worker, check_stage, run_stage
from clinometer.engine import stage as stage_module
from clinometer.models.fake import FakeModel
from clinometer.questions import Requests, WordAnswers, items_of
from clinometer.store import RunFolder, StageKey
from clinometer.types import Block, Embed, EmbedAnswer, Fill, Item

KEY = StageKey(probe="p", model="fake", stage="s")


class Counting:
    """A fake that remembers the batches it was given."""

    def __init__(self):
        self.fake = FakeModel(
            answer=lambda request: EmbedAnswer(vector=(float(len(request.text)),)),
            version="1",
            kind="encoder",
            capabilities=("embed",),
        )
        self.info = self.fake.info
        self.batches = []

    def cost(self, requests):
        return [len(request.text) for request in requests]

    def embed(self, batch):
        self.batches.append([request.text for request in batch])
        return self.fake.embed(batch)


@pytest.fixture
def run(tmp_path):
    return RunFolder.create(tmp_path / "run", spec="", provenance={}, models=[])


def ask(run, model, texts, *, cache=None, budget=8):
    items = [Item(request=Embed(text=text), tags={"place": place}) for place, text in enumerate(texts)]
    run_stage(
        iter(items),  # a stream: the engine may go through it once
        run=run,
        key=KEY,
        done=run.done(KEY),
        identity=RequestIdentity(model.info),
        worker=lambda: Worker(model=model, executor=LocalExecutor(model), batch_tokens=budget),
        cache=cache,
        progress=Silent(),
    )
    return run.table(KEY)


def test_answers_stand_in_the_order_of_the_questions(run):
    texts = ["aaa", "b", "cccc", "dd", "e"]
    table = ask(run, Counting(), texts)
    assert table["tag_place"].to_list() == [0, 1, 2, 3, 4]
    assert table["ask_text"].to_list() == texts
    assert [vector[0] for vector in table["got_vector"]] == [3, 1, 4, 2, 1]


def test_what_is_asked_twice_is_answered_once_and_recorded_twice(run):
    model = Counting()
    table = ask(run, model, ["a", "bb", "a", "a"])
    assert sorted(text for batch in model.batches for text in batch) == ["a", "bb"]
    assert [vector[0] for vector in table["got_vector"]] == [1, 2, 1, 1]


def test_batches_are_sorted_by_length_within_the_budget(run):
    model = Counting()
    ask(run, model, ["a", "bbbb", "cc", "dddd", "e"])
    # 2 × 4 = 8 fills the budget; then 2 + 1 + 1 padded to 2
    assert model.batches == [["bbbb", "dddd"], ["cc", "a", "e"]]


def test_a_stage_of_many_windows_is_complete(run, monkeypatch):
    monkeypatch.setattr(stage_module, "WINDOW", 7)
    texts = [f"{number:03}" for number in range(50)]
    table = ask(run, Counting(), texts)
    assert table["ask_text"].to_list() == texts


def test_nothing_is_asked_again(run):
    texts = ["a", "bb", "ccc"]
    ask(run, Counting(), texts)

    def forbidden():
        pytest.fail("a worker was called")

    items = [Item(request=Embed(text=text), tags={"place": 0}) for text in texts]
    identity = RequestIdentity(Counting().info)
    assert check_stage(items, identity=identity, done=run.done(KEY)).missing == 0
    run_stage(
        items,
        run=run,
        key=KEY,
        done=run.done(KEY),
        identity=identity,
        worker=forbidden,
        cache=None,
        progress=Silent(),
    )


def test_a_question_that_changed_is_asked_again(run):
    ask(run, Counting(), ["a", "bb", "ccc"])
    model = Counting()
    table = ask(run, model, ["a", "xxxx", "ccc"])
    # its batch of the plan: xxxx (4) and ccc (3) padded to 4 make 8; a stays as it is
    assert model.batches == [["xxxx", "ccc"]]
    assert table["ask_text"].to_list() == ["a", "xxxx", "ccc"]


def test_a_cache_answers_across_runs(run, tmp_path):
    cache = AnswerCache(tmp_path / "cache")
    ask(run, Counting(), ["a", "bb"], cache=cache)
    other = RunFolder.create(tmp_path / "other", spec="", provenance={}, models=[])
    model = Counting()
    table = ask(other, model, ["bb", "ccc", "a"], cache=cache)
    assert model.batches == [["ccc"]]
    assert [vector[0] for vector in table["got_vector"]] == [2, 3, 1]
    cache.close()


def test_an_error_in_a_later_batch_keeps_the_earlier_ones(run):
    class Breaks(Counting):
        def embed(self, batch):
            if len(self.batches) == 1:
                raise KeyboardInterrupt
            return super().embed(batch)

    with pytest.raises(KeyboardInterrupt):
        ask(run, Breaks(), ["a", "bbbb", "cc", "dddd", "e"])
    assert len(run.done(KEY)) == 2
    model = Counting()
    ask(run, model, ["a", "bbbb", "cc", "dddd", "e"])
    assert model.batches == [["cc", "a", "e"]]


# -- columns


class Filling:
    """Fills a blank; remembers its batches, and what kind of sequence they were."""

    runs_in_background = False

    def __init__(self):
        self.fake = FakeModel(answer=lambda request: None, version="1")
        self.info = self.fake.info
        self.batches = []

    def cost(self, requests):
        return [len(request.context) + len(request.text) for request in requests]

    def launch(self, batch):
        assert isinstance(batch, Requests)
        self.batches.append(list(batch))
        values = np.array([[-len(each.text), -len(each.context)] for each in batch], np.float32)
        return lambda: WordAnswers(batch[0].words, values)


class Background(Filling):
    runs_in_background = True


WORDS = ("x", "y")
TEXTS = tuple(f"{'w' * (number % 5)}{number} [MASK]" for number in range(9))


def blocks(reviews=5):
    for number in range(reviews):
        yield Block(
            kind=Fill,
            columns={"text": TEXTS},
            shared={"context": "r" * (number % 3), "words": WORDS},  # some reviews are the same
            tags={"word": TEXTS},
            shared_tags={"review": number},
        )


def ask_fill(run, model, questions, *, key=KEY, cache=None):
    run_stage(
        questions,
        run=run,
        key=key,
        done=run.done(key),
        identity=RequestIdentity(model.info),
        worker=lambda: Worker(model=model, executor=LocalExecutor(model), batch_tokens=40),
        cache=cache,
        progress=Silent(),
    )
    return run.table(key)


@pytest.mark.parametrize("window", [7, 16, 1000])
@pytest.mark.parametrize("kind", [Filling, Background])
def test_blocks_are_asked_and_recorded_as_their_items_are(run, monkeypatch, window, kind):
    monkeypatch.setattr(stage_module, "WINDOW", window)
    one, other = Filling(), kind()
    expected = ask_fill(run, one, items_of(blocks()))
    found = ask_fill(run, other, blocks(), key=StageKey(probe="p", model="fake", stage="blocks"))
    assert found.equals(expected)
    assert other.batches == one.batches
    assert found["ask_text"].to_list() == list(TEXTS) * 5
    assert found["got_logprobs"].to_list() == [[-len(t), -(n % 3)] for n in range(5) for t in TEXTS]
    checked = check_stage(blocks(), identity=RequestIdentity(one.info), done=run.done(KEY))
    assert checked.whole
    assert checked.asked == 45
    # one review fewer is not the same stage; another tag is the same answer under another name
    assert check_stage(blocks(4), identity=RequestIdentity(one.info), done=run.done(KEY)).extra == 9
    renamed = (replace(block, shared_tags={"review": -1}) for block in blocks())
    assert check_stage(renamed, identity=RequestIdentity(one.info), done=run.done(KEY)).relabelled == 45


@pytest.mark.parametrize("kind", [Filling, Background])
def test_blocks_that_are_resumed_are_asked_in_the_same_batches(run, monkeypatch, kind):
    monkeypatch.setattr(stage_module, "WINDOW", 16)
    whole = kind()
    expected = ask_fill(run, whole, blocks())
    for part in sorted(run.stage_folder(KEY).glob("*.parquet")):
        part.unlink()
    interrupted = kind()
    answer = interrupted.launch

    def breaks(batch):
        if len(interrupted.batches) == 3:
            raise KeyboardInterrupt
        return answer(batch)

    interrupted.launch = breaks
    with pytest.raises(KeyboardInterrupt):
        ask_fill(run, interrupted, blocks())
    assert not [thread for thread in threading.enumerate() if thread.name == "clinometer-ahead"]
    rest = kind()
    assert ask_fill(run, rest, blocks()).equals(expected)
    assert all(batch in whole.batches for batch in rest.batches)
    ask_fill(run, rest, (replace(block, shared_tags={"review": 7}) for block in blocks()))
    assert run.table(KEY)["tag_review"].to_list() == [7] * 45
    assert len(rest.batches) < 2 * len(whole.batches)  # recorded anew, not asked again


def test_an_error_in_a_question_made_ahead_is_raised(run, monkeypatch):
    monkeypatch.setattr(stage_module, "WINDOW", 9)

    def questions():
        yield from blocks(3)
        raise LookupError("no fourth review")

    model = Background()
    with pytest.raises(LookupError, match="no fourth review"):
        ask_fill(run, model, questions())
    assert 0 < len(run.done(KEY)) < 27  # what was read before it is kept; what was under way is lost


def test_blocks_meet_a_cache(run, tmp_path):
    cache = AnswerCache(tmp_path / "cache")
    expected = ask_fill(run, Filling(), blocks(), cache=cache)
    other = RunFolder.create(tmp_path / "other", spec="", provenance={}, models=[])
    model = Filling()
    assert ask_fill(other, model, blocks(), cache=cache).equals(expected)
    assert not model.batches
    cache.close()
