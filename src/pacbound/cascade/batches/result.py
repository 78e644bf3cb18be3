"""All answers of a batch, put together from the fast model's and the slow one's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.batch import BatchCertificate
from pacbound.sources.values import MISSING
from pacbound.tally.classes import Class

Mask = NDArray[np.bool_]

WIDEST = 256
"""Longer text goes into arrays of objects: in one of text, every answer takes as much room as the
longest."""


@dataclass(frozen=True)
class BatchResult:
    """All answers of a batch.

    Of these answers at most `certificate.tolerated` differ from the slow model's, with probability
    at least 1 - delta over the draw of the sample.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
        The answer to each record, in their order: numbers or text. An object array where an answer
        is longer than 256 characters, and where there are records without an answer, which have
        None.
    asked : ndarray of bool
        Where the slow model was asked, and its answer stands.
    failed : ndarray of bool
        Where there is no answer, because the slow model was asked and gave none.
    certificate : BatchCertificate
        The guarantee, with the counts that it follows from.

    Examples
    --------
    >>> from pacbound import answer_batch
    >>> result = answer_batch(
    ...     [0.9, 0.2], ["dog", "cat"], lambda rows: ["dog"] * len(rows), xi=0.5, delta=0.1,
    ...     rng=np.random.default_rng(0),
    ... )
    >>> result.predictions.tolist(), result.asked.tolist(), bool(result.failed.any())
    (['dog', 'dog'], [False, True], False)
    """

    predictions: NDArray[Any]
    asked: Mask
    failed: Mask
    certificate: BatchCertificate


def classes_of(codes: NDArray[np.int64], names: Sequence[Class], dtype: Any) -> NDArray[Any]:
    """The classes that have the numbers, as an array of one plain type: `dtype`, that of the fast
    answers, if it holds them; objects, where some are missing or long, or numbers stand beside
    text.
    """
    used = {names[code] if code != MISSING else None for code in np.unique(codes).tolist()}
    # The last place, -1, is where a missing answer is looked up.
    if all(isinstance(name, str) and len(name) <= WIDEST for name in used):
        return np.array([name if name in used else "" for name in (*names, "")])[codes]
    if all(isinstance(name, int) and abs(name) < 2**63 for name in used):
        found = np.array([name if name in used else 0 for name in (*names, 0)], dtype=np.int64)
        return _as_given(found[codes], dtype)
    column = np.empty(len(names) + 1, dtype=object)
    column[:] = [*names, None]
    return column[codes]


def _as_given(answers: NDArray[np.int64], dtype: Any) -> NDArray[Any]:
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        return answers
    same = answers.astype(dtype)
    return same if (same == answers).all() else answers
