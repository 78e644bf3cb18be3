"""Both at once: thresholds at which few positives are missed and few alarms are false."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from pacbound.certificate.about import about_texts
from pacbound.certificate.alarm_range import FALSE_ALARMS, MISSES, AlarmRangeCertificate
from pacbound.certificate.bundle import certify_together
from pacbound.certificate.false_alarms import FalseAlarmCertificate
from pacbound.certificate.recall import RecallCertificate
from pacbound.certificate.samples import sample_name
from pacbound.certificate.shield import ShieldCertificate
from pacbound.errors import InvalidTypeError
from pacbound.false_alarms.certify import alarm_tally
from pacbound.procedures.shield import Rate
from pacbound.sources import Engine, Progress
from pacbound.stats.arguments import claimed_delta, required_share, tolerated_rate
from pacbound.tally.draws import DrawOptions
from pacbound.tally.intake import recorded_columns, require_mapping
from pacbound.tally.tally import Tally


def certify_alarm_range(  # noqa: PLR0913
    score: Any,
    positive: Any = None,
    *,
    unsafe: Any = None,
    xi: float,
    target: float | None = None,
    missed: float | None = None,
    rate: Rate | None = None,
    delta: float,
    shares: Mapping[str, float] | None = None,
    columns: Mapping[str, str | None] | None = None,
    engine: Engine | None = None,
    master: str | None = None,
    memory_limit: str | None = None,
    progress: Progress | None = None,
    about: Mapping[str, Any] | None = None,
    sample: str | None = None,
    **draw: Unpack[DrawOptions],
) -> AlarmRangeCertificate:
    """The thresholds at which at most a share `xi` of the negatives raises an alarm *and* at least
    a share `target` of the positives does, with probability at least 1 - `delta`.

    Both claims hold at every threshold of the range at once, so that any of them may be chosen, in
    sight of everything. The rows must be independent draws from the distribution of use, untouched
    by training or model choice, and not selected for labelling by their score. `xi`, `target`,
    `delta` and `shares` are fixed beforehand. If no threshold keeps both, the range is refused.

    With `unsafe` in place of `positive`, rows are rollouts of a policy without its shield, as in
    `certify_shield` and `certify_false_alarms`, and `missed` stands in place of `target`.

    Parameters
    ----------
    score, positive, unsafe
        As in `certify_false_alarms`.
    xi
        The share of the negatives, or of the safe rollouts, that may raise an alarm.
    target
        For rows: the share of the positives that must raise an alarm, as in `certify_recall`.
    missed
        For rollouts: the share that may be unsafe under the shield, the `xi` of `certify_shield`.
    rate
        For rollouts: what `missed` is a share of, "all" rollouts (if left out) or "among-unsafe".
    delta
        The chance that either claim is wrong.
    shares
        How much of `delta` each claim gets, in proportion: positive numbers for "misses" and
        "false-alarms". Equal shares if left out.
    clusters, cluster_bound, weights, weight_bound, row_ids, seed
        As in `certify_false_alarms`.
    columns
        The names of the table's columns, by the names of the arrays: `score`, and `positive` or
        `unsafe`.
    engine, master, memory_limit
        For files: "duckdb" (if left out), "polars" or "spark"; Spark's master; what DuckDB may use,
        such as "500MB".
    progress
        For files: called with the share that is counted, from 0 to 1.
    about
        What the certificate is about, for people: short texts by names such as "model", "dataset",
        "owner" and "note". A `pathlib.Path` stands for the name, the size and the SHA-256 of that
        file, or of all files of that folder. No part of the claim.
    sample
        What these rows are called, a short text such as "held-out, March". A `Budget` adds up the
        claims on rows of one name; claims that name no sample count for all of them. No part of the
        claim.

    Returns
    -------
    AlarmRangeCertificate
        The range, `lowest` to `highest`, and the two certificates, `misses` and `false_alarms`. A
        refusal has `certified` False, `lowest` +inf and `highest` -inf; its summary says why.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If scores or flags cannot be what they should be; the message names the value, its row and
        the remedy. If `target` is missing for rows, or `missed` for rollouts.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(20_000) < 0.02
    >>> score = np.where(positive, rng.beta(6, 2, size=20_000), rng.beta(1, 6, size=20_000))
    >>> found = certify_alarm_range(score, positive, xi=0.1, target=0.9, delta=0.01)
    >>> print(f"any threshold from {found.lowest:.3f} to {found.highest:.3f}")
    any threshold from 0.325 to 0.476

    To ask for too much of this score is refused:

    >>> certify_alarm_range(score, positive, xi=0.01, target=0.99, delta=0.01).certified
    False
    """
    level, share = claimed_delta(delta), tolerated_rate(xi)
    rollouts = _are_rollouts(score, unsafe, columns)
    _check(rollouts, target, missed, rate)
    texts, name = about_texts(about), sample_name(sample)
    tally = alarm_tally(
        score,
        positive,
        unsafe,
        columns=columns,
        reading={
            "engine": engine,
            "master": master,
            "memory_limit": memory_limit,
            "progress": progress,
        },
        draw=draw,
    )
    named = recorded_columns(columns)

    def misses(*, delta: float) -> RecallCertificate | ShieldCertificate:
        if rollouts:
            allowed = tolerated_rate(missed, "missed")
            return ShieldCertificate.from_tally(
                tally, xi=allowed, delta=delta, rate=rate or "all", columns=named
            )
        found = required_share(target)
        return RecallCertificate.from_tally(tally, target=found, delta=delta, columns=named)

    def false_alarms(*, delta: float) -> FalseAlarmCertificate:
        return FalseAlarmCertificate.from_tally(tally, xi=share, delta=delta, columns=named)

    claims = {MISSES: misses, FALSE_ALARMS: false_alarms}
    together: Any = certify_together(claims, delta=level, shares=shares).members
    found = AlarmRangeCertificate.of(together[MISSES], together[FALSE_ALARMS], delta=level)
    return found.with_about(texts, sample=name)


def _are_rollouts(score: Any, unsafe: Any, columns: Mapping[str, str | None] | None) -> bool:
    if isinstance(score, Tally):
        return score.kind == "shield"
    require_mapping(columns)
    return unsafe is not None or (columns or {}).get("unsafe") is not None


def _check(
    rollouts: bool,  # noqa: FBT001, RUF100
    target: float | None,
    missed: float | None,
    rate: str | None,
) -> None:
    if rollouts and (missed is None or target is not None):
        raise InvalidTypeError(
            "For rollouts pass missed, the share of them that may be unsafe under the shield, and "
            "no target."
        )
    if not rollouts and (target is None or missed is not None or rate is not None):
        raise InvalidTypeError(
            "For rows pass target, the share of the positives that must raise an alarm, and "
            "neither missed nor rate."
        )
