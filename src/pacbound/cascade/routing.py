"""Routing rows through models, fast to slow: a row stops at the first model that is sure enough.

The rule is the one that was certified: a row exits where its float64 score is at or above the
threshold. Knows nothing of the models but that they can be called, and of the rows but that they
can be picked by number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.model_outputs import Reading, read_batch, require_same_classes
from pacbound.cascade.result import CascadeResult, CascadeStatistics
from pacbound.cascade.row_access import Rows, Take, row_access
from pacbound.cascade.stages import Stage, is_count, require_one_order, shown, stages_of
from pacbound.certificate.cascade import CascadeCertificate
from pacbound.errors import InvalidValueError, ModelError
from pacbound.tally.columns import as_column

Array = NDArray[Any]
Floats = NDArray[np.float64]


class Cascade:
    """Models in a row, fast to slow, each answering the rows it is sure enough of and passing on
    the others.

    With the thresholds of a certified `CascadeCertificate`, the cascade of the very models it was
    counted from loses at most `xi` accuracy against the last of them, with probability at least 1 -
    `delta` over the draw of the rows that certified it, for rows from the distribution they came
    from. Thresholds given as numbers carry no guarantee. A refused certificate never exits: the
    slow model answers everything.

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
    certificate_or_thresholds : CascadeCertificate, or numbers
        One threshold for every model but the last. A certificate that was read from a file is
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
        certificate_or_thresholds: CascadeCertificate | Sequence[float] | Floats | float,
        *,
        classes: Any = None,
        batch_size: int | None = None,
    ) -> None:
        self._stages = stages_of(models, certificate_or_thresholds)
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
    def thresholds(self) -> Floats:
        """The scores from which each model but the last answers."""
        return np.array([stage.threshold for stage in self._stages[:-1]], dtype=np.float64)

    def predict(self, X: Any) -> Array:
        """The answer for each row.

        Parameters
        ----------
        X : array, tensor, data frame, sparse matrix, list, or dictionary of these
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            Class indices, or names.
        """
        return self.run(X).predictions

    def predict_exits(self, X: Any) -> NDArray[np.intp]:
        """The model that answers each row.

        Parameters
        ----------
        X : array, tensor, data frame, sparse matrix, list, or dictionary of these
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            The place of the model: 0 for the fastest.
        """
        return self.run(X).exits

    def run(self, X: Any) -> CascadeResult:
        """Answers, exits, confidences and times, all from one pass.

        Parameters
        ----------
        X : array, tensor, data frame, sparse matrix, list, or dictionary of these
            The rows.

        Returns
        -------
        CascadeResult
            All of it, in the order of the rows.
        """
        count, take = row_access(X)
        result = self._joined(self._route(count, take), count)
        self.statistics.add(result.answered, result.seconds, result.failed)
        return result

    def predict_batches(self, batches: Iterable[Any]) -> Iterator[CascadeResult]:
        """One result for each batch, as it is asked for: never more than one batch is held.

        Parameters
        ----------
        batches : iterable
            Rows as in `predict`, some at a time. A batch may be empty.

        Yields
        ------
        CascadeResult
            That of each batch, in their order.
        """
        for number, batch in enumerate(batches):
            try:
                result = self.run(batch)
            except ModelError as error:
                error.add_note(f"This was in batch {number}.")
                raise
            yield result

    def _route(self, count: int, take: Take) -> Iterator[tuple[Stage, Rows, Reading, float]]:
        """For each model that is called: the rows that exit there, what it said about them, and how
        long it took.
        """
        left = np.arange(count)
        earlier: list[tuple[Stage, Reading]] = []
        for stage in self._stages:
            if not left.size or stage.never_exits:
                continue
            started = perf_counter()
            reading = self._ask(stage, take, left)
            seconds = perf_counter() - started
            require_same_classes(earlier, stage, reading)
            earlier.append((stage, reading))
            exits = stage.accepts(reading.confidence)
            yield (
                stage,
                left[exits],
                Reading(reading.labels[exits], reading.confidence[exits]),
                seconds,
            )
            left = left[~exits]

    def _ask(self, stage: Stage, take: Take, rows: Rows) -> Reading:
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
        return Reading(labels, confidence, parts[0].n_classes)

    def _call(self, stage: Stage, take: Take, rows: Rows) -> Reading:
        held = take(rows)
        try:
            output = stage.model(held)
        except Exception as error:
            raise stage.error(
                f"failed on {len(rows)} rows: {type(error).__name__}: {error}"
            ) from error
        return read_batch(stage, output, rows, self._classes)

    def _joined(
        self, parts: Iterable[tuple[Stage, Rows, Reading, float]], count: int
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
        return f"Cascade({shown(self._stages)})"
