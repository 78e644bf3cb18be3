"""Rows that a scikit-learn estimator was not trained on, and what it says about them.

The estimators of pacbound train on a part of the rows and certify on the rest. The split is plainly
random and never stratified: given the rows that train, the others are then still independent draws.
Whoever imports this has made sure that scikit-learn is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import assert_all_finite, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.tally.columns import Array, as_array

UNSEEN = -1
"""Stands for a label that no column of the probabilities belongs to, so that whatever is predicted
is wrong."""


def checked_labels(y: Any) -> Array:
    """The labels as an array of classes."""
    labels: Array = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    # None and mixed types, which scikit-learn lets through to fail in a comparison somewhere, are
    # named here.
    as_array(labels, "y")
    check_classification_targets(labels)
    return labels


def require_probabilities(estimator: Any) -> None:
    """Raise if the estimator has no `predict_proba`."""
    if not hasattr(estimator, "predict_proba"):
        raise InvalidTypeError(
            f"{type(estimator).__name__} has no predict_proba, so there are no scores to certify. "
            "Wrap it in scikit-learn's CalibratedClassifierCV, or turn its probabilities on if "
            "it has that option (loss='log_loss', probability=True)."
        )


def trained_apart(
    estimator: Any, X: Any, labels: Array, *, size: float, random_state: Any
) -> tuple[Any, Any, Array]:
    """A trained clone of `estimator`, and rows with their labels that it was not trained on: the
    share or number `size` of them. One that is frozen is not trained, and all rows are held out.
    """
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(estimator)
        _require_common_labels(labels, np.asarray(estimator.classes_))
        return estimator, X, labels
    if get_tags(estimator).input_tags.pairwise:
        raise InvalidValueError(
            "The estimator takes a matrix of kernels or distances between rows, which cannot "
            "be split by rows alone. Train it on its own rows and pass "
            "FrozenEstimator(estimator)."
        )
    held = _held_out(size, len(labels))
    X_train, X_held, y_train, y_held = train_test_split(
        X, labels, test_size=held, random_state=random_state
    )
    return _fitted(clone(estimator), X_train, y_train, labels), X_held, y_held


def _held_out(size: Any, rows: int) -> int:
    """How many of the rows calibrate."""
    whole = isinstance(size, (int, np.integer))
    if isinstance(size, (bool, np.bool_)) or not (whole or isinstance(size, (float, np.floating))):
        raise InvalidTypeError(
            f"calibration_size={size!r} is not a part of the rows: expected a share such as 0.5, "
            "or a number of rows."
        )
    if not (size >= 1 if whole else 0 < size < 1):
        raise InvalidValueError(
            f"calibration_size={size} is not a part of the rows: expected a share between 0 and 1, "
            "or at least 1 row."
        )
    held = int(size) if whole else int(np.ceil(size * rows))
    if held >= rows:
        raise InvalidValueError(
            f"calibration_size={size} leaves no rows to train on (n_samples={rows}): pass more "
            "rows, or make it smaller. To calibrate a trained model on all rows pass "
            "FrozenEstimator(estimator)."
        )
    return held


def _fitted(estimator: Any, X: Any, y: Array, labels: Array) -> Any:
    """The estimator, trained; if a single class of several is left to train on, the error says so.

    Drawing the split again until it suits would make it depend on the labels, which the guarantee
    does not allow for.
    """
    try:
        return estimator.fit(X, y)
    except ValueError as error:
        left, all_classes = np.unique(y), np.unique(labels)
        if len(left) > 1 or len(all_classes) == 1:
            raise
        raise InvalidValueError(
            f"The {len(y)} training rows all have the label {left[0].item()!r}, although y holds "
            f"{len(all_classes)} labels, and {type(estimator).__name__} cannot be trained on one "
            f"class ({error}). Pass more rows, or a smaller calibration_size, so that more rows "
            "train."
        ) from error


def _require_common_labels(labels: Array, classes: Array) -> None:
    if (columns(labels, classes) == UNSEEN).all():
        raise InvalidValueError(
            "No label in y is a class of the frozen estimator: y holds "
            f"{_shown(np.unique(labels))}, and its classes are {_shown(classes)}. Pass the labels "
            "that it was trained with, of the same type."
        )


def columns(labels: Array, classes: Array) -> NDArray[np.int64]:
    """The place of each label among the classes, -1 where it is not one of them."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    names, codes = np.unique(labels, return_inverse=True)
    return np.array([places.get(name, UNSEEN) for name in names.tolist()], dtype=np.int64)[codes]


def probabilities(estimator: Any, X: Any) -> Array:
    """What `predict_proba` gives, if it is a table with a column for each class."""
    table = np.asarray(estimator.predict_proba(X))
    expected = len(estimator.classes_)
    if table.ndim != 2 or table.shape[1] != expected:
        raise InvalidValueError(
            f"predict_proba gave shape {table.shape}: expected a column for each of {expected} "
            "classes."
        )
    if not len(table):
        raise InvalidValueError(
            "Found array with 0 sample(s) while a minimum of 1 is required: pass at least one row."
        )
    return table


def _shown(values: Array) -> str:
    listed = [repr(value) for value in values[:3].tolist()]
    return ", ".join([*listed, "…"] if len(values) > 3 else listed)


def probabilities_of(estimator: Any, X: Any, classes: Array) -> Array:
    """What `predict_proba` gives, with a column for each of `classes`: 0 for one that no training
    row had.
    """
    own, places = probabilities(estimator, X), columns(np.asarray(estimator.classes_), classes)
    if np.array_equal(places, np.arange(len(classes))):
        return own
    table: Array = np.zeros((len(own), len(classes)), dtype=own.dtype)
    table[:, places] = own
    return table


def take_tags(tags: Any, estimator: Any) -> Any:
    """The tags of a meta-estimator, with what its `estimator` says about rows and classes."""
    inner = get_tags(estimator)
    tags.input_tags = inner.input_tags
    tags.non_deterministic = inner.non_deterministic
    tags.no_validation = inner.no_validation
    if inner.classifier_tags is not None:
        tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
    return tags
