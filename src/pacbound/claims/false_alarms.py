"""False alarms: the score from which to raise alarms, so that few negatives raise one."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.claims.claim import certify_passed
from pacbound.claims.rates import Rate
from pacbound.claims.threshold import Measured, ThresholdClaim, ThresholdProcedure
from pacbound.claims.threshold_certificate import FlagCertificate
from pacbound.claims.threshold_words import ClaimWords
from pacbound.forms import DELTA, SMALL_GROUPS, THRESHOLDS, xi_ask
from pacbound.procedures.threshold import LOST
from pacbound.tally.questions.flagged_scores import ROLLOUTS, SCORE_BY_POSITIVE
from pacbound.tally.row_options import RowOptions

Floats = NDArray[np.float64]

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
        **dict.fromkeys(
            ("unavoidable", "hopeless"),
            "{unavoidable} of {trials} negatives have a score of 1 and raise an alarm at every "
            "threshold (limit: {allowed}). Use a score that tells them apart, such as logits "
            "in float64.",
        ),
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
        **dict.fromkeys(
            ("unavoidable", "hopeless"),
            "{unavoidable} of {trials} safe rollouts have a danger of 1 or are lost, and raise an "
            "alarm at every threshold (limit: {allowed}).",
        ),
    },
)


class AlarmCurve(NamedTuple):
    """What was seen at each threshold, from the highest score down. No point of it is certified.

    Attributes
    ----------
    thresholds : ndarray
        The scores that rows have, on the grid of 2^-16.
    false_alarms : ndarray
        The share of the negatives (safe rollouts) whose score is at least that; NaN if there are
        none.
    found : ndarray
        The share of the positives (unsafe rollouts) whose score is at least that; NaN if there are
        none.

    Examples
    --------
    >>> rows = [0.75, 0.5, 0.25, 0.25], [True, False, True, False]
    >>> certify_false_alarms(*rows, xi=0.5, delta=0.1).alarm_curve().false_alarms
    array([0. , 0.5, 1. ])
    """

    thresholds: Floats
    false_alarms: Floats
    found: Floats


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
    >>> round(certificate.threshold, 3), certificate.observed_false_alarm_rate
    (0.1, 0.022222222222222223)
    >>> certificate.flags([0.05, 0.5])
    array([False,  True])
    """

    @property
    def xi(self) -> float:
        """The share of the negatives that may raise an alarm. This is what is certified."""
        return float(self.values["xi"])

    @property
    def unit(self) -> Literal["rows", "rollouts"]:
        """What raises alarms: "rows", which are negative or positive, or "rollouts", which are safe
        or unsafe.
        """
        return "rollouts" if "safe" in self.outcomes else "rows"

    @property
    def lost(self) -> int:
        """How many rollouts were lost; each counts as a safe one that raises an alarm."""
        return sum(
            int(counts[name][counts["cells"] == LOST].sum())
            for counts in self.histograms
            for name in self.outcomes
        )

    @property
    def negatives(self) -> int:
        """The number of negatives, or of safe rollouts, lost ones among them."""
        return self.trials

    @property
    def positives(self) -> int:
        """The number of positives, or of unsafe rollouts, lost ones among them."""
        return self.number(self.outcomes[1])

    @property
    def observed_false_alarm_rate(self) -> float | None:
        """The share of these negatives that raises an alarm; None if there are none. It is not
        certified.
        """
        return self.events / self.negatives if self.negatives else None

    @property
    def observed_recall(self) -> float | None:
        """The share of these positives, or unsafe rollouts, that raises an alarm; None if there are
        none. It is not certified.
        """
        return self.share(self.outcomes[1])

    def alarm_curve(self) -> AlarmCurve:
        """False alarms and positives found against the threshold, as seen in these rows. No point
        of it is certified.

        Returns
        -------
        AlarmCurve
            The thresholds from the highest score down, with both shares at each.
        """
        thresholds, false_alarms, found = self.reached(*self.outcomes)
        if self.lost:
            safe = self.negatives - self.lost
            false_alarms = (np.nan_to_num(false_alarms) * safe + self.lost) / self.negatives
        return AlarmCurve(thresholds, false_alarms, found)


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
            (
                "independent-rows",
                "untouched-rows",
                "every-row-counts",
                "asked-beforehand",
                "stopped-by-outcome",
                "compared-in-float64",
            ),
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
    >>> print(f"alarm from {certificate.threshold:.3f}: {certificate.observed_recall:.1%} found")
    alarm from 0.402: 97.2% found

    A shield that stops at most 1 % of the rollouts that would have been safe:

    >>> unsafe = rng.random(2000) < 0.05
    >>> danger = np.where(unsafe, rng.beta(8, 2, size=2000), rng.beta(1, 8, size=2000))
    >>> certify_false_alarms(danger, unsafe=unsafe, xi=0.01, delta=0.01).certified
    True
    """
    return certify_passed(CLAIM, locals())
