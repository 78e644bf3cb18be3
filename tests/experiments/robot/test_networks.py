"""The learned parts at work: no torch is needed, and what is shipped is as described."""

from __future__ import annotations

import numpy as np
import pytest
from experiments.robot.rooms import TUNING
from tests.shield.cars import labelled

from experiments.robot import DangerModel, ImagePolicy, IndoorNavigation, brake

pytestmark = pytest.mark.long


def test_the_shipped_policy_is_imperfect_and_the_shipped_danger_tells_when() -> None:
    rollouts = labelled(
        IndoorNavigation,
        ImagePolicy.load(),
        brake,
        DangerModel.load(),
        seeds=TUNING[2000:2050],
        horizon=100,
    )
    assert 0.25 <= np.mean(~rollouts.unsafe) <= 0.65
    assert np.mean(rollouts.success) >= 0.25
    assert not rollouts.lost.any()
    assert np.median(rollouts.score[rollouts.unsafe]) > np.median(rollouts.score[~rollouts.unsafe])
