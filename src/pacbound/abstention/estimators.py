"""The scikit-learn face: a classifier that answers only where few of its answers are wrong.

It adapts and computes nothing itself: the wrapped estimator gives probabilities,
`certify_abstention` the threshold.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.abstention import AbstentionCertificate, certify_abstention
from pacbound.errors import InvalidValueError, MissingDependencyError
from pacbound.tally.columns import Array, same_rows
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
    raise MissingDependencyError.for_extra(
        "scikit-learn", "sklearn", "SelectiveClassifier"
    ) from None


class SelectiveClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that answers only where at most a share `xi` of its answers is wrong, around any
    scikit-learn classifier with `predict_proba`.

    With probability at least 1 - `delta` over the draw of the rows that certify, at most a share
    `xi` of its answers is wrong, if the rows passed to `fit` are independent draws from the
    distribution of use. Where it does not answer, `predict` gives `sentinel`. If the rows cannot
    support the claim it never answers, and `certificate_.summary()` says why.

    `fit` trains a clone of `estimator` on a part of the rows and certifies on the rest, which
    training never sees. The split is plainly random and not stratified. A fitted model in a
    `FrozenEstimator` is used as it is and all rows certify; they must not be those it was trained
    or chosen on. Put what learns from data inside, as for `PACClassifier`.

    `score` counts a row that is not answered as wrong, as scikit-learn does with every label that
    is not the true one. `coverage` and the error among the answers are the numbers to look at.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, or such a one in a `FrozenEstimator`
        The classifier to train and certify; frozen, to certify only.
    xi : float, default=0.05
        The share of the answers that may be wrong.
    delta : float, default=0.01
        The chance that more are.
    sentinel : object, default=None
        What `predict` gives where it does not answer: a number or a text that is not a class, or
        None. Where it is not of the classes' type, `predict` gives an array of objects.
    calibration_size : float or int, default=0.5
        The share, or the number, of rows that certify. A frozen estimator has all of them.
    first_threshold : float, default=None
        As in `certify_abstention`: for classifiers that give many rows one highest score.
    random_state : int, RandomState instance or None, default=None
        Draws the split. The estimator has its own.

    Attributes
    ----------
    estimator_ : estimator
        The classifier that predicts.
    certificate_ : AbstentionCertificate
        The threshold as a document that can be saved and verified.
    classes_ : ndarray of shape (n_classes,)
        The labels of all rows that were passed to `fit`, sorted; of a frozen estimator, its own
        classes, and rows with other labels count as wrong answers.
    n_features_in_ : int
        The number of features, where the estimator has it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the features, where the estimator has them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(n_samples=4000, random_state=0)
    >>> model = SelectiveClassifier(LogisticRegression(), xi=0.1, sentinel=-1, random_state=0)
    >>> model.fit(X, y).predict(X[:4])
    array([ 0, -1,  0,  1])
    >>> round(model.coverage(X), 2)
    0.87
    """

    estimator_: Any
    certificate_: AbstentionCertificate
    classes_: Array

    def __init__(  # noqa: PLR0913, RUF100
        self,
        estimator: Any,
        *,
        xi: float = 0.05,
        delta: float = 0.01,
        sentinel: Any = None,
        calibration_size: float = 0.5,
        first_threshold: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.xi = xi
        self.delta = delta
        self.sentinel = sentinel
        self.calibration_size = calibration_size
        self.first_threshold = first_threshold
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on a random part of the rows and certify on the rest; certify on all where the
        estimator is frozen.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Their labels: numbers, text or booleans.

        Returns
        -------
        SelectiveClassifier
            This object. A refusal has `certificate_.certified` False: it then never answers.

        Raises
        ------
        InvalidTypeError
            If the estimator has no `predict_proba`, or a parameter has the wrong type.
        InvalidValueError
            If `sentinel` is one of the classes; if `calibration_size` leaves no rows to train on;
            if a parameter is out of range; if no label is a class of a frozen estimator.
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
        if any(self.sentinel == label for label in classes.tolist()):
            raise InvalidValueError(
                f"sentinel={self.sentinel!r} is one of the classes, so that an answer could not be "
                "told from none: pass another, or None."
            )
        confidence, said = top_label(probabilities(estimator, held))
        self.certificate_ = certify_abstention(
            confidence,
            said == columns(truth, seen),
            xi=self.xi,
            delta=self.delta,
            first_threshold=self.first_threshold,
        )
        self.estimator_, self.classes_ = estimator, classes
        return self

    def predict(self, X: Any) -> Array:
        """The label with the highest probability where it is certified, and `sentinel` elsewhere.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.

        Returns
        -------
        ndarray of shape (n_samples,)
            A label of `classes_`, or the sentinel, for each row.
        """
        check_is_fitted(self)
        confidence, said = top_label(probabilities(self.estimator_, X))
        labels = np.asarray(self.estimator_.classes_)[said]
        answers = self.certificate_.answers(confidence)
        other = np.asarray(self.sentinel)
        alike = other.ndim == 0 and (
            other.dtype.kind == labels.dtype.kind
            or {other.dtype.kind, labels.dtype.kind} <= set("iu")
        )
        if alike:
            return np.where(answers, labels, other)
        objects: Array = labels.astype(object)
        objects[~answers] = self.sentinel
        return objects

    def predict_proba(self, X: Any) -> Array:
        """The estimator's own probabilities, unchanged, of the rows that are answered and of the
        others.

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

    def answers(self, X: Any) -> NDArray[np.bool_]:
        """Which rows are answered.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            True where `predict` gives a label.
        """
        check_is_fitted(self)
        confidence, _ = top_label(probabilities(self.estimator_, X))
        return self.certificate_.answers(confidence)

    def coverage(self, X: Any) -> float:
        """The share of rows that are answered. Descriptive: it is not certified.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float(self.answers(X).mean())

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
        tags = take_tags(super().__sklearn_tags__(), self.estimator)
        # Where it abstains it is not right.
        tags.classifier_tags.poor_score = True
        return tags
