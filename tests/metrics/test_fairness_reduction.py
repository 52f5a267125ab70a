"""How much of the excess over chance is gone: Fieller's interval against a plain search, and by simulation."""

import numpy as np
import pytest
from scipy import optimize, stats

from clinometer.metrics import fairness_interval, paired_change


def simulated(rng, shifts, *, values=3, samples=80):
    """Scores of which those of the first value lie further up, in each template by its own shift."""
    scores = rng.uniform(size=(len(shifts), values, samples))
    scores[:, 0] += np.asarray(shifts)[:, None]
    return scores


def excess(scores, measure):
    return float(getattr(fairness_interval(scores), measure).excess)


@pytest.mark.parametrize("measure", ["individual", "group"])
def test_the_interval_is_where_a_paired_test_of_the_ratio_turns(measure):
    rng = np.random.default_rng(1)
    before = simulated(rng, rng.uniform(0.2, 0.4, size=8))
    after = simulated(rng, rng.uniform(0.1, 0.2, size=8))
    found = getattr(paired_change(before, after), f"{measure}_reduction")
    was, became = excess(before, measure), excess(after, measure)
    assert found.share == pytest.approx(1 - became / was)
    # the replicates one by one: 8 templates, each left out of both
    replicates = np.array(
        [[excess(np.delete(each, at, axis=0), measure) for each in (before, after)] for at in range(8)]
    )

    def beyond(ratio):
        """|a − ρb| minus t standard errors: 0 at the ends of the interval."""
        combined = replicates[:, 1] - ratio * replicates[:, 0]
        error = np.sqrt(7 / 8 * ((combined - combined.mean()) ** 2).sum())
        return abs(became - ratio * was) - stats.t.ppf(0.975, 7) * error

    ratio = became / was
    assert 1 - found.high == pytest.approx(optimize.brentq(beyond, ratio - 2, ratio))
    assert 1 - found.low == pytest.approx(optimize.brentq(beyond, ratio, ratio + 2))


def test_it_leaves_out_0_exactly_where_the_change_does():
    rng = np.random.default_rng(2)
    said = set()
    for _ in range(30):
        found = paired_change(simulated(rng, [0.3] * 6), simulated(rng, rng.uniform(0.1, 0.4, size=6)))
        change, reduction = found.individual_excess, found.individual_reduction
        assert (reduction.low > 0) == (change.high < 0)
        assert (reduction.high < 0) == (change.low > 0)
        said.add(reduction.low > 0)
    assert said == {True, False}


def test_of_nothing_nothing_can_be_taken_away():
    rng = np.random.default_rng(3)
    even, other = simulated(rng, [0.0] * 6), simulated(rng, [0.2] * 6)
    found = paired_change(even, other)
    assert fairness_interval(even).individual.low < 0  # not clearly above chance
    assert np.isnan([found.individual_reduction.share, found.individual_reduction.low]).all()
    assert found.individual_excess.low > 0  # while the change itself is known
    gone = paired_change(other, even).individual_reduction
    assert gone.low < 1 < gone.high


def test_coverage_by_simulation():
    """Half of every template's shift is taken away; the excess is nearly the distance where samples are many."""
    rng = np.random.default_rng(4)
    held = 0
    runs = 60
    for _ in range(runs):
        shifts = rng.uniform(1.2, 2.0, size=6)  # no overlap before …
        before = simulated(rng, 2 * shifts, values=2, samples=40)
        after = simulated(rng, shifts, values=2, samples=40)  # … nor after: W1 is the shift itself
        found = paired_change(before, after)
        # the expected excess is the shift minus the null
        whole, over = found.individual, found.individual_excess
        nulls = whole.before - over.before, whole.after - over.after
        truth = 1 - (shifts.mean() - nulls[1]) / (2 * shifts.mean() - nulls[0])
        held += found.individual_reduction.low < truth < found.individual_reduction.high
    # 95 % of 60, standard error 2.8 %
    assert held / runs > 0.95 - 3 * 0.028


def test_a_single_template_leaves_out_samples():
    rng = np.random.default_rng(5)
    before, after = simulated(rng, [0.4], samples=200), simulated(rng, [0.1], samples=200)
    over_templates = paired_change(before, after)
    assert np.isnan([over_templates.individual.low, over_templates.individual_reduction.share]).all()
    found = paired_change(before, after, over="samples")
    assert found.individual_excess.high < 0
    assert 0.5 < found.individual_reduction.low < found.individual_reduction.share < 1
    with pytest.raises(ValueError, match="over="):
        paired_change(before, after, over="values")


def test_missing_scores_stay_missing():
    rng = np.random.default_rng(6)
    before, after = simulated(rng, [0.4] * 5), simulated(rng, [0.1] * 5)
    after[:, 1] = np.nan
    found = paired_change(before, after)
    assert 0 < found.individual_reduction.low < found.individual_reduction.high
    after[:] = np.nan
    gone = paired_change(before, after)
    assert np.isnan([gone.individual_excess.change, gone.individual_reduction.share]).all()
