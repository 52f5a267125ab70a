"""Intervals, tests, corrections and detectable effects: pure functions on numpy arrays."""

from clinometer.stats.agreement import Kappa, RaterPair, cohens_kappa, pairwise_kappa
from clinometer.stats.bootstrap import Interval, cluster_bootstrap
from clinometer.stats.correlation import (
    Correlation,
    JackknifeInterval,
    jackknife_correlation,
    pearson_interval,
    rank_correlation,
)
from clinometer.stats.error_rates import (
    benjamini_hochberg,
    critical_value,
    detectable_change,
    detectable_from_interval,
    minimum_detectable_effect,
    moderated_variances,
    two_sided_p,
)
from clinometer.stats.letters import letters_of
from clinometer.stats.paired import (
    PairedLeans,
    Sure,
    distance_change,
    independent_change,
    mean_leans,
    paired_leans,
)
from clinometer.stats.permutation import (
    PermutationResult,
    difference_of_means,
    permutation_test,
    sign_flip_test,
)
from clinometer.stats.shares import ShareInterval, paired_share_interval, share_interval, share_p
from clinometer.stats.trainings import TrainingNoise, freedom_with_noise, training_noise, with_training_noise
from clinometer.stats.two_groups import SingleCase, single_case_test, two_group_bootstrap, two_group_permutation

__all__ = [
    "Correlation",
    "Interval",
    "JackknifeInterval",
    "Kappa",
    "PairedLeans",
    "PermutationResult",
    "RaterPair",
    "ShareInterval",
    "SingleCase",
    "Sure",
    "TrainingNoise",
    "benjamini_hochberg",
    "cluster_bootstrap",
    "cohens_kappa",
    "critical_value",
    "detectable_change",
    "detectable_from_interval",
    "difference_of_means",
    "distance_change",
    "freedom_with_noise",
    "independent_change",
    "jackknife_correlation",
    "letters_of",
    "mean_leans",
    "minimum_detectable_effect",
    "moderated_variances",
    "paired_leans",
    "paired_share_interval",
    "pairwise_kappa",
    "pearson_interval",
    "permutation_test",
    "rank_correlation",
    "share_interval",
    "share_p",
    "sign_flip_test",
    "single_case_test",
    "training_noise",
    "two_group_bootstrap",
    "two_group_permutation",
    "two_sided_p",
    "with_training_noise",
]
