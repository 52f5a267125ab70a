"""The papers' equations as pure functions on numpy arrays."""

from clinometer.metrics.attitude import Attitude, OverallAttitude, negative_attitude, overall_attitude
from clinometer.metrics.fairness import (
    SubgroupDistances,
    above_threshold,
    demographic_disparity,
    group_fairness,
    individual_fairness,
    pairwise_wasserstein,
    subgroup_wasserstein,
    wasserstein1,
)
from clinometer.metrics.fairness_chance import AgainstChance
from clinometer.metrics.fairness_epsilon import (
    EpsilonFairness,
    EpsilonVerdict,
    WorstPairs,
    epsilon_fair,
    epsilon_verdict,
    worst_by_chance,
)
from clinometer.metrics.fairness_intervals import (
    Change,
    ExcessInterval,
    FairnessInterval,
    PairedChange,
    Reduction,
    fairness_interval,
    mean_change,
    paired_change,
    widened_reduction,
)
from clinometer.metrics.fairness_pairs import PairNull, pair_null, pair_nulls
from clinometer.metrics.fairness_resampling import IndividualIntervals, individual_interval, individual_intervals
from clinometer.metrics.fairness_scores import ScoreFairness, score_fairness
from clinometer.metrics.fairness_shuffles import FairnessNull, fairness_null, fairness_nulls
from clinometer.metrics.gendered import (
    GenderedMass,
    gender_gap,
    gendered_mass,
    log_relative_probability,
    stereotypical_margin,
)
from clinometer.metrics.outputs import OutputDifference, output_difference
from clinometer.metrics.relevance import (
    DistinctWord,
    distinct_words,
    mentions,
    mentions_share,
    semantic_similarity_share,
)
from clinometer.metrics.sentiment_words import sat_effect, sat_polarity, sst_strength
from clinometer.metrics.stereotypes import (
    EmotionProfile,
    RepresentationalSimilarity,
    emotion_profile,
    recall_at_k,
    representational_similarity,
    typicality,
)

__all__ = [
    "AgainstChance",
    "Attitude",
    "Change",
    "DistinctWord",
    "EmotionProfile",
    "EpsilonFairness",
    "EpsilonVerdict",
    "ExcessInterval",
    "FairnessInterval",
    "FairnessNull",
    "GenderedMass",
    "IndividualIntervals",
    "OutputDifference",
    "OverallAttitude",
    "PairNull",
    "PairedChange",
    "Reduction",
    "RepresentationalSimilarity",
    "ScoreFairness",
    "SubgroupDistances",
    "WorstPairs",
    "above_threshold",
    "demographic_disparity",
    "distinct_words",
    "emotion_profile",
    "epsilon_fair",
    "epsilon_verdict",
    "fairness_interval",
    "fairness_null",
    "fairness_nulls",
    "gender_gap",
    "gendered_mass",
    "group_fairness",
    "individual_fairness",
    "individual_interval",
    "individual_intervals",
    "log_relative_probability",
    "mean_change",
    "mentions",
    "mentions_share",
    "negative_attitude",
    "output_difference",
    "overall_attitude",
    "pair_null",
    "pair_nulls",
    "paired_change",
    "pairwise_wasserstein",
    "recall_at_k",
    "representational_similarity",
    "sat_effect",
    "sat_polarity",
    "score_fairness",
    "semantic_similarity_share",
    "sst_strength",
    "stereotypical_margin",
    "subgroup_wasserstein",
    "typicality",
    "wasserstein1",
    "widened_reduction",
    "worst_by_chance",
]
