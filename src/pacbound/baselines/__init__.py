"""The usual ways to get confidences and thresholds, to compare with. None has a guarantee.

Confidences come from the softmax, from temperature scaling or from histogram binning; thresholds
for cascades, for shields and for abstaining follow from them.
"""

from pacbound.baselines.answer_thresholds import (
    NEVER_ANSWER,
    observed_risk_threshold,
    selective_guaranteed_risk,
)
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
