"""Routing rows through models, fast to slow: a row stops at the first model that is sure enough.

The rule is the one that was certified: a row exits where its float64 score is at or above the
threshold. Knows nothing of the models but that they can be called, and of the rows but that they
can be picked by number: rows of arrays and tensors (NumPy, torch, JAX), sparse matrices, data
frames and Arrow tables, lists and tuples of anything, and dictionaries of these. What a model gets
is of the kind that came in, and nothing is guessed from the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.stages import (
    ExitThresholds,
    Rows,
    SaidByModel,
    Stage,
    Thresholds,
    read_batch,
    require_one_order,
    require_same_classes,
    shown,
    stages_of,
)
from pacbound.errors import InvalidTypeError, InvalidValueError
from pacbound.stats.arguments import whole_number
from pacbound.tally.columns import Array, Floats, Integers, as_column

Take = Callable[[Rows], Any]

# In place of the model that answered, for an item that was not answered.
LEFT_OUT: Final = -1

# So many failures are remembered one by one.
REMEMBERED: Final = 100


@dataclass(frozen=True)
class Failure:
    """A model that failed on an item for good, or gave what is not an answer.

    Attributes
    ----------
    index, item
        The place of the item in the stream, and the item itself.
    model : int
        The place of the model: 0 for the fastest.
    reason : str
        What happened, with the names of the model and the item.

    Examples
    --------
    >>> import asyncio
    >>> from pacbound.cascade import Answer, AsyncCascade
    >>> async def fast(item):
    ...     raise ConnectionError("no route to host")
    >>> async def slow(item):
    ...     return Answer("refund")
    >>> router = AsyncCascade([fast, slow], [0.9], on_error="slow")
    >>> result = asyncio.run(router.run(["my money back"]))
    >>> result.predictions.tolist(), result.failures[0].reason
    (['refund'], 'Model 0 (fast) failed on item 0: ConnectionError: no route to host')
    """

    index: int
    item: Any
    model: int
    reason: str


@dataclass(frozen=True, eq=False)
class CascadeResult:
    """The answers of a cascade, in the order of the rows.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
        Class indices, or names where the cascade or its models have them; None for an item that an
        `AsyncCascade` left out.
    exits : ndarray of shape (n,)
        The place of the model that answered: 0 for the fastest, -1 for an item that was left out.
    confidences : ndarray of shape (n,)
        The score of that model; NaN where the last model gave none, or none answered.
    seconds : ndarray of shape (models,)
        The time spent in the calls of each model, which overlap in an `AsyncCascade`.
    failures : tuple of Failure
        What failed in an `AsyncCascade` that goes on after failures, in the order of the items.

    Examples
    --------
    >>> from pacbound import Cascade
    >>> cascade = Cascade([lambda X: X, lambda X: X[:, ::-1]], [0.9])
    >>> result = cascade.run(np.array([[0.95, 0.05], [0.3, 0.7]]))
    >>> result.predictions, result.exits, result.answered
    (array([0, 0]), array([0, 1]), array([1, 1]))
    """

    predictions: Array
    exits: NDArray[np.intp]
    confidences: Floats
    seconds: Floats
    failures: tuple[Failure, ...] = ()

    @property
    def answered(self) -> Integers:
        """How many rows each model answered."""
        return np.bincount(self.exits[self.exits != LEFT_OUT], minlength=len(self.seconds))

    @property
    def failed(self) -> Integers:
        """How many items each model failed on."""
        models = np.array([failure.model for failure in self.failures], dtype=np.intp)
        return np.bincount(models, minlength=len(self.seconds))

    @property
    def left_out(self) -> Rows:
        """The places of the items that were not answered."""
        return np.flatnonzero(self.exits == LEFT_OUT)

    def __len__(self) -> int:
        return len(self.exits)


@dataclass(frozen=True, eq=False)
class Routed:
    """The answer for one item of a stream, and the model that gave it.

    Attributes
    ----------
    index, item
        The place of the item in the stream, and the item itself.
    prediction
        Its label; None if it was left out.
    exit : int
        The place of the model that answered: 0 for the fastest, -1 if the item was left out.
    confidence : float
        The score of that model; NaN where the last model gave none, or none answered.
    seconds : tuple of float
        The time spent waiting for each model, all tries together.
    failures : tuple of Failure
        The models that failed on this item, and why.

    Examples
    --------
    >>> import asyncio
    >>> from pacbound.cascade import AsyncCascade
    >>> async def fast(item):
    ...     return [0.95, 0.05] if item == "clear" else [0.6, 0.4]
    >>> async def slow(item):
    ...     return [0.2, 0.8]
    >>> async def main():
    ...     cascade = AsyncCascade([fast, slow], [0.9], classes=["yes", "no"])
    ...     return [routed async for routed in cascade.stream(["clear", "blurred"])]
    >>> for routed in asyncio.run(main()):
    ...     print(routed.index, routed.item, routed.prediction, routed.exit)
    0 clear yes 0
    1 blurred no 1
    """

    index: int
    item: Any
    prediction: Any
    exit: int
    confidence: float
    seconds: tuple[float, ...]
    failures: tuple[Failure, ...] = ()

    @property
    def failed(self) -> tuple[int, ...]:
        """The places of the models that failed on this item."""
        return tuple(failure.model for failure in self.failures)

    @property
    def left_out(self) -> bool:
        """Whether it was not answered; its last failure says why."""
        return self.exit == LEFT_OUT


class CascadeStatistics:
    """What a cascade has answered since it was made or `reset`; safe to read and add to from
    several threads.

    The answers of a call that raised are not in it; every failure is, and so is a single request
    (`AsyncCascade.route`) that was not answered, whatever the reason. Exit rates far from those of
    the certificate hint that the data have drifted.

    Parameters
    ----------
    n_models : int
        The number of models.

    Attributes
    ----------
    answered : ndarray of int64
        How many rows each model answered.
    failed : ndarray of int64
        How many items each model failed on, after all its tries.
    failures : tuple of Failure
        The last 100 failures, each with its item and the reason.
    left_out : int
        How many items were not answered: models failed, or the request was given up.
    given_up : int
        How many of the items that were not answered were single requests that ended without a
        model that failed for good: cancelled, by a deadline around `route` or a client that hung
        up, or ended by another error.
    seconds : ndarray of float64
        The time spent in the calls of each model; calls under way at once each count in full.

    Examples
    --------
    >>> statistics = CascadeStatistics(2)
    >>> statistics.add(np.array([8, 2]), np.array([0.5, 1.25]), left_out=1)
    >>> statistics.failed_on(Failure(3, "a text", 1, "no answer within 30 s"))
    >>> statistics
    CascadeStatistics(rows=10, answered=[8, 2], left_out=1, given_up=0, failed=[0, 1],
                      seconds=[0.5, 1.25])
    >>> statistics.exit_rates
    array([0.8, 0.2])
    """

    def __init__(self, n_models: int) -> None:
        self._models, self._lock = whole_number(n_models, "n_models", least=1), Lock()
        self.reset()

    def reset(self) -> None:
        """Start from nothing."""
        with self._lock:
            # Replaced by each call and never written into: what was read stays what it was.
            self.answered, self.failed = np.zeros((2, self._models), dtype=np.int64)
            self.seconds: Floats = np.zeros(self._models)
            self.left_out = self.given_up = 0
            self.failures: tuple[Failure, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows were answered."""
        return int(self.answered.sum())

    @property
    def exit_rates(self) -> Floats:
        """The share of the rows that each model answered; NaN before the first."""
        answered = self.answered
        return answered / answered.sum() if answered.any() else np.full(len(answered), np.nan)

    def add(
        self, answered: Integers, seconds: Floats, *, left_out: int = 0, given_up: int = 0
    ) -> None:
        """Count the rows of one call.

        Parameters
        ----------
        answered, seconds
            For each model: the rows that it answered, and the seconds spent in it.
        left_out, given_up
            How many items were not answered, and how many of these were given up.
        """
        with self._lock:
            self.answered = self.answered + answered
            self.seconds = self.seconds + seconds
            self.left_out += left_out
            self.given_up += given_up

    def failed_on(self, failure: Failure) -> None:
        """Count a failure.

        Parameters
        ----------
        failure
            Which model failed on which item, and why.
        """
        with self._lock:
            self.failed = self.failed + (np.arange(self._models) == failure.model)
            self.failures = (*self.failures, failure)[-REMEMBERED:]

    def __repr__(self) -> str:
        return (
            f"CascadeStatistics(rows={self.rows}, answered={self.answered.tolist()}, "
            f"left_out={self.left_out}, given_up={self.given_up}, failed={self.failed.tolist()}, "
            f"seconds={self.seconds.round(3).tolist()})"
        )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {key: value for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())


