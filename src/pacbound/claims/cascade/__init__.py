"""Cascades: the thresholds at which fast models may answer for a slow one, for all rows or in every
group, and the rows whose label could change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.cascade import next_labels
from pacbound.claims.cascade.certificate import (
    BestPossible,
    CascadeCertificate,
    CascadeGroup,
    Unlabelled,
)
from pacbound.claims.cascade.claim import CLAIM
from pacbound.claims.claim import certify
from pacbound.procedures.cascade import Declared
from pacbound.stats.arguments import whole_number, whole_numbers
from pacbound.tally.row_options import RowOptions
from pacbound.tally.tally import Tally

__all__ = [
    "CLAIM",
    "BestPossible",
    "CascadeCertificate",
    "CascadeGroup",
    "Unlabelled",
    "certify_cascade",
    "certify_declared",
    "rows_to_label",
]


def certify_cascade(  # noqa: PLR0913
    confidence: Any = None,
    prediction: Any = None,
    label: Any = None,
    *,
    quality: Any = None,
    preferred: Any = None,
    xi: float,
    delta: float,
    claim: Literal["loss", "differ"] = "loss",
    costs: Any = None,
    groups: Any = None,
    group_thresholds: Literal["common", "own"] | None = None,
    small_groups: Literal["refuse", "leave-out"] = "refuse",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> CascadeCertificate:
    """Thresholds at which the cascade loses at most `xi` accuracy against its slow model, with
    probability at least 1 - `delta`; or, with `claim="differ"`, at which at most `xi` of its
    answers differ from the slow model's.

    The rows must be independent draws from the data the models will meet in use, untouched by
    training, model choice or temperature fitting, and `xi`, `delta` and their number fixed without
    a look at them. What is certified is `xi`, over all data of use, gains offsetting losses; exit
    rates, costs and the observed error increase were seen on these rows, and are not certified.

    Labels matter only where predictions differ, and may be missing (None, NaN) in any row, for any
    reason. A row without one in which the answer differs from the slow model's counts as a loss,
    so labels may be asked for in any order, and the claim be made again after each, beginning with
    none at all. Rows may not be dropped, nor labels changed once they were seen.

    That at most `xi` of the answers differ from the slow model's is another claim. It takes no
    labels, and is declared before anything of these rows is seen. Whoever publishes it if
    it is good, and labels on and claims the loss otherwise, has two chances to be wrong, and their
    deltas add up.

    With `groups`, fixed without these rows too, at most `xi` is lost in *every* group, with
    probability at least 1 - `delta` for all of them together. Common thresholds cost no share of
    `delta`, and the worst group decides for all; own ones share `delta` among the groups.

    Parameters
    ----------
    confidence
        The confidence of each model but the last, in the order in which they are asked: (n, M-1)
        scores in [0, 1]. With `data`, the names of the columns.
    prediction
        The prediction of each model, the slow model's last: (n, M) classes.
    label
        The true class; it may be missing in any row, and in all (None). A code such as -1 is a
        class like others. More labels never raise a threshold of two models.
    quality
        How good the answer of each model is, graded from 0 to 1; in place of label: (n, M), the
        slow model's last, NaN where a grade is missing. For two models the slow one's alone will
        do, if the other's is what it leaves to 1: 1, 0.5 and 0 for a win, a tie and a loss. What
        is certified is the mean quality lost. Predictions may be left out then; where they are
        there and equal, nothing is lost.
    preferred
        Which of two models answered better, in place of quality: the name of the column of its
        prediction ("fast" or "slow" without one), or "tie"; it may be missing in any row.
    xi
        The accuracy that may be lost: 0.02. 0 asks that nothing is, which is tested on a coarse
        grid. With `claim="differ"`, the share of the answers that may differ.
    delta
        The chance that the claim is wrong: 0.01
    claim
        What xi bounds: "loss", the accuracy lost, whether or not there are labels; or "differ", the
        share of answers that differ from the slow model's, decided beforehand and without labels.
    costs
        What a row costs in all that each model answers, those before it included: M rising numbers.
        With more than two models they choose the cheapest of the thresholds that hold; otherwise
        they are for the summary.
    groups
        The group of each row, or a mapping from names to truth values where groups overlap, of
        which "all rows" is always one. Nothing is said about a group that is not among the rows.
    group_thresholds
        With groups: "common" to all, if left out, at which each group loses at most `xi`; or "own"
        ones of each, if no groups overlap; a group that is too small never exits early.
    small_groups
        With groups: leave-out leaves those with too few trials to pass at all uncertified; refuse
        refuses the claim. Fixed beforehand, for common thresholds of groups that do not overlap.
        Only the number of rows of a group decides, never an outcome. Its rows never exit early.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally; or,
        with `id`, a table for each model, the slow one's last, `data=(fast, slow)`: paths, frames,
        or lists of dicts. `id` names the column that joins them.
    **rows
        How rows are read, joined and drawn, see `RowOptions`.

    Returns
    -------
    CascadeCertificate
        The thresholds, with the counts that they follow from; with groups, a part for each. A
        refusal has `certified` False and the thresholds +inf (never exit); `refusal` says why, and
        about how many rows it would take. Common thresholds are refused if a group cannot be
        certified, and the refusal names it; own ones only if no group can be, and `refused_groups`
        names those that never exit. `unlabelled` says how many missing labels counted as losses,
        `best_possible` what labels for them could gain, and `settled` whether they could change the
        thresholds at all.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or classes cannot be what they should be; the message names the value, its row
        and the remedy. If there are labels and `claim` is "differ". If labels look like those of
        other rows, see `unrelated_labels`. If a group is missing in a row, named twice, or there
        are more than 1,000 of them; if groups overlap and have own thresholds.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> import numpy as np
    >>> table = fashion_mnist()
    >>> prediction = np.column_stack([table.prediction_fast, table.prediction_slow])
    >>> asked = {"xi": 0.01, "delta": 0.01}
    >>> certificate = certify_cascade(table.confidence_fast, prediction, table.label, **asked)
    >>> threshold, share = certificate.thresholds[0], certificate.exit_rates[0]
    >>> print(f"at {threshold:.4f} and above the fast model answers: {share:.1%} of the rows")
    at 0.7215 and above the fast model answers: 64.6% of the rows

    Without a label fewer rows exit early, and labels could gain more:

    >>> early = certify_cascade(table.confidence_fast, prediction, **asked)
    >>> early.exit_rates.round(3), early.best_possible.exit_rates.round(3), early.bounded
    (array([0.553]), array([1.]), 'loss')

    That few answers differ, had it been declared in place of the loss, holds at the same threshold:

    >>> same = certify_cascade(table.confidence_fast, prediction, claim="differ", **asked)
    >>> same.exit_rates.round(3), same.settled, same.bounded
    (array([0.553]), True, 'differ')

    From a frame, which is counted inside its own engine:

    >>> import polars
    >>> columns = {"c": table.confidence_fast, "y": table.label}
    >>> columns |= {"fast": table.prediction_fast, "slow": table.prediction_slow}
    >>> frame = polars.DataFrame(columns)
    >>> same = certify_cascade("c", ["fast", "slow"], "y", data=frame, **asked)
    >>> bool((same.thresholds == certificate.thresholds).all())
    True
    """
    columns = {
        "confidence": confidence,
        "prediction": prediction,
        "label": label,
        "quality": quality,
        "preferred": preferred,
        "groups": groups,
    }
    of_groups = {"group_thresholds": group_thresholds, "small_groups": small_groups}
    asked = {"xi": xi, "delta": delta, "claim": claim, "costs": costs, **of_groups}
    return certify(CLAIM, columns, asked, data, rows)


def rows_to_label(  # noqa: PLR0913
    confidence: Any,
    prediction: Any = None,
    label: Any = None,
    *,
    xi: float,
    delta: float,
    costs: Any = None,
    quality: Any = None,
    declined: Any = (),
    slow_confidence: Any = None,
    count: int | None = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> NDArray[np.int64]:
    """The rows whose label could still change the thresholds that `certify_cascade` gives, the most
    wanted first; none once no label can.

    With probability at least 1 - `delta` all certificates that `certify_cascade` gives for these
    rows hold, whichever labels each of them sees: all looks at all sets of labels together. So
    label the rows in any order, look as often as you like, and stop at any time. The rows, `xi`,
    `delta` and `costs` are the same at every look, and a label may not depend on whether it was
    asked for, nor be changed once it was looked at.

    Parameters
    ----------
    confidence, prediction, label, quality, data, **rows
        As in `certify_cascade`: `label` is None or NaN where there is none yet, and `quality` in
        its place where answers are graded. Where rows are drawn, pass the
        same `seed` at every look. Groups are not taken.
    xi, delta, costs
        As in `certify_cascade`.
    declined
        The numbers of rows that nobody can tell the label of, from 0: they count as lost for good,
        and are not asked for.
    slow_confidence
        (n,) numbers, higher where the slow model is surer: of rows that count from the same step
        on, those with the lowest come first. Without it rows come in their own order.
    count
        At most so many rows; all of them if left out.

    Returns
    -------
    ndarray of int64
        The numbers of the rows, from 0.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument cannot be what it should be; the message names the value and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> prediction = np.column_stack([table.prediction_fast, table.prediction_slow])
    >>> label = np.full(len(prediction), np.nan)
    >>> asked = {"xi": 0.01, "delta": 0.01}
    >>> while len(rows := rows_to_label(
    ...     table.confidence_fast, prediction, label, count=50, **asked
    ... )):
    ...     label[rows] = table.label[rows]
    >>> certificate = certify_cascade(table.confidence_fast, prediction, label, **asked)
    >>> int(np.isfinite(label).sum()), certificate.thresholds.round(4)
    (400, array([0.7215]))
    """
    columns = {"confidence": confidence, "prediction": prediction, "label": label}
    given = {**columns, "quality": quality, **rows}
    wishes = CLAIM.wishes({"xi": xi, "delta": delta, "costs": costs})
    found = next_labels.counted(given, data)
    declined = whole_numbers(declined, "declined") if len(declined) else ()
    wanted = next_labels.open_rows(found, wishes, declined=declined, doubt=slow_confidence)
    return wanted if count is None else wanted[: whole_number(count, "count", least=1)]


def certify_declared(
    tally: Tally,
    declared: Declared,
    *,
    xi: float,
    delta: float,
    columns: Mapping[str, str] | None = None,
) -> CascadeCertificate:
    """Certify a cascade along a sequence of thresholds that other rows declared; `design_cascade`
    chooses one and does this.

    With probability at least 1 - `delta` the cascade at the thresholds loses at most `xi` accuracy
    against its last model, if no row of the tally had a part in `declared`.

    Parameters
    ----------
    tally
        A cascade tally of at least one row, without missing labels where predictions differ.
    declared
        The models, their own costs and the sequence of thresholds.
    xi, delta
        As in `certify_cascade`.
    columns
        The names of the columns that were counted, for the provenance.

    Returns
    -------
    CascadeCertificate
        The last thresholds before the first failure. A refusal has `certified` False and the
        thresholds +inf (never exit).

    Raises
    ------
    InvalidValueError
        If the tally is not one of a cascade of so many exits, has no rows, does not add up, or has
        rows without a label in which predictions differ.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound import Tally
    >>> rows = {"confidence": [0.9] * 500, "prediction": [[1, 1]] * 500, "label": [1] * 500}
    >>> tally = Tally.count(CLAIM.question, **rows)
    >>> declared = Declared((0, 1), (1.0, 9.0), 0.2, 0, 100, np.array([[60000, 50000]]))
    >>> certificate = certify_declared(tally, declared, xi=0.02, delta=0.01)
    >>> certificate.certified, certificate.thresholds * 65536, certificate.expected_cost
    (True, array([50000.]), 1.0)
    """
    asked = {"xi": xi, "delta": delta}
    return CLAIM.certify(tally, asked, columns, declared=declared)
