"""What different tolerances would buy: thresholds, exit rates and costs over a range of xi.

Each point of the curve holds alone, with probability at least 1 - delta, for an xi that was chosen
beforehand. Choosing xi by looking at the curve is choosing from the data, and no point then holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.certify import certify_cascade
from pacbound.certificate.cascade import CascadeCertificate
from pacbound.procedures.cascade import Bound
from pacbound.tally.intake import tally_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TradeOff:
    """A row for each xi. Where the claim is refused, thresholds are +inf: nothing exits early."""

    xi: Floats
    thresholds: Floats
    exit_rates: Floats
    error_increase: Floats
    cost: Floats


def trade_off(  # noqa: PLR0913
    confidences: Any,
    predictions: Any = None,
    labels: Any = None,
    *,
    xi: Iterable[float],
    delta: float,
    costs: Any = None,
    bound: Bound = "pair",
    classes: Any = None,
    missing: Any = None,
    unseen_labels: float | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
) -> TradeOff:
    """The cascade certified at each of several tolerances; descriptive as a curve.

    Each point holds alone for an `xi` chosen beforehand. The default bound answers at once; "exact"
    takes its time for each new `xi`. `cost` is NaN without `costs`. With `columns`, `confidences`
    is a table, as in `certify_cascade`.

    Examples
    --------
    >>> predictions, labels = [[1, 1]] * 990 + [[0, 1]] * 10, [1] * 1000
    >>> confidence, xi = [0.9] * 500 + [0.6] * 500, [0.01, 0.02, 0.05]
    >>> curve = trade_off(confidence, predictions, labels, xi=xi, delta=0.05)
    >>> curve.exit_rates[:, 0]
    array([0.5, 1. , 1. ])
    """
    tally = tally_of(
        "cascade",
        ("confidences", confidences),
        arrays={"predictions": predictions, "labels": labels},
        columns=columns,
        options={"classes": classes, "missing": missing, "unseen_labels": unseen_labels},
        reading={},
    )
    tolerances = np.array(list(xi), dtype=np.float64)
    points: list[CascadeCertificate] = [
        certify_cascade(tally, xi=float(value), delta=delta, costs=costs, bound=bound)
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
