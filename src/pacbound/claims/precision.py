"""Precision: the score from which to flag, so that most of what is flagged is positive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

from pacbound.claims.abstention import ASSUMES
from pacbound.claims.abstention import WORDS as ABSTENTION_WORDS
from pacbound.claims.claim import certify
from pacbound.claims.rates import Rate
from pacbound.claims.threshold import Measured, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import FlagCertificate, ReachedCertificate
from pacbound.forms import DELTA, target_ask
from pacbound.tally.questions.flagged_scores import SCORE_BY_POSITIVE
from pacbound.tally.row_options import RowOptions

NAME = "precision/rank-starts/1"


class PrecisionCertificate(ReachedCertificate, FlagCertificate):
    """With probability at least 1 - delta at least a share target of the flagged rows is positive,
    if a row is flagged where its score is at or above `threshold`; in each group, where there are
    groups.

    `certify_precision` makes such a certificate, and `load_certificate` reads one. A refusal has
    `certified` False and the threshold +inf: flag nothing. With groups, one that cannot be
    certified has the threshold +inf, and the others have theirs; `certified` is False if none has.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for, the counts, the
        thresholds, and all thresholds that hold.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> certificate = certify_precision(score, rng.random(2000) < score, target=0.8, delta=0.01)
    >>> print(f"flags {certificate.coverage:.0%}, from {certificate.threshold:.3f}")
    flags 36%, from 0.647
    >>> certificate.flags([0.6, 0.7])
    array([False,  True])
    """

    target: float


WORDS = replace(
    ABSTENTION_WORDS,
    heading="Precision of at least {target}",
    plain="at least {often target} flagged rows{each} are positive",
    costs="{often all} rows are flagged",
    act="flagged",
    rule="Flag a row where its score is at least {threshold}.",
    always="Every row is flagged: no score is below 0, the threshold.",
    promise="at least {target} of all flagged rows{each} are positive",
    graded="",
    seen="{trials} are flagged ({all}), {shown} of them positive ({rate}).",
    instead="Flag nothing.",
    group="{group}: from {threshold} on; {trials} of {rows} rows are flagged, {shown} of them "
    "positive.",
    hides_rare=False,
    numbers=(("Rows flagged", "all"), ("Positive among these", "rate")),
)
CLAIM = ThresholdClaim(
    kind="precision",
    command="precision",
    help="Certify the score from which to flag, so that at least the target share of what is "
    "flagged is positive.",
    question=SCORE_BY_POSITIVE,
    asks=(target_ask("The share of the flagged rows that must be positive: 0.9"), DELTA),
    procedures={
        NAME: ThresholdProcedure(
            NAME,
            ASSUMES,
            rate=Rate("reached", "negative", "from"),
            words=WORDS,
            seen_as=("positive", "negative"),
        )
    },
    certificate=PrecisionCertificate,
    curves=(
        ("rows flagged", "Rows flagged (share)"),
        ("precision", "Precision (share of flagged rows positive)"),
    ),
    measured=Measured("coverage", "all", larger=True),
)


def certify_precision(
    score: Any = None,
    positive: Any = None,
    *,
    target: float,
    delta: float,
    groups: Any = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> PrecisionCertificate:
    """The lowest score from which to flag, so that at least a share `target` of the flagged rows is
    positive, with probability at least 1 - `delta`.

    The rows must be independent draws from the data the model will meet in use, untouched by
    training or model choice, and `target`, `delta`, their number and the groups fixed without a
    look at them. What is certified is `target`, among all rows that are flagged; how many are
    flagged is descriptive. Nothing is assumed about the model or its scores. How many of the
    positives are found is another claim: `certify_recall`.

    Parameters
    ----------
    score
        The score of each row, 0 to 1, high means positive. With `data`, the name of its column.
    positive
        Whether each row is positive: true or false, 1 or 0.
    target
        The share of the flagged rows that must be positive: 0.9
    delta
        The chance that the claim is wrong: 0.01
    groups
        The group of each row, for a threshold each, at `delta` divided by the number of groups that
        have rows. The claim then holds in every group.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    PrecisionCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold +inf (flag nothing); `summary()` says why, and about how many rows it would take.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or truth values cannot be what they should be; the message names the value, its
        row and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> shoe, boot = table.confidence_fast, 9
    >>> score = np.where(table.prediction_fast == boot, shoe, 0.0)
    >>> certificate = certify_precision(score, table.label == boot, target=0.97, delta=0.01)
    >>> certificate.certified
    True
    """
    columns = {"score": score, "positive": positive, "groups": groups}
    return certify(CLAIM, columns, {"target": target, "delta": delta}, data, rows)
