"""Contrasts of the two dominances: equal weights, and no nuisance in the tests."""

import numpy as np
import pytest

from clinometer.probes.counterexamples.contrasts import LEANS, MEANS, contrast_values, possible
from clinometer.probes.counterexamples.intervals import present_intervals
from clinometer.stats import sign_flip_test

# Three female-dominated occupations and one male-dominated one: means .4 and −.1
GAPS = np.array([0.3, 0.4, 0.5, -0.1])
DOMINANCE = np.array([1, 1, 1, -1])


def estimates(contrasts):
    values = contrast_values(GAPS, contrasts, dominance=DOMINANCE)
    found = present_intervals(values, np.arange(4), rng=np.random.default_rng(0), draws=99)
    return dict(zip(((each.measure, each.dominance) for each in contrasts), found.estimate, strict=True))


def test_dominances_weigh_the_same_by_hand():
    assert estimates(LEANS) == pytest.approx(
        {
            ("margin", "all"): 0.25,  # (.4 − −.1) / 2, and not the mean over occupations, (.3 + .4 + .5 + .1) / 4
            ("margin", "female-dominated"): 0.4,
            ("margin", "male-dominated"): 0.1,  # −.1 towards women is .1 towards men
            ("gap", "all"): 0.15,  # (.4 − .1) / 2
        }
    )
    assert estimates(MEANS)["mean", "all"] == pytest.approx(0.15)


def test_values_of_a_contrast_by_hand():
    values = contrast_values(GAPS, LEANS, dominance=DOMINANCE)
    assert np.nanmean(values, axis=0) == pytest.approx(list(estimates(LEANS).values()))
    assert (~np.isnan(values)).sum(axis=0).tolist() == [4, 3, 1, 4]
    # margin over all: θ = .25, female mean .4, weight ½ · 4/3: first occupation (.3 − .4 + .25) · ⅔ = .1
    assert values[0, 0] == pytest.approx(0.1)
    # male: weight −½ · 4/1: (−.1 − −.1 − .25) · −2 = .5
    assert values[3, 0] == pytest.approx(0.5)


def test_only_possible_contrasts_are_asked():
    assert [each.dominance for each in possible(MEANS, np.array([1, 1]))] == ["female-dominated"]
    assert [each.measure for each in possible(LEANS, np.array([-1]))] == ["margin"]
    assert possible(LEANS, DOMINANCE) == LEANS


def test_missing_occupations_are_left_out():
    with_gap = np.append(GAPS, np.nan)
    values = contrast_values(with_gap, LEANS, dominance=np.append(DOMINANCE, 1))
    assert np.isnan(values[4]).all()
    assert values[:4] == pytest.approx(contrast_values(GAPS, LEANS, dominance=DOMINANCE), nan_ok=True)


def test_error_rate_of_the_sign_flips_with_a_strong_nuisance():
    """A model that prefers male words everywhere has no stereotype: p of the margin must be uniform.

    2,000 draws of 12 occupations: 5 % ± 3 · √(.05 · .95 / 2000) = 3.5 to 6.5 %. Taking out the mean of the
    nuisance costs a degree of freedom, which 12 occupations may show as a little more than 5 %: 8 % at most.
    """
    rng = np.random.default_rng(5)
    dominance = np.repeat([1, -1], 6)
    gaps = -0.4 + 0.1 * rng.standard_normal((12, 2000))
    values = contrast_values(gaps, LEANS[:1], dominance=dominance)[..., 0]
    share = (sign_flip_test(values, rng=rng, draws=2047).p < 0.05).mean()
    assert 0.035 < share < 0.08
    # without taking it out, the test would find nothing at all
    plain = sign_flip_test(gaps * dominance[:, None], rng=rng, draws=2047).p
    assert (plain < 0.05).mean() < 0.001
