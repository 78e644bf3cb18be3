"""Which rows of a cascade are asked for, from the table alone: those that can change thresholds,
in the order in which they matter.

`asked_rows.json` was recorded from sessions that kept their walks and were told one label after the
other, before these were replaced by a function of the table; where rows are graded, from counts.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cascade.labelled_cascades import Problem, partly, problem
from tests.products import standing_for

from pacbound import certify_cascade, rows_to_label
from pacbound.claims.cascade.next_labels import changed_since
from pacbound.data import fashion_mnist
from pacbound.errors import InvalidTypeError, InvalidValueError

Array = NDArray[Any]
SCALE: dict[str, Any] = {"quality_scale": (1, 5)}


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        Path(__file__).with_name("asked_rows.json").read_text(encoding="utf-8")
    )
    return found


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.long), 10, 50])
def test_on_fashion_mnist_the_rows_are_those_that_sessions_asked_for(count: int) -> None:
    table = fashion_mnist()
    rows = table.confidence_fast, np.column_stack([table.prediction_fast, table.prediction_slow])
    labels = np.full(len(table.label), np.nan)
    asked: Any = {"xi": 0.01, "delta": 0.01}
    told: list[int] = []
    while len(found := rows_to_label(*rows, labels, count=count, **asked)):
        labels[found] = table.label[found]
        told += found.tolist()
    assert len(told) == {1: 366, 10: 370, 50: 400}[count]
    assert told == recorded()["fashion"][str(count)]
    ends = (certify_cascade(*rows, each, **asked) for each in (labels, table.label))
    assert [end.thresholds[0] for end in ends] == [recorded()["threshold"]] * 2


def _certified(rows: Problem, known: Array) -> Any:
    told = {"quality": known, **SCALE} if rows.graded else {"label": known}
    return certify_cascade(rows.scores, rows.predictions, **told, **rows.asked)


def _wanted(rows: Problem, known: Array, declined: Any = (), count: int | None = None) -> Any:
    told = {"quality": known, **SCALE} if rows.graded else {"label": known}
    return rows_to_label(
        rows.scores,
        rows.predictions,
        declined=declined,
        slow_confidence=rows.doubt,
        count=count,
        **told,
        **rows.asked,
    )


def _looks(rows: Problem) -> Any:
    """What is told after each round, the rows that were asked for, and those nobody can tell."""
    known, times = np.full(rows.truth.shape, np.nan), dict[int, int]()
    declined: list[int] = []
    while len(found := _wanted(rows, known, declined, rows.count)):
        for row in found.tolist():
            if row in rows.declined:
                declined.append(row)
            elif rows.graded:
                known[row] = partly(rows.truth[row], row, times.get(row, 0))
                times[row] = 1
            else:
                known[row] = rows.truth[row]
        yield known.copy(), found.tolist(), list(declined)


@pytest.mark.parametrize("seed", standing_for(range(60), range(0, 60, 7), rest="long"))
def test_random_cascades_ask_for_the_rows_that_sessions_asked_for(seed: int) -> None:
    """Two to four models, ties, costs, doubts, grades told in part, rows that nobody can tell."""
    rows = problem(seed)
    looks = [*_looks(rows)]
    known = looks[-1][0] if looks else np.full(rows.truth.shape, np.nan)
    told = [row for _, found, _ in looks for row in found]
    assert told == recorded()["drawn"][str(seed)]["rows"]
    expected = [np.inf if t is None else t for t in recorded()["drawn"][str(seed)]["thresholds"]]
    assert _certified(rows, known).thresholds.tolist() == expected


@pytest.mark.parametrize("seed", standing_for(range(60), range(1, 60, 12), rest="long"))
def test_each_look_may_follow_those_before_it_and_no_other(seed: int) -> None:
    rows = problem(seed)
    looks = [_certified(rows, np.full(rows.truth.shape, np.nan))]
    looks += [_certified(rows, known) for known, *_ in _looks(rows)][:6]
    for place, earlier in enumerate(looks):
        for later in looks[place:]:
            assert changed_since(earlier.values, later.values) is None
    if rows.graded:
        return
    known = [*_looks(rows)][-1][0] if len(looks) > 1 else np.full(rows.truth.shape, np.nan)
    last, fast, slow = _certified(rows, known), rows.predictions[:, 0], rows.predictions[:, -1]
    found = np.flatnonzero(np.isfinite(known) & (fast != slow) & np.isin(known, [0, 1, 2, 3]))
    noticed = 0
    for row in found[:10].tolist():
        # A label that is turned from a gain into a loss, or the other way round.
        other = known.copy()
        other[row] = slow[row] if known[row] == fast[row] else fast[row]
        noticed += changed_since(last.values, _certified(rows, other).values) is not None
    assert noticed >= len(found[:10]) // 2


def test_a_later_look_is_about_the_same_rows_and_the_same_question() -> None:
    rows = problem(0)
    known = rows.truth.astype(float)
    known[::3] = np.nan

    def look(part: slice = slice(None), **asked: Any) -> Any:
        given = rows.scores[part], rows.predictions[part], known[part]
        return certify_cascade(*given, **{"xi": 0.1, "delta": 0.1, **asked}).values

    before = look()
    for other, said in (
        (look(xi=0.2), "xi was 0.1 and is 0.2"),
        (look(delta=0.2), "delta was 0.1 and is 0.2"),
        (look(slice(1, None)), "n was"),
        (look(costs=[1.0, 2.0, 3.0, 4.0][: rows.predictions.shape[1]]), "costs was not given"),
    ):
        assert said in str(changed_since(before, other))
    assert changed_since(before, look()) is None


SMALL = [(models, xi, seed) for models, xi in ((2, 0.4), (2, 0.0), (3, 0.6)) for seed in range(3)]


def _small(models: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    scores = rng.choice([0.2, 0.5, 0.8, 0.95], size=(12, models - 1))
    predictions = np.zeros((12, models), dtype=int)
    differ = rng.choice(12, size=4, replace=False)
    predictions[differ, 0] = 1
    if models > 2:
        predictions[differ[:3], 1] = 1
    return scores, predictions


@pytest.mark.parametrize(("models", "xi", "seed"), SMALL)
def test_a_row_is_asked_for_as_long_as_some_labels_change_the_thresholds(
    models: int, xi: float, seed: int
) -> None:
    """By brute force: the end is the end of every way in which the other rows could be labelled."""
    scores, predictions = _small(models, seed)
    asked: Any = {"xi": xi, "delta": 0.5, "classes": [0, 1], "unrelated_labels": True}
    open_ = np.flatnonzero((predictions[:, :-1] != predictions[:, -1:]).any(axis=1))
    rng = np.random.default_rng(seed)
    labels = np.full(12, np.nan)

    def ends() -> set[tuple[float, ...]]:
        left = open_[np.isnan(labels[open_])]
        found = set()
        for each in product((0, 1), repeat=len(left)):
            whole = labels.copy()
            whole[left] = each
            found.add(tuple(certify_cascade(scores, predictions, whole, **asked).thresholds))
        return found

    while len(wanted := rows_to_label(scores, predictions, labels, **asked)):
        assert set(wanted) <= set(open_[np.isnan(labels[open_])])
        assert len(ends()) > 1
        labels[wanted[0]] = rng.integers(0, 2)
    now = tuple(certify_cascade(scores, predictions, labels, **asked).thresholds)
    assert ends() == {now}


@pytest.mark.parametrize("seed", range(0, 60, 9))
def test_what_passes_with_some_labels_passes_with_all(seed: int) -> None:
    """Every step of the walks loses with all labels at most what it counts with some."""
    rows = problem(seed)
    if rows.graded:
        return
    rng = np.random.default_rng(seed)
    whole = _certified(rows, rows.truth.astype(float))
    for _ in range(3):
        some = np.where(rng.random(len(rows.truth)) < 0.6, rows.truth, np.nan)
        part = _certified(rows, some)
        assert changed_since(part.values, whole.values) is None
        if rows.predictions.shape[1] == 2:
            assert part.thresholds[0] >= whole.thresholds[0]
        elif part.certified:
            assert whole.certified


def test_rows_that_were_declined_are_lost_for_good_and_the_end_is_reached() -> None:
    scores, predictions = np.full(400, 0.9), np.zeros((400, 2), dtype=int)
    predictions[:30, 0] = 1
    asked: Any = {"xi": 0.05, "delta": 0.05, "classes": [0, 1]}
    assert rows_to_label(scores, predictions, **asked).tolist() == [*range(30)]
    assert rows_to_label(scores, predictions, declined=range(10), **asked).tolist() == [
        *range(10, 30)
    ]
    assert not len(rows_to_label(scores, predictions, declined=range(30), **asked))
    labels = np.where(np.arange(400) < 10, 1.0, np.nan)
    assert rows_to_label(scores, predictions, labels, declined=range(10, 29), **asked).tolist() in (
        [29],
        [],
    )


def test_groups_and_rows_without_an_order_are_refused() -> None:
    duckdb, arrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    rows: Any = [0.9] * 9, [[0, 1]] * 9
    with pytest.raises(InvalidTypeError, match="takes no groups"):
        rows_to_label(*rows, xi=0.5, delta=0.1, groups=["a"] * 9)  # type: ignore[call-arg]
    table = arrow.table({"c": [0.9] * 9, "p": [0] * 9, "q": [1] * 9})
    with pytest.raises(InvalidValueError, match="no order, and rows are asked for by their place"):
        rows_to_label("c", ["p", "q"], data=duckdb.from_arrow(table), xi=0.5, delta=0.1)
    with pytest.raises(InvalidValueError, match="count"):
        rows_to_label(*rows, xi=0.5, delta=0.1, count=0)
