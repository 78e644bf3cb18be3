"""The question that columns belong to, for tests that go through several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def question_of(columns: Mapping[str, Any]) -> str:
    if "score" in columns:
        return "recall" if "positive" in columns else "shield"
    several: Any = columns.get("prediction", ())
    is_matrix = isinstance(several, list) or np.ndim(several) == 2
    return "cascade" if is_matrix else "calibration"
