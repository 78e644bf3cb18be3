"""PACClassifier: a scikit-learn classifier like any other, with certified intervals."""

from __future__ import annotations

import importlib
import pickle
import sys
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import joblib
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from pacbound import PACCalibrator, PACClassifier, SelectiveClassifier
from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError

SCOPES = ["top", "per-class", "all-labels"]


def _data(rows: int = 600, classes: int = 3) -> Any:
    return make_classification(
        rows,
        n_features=6,
        n_informative=4,
        n_redundant=0,
        n_classes=classes,
        flip_y=0.2,
        random_state=0,
    )


class Constant(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Says the same probabilities for every row, and predicts the last class whatever they are."""

    def __init__(self, probabilities: Any = (0.75, 0.25)) -> None:
        self.probabilities = probabilities

    def fit(self, X: Any, y: Any) -> Constant:
        self.rows_ = len(X)
        self.seen_ = np.asarray(X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.repeat(self.classes_[-1:], len(X))

    def predict_proba(self, X: Any) -> Any:
        return np.tile(self.probabilities, (len(X), 1))


# No check is excepted.
CHECKS = parametrize_with_checks(
    [
        PACClassifier(LogisticRegression(), random_state=0),
        PACClassifier(DecisionTreeClassifier(random_state=0), scope="per-class", random_state=0),
        PACClassifier(
            make_pipeline(StandardScaler(), LogisticRegression()),
            scope="all-labels",
            random_state=0,
        ),
        PACClassifier(MultinomialNB(), random_state=0),
        PACClassifier(GaussianNB(), edges="equal-mass", random_state=0),
    ]
)


# Up to scikit-learn 1.8 the checks come from a generator, which pytest 9.1 warns of.
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learns_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


def test_without_scikit_learn_the_import_names_the_pip_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "pacbound.estimators")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(
        MissingDependencyError,
        match=r"PACClassifier needs scikit-learn.*pip install 'pacbound\[sklearn\]'",
    ):
        importlib.import_module("pacbound.estimators")


def test_it_trains_on_one_part_and_calibrates_on_the_rest() -> None:
    X, y = np.arange(100).reshape(-1, 1), np.arange(100) % 2
    model = PACClassifier(Constant(), calibration_size=0.3, random_state=0).fit(X, y)
    assert model.estimator_.rows_ == 70
    assert model.certificate_.n == 30
    held = np.setdiff1d(X, model.estimator_.seen_)
    assert len(held) == 30
    assert model.certificate_.successes.sum() == (held % 2 == 0).sum()


def test_the_split_is_random_and_repeats_with_the_random_state() -> None:
    X, y = np.arange(100).reshape(-1, 1), np.arange(100) % 2
    parts = [
        PACClassifier(Constant(), random_state=state).fit(X, y).estimator_.seen_
        for state in (0, 0, 1)
    ]
    assert np.array_equal(parts[0], parts[1])
    assert not np.array_equal(parts[0], parts[2])


@pytest.mark.parametrize("size", [0.25, 150, np.int64(150), np.float32(0.25)])
def test_the_calibration_size_is_a_share_or_a_number_of_rows(size: Any) -> None:
    assert (
        PACClassifier(GaussianNB(), calibration_size=size, random_state=0)
        .fit(*_data())
        .certificate_.n
        == 150
    )


def test_a_frozen_estimator_is_used_as_it_is_and_all_rows_calibrate() -> None:
    X, y = _data()
    frozen = FrozenEstimator(GaussianNB().fit(X[:200], y[:200]))
    model = PACClassifier(frozen, calibration_size=0.1).fit(X[200:], y[200:])
    assert model.estimator_ is frozen
    assert model.certificate_.n == 400
    direct = PACCalibrator().fit(frozen.predict_proba(X[200:]), y[200:])
    assert model.certificate_.claim_digest == direct.certificate_.claim_digest


def test_a_frozen_estimator_with_other_labels_than_y_is_refused() -> None:
    X, y = _data()
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.raises(
        InvalidValueError,
        match=r"No label in y is a class .*: y holds '0', '1', '2', and .* 0, 1, 2",
    ):
        PACClassifier(frozen).fit(X, y.astype(str))


@pytest.mark.parametrize("scope", SCOPES)
def test_predictions_are_those_of_the_calibrator_on_the_estimators_probabilities(
    scope: Any,
) -> None:
    X, y = _data()
    options: Any = {
        "scope": scope,
        "n_bins": 8,
        "delta": 0.05,
        "side": "lower",
        "correction": "bonferroni",
    }
    model = PACClassifier(LogisticRegression(), **options, random_state=0).fit(X, y)
    probabilities = model.estimator_.predict_proba(X)
    certificate = model.certificate_
    assert (certificate.scope, certificate.delta, certificate.side) == (scope, 0.05, "lower")
    assert (certificate.correction, certificate.grid.n_cells) == ("bonferroni", 8)
    assert certificate is model.calibrator_.certificate_
    assert certificate.verify()
    assert np.array_equal(model.predict_proba(X), probabilities)
    assert np.array_equal(model.predict(X), probabilities.argmax(axis=1))
    assert model.predict_interval(X).shape == ((600, 3, 2) if scope == "all-labels" else (600, 2))
    assert np.array_equal(
        model.predict_interval(X), model.calibrator_.predict_interval(probabilities)
    )
    assert np.array_equal(
        model.predict_confidence(X),
        model.calibrator_.predict_confidence(probabilities),
        equal_nan=True,
    )
    assert model.score(X, y) == (model.predict(X) == y).mean()


@pytest.mark.parametrize(
    "names",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["setosa", "versicolor", "virginica"], dtype=object),
        np.array([-1, 7, 100]),
        np.array([0.0, 2.0, 5.0]),
    ],
    ids=["strings", "objects", "integers", "floats"],
)
def test_labels_of_any_kind_give_the_same_certificate(names: Any) -> None:
    X, y = load_iris(return_X_y=True)
    expected = PACClassifier(GaussianNB(), random_state=0).fit(X, y)
    model = PACClassifier(GaussianNB(), random_state=0).fit(X, names[y])
    assert np.array_equal(model.classes_, names)
    assert np.array_equal(model.predict(X), names[expected.predict(X)])
    assert model.certificate_.claim_digest == expected.certificate_.claim_digest


@pytest.mark.parametrize("scope", SCOPES)
def test_a_class_never_seen_in_training_counts_as_wrong(scope: Any) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    frozen = FrozenEstimator(GaussianNB().fit(X[y < 2], names[y < 2]))
    model = PACClassifier(frozen, scope=scope).fit(X, names)
    trials, successes = model.certificate_.trials, model.certificate_.successes
    assert model.classes_.tolist() == ["setosa", "versicolor"]
    assert trials.sum() == (300 if scope == "all-labels" else 150)
    assert successes.sum() == 100
    assert model.certificate_.verify()


RARE = np.where(np.arange(600) == 7, "a rare one", _data(classes=2)[1].astype(str))
"""A label of one row in 600, first among the classes."""


def without_the_rare_one() -> int:
    """A random state whose split leaves the rare row out of training."""
    rows = np.arange(600)
    return next(
        state
        for state in range(100)
        if 7 in train_test_split(rows, test_size=300, random_state=state)[1]
    )


@pytest.mark.parametrize("correction", ["sidak", "bonferroni"])
@pytest.mark.parametrize("scope", SCOPES)
def test_a_class_that_only_the_calibration_rows_have_is_a_column_of_zeros(
    scope: Any, correction: Any
) -> None:
    X, _ = _data(classes=2)
    state = without_the_rare_one()
    model = PACClassifier(GaussianNB(), scope=scope, correction=correction, random_state=state).fit(
        X, RARE
    )
    assert model.estimator_.classes_.tolist() == ["0", "1"]
    assert model.classes_.tolist() == ["0", "1", "a rare one"]
    table = model.predict_proba(X)
    assert table.shape == (600, 3)
    assert np.array_equal(table[:, :2], model.estimator_.predict_proba(X))
    assert not table[:, 2].any()
    certificate = model.certificate_
    assert certificate.n == 300
    assert certificate.verify()
    assert certificate.groups == (() if scope == "top" else ("0", "1", "2"))
    if scope != "top":
        # Whether it has a table follows from the labels that calibrate: nothing is claimed there.
        assert certificate.trials[2].sum() == 0
        assert (certificate.tables["2"].lower.max(), certificate.tables["2"].upper.min()) == (0, 1)
    if scope == "all-labels":
        assert model.predict_interval(X).shape == (600, 3, 2)
        assert model.predict_interval(X)[:, 2].tolist() == [[0.0, 1.0]] * 600
    assert model.predict(X[7:8])[0] in {"0", "1"}


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (np.linspace(0, 1, 150), ValueError, "Unknown label type: continuous"),
        (np.zeros((150, 2)), ValueError, "1d array"),
        (np.full(150, np.nan), ValueError, "Input y contains NaN"),
        (
            np.array(["a", None, "b"] * 50, dtype=object),
            InvalidValueError,
            "y has 50 missing values, the first in row 1",
        ),
        (
            np.array(["a", 1, "b"] * 50, dtype=object),
            InvalidTypeError,
            "y mixes or holds int, str",
        ),
        (np.zeros(149), ValueError, "inconsistent numbers of samples"),
    ],
)
def test_a_y_that_holds_no_labels_is_refused(
    labels: Any, error: type[Exception], message: str
) -> None:
    X = np.random.default_rng(0).normal(size=(150, 2))
    for inner in (GaussianNB(), FrozenEstimator(GaussianNB().fit(X, X[:, 0] > 0))):
        with pytest.raises(error, match=message):
            PACClassifier(inner, random_state=0).fit(X, labels)


@pytest.mark.parametrize(
    "inner",
    [
        LinearSVC(random_state=0),
        SGDClassifier(loss="hinge", random_state=0),
        make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
    ],
)
def test_an_estimator_without_probabilities_is_refused_before_training(inner: Any) -> None:
    with pytest.raises(
        InvalidTypeError,
        match=rf"{type(inner).__name__} has no predict_proba.*CalibratedClassifierCV",
    ):
        PACClassifier(inner, random_state=0).fit(*_data())


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_interval", "predict_confidence"]
)
class TestEveryPrediction:
    def test_needs_a_fit_first(self, method: str) -> None:
        model = PACClassifier(GaussianNB(), random_state=0)
        with pytest.raises(NotFittedError, match="PACClassifier instance is not fitted yet"):
            check_is_fitted(model)
        with pytest.raises(NotFittedError, match="PACClassifier instance is not fitted yet"):
            getattr(model, method)([[0.0] * 6])


def test_a_failed_fit_leaves_the_former_one_whole() -> None:
    X, y = _data()
    model = PACClassifier(GaussianNB(), random_state=0).fit(X, y)
    before = model.certificate_, model.estimator_, model.predict_interval(X)
    with pytest.raises(InvalidValueError):
        model.set_params(delta=2.0).fit(X[:, :4], y)
    assert (model.certificate_, model.estimator_) == before[:2]
    assert np.array_equal(model.predict_interval(X), before[2])


def test_a_grid_search_inside_sees_only_the_training_rows() -> None:
    model = PACClassifier(
        GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=2), random_state=0
    ).fit(*_data())
    assert model.certificate_.n == 300
    assert model.estimator_.n_features_in_ == model.n_features_in_ == 6


def test_pipelines_go_inside_and_outside() -> None:
    X, y = _data()
    inside = PACClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), random_state=0
    ).fit(X, y)
    outside = make_pipeline(StandardScaler(), PACClassifier(LogisticRegression(), random_state=0))
    with pytest.warns(UserWarning, match="Pipeline around PACClassifier"):
        outside.fit(X, y)
    assert inside.estimator_[0].n_samples_seen_ == 300
    assert outside[0].n_samples_seen_ == 600
    assert inside.predict(X).shape == outside.predict(X).shape == (600,)
    assert outside[-1].predict_interval(outside[:-1].transform(X)).shape == (600, 2)
    assert len(cross_val_score(outside, X, y, cv=2)) == 2


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: StackingClassifier([("a", inner)], LogisticRegression(), cv=2),
        lambda inner: VotingClassifier([("a", inner)], voting="soft"),
        lambda inner: BaggingClassifier(inner, n_estimators=2, random_state=0),
        lambda inner: CalibratedClassifierCV(inner, cv=2),
        OneVsRestClassifier,
    ],
)
def test_what_answers_in_place_of_the_classifier_is_warned_of(wrap: Any) -> None:
    X, y = make_classification(n_samples=400, random_state=0)
    inner = PACClassifier(LogisticRegression(), delta=0.1, random_state=0)
    outer = wrap(inner)
    with pytest.warns(UserWarning, match=f"{type(outer).__name__} answers in place of the PAC"):
        outer.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        cross_val_predict(inner, X, y, cv=2)
        PACClassifier(wrap(LogisticRegression()), delta=0.1, random_state=0).fit(X, y)


@pytest.mark.parametrize("through", ["pickle", "joblib"])
def test_it_survives_being_saved_and_loaded(through: str, tmp_path: Any) -> None:
    X, y = _data()
    model = PACClassifier(GaussianNB(), scope="per-class", random_state=0).fit(X, y)
    if through == "joblib":
        joblib.dump(model, tmp_path / "model.joblib")
        copy = joblib.load(tmp_path / "model.joblib")
    else:
        copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_interval(X), model.predict_interval(X))
    assert copy.certificate_.claim_digest == model.certificate_.claim_digest
    assert copy.certificate_.verify()


@pytest.mark.parametrize("kind", [PACClassifier, SelectiveClassifier])
def test_the_quality_of_answers_is_refused_with_the_way_to_certify_it(kind: Any) -> None:
    X, y = _data()
    with pytest.raises(InvalidTypeError, match=r"right or wrong by y.*calibrate\(confidence, qual"):
        kind(GaussianNB(), random_state=0).fit(X, y, quality=np.full(len(y), 0.5))
    with pytest.raises(InvalidValueError, match=r"continuous.*If y holds grades of answers: let"):
        kind(GaussianNB(), random_state=0).fit(X, np.linspace(0, 1, len(y)))
    with pytest.raises(InvalidTypeError, match="preferred grades answers"):
        PACCalibrator().fit([[0.5, 0.5]], [0], preferred=["tie"])
