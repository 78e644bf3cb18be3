"""Provable guarantees on what a trained classifier says.

From a held-out labelled sample, pacbound certifies an interval for the true confidence of every
prediction, with probability at least 1 - delta and no assumption on the model. Every answer is a
certificate that carries the integer counts it follows from, so that anyone can verify it without
the data.
"""

from typing import TYPE_CHECKING

from pacbound.lazy_names import lazy_names
from pacbound.version import VERSION

if TYPE_CHECKING:
    from pacbound.abstention import SelectiveClassifier
    from pacbound.baselines import HistogramBinning, TemperatureScaling
    from pacbound.calibration.calibrator import PACCalibrator
    from pacbound.calibration.estimators import PACClassifier
    from pacbound.calibration.metrics import expected_calibration_error, induced_calibration_error
    from pacbound.calibration.strata import stratify
    from pacbound.cascade import (
        AsyncCascade,
        BatchSession,
        Cascade,
        LabelSession,
        answer_batch,
        answer_batch_async,
        design_cascade,
    )
    from pacbound.certificate import (
        BatchCertificate,
        Budget,
        Certificate,
        CertificateBundle,
        Verification,
        certify_together,
        load_certificate,
    )
    from pacbound.claims.abstention import AbstentionCertificate, certify_abstention
    from pacbound.claims.alarm_range import AlarmRangeCertificate, certify_alarm_range
    from pacbound.claims.calibration import calibrate
    from pacbound.claims.calibration_certificate import CalibrationCertificate
    from pacbound.claims.cascade import CascadeCertificate, certify_cascade
    from pacbound.claims.false_alarms import FalseAlarmCertificate, certify_false_alarms
    from pacbound.claims.precision import PrecisionCertificate, certify_precision
    from pacbound.claims.recall import RecallCertificate, certify_recall
    from pacbound.claims.sets import SetsCertificate, certify_sets
    from pacbound.claims.shield import ShieldCertificate, certify_shield
    from pacbound.errors import PacboundError
    from pacbound.monitor import Alarm, Monitor
    from pacbound.planning import PilotPlan, PlanPoint, plan_from_pilot
    from pacbound.shield import Shield
    from pacbound.stats.binomial import binomial_interval, binomial_lower, binomial_upper
    from pacbound.stats.looks import PlannedLooks, planned_looks
    from pacbound.stats.planning import trials_needed
    from pacbound.tally import Tally, equal_mass_edges, top_label

__version__ = VERSION

_HOMES = {
    "Alarm": "pacbound.monitor",
    "AbstentionCertificate": "pacbound.claims.abstention",
    "AlarmRangeCertificate": "pacbound.claims.alarm_range",
    "AsyncCascade": "pacbound.cascade",
    "BatchCertificate": "pacbound.certificate",
    "BatchSession": "pacbound.cascade",
    "Budget": "pacbound.certificate",
    "CalibrationCertificate": "pacbound.claims.calibration_certificate",
    "Cascade": "pacbound.cascade",
    "CascadeCertificate": "pacbound.claims.cascade",
    "Certificate": "pacbound.certificate",
    "CertificateBundle": "pacbound.certificate",
    "FalseAlarmCertificate": "pacbound.claims.false_alarms",
    "HistogramBinning": "pacbound.baselines",
    "LabelSession": "pacbound.cascade",
    "Monitor": "pacbound.monitor",
    "PACCalibrator": "pacbound.calibration.calibrator",
    "PACClassifier": "pacbound.calibration.estimators",
    "PacboundError": "pacbound.errors",
    "PilotPlan": "pacbound.planning",
    "PlanPoint": "pacbound.planning",
    "PlannedLooks": "pacbound.stats.looks",
    "PrecisionCertificate": "pacbound.claims.precision",
    "RecallCertificate": "pacbound.claims.recall",
    "SelectiveClassifier": "pacbound.abstention.estimators",
    "SetsCertificate": "pacbound.claims.sets",
    "Shield": "pacbound.shield",
    "ShieldCertificate": "pacbound.claims.shield",
    "Tally": "pacbound.tally",
    "TemperatureScaling": "pacbound.baselines",
    "Verification": "pacbound.certificate",
    "answer_batch": "pacbound.cascade",
    "answer_batch_async": "pacbound.cascade",
    "binomial_interval": "pacbound.stats.binomial",
    "binomial_lower": "pacbound.stats.binomial",
    "binomial_upper": "pacbound.stats.binomial",
    "calibrate": "pacbound.claims.calibration",
    "certify_abstention": "pacbound.claims.abstention",
    "certify_alarm_range": "pacbound.claims.alarm_range",
    "certify_cascade": "pacbound.claims.cascade",
    "certify_false_alarms": "pacbound.claims.false_alarms",
    "certify_precision": "pacbound.claims.precision",
    "certify_recall": "pacbound.claims.recall",
    "certify_sets": "pacbound.claims.sets",
    "certify_shield": "pacbound.claims.shield",
    "certify_together": "pacbound.certificate",
    "design_cascade": "pacbound.cascade",
    "equal_mass_edges": "pacbound.tally",
    "expected_calibration_error": "pacbound.calibration.metrics",
    "induced_calibration_error": "pacbound.calibration.metrics",
    "load_certificate": "pacbound.certificate",
    "plan_from_pilot": "pacbound.planning",
    "planned_looks": "pacbound.stats.looks",
    "stratify": "pacbound.calibration.strata",
    "top_label": "pacbound.tally",
    "trials_needed": "pacbound.stats.planning",
}
"""Where the names live, each of which is loaded when it is first used: `pacbound --help` needs no
numpy, and an import costs no more than what is used of it."""

__all__ = [
    "AbstentionCertificate",
    "Alarm",
    "AlarmRangeCertificate",
    "AsyncCascade",
    "BatchCertificate",
    "BatchSession",
    "Budget",
    "CalibrationCertificate",
    "Cascade",
    "CascadeCertificate",
    "Certificate",
    "CertificateBundle",
    "FalseAlarmCertificate",
    "HistogramBinning",
    "LabelSession",
    "Monitor",
    "PACCalibrator",
    "PACClassifier",
    "PacboundError",
    "PilotPlan",
    "PlanPoint",
    "PlannedLooks",
    "PrecisionCertificate",
    "RecallCertificate",
    "SelectiveClassifier",
    "SetsCertificate",
    "Shield",
    "ShieldCertificate",
    "Tally",
    "TemperatureScaling",
    "Verification",
    "__version__",
    "answer_batch",
    "answer_batch_async",
    "binomial_interval",
    "binomial_lower",
    "binomial_upper",
    "calibrate",
    "certify_abstention",
    "certify_alarm_range",
    "certify_cascade",
    "certify_false_alarms",
    "certify_precision",
    "certify_recall",
    "certify_sets",
    "certify_shield",
    "certify_together",
    "design_cascade",
    "equal_mass_edges",
    "expected_calibration_error",
    "induced_calibration_error",
    "load_certificate",
    "plan_from_pilot",
    "planned_looks",
    "stratify",
    "top_label",
    "trials_needed",
]


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
