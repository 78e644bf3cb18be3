"""The usual ways to get confidences and thresholds, to compare with. None has a guarantee.

Confidences come from the softmax, from temperature scaling or from histogram binning; thresholds
for cascades, for shields and for abstaining follow from them.
"""

from pacbound.baselines.confidences import (
    HistogramBinning,
    NaiveSoftmax,
    TemperatureScaling,
    optimal_temperature,
    softmax,
)
from pacbound.baselines.thresholds import (
    ALWAYS_BRAKE,
    NAIVE_THRESHOLD,
    NEVER_ANSWER,
    POLICY_ALONE,
    SLOW_ALONE,
    TemperatureThreshold,
    histogram_threshold,
    observed_miss_threshold,
    observed_risk_threshold,
    selective_guaranteed_risk,
    softmax_threshold,
    temperature_threshold,
    xi_threshold,
)

__all__ = [
    "ALWAYS_BRAKE",
    "NAIVE_THRESHOLD",
    "NEVER_ANSWER",
    "POLICY_ALONE",
    "SLOW_ALONE",
    "HistogramBinning",
    "NaiveSoftmax",
    "TemperatureScaling",
    "TemperatureThreshold",
    "histogram_threshold",
    "observed_miss_threshold",
    "observed_risk_threshold",
    "optimal_temperature",
    "selective_guaranteed_risk",
    "softmax",
    "softmax_threshold",
    "temperature_threshold",
    "xi_threshold",
]
