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
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
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
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from pacbound import PACCalibrator, PACClassifier, SelectiveClassifier, load_certificate
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


def test_the_split_is_not_stratified() -> None:
    X, y = np.zeros((40, 1)), np.arange(40) % 2
    right = {
        int(PACClassifier(Constant(), random_state=state).fit(X, y).certificate_.successes.sum())
        for state in range(20)
    }
    assert len(right) > 3


def test_the_estimator_passed_in_is_left_unfitted() -> None:
    inner = LogisticRegression()
    model = PACClassifier(inner, random_state=0).fit(*_data())
    assert model.estimator is inner
    assert not hasattr(inner, "coef_")
    check_is_fitted(model.estimator_)


@pytest.mark.parametrize("size", [0.25, 150, np.int64(150), np.float32(0.25)])
def test_the_calibration_size_is_a_share_or_a_number_of_rows(size: Any) -> None:
    assert (
        PACClassifier(GaussianNB(), calibration_size=size, random_state=0)
        .fit(*_data())
        .certificate_.n
        == 150
    )


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        (0.0, InvalidValueError, "calibration_size=0.0 is not a part"),
        (1.0, InvalidValueError, "share between 0 and 1"),
        (-3, InvalidValueError, "calibration_size=-3"),
        (float("nan"), InvalidValueError, "calibration_size=nan"),
        (600, InvalidValueError, r"leaves no rows to train on \(n_samples=600\).*FrozenEstimator"),
        ("half", InvalidTypeError, "calibration_size='half'"),
        (None, InvalidTypeError, "calibration_size=None"),
        (True, InvalidTypeError, "calibration_size=True"),
    ],
)
def test_a_calibration_size_that_is_no_part_of_the_rows_is_refused(
    size: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PACClassifier(GaussianNB(), calibration_size=size, random_state=0).fit(*_data())


def test_a_frozen_estimator_is_used_as_it_is_and_all_rows_calibrate() -> None:
    X, y = _data()
    frozen = FrozenEstimator(GaussianNB().fit(X[:200], y[:200]))
    model = PACClassifier(frozen, calibration_size=0.1).fit(X[200:], y[200:])
    assert model.estimator_ is frozen
    assert model.certificate_.n == 400
    direct = PACCalibrator().fit(frozen.predict_proba(X[200:]), y[200:])
    assert model.certificate_.claim_digest == direct.certificate_.claim_digest


def test_an_unfitted_frozen_estimator_is_refused() -> None:
    with pytest.raises(NotFittedError):
        PACClassifier(FrozenEstimator(GaussianNB())).fit(*_data())


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


@pytest.mark.parametrize("edges", [[0.0, 0.5, 0.9, 1.0], np.array([0.0, 0.5, 1.0]), "equal-mass"])
def test_edges_reach_the_certificate_and_survive_a_clone(edges: Any) -> None:
    X, y = _data()
    model = clone(PACClassifier(GaussianNB(), edges=edges, n_bins=4, random_state=0)).fit(X, y)
    held = train_test_split(X, y, test_size=300, random_state=0)
    expected = PACCalibrator(n_bins=4, edges=edges).fit(model.predict_proba(held[1]), held[3])
    assert model.certificate_.claim_digest == expected.certificate_.claim_digest


def test_predict_gives_the_label_that_was_counted_even_where_the_estimators_own_differs() -> None:
    X, y = np.zeros((100, 1)), np.array(["no", "yes"] * 50)
    model = PACClassifier(Constant(), random_state=0).fit(X, y)
    assert set(model.estimator_.predict(X)) == {"yes"}
    assert set(model.predict(X)) == {"no"}
    lower, upper = model.predict_interval(X[:1])[0]
    assert lower < 0.5 < upper


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


def test_boolean_labels_are_two_classes() -> None:
    X, y = _data(classes=2)
    model = PACClassifier(GaussianNB(), random_state=0).fit(X, y == 1)
    assert model.predict(X).dtype == bool
    assert (
        model.certificate_.claim_digest
        == PACClassifier(GaussianNB(), random_state=0).fit(X, y).certificate_.claim_digest
    )


def test_classes_of_a_frozen_estimator_need_not_be_sorted() -> None:
    inner = Constant((0.75, 0.25)).fit([[0]], ["a"])
    inner.classes_ = np.array(["z", "a"])
    model = PACClassifier(FrozenEstimator(inner)).fit(np.zeros((4, 1)), ["z", "z", "a", "z"])
    assert model.certificate_.successes.sum() == 3
    assert model.predict([[0.0]]).tolist() == ["z"]


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


def test_columns_follow_the_classes_where_the_missing_one_is_first() -> None:
    X, _ = _data(classes=2)
    labels = np.where(RARE == "a rare one", "+", RARE)
    state = without_the_rare_one()
    expected = PACClassifier(GaussianNB(), scope="per-class", random_state=state).fit(X, RARE)
    model = PACClassifier(GaussianNB(), scope="per-class", random_state=state).fit(X, labels)
    assert model.classes_.tolist() == ["+", "0", "1"]
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X)[:, [2, 0, 1]])
    assert np.array_equal(model.predict(X), expected.predict(X))
    assert np.array_equal(model.predict_interval(X), expected.predict_interval(X))
    assert np.array_equal(model.certificate_.trials, expected.certificate_.trials[[2, 0, 1]])
    assert model.certificate_.verify()


