"""The scikit-learn face: classifiers whose every prediction has a certified interval, and ones that
answer only where few of their answers are wrong.

They adapt and compute nothing themselves: the wrapped estimator gives probabilities,
`PACCalibrator` the intervals and `certify_abstention` the threshold. They train on a part of the
rows and certify on the rest. The split is plainly random and never stratified: given the rows that
train, the others are then still independent draws.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.calibration.calibrator import TO_GRADE, CalibratorScope, PACCalibrator, refuse_others
from pacbound.claims.abstention import AbstentionCertificate, certify_abstention
from pacbound.errors import InvalidTypeError, InvalidValueError, MissingDependencyError
from pacbound.procedures.calibration import Correction, Side
from pacbound.tally.columns import Array, Floats, as_array, as_names, same_rows
from pacbound.tally.probabilities import top_label
from pacbound.tally.tally import Tally

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import Pipeline
    from sklearn.utils import (
        _safe_indexing,
        assert_all_finite,
        check_consistent_length,
        column_or_1d,
        get_tags,
        indexable,
    )
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise MissingDependencyError.for_extra(
        "scikit-learn", "sklearn", "SelectiveClassifier or PACClassifier"
    ) from None


# Stands for a label that no column of the probabilities belongs to, so that whatever is predicted
# is wrong.
_UNSEEN = -1


class _AroundEstimator(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """What classifiers around an estimator have in common: its probabilities, features and tags."""

    estimator: Any
    estimator_: Any
    classes_: Array

    def predict_proba(self, X: Any) -> Array:
        """The estimator's own probabilities, unchanged: the scores that were certified.

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
        own = _probabilities(self.estimator_, X)
        places = _columns(np.asarray(self.estimator_.classes_), self.classes_)
        if np.array_equal(places, np.arange(len(self.classes_))):
            return own
        # Of a class that no training row had it is 0.
        table: Array = np.zeros((len(own), len(self.classes_)), dtype=own.dtype)
        table[:, places] = own
        return table

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
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        tags.no_validation = inner.no_validation
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        return tags


class PACClassifier(_AroundEstimator):
    """A classifier whose every prediction has a certified interval, around any scikit-learn
    classifier with `predict_proba`.

    All intervals are right together with probability at least 1 - `delta` over the draw of the rows
    that calibrate, if the rows passed to `fit` are independent draws from the data the model will
    meet in use. What an interval is for depends on `scope`, as in `PACCalibrator`; it speaks of the
    average over its bin, not of one input.

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
    not allow for: of a search, and of a pipeline whose earlier steps learn, `fit` warns. It also
    warns inside stacking, voting, bagging and the like, which answer in its place. Nor does the
    guarantee allow for weights: `fit` takes no `sample_weight`. Nor does it take the quality of
    answers: whether one is right, `y` says. Rows of one patient, video or speaker are not
    independent: pass whose they are to `fit`, as `groups`.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, bare or in a `FrozenEstimator`
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

    calibrator_: PACCalibrator

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

    def fit(self, X: Any, y: Any, groups: Any = None, **others: Any) -> Self:
        """Train on a random part of the rows and calibrate on the rest; calibrate on all where the
        estimator is frozen.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Their labels: numbers, text or booleans.
        groups : array-like of shape (n_samples,), default=None
            The patient, video or speaker of each row, as `GroupKFold` takes it. All rows of a group
            train, or one that is drawn certifies: the claim is then about a random row of a random
            group in every bin. `calibration_size` is a share, or a number, of groups.
        **others
            Nothing. Weights and the quality of answers raise an error that says where they go.

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
        refuse_others(others)
        estimator, held, truth, classes, clusters = _trained_apart(self, X, y, groups)
        calibrator = PACCalibrator(
            self.n_bins,
            self.delta,
            self.scope,
            edges=self.edges,
            correction=self.correction,
            side=self.side,
        )
        seen = np.asarray(estimator.classes_)
        calibrator.fit(
            _probabilities(estimator, held), _columns(truth, seen), unseen=True, groups=clusters
        )
        calibrator.tally_ = _with_tables_of(
            calibrator.tally_, len(classes), _columns(seen, classes)
        )
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
        _, said = top_label(_probabilities(self.estimator_, X))
        places = _columns(np.asarray(self.estimator_.classes_), self.classes_)
        return self.classes_[places[said]]

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


