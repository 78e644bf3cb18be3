"""The usual ways to get confidences and thresholds, to compare with. None has a guarantee.

Confidences come from the softmax, from temperature scaling or from histogram binning; thresholds
for cascades and for shields follow from them.
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
