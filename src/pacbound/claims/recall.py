"""Recall: the score from which to flag, so that enough of the positives are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

from pacbound.claims.claim import certify
from pacbound.claims.rates import Rate
from pacbound.claims.threshold import Measured, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import FlagCertificate
from pacbound.claims.threshold_words import ClaimWords
from pacbound.forms import DELTA, SMALL_GROUPS, THRESHOLDS, looks_ask, target_ask
from pacbound.stats.looks import PlannedLooks
from pacbound.tally.questions.flagged_scores import SCORE_BY_POSITIVE
from pacbound.tally.row_options import RowOptions

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
ASSUMES = (
    "independent-rows",
    "untouched-rows",
    "every-row-counts",
    "asked-beforehand",
    "stopped-by-outcome",
    "compared-in-float64",
)
AT_LOOKS = tuple("looks-beforehand" if name == "stopped-by-outcome" else name for name in ASSUMES)
FIXED = ThresholdProcedure(
    "recall/binomial/1",
    ASSUMES,
    rate=Rate("positive", "positive"),
    words=WORDS,
    seen_as=("flagged", "missed"),
)
PLANNED = replace(FIXED, name="recall/planned-looks/1", assumes=AT_LOOKS, asks=("looks",))


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
    >>> round(certificate.threshold, 3), certificate.coverage
    (0.9, 0.295)
    >>> certificate.flags([0.5, 0.95])
    array([False,  True])
    """

    target: float
    looks: tuple[int, ...] | None


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
    procedures={one.name: one for one in (FIXED, PLANNED)},
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
    >>> print(f"flag from {certificate.threshold:.3f}: {certificate.coverage:.1%} of the rows")
    flag from 0.392: 6.9% of the rows

    A look at the first 100 of at most 300 positives:

    >>> first = int(np.flatnonzero(positive)[99]) + 1
    >>> early = certify_recall(
    ...     score[:first], positive[:first], target=0.95, delta=0.01, looks=[100, 200, 300]
    ... )
    >>> print(f"look {early.look}: flag from {early.threshold:.3f}")
    look 1: flag from 0.262
    """
    of_groups = {"group_thresholds": group_thresholds, "small_groups": small_groups}
    asked = {"target": target, "delta": delta, "looks": looks, **of_groups}
    columns = {"score": score, "positive": positive, "groups": groups}
    return certify(CLAIM, columns, asked, data, rows)
