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

*Money* is an estimate: what the requests of some rows cost, by the cascade and by its slow model,
where each request has costs of its own. No part of any guarantee.

What other tolerances would cost is descriptive: each point of the curve of `trade_off` holds alone,
for an xi that was chosen beforehand. Choosing xi by looking at the curve is choosing from the data,
and no point then holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import inf, log, nextafter, sqrt
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from pacbound.cascade.rows import ReadingOptions, RowsRead, read_rows
from pacbound.claims.cascade import CascadeCertificate, certify_cascade
from pacbound.claims.cascade.claim import CLAIM
from pacbound.claims.certificate import certificate_of
from pacbound.errors import InvalidTypeError, InvalidValueError, RepeatedSourceError
from pacbound.procedures.cascade import Bound
from pacbound.procedures.cascade_paths import total_cost
from pacbound.says import exact, likelihood
from pacbound.stats.arguments import claimed_delta, real_numbers, tolerated_rate, whole_number
from pacbound.stats.binomial import binomial_upper, bonferroni_level
from pacbound.tally.columns import Rows, Slot, as_array, numeric, same_length
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
    certificate = _of_one_cascade(certificate)
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
    answered = np.zeros(certificate.exits + 1, dtype=np.int64)

    def count_exits(part: Rows) -> None:
        answered[:] += _exits(_scores(part, thresholds), thresholds)

    columns = {"confidence": (confidence, certificate.exits)}
    tables = _take_rows(columns, data, reading, count_exits)
    if tables is not None and {*certificate.provenance.sources} & {*tables.fingerprints}:
        raise RepeatedSourceError(
            f"{tables.listed}: the certificate was counted from this file, so its scores are not "
            "fresh. Leave it out for a bound from the same rows, or pass other rows."
        )
    count = int(answered.sum())
    if not count:
        where = "confidence" if tables is None else tables.listed
        raise InvalidValueError(f"{where}: no rows, and a bound needs at least one.")
    staying = count - np.cumsum(answered)[:-1]
    tests = max(1, sum(0 < threshold < inf for threshold in thresholds.tolist()))
    shares = binomial_upper(staying, count, delta=bonferroni_level(level, tests))
    return _bound(certificate, shares, answered[:-1], count, level, "fresh")


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
class CascadeCost:
    """What a request costs on average, by a cascade and by its slow model: an estimate, and no part
    of a guarantee. `certified_cost` has a bound.

    Attributes
    ----------
    mean : float
        What a request cost on average, by the cascade.
    slow : float
        What it would have cost by the slow model.
    rows : int
        How many requests that is from.
    currency : str
        What costs are in, such as "EUR"; empty if nobody said.
    requests : int or None
        How many requests come in a month, if somebody said.

    Examples
    --------
    >>> print(CascadeCost(0.0042, 0.0166, 5000, "EUR", 100_000))
    A request costs about 0.0042 EUR on average, and 0.0166 EUR by the slow model.
    That saves about 1,240 EUR a month at 100,000 requests (75 %).
    This is an estimate from 5,000 requests, and no part of the guarantee.
    """

    mean: float
    slow: float
    rows: int
    currency: str = ""
    requests: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.currency, str):
            raise InvalidTypeError.of("currency", self.currency, "a text such as 'EUR'")
        if self.requests is not None:
            whole_number(self.requests, "requests", least=1)

    @property
    def saved(self) -> float:
        """The share of the slow model's cost that is saved; below 0 if the cascade costs more."""
        return 1 - self.mean / self.slow if self.slow else 0.0

    @property
    def saved_a_month(self) -> float | None:
        """What is saved a month at this number of requests; None without one."""
        return None if self.requests is None else (self.slow - self.mean) * self.requests

    def __str__(self) -> str:
        unit = f" {self.currency}" if self.currency else ""
        month, share = self.saved_a_month, f"{abs(self.saved):.0%}".replace("%", " %")
        does = "saves" if self.mean <= self.slow else "costs"
        more = "" if self.mean <= self.slow else " more"
        much = (
            f"{share}{more}"
            if month is None
            else f"about {_about(abs(month))}{unit}{more} a month at {self.requests:,} requests "
            f"({share})"
        )
        return (
            f"A request costs about {_about(self.mean)}{unit} on average, and "
            f"{_about(self.slow)}{unit} by the slow model.\nThat {does} {much}.\n"
            f"This is an estimate from {self.rows:,} requests, and no part of the guarantee."
        )


