"""False alarms: the score from which to raise alarms, so that few negatives raise one."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any, Literal, Unpack

from pacbound.claims.claim import certify
from pacbound.claims.rates import Rate
from pacbound.claims.recall import ASSUMES
from pacbound.claims.threshold import Measured, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import FlagCertificate
from pacbound.claims.threshold_words import ClaimWords
from pacbound.forms import DELTA, SMALL_GROUPS, THRESHOLDS, xi_ask
from pacbound.tally.questions.flagged_scores import ROLLOUTS, SCORE_BY_POSITIVE
from pacbound.tally.row_options import RowOptions

WORDS = ClaimWords(
    about="{n} rows, {trials} of them negative",
    unit="negatives",
    heading="At most {xi} false alarms",
    plain="at most {often xi} negatives raise an alarm",
    costs="{often positive} positives raise one",
    rule="Raise an alarm where the score is at least {threshold}, or any higher threshold.",
    promise="at most {xi} of all negatives then raise an alarm",
    in_use="at most {xi} of the negatives raise an alarm",
    seen="{events} of {trials} negatives raise an alarm (limit: {allowed}); so do {positive} "
    "of the positives. Nothing is claimed about positives that raise none.",
    instead="Raise no alarms.",
    group="{group}: alarms from {threshold} on; {events} of {trials} negatives raise one.",
    refusals={
        "zero": "No number of negatives can certify xi = 0.",
        "none": "There are no negatives, so nothing is known about their scores.",
        "too-few": "{trials} negatives cannot certify {xi}, even if none raises an alarm.",
        "unavoidable": "{unavoidable} of {trials} negatives have a score of 1 and raise an alarm "
        "at every threshold (limit: {allowed}). Use a score that tells them apart, such as logits "
        "in float64.",
    },
)
OF_ROLLOUTS = replace(
    WORDS,
    about="{n} rollouts, {trials} of them safe ({lost} lost)",
    rows="rollouts",
    unit="safe rollouts",
    plain="at most {often xi} safe rollouts raise an alarm",
    costs="{often unsafe} unsafe rollouts raise one",
    rule="Raise an alarm where the danger is at least {threshold}, or any higher threshold.",
    promise="at most {xi} of all safe rollouts then raise an alarm",
    seen="{events} of {trials} safe rollouts raise an alarm (limit: {allowed}); so do {unsafe} "
    "of the unsafe ones. A shield needs a certificate about those.",
    group="{group}: alarms from {threshold} on; {events} of {trials} safe rollouts raise one.",
    refusals={
        "zero": "No number of safe rollouts can certify xi = 0.",
        "none": "There are no safe rollouts, so nothing is known about their dangers.",
        "too-few": "{trials} safe rollouts cannot certify {xi}, even if none raises an alarm.",
        "unavoidable": "{unavoidable} of {trials} safe rollouts have a danger of 1 or are lost, "
        "and raise an alarm at every threshold (limit: {allowed}).",
    },
)


class FalseAlarmCertificate(FlagCertificate):
    """With probability at least 1 - delta at most a share xi of the negatives, or of the safe
    rollouts, raises an alarm, at the threshold and at all higher ones.

    It says nothing about positives that are missed: it does not claim safety, and `Shield` does not
    take it. `certify_false_alarms` makes such a certificate, and `load_certificate` reads one. A
    refusal has `certified` False and the threshold +inf: raise no alarms.

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
    >>> score = [0.9] * 100 + [0.7] * 20 + [0.1] * 880
    >>> positive = [True] * 100 + [False] * 900
    >>> certificate = certify_false_alarms(score, positive, xi=0.05, delta=0.01)
    >>> round(certificate.threshold, 3), certificate.observed_rate
    (0.1, 0.022222222222222223)
    >>> certificate.flags([0.05, 0.5])
    array([False,  True])
    """

    xi: float


def rows_or_rollouts(given: Set[str], _: Any = None) -> str | None:
    """What is wrong with columns that are neither those of rows nor those of rollouts."""
    flags = given & {"positive", "unsafe"}
    if not flags:
        return "positive is missing: pass it, or unsafe where rows are rollouts."
    if len(flags) > 1:
        return (
            "positive and unsafe were both passed: pass positive for rows, or unsafe for rollouts."
        )
    return None


CLAIM = ThresholdClaim(
    kind="false-alarms",
    command="false-alarms",
    help="Certify the score from which to raise alarms, so that at most xi of the negatives raise "
    "one.",
    question=SCORE_BY_POSITIVE,
    asks=(
        xi_ask("The share of the negatives that may raise an alarm: 0.05"),
        DELTA,
        THRESHOLDS,
        SMALL_GROUPS,
    ),
    procedures={
        "false-alarms/binomial/1": ThresholdProcedure(
            "false-alarms/binomial/1",
            ASSUMES,
            rate=Rate("negative", "negative", "from"),
            words=WORDS,
            seen_as=("quiet", "false alarm"),
        ),
        "false-alarms/rollouts/1": ThresholdProcedure(
            "false-alarms/rollouts/1",
            (
                "rollouts-unseen",
                "independent-rollouts",
                "asked-beforehand",
                "lost-rollouts-alarm",
                "score-of-whole-rollout",
                "one-simulated-backup",
                "compared-in-float64",
            ),
            question=ROLLOUTS,
            rate=Rate("safe", "safe", "from", lost_is_alarm=True),
            words=OF_ROLLOUTS,
            not_watched="whether a rollout that the shield stopped would have been safe is not "
            "seen in use. Certify again on new rollouts without the shield",
        ),
    },
    misfit=rows_or_rollouts,
    curves=((0, "negatives that raise an alarm"), (1, "positives that raise an alarm")),
    certificate=FalseAlarmCertificate,
    nothing=(
        "None of {n} {rows} is one that could raise a false alarm, so nothing is known about their "
        "scores. Name the column that is 0 in them. If they are rare, label more, chosen without "
        "sight of their scores."
    ),
    measured=Measured("share found", 1, larger=True),
)


def certify_false_alarms(  # noqa: PLR0913
    score: Any = None,
    positive: Any = None,
    *,
    unsafe: Any = None,
    xi: float,
    delta: float,
    groups: Any = None,
    group_thresholds: Literal["common", "own"] = "common",
    small_groups: Literal["refuse", "leave-out"] = "refuse",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> FalseAlarmCertificate:
    """The lowest score from which to raise alarms, so that at most a share `xi` of the negatives
    raises one, with probability at least 1 - `delta`.

    The claim holds for this threshold and all higher ones at once. The rows must be independent
    draws from the data the model will meet in use, untouched by training or model choice, and every
    drawn row is counted. `xi`, `delta` and the groups are fixed without these rows. Any rule for
    when to stop labelling is allowed that sees nothing of a row but whether it is negative, and its
    group where groups do not overlap. What is certified is `xi`; the share of positives that is
    found is not. This does not claim safety: nothing is said about positives that raise no alarm,
    and `Shield` does not take the certificate. `certify_together` certifies both at once.

    With `unsafe` in place of `positive`, rows are rollouts of a policy without its shield: at most
    a share `xi` of the rollouts that are safe without it is stopped by a shield with this
    threshold. A rollout with the score -inf, which was lost, counts as a safe one that raises an
    alarm. A failed reading of the danger fires a shield, so a safe rollout with one must have the
    score 1, as in `Rollouts.alarm_score`.

    Parameters
    ----------
    score
        The score of each row, 0 to 1, high means positive. For rollouts, the maximum of the danger
        over the whole of a safe one. With `data`, the name of its column.
    positive
        Whether each row is positive: booleans, or numbers that are 0 or 1.
    unsafe
        In place of `positive`, for rollouts: whether each has an un-recoverable state.
    xi
        The share of the negatives that may raise an alarm: 0.05
    delta
        The chance that the claim is wrong: 0.01
    groups
        The group of each row, or a mapping from names to truth values where groups overlap.
    group_thresholds
        With groups: one common threshold that every group keeps, or their own ones.
    small_groups
        With groups: leave-out leaves those with too few trials to pass at all uncertified; refuse
        refuses the claim. Fixed beforehand. Only the number of negatives of a group decides, never
        an outcome. Its rows raise no alarm.
    data
        A frame (pandas, Polars, PyArrow, DuckDB, PySpark), a path, several paths, or a Tally.
    **rows
        How rows are read and drawn, see `RowOptions`.

    Returns
    -------
    FalseAlarmCertificate
        The threshold, with the counts that it follows from. A refusal has `certified` False and the
        threshold +inf (no alarms); `summary()` says why, and how many negatives would do.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or flags cannot be what they should be; the message names the value, its row and
        the remedy. If both `positive` and `unsafe` are passed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(20_000) < 0.02
    >>> score = np.where(positive, rng.beta(6, 2, size=20_000), rng.beta(1, 6, size=20_000))
    >>> certificate = certify_false_alarms(score, positive, xi=0.05, delta=0.01)
    >>> print(f"alarm from {certificate.threshold:.3f}: {certificate.share('positive'):.1%} found")
    alarm from 0.402: 97.2% found

    A shield that stops at most 1 % of the rollouts that would have been safe:

    >>> unsafe = rng.random(2000) < 0.05
    >>> danger = np.where(unsafe, rng.beta(8, 2, size=2000), rng.beta(1, 8, size=2000))
    >>> certify_false_alarms(danger, unsafe=unsafe, xi=0.01, delta=0.01).certified
    True
    """
    of_groups = {"group_thresholds": group_thresholds, "small_groups": small_groups}
    asked = {"xi": xi, "delta": delta, **of_groups}
    columns = {"score": score, "positive": positive, "unsafe": unsafe, "groups": groups}
    return certify(CLAIM, columns, asked, data, rows)
