from pacbound.baselines.confidences import HistogramBinning as HistogramBinning
from pacbound.baselines.confidences import NaiveSoftmax as NaiveSoftmax
from pacbound.baselines.confidences import TemperatureScaling as TemperatureScaling
from pacbound.baselines.confidences import optimal_temperature as optimal_temperature
from pacbound.baselines.confidences import softmax as softmax
from pacbound.baselines.thresholds import ALWAYS_BRAKE as ALWAYS_BRAKE
from pacbound.baselines.thresholds import NAIVE_THRESHOLD as NAIVE_THRESHOLD
from pacbound.baselines.thresholds import NEVER_ANSWER as NEVER_ANSWER
from pacbound.baselines.thresholds import POLICY_ALONE as POLICY_ALONE
from pacbound.baselines.thresholds import SLOW_ALONE as SLOW_ALONE
from pacbound.baselines.thresholds import TemperatureThreshold as TemperatureThreshold
from pacbound.baselines.thresholds import histogram_threshold as histogram_threshold
from pacbound.baselines.thresholds import observed_miss_threshold as observed_miss_threshold
from pacbound.baselines.thresholds import observed_risk_threshold as observed_risk_threshold
from pacbound.baselines.thresholds import selective_guaranteed_risk as selective_guaranteed_risk
from pacbound.baselines.thresholds import softmax_threshold as softmax_threshold
from pacbound.baselines.thresholds import temperature_threshold as temperature_threshold
from pacbound.baselines.thresholds import xi_threshold as xi_threshold

__all__: list[str]
