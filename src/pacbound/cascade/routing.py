"""Routing rows through models, fast to slow: a row stops at the first model that is sure enough.

The rule is the one that was certified: a row exits where its float64 score is at or above the
threshold. Knows nothing of the models but that they can be called, and of the rows but that they
can be picked by number: rows of arrays and tensors (NumPy, torch, JAX), sparse matrices, data
frames and Arrow tables, lists and tuples of anything, and dictionaries of these. What a model gets
is of the kind that came in, and nothing is guessed from the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import repeat
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.model_outputs import SaidByModel, read_batch, require_same_classes
from pacbound.cascade.result import CascadeResult, CascadeStatistics
from pacbound.cascade.stages import (
    ExitThresholds,
    Stage,
    Thresholds,
    is_count,
    require_one_order,
    shown,
    stages_of,
)
from pacbound.errors import InvalidTypeError, InvalidValueError, ModelError
from pacbound.tally.columns import as_column

Array = NDArray[Any]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Take = Callable[[Rows], Any]


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
    >>> cascade.predict(X), cascade.predict_exits(X)
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
        if batch_size is not None and not is_count(batch_size):
            raise InvalidValueError(
                f"batch_size={batch_size!r} is not a number of rows: expected an integer from 1, "
                "or None."
            )
        self._batch_size = batch_size
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

    def predict_exits(self, X: Any, *, groups: Any = None) -> NDArray[np.intp]:
        """The model that answers each row.

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
            The place of the model: 0 for the fastest.
        """
        return self.run(X, groups=groups).exits

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
        result = self._joined(self._route(limits, take), count)
        self.statistics.add(result.answered, result.seconds, result.failed)
        return result

    def predict_batches(
        self, batches: Iterable[Any], *, groups: Iterable[Any] | None = None
    ) -> Iterator[CascadeResult]:
        """One result for each batch, as it is asked for: never more than one batch is held.

        Parameters
        ----------
        batches : iterable
            Rows as in `predict`, some at a time. A batch may be empty.
        groups : iterable, optional
            The groups of the rows of each batch, as in `predict`.

        Yields
        ------
        CascadeResult
            That of each batch, in their order.
        """
        named = repeat(None) if groups is None else groups
        # Without groups there is no end to the names that are not there.
        pairs = zip(batches, named, strict=groups is not None)
        for number, (batch, names) in enumerate(pairs):
            try:
                result = self.run(batch, groups=names)
            except ModelError as error:
                error.add_note(f"This was in batch {number}.")
                raise
            yield result

    def _route(
        self, limits: Floats, take: Take
    ) -> Iterator[tuple[Stage, Rows, SaidByModel, float]]:
        """For each model that is called: the rows that exit there, what it said about them, and how
        long it took. A model is not asked about rows that may not exit there.
        """
        left = np.arange(len(limits))
        earlier: list[tuple[Stage, SaidByModel]] = []
        for stage in self._stages:
            may_exit = np.ones(len(left), dtype=bool)
            if not stage.last:
                may_exit = limits[left, stage.place] < np.inf
            asked = left[may_exit]
            if not asked.size:
                continue
            started = perf_counter()
            reading = self._ask(stage, take, asked)
            seconds = perf_counter() - started
            require_same_classes(earlier, stage, reading)
            earlier.append((stage, reading))
            stands = np.ones(len(asked), dtype=bool)
            if not stage.last:
                # Both are float64: NumPy compares float16 with a Python float in float16.
                stands = reading.confidence >= limits[asked, stage.place]
            answered = SaidByModel(reading.labels[stands], reading.confidence[stands])
            yield stage, asked[stands], answered, seconds
            exits = may_exit.copy()
            exits[may_exit] = stands
            left = left[~exits]

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

    def _joined(
        self, parts: Iterable[tuple[Stage, Rows, SaidByModel, float]], count: int
    ) -> CascadeResult:
        exits, confidences = np.empty(count, dtype=np.intp), np.empty(count)
        seconds, failed = np.zeros(len(self._stages)), np.zeros(len(self._stages), dtype=np.int64)
        answers: list[tuple[Rows, Array]] = []
        for stage, rows, reading, spent in parts:
            exits[rows], confidences[rows], seconds[stage.place] = (
                stage.place,
                reading.confidence,
                spent,
            )
            answers.append((rows, reading.labels))
        unasked = np.dtype(np.intp) if self._classes is None else self._classes.dtype
        predictions = np.empty(
            count,
            dtype=np.result_type(*(labels.dtype for _, labels in answers)) if answers else unasked,
        )
        for rows, labels in answers:
            predictions[rows] = labels
        return CascadeResult(predictions, exits, confidences, seconds, failed)

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
        return "list() its rows, or pass an iterable of batches to predict_batches."
    return "pass an array, a data frame, a list of rows or a dictionary of columns."
