"""Abstention: the confidence from which to answer, so that few answers are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.assumptions import SAMPLE
from pacbound.claims.claim import certify
from pacbound.claims.rates import Rate
from pacbound.claims.threshold import Measured, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import ReachedCertificate, rows_acted_on
from pacbound.claims.threshold_words import ClaimWords
from pacbound.forms import DELTA, Ask, Start, xi_ask
from pacbound.tally.questions.correctness import ABSTENTION
from pacbound.tally.row_options import RowOptions

ASSUMES = (*SAMPLE, "compared-in-float64")


class AbstentionCertificate(ReachedCertificate):
    """With probability at least 1 - delta at most a share xi of the answers is wrong, if a row is
    answered where its confidence is at or above `threshold`; in each group, where there are groups.

    `certify_abstention` makes such a certificate, and `load_certificate` reads one. A refusal has
    `certified` False and the threshold +inf: never answer. With groups, one that cannot be
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
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(2000)
    >>> correct = rng.random(2000) < confidence
    >>> certificate = certify_abstention(confidence, correct, xi=0.2, delta=0.01)
    >>> print(f"answers {certificate.coverage:.0%}, from {certificate.threshold:.3f}")
    answers 36%, from 0.647
    >>> certificate.answers([0.6, 0.7])
    array([False,  True])
    """

    xi: float

    def answers(self, confidence: Any, groups: Any = None) -> NDArray[np.bool_]:
        """Which rows to answer.

        Parameters
        ----------
        confidence
            One score in [0, 1] per row.
        groups
            The group of each row, if the certificate is for groups. A row of a group that was not
            certified is not answered.

        Returns
        -------
        ndarray of bool
            True where the score is at or above the threshold.

        Raises
        ------
        CertificateError
            If the certificate does not follow from its own counts.
        InvalidTypeError
            If `groups` is missing where the certificate has groups, or is there where it has none.
        InvalidValueError
            If a score is not in [0, 1].
        """
        return rows_acted_on(self, confidence, groups, "confidence")


# What claims about the rows that reach a threshold have in common, where a row is answered.
WORDS = ClaimWords(
    about="{n} rows",
    heading="Answers with a risk of at most {xi}",
    plain="at most {often xi} answers{each} are wrong",
    costs="{often all} rows are answered",
    act="answered",
    rule="Answer where the confidence is at least {threshold}; abstain elsewhere.",
    always="Every row is answered: no score is below 0, the threshold.",
    promise="at most {xi} of all answers{each} are wrong",
    seen="{trials} are answered ({all}), {shown} of them wrong ({rate}).",
    instead="Never answer.",
    group="{group}: from {threshold} on; {trials} of {rows} rows are answered, {shown} of them "
    "wrong.",
    refusals={
        "zero": "No number of rows can certify that nothing goes wrong.",
        "too-few": "{rows} rows cannot certify {asked}, even if none of them is {event}.",
        "no-pass": "No threshold passes. The closest call: from {nearest} on, {wrong} of "
        "{answered} rows are {event}.",
        "base": "{base} of all rows are {event}: at that rate at least {left} of them must be "
        "left out, whatever the scores.",
    },
    harmless="none of them is {event}",
    hides_rare=True,
    numbers=(("Rows answered", "all"), ("Wrong among these", "rate")),
)
STARTS = ThresholdProcedure(
    "abstention/rank-starts/1",
    ASSUMES,
    rate=Rate("reached", "wrong", "from"),
    words=WORDS,
    seen_as=("right", "wrong"),
)
DECLARED = replace(STARTS, name="abstention/declared-start/1", asks=("first_threshold",))
LACKS = "the mean quality of all answers{each}, {as_graded}, is at most {xi} below the best"
BETS = ThresholdProcedure(
    "abstention/graded-bets/1",
    ASSUMES,
    rate=replace(STARTS.rate, graded=True),
    words=replace(
        WORDS,
        plain=LACKS,
        promise=LACKS,
        graded=LACKS,
        kept="Mean quality below the best (share of the scale)",
        seen="{trials} are answered ({all}), with a mean quality {rate} below the best.",
        group="{group}: from {threshold} on; {trials} of {rows} rows are answered, with a mean "
        "quality {rate} below the best.",
        refusals={
            "zero": "No number of rows can certify that every grade is the best.",
            "too-few": "{rows} rows cannot certify {xi}, even if all have the best grade.",
            "no-pass": "No threshold passes. The closest call: from {nearest} on, {answered} rows "
            "have a mean quality {lacks} below the best.",
            "base": "The mean quality of all rows is {base} below the best.",
        },
        harmless="all have the best grade",
        hides_rare=False,
        numbers=(("Rows answered", "all"), ("Mean quality of these below the best", "rate")),
    ),
    seen_as=("right", "wrong"),
)
CLAIM = ThresholdClaim(
    kind="abstention",
    command="abstain",
    help="Certify the confidence from which to answer, so that at most xi of the answers are "
    "wrong.",
    question=ABSTENTION,
    asks=(
        xi_ask("The share of the answers that may be wrong: 0.05"),
        DELTA,
        Ask(
            "first_threshold",
            Start("a score", 0, 1, "[]"),
            "The threshold to start from, declared before any score is seen: the search then goes "
            "down from there alone.",
            None,
            shown="Declared first threshold",
        ),
    ),
    procedures={one.name: one for one in (STARTS, DECLARED, BETS)},
    certificate=AbstentionCertificate,
    curves=(
        ("coverage", "Coverage (share of rows answered)"),
        ("risk", "Risk (share of answers wrong)"),
    ),
    applied="pac_answer",
    measured=Measured("coverage", "all", larger=True),
)


def certify_abstention(  # noqa: PLR0913
    confidence: Any = None,
    correct: Any = None,
    *,
    prediction: Any = None,
    label: Any = None,
    quality: Any = None,
    xi: float,
    delta: float,
    groups: Any = None,
    first_threshold: float | None = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> AbstentionCertificate:
    """The lowest confidence from which to answer, so that at most a share `xi` of the answers is
    wrong, with probability at least 1 - `delta`.

    The rows must be independent draws from the data the model will meet in use, untouched by
    training, model choice or temperature fitting, and `xi`, `delta`, their number and the groups
    fixed without a look at them. What is certified is `xi`, among all answers; the share of rows
    that is answered, and the error seen in these rows, are descriptive. Nothing is assumed about
    the model or its scores: they may be badly calibrated, tied, or less reliable at the top.

    Parameters
    ----------
    confidence
        The confidence of each prediction, from 0 to 1. With `data`, the name of its column.
    correct
        Whether each prediction was right: booleans, or numbers that are 0 or 1.
    prediction
        The predicted class of each row; with label, in place of correct. Numbers or names, compared
        by the one rule of equality (see the documentation of classes).
    label
        The true class of each row.
    quality
        How good each answer is, graded from 0 to 1; in place of correct. The claim is about the
        mean quality of the answers: at most `xi` below the best. See `quality_scale` and
        `graded_by` of `RowOptions`.
    xi
        The share of the answers that may be wrong: 0.05
    delta
        The chance that the claim is wrong: 0.01
    groups
        The group of each row, for a threshold each, at `delta` divided by the number of groups that
        have rows. The claim then holds in every group.
    first_threshold
        The threshold to start from, declared before any score is seen. The search then goes down
        from there alone, with the whole of `delta`. If it is left out, the search starts where
        certain numbers of rows are answered, which costs a fifth of `delta`.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    AbstentionCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold +inf (never answer); `summary()` says why, and about how many rows it would take.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores, outcomes or classes cannot be what they should be; the message names the value,
        its row and the remedy.

    Examples
    --------
    >>> from pacbound.data import fashion_mnist
    >>> table = fashion_mnist()
    >>> correct = table.prediction_slow == table.label
    >>> certificate = certify_abstention(table.confidence_slow, correct, xi=0.01, delta=0.001)
    >>> threshold, share = certificate.threshold, certificate.coverage
    >>> print(f"answer at {threshold:.4f} and above: {share:.1%} of the rows, 1 % wrong at most")
    answer at 0.9959 and above: 70.9% of the rows, 1 % wrong at most

    From a frame, which is counted inside its own engine:

    >>> import polars
    >>> frame = polars.DataFrame({"score": table.confidence_slow, "right": correct})
    >>> same = certify_abstention("score", "right", data=frame, xi=0.01, delta=0.001)
    >>> same.threshold == certificate.threshold
    True
    """
    columns = {
        "confidence": confidence,
        "correct": correct,
        "prediction": prediction,
        "label": label,
        "quality": quality,
        "groups": groups,
    }
    asked = {"xi": xi, "delta": delta, "first_threshold": first_threshold}
    return certify(CLAIM, columns, asked, data, rows)
