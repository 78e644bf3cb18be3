"""Cascades: the thresholds at which fast models may answer for a slow one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pacbound.certificate.cascade import CascadeCertificate
from pacbound.errors import InvalidTypeError
from pacbound.procedures.cascade import Bound
from pacbound.stats.arguments import failure_probability, tolerated_rate
from pacbound.tally.exits import count_cascade
from pacbound.tally.given import count_table, recorded_columns, refuse_arrays_beside_columns
from pacbound.tally.tally import Tally


# Two ways to pass the data, and the options of the guarantee.
def certify_cascade(  # noqa: PLR0913, RUF100
    confidences: Any,
    predictions: Any = None,
    labels: Any = None,
    *,
    xi: float,
    delta: float,
    costs: Any = None,
    bound: Bound = "exact",
    method: Literal["paths", "greedy"] = "paths",
    columns: Mapping[str, str | Sequence[str]] | None = None,
) -> CascadeCertificate:
    """Thresholds at which the cascade loses at most `xi` accuracy against its slow model, with
    probability at least 1 - `delta`.

    The rows must be independent draws from the distribution of use, untouched by training, model
    choice or temperature fitting, and `xi`, `delta` and their number fixed before any label was
    seen. What is certified is `xi`, over the whole population, gains offsetting losses; exit rates,
    costs and the observed error increase are descriptive.

    Labels are needed only where predictions differ: elsewhere they may be missing (None, NaN). Rows
    may not be dropped for it.

    Parameters
    ----------
    confidences
        (n, M-1) scores in [0, 1] of the fast models, in the order in which they are asked; or a
        `Tally` in place of all arrays; or, with `columns`, a frame (pandas, Polars, PyArrow,
        DuckDB, PySpark) or the paths of files.
    predictions
        (n, M) predicted classes, the slow model's last.
    labels
        (n,) true classes, missing (None, NaN) where all predictions agree if you like; a code such
        as -1 is a class like others.
    xi
        The accuracy that may be lost. 0 asks that nothing is, which is tested on a coarse grid.
    delta
        The chance that the cascade loses more than that.
    costs
        M rising numbers: what a row costs in all that is answered by each model, the models before
        it included. With more than two models they choose the cheapest of the thresholds that hold;
        otherwise they are for the summary.
    bound
        "exact" (from 200,000 rows on the same as "pair"); "pair", two one-sided binomial bounds;
        "product", the paper's, mended.
    method
        For more than two models: "paths", or the paper's "greedy", which carries no proof and is
        never certified.
    columns
        The names of the table's columns: `confidences` and `predictions`, a list of each in the
        order of the models, and `label`.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> import numpy as np
    >>> table = fashion_mnist()
    >>> predictions = np.column_stack([table.prediction_fast, table.prediction_slow])
    >>> certificate = certify_cascade(
    ...     table.confidence_fast, predictions, table.label, xi=0.01, delta=0.01, bound="pair"
    ... )
    >>> threshold, share = certificate.thresholds[0], certificate.exit_rates[0]
    >>> print(f"at {threshold:.4f} and above the fast model answers: {share:.1%} of the rows")
    at 0.7415 and above the fast model answers: 62.7% of the rows

    From a frame, which is counted inside its own engine:

    >>> import polars
    >>> frame = polars.DataFrame({
    ...     "c": table.confidence_fast, "fast": table.prediction_fast,
    ...     "slow": table.prediction_slow, "y": table.label,
    ... })
    >>> named = {"confidences": ["c"], "predictions": ["fast", "slow"], "label": "y"}
    >>> same = certify_cascade(frame, xi=0.01, delta=0.01, bound="pair", columns=named)
    >>> bool((same.thresholds == certificate.thresholds).all())
    True
    """
    rate, level = tolerated_rate(xi), failure_probability(delta)
    tally = cascade_tally(confidences, predictions, labels, columns)
    return CascadeCertificate.from_tally(
        tally,
        xi=rate,
        delta=level,
        bound=bound,
        method=method,
        costs=costs,
        columns=recorded_columns(columns),
    )


def cascade_tally(
    confidences: Any, predictions: Any, labels: Any, columns: Mapping[str, Any] | None = None
) -> Tally:
    """The tally that was passed in place of all three, or that of the arrays or of the table."""
    if columns is not None:
        refuse_arrays_beside_columns(predictions=predictions, labels=labels)
        return count_table(confidences, "cascade", columns)
    if isinstance(confidences, Tally):
        if predictions is not None or labels is not None:
            raise InvalidTypeError("A tally already holds predictions and labels: leave both out.")
        return confidences
    if predictions is None or labels is None:
        raise InvalidTypeError(
            "predictions or labels are missing: pass both; or a Tally in place of all three; or a "
            "table and its columns."
        )
    return count_cascade(confidences, predictions, labels)