def estimated_cost(
    certificate: CascadeCertificate | str | os.PathLike[str],
    confidence: Any,
    cost: Any = None,
    *,
    tokens: Any = None,
    price: Any = None,
    currency: str = "",
    requests: int | None = None,
    data: Any = None,
    **rows: Unpack[RowOptions],
) -> CascadeCost:
    """What the requests of some rows cost by a certified cascade, and by its slow model, where each
    request has costs of its own: an estimate, and no part of the guarantee.

    Each model that a request is passed through is paid. The rows should be like those in use; they
    need no labels. Those that certified the cascade will do, with an estimate that is a little too
    good: they chose the thresholds.

    Parameters
    ----------
    certificate
        A cascade certificate without groups. It needs no costs. A refused one never exits. One read
        from a file is verified first.
    confidence
        (n, M-1) scores of the exits in their order, or (n,) for one exit; with `data`, the names of
        their columns.
    cost
        (n, M) numbers from 0 on: what each model by itself costs on each request, the slow one
        last.
    tokens
        In place of `cost`, (n, 2 M) numbers: the tokens that go into a model and those that come
        out, in this order for every model.
    price
        With `tokens`, 2 M numbers: what a million of each costs.
    currency
        What costs are in, for people: "EUR".
    requests
        How many requests come in a month, to say what is saved.
    data
        The paths of files.
    **rows
        How files are read, see `RowOptions`: `progress`, `delimiter`, `decimal` and `scale`.

    Returns
    -------
    CascadeCost
        The mean cost of a request, that of the slow model, and what is saved.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If columns are missing, too many or too few, a cost or a price is not a number from 0 on, or
        the certificate is not of a cascade without groups.

    Examples
    --------
    >>> from pacbound import certify_cascade
    >>> confidence, answers = [0.9] * 900 + [0.4] * 100, [[1, 1]] * 900 + [[0, 1]] * 100
    >>> certificate = certify_cascade(confidence, answers, [1] * 1000, xi=0.02, delta=0.01)
    >>> tokens = [[800, 50, 800, 200]] * 1000
    >>> print(estimated_cost(
    ...     certificate, confidence, tokens=tokens, price=[0.15, 0.6, 2.5, 10],
    ...     currency="EUR", requests=100_000,
    ... ))
    A request costs about 0.00055 EUR on average, and 0.004 EUR by the slow model.
    That saves about 345 EUR a month at 100,000 requests (86 %).
    This is an estimate from 1,000 requests, and no part of the guarantee.
    """
    certificate = _of_one_cascade(certificate)
    thresholds = certificate.thresholds_for_use()
    prices = _prices(cost, tokens, price, len(thresholds) + 1)
    reading = ReadingOptions.of(rows, data, (), "estimated_cost")
    role, given = ("cost", cost) if tokens is None else ("tokens", tokens)
    spent = np.zeros(3)

    def spend(part: Rows) -> None:
        amounts = [_amounts(part, f"{role} {k}") * each for k, each in enumerate(prices)]
        costs = amounts if tokens is None else list(map(np.add, amounts[::2], amounts[1::2]))
        by_cascade = _spent(_scores(part, thresholds), costs, thresholds)
        spent[:] += by_cascade, costs[-1].sum(), len(part)

    columns = {"confidence": (confidence, len(thresholds)), role: (given, len(prices))}
    _take_rows(columns, data, reading, spend)
    if not spent[2]:
        raise InvalidValueError("There are no rows, and an estimate needs at least one.")
    mean, slow = (spent[:2] / spent[2]).tolist()
    return CascadeCost(mean, slow, int(spent[2]), currency, requests)


