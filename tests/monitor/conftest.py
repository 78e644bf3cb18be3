"""Certificates to watch over, one of each kind, and rows that keep or break their claims."""

from __future__ import annotations

import pytest
from tests.kinds import KINDS
from tests.kinds.kind import Use

CLOCKS = ["ever", "one per 10,000 labels"]
USES = {name: kind.use for name, kind in KINDS.items() if kind.use}


@pytest.fixture(params=USES)
def use(request: pytest.FixtureRequest) -> Use:
    """Each kind of certificate in turn."""
    return USES[request.param]()


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> str:
    """Each promise in turn."""
    return str(request.param)
