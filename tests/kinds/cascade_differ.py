"""A cascade of which few answers differ from the slow model's, which needs no labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kinds.cascade import cascade_tally, few_labels, pilot_rows
from tests.kinds.cascade_groups import in_groups
from tests.kinds.cascade_paths import three_models
from tests.kinds.kind import Kind, Pilot

from pacbound import Tally, certify_cascade


def _pilot(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    return {name: column for name, column in pilot_rows(rows, rng).items() if name != "label"}


def _answered(tally: Tally) -> float:
    return float(certify_cascade(data=tally, xi=0.1, delta=0.05, claim="differ").exit_rates.sum())


KIND = Kind(
    made={
        "cascade-differ": lambda: certify_cascade(
            data=few_labels(cascade_tally(600), 0), xi=0.05, delta=0.05, claim="differ"
        ),
        "cascade-differ-refused": lambda: certify_cascade(
            data=few_labels(cascade_tally(50), 0), xi=0.01, delta=0.05, claim="differ"
        ),
        "cascade-paths-differ": lambda: certify_cascade(
            data=few_labels(three_models(600), 0), xi=0.1, delta=0.05, claim="differ"
        ),
        "cascade-groups-differ": lambda: certify_cascade(
            data=in_groups(400, 2, labelled=0.0), xi=0.2, delta=0.05, claim="differ"
        ),
    },
    pilot=Pilot(_pilot, _answered, {"xi": 0.1, "claim": "differ"}, 0.04),
)
