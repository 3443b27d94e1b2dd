"""How sure a number is. These procedures know no metric: they take counts or scores per cluster."""

from portrayal.stats.bootstrap import (
    LEVEL,
    RESAMPLES,
    Estimate,
    Resampler,
    bootstrap,
    column_sums,
    divide_columns,
    percentile_interval,
    resampler,
    sorted_clusters,
)
from portrayal.stats.clustered_variance import clustered_variance, multiway_variance, training_variance
from portrayal.stats.compare import (
    Difference,
    interval_difference,
    mcnemar_difference,
    paired_difference,
    unpaired_difference,
)
from portrayal.stats.firth import Coefficient, firth
from portrayal.stats.grouping import Gap, GroupedCounts
from portrayal.stats.mover import Interval, correlation_of, difference
from portrayal.stats.multiplicity import benjamini_hochberg, holm
from portrayal.stats.p_values import MIN_P, bootstrap_p, floored_p, normal_p
from portrayal.stats.permutation import (
    PERMUTATIONS,
    cluster_permutations,
    noise_floor,
    permutation_p,
    permutation_test,
    permutations,
)
from portrayal.stats.power import minimum_detectable_effect
from portrayal.stats.rates import clustered_wilson, rate, wilson, wilson_of_sums
from portrayal.stats.seeds import replicates_over_seeds

__all__ = [
    "LEVEL",
    "MIN_P",
    "PERMUTATIONS",
    "RESAMPLES",
    "Coefficient",
    "Difference",
    "Estimate",
    "Gap",
    "GroupedCounts",
    "Interval",
    "Resampler",
    "benjamini_hochberg",
    "bootstrap",
    "bootstrap_p",
    "cluster_permutations",
    "clustered_variance",
    "clustered_wilson",
    "column_sums",
    "correlation_of",
    "difference",
    "divide_columns",
    "firth",
    "floored_p",
    "holm",
    "interval_difference",
    "mcnemar_difference",
    "minimum_detectable_effect",
    "multiway_variance",
    "noise_floor",
    "normal_p",
    "paired_difference",
    "percentile_interval",
    "permutation_p",
    "permutation_test",
    "permutations",
    "rate",
    "replicates_over_seeds",
    "resampler",
    "sorted_clusters",
    "training_variance",
    "unpaired_difference",
    "wilson",
    "wilson_of_sums",
]
