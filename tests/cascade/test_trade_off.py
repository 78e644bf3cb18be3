"""Each point of a trade-off is the certificate of its own xi."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pacbound import Tally
from pacbound.cascade import trade_off
from pacbound.claims.cascade import certify_cascade
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.procedures.cascade import Bound

Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

TOLERANCES = (0.0, 0.001, 0.02, 0.05, 0.2)


def drawn(n: int, models: int) -> Rows:
    rng = np.random.default_rng(51)
    scores = rng.random((n, models - 1))
    wrong = rng.random((n, models - 1)) < 0.4 * (1 - scores) ** 2
    return (
        scores,
        np.column_stack([wrong, np.zeros(n, dtype=bool)]).astype(int),
        np.zeros(n, dtype=int),
    )


@pytest.mark.parametrize("models", [2, 3])
@pytest.mark.parametrize("bound", ["exact", "pair", "product"])
def test_each_point_is_the_certificate_of_its_own_xi(models: int, bound: Bound) -> None:
    rows, costs = drawn(800, models), tuple(range(1, models + 1))
    curve = trade_off(*rows, xi=TOLERANCES, delta=0.05, costs=costs, bound=bound)
    assert curve.xi.tolist() == list(TOLERANCES)
    assert curve.thresholds.shape == curve.exit_rates.shape == (5, models - 1)
    for i, xi in enumerate(TOLERANCES):
        alone = certify_cascade(*rows, xi=xi, delta=0.05, costs=costs, bound=bound)
        assert curve.thresholds[i].tolist() == alone.thresholds.tolist()
        assert curve.exit_rates[i].tolist() == alone.exit_rates.tolist()
        assert curve.error_increase[i] == alone.observed_error_increase
        assert curve.cost[i] == alone.expected_cost
    assert np.isinf(curve.thresholds[0]).all()
    assert curve.cost[0] == models, (
        "where the claim is refused every row costs what the slow model costs"
    )
    assert curve.exit_rates[-1].sum() > 0


def test_more_tolerance_never_lets_fewer_rows_exit_from_two_models_by_the_pair() -> None:
    curve = trade_off(*drawn(2000, 2), xi=np.linspace(0.005, 0.2, 25), delta=0.05)
    assert (np.diff(curve.exit_rates[:, 0]) >= 0).all()
    assert (np.diff(curve.thresholds[1:, 0]) <= 0).all()
    assert curve.exit_rates[-1, 0] > curve.exit_rates[0, 0]


def test_without_costs_the_cost_is_not_a_number() -> None:
    assert np.isnan(trade_off(*drawn(300, 2), xi=[0.05, 0.1], delta=0.05).cost).all()


def test_a_tally_gives_the_curve_of_its_rows_and_leaves_no_room_for_arrays() -> None:
    scores, predictions, labels = drawn(600, 3)
    tally = Tally.count("cascade", confidence=scores, prediction=predictions, label=labels)
    one = trade_off(data=tally, xi=[0.05, 0.1], delta=0.05)
    other = trade_off(scores, predictions, labels, xi=iter([0.05, 0.1]), delta=0.05)
    assert one.thresholds.tolist() == other.thresholds.tolist()
    with pytest.raises(InvalidTypeError, match="is a Tally: pass it as data="):
        trade_off(tally, predictions, labels, xi=[0.05], delta=0.05)
    with pytest.raises(InvalidTypeError, match="missing"):
        trade_off(scores, xi=[0.05], delta=0.05)


@pytest.mark.parametrize("xi", [[0.05, 1.0], [-0.1], [np.nan]])
def test_every_tolerance_must_be_a_rate(xi: list[float]) -> None:
    with pytest.raises(InvalidValueError, match="xi"):
        trade_off(*drawn(100, 2), xi=xi, delta=0.05)
