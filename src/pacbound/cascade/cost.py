"""What a cascade will cost: an upper bound on the mean cost of a row, with its own failure
probability.

A row costs C_1, and C_{m+1} - C_m more if it has not left by exit m, so the mean cost is

    C_1 + sum over m of (C_{m+1} - C_m) P(not left by m),

and upper bounds on these probabilities give one on the cost.

*Fresh scores.* The thresholds are fixed before the scores are seen, so the rows that have not left
by m are binomial: Clopper-Pearson at delta over the number of exits.

*The same rows* chose the thresholds, so the bound must hold at all thresholds that they could have
chosen. Along a walk whose thresholds fall together, the rows that have left by m only grow. Let T
be the step at which a row joins them: the shares that have left, over all steps, are a distribution
function of T, so by the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant no
observed share exceeds its truth by more than sqrt(ln(1/level) / (2n)), except with probability
`level`, if that is at most 1/2. The level is delta over the number of walks and exits. A sequence
that a fold declared does not fall, but it is a finite list fixed in advance: Clopper-Pearson at
delta over the number of its steps and exits.

An exit at the threshold 0 leaves no row, surely, and one at +inf is not asked.

What other tolerances would cost is descriptive: each point of the curve of `trade_off` holds alone,
for an xi that was chosen beforehand. Choosing xi by looking at the curve is choosing from the data,
and no point then holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import inf, log, nextafter, sqrt
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.rows import ReadingOptions, read_rows
from pacbound.claims.cascade import CascadeCertificate, certify_cascade
from pacbound.claims.cascade.claim import CLAIM
from pacbound.claims.certificate import certificate_of
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.procedures.cascade import Bound
from pacbound.procedures.cascade_paths import total_cost
from pacbound.says import exact, likelihood
from pacbound.sources import Paths
from pacbound.stats.arguments import claimed_delta, tolerated_rate
from pacbound.stats.binomial import binomial_upper, bonferroni_level
from pacbound.tally.columns import Rows, Slot, as_array, checked_scores, numeric
from pacbound.tally.row_options import RowOptions
from pacbound.tally.tally import Tally

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class CostBound:
    """With probability at least 1 - `delta` a row costs at most `upper` on average.

    Together with what the certificate claims, it holds with probability at least 1 - `together`.

    Attributes
    ----------
    upper : float
        The bound on the mean cost of a row, rounded up.
    observed : float
        What a row cost on average among those that were looked at; descriptive.
    slow : float
        What a row costs that the slow model answers, in the way the certificate counts it: alone
        for a cascade of `design_cascade`, with the models before it otherwise.
    delta : float
        The chance that the bound is wrong.
    together : float
        The chance that the bound or the certificate is wrong.
    rows : int
        How many rows the bound is from.
    source : str
        "fresh" if they are other rows than those that were certified on, "same" if they are those.

    Examples
    --------
    >>> bound = CostBound(3.125, 3.0, 10.0, 0.01, 0.02, 5000, "fresh")
    >>> print(bound)
    With probability at least 0.99 a row costs at most 3.125 on average; the slow model takes 10.
    That is from 5,000 fresh rows, which cost 3 on average (descriptive).
    Together with the claim of the certificate it holds with probability at least 0.98.
    """

    upper: float
    observed: float
    slow: float
    delta: float
    together: float
    rows: int
    source: Literal["fresh", "same"]

    def __str__(self) -> str:
        kind = "fresh rows" if self.source == "fresh" else "rows, the same that were certified on"
        together = likelihood(self.together) if self.together < 1 else "0"
        return (
            f"With probability at least {likelihood(self.delta)} a row costs at most "
            f"{_rounded_up(self.upper)} on average; the slow model takes {exact(self.slow)}.\n"
            f"That is from {self.rows:,} {kind}, which cost {self.observed:.4g} on average "
            "(descriptive).\nTogether with the claim of the certificate it holds with probability "
            f"at least {together}."
        )


def certified_cost(
    certificate: CascadeCertificate | str | os.PathLike[str],
    confidence: Any = None,
    *,
    delta: float,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> CostBound:
    """An upper bound on what a row of a certified cascade costs on average, which holds with
    probability at least 1 - `delta`.

    From fresh scores: they must be independent draws from the data the model will meet in use,
    must have had no part in the certificate, neither in its fold nor in its counts, and their
    number must be fixed before they are seen. They need no labels. Without them the bound is from
    the counts in the certificate itself, and wider, because these rows chose the thresholds. Either
    way it is about the costs that the certificate holds, and together with its claim it holds with
    probability at least 1 - (delta of the certificate + `delta`). Ask once: the better of two
    bounds has two chances to be wrong.

    Parameters
    ----------
    certificate
        A cascade certificate with costs. A refused one never exits, and costs what the slow model
        costs. One read from a file is verified first.
    confidence
        (n, M-1) fresh scores of the exits in their order, or (n,) for one exit; with `data`, the
        names of their columns. If left out, the certificate's own counts are used.
    delta
        The chance that the bound is wrong.
    data
        The paths of files with fresh rows.
    **rows
        How files are read, see `RowOptions`: `progress`, `delimiter`, `decimal` and `scale`.

    Returns
    -------
    CostBound
        The bound, and what was seen. At worst it is what the slow model's answers cost: the bound
        does not refuse.

    Raises
    ------
    InvalidTypeError
        If it is not a cascade certificate, or the columns are not those of its exits.
    InvalidValueError
        If the certificate has no costs, or is of a method without proof; if scores cannot be what
        they should be, or there are none; if delta is above 0.5.
    RepeatedSourceError
        If a file is one that the certificate was counted from.
    CertificateError
        If the certificate does not follow from its own counts.

    Examples
    --------
    >>> import numpy as np
    >>> from pacbound import certify_cascade
    >>> confidence = np.array([0.9, 0.9, 0.9, 0.4] * 250)
    >>> answers = np.array([[1, 1], [1, 1], [1, 1], [0, 1]] * 250)
    >>> certificate = certify_cascade(
    ...     confidence, answers, np.ones(1000), xi=0.02, delta=0.01, costs=[1, 9]
    ... )
    >>> certificate.expected_cost
    3.0
    >>> round(certified_cost(certificate, delta=0.01).upper, 2)
    3.38
    >>> fresh = np.random.default_rng(0).choice(confidence, size=100_000)
    >>> round(certified_cost(certificate, fresh, delta=0.01).upper, 2)
    3.03
    """
    certificate = certificate_of(certificate)
    if not isinstance(certificate, CascadeCertificate):
        raise InvalidTypeError(
            f"{type(certificate).__name__} is not a cascade certificate: pass one of "
            "certify_cascade or design_cascade, or load it with load_certificate."
        )
    if certificate.groups:
        raise InvalidTypeError(
            "The cost is bounded for a cascade without groups, and this certificate is about "
            f"{len(certificate.groups)} of them: certify without groups."
        )
    level = claimed_delta(delta)
    thresholds = certificate.thresholds_for_use()
    if certificate.costs is None:
        raise InvalidValueError(
            "This certificate has no costs, so there is nothing to bound: certify with costs=."
        )
    reading = ReadingOptions.of(rows, data, (), "certified_cost")
    if confidence is None:
        if data is not None:
            raise InvalidTypeError("confidence is missing: name its columns in data.")
        return _from_the_same_rows(certificate, level)
    answered = (
        _answered(confidence, thresholds)
        if data is None
        else _answered_in_files(certificate, data, confidence, reading)
    )
    count = int(answered.sum())
    staying = count - np.cumsum(answered)[:-1]
    tests = max(1, sum(0 < threshold < inf for threshold in thresholds.tolist()))
    shares = binomial_upper(staying, count, delta=bonferroni_level(level, tests))
    return _bound(certificate, shares, answered[:-1], count, level, "fresh")


def _from_the_same_rows(certificate: CascadeCertificate, delta: float) -> CostBound:
    left, n = np.cumsum(certificate.exit_counts), certificate.n
    if certificate.declared is not None:
        level = bonferroni_level(delta, certificate.declared.cells.size)
        shares = binomial_upper(n - left, n, delta=level)
    else:
        level = bonferroni_level(delta, len(certificate.walks) * certificate.exits)
        # A few units in the last place cover the rounding of the root and the sum.
        reach = sqrt(log(1 / level) / (2 * n))
        shares = np.minimum(1.0, ((n - left) / n + reach) * (1 + 1e-14))
    return _bound(certificate, shares, certificate.exit_counts, n, delta, "same")


def _bound(
    certificate: CascadeCertificate,
    shares: Floats,
    exits: Integers,
    rows: int,
    delta: float,
    source: Literal["fresh", "same"],
) -> CostBound:
    """The bound on the cost from those on the shares that have not left by each exit."""
    costs = certificate.costs_in_use or ()
    upper, staying = Fraction(costs[0]), 1.0
    for (cost, next_cost), share, threshold in zip(
        pairwise(costs), shares.tolist(), certificate.thresholds.tolist(), strict=True
    ):
        # No more rows stay than did before, none at the threshold 0, and all where it is +inf.
        staying = staying if threshold == inf else min(staying, share) if threshold > 0 else 0.0
        upper += (Fraction(next_cost) - Fraction(cost)) * Fraction(staying)
    declared = certificate.declared
    return CostBound(
        upper=_float_above(upper),
        observed=total_cost(exits, rows, costs) / rows,
        slow=costs[-1] if declared is None else declared.costs[-1],
        delta=delta,
        # As the numbers are written: 0.05 + 0.01 is 0.060000000000000005 in binary.
        together=float(Decimal(repr(certificate.delta)) + Decimal(repr(delta))),
        rows=rows,
        source=source,
    )


def _answered(confidence: Any, thresholds: Floats) -> Integers:
    """How many rows each model answers, the slow one last."""
    scores = numeric(as_array(confidence, "confidence"), "confidence")
    scores = scores[:, None] if scores.ndim == 1 else scores
    if scores.ndim != 2 or scores.shape[1] != len(thresholds):
        raise InvalidValueError(
            f"confidence has shape {scores.shape}: expected (n, {len(thresholds)}), a score for "
            "every exit of the certificate."
        )
    if not len(scores):
        raise InvalidValueError("confidence has no rows: pass at least one.")
    columns = [checked_scores(column, f"confidence[:, {m}]") for m, column in enumerate(scores.T)]
    return _exits(columns, thresholds)


def _answered_in_files(
    certificate: CascadeCertificate,
    paths: Paths,
    named: Any,
    reading: ReadingOptions,
) -> Integers:
    names = [named] if isinstance(named, str) else list(named)
    if not all(isinstance(name, str) for name in names):
        raise InvalidTypeError(
            "With data, confidence names its columns: expected a text for each exit."
        )
    if len(names) != certificate.exits:
        raise InvalidTypeError(
            f"{len(names)} confidence columns for {certificate.exits} exits: name that of each."
        )
    slots = {name: Slot("number", name, reading.notation.scale) for name in names}
    answered = np.zeros(certificate.exits + 1, dtype=np.int64)

    def count(rows: Rows) -> None:
        answered[:] += _exits([rows.scores(name) for name in names], certificate.thresholds)

    tables = read_rows(paths, slots, count, reading)
    if set(certificate.provenance.sources) & set(tables.fingerprints or ()):
        raise RepeatedSourceError(
            f"{tables.listed}: the certificate was counted from this file, so its scores are not "
            "fresh. Leave it out for a bound from the same rows, or pass other rows."
        )
    if not answered.any():
        raise InvalidValueError(f"{tables.listed}: no rows, and a bound needs at least one.")
    return answered


def _exits(scores: Sequence[Floats], thresholds: Floats) -> Integers:
    """How many rows each model answers, the slow one last, from the scores of each exit."""
    exits = np.full(len(scores[0]), len(thresholds))
    for m in reversed(range(len(thresholds))):
        exits[scores[m] >= thresholds[m]] = m
    return np.bincount(exits, minlength=len(thresholds) + 1)


def _float_above(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else nextafter(nearest, inf)


def _rounded_up(value: float) -> str:
    """A bound in four digits, never below it."""
    upwards = Context(prec=4, rounding=ROUND_CEILING)
    return f"{upwards.create_decimal_from_float(value).normalize():f}"


@dataclass(frozen=True)
class TradeOff:
    """What a cascade does at each of several tolerances.

    Each row holds alone, for an xi chosen beforehand. Where the claim is refused, thresholds are
    +inf and exit rates 0: nothing exits early.

    Attributes
    ----------
    xi : ndarray of shape (k,)
        The tolerances.
    thresholds : ndarray of shape (k, M-1)
        The certified threshold of each exit.
    exit_rates : ndarray of shape (k, M-1)
        The share of the rows that left at each exit; descriptive.
    error_increase : ndarray of shape (k,)
        The accuracy that was lost on these very rows, those without a label counted as losses;
        descriptive.
    cost : ndarray of shape (k,)
        What a row cost on average; NaN if no costs were passed. Descriptive.

    Examples
    --------
    >>> prediction, label = [[1, 1]] * 900 + [[0, 1]] * 100, [1] * 1000
    >>> confidence = [0.9] * 900 + [0.6] * 100
    >>> curve = trade_off(confidence, prediction, label, xi=[0.001, 0.02], delta=0.05)
    >>> curve.thresholds.round(2).tolist(), curve.exit_rates.tolist()
    ([[inf], [0.6]], [[0.0], [0.9]])
    """

    xi: Floats
    thresholds: Floats
    exit_rates: Floats
    error_increase: Floats
    cost: Floats


def trade_off(
    confidence: Any = None,
    prediction: Any = None,
    label: Any = None,
    *,
    xi: Iterable[float],
    delta: float,
    costs: Any = None,
    bound: Bound = "pair",
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> TradeOff:
    """The cascade certified at each of several tolerances; descriptive as a curve.

    Each point holds alone, with probability at least 1 - `delta`, for an `xi` that was chosen
    beforehand. Whoever chooses `xi` by looking at the curve chooses from the data, and then no
    point holds: certify the choice on other rows.

    Parameters
    ----------
    confidence, prediction, label
        As in `certify_cascade`: arrays, or with `data` the names of columns. Rows without a label
        in which predictions differ count as losses.
    xi
        The tolerances, any number of them.
    delta
        The chance that a point is wrong, for each point alone.
    costs
        As in `certify_cascade`. Without them `cost` is NaN.
    bound
        "pair", which answers at once; "exact", which takes its time for each new `xi`; "product".
    data, **rows
        As in `certify_cascade`.

    Returns
    -------
    TradeOff
        A row for each `xi`. Where the claim is refused, thresholds are +inf and exit rates 0.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As from `certify_cascade`.

    Examples
    --------
    >>> prediction, label = [[1, 1]] * 990 + [[0, 1]] * 10, [1] * 1000
    >>> confidence, xi = [0.9] * 500 + [0.6] * 500, [0.01, 0.02, 0.05]
    >>> curve = trade_off(confidence, prediction, label, xi=xi, delta=0.05)
    >>> curve.exit_rates[:, 0]
    array([0.5, 1. , 1. ])
    """
    columns = {"confidence": confidence, "prediction": prediction, "label": label}
    tally = Tally.count(CLAIM.question, data=data, **columns, **rows)
    try:
        tolerances = np.array([tolerated_rate(value) for value in iter(xi)])
    except TypeError as error:
        if isinstance(error, InvalidTypeError):
            raise
        raise InvalidTypeError(
            f"xi={xi!r} is not a list of tolerances: expected several, such as [0.01, 0.02]. For "
            "one use certify_cascade."
        ) from None
    points = [
        certify_cascade(data=tally, xi=float(value), delta=delta, costs=costs, bound=bound)
        for value in tolerances
    ]
    return TradeOff(
        xi=tolerances,
        thresholds=np.array([point.thresholds for point in points]),
        exit_rates=np.array([point.exit_rates for point in points]),
        error_increase=np.array([point.observed_error_increase for point in points]),
        cost=np.array(
            [np.nan if point.expected_cost is None else point.expected_cost for point in points]
        ),
    )
