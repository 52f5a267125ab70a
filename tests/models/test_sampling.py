"""The draw: from the softmax, and a function of (seed, text, sample, step) alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest

from clinometer.models.local.fast.draw import (
    Prompt,
    draw,
    floors_of,
    key_of,
    levels_of,
    philox,
    pieces_of,
    sort_of,
    uniforms,
)

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


def numbers_of(*, seed=0, text="x", samples=range(1), steps=range(1), levels=1):
    """Return numpy numbers, samples × steps × levels."""
    keys = torch.tensor([key_of(seed=seed, text=text)]).expand(len(samples), -1)
    return uniforms(keys, torch.tensor(samples), steps=steps, levels=levels).numpy()


def ones(rows):
    return torch.ones(len(rows))


# -- random numbers


def test_philox_gives_its_authors_numbers():
    # the known answers that are published with the algorithm (Random123, kat_vectors: philox4x32, ten rounds)
    cases = {
        (0, 0, 0, 0, 0, 0): (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        (0xFFFFFFFF,) * 6: (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0): (
            0xD16CFE09,
            0x94FDCCEB,
            0x5001E420,
            0x24126EA1,
        ),
    }
    given = torch.tensor(list(cases)).T
    assert torch.stack(philox(given[:4], given[4:])).T.tolist() == [list(words) for words in cases.values()]


def test_numbers_are_uniform_and_unrelated():
    numbers = numbers_of(text="a", samples=range(200), steps=range(20), levels=5)
    assert numbers.dtype == np.float32
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert kstest(numbers.ravel(), "uniform").pvalue > 0.01
    for axis in range(3):
        a, b = (np.take(numbers, at, axis=axis).ravel() for at in (0, 1))
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.25


def test_a_number_depends_on_its_own_coordinates_alone():
    given = {"seed": 3, "text": "The man", "samples": range(10), "steps": range(8), "levels": 6}
    whole = numbers_of(**given)
    part = numbers_of(**given | {"samples": range(4, 7), "steps": range(2, 5), "levels": 3})
    assert np.array_equal(whole[4:7, 2:5, :3], part)
    assert len(np.unique(whole)) > 0.99 * whole.size
    for other in ({"seed": 4}, {"text": "The woman"}, {"samples": range(10, 20)}, {"steps": range(8, 16)}):
        assert not np.isin(numbers_of(**given | other), whole).mean() > 0.01


# -- the draw


def test_a_draw_worked_by_hand():
    # probabilities 0.1, 0.2, 0.3, 0.4: the left half has 0.3; its left token 1/3 of that, the right half's 3/7
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    # the number that chooses a half comes last
    cases = {(0.30, 0.29): 0, (0.34, 0.29): 1, (0.42, 0.31): 2, (0.44, 0.31): 3, (0.0, 0.0): 0, (0.999, 0.999): 3}
    numbers = torch.tensor(list(cases))
    drawn = draw(logits.expand(len(cases), -1), numbers, temperatures=ones(cases))
    assert drawn.tolist() == list(cases.values())


def test_temperature_worked_by_hand():
    # At temperature 1/2 probabilities are squared: 1, 4, 9, 16 of 30. The left half has 1/6, its left token 1/5.
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    cases = {(0.19, 0.16): 0, (0.21, 0.16): 1, (0.35, 0.17): 2, (0.37, 0.17): 3}
    numbers = torch.tensor(list(cases))
    half = torch.full((len(cases),), 0.5)
    assert draw(logits.expand(len(cases), -1), numbers, temperatures=half).tolist() == list(cases.values())
    assert draw(logits.expand(len(cases), -1), numbers, temperatures=0 * half).tolist() == [3] * len(cases)


@pytest.mark.parametrize("size", [9, 300, 1000])
def test_what_has_no_probability_is_never_drawn(size):
    logits = torch.full((1, size), -torch.inf)
    logits[0, size - 1] = 3.0  # alone at the end of an odd vocabulary
    for value in (0.0, 0.5, 1 - 2.0**-24):
        numbers = torch.full((1, levels_of(size)), value)
        assert draw(logits, numbers, temperatures=torch.ones(1)).tolist() == [size - 1]


@pytest.mark.parametrize("size", [37, 700])  # not a power of two; more than one block
def test_draws_follow_the_softmax(size):
    n = 40_000
    logits = torch.linspace(-2.0, 2.0, size)
    numbers = numbers_of(seed=1, text="chi square", samples=range(n), levels=levels_of(size))[:, 0]
    drawn = draw(logits.expand(n, -1), torch.from_numpy(numbers), temperatures=torch.ones(n))
    expected = logits.double().softmax(dim=0).numpy() * n
    assert chisquare(np.bincount(drawn.numpy(), minlength=size), expected * n / expected.sum()).pvalue > 0.01


def test_logits_that_are_not_numbers_give_no_token():
    logits = torch.tensor([[0.0, torch.nan], [0.0, torch.inf], [-torch.inf, -torch.inf], [0.0, -torch.inf]])
    assert draw(logits, torch.zeros(4, 1), temperatures=ones(logits)).tolist() == [-1, -1, -1, 0]


def test_rounding_errors_hardly_ever_change_a_draw():
    # Logits as a language model of real size gives them, and the same with errors as between two batch sizes.
    rng = np.random.default_rng(0)
    size, n = 50_000, 400
    logits = torch.from_numpy(rng.normal(0, 3, size).astype(np.float32))
    shaken = logits + torch.from_numpy(rng.normal(0, 1e-5, size).astype(np.float32))
    numbers = torch.from_numpy(numbers_of(samples=range(n), levels=levels_of(size))[:, 0])
    one, other = (draw(some.expand(n, -1), numbers, temperatures=torch.ones(n)) for some in (logits, shaken))
    # one number on the cumulative sum of the whole vocabulary, on average: several in a thousand draws change
    sums, others = (np.cumsum(x.double().softmax(dim=0).numpy()) for x in (logits, shaken))
    same = np.minimum(sums, others)[1:] - np.maximum(sums, others)[:-1]
    assert 1 - same.clip(0).sum() > 1e-3
    assert int((one != other).sum()) == 0


# -- top-k and top-p


def kept(logits, *, temperature, top_k, top_p):
    """Return which tokens may be drawn, one row, by nothing but numpy."""
    allowed = np.ones(len(logits), bool)
    if top_k:
        allowed = logits >= np.sort(logits)[::-1][min(top_k, len(logits)) - 1]
    if top_p < 1:
        shares = np.where(allowed, np.exp((logits.astype(np.float64) - logits.max()) / (temperature or 1)), 0)
        shares /= shares.sum()
        total = 0.0
        for share in np.sort(shares)[::-1]:
            total += share
            if total >= top_p:
                break
        allowed &= shares >= share
    return allowed


def floors(logits, settings):
    prompts = [prompt(top_k=k, top_p=p) for _, k, p in settings]
    temperature, k, p = (torch.tensor(column) for column in zip(*settings, strict=True))
    return floors_of(logits, temperatures=temperature, top_k=k, top_p=p, sort=sort_of(prompts, logits.shape[1]))


def prompt(**changes):
    given = {"ids": np.array([1]), "text": "a", "n": 1, "first": 0, "max_new_tokens": 1}
    return Prompt(**given | {"temperature": 1.0, "seed": 0} | changes)


def test_top_k_and_top_p_worked_by_hand():
    # probabilities 0.1, 0.2, 0.3, 0.4
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log().expand(6, -1)
    settings = [(1.0, 2, 1.0), (1.0, 0, 0.6), (1.0, 0, 0.71), (1.0, 3, 0.8), (0.5, 0, 0.8), (1.0, 0, 1.0)]
    found = logits >= floors(logits, settings)[:, None]
    assert found.tolist() == [
        [False, False, True, True],
        [False, False, True, True],  # 0.4 is below 0.6, 0.7 is not
        [False, True, True, True],
        [False, True, True, True],  # of the three: 4/9 + 3/9 is below 0.8
        [False, False, True, True],  # squared: 16/30 + 9/30 = 0.83
        [True, True, True, True],
    ]


@pytest.mark.parametrize("cut", ["top_k", "top_p", "both"])
def test_top_k_and_top_p_equal_a_plain_implementation(cut):
    rng = np.random.default_rng(4)
    size, rows = 60, 200
    # rounded, so that many are equally probable
    logits = rng.normal(0, 2, (rows, size)).round(1).astype(np.float32)
    settings = [
        (
            float(rng.choice([0.5, 1.0, 1.7])),
            int(rng.integers(0, 70)) if cut != "top_p" else 0,
            float(rng.choice([0.1, 0.5, 0.913, 1.0])) if cut != "top_k" else 1.0,
        )
        for _ in range(rows)
    ]
    found = logits >= floors(torch.from_numpy(logits), settings).numpy()[:, None]
    for row, mask, (temperature, top_k, top_p) in zip(logits, found, settings, strict=True):
        assert np.array_equal(mask, kept(row, temperature=temperature, top_k=top_k, top_p=top_p))


def test_draws_above_a_floor_follow_the_renormalised_softmax():
    logits, n = torch.tensor([0.1, 0.2, 0.3, 0.4]).log(), 20_000
    numbers = torch.from_numpy(numbers_of(samples=range(n), levels=2)[:, 0])
    cut = floors(logits[None], [(1.0, 3, 1.0)]).expand(n)
    drawn = draw(logits.expand(n, -1), numbers, temperatures=torch.ones(n), floors=cut)
    seen = np.bincount(drawn.numpy(), minlength=4)
    assert seen[0] == 0
    assert chisquare(seen[1:], np.array([2, 3, 4]) / 9 * n).pvalue > 0.01  # of 0.2, 0.3 and 0.4


# -- pieces


def test_pieces_hold_every_sample_once_and_are_about_equal():
    prompts = [prompt(text="a", n=10, first=3), prompt(text="b", n=1), prompt(text="c", n=6)]
    pieces = list(pieces_of(prompts, limit=8))
    # 17 samples, at most 8 at a time: three pieces of at most 6
    assert [sum(one.n for one in piece) for piece in pieces] == [6, 6, 5]
    samples = [(one.text, one.first + at) for piece in pieces for one in piece for at in range(one.n)]
    assert samples == [*(("a", 3 + at) for at in range(10)), ("b", 0), *(("c", at) for at in range(6))]


# -- the kernels of a GPU


@on_gpu
@pytest.mark.parametrize("size", [37, 5_000, 50_257])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_kernel_draws_the_same_tokens(size, dtype):
    from clinometer.models.local.fast import kernels

    torch.manual_seed(0)
    rows = 500
    logits = (3 * torch.randn(rows, size + 3, device="cuda")).to(dtype)[:, :size]  # rows with a gap between them
    logits[5, 2], logits[6], logits[7, 1] = torch.nan, -torch.inf, torch.inf
    numbers = torch.from_numpy(numbers_of(samples=range(rows), levels=levels_of(size))[:, 0]).cuda()
    temperatures = torch.rand(rows, device="cuda") + 0.5
    temperatures[1] = 0
    for cut in (None, torch.full((rows,), 0.3, device="cuda")):
        expected = draw(logits, numbers, temperatures=temperatures, floors=cut)
        found = kernels.draw(logits, numbers, temperatures=temperatures, floors=cut)
        assert found[5:8].tolist() == [-1, -1, -1]
        assert int((found != expected).sum()) <= 1  # sums in another order: a share may differ in its last bit


@on_gpu
def test_the_kernel_attends_to_what_is_written():
    from clinometer.models.local.fast import kernels

    torch.manual_seed(0)
    query = torch.randn(50, 6, 1, 24, device="cuda")
    key, value = torch.randn(2, 50, 2, 130, 24, device="cuda")
    places = torch.randint(0, 130, (50,), device="cuda")
    seen = (torch.arange(130, device="cuda") <= places[:, None])[:, None, None]
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, key.repeat_interleave(3, dim=1), value.repeat_interleave(3, dim=1), attn_mask=seen, scale=0.3
    )
    found = kernels.attend(query, key, value, places, scale=0.3)
    assert torch.allclose(found, expected.transpose(1, 2), atol=1e-5)
