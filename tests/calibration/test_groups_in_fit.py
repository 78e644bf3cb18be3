"""Estimators take whose rows they are, and warn of what has seen the rows that certify."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need the extra `sklearn`")

from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from pacbound import PACCalibrator, PACClassifier, SelectiveClassifier, Tally
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError

RNG = np.random.default_rng(0)
PATIENTS = 300
GROUPS = np.repeat([f"p{number}" for number in range(PATIENTS)], 4)
Y = RNG.integers(0, 2, size=len(GROUPS))
X = RNG.normal(size=(len(GROUPS), 3)) + Y[:, None] * [2.0, 0.0, 0.0]


def _model(**more: Any) -> PACClassifier:
    return PACClassifier(LogisticRegression(), n_bins=3, random_state=0, **more)


def _selective(**more: Any) -> SelectiveClassifier:
    return SelectiveClassifier(LogisticRegression(), xi=0.2, sentinel=-1, random_state=0, **more)


@pytest.mark.parametrize("make", [_model, _selective])
def test_one_row_of_each_group_that_does_not_train_certifies(make: Callable[..., Any]) -> None:
    seen: list[int] = []

    class Watching(LogisticRegression):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            seen.extend(np.asarray(X)[:, -1].astype(int))
            return super().fit(X, y)

    number = np.unique(GROUPS, return_inverse=True)[1]
    rows = np.column_stack([X, number])
    made = make(calibration_size=0.4).set_params(estimator=Watching()).fit(rows, Y, groups=GROUPS)
    certificate = made.certificate_
    assert certificate.draw.units == 120
    assert certificate.draw.by == "clusters"
    assert certificate.draw.rows == 4 * 120
    assert len(set(seen)) == PATIENTS - 120
    assert "random cluster" in certificate.summary()


def test_a_number_is_a_number_of_groups_and_a_frozen_model_has_all_of_them() -> None:
    fitted: Any = _model(calibration_size=50).fit(X, Y, groups=GROUPS)
    assert fitted.certificate_.draw.units == 50
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    whole: Any = PACClassifier(frozen, n_bins=3).fit(X, Y, groups=GROUPS)
    assert whole.certificate_.draw.units == PATIENTS
    with pytest.raises(InvalidValueError, match=r"leaves no groups to train on \(groups=300\)"):
        _model(calibration_size=300).fit(X, Y, groups=GROUPS)


def test_a_calibrator_draws_and_its_parts_add_up() -> None:
    table = LogisticRegression().fit(X, Y).predict_proba(X)
    whole: Any = PACCalibrator(n_bins=3, delta=0.05).fit(table, Y, groups=GROUPS)
    assert whole.certificate_.draw.units == PATIENTS
    parts = PACCalibrator(n_bins=3, delta=0.05)
    half = len(Y) // 2
    for rows in (slice(0, half), slice(half, None)):
        parts.partial_fit(table[rows], Y[rows], groups=GROUPS[rows])
    drawn = parts.tally_.drawn
    assert drawn is not None
    assert drawn.units == PATIENTS
    bins = {"clusters": GROUPS, "n_bins": 3, "seed": drawn.seed}
    rows_of_all = Tally.count("calibration", table.max(axis=1), table.argmax(axis=1) == Y, **bins)
    assert parts.tally_ == rows_of_all
    with pytest.raises(RepeatedSourceError):
        parts.partial_fit(table[:4], Y[:4], groups=GROUPS[:4])
    with pytest.raises(InvalidValueError, match="edges taken from the counted scores"):
        PACCalibrator(n_bins=3, edges="equal-mass").fit(table, Y, groups=GROUPS)
    made: Any = PACCalibrator(n_bins=3, scope="per-class").fit(table, Y, groups=GROUPS).certificate_
    assert (made.draw.units, made.draw.each) == (PATIENTS, "cluster-group-and-bin")
    assert made.trials.max() <= PATIENTS
    with pytest.raises(InvalidTypeError, match="use the scope 'per-class'"):
        PACCalibrator(n_bins=3, scope="all-labels").fit(table, Y, groups=GROUPS)


@pytest.mark.parametrize("groups", [GROUPS[:-1], np.where(Y == 1, np.nan, 1.0), [None] * len(Y)])
def test_groups_that_are_missing_or_too_few_are_refused(groups: Any) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError, ValueError)):
        _model().fit(X, Y, groups=groups)


def test_folds_by_group_run_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = cross_val_score(_model(), X, Y, cv=GroupKFold(3), groups=GROUPS)
        _model().fit(X, Y)
        PACClassifier(GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2)).fit(X, Y)
        PACClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, Y)
        make_pipeline(FunctionTransformer(), Normalizer(), _model()).fit(X, Y)
        make_pipeline(FrozenEstimator(StandardScaler().fit(X)), _model()).fit(X, Y)
    assert len(scores) == 3


@pytest.mark.filterwarnings("ignore:score counts rows without an answer")
@pytest.mark.parametrize("make", [_model, _selective])
def test_a_search_or_a_scaler_around_it_is_warned_of_once_with_the_remedy(
    make: Callable[..., Any],
) -> None:
    name = type(make()).__name__
    around = {
        "GridSearchCV": GridSearchCV(make(), {"estimator__C": [0.1, 1]}, cv=2),
        "Pipeline": make_pipeline(StandardScaler(), make()),
    }
    for what, model in around.items():
        with pytest.warns(UserWarning, match=f"{what} around {name} has seen the rows") as found:
            model.fit(X, Y)
        (said,) = (text for text in (str(one.message) for one in found) if "has seen" in text)
        assert "Put it inside" in said
        assert f"{name}({what}(...))" in said
