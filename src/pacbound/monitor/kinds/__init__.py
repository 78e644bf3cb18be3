"""The kinds of certificates that can be monitored, one file each.

To add one: a file with a watch, and its line in `WATCHES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pacbound.certificate import Certificate
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.monitor.kinds.abstention import AbstentionWatch
from pacbound.monitor.kinds.calibration import CalibrationWatch
from pacbound.monitor.kinds.cascade import CascadeWatch
from pacbound.monitor.kinds.recall import RecallWatch
from pacbound.monitor.kinds.shield import ShieldWatch
from pacbound.monitor.kinds.watch import Watch

WATCHES: dict[str, Callable[[Any], Watch]] = {
    "abstention": AbstentionWatch,
    "calibration": CalibrationWatch,
    "cascade": CascadeWatch,
    "recall": RecallWatch,
    "shield": ShieldWatch,
}


def watch_of(certificate: Certificate) -> Watch:
    """The bets against what a certificate claims, once it is verified."""
    if not isinstance(certificate, Certificate):
        raise InvalidTypeError(
            f"certificate is of type {type(certificate).__name__}: expected a Certificate. "
            "load_certificate reads one from its file."
        )
    if certificate.kind not in WATCHES:
        hint = " Monitor its certificates one by one." if certificate.kind == "bundle" else ""
        raise InvalidTypeError(
            f"A {certificate.kind} certificate is not monitored: expected one of "
            f"{', '.join(WATCHES)}.{hint}"
        )
    certificate.require_verified()
    if not certificate.certified:
        raise InvalidValueError(
            "This certificate is a refusal: it claims nothing, so there is nothing to monitor. "
            "Certify first; summary() says what it would take."
        )
    return WATCHES[certificate.kind](certificate)
