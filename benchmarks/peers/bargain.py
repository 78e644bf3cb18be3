"""BARGAIN: a batch answered by a proxy and an oracle, with a target for how many answers agree with
the oracle's, by betting on a sample at each of 20 thresholds.

Its models are looked up in arrays instead of called in threads, which changes no answer. They are
found by their rows: the records themselves are passed on in another order than their rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

_package = import_module("BARGAIN")
_models = import_module("BARGAIN.models.AbstractModels")


class _Proxy(_models.Proxy):  # type: ignore[name-defined, misc]
    def __init__(self, prediction: Any, confidence: Any) -> None:
        super().__init__(verbose=False)
        self._prediction, self._confidence = prediction, confidence

    def get_preds_and_scores(self, indxs: Any, data_records: Any) -> tuple[Any, Any]:  # noqa: ARG002
        rows = np.asarray(indxs, dtype=np.intp)
        return self._prediction[rows], self._confidence[rows]


class _Oracle(_models.Oracle):  # type: ignore[name-defined, misc]
    def __init__(self, slow: Any) -> None:
        super().__init__(verbose=False)
        self._slow = slow

    def get_pred(self, data_records: Any, indxs: Any = None) -> Any:  # noqa: ARG002
        return self._slow[np.asarray(indxs, dtype=np.intp)]

    def is_answer_correct(self, data_indxs: Any, data_records: Any, proxy: Any) -> Any:  # noqa: ARG002
        return self._slow[np.asarray(data_indxs, dtype=np.intp)] == proxy


def answer(
    confidence: Any, prediction: Any, slow: Any, *, xi: float, delta: float, seed: int
) -> tuple[Any, Any]:
    """The answers, and where the slow model was asked, by `BARGAIN_A` with its defaults."""
    process = _package.BARGAIN_A(
        _Proxy(prediction, confidence),
        _Oracle(slow),
        target=1.0 - xi,
        delta=delta,
        verbose=False,
        seed=seed,
    )
    rows = np.arange(len(prediction))
    answers, asked = process.process(rows, return_oracle_usage=True)
    return np.array(answers), np.array(asked)
