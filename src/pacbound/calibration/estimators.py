"""The scikit-learn face: a classifier whose every prediction has a certified interval.

It adapts and computes nothing itself: the wrapped estimator gives probabilities, `PACCalibrator`
the intervals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.calibration.calibrator import CalibratorScope, PACCalibrator
from pacbound.errors import MissingDependencyError
from pacbound.procedures.calibration import Correction, Side
from pacbound.tally.columns import Array, same_rows
from pacbound.tally.tally import Tally
from pacbound.tally.toplabel import top_label

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils import check_consistent_length
    from sklearn.utils.validation import check_is_fitted

    from pacbound.held_out import (
        checked_labels,
        columns,
        probabilities,
        probabilities_of,
        require_probabilities,
        take_tags,
        trained_apart,
    )
except ImportError:
    raise MissingDependencyError.for_extra("scikit-learn", "sklearn", "PACClassifier") from None

Floats = NDArray[np.float64]


class PACClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose every prediction has a certified interval, around any scikit-learn
    classifier with `predict_proba`.

    All intervals are right together with probability at least 1 - `delta` over the draw of the rows
    that calibrate, if the rows passed to `fit` are independent draws from the distribution of use.
    What an interval is for depends on `scope`, as in `PACCalibrator`; it speaks of the average over
    its bin, not of one input.

    `fit` trains a clone of `estimator` on a part of the rows and calibrates on the rest, which
    training never sees; it is not trained again on all of them. The split is plainly random and not
    stratified: given the training rows, the others are then still independent draws, whereas a
    stratified split sets their class counts by the labels of all rows. So a rare class may be
    missing from the training rows. It is then never predicted: its column of `predict_proba` is 0,
    its rows calibrate as wrong predictions, and where classes have tables of their own, its table
    holds no rows and its intervals are [0, 1]. Whether such a table exists follows from the labels
    that calibrate, so nothing may be counted in it.

    A fitted model in a `FrozenEstimator` is used as it is and all rows calibrate; they must not be
    those it was trained or chosen on.

    Put what learns from data inside: `PACClassifier(make_pipeline(StandardScaler(),
    LogisticRegression()))` and `PACClassifier(GridSearchCV(...))`. A scaler, selector or search
    around a `PACClassifier` runs, but has seen the rows that calibrate, which the guarantee does
    not allow for. Neither does it allow for weights: `fit` takes no `sample_weight` and routes no
    metadata.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, or such a one in a `FrozenEstimator`
        The classifier to train and calibrate; frozen, to calibrate only.
    n_bins : int, default=20
        The number of bins.
    delta : float, default=0.01
        The chance that any interval is wrong.
    scope : {"top", "per-class", "all-labels"}, default="top"
        One table of bins for the predicted label, one for each predicted class, or one for the
        probability of every label.
    calibration_size : float or int, default=0.5
        The share, or the number, of rows that calibrate. A frozen estimator has all of them.
    correction : {"sidak", "bonferroni"}, default="sidak"
        "sidak" over the bins that hold rows; "bonferroni" is the paper's delta / K over all bins.
    side : {"both", "lower", "upper"}, default="both"
        "lower" or "upper" leaves the other end open and is a little tighter.
    edges : None, array-like or "equal-mass", default=None
        As in `calibrate`: None for bins of equal width.
    random_state : int, RandomState instance or None, default=None
        Draws the split. The estimator has its own.

    Attributes
    ----------
    estimator_ : estimator
        The classifier that predicts.
    calibrator_ : PACCalibrator
        The counts of the rows that calibrated.
    certificate_ : CalibrationCertificate
        The intervals as a document that can be saved and verified. Groups are columns of
        `classes_`.
    classes_ : ndarray of shape (n_classes,)
        The labels of all rows that were passed to `fit`, sorted: the columns of `predict_proba`. Of
        a frozen estimator, its own classes; rows with other labels calibrate as wrong predictions.
    n_features_in_ : int
        The number of features, where the estimator has it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the features, where the estimator has them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(n_samples=4000, random_state=0)
    >>> model = PACClassifier(LogisticRegression(), n_bins=5, random_state=0).fit(X, y)
    >>> model.predict_interval(X[:2]).round(2)
    array([[0.91, 0.95],
           [0.47, 0.71]])
    """

    estimator_: Any
    calibrator_: PACCalibrator
    classes_: Array

    def __init__(  # noqa: PLR0913, RUF100
        self,
        estimator: Any,
        *,
        n_bins: int = 20,
        delta: float = 0.01,
        scope: CalibratorScope = "top",
        calibration_size: float = 0.5,
        correction: Correction = "sidak",
        side: Side = "both",
        edges: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_bins = n_bins
        self.delta = delta
        self.scope = scope
        self.calibration_size = calibration_size
        self.correction = correction
        self.side = side
        self.edges = edges
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on a random part of the rows and calibrate on the rest; calibrate on all where the
        estimator is frozen.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Their labels: numbers, text or booleans.

        Returns
        -------
        PACClassifier
            This object. There is no refusal: intervals from too few rows are wide, up to [0, 1].

        Raises
        ------
        InvalidTypeError
            If the estimator has no `predict_proba`, or a parameter has the wrong type.
        InvalidValueError
            If `calibration_size` leaves no rows to train on, or a single class that the estimator
            cannot be trained on; if a parameter is out of range; if no label is a class of a frozen
            estimator.
        """
        labels = checked_labels(y)
        check_consistent_length(X, labels)
        same_rows(X=X, y=y)
        require_probabilities(self.estimator)
        estimator, held, truth = trained_apart(
            self.estimator, X, labels, size=self.calibration_size, random_state=self.random_state
        )
        seen = np.asarray(estimator.classes_)
        classes = seen if isinstance(self.estimator, FrozenEstimator) else np.union1d(seen, labels)
        calibrator = PACCalibrator(
            self.n_bins,
            self.delta,
            self.scope,
            edges=self.edges,
            correction=self.correction,
            side=self.side,
        )
        calibrator.fit(probabilities(estimator, held), columns(truth, seen), unseen=True)
        calibrator.tally_ = _with_tables_of(calibrator.tally_, len(classes), columns(seen, classes))
        self.certificate_ = calibrator.certificate_
        self.estimator_, self.calibrator_, self.classes_ = estimator, calibrator, classes
        return self

    def predict(self, X: Any) -> Array:
        """The label with the highest probability, the first of equal ones: the label that the
        certificate counted.

        Some estimators' own `predict` says otherwise now and then (`SVC(probability=True)`,
        thresholds other than 1/2).

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.

        Returns
        -------
        ndarray of shape (n_samples,)
            A label of `classes_` for each row.
        """
        check_is_fitted(self)
        # Of the estimator's own columns, as they were counted.
        _, said = top_label(probabilities(self.estimator_, X))
        places = columns(np.asarray(self.estimator_.classes_), self.classes_)
        return self.classes_[places[said]]

    def predict_proba(self, X: Any) -> Array:
        """The estimator's own probabilities, unchanged: they are the scores whose bins the
        intervals are for.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            A column for each of `classes_`; 0 for a class that no training row had.
        """
        check_is_fitted(self)
        return probabilities_of(self.estimator_, X, self.classes_)

    def predict_interval(self, X: Any) -> Floats:
        """The certified interval of each predicted label; with scope "all-labels" of every label.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, n_classes, 2)
            Lower and upper ends; [0, 1] in bins that no row calibrated.
        """
        table = self.predict_proba(X)
        return self.calibrator_.predict_interval(table)

    def predict_confidence(self, X: Any) -> Floats:
        """The observed share of right predictions in the bin of each interval. No guarantee.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes)
            The shares; NaN where no row calibrated.
        """
        table = self.predict_proba(X)
        return self.calibrator_.predict_confidence(table)

    @property
    def n_features_in_(self) -> int:
        """The number of features that the estimator was trained on."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> Array:
        """The names of the features that the estimator was trained on."""
        return np.asarray(self.estimator_.feature_names_in_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        return take_tags(super().__sklearn_tags__(), self.estimator)


def _with_tables_of(tally: Tally, classes: int, places: NDArray[np.int64]) -> Tally:
    """The tally with a table for each of `classes`; those that it holds go to their `places`, and
    the others hold no rows.
    """
    if not tally.groups:
        return tally
    cells = tally.cells.copy()
    cells[:, 0] = places[cells[:, 0]]
    order = np.lexsort(cells.T[::-1])
    return replace(
        tally,
        cells=cells[order],
        counts=tally.counts[order],
        groups=tuple(map(str, range(classes))),
    )
