"""The usual ways to get confidences and thresholds, to compare with: softmax, temperature scaling,
histogram binning.

None has a guarantee.
"""

from pacbound.baselines.exit_thresholds import (
    SLOW_ALONE,
    TemperatureThreshold,
    histogram_threshold,
    softmax_threshold,
    temperature_threshold,
)
from pacbound.baselines.histogram import HistogramBinning
from pacbound.baselines.shield_thresholds import (
    ALWAYS_BRAKE,
    NAIVE_THRESHOLD,
    POLICY_ALONE,
    observed_miss_threshold,
    xi_threshold,
)
from pacbound.baselines.softmax import NaiveSoftmax, softmax
from pacbound.baselines.temperature import TemperatureScaling, optimal_temperature

__all__ = [
    "ALWAYS_BRAKE",
    "NAIVE_THRESHOLD",
    "POLICY_ALONE",
    "SLOW_ALONE",
    "HistogramBinning",
    "NaiveSoftmax",
    "TemperatureScaling",
    "TemperatureThreshold",
    "histogram_threshold",
    "observed_miss_threshold",
    "optimal_temperature",
    "softmax",
    "softmax_threshold",
    "temperature_threshold",
    "xi_threshold",
]