@pytest.mark.parametrize("scope", SCOPES)
def test_classes_are_the_labels_of_all_rows_however_small_the_split(scope: Any) -> None:
    rng = np.random.default_rng(0)
    for state in range(60):
        X, y = rng.normal(size=(12, 2)), rng.permutation([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3])
        model = PACClassifier(
            DecisionTreeClassifier(random_state=0), scope=scope, random_state=state
        )
        model.fit(X, y)
        assert model.classes_.tolist() == [0, 1, 2, 3]
        assert model.predict_proba(X).shape == (12, 4)
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
        assert np.isin(model.predict(X), model.estimator_.classes_).all()
        assert model.certificate_.verify()


def test_a_single_class_to_train_on_is_an_error() -> None:
    X, y = np.arange(40.0).reshape(-1, 1), np.where(np.arange(40) == 7, "b", "a")
    state = next(
        state
        for state in range(100)
        if 7 in train_test_split(np.arange(40), test_size=20, random_state=state)[1]
    )
    with pytest.raises(
        InvalidValueError,
        match=r"The 20 training rows all have the label 'a', although y holds 2 labels, and "
        r"LogisticRegression cannot be trained on one class .*calibration_size",
    ):
        PACClassifier(LogisticRegression(), random_state=state).fit(X, y)
    # What can be trained on one class is sure of it in every row, which says nothing.
    with pytest.raises(InvalidValueError, match="one score per row"):
        PACClassifier(DecisionTreeClassifier(random_state=0), random_state=state).fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes") as raised:
        PACClassifier(LogisticRegression(), random_state=0).fit(X, np.zeros(40))
    assert not isinstance(raised.value, InvalidValueError), "y itself has one class"


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


def test_an_estimator_without_probabilities_works_once_it_is_wrapped_as_the_message_says() -> None:
    X, y = _data()
    assert PACClassifier(CalibratedClassifierCV(LinearSVC(random_state=0)), random_state=0).fit(
        X, y
    ).predict_interval(X).shape == (600, 2)


def test_a_matrix_of_distances_is_refused_unless_the_estimator_is_frozen() -> None:
    X, y = _data()
    distances = np.abs(X[:, :1] - X[:, 0])
    inner = KNeighborsClassifier(metric="precomputed")
    with pytest.raises(InvalidValueError, match=r"between rows.*FrozenEstimator"):
        PACClassifier(inner, random_state=0).fit(distances, y)
    frozen = FrozenEstimator(inner.fit(distances[:300, :300], y[:300]))
    assert PACClassifier(frozen).fit(distances[300:, :300], y[300:]).certificate_.n == 300