def _prices(cost: Any, tokens: Any, price: Any, models: int) -> list[float]:
    """What one of each amount costs: of a cost 1, of a token its price."""
    if (cost is None) == (tokens is None) or (tokens is None) != (price is None):
        raise InvalidTypeError(
            "Pass cost, what each model costs on each request, or tokens with their price."
        )
    if tokens is None:
        return [1.0] * models
    prices = real_numbers(price, "price", "the price of a million tokens")
    if len(prices) != 2 * models or not all(0 <= each < inf for each in prices):
        raise InvalidValueError(
            f"price={price!r} is not that of {models} models: expected {2 * models} numbers from "
            "0 on, for every model what a million tokens in cost, and a million out."
        )
    return [each / 1e6 for each in prices]


def _take_rows(
    columns: Mapping[str, tuple[Any, int]],
    data: Any,
    reading: ReadingOptions,
    take: Callable[[Rows], None],
) -> RowsRead | None:
    """Give rows to `take`, from arrays or from files: of each role what was passed, which has so
    many columns. The slot of a column is its role and its place.
    """
    slots, arrays = dict[str, Slot](), list[NDArray[Any]]()
    for role, (given, count) in columns.items():
        if data is None:
            arrays += list(_as_table(given, role).T)
            names = [f"{role}[:, {place}]" for place in range(len(arrays) - len(slots))]
        else:
            names = [given] if isinstance(given, str) else list(given)
            if not all(isinstance(name, str) for name in names):
                raise InvalidTypeError(f"With data, {role} names its columns: expected texts.")
        if len(names) != count:
            what = {"confidence": "one of each exit", "cost": "one of each model"}.get(
                role, "tokens in and tokens out of each model"
            )
            raise InvalidValueError(f"{role} has {len(names)} columns: expected {count}, {what}.")
        scale = reading.notation.scale if role == "confidence" else None
        slots |= {f"{role} {k}": Slot("number", name, scale) for k, name in enumerate(names)}
    if data is not None:
        return read_rows(data, slots, take, reading)
    taken = dict(zip(slots, arrays, strict=True))
    same_length(**{role: taken[f"{role} 0"] for role in columns})
    take(Rows.of_arrays(slots, taken))
    return None


def _scores(rows: Rows, thresholds: Floats) -> list[Floats]:
    """The scores of each exit."""
    return [rows.scores(f"confidence {m}") for m in range(len(thresholds))]


def _as_table(given: Any, role: str) -> NDArray[Any]:
    table = numeric(as_array(given, role), role)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2:
        raise InvalidValueError(f"{role} has shape {table.shape}: expected rows and columns.")
    return table


def _amounts(rows: Rows, slot: str) -> Floats:
    """Costs or tokens; raises if one is negative or not a number."""
    amounts = rows.numbers(slot).astype(np.float64)
    bad = np.flatnonzero(~((amounts >= 0) & (amounts < inf)))
    if bad.size:
        raise InvalidValueError(
            f"{rows.name(slot)}[{rows.start + bad[0]}] is {amounts[bad[0]]} ({bad.size} such "
            "values): expected a number from 0 on. An estimate needs what every model costs on "
            "every row, the slow one too: leave out other rows, whatever their scores are."
        )
    return amounts


def _spent(scores: Sequence[Floats], costs: Sequence[Floats], thresholds: Floats) -> float:
    """What a cascade spends on some rows: every model that a row reaches is paid."""
    left, total = np.ones(len(costs[0]), dtype=bool), 0.0
    for score, cost, threshold in zip(scores, costs, thresholds.tolist(), strict=False):
        # A model that never answers is not asked.
        if threshold < inf:
            total += float(cost[left].sum())
            left &= score < threshold
    return total + float(costs[-1][left].sum())


def _about(value: float) -> str:
    """An amount in three digits, with commas."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:.3g}"


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
