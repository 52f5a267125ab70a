from __future__ import annotations

from dataclasses import replace

import pytest

from clinometer.engine import KEY_VERSION, RequestIdentity
from clinometer.questions import Requests, in_windows, items_of
from clinometer.types import Ask, Block, Classify, Embed, Fill, Item, Message, ModelInfo, NextWord, Sample

INFO = ModelInfo(
    name="m",
    kind="masked",
    family="bert",
    capabilities=("fill",),
    weights="w",
    tokenizer="t",
    dtype="float32",
    code="c",
)
REQUEST = Fill(text="The [MASK] works.", words=("man", "woman"))


def key(info=INFO, request=REQUEST, version=KEY_VERSION):
    return RequestIdentity(info, version=version).key(request)


@pytest.mark.parametrize(
    "change",
    [{"weights": "x"}, {"tokenizer": "x"}, {"dtype": "bfloat16"}, {"code": "x"}, {"settings": {"label": "x"}}],
)
def test_whatever_changes_an_answer_of_the_model_changes_the_key(change):
    assert key(replace(INFO, **change)) != key()


def test_the_name_of_the_model_does_not():
    assert key(replace(INFO, name="the same weights elsewhere", parameters=3)) == key()


@pytest.mark.parametrize(
    "change",
    [
        {"text": "The [MASK] work."},
        {"context": "Hello."},
        {"join": "separator"},
        {"words": ("woman", "man")},
        {"words": ("man, woman",)},
        {"words": (), "top_k": 5},
        {"normalise": "words"},
    ],
)
def test_whatever_is_asked_is_part_of_the_key(change):
    assert key(request=replace(REQUEST, **change)) != key()


def test_the_kind_of_question_is_part_of_the_key():
    assert key(request=NextWord(text=REQUEST.text, words=REQUEST.words)) != key()


def test_text_cannot_be_moved_across_fields():
    one = Fill(text="a [MASK]', context='b", context="c")
    two = Fill(text="a [MASK]", context="b', context='c")
    assert key(request=one) != key(request=two)


def test_keys_are_the_same_in_every_process():
    # a fixed value: a key that depended on hash randomisation would make every record useless after a restart
    assert key().hex() == "1994d779271fbd91ccd4b752faf9ce2a"
    # as runs of format 1 have them
    assert key(version=1).hex() == "9cefde0487fd5fb19983d41afe818ec2"


def test_lone_surrogates_have_a_key():
    assert len(key(request=Fill(text="\ud800 [MASK]"))) == 16


def test_keys_of_columns_are_those_of_the_requests_one_by_one():
    texts = ("a [MASK]", 'it\'s "b" [MASK]', "\ud800 [MASK]")
    asked = [
        Block(kind=Fill, columns={"text": texts}, shared={"context": context, "words": ("x", "y")})
        for context in ("", "one", "two'")
    ]
    asked += [Item(request=Fill(text=text, top_k=k, join="separator"), tags={}) for text in texts for k in (1, 2)]
    (window,) = in_windows(asked, 100)
    identity = RequestIdentity(INFO)
    assert identity.keys(window.requests) == [identity.key(item.request) for item in items_of(asked)]


@pytest.mark.parametrize(
    "requests",
    [
        [Classify(text="a"), Classify(text="b")],  # one field
        [Embed(text="a")],
        [Sample(prefix="a", n=2, seed=seed, temperature=t) for seed in (0, 1) for t in (0.5, 1.0)],  # no context
        [Ask(messages=(Message(role="user", content=text),)) for text in ("a", "b")],
    ],
    ids=lambda requests: type(requests[0]).__name__,
)
def test_keys_of_every_shape_of_request(requests):
    identity = RequestIdentity(INFO)
    assert identity.keys(Requests.of(requests)) == [identity.key(request) for request in requests]
