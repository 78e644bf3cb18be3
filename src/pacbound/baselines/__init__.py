"""The usual ways to get confidences, to compare with: softmax, temperature scaling, histogram binning. None has a guarantee."""

from pacbound.baselines.histogram import HistogramBinning
from pacbound.baselines.softmax import NaiveSoftmax, softmax
from pacbound.baselines.temperature import TemperatureScaling, optimal_temperature

__all__ = ["HistogramBinning", "NaiveSoftmax", "TemperatureScaling", "optimal_temperature", "softmax"]
