"""How sure a number is: intervals, tests, corrections and detectable effects. Pure functions on numpy arrays."""

from clinometer.stats.agreement import Kappa, RaterPair, cohens_kappa, pairwise_kappa
from clinometer.stats.bootstrap import Interval, cluster_bootstrap
from clinometer.stats.correlation import Correlation, pearson_interval
from clinometer.stats.multiple import benjamini_hochberg
from clinometer.stats.permutation import (
    PermutationResult,
    difference_of_means,
    permutation_test,
    sign_flip_test,
)
from clinometer.stats.power import minimum_detectable_effect

__all__ = [
    "Correlation",
    "Interval",
    "Kappa",
    "PermutationResult",
    "RaterPair",
    "benjamini_hochberg",
    "cluster_bootstrap",
    "cohens_kappa",
    "difference_of_means",
    "minimum_detectable_effect",
    "pairwise_kappa",
    "pearson_interval",
    "permutation_test",
    "sign_flip_test",
]