def test_probabilities_that_do_not_match_the_classes_are_refused() -> None:
    with pytest.raises(
        InvalidValueError, match=r"shape \(50, 2\): expected a column for each of 3 classes"
    ):
        PACClassifier(Constant(), random_state=0).fit(np.zeros((100, 1)), np.arange(100) % 3)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"delta": 1.2}, "delta=1.2"),
        ({"scope": "bottom"}, "scope='bottom'"),
        ({"correction": "none"}, "correction='none'"),
        ({"side": "left"}, "side='left'"),
        ({"n_bins": 0}, "n_bins=0"),
        ({"edges": [0.2, 1.0]}, "edges run from"),
        ({"edges": "equal-mass", "scope": "per-class"}, "edges='equal-mass' is for scope='top'"),
    ],
)
def test_options_are_checked_by_fit_and_not_before(option: Any, message: str) -> None:
    model = PACClassifier(GaussianNB(), **option, random_state=0)
    with pytest.raises(InvalidValueError, match=message):
        model.fit(*_data())
    assert not hasattr(model, "estimator_")


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

    def test_of_one_row_is_that_of_the_row_among_others(self, method: str) -> None:
        X, y = _data()
        model = PACClassifier(GaussianNB(), random_state=0).fit(X, y)
        assert np.array_equal(getattr(model, method)(X[5:6]), getattr(model, method)(X)[5:6])

    @pytest.mark.parametrize("inner", [GaussianNB(), Constant((0.5, 0.3, 0.2))])
    def test_of_no_rows_is_refused(self, method: str, inner: Any) -> None:
        X, y = _data()
        model = PACClassifier(inner, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            getattr(model, method)(X[:0])

    def test_of_a_bare_row_or_of_other_features_is_refused(self, method: str) -> None:
        X, y = _data()
        model = PACClassifier(GaussianNB(), random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="Expected 2D array"):
            getattr(model, method)(X[0])
        with pytest.raises(ValueError, match="X has 5 features"):
            getattr(model, method)(X[:, :5])

    def test_takes_sparse_rows_where_the_estimator_does(self, method: str) -> None:
        X, y = _data()
        dense = PACClassifier(LogisticRegression(), random_state=0).fit(X, y)
        thin = PACClassifier(LogisticRegression(), random_state=0).fit(sparse.csr_array(X), y)
        answers = getattr(dense, method)(X), getattr(thin, method)(sparse.csr_array(X))
        np.testing.assert_allclose(*answers, atol=1e-6)


def test_a_failed_fit_leaves_the_former_one_whole() -> None:
    X, y = _data()
    model = PACClassifier(GaussianNB(), random_state=0).fit(X, y)
    before = model.certificate_, model.estimator_, model.predict_interval(X)
    with pytest.raises(InvalidValueError):
        model.set_params(delta=2.0).fit(X[:, :4], y)
    assert (model.certificate_, model.estimator_) == before[:2]
    assert np.array_equal(model.predict_interval(X), before[2])


def test_parameters_set_after_fit_do_not_change_what_was_certified() -> None:
    X, y = _data()
    model = PACClassifier(GaussianNB(), random_state=0).fit(X, y)
    before = model.predict_interval(X)
    model.set_params(delta=0.5, scope="all-labels", n_bins=3, estimator=LogisticRegression())
    assert np.array_equal(model.predict_interval(X), before)


def test_nested_parameters_can_be_read_and_set() -> None:
    model = PACClassifier(make_pipeline(StandardScaler(), LogisticRegression()), random_state=0)
    model.set_params(estimator__logisticregression__C=0.5, n_bins=7)
    params = model.get_params()
    assert (params["estimator__logisticregression__C"], params["n_bins"]) == (0.5, 7)
    copy = clone(model)
    assert copy.estimator is not model.estimator
    assert copy.get_params()["estimator__logisticregression__C"] == 0.5


def test_grid_search_runs_over_its_own_and_nested_parameters() -> None:
    grid = {"estimator__C": [0.01, 1.0], "n_bins": [5, 10]}
    search = GridSearchCV(PACClassifier(LogisticRegression(), random_state=0), grid, cv=2)
    with pytest.warns(UserWarning, match="GridSearchCV around PACClassifier"):
        search.fit(*_data())
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.certificate_.n == 300


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


def test_rows_may_be_texts() -> None:
    texts = ["good film", "bad film", "good plot", "bad plot"] * 25
    model = PACClassifier(make_pipeline(CountVectorizer(), MultinomialNB()), random_state=0).fit(
        texts, ["up", "down"] * 50
    )
    assert model.predict(["good good film"]).tolist() == ["up"]
    assert model.predict_interval(["good good film"]).shape == (1, 2)
    assert not hasattr(model, "n_features_in_")


def test_missing_values_pass_where_the_estimator_takes_them() -> None:
    X, y = _data()
    X[::7, 0] = np.nan
    model = PACClassifier(
        HistGradientBoostingClassifier(max_iter=5, random_state=0), random_state=0
    ).fit(X, y)
    assert model.predict_interval(X).shape == (600, 2)
    with pytest.raises(ValueError, match="contains NaN"):
        PACClassifier(GaussianNB(), random_state=0).fit(X, y)


def test_tags_of_the_input_are_the_estimators() -> None:
    assert get_tags(PACClassifier(LogisticRegression(), random_state=0)).input_tags.sparse
    assert not get_tags(PACClassifier(GaussianNB(), random_state=0)).input_tags.sparse
    assert get_tags(
        PACClassifier(HistGradientBoostingClassifier(), random_state=0)
    ).input_tags.allow_nan
    assert get_tags(PACClassifier(MultinomialNB(), random_state=0)).input_tags.positive_only
    assert get_tags(
        PACClassifier(KNeighborsClassifier(metric="precomputed"), random_state=0)
    ).input_tags.pairwise
    assert is_classifier(PACClassifier(GaussianNB(), random_state=0))
    assert not get_tags(
        PACClassifier(KNeighborsClassifier(), random_state=0)
    ).target_tags.multi_output


def test_feature_names_of_a_frame_are_kept_and_checked() -> None:
    pd = pytest.importorskip("pandas")
    X, y = _data()
    frame, labels = (
        pd.DataFrame(X, columns=list("abcdef")),
        pd.Series(y).map({0: "x", 1: "y", 2: "z"}),
    )
    model = PACClassifier(GaussianNB(), random_state=0).fit(
        frame.sample(frac=1, random_state=0).sort_index(), labels
    )
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert model.n_features_in_ == 6
    assert model.predict_interval(frame).shape == (600, 2)
    assert (
        model.certificate_.claim_digest
        == PACClassifier(GaussianNB(), random_state=0).fit(X, y).certificate_.claim_digest
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict_interval(frame.rename(columns={"a": "q"}))
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


def test_set_output_is_for_transformers_inside_and_not_for_the_classifier() -> None:
    pd = pytest.importorskip("pandas")
    X, y = _data()
    assert not hasattr(PACClassifier(GaussianNB(), random_state=0), "set_output")
    inner = make_pipeline(StandardScaler(), LogisticRegression()).set_output(transform="pandas")
    model = PACClassifier(inner, random_state=0).fit(pd.DataFrame(X, columns=list("abcdef")), y)
    assert model.estimator_[-1].feature_names_in_.tolist() == list("abcdef")
    assert isinstance(model.predict_interval(pd.DataFrame(X, columns=list("abcdef"))), np.ndarray)


def test_a_column_of_labels_is_taken_with_scikit_learns_warning() -> None:
    X, y = _data()
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        model = PACClassifier(GaussianNB(), random_state=0).fit(X, y[:, None])
    assert (
        model.certificate_.claim_digest
        == PACClassifier(GaussianNB(), random_state=0).fit(X, y).certificate_.claim_digest
    )


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


def test_the_certificate_can_be_saved_and_read_back(tmp_path: Any) -> None:
    model = PACClassifier(GaussianNB(), random_state=0).fit(*_data())
    model.certificate_.save(tmp_path / "calibration.json")
    assert (
        load_certificate(tmp_path / "calibration.json").claim_digest
        == model.certificate_.claim_digest
    )


@pytest.mark.parametrize("fitted", [False, True])
def test_its_representations_show_the_estimator(fitted: bool) -> None:
    model = PACClassifier(
        LogisticRegression(C=0.5), n_bins=7, edges=np.array([0.0, 1.0]), random_state=0
    )
    if fitted:
        model.fit(*_data())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "n_bins=7" in repr(model)
        page = estimator_html_repr(model)
    assert "PACClassifier" in page
    assert "LogisticRegression" in page
    assert ("Not fitted" in page) is not fitted


def test_there_is_no_sample_weight_to_pass() -> None:
    X, y = _data()
    with pytest.raises(TypeError, match="sample_weight"):
        PACClassifier(GaussianNB(), random_state=0).fit(X, y, sample_weight=np.ones(600))


@pytest.mark.parametrize("kind", [PACClassifier, SelectiveClassifier])
def test_the_quality_of_answers_is_refused_with_the_way_to_certify_it(kind: Any) -> None:
    X, y = _data()
    with pytest.raises(InvalidTypeError, match=r"right or wrong by y.*calibrate\(confidence, qual"):
        kind(GaussianNB(), random_state=0).fit(X, y, quality=np.full(len(y), 0.5))
    with pytest.raises(InvalidValueError, match=r"continuous.*If y holds grades of answers: let"):
        kind(GaussianNB(), random_state=0).fit(X, np.linspace(0, 1, len(y)))
    with pytest.raises(InvalidTypeError, match="preferred grades answers"):
        PACCalibrator().fit([[0.5, 0.5]], [0], preferred=["tie"])
