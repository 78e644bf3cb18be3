"""The claims of a bundle, or of a range, watched under one promise."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import (
    Monitor,
    calibrate,
    certify_shield,
    certify_together,
)
from pacbound.claims.bundle import CertificateBundle
from pacbound.errors import CertificateError, InvalidTypeError, InvalidValueError
from pacbound.monitor import BundleMonitor

SCORES, UNSAFE = [0.1] * 950 + [0.9] * 50, [False] * 950 + [True] * 50


def bundle() -> CertificateBundle:
    return certify_together(
        {
            "brake": partial(certify_shield, SCORES, UNSAFE, xi=0.02),
            "danger": partial(calibrate, SCORES, UNSAFE, n_bins=2),
            "refused": partial(certify_shield, SCORES, UNSAFE, xi=1e-6),
        },
        delta=0.03,
    )


def test_each_claim_has_a_monitor_with_its_share_of_delta() -> None:
    monitor = BundleMonitor(bundle(), delta=1e-3)
    assert {name: one.delta for name, one in monitor.monitors.items()} == {
        "brake": 5e-4,
        "danger": 5e-4,
    }
    assert "is a refusal" in monitor.unwatched["refused"]
    rows = np.random.default_rng(0).random(300) < 0.05
    alone = Monitor(bundle()["brake"], delta=5e-4)
    alone.update(rows)
    monitor.update({"brake": rows})
    assert monitor.monitors["brake"].to_dict() == alone.to_dict()
    assert monitor.monitors["danger"].labels == 0
    assert "While all claims hold at every step, the chance of any false alarm" in monitor.summary()
    assert "refused: not watched" in repr(monitor)


def test_the_alarm_of_a_claim_is_named() -> None:
    monitor = BundleMonitor(bundle(), delta=1e-3)
    assert monitor.update({"brake": [False] * 10}) == {}
    rung = monitor.update({"brake": [True] * 20})
    assert rung.keys() == monitor.alarms.keys() == {"brake"}


def test_a_value_that_cannot_be_changes_no_claim() -> None:
    monitor = BundleMonitor(bundle(), delta=1e-3)
    before = monitor.to_dict()
    bad = {"confidence": [0.5], "correct": [7]}
    with pytest.raises(InvalidValueError):
        monitor.update({"brake": [True] * 5, "danger": bad})
    assert monitor.to_dict() == before


@pytest.mark.parametrize(
    ("outcomes", "error", "message"),
    [
        ([True], InvalidTypeError, "expected a mapping from claims"),
        ({"other": [True]}, InvalidValueError, "no claim 'other' that is watched"),
        ({"refused": [True]}, InvalidValueError, "'refused' is not watched: This certificate is"),
    ],
)
def test_claims_that_are_not_watched_are_refused(
    outcomes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BundleMonitor(bundle(), delta=1e-3).update(outcomes)


def test_a_state_goes_on_bit_for_bit(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).random(500) < 0.05
    monitor = BundleMonitor(bundle(), delta=1e-3)
    monitor.update({"brake": rows[:200]})
    monitor.save(tmp_path / "state.json")
    again = BundleMonitor.load(tmp_path / "state.json", bundle())
    for one in (monitor, again):
        one.update({"brake": rows[200:]})
    assert again.to_dict() == monitor.to_dict()


def test_a_state_with_another_promise_inside_is_refused_even_with_its_digest(
    tmp_path: Path,
) -> None:
    from pacbound import documents

    monitor = BundleMonitor(bundle(), delta=1e-3)
    document = json.loads(json.dumps(monitor.to_dict()))
    document["monitors"]["brake"] = Monitor(bundle()["brake"], delta=0.5).to_dict()
    body = {key: value for key, value in document.items() if key != "digest"}
    documents.write(tmp_path / "s.json", {**body, "digest": documents.digest(body)})
    with pytest.raises(CertificateError, match="another promise"):
        BundleMonitor.load(tmp_path / "s.json", bundle())
