"""SciPy: the inverse incomplete beta functions as they are, which are silently wrong in places; and
Wilson's interval."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv
from scipy.stats import binomtest


def clopper_pearson(successes: Any, trials: Any, delta: float) -> tuple[Any, Any]:
    lower = betaincinv(successes, trials - successes + 1.0, delta / 2)
    return lower, betainccinv(successes + 1.0, trials - successes, delta / 2)


def wilson(successes: Any, trials: Any, delta: float) -> tuple[Any, Any]:
    """An approximation: its chance of missing the rate is not at most delta."""
    pairs = zip(successes.tolist(), trials.tolist(), strict=True)
    ends = np.array([binomtest(k, n).proportion_ci(1 - delta, method="wilson") for k, n in pairs])
    return ends[:, 0], ends[:, 1]
