"""Bets against a rate: evidence that it has risen, from outcomes as they come, without end.

A bet multiplies its wealth at each outcome by a factor whose mean is at most 1 while the null
holds: P(loss | past) <= xi at *every* step. Two ways to add wealth up give two promises.

**Restarts** (`Restarts`). Bets start with wealth w_s / J at the beginning of every block of 200
labels, s = 0, 1, …, with w_s = 1/((s+1)(s+2)); what is not yet bet is rest_s = 1 - (w_0 + … +
w_{s-1}) = 1/(s+1). The evidence, rest plus the wealth of all bets, starts at 1 and is a nonnegative
supermartingale, because moving wealth from the rest to new bets does not change it. By Ville's
inequality the chance that it ever reaches 1/delta is at most delta.

**Running sums** (`RunningSums`, Shiryaev and Roberts). A bet of 1 starts at every label: M <- (M +
1) f. The mean of the M_j less the number of labels is a supermartingale. With tau the first time at
which it reaches A, optional stopping at min(tau, t) gives A P(tau <= t) <= E min(tau, t) <= t, and
so P(alarm by t) <= t/A; letting t grow, E tau >= A.

Counts, k losses of m labels in an unknown order, are one factor, and the evidence is looked at
after all of them: the null then bounds the mean of the product by 1 given what was known before,
provided that m was. To put the losses into some order would not: "losses last" rings falsely.

A graded outcome lies between two, and its factor on the line between theirs: 1 + l (loss - xi) is
linear in the loss, so its mean is at most 1 for every law of losses from 0 to 1 whose mean is at
most xi, and for differences from -1 to 1 likewise. No coin is tossed.

Numbers. Ordered outcomes are multiplied in one at a time by elementwise operations that IEEE 754
rounds in one way, in one order, so that labels in whatever parts they come leave the same bits.
Each factor is lowered by 2^-40 of itself. This is more than rounding can add to a product: at most
eight roundings of 2^-53 for a label of `Restarts`, and 2^-43 for a whole block of `RunningSums`; so
the evidence is never above that of exact arithmetic. Wealth that underflows is lost, which only
lowers it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pacbound.errors import InvalidValueError

Floats = NDArray[np.float64]

# The rates that are bet on, as multiples of the one that is allowed.
RISES: Final = (1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 2.7, 4.0, 7.0, 12.0, 25.0)

# The shares of wealth that are bet on a difference in {-1, 0, 1}.
STAKES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.95)

# Labels from one restart to the next.
BLOCK: Final = 200

_LOWERED: Final = 1.0 - 2.0**-40
# What counts may raise wealth to: the sum over bets is still finite, and above any limit.
_LARGEST: Final = 1e306
# Products within a block of running sums stay above exp(-600): their inverses are added up.
_FAR: Final = 600.0


@dataclass(frozen=True)
class Bets:
    """Several bets on one stream of outcomes.

    Attributes
    ----------
    factors : ndarray of shape (outcomes, bets)
        What each outcome does to the wealth of each bet. Under the null the mean over the outcomes
        is at most 1, whatever came before.
    weights : ndarray of shape (bets,)
        The shares that the bets start with; they add up to 1.
    block : int
        Labels from one restart to the next.

    Examples
    --------
    >>> bets = loss_bets(0.02)
    >>> bets.factors.shape, bool(bets.factors[1, 5].round(6) == 2.0)
    ((2, 11), True)
    """

    factors: Floats
    weights: Floats
    block: int = BLOCK

    @cached_property
    def logs(self) -> Floats:
        """The logarithms of the factors, for counts."""
        return np.log(self.factors)

    @cached_property
    def span(self) -> int:
        """Labels whose product of factors keeps away from the ends of what floats hold."""
        return max(1, min(self.block, int(_FAR / max(1e-9, -float(self.logs.min())))))

    def at(self, outcomes: NDArray[Any]) -> Floats:
        """The factors of each outcome; of one that lies between two, on the line between theirs.

        Examples
        --------
        >>> loss_bets(0.05).at(np.array([1.0, 0.25, 0.0]))[:, 5].round(7).tolist()
        [2.0, 1.2105263, 0.9473684]
        """
        if outcomes.dtype.kind != "f":
            return np.asarray(self.factors[outcomes])
        below = np.floor(outcomes)
        low, above = below.astype(np.int64), np.ceil(outcomes).astype(np.int64)
        rise = self.factors[above] - self.factors[low]
        return np.asarray(self.factors[low] + (outcomes - below)[:, None] * rise)

    def factor_of(self, counts: Sequence[int]) -> Floats:
        """The one factor of a batch in which each outcome came so many times."""
        exponents = (
            sum(n * log for n, log in zip(counts, column, strict=True))
            for column in self.logs.T.tolist()
        )
        return np.array([math.exp(min(exponent, 700.0)) for exponent in exponents])


def loss_bets(xi: float) -> Bets | None:
    """Bets that losses, outcome 1 of 0 and 1, come at a rate above `xi`.

    The factors theta/xi and (1 - theta)/(1 - xi) have mean 1 at the rate xi and less below it.

    Parameters
    ----------
    xi
        The rate that is allowed, 0 < xi <= 1.

    Returns
    -------
    Bets or None
        None if `xi` is so near 1 that no rate of the list lies above it.

    Raises
    ------
    InvalidValueError
        If `xi` is 0: then a single loss refutes it, and no bet can be made.

    Examples
    --------
    >>> loss_bets(0.5).factors.shape, loss_bets(0.99) is None
    ((2, 5), True)
    """
    _refuse_zero(xi)
    rates = np.array([xi * rise for rise in RISES if xi * rise < 1.0])
    if not rates.size:
        return None
    factors = np.stack([(1.0 - rates) / (1.0 - xi), rates / xi])
    return Bets(factors * _LOWERED, np.full(rates.size, 1.0 / rates.size))


def difference_bets(xi: float) -> Bets:
    """Bets that differences in -1, 0, 1, as outcomes 0, 1, 2, have a mean above `xi`.

    The factors 1 + l (D - xi) have mean at most 1 where D has mean at most xi, and are positive
    because l (1 + xi) < 1.

    Parameters
    ----------
    xi
        The mean that is allowed, 0 < xi < 1.

    Returns
    -------
    Bets
        The bets.

    Raises
    ------
    InvalidValueError
        If `xi` is 0: a difference of 0 then brings no evidence, and healthy rows bring nothing but
        such.

    Examples
    --------
    >>> difference_bets(0.02).factors.shape
    (3, 8)
    """
    _refuse_zero(xi)
    stakes = np.array(STAKES) / (1.0 + xi)
    factors = 1.0 + stakes * (np.array([[-1.0], [0.0], [1.0]]) - xi)
    return Bets(factors * _LOWERED, np.full(stakes.size, 1.0 / stakes.size))


def joined(parts: Sequence[Bets]) -> Bets:
    """The average of bets on the same outcomes, with equal shares.

    Parameters
    ----------
    parts
        At least one; all on the same outcomes.

    Returns
    -------
    Bets
        All of them.

    Examples
    --------
    >>> both = joined([loss_bets(0.1), loss_bets(0.2)])
    >>> both.factors.shape, round(float(both.weights.sum()), 12)
    ((2, 17), 1.0)
    """
    return Bets(
        np.hstack([part.factors for part in parts]),
        np.concatenate([part.weights / len(parts) for part in parts]),
        parts[0].block,
    )


@dataclass(frozen=True)
class Restarts:
    """The wealth of bets that restart in every block; see the top of this file.

    Attributes
    ----------
    restarts : int
        How many times bets have started.
    position : int
        Labels since the last restart; 0 if the next label begins a block.
    wealth : ndarray of shape (bets,)
        What the bets of all restarts have become.

    Examples
    --------
    >>> bets = loss_bets(0.02)
    >>> wealth, evidence = Restarts.fresh(bets).after(bets, np.array([0, 0, 1]))
    >>> evidence.round(4).tolist(), wealth.restarts, wealth.position
    ([0.9555, 0.9251, 2.0137], 1, 3)
    """

    restarts: int
    position: int
    wealth: Floats

    @classmethod
    def fresh(cls, bets: Bets) -> Self:
        """Before the first label."""
        return cls(0, 0, np.zeros(bets.weights.size))

    def evidence(self, bets: Bets) -> float:  # noqa: ARG002 - as that of running sums
        """What is not yet bet, and what the bets have become: 1 at the start."""
        return float(1.0 / (self.restarts + 1) + np.add.accumulate(self.wealth)[-1])

    def after(self, bets: Bets, outcomes: NDArray[Any]) -> tuple[Self, Floats]:
        """The wealth after outcomes in order, and the evidence after each of them."""
        now, evidence, done = self, np.empty(outcomes.size), 0
        with np.errstate(over="ignore", under="ignore"):
            while done < outcomes.size:
                now = now._begun(bets)
                part = outcomes[done : done + bets.block - now.position]
                path = np.multiply.accumulate(
                    np.concatenate([now.wealth[None], bets.at(part)]), axis=0
                )[1:]
                evidence[done : done + part.size] = (
                    1.0 / (now.restarts + 1) + np.add.accumulate(path, axis=1)[:, -1]
                )
                position = (now.position + part.size) % bets.block
                now = type(self)(now.restarts, position, path[-1].copy())
                done += part.size
        return now, evidence

    def after_counts(self, bets: Bets, counts: Sequence[int]) -> Self:
        """The wealth after a batch whose outcomes came so many times each, in unknown order."""
        rows = sum(counts)
        if not rows:
            return self
        begun = self._begun(bets)
        with np.errstate(over="ignore", under="ignore"):
            wealth = np.minimum(begun.wealth * bets.factor_of(counts), _LARGEST)
        position = begun.position + rows
        return type(self)(begun.restarts, 0 if position >= bets.block else position, wealth)

    def _begun(self, bets: Bets) -> Self:
        """With new bets, if a block begins."""
        if self.position:
            return self
        share = 1.0 / ((self.restarts + 1.0) * (self.restarts + 2.0))
        return type(self)(self.restarts + 1, 0, self.wealth + share * bets.weights)


@dataclass(frozen=True)
class RunningSums:
    """The wealth of bets of 1 that start at every label; see the top of this file.

    Within a stretch of labels M = P S, where P is the product of its factors, and S is M at its
    beginning and the sum of the inverses of P before each label. It is the same number as by M <-
    (M + 1) f, and many labels are taken at once.

    Attributes
    ----------
    position : int
        Labels since the stretch began.
    product, total : ndarray of shape (bets,)
        P and S.

    Examples
    --------
    >>> bets = loss_bets(0.02)
    >>> sums, evidence = RunningSums.fresh(bets).after(bets, np.array([0, 0, 1]))
    >>> evidence.round(4).tolist(), sums.position
    ([0.9109, 1.7611, 12.2808], 3)
    """

    position: int
    product: Floats
    total: Floats

    @classmethod
    def fresh(cls, bets: Bets) -> Self:
        """Before the first label, and after an alarm."""
        return cls(0, np.ones(bets.weights.size), np.zeros(bets.weights.size))

    def evidence(self, bets: Bets) -> float:
        """The mean of the M_j: 0 at the start."""
        return float(np.add.accumulate(self.product * self.total * bets.weights)[-1])

    def after(self, bets: Bets, outcomes: NDArray[Any]) -> tuple[Self, Floats]:
        """The wealth after outcomes in order, and the evidence after each of them."""
        now, evidence, done = self, np.empty(outcomes.size), 0
        with np.errstate(over="ignore", under="ignore"):
            while done < outcomes.size:
                part = outcomes[done : done + bets.span - now.position]
                products = np.multiply.accumulate(
                    np.concatenate([now.product[None], bets.at(part)]), axis=0
                )
                totals = np.add.accumulate(
                    np.concatenate([now.total[None], 1.0 / products[:-1]]), axis=0
                )[1:]
                products = products[1:]
                evidence[done : done + part.size] = np.add.accumulate(
                    products * totals * bets.weights, axis=1
                )[:, -1]
                now = type(self)(now.position + part.size, products[-1].copy(), totals[-1].copy())
                if now.position == bets.span:
                    now = now._folded()
                done += part.size
        return now, evidence

    def after_counts(self, bets: Bets, counts: Sequence[int]) -> Self:
        """The wealth after a batch whose outcomes came so many times each, in unknown order."""
        rows = sum(counts)
        if not rows:
            return self
        with np.errstate(over="ignore", under="ignore"):
            reached = (self._folded().total + rows) * bets.factor_of(counts)
        return type(self)(0, np.ones(reached.size), np.minimum(reached, _LARGEST))

    def _folded(self) -> Self:
        """The same M, at the beginning of a stretch."""
        return type(self)(0, np.ones(self.product.size), self.product * self.total)


def _refuse_zero(xi: float) -> None:
    if not xi > 0.0:
        raise InvalidValueError(
            f"xi={xi} leaves no room to bet: a monitor needs a rate above 0 that is allowed. Where "
            "nothing may be lost, the first loss refutes it. Certify with a small xi to monitor it."
        )
