"""Recall: the score from which to flag, so that enough of the positives are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.claim import certify_passed
from pacbound.claims.rates import Rate
from pacbound.claims.threshold import Measured, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import FlagCertificate
from pacbound.claims.threshold_words import ClaimWords
from pacbound.forms import DELTA, SMALL_GROUPS, THRESHOLDS, looks_ask, target_ask
from pacbound.stats.looks import PlannedLooks
from pacbound.tally.questions.flagged_scores import SCORE_BY_POSITIVE
from pacbound.tally.row_options import RowOptions

Floats = NDArray[np.float64]


WORDS = ClaimWords(
    about="{n} rows, {trials} of them positive",
    unit="positives",
    heading="Recall of at least {target}",
    plain="at least {often target} positives are flagged",
    costs="{often all} rows are flagged",
    rule="Flag a row where its score is at least {threshold}.",
    promise="at least {target} of all positives are then flagged",
    in_use="at least {target} of the positives are flagged",
    seen="{all} are flagged; {events} of {trials} positives are missed (limit: {allowed}).",
    instead="Flag everything.",
    warns_of_most=True,
    group="{group}: flag from {threshold} on; {events} of {trials} positives are missed.",
    refusals={
        "none": "No row is positive, so nothing is known about the scores of positives.",
        "too-few": "{trials} positives cannot certify {target}, even if none is missed.",
    },
    no_use={0.0: "Every score is at least 0: everything is flagged, so the claim is of no use."},
)
SEEN_AS = ("flagged", "missed")
TRIALS = Rate("positive", "positive", "below")
ASSUMES = (
    "independent-rows",
    "untouched-rows",
    "every-row-counts",
    "asked-beforehand",
    "stopped-by-outcome",
    "compared-in-float64",
)
AT_LOOKS = tuple("looks-beforehand" if name == "stopped-by-outcome" else name for name in ASSUMES)


class RecallCurve(NamedTuple):
    """What was seen at each threshold, from the highest score down. No point of it is certified.

    Attributes
    ----------
    thresholds : ndarray
        The scores that rows have, on the grid of 2^-16.
    recall : ndarray
        The share of the positives whose score is at least that; NaN if there are none.
    flagged : ndarray
        The share of all rows whose score is at least that.

    Examples
    --------
    >>> rows = [0.75, 0.5, 0.25], [True, False, True]
    >>> certify_recall(*rows, target=0.5, delta=0.1).recall_curve().recall
    array([0.5, 0.5, 1. ])
    """

    thresholds: Floats
    recall: Floats
    flagged: Floats


class RecallCertificate(FlagCertificate):
    """With probability at least 1 - delta at least a share target of the positives is flagged, if a
    row is flagged where its score is at or above the threshold.

    `certify_recall` makes such a certificate, and `load_certificate` reads one. A refusal has
    `certified` False and the threshold -inf: flag everything.

    Attributes
    ----------
    by : Claim
        What is claimed, and how it is decided and said.
    values : mapping
        Everything that the document holds of it, by name: what was asked for, the counts and the
        thresholds.
    provenance : Provenance
        Where the certificate comes from.
    draw : Drawn or None
        How the rows were drawn from others; None if all rows of the data were counted as they are.
    loaded : mapping or None
        The document that it was read from; None if it was made in this process.

    Examples
    --------
    >>> score = [0.9] * 295 + [0.2] * 5 + [0.1] * 700
    >>> certificate = certify_recall(score, [True] * 300 + [False] * 700, target=0.95, delta=0.01)
    >>> round(certificate.threshold, 3), certificate.flag_rate
    (0.9, 0.295)
    >>> certificate.flags([0.5, 0.95])
    array([False,  True])
    """

    @property
    def target(self) -> float:
        """The share of the positives that must be flagged. This is what is certified."""
        return float(self.values["target"])

    @property
    def positives(self) -> int:
        """The number of positives among the rows."""
        return self.number("positive")

    @property
    def observed_recall(self) -> float | None:
        """The share of these positives that is flagged; None if there are none. It is not
        certified.
        """
        return self.share("positive")

    @property
    def flag_rate(self) -> float:
        """The share of these rows that is flagged. It is not certified."""
        return self.coverage

    def recall_curve(self) -> RecallCurve:
        """Recall and the share of flagged rows against the threshold, as seen in these rows. No
        point of it is certified.

        Returns
        -------
        RecallCurve
            The thresholds from the highest score down, with recall and share at each.
        """
        thresholds, positive, rows = self.reached("positive", "all")
        return RecallCurve(thresholds, positive, rows)


CLAIM = ThresholdClaim(
    kind="recall",
    command="recall",
    help="Certify the score from which to flag, so that at least the target share of positives is "
    "flagged.",
    question=SCORE_BY_POSITIVE,
    asks=(
        target_ask("The share of the positives that must be flagged: 0.95"),
        DELTA,
        looks_ask("positives"),
        THRESHOLDS,
        SMALL_GROUPS,
    ),
    procedures={
        "recall/binomial/1": ThresholdProcedure(
            "recall/binomial/1", ASSUMES, rate=TRIALS, words=WORDS, seen_as=SEEN_AS
        ),
        "recall/planned-looks/1": ThresholdProcedure(
            "recall/planned-looks/1",
            AT_LOOKS,
            ("looks",),
            rate=TRIALS,
            words=WORDS,
            seen_as=SEEN_AS,
        ),
    },
    curves=((1, "positives flagged"), ("all", "rows flagged")),
    certificate=RecallCertificate,
    nothing=(
        "None of {n} rows is positive, so nothing is known about the scores of positives. Name the "
        "column that is 1 in positive rows. If positives are rare, label more rows, "
        "chosen without sight of their scores."
    ),
    measured=Measured("flag rate", "all", larger=False),
)


def certify_recall(  # noqa: PLR0913
    score: Any = None,
    positive: Any = None,
    *,
    target: float,
    delta: float,
    looks: PlannedLooks | Sequence[int] | None = None,
    groups: Any = None,
    group_thresholds: Literal["common", "own"] = "common",
    small_groups: Literal["refuse", "leave-out"] = "refuse",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> RecallCertificate:
    """The highest score at which to flag, so that at least a share `target` of the positives is
    flagged, with probability at least 1 - `delta`.

    The rows must be independent draws from the data the model will meet in use, untouched by
    training or model choice, and every drawn row is counted. `target`, `delta` and the groups are
    fixed without these rows. Rows may be labelled until there are enough positives: any stopping
    rule is allowed that sees nothing of a row but whether it is positive, and its group where
    groups do not overlap. What is certified is `target`; the share of rows that is flagged, and the
    recall seen in these rows, are not.

    Parameters
    ----------
    score
        The score of each row, 0 to 1, high means positive. With `data`, the name of its column.
    positive
        Whether each row is positive: booleans, or numbers that are 0 or 1.
    target
        The share of the positives that must be flagged: 0.95
    delta
        The chance that the claim is wrong: 0.01
    looks
        The planned looks, if the threshold is wanted before all rows are labelled: numbers of
        positives, as `planned_looks` takes or gives them (for the rate 1 - `target`), fixed before
        the first row. Pass all rows up to this look, in any order; the positives among them must be
        one of the looks. The thresholds of all looks hold together, so it is valid to stop at the
        first that is good enough, or to go on.
    groups
        The group of each row, or a mapping from names to truth values where groups overlap.
    group_thresholds
        With groups: one common threshold that every group keeps, or their own ones.
    small_groups
        With groups: leave-out leaves those with too few trials to pass at all uncertified; refuse
        refuses the claim. Fixed beforehand. Only the number of positives of a group decides, never
        an outcome. All its rows are flagged.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    RecallCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold -inf (flag everything); `summary()` says why, and how many positives would do.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or flags cannot be what they should be; the message names the value, its row and
        the remedy. If no look was planned at this number of positives.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(20_000) < 0.02
    >>> score = np.where(positive, rng.beta(6, 2, size=20_000), rng.beta(1, 6, size=20_000))
    >>> certificate = certify_recall(score, positive, target=0.95, delta=0.01)
    >>> print(f"flag from {certificate.threshold:.3f}: {certificate.flag_rate:.1%} of the rows")
    flag from 0.392: 6.9% of the rows

    A look at the first 100 of at most 300 positives:

    >>> first = int(np.flatnonzero(positive)[99]) + 1
    >>> early = certify_recall(
    ...     score[:first], positive[:first], target=0.95, delta=0.01, looks=[100, 200, 300]
    ... )
    >>> print(f"look {early.look}: flag from {early.threshold:.3f}")
    look 1: flag from 0.262
    """
    return certify_passed(CLAIM, locals())
