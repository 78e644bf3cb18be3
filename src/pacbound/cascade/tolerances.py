"""What different tolerances would buy: thresholds, exit rates and costs over a range of xi.

Each point of the curve holds alone, with probability at least 1 - delta, for an xi that was chosen
beforehand. Choosing xi by looking at the curve is choosing from the data, and no point then holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade import certify_cascade
from pacbound.claims.cascade.claim import CLAIM
from pacbound.errors import InvalidTypeError
from pacbound.procedures.cascade import Bound
from pacbound.stats.arguments import tolerated_rate
from pacbound.tally.row_options import RowOptions
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TradeOff:
    """What a cascade does at each of several tolerances.

    Each row holds alone, for an xi chosen beforehand. Where the claim is refused, thresholds are
    +inf and exit rates 0: nothing exits early.

    Attributes
    ----------
    xi : ndarray of shape (k,)
        The tolerances.
    thresholds : ndarray of shape (k, M-1)
        The certified threshold of each exit.
    exit_rates : ndarray of shape (k, M-1)
        The share of the rows that left at each exit; descriptive.
    error_increase : ndarray of shape (k,)
        The accuracy that was lost on these very rows, those without a label counted as losses;
        descriptive.
    cost : ndarray of shape (k,)
        What a row cost on average; NaN if no costs were passed. Descriptive.

    Examples
    --------
    >>> prediction, label = [[1, 1]] * 900 + [[0, 1]] * 100, [1] * 1000
    >>> confidence = [0.9] * 900 + [0.6] * 100
    >>> curve = trade_off(confidence, prediction, label, xi=[0.001, 0.02], delta=0.05)
    >>> curve.thresholds.round(2).tolist(), curve.exit_rates.tolist()
    ([[inf], [0.6]], [[0.0], [0.9]])
    """

    xi: Floats
    thresholds: Floats
    exit_rates: Floats
    error_increase: Floats
    cost: Floats


def trade_off(
    confidence: Any = None,
    prediction: Any = None,
    label: Any = None,
    *,
    xi: Iterable[float],
    delta: float,
    costs: Any = None,
    bound: Bound = "pair",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> TradeOff:
    """The cascade certified at each of several tolerances; descriptive as a curve.

    Each point holds alone, with probability at least 1 - `delta`, for an `xi` that was chosen
    beforehand. Whoever chooses `xi` by looking at the curve chooses from the data, and then no
    point holds: certify the choice on other rows.

    Parameters
    ----------
    confidence, prediction, label
        As in `certify_cascade`: arrays, or with `data` the names of columns. Rows without a label
        in which predictions differ count as losses.
    xi
        The tolerances, any number of them.
    delta
        The chance that a point is wrong, for each point alone.
    costs
        As in `certify_cascade`. Without them `cost` is NaN.
    bound
        "pair", which answers at once; "exact", which takes its time for each new `xi`; "product".
    data, **rows
        As in `certify_cascade`.

    Returns
    -------
    TradeOff
        A row for each `xi`. Where the claim is refused, thresholds are +inf and exit rates 0.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As from `certify_cascade`.

    Examples
    --------
    >>> prediction, label = [[1, 1]] * 990 + [[0, 1]] * 10, [1] * 1000
    >>> confidence, xi = [0.9] * 500 + [0.6] * 500, [0.01, 0.02, 0.05]
    >>> curve = trade_off(confidence, prediction, label, xi=xi, delta=0.05)
    >>> curve.exit_rates[:, 0]
    array([0.5, 1. , 1. ])
    """
    columns = {"confidence": confidence, "prediction": prediction, "label": label}
    tally = Tally.count(CLAIM.question, data=data, **columns, **rows)
    try:
        tolerances = np.array([tolerated_rate(value) for value in iter(xi)])
    except TypeError as error:
        if isinstance(error, InvalidTypeError):
            raise
        raise InvalidTypeError(
            f"xi={xi!r} is not a list of tolerances: expected several, such as [0.01, 0.02]. For "
            "one use certify_cascade."
        ) from None
    points = [
        certify_cascade(data=tally, xi=float(value), delta=delta, costs=costs, bound=bound)
        for value in tolerances
    ]
    return TradeOff(
        xi=tolerances,
        thresholds=np.array([point.thresholds for point in points]),
        exit_rates=np.array([point.exit_rates for point in points]),
        error_increase=np.array([point.observed_error_increase for point in points]),
        cost=np.array(
            [np.nan if point.expected_cost is None else point.expected_cost for point in points]
        ),
    )
