"""The comparison of batches measures both ways on the same records, without the peer installed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.batches import SHIPPED, Setting, at_least, measure, table


class AsksAll:
    """A peer that sends everything to the slow model."""

    @staticmethod
    def answer(confidence: Any, prediction: Any, slow: Any, **_: Any) -> tuple[Any, Any]:
        return slow, np.ones(len(slow), dtype=bool)


def test_a_setting_is_measured_both_ways_and_shown() -> None:
    setting = Setting("shipped", SHIPPED[0].rows, 500, 0.1)
    found = measure(setting, Path(), delta=0.1, draws=2, peer=AsksAll)
    assert found.theirs == 1
    assert 0 < found.oracle < found.ours < 1
    assert found.fewer == pytest.approx(1 - found.ours)
    assert found.met is None, "the bar is for large batches"
    assert table([found]).count("\n") == 2


def test_the_chance_of_as_many_violations_is_that_of_a_binomial() -> None:
    assert at_least(0, 10, 0.1) == 1
    assert at_least(1, 10, 0.1) == pytest.approx(1 - 0.9**10)
    assert at_least(10, 10, 0.1) == pytest.approx(1e-10)
