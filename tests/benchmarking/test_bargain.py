"""The comparison with BARGAIN measures both ways on the same records, without it installed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.duels.bargain import SHIPPED, Setting, measure, table


class AsksAll:
    """A peer that sends everything to the slow model."""

    @staticmethod
    def answer(confidence: Any, prediction: Any, slow: Any, **_: Any) -> tuple[Any, Any]:
        return slow, np.ones(len(slow), dtype=bool)


def test_a_setting_is_measured_both_ways_and_shown() -> None:
    setting = Setting("shipped", SHIPPED[0].rows, 500, 0.1)
    found = measure(setting, Path(), 2, delta=0.1, peer=AsksAll)
    assert found["theirs"]["sent"] == 1
    assert 0 < found["needed"] < found["ours"]["sent"] < 1
    assert found["fewer"] == pytest.approx(1 - found["ours"]["sent"])
    assert found["met"] is None, "the bar is for large batches"
    assert table([found]).count("\n") == 2
