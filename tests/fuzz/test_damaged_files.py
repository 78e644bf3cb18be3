"""A damaged file is read, or refused with a `PacboundError`; no reader crashes or hangs.

`make fuzz` looks for an hour, or for FUZZ_SECONDS.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("duckdb", reason="reading tables in files needs the extra `frames`")
pytest.importorskip("pyarrow", reason="reading tables in files needs the extra `frames`")

from tests.fuzz.judge import Judge, case
from tests.fuzz.targets import TARGETS

EXAMPLES = {"certificate": 100, "state": 150, "tally": 150, "table": 40}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    judge = Judge()
    yield judge
    judge.close()


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_damaged_file_is_refused_or_read_and_nothing_else(target: str, judge: Judge) -> None:
    most = 8 if settings().max_examples < 100 else EXAMPLES[target.split(maxsplit=1)[0]]

    @settings(max_examples=most, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def check(random: Random) -> None:
        seed, data = case(target, random)
        assert judge.verdict(target, seed, data) in ("taken", "refused"), data

    check()
