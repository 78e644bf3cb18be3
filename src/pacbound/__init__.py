"""Provable guarantees on what a trained classifier says.

From a held-out labelled sample, pacbound certifies an interval for the true confidence of every
prediction, with probability at least 1 - delta and no assumption on the model. Every answer is a
certificate that carries the integer counts it follows from, so that anyone can verify it without
the data.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pacbound.errors import MissingDependencyError, PacboundError, stand_in
from pacbound.stats.binomial import binomial_interval, binomial_lower, binomial_upper
from pacbound.version import VERSION

if TYPE_CHECKING:
    from pacbound.baselines import HistogramBinning, TemperatureScaling
    from pacbound.calibration.calibrator import PACCalibrator
    from pacbound.calibration.certify import calibrate
    from pacbound.calibration.estimators import PACClassifier
    from pacbound.calibration.metrics import expected_calibration_error, induced_calibration_error
    from pacbound.cascade import AsyncCascade, Cascade, certify_cascade
    from pacbound.certificate import (
        CalibrationCertificate,
        CascadeCertificate,
        Certificate,
        ShieldCertificate,
        Verification,
        load_certificate,
    )
    from pacbound.shield import Shield, certify_shield
    from pacbound.stats.planning import trials_needed
    from pacbound.tally import Tally, equal_mass_edges, top_label

__version__ = VERSION

_HOMES = {
    "AsyncCascade": "cascade",
    "CalibrationCertificate": "certificate",
    "Cascade": "cascade",
    "CascadeCertificate": "certificate",
    "Certificate": "certificate",
    "HistogramBinning": "baselines",
    "PACCalibrator": "calibration.calibrator",
    "PACClassifier": "calibration.estimators",
    "Shield": "shield",
    "ShieldCertificate": "certificate",
    "Tally": "tally",
    "TemperatureScaling": "baselines",
    "Verification": "certificate",
    "calibrate": "calibration.certify",
    "certify_cascade": "cascade",
    "certify_shield": "shield",
    "equal_mass_edges": "tally",
    "expected_calibration_error": "calibration.metrics",
    "induced_calibration_error": "calibration.metrics",
    "load_certificate": "certificate",
    "top_label": "tally",
    "trials_needed": "stats.planning",
}
"""Where the names live that are loaded when they are first used, so that the import costs no more
than its bounds."""

__all__ = [
    "AsyncCascade",
    "CalibrationCertificate",
    "Cascade",
    "CascadeCertificate",
    "Certificate",
    "HistogramBinning",
    "PACCalibrator",
    "PACClassifier",
    "PacboundError",
    "Shield",
    "ShieldCertificate",
    "Tally",
    "TemperatureScaling",
    "Verification",
    "__version__",
    "binomial_interval",
    "binomial_lower",
    "binomial_upper",
    "calibrate",
    "certify_cascade",
    "certify_shield",
    "equal_mass_edges",
    "expected_calibration_error",
    "induced_calibration_error",
    "load_certificate",
    "top_label",
    "trials_needed",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pacbound' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"pacbound.{_HOMES[name]}"), name)
    except MissingDependencyError as error:
        # Not kept: once the extra is installed, the name is there without a new start of Python.
        return stand_in(name, __name__, error)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
