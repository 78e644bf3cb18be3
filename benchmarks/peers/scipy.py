"""SciPy: the inverse incomplete beta functions as they are, which are silently wrong in places."""

from __future__ import annotations

from typing import Any

from scipy.special import betainccinv, betaincinv


def clopper_pearson(successes: Any, trials: Any, delta: float) -> tuple[Any, Any]:
    lower = betaincinv(successes, trials - successes + 1.0, delta / 2)
    return lower, betainccinv(successes + 1.0, trials - successes, delta / 2)