class Cascade:
    """Models in a row, fast to slow, each answering the rows it is sure enough of and passing on
    the others.

    With the thresholds of a certified `CascadeCertificate`, the cascade of the very models it was
    counted from loses at most `xi` accuracy against the last of them, with probability at least 1 -
    `delta` over the draw of the rows that certified it, for rows from the distribution they came
    from. Thresholds given as numbers carry no guarantee. A refused certificate never exits: the
    slow model answers everything. With the own thresholds of groups, each prediction takes the
    `groups` of its rows.

    A model is any function of rows that gives an (n, C) table of class probabilities, or `Answers`:
    `estimator.predict_proba`, a torch module that ends in a softmax (call the cascade in
    `torch.inference_mode()`), an ONNX Runtime session or an HTTP client in a lambda. Rows may be
    held by arrays, tensors, data frames, sparse matrices, lists, or dictionaries of these; later
    models are called with the rows that are left. A model whose threshold is +inf is not called at
    all.

    A model that fails, or gives what is not an answer, raises a `ModelError` that names it and the
    row.
    A call answers all its rows, in their order, or raises: no row is lost.

    Parameters
    ----------
    models : sequence of callables
        Two or more, the fast one first and the slow one last, with their classes in the same
        columns.
    certificate_or_thresholds : cascade certificate, its path, or numbers
        One threshold for every model but the last, or a mapping from groups to these. A
        certificate that was read from a file is
        verified first, once, which can take seconds; one that does not follow from its own counts
        raises `CertificateError`.
    classes : sequence, optional
        The names of the columns; predictions are then names.
    batch_size : int, optional
        The most rows that any model is called with. The rows that are left fill whole batches for
        the next model.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there are fewer than two models, one cannot be called, or the thresholds are not one for
        each model but the last.
    CertificateError
        If the certificate was changed after it was written.
    ModelError
        From every prediction, if a model fails or gives what is not an answer.

    Examples
    --------
    >>> fast = lambda X: np.column_stack([1 - X, X])
    >>> slow = lambda X: np.column_stack([X < 0.4, X >= 0.4]).astype(float)
    >>> cascade = Cascade([fast, slow], [0.9])
    >>> X = np.array([0.02, 0.45, 0.97])
    >>> cascade.predict(X), cascade.run(X).exits
    (array([0, 1, 1]), array([0, 1, 0]))
    >>> cascade.statistics.answered
    array([4, 2])
    """

    def __init__(
        self,
        models: Sequence[Callable[[Any], Any]],
        certificate_or_thresholds: Thresholds,
        *,
        classes: Any = None,
        batch_size: int | None = None,
    ) -> None:
        self._stages = stages_of(models)
        self._exits = ExitThresholds.of(certificate_or_thresholds, len(self._stages))
        self._classes = None if classes is None else as_column(classes, "classes")
        require_one_order(self._stages, self._classes)
        self._batch_size = (
            None if batch_size is None else whole_number(batch_size, "batch_size", least=1)
        )
        self.statistics = CascadeStatistics(len(self._stages))

    @property
    def thresholds(self) -> Any:
        """The scores from which each model but the last answers, as an array; where each group has
        its own, a dictionary of such arrays by the names of the groups.
        """
        return deepcopy(self._exits.values)

    def predict(self, X: Any, *, groups: Any = None) -> Array:
        """The answer for each row.

        Parameters
        ----------
        X : array, tensor, data frame, sparse matrix, list, or dictionary of these
            The rows.
        groups : array or list, optional
            The group of each row, needed if and only if each group has its own thresholds. A row of
            a group that is not known never exits early.

        Returns
        -------
        ndarray of shape (n,)
            Class indices, or names.
        """
        return self.run(X, groups=groups).predictions

    def run(self, X: Any, *, groups: Any = None) -> CascadeResult:
        """Answers, exits, confidences and times, all from one pass.

        Parameters
        ----------
        X : array, tensor, data frame, sparse matrix, list, or dictionary of these
            The rows.
        groups : array or list, optional
            The group of each row, needed if and only if each group has its own thresholds. A row of
            a group that is not known never exits early.

        Returns
        -------
        CascadeResult
            All of it, in the order of the rows.
        """
        count, take = _row_access(X)
        limits = self._exits.of_rows(count, groups)
        result = self._route(limits, take)
        self.statistics.add(result.answered, result.seconds)
        return result

    def _route(self, limits: Floats, take: Take) -> CascadeResult:
        """The answers of all rows: each model is asked about the rows that may exit there, and
        those exit whose confidence reaches their limit.
        """
        count, earlier = len(limits), list[tuple[Stage, SaidByModel]]()
        exits, confidences = np.empty(count, dtype=np.intp), np.empty(count)
        left, seconds, answers = np.arange(count), np.zeros(len(self._stages)), []
        for stage in self._stages:
            limit = np.full(len(left), -np.inf) if stage.last else limits[left, stage.place]
            may_exit = limit < np.inf
            asked = left[may_exit]
            if not asked.size:
                continue
            started = perf_counter()
            reading = self._ask(stage, take, asked)
            seconds[stage.place] = perf_counter() - started
            require_same_classes(earlier, stage, reading)
            earlier.append((stage, reading))
            stands = np.ones(len(asked), dtype=bool)
            if not stage.last:
                # Both are float64: NumPy compares float16 with a Python float in float16.
                stands = reading.confidence >= limit[may_exit]
            rows = asked[stands]
            exits[rows], confidences[rows] = stage.place, reading.confidence[stands]
            answers.append((rows, reading.labels[stands]))
            may_exit[may_exit] = stands
            left = left[~may_exit]
        unasked = np.dtype(np.intp) if self._classes is None else self._classes.dtype
        kinds = [labels.dtype for _, labels in answers]
        predictions = np.empty(count, dtype=np.result_type(*kinds) if kinds else unasked)
        for rows, labels in answers:
            predictions[rows] = labels
        return CascadeResult(predictions, exits, confidences, seconds)

    def _ask(self, stage: Stage, take: Take, rows: Rows) -> SaidByModel:
        size = self._batch_size or len(rows)
        parts = [
            self._call(stage, take, rows[start : start + size])
            for start in range(0, len(rows), size)
        ]
        for part in parts[1:]:
            require_same_classes([(stage, parts[0])], stage, part)
        labels, confidence = (
            np.concatenate(columns)
            for columns in zip(*((p.labels, p.confidence) for p in parts), strict=True)
        )
        return SaidByModel(labels, confidence, parts[0].n_classes)

    def _call(self, stage: Stage, take: Take, rows: Rows) -> SaidByModel:
        held = take(rows)
        try:
            output = stage.model(held)
        except Exception as error:
            raise stage.error(
                f"failed on {len(rows)} rows: {type(error).__name__}: {error}"
            ) from error
        return read_batch(stage, output, rows, self._classes)

    def __repr__(self) -> str:
        return f"Cascade({shown(self._stages, self._exits)})"


