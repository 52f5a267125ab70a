"""The search for the likeliest words: best first, and never further than what can matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinometer.models.local.word_search import Search

ENDS = 3  # tokens from this one on may follow a word and are no part of it


def follow(search, tree):
    """Let a search try all it wants in a tree (beginning -> probability of each next token); return its tries."""
    tried = []
    search.go_on((), np.log(tree[()][:ENDS]), np.arange(ENDS))
    while turn := search.next():
        for logprob, tokens in turn:
            tried.append(tokens)
            following = tree[tokens]
            search.add(
                "abc"[tokens[0]] + "".join(map(str, tokens[1:])), logprob + math.log(following[ENDS:].sum())
            )
            if len(tokens) < 3:
                search.go_on(tokens, logprob + np.log(following[:ENDS]), np.arange(ENDS))
    return tried


def plainly(tree, *, wanted):
    """The same search with a list of ways that is sorted each time."""
    open_ = [(math.log(tree[()][token]), (token,)) for token in range(ENDS)]
    found, tried = {}, []
    while True:
        least = sorted(found.values(), reverse=True)[wanted - 1] - math.log(2) if len(found) >= wanted else -1e30
        open_ = sorted((one for one in open_ if one[0] >= least), key=lambda one: -one[0])
        turn, open_ = open_[: min(wanted, 8 * wanted + 64 - len(tried))], open_[wanted:]
        if not turn:
            return tried, {word for word, value in found.items() if value >= least}
        for logprob, tokens in turn:
            tried.append(tokens)
            word = "abc"[tokens[0]] + "".join(map(str, tokens[1:]))
            found[word] = logprob + math.log(tree[tokens][ENDS:].sum())
            if len(tokens) < 3:
                open_ += [(logprob + math.log(tree[tokens][token]), (*tokens, token)) for token in range(ENDS)]


def random_tree(seed, sharpness):
    rng = np.random.default_rng(seed)
    beginnings = [()]
    for _ in range(3):
        beginnings += [(*each, token) for each in beginnings for token in range(ENDS)]
    return {each: rng.dirichlet(np.full(ENDS + 2, sharpness)) + 1e-12 for each in dict.fromkeys(beginnings)}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([0.05, 0.3, 1.0, 10.0]))
def test_it_tries_what_a_plain_search_tries(seed, wanted, sharpness):
    tree = random_tree(seed, sharpness)
    search = Search(wanted=wanted)
    tried, words = plainly(tree, wanted=wanted)
    assert follow(search, tree) == tried
    assert set(search.words()) == words


def test_it_ends_where_the_rest_cannot_matter():
    # "a" holds 0.9 × 0.8 = 0.72; half of that is more than b, c or what goes on from a can hold
    tree = {(): np.array([0.9, 0.06, 0.04, 0, 0]), (0,): np.array([0.1, 0.05, 0.05, 0.5, 0.3])}
    search = Search(wanted=1)
    assert follow(search, tree) == [(0,)]
    assert search.words() == ("a",)


def test_what_may_hold_half_of_the_least_word_is_tried():
    # "a" holds 0.5 × 0.8 = 0.40, so b (0.21) is tried and c (0.19) is not
    tree = {each: np.array([0.05, 0.05, 0.1, 0.5, 0.3]) for each in [(0,), (1,), (2,)]}
    tree[()] = np.array([0.5, 0.21, 0.19, 0, 0])
    assert follow(Search(wanted=1), tree) == [(0,), (1,)]


def all_tries(logprobs, *, wanted):
    search = Search(wanted=wanted)
    search.go_on((), logprobs, np.arange(len(logprobs)))
    tried = []
    while turn := search.next():
        tried += [token for _, (token,) in turn]
    assert search.tries == len(tried)
    return tried


def test_tries_are_limited_to_the_likeliest():
    logprobs = -np.random.default_rng(0).permutation(1000) / 10
    assert all_tries(logprobs, wanted=2) == np.argsort(-logprobs)[: 8 * 2 + 64].tolist()


def test_of_equal_ways_those_are_tried_that_were_seen_first():
    logprobs = np.full(1000, -7.0)
    logprobs[[500, 700]] = -6.9
    assert all_tries(logprobs, wanted=2) == [500, 700, *range(78)]


def test_spellings_of_a_word_add_up_and_the_likelier_one_is_how_it_is_written():
    search = Search(wanted=1)
    search.go_on((), np.log([0.3, 0.2]), np.array([7, 8]))
    search.add("Kind", math.log(0.3))
    search.add("kind", math.log(0.2))
    search.add("dull", math.log(0.26))  # more than half of 0.5
    search.add("odd", math.log(0.24))
    assert search.words() == ("dull", "Kind")


def test_impossible_ways_are_never_tried():
    search = Search(wanted=5)
    search.go_on((), np.array([-1.0, -np.inf, -np.inf]), np.arange(3))
    assert search.next() == [(-1.0, (0,))]
    assert search.next() == []
    assert search.tries == 1


@pytest.mark.parametrize("wanted", [1, 40])
def test_how_many_ways_on_are_looked_at(wanted):
    assert Search(wanted=wanted).width == max(16, wanted)
