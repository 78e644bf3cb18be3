"""A cascade in groups that share rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds import cascade_groups
from tests.kinds.cascade_groups import in_groups
from tests.kinds.kind import Kind, Use

from pacbound import certify_cascade


def _rows(n: int, rng: np.random.Generator, bad: bool) -> Any:
    rows = cascade_groups.rows_of_use(n, rng, bad)
    return {**rows, "groups": {"night": rows["groups"] == "night"}}


KIND = Kind(
    made={
        "cascade-groups-overlapping": lambda: certify_cascade(
            data=in_groups(400, 2, overlapping=True, labelled=0.8), xi=0.1, delta=0.05
        ),
    },
    use=lambda: Use(cascade_groups.watched(overlapping=True), _rows),
)