def _row_access(X: Any, name: str = "X") -> tuple[int, Take]:
    """The number of rows of `X`, and what takes some of them out; all of them are `X` itself, not a
    copy.
    """
    count, take = _access(X, name)
    return count, lambda rows: X if len(rows) == count else take(rows)


def _access(X: Any, name: str) -> tuple[int, Take]:
    if isinstance(X, Mapping):
        return _of_mapping(X, name)
    if hasattr(X, "iloc"):
        return len(X), lambda rows: X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.shape[0], lambda rows: X.tocsr()[rows].asformat(X.format)
    if hasattr(X, "num_rows") and hasattr(X, "schema"):
        return X.num_rows, X.take
    if hasattr(X, "shape"):
        if not len(X.shape):
            raise InvalidValueError(
                f"{name} is a single value without rows: put it into an array of one row."
            )
        return X.shape[0], lambda rows: X[rows]
    if isinstance(X, Sequence) and not isinstance(X, (str, bytes, bytearray)):
        kind = tuple if isinstance(X, tuple) else list
        return len(X), lambda rows: kind(X[row] for row in rows.tolist())
    raise InvalidTypeError(
        f"{name} is a {type(X).__name__}, which has no rows to pick: {_remedy(X)}"
    )


def _of_mapping(columns: Mapping[Any, Any], name: str) -> tuple[int, Take]:
    parts = {key: _access(column, f"{name}[{key!r}]") for key, column in columns.items()}
    counts = {key: count for key, (count, _) in parts.items()}
    if len(set(counts.values())) != 1:
        listed = (
            ", ".join(f"{name}[{key!r}] has {count}" for key, count in counts.items())
            or "it is empty"
        )
        raise InvalidValueError(
            f"{name} is a dictionary whose columns have no common number of rows: {listed}."
        )
    return next(iter(counts.values())), lambda rows: {
        key: take(rows) for key, (_, take) in parts.items()
    }


def _remedy(X: Any) -> str:
    if isinstance(X, (str, bytes, bytearray)):
        return "put it into a list."
    if isinstance(X, Iterator):
        return "list() its rows, or run the cascade on one batch after the other."
    return "pass an array, a data frame, a list of rows or a dictionary of columns."
