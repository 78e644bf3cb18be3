"""States that were written once are read for ever, and are what the same rows still lead to.

To freeze one, add it to `STATES`, write it with `save` as `written` does, commit the file as it is,
and never touch it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pacbound import Monitor, load_certificate

FROZEN = Path(__file__).parent / "frozen"
CERTIFICATES = Path(__file__).parents[1] / "certificate" / "frozen"
CLOCKS = {"ever": "ever", "per": "one per 1e6 labels"}
ROWS = 1000
"""Several blocks and restarts, and the middle of one."""

FLAGS = np.arange(ROWS) % 61 == 0
SCORES = (np.arange(ROWS) * 37 % 1000) / 1000
STATES: dict[str, dict[str, Any]] = {
    "shield-1": {"unsafe": FLAGS},
    "calibration-1": {"confidence": SCORES, "correct": SCORES > 0.4},
    "abstention-1": {"confidence": SCORES, "correct": ~FLAGS},
    "recall-1": {"score": SCORES, "positive": FLAGS},
    "false-alarms-1": {"score": SCORES, "positive": FLAGS},
    "cascade-exact-1": {"loss": FLAGS.astype(int) - (np.arange(ROWS) % 97 == 0)},
    "cascade-differ-1": {"loss": FLAGS.astype(int)},
}
"""What was taken in, by the certificate that was watched."""


def written(name: str, clock: str) -> Monitor:
    certificate = load_certificate(CERTIFICATES / f"{name}.json")
    monitor = Monitor(certificate, delta=1e-3, false_alarms=CLOCKS[clock])
    monitor.update(STATES[name])
    return monitor


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", STATES)
def test_a_frozen_state_is_read_and_goes_on(name: str, clock: str) -> None:
    certificate = load_certificate(CERTIFICATES / f"{name}.json")
    found = Monitor.load(FROZEN / f"{name}-{clock}.json", certificate)
    again = written(name, clock)
    assert found.labels > 0
    assert found.to_dict() == again.to_dict()
    assert found.update(STATES[name]) == again.update(STATES[name])
    assert found.evidence == again.evidence


def test_every_frozen_state_is_read_by_a_test() -> None:
    names = {f"{name}-{clock}.json" for name in STATES for clock in CLOCKS}
    assert {path.name for path in FROZEN.iterdir()} == names
