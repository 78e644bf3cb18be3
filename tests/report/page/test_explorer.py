"""Whatever the explorer offers is what the rows themselves would give at that xi and delta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.kinds.cascade import few_labels
from tests.kinds.cascade_front import front
from tests.kinds.cascade_groups import in_groups
from tests.kinds.cascade_paths import three_models
from tests.products import standing_for
from tests.report.page.conftest import abstention, calibration, cascade, recall, rows, shield

from pacbound import certify_abstention, certify_cascade
from pacbound.claims.certificate import Certificate
from pacbound.explorable import CERTIFIED, HOPELESS, REFUSED, UNTOLD, Explorable, Reading
from pacbound.report.page.explorer import Explorer, explorable, explored
from pacbound.says import four_digits

Make = Callable[..., Certificate]


def _explorer(certificate: Certificate) -> Explorer:
    way = explorable(certificate)
    assert isinstance(way, Explorable)
    # A second is enough for the finest grid of all but exact cascades, which get a coarse one.
    found = explored(certificate, way, seconds=1.0)
    assert found is not None
    return found


def _points(found: Explorer) -> list[tuple[dict[str, Any], Reading]]:
    """The values that are asked for at each point, and what was found there."""
    name = found.explorable.dial
    return [
        ({"delta": delta} | ({} if name is None else {name: value}), reading)
        for value, line in zip(found.dial, found.readings, strict=True)
        for delta, reading in zip(found.deltas, line, strict=True)
    ]


def _share(text: str) -> tuple[float, float]:
    """The ends of a share as the explorer writes it, with room for its rounding."""
    ends = [float(part.rstrip("%")) / 100 for part in text.split(" to ")]
    return ends[0] - 5.1e-5, ends[-1] + 5.1e-5


def _requires_exits(reading: Reading, fresh: Any) -> None:
    low, high = _share(reading.values[1])
    assert low <= float(fresh.exit_rates.sum()) <= high
    if len(reading.values) > 2:
        costs = [float(part) for part in reading.values[2].split(" to ")]
        assert costs[0] * 0.999 <= fresh.expected_cost <= costs[-1] * 1.001


TWO = [(600, "exact"), (2000, "pair"), (2000, "product")]


@pytest.mark.parametrize(("count", "bound"), standing_for(TWO, TWO[:1], rest="slow"))
def test_two_models_stop_where_a_fresh_certificate_does(count: int, bound: str) -> None:
    verdicts = set()
    for asked, reading in _points(_explorer(cascade(count, bound=bound))):
        fresh: Any = cascade(count, bound=bound, **asked)
        verdicts.add(reading.verdict)
        assert reading.verdict == (CERTIFIED if fresh.certified else REFUSED)
        shown = repr(float(fresh.thresholds[0])) if fresh.certified else "never exit early"
        assert reading.values[0] == shown
        _requires_exits(reading, fresh)
    assert CERTIFIED in verdicts


THREE = [(600, "exact"), (600, "pair"), (3000, "pair")]


@pytest.mark.parametrize(("count", "bound"), standing_for(THREE, THREE[:1], rest="slow"))
def test_three_models_stop_where_a_fresh_certificate_does(count: int, bound: Any) -> None:
    tally, costs = three_models(count), (1.0, 3.0, 9.0)

    def make(xi: float, delta: float) -> Any:
        return certify_cascade(data=tally, xi=xi, delta=delta, bound=bound, costs=costs)

    found = _explorer(make(0.1, 0.05))
    told = 0
    for asked, reading in _points(found):
        fresh = make(**asked)
        if reading.verdict == UNTOLD:
            continue
        told += fresh.certified
        assert reading.verdict == (CERTIFIED if fresh.certified else REFUSED)
        if fresh.certified:
            assert reading.values[0] == ", ".join(map(repr, fresh.thresholds.tolist()))
        _requires_exits(reading, fresh)
    own = found.readings[found.own[0]][found.own[1]]
    assert told
    assert own.values[0] == ", ".join(map(repr, make(0.1, 0.05).thresholds.tolist()))


def test_missing_labels_count_as_losses_in_the_explorer_too() -> None:
    table = rows()
    labels = np.where(np.arange(2000) % 40 == 0, np.nan, table["labels"])
    answers = np.column_stack([table["fast"], table["slow"]])

    def make(**asked: Any) -> Any:
        return certify_cascade(table["confidence"], answers, labels, bound="pair", **asked)

    certificate = make(xi=0.05, delta=0.05)
    assert certificate.unlabelled.exiting
    for asked, reading in _points(_explorer(certificate)):
        fresh = make(**asked)
        shown = repr(float(fresh.thresholds[0])) if fresh.certified else "never exit early"
        assert reading.values[0] == shown


def test_a_declared_sequence_stops_where_a_fresh_certificate_does() -> None:
    for asked, reading in _points(_explorer(front(600, bound="pair"))):
        fresh: Any = front(600, xi=asked["xi"], bound="pair")
        if asked["delta"] != fresh.delta:
            continue
        shown = ", ".join("never" if np.isinf(v) else repr(v) for v in fresh.thresholds.tolist())
        assert reading.values[0] == (shown if fresh.certified else "never exit early")
        _requires_exits(reading, fresh)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shared", "overlapping"), [("common", False), ("common", True), ("own", False)]
)
def test_groups_stop_where_a_fresh_certificate_does(shared: Any, overlapping: bool) -> None:
    tally = in_groups(3000, 2, overlapping=overlapping)

    def make(xi: float, delta: float) -> Any:
        return certify_cascade(
            data=tally, xi=xi, delta=delta, bound="pair", group_thresholds=shared, costs=(1.0, 9.0)
        )

    certificate = make(0.1, 0.05)
    assert certificate.certified
    for asked, reading in _points(_explorer(certificate)):
        fresh = make(**asked)
        assert reading.verdict == (CERTIFIED if fresh.certified else REFUSED)
        if shared == "own":
            told = sum(group.certified for group in fresh.groups.values())
            assert reading.values[0] == f"{told} of {len(fresh.groups)}"
        elif fresh.certified:
            assert reading.values[0] == repr(float(fresh.thresholds[0]))
        _requires_exits(reading, fresh)


@pytest.mark.parametrize("grouped", [False, True])
def test_abstention_is_that_of_a_fresh_certificate(grouped: bool) -> None:
    table = rows()
    named: Any = {"groups": np.where(table["labels"] < 5, "low", "high")} if grouped else {}

    def make(**asked: Any) -> Any:
        correct = table["fast"] == table["labels"]
        return certify_abstention(table["confidence"], correct, **named, **asked)

    for asked, reading in _points(_explorer(make(xi=0.12, delta=0.05))):
        fresh = make(**asked)
        assert reading.verdict == (CERTIFIED if fresh.certified else REFUSED)
        assert reading.values[1] == f"{fresh.coverage:.2%}"
        if not grouped and fresh.certified:
            assert reading.values[0] == repr(fresh.threshold)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "bound"), [("all", "exact"), ("among-unsafe", "exact"), ("all", "product")]
)
def test_a_shield_is_that_of_a_fresh_certificate(rate: Any, bound: Any) -> None:
    xi = 0.05 if rate == "all" else 0.2
    for asked, reading in _points(_explorer(shield(xi=xi, rate=rate, bound=bound))):
        fresh: Any = shield(rate=rate, bound=bound, **asked)
        assert reading.verdict == (CERTIFIED if fresh.certified else REFUSED)
        if fresh.certified:
            assert reading.values[0] == four_digits(fresh.threshold, "down")
            assert reading.values[-1] == f"{fresh.allowed:,}"


def test_recall_is_that_of_a_fresh_certificate() -> None:
    for asked, reading in _points(_explorer(recall())):
        fresh: Any = recall(**asked)
        shown = four_digits(fresh.threshold, "down") if fresh.certified else "flag everything"
        assert (reading.values[0], reading.values[2]) == (shown, f"{fresh.flag_rate:.2%}")


def test_calibration_is_that_of_a_fresh_certificate() -> None:
    for asked, reading in _points(_explorer(calibration())):
        fresh: Any = calibration(**asked)
        seen = fresh.trials > 0
        assert reading.values[1] == f"{(fresh.upper - fresh.lower)[seen].max():.4f}"


def test_looks_that_make_no_plan_at_a_stricter_xi_are_said_to_be_hopeless() -> None:
    certificate = shield(count=200, xi=0.2, looks=[100, 200])
    verdicts = {reading.verdict for _, reading in _points(_explorer(certificate))}
    assert {CERTIFIED, HOPELESS} <= verdicts


def test_without_loss_only_delta_is_explored() -> None:
    labels = np.zeros(2000, dtype=int)
    answers = np.column_stack([labels, np.arange(2000) % 10 == 0])

    def make(**asked: Any) -> Any:
        return certify_cascade(np.linspace(0, 1, 2000), answers, labels, xi=0.0, **asked)

    found = _explorer(make(delta=0.05))
    assert found.dial == (0.0,)
    for delta, reading in zip(found.deltas, found.readings[0], strict=True):
        fresh = make(delta=delta)
        assert fresh.certified
        assert reading.values[0] == repr(float(fresh.thresholds[0]))


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        (lambda: shield(count=20), "A refusal is not explored"),
        (lambda: abstention(pool=np.linspace(0, 0.99, 50)), "pool of other scores"),
        (
            lambda: certify_cascade(data=in_groups(900, 3), xi=0.2, delta=0.05, bound="pair"),
            "several models in groups",
        ),
    ],
)
def test_what_cannot_be_explored_says_why(certificate: Make, why: str) -> None:
    said = explorable(certificate())
    assert isinstance(said, str)
    assert why in said


def test_the_finest_grid_that_takes_too_long_is_not_tried() -> None:
    certificate = cascade(600)
    way = explorable(certificate)
    assert isinstance(way, Explorable)
    assert explored(certificate, way, seconds=1e-6) is None


def test_three_models_of_few_labels_are_told_or_said_to_be_untold() -> None:
    certificate = certify_cascade(
        data=few_labels(three_models(600), 500), xi=0.1, delta=0.05, bound="pair"
    )
    verdicts = {reading.verdict for _, reading in _points(_explorer(certificate))}
    assert verdicts <= {CERTIFIED, REFUSED, UNTOLD}