class SelectiveClassifier(_AroundEstimator):
    """A classifier that answers only where at most a share `xi` of its answers is wrong, around any
    scikit-learn classifier with `predict_proba`.

    With probability at least 1 - `delta` over the draw of the rows that certify, at most a share
    `xi` of its answers is wrong, if the rows passed to `fit` are independent draws from the data
    the model will meet in use. Where it does not answer, `predict` gives `sentinel`. If the rows
    cannot support the claim it never answers, and `certificate_.summary()` says why.

    `fit` trains a clone of `estimator` on a part of the rows and certifies on the rest, which
    training never sees. The split is plainly random and not stratified. A fitted model in a
    `FrozenEstimator` is used as it is and all rows certify; they must not be those it was trained
    or chosen on. Put what learns from data inside, as for `PACClassifier`.

    `score` counts a row that is not answered as wrong, and warns of it. `coverage` and the error
    among the answers are the numbers to look at.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, bare or in a `FrozenEstimator`
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

    certificate_: AbstentionCertificate

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

    def fit(self, X: Any, y: Any, groups: Any = None, **others: Any) -> Self:
        """Train on a random part of the rows and certify on the rest; certify on all where the
        estimator is frozen.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Their labels: numbers, text or booleans.
        groups : array-like of shape (n_samples,), default=None
            The patient, video or speaker of each row, as `GroupKFold` takes it. All rows of a group
            train, or one that is drawn certifies: the claim is then about a random row of a random
            group, answered or not. `calibration_size` is a share, or a number, of groups.
        **others
            Nothing. Weights and the quality of answers raise an error that says where they go.

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
        refuse_others(others)
        estimator, held, truth, classes, clusters = _trained_apart(self, X, y, groups)
        if any(self.sentinel == label for label in classes.tolist()):
            raise InvalidValueError(
                f"sentinel={self.sentinel!r} is one of the classes, so that an answer could not be "
                "told from none: pass another, or None."
            )
        confidence, said = top_label(_probabilities(estimator, held))
        self.certificate_ = certify_abstention(
            confidence,
            said == _columns(truth, np.asarray(estimator.classes_)),
            xi=self.xi,
            delta=self.delta,
            first_threshold=self.first_threshold,
            clusters=clusters,
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
        confidence, said = top_label(_probabilities(self.estimator_, X))
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
        confidence, _ = top_label(_probabilities(self.estimator_, X))
        return self.certificate_.answers(confidence)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are answered, and rightly so: one without an answer counts as
        wrong, which a warning says where there are some. Descriptive: it is not certified.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        float
            From 0 to 1.
        """
        answers = self.answers(X)
        right = answers & (self.predict(X) == column_or_1d(y))
        if not answers.all():
            # The same words each time, so that a search shows them once.
            warnings.warn(
                "score counts rows without an answer as wrong: look at coverage(X), and at how "
                "many of the rows where answers(X) is True are wrong.",
                UserWarning,
                stacklevel=2,
            )
        return float(np.average(right, weights=sample_weight))

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where it abstains it is not right.
        tags.classifier_tags.poor_score = True
        return tags


def _checked_labels(y: Any) -> Array:
    """The labels as an array of classes."""
    labels: Array = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    # None and mixed types, which scikit-learn lets through to fail in a comparison somewhere, are
    # named here.
    as_array(labels, "y")
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise InvalidValueError(f"{error} If y holds grades of answers: {TO_GRADE}.") from None
    return labels


def _trained_apart(model: Any, X: Any, y: Any, groups: Any) -> tuple[Any, Any, Array, Array, Any]:
    """A trained clone of the estimator of `model`, rows that it was not trained on with their
    labels, the classes (those that it knows, and those of all labels), and the groups of these
    rows, if there are any. One that is frozen is not trained, all rows are held out, and the
    classes are its own.
    """
    estimator, labels = model.estimator, _checked_labels(y)
    check_consistent_length(X, labels, groups)
    same_rows(X=X, y=y, groups=groups)
    whose = None if groups is None else as_names(groups, "groups")
    if not hasattr(estimator, "predict_proba"):
        raise InvalidTypeError(
            f"{type(estimator).__name__} has no predict_proba, so there are no scores to certify. "
            "Wrap it in scikit-learn's CalibratedClassifierCV, or turn its probabilities on if "
            "it has that option (loss='log_loss', probability=True)."
        )
    _warn_of_what_has_seen_all(model)
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(estimator)
        _require_common_labels(labels, np.asarray(estimator.classes_))
        return estimator, X, labels, np.asarray(estimator.classes_), whose
    if get_tags(estimator).input_tags.pairwise:
        raise InvalidValueError(
            "The estimator takes a matrix of kernels or distances between rows, which cannot "
            "be split by rows alone. Train it on its own rows and pass "
            "FrozenEstimator(estimator)."
        )
    drawn, what = (labels, "rows") if whose is None else (np.unique(whose), "groups")
    held = _held_out(model.calibration_size, len(drawn), what)
    split = (ShuffleSplit if whose is None else GroupShuffleSplit)(
        1, test_size=held, random_state=model.random_state
    )
    ((train, rest),) = split.split(np.zeros(len(labels)), groups=whose)
    X_train, X_held = (_safe_indexing(*indexable(X), places) for places in (train, rest))
    trained = _fitted(clone(estimator), X_train, labels[train], labels)
    clusters = None if whose is None else whose[rest]
    return trained, X_held, labels[rest], np.union1d(trained.classes_, labels), clusters


def _warn_of_what_has_seen_all(model: Any) -> None:
    """Warn once if something around this model fits it and voids what it certifies: whoever fits it
    is found among the callers. Within a fold of a cross-validation nothing is said: what is fitted
    there is scored on other rows, and only the last fit is used.
    """
    around, frame = None, inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name in ("_fit_and_score", "_fit_and_predict"):
            return
        caller = frame.f_locals.get("self")
        if around is None and frame.f_code.co_name == "fit" and caller is not model:
            around = caller if _learns_from_all(caller) or _answers_instead(caller) else None
        frame = frame.f_back
    if around is None:
        return
    what, name = type(around).__name__, type(model).__name__
    why = (
        f"{what} around {name} has seen the rows that certify, which the guarantee does not allow "
        "for. Put it inside, so that it learns from the training rows alone"
        if _learns_from_all(around)
        else f"{what} answers in place of the {name} inside, and nothing is certified about its "
        "answers; if it draws rows with replacement, those that certify may have been trained on, "
        "too. Put it inside, so that its answers are certified"
    )
    warnings.warn(f"{why}: {name}({what}(...)).", UserWarning, stacklevel=4)


def _learns_from_all(caller: Any) -> bool:
    """Whether it chooses or learns by the rows that it passes on."""
    if isinstance(caller, Pipeline):
        return any(
            get_tags(step).requires_fit and not isinstance(step, FrozenEstimator)
            for _, step in caller.steps[:-1]
            if step not in (None, "passthrough")
        )
    return isinstance(caller, BaseSearchCV)


def _answers_instead(caller: Any) -> bool:
    """Whether it makes answers of its own from those of the models inside: stacking, voting,
    bagging, boosting, calibration.
    """
    ours = type(caller).__module__.startswith("pacbound")
    return isinstance(caller, MetaEstimatorMixin) and not ours


def _held_out(size: Any, rows: int, what: str) -> int:
    """How many of the rows, or of the groups, calibrate."""
    whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
    is_number = whole or isinstance(size, (float, np.floating))
    if not is_number or not (size >= 1 if whole else 0 < size < 1):
        raise (InvalidValueError if is_number else InvalidTypeError)(
            f"calibration_size={size!r} is not a part of the {what}: expected a share between 0 "
            f"and 1, or at least 1 {what.removesuffix('s')}."
        )
    held = int(size) if whole else int(np.ceil(size * rows))
    if held >= rows:
        number = "n_samples" if what == "rows" else "groups"
        raise InvalidValueError(
            f"calibration_size={size} leaves no {what} to train on ({number}={rows}): pass more "
            f"{what}, or make it smaller. To calibrate a trained model on all {what} pass "
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
    if (_columns(labels, classes) == _UNSEEN).all():
        raise InvalidValueError(
            "No label in y is a class of the frozen estimator: y holds "
            f"{_shown(np.unique(labels))}, and its classes are {_shown(classes)}. Pass the labels "
            "that it was trained with, of the same type."
        )


def _columns(labels: Array, classes: Array) -> NDArray[np.int64]:
    """The place of each label among the classes, -1 where it is not one of them."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    names, codes = np.unique(labels, return_inverse=True)
    return np.array([places.get(name, _UNSEEN) for name in names.tolist()], dtype=np.int64)[codes]


def _probabilities(estimator: Any, X: Any) -> Array:
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
