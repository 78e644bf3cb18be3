"""From seeds to certificate: shields certified from collected rollouts are unsafe too often with
probability at most delta."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("joblib", reason="joblib is not installed: pip install 'pacbound[shield]'")

from tests.shield.cars import brake, chance_to_be_unsafe, danger, labelled, rash, slippery

from pacbound import certify_shield

Judge = Callable[[int, int, float], None]

CALIBRATIONS, ROLLOUTS, DELTA, HORIZON, HAIR = 700, 24, 0.1, 40, 1e-9


@pytest.mark.long
def test_shields_certified_from_collected_rollouts_break_xi_with_probability_at_most_delta(
    judge: Judge,
) -> None:
    # The risk at the threshold 1 is a hair above xi, so that certifying it is a violation, and a
    # likely one.
    xi = chance_to_be_unsafe(1.0, 0.1, HORIZON) - HAIR
    rollouts = labelled(
        slippery,
        rash,
        brake,
        danger,
        seeds=range(CALIBRATIONS * ROLLOUTS),
        horizon=HORIZON,
        chunk=500,
        n_jobs=2,
    )
    scores, unsafe = (
        rollouts.score.reshape(CALIBRATIONS, ROLLOUTS),
        rollouts.unsafe.reshape(CALIBRATIONS, ROLLOUTS),
    )
    violations = certified = 0
    for some, bad in zip(scores, unsafe, strict=True):
        certificate = certify_shield(some, bad, xi=xi, delta=DELTA)
        certified += certificate.certified
        violations += (
            certificate.certified and chance_to_be_unsafe(certificate.threshold, 0.1, HORIZON) > xi
        )
    judge(violations, CALIBRATIONS, DELTA)
    assert certified > 0.5 * CALIBRATIONS
    assert violations > 0.3 * DELTA * CALIBRATIONS
