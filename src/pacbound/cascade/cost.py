"""What a cascade will cost: an upper bound on the mean cost of a row, with its own failure
probability.

A row costs C_1, and C_{m+1} - C_m more if it has not left by exit m, so the mean cost is

    C_1 + sum over m of (C_{m+1} - C_m) P(not left by m),

and upper bounds on these probabilities give one on the cost. The thresholds were fixed before the
scores are seen, so the rows that have not left by m are binomial: Clopper-Pearson at delta over the
number of exits. An exit at the threshold 0 leaves no row, surely, and one at +inf is not asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import inf, nextafter
from typing import Any, Unpack

import numpy as np

from pacbound.cascade.rows import ReadingOptions, RowsRead, read_rows
from pacbound.claims.cascade import CascadeCertificate
from pacbound.claims.certificate import certificate_of
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.procedures.cascade import total_cost
from pacbound.says import exact, likelihood
from pacbound.stats.arguments import claimed_delta
from pacbound.stats.binomial import binomial_upper, bonferroni_level
from pacbound.tally.columns import Floats, Integers, Rows, Slot, as_array, numeric
from pacbound.tally.row_options import RowOptions


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

    Examples
    --------
    >>> bound = CostBound(3.125, 3.0, 10.0, 0.01, 0.02, 5000)
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

    def __str__(self) -> str:
        together = likelihood(self.together) if self.together < 1 else "0"
        return (
            f"With probability at least {likelihood(self.delta)} a row costs at most "
            f"{_rounded_up(self.upper)} on average; the slow model takes {exact(self.slow)}.\n"
            f"That is from {self.rows:,} fresh rows, which cost {self.observed:.4g} on average "
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

    The scores must be fresh: independent draws from the data the model will meet in use, which had
    no part in the certificate, neither in its fold nor in its counts, and as many as were fixed
    before they are seen. They need no labels. The bound is about the costs that the certificate
    holds, and together with its claim it holds with probability at least 1 - (delta of the
    certificate + `delta`). Ask once: the better of two bounds has two chances to be wrong.

    Parameters
    ----------
    certificate
        A cascade certificate with costs. A refused one never exits, and costs what the slow model
        costs. One read from a file is verified first.
    confidence
        (n, M-1) fresh scores of the exits in their order, or (n,) for one exit; with `data`, the
        names of their columns.
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
    >>> fresh = np.random.default_rng(0).choice(confidence, size=100_000)
    >>> round(certified_cost(certificate, fresh, delta=0.01).upper, 2)
    3.03
    """
    certificate = _of_one_cascade(certificate)
    level = claimed_delta(delta)
    thresholds = certificate.thresholds_for_use()
    if certificate.costs is None:
        raise InvalidValueError(
            "This certificate has no costs, so there is nothing to bound: certify with costs=."
        )
    reading = ReadingOptions.of(rows, data, (), "certified_cost")
    if confidence is None:
        column = certificate.provenance.columns.get("confidence")
        named = "" if column is None else f", in the certificate the column {column}"
        raise InvalidTypeError(
            "confidence is missing: pass the scores of fresh rows, which had no part in the "
            f"certificate and need no labels (confidence{named})."
        )
    scale = certificate.scale_of(reading.notation.scale)
    if data is None:
        certificate.require_plain_scores()
    reading = replace(reading, notation=replace(reading.notation, scale=scale))
    answered = np.zeros(certificate.exits + 1, dtype=np.int64)

    def count_exits(part: Rows) -> None:
        scores = [part.scores(f"confidence {m}") for m in range(len(thresholds))]
        answered[:] += _exits(scores, thresholds)

    tables = _take_rows(confidence, certificate.exits, data, reading, count_exits)
    if tables is not None and {*certificate.provenance.sources} & {*tables.fingerprints}:
        raise RepeatedSourceError(
            f"{tables.listed}: the certificate was counted from this file, so its scores are not "
            "fresh. Pass other rows."
        )
    count = int(answered.sum())
    if not count:
        where = "confidence" if tables is None else tables.listed
        raise InvalidValueError(f"{where}: no rows, and a bound needs at least one.")
    staying = count - np.cumsum(answered)[:-1]
    tests = max(1, sum(0 < threshold < inf for threshold in thresholds.tolist()))
    shares = binomial_upper(staying, count, delta=bonferroni_level(level, tests))
    return _bound(certificate, shares, answered[:-1], count, level)


def _of_one_cascade(given: Any) -> CascadeCertificate:
    """A certificate of a cascade without groups."""
    certificate = certificate_of(given)
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
    return certificate


def _bound(
    certificate: CascadeCertificate, shares: Floats, exits: Integers, rows: int, delta: float
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
    nearest = float(upper)
    return CostBound(
        upper=nearest if Fraction(nearest) >= upper else nextafter(nearest, inf),
        observed=total_cost(exits, rows, costs) / rows,
        slow=costs[-1] if declared is None else declared.costs[-1],
        delta=delta,
        # As the numbers are written: 0.05 + 0.01 is 0.060000000000000005 in binary.
        together=float(Decimal(repr(certificate.delta)) + Decimal(repr(delta))),
        rows=rows,
    )


def _exits(scores: Sequence[Floats], thresholds: Floats) -> Integers:
    """How many rows each model answers, the slow one last, from the scores of each exit."""
    exits = np.full(len(scores[0]), len(thresholds))
    for m in reversed(range(len(thresholds))):
        exits[scores[m] >= thresholds[m]] = m
    return np.bincount(exits, minlength=len(thresholds) + 1)


def _rounded_up(value: float) -> str:
    """A bound in four digits, never below it."""
    upwards = Context(prec=4, rounding=ROUND_CEILING)
    return f"{upwards.create_decimal_from_float(value).normalize():f}"


def _take_rows(
    confidence: Any, exits: int, data: Any, reading: ReadingOptions, take: Callable[[Rows], None]
) -> RowsRead | None:
    """Give the scores of each exit to `take`, from arrays or from files."""
    columns: list[Any] = []
    if data is None:
        table = numeric(as_array(confidence, "confidence"), "confidence")
        if table.ndim not in (1, 2):
            raise InvalidValueError(
                f"confidence has shape {table.shape}: expected rows and columns."
            )
        columns = list(table.T) if table.ndim == 2 else [table]
    names = [f"confidence[:, {place}]" for place in range(len(columns))]
    if data is not None:
        names = [confidence] if isinstance(confidence, str) else list(confidence)
        if not all(isinstance(name, str) for name in names):
            raise InvalidTypeError("With data, confidence names its columns: expected texts.")
    if len(names) != exits:
        raise InvalidValueError(
            f"confidence has {len(names)} columns: expected {exits}, one of each exit."
        )
    slots = {
        f"confidence {m}": Slot("number", name, reading.notation.scale)
        for m, name in enumerate(names)
    }
    if data is not None:
        return read_rows(data, slots, take, reading)
    take(Rows.of_arrays(slots, dict(zip(slots, columns, strict=True))))
    return None
