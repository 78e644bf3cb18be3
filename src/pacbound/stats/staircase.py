"""The chance that a pair of trinomial counts falls under a staircase, computed from above.

Of n independent outcomes b are "+" and c are "-". A staircase is the set {b <= bmax(c)} for a
nondecreasing bmax: the shape of every sensible region for a paired test. The values here are upper
bounds whose excess is below 2e-6 of the level they are compared with (1e-6 of it neglected tails,
the rest a wide allowance for rounding). Nothing here knows what the outcomes mean or how a
staircase is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pacbound.stats.binomial import binomial_sf

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NEGLECTED_SHARE = 1e-6
"""The share of the level that the tails outside the summed window may have; it is added back to
every sum."""

LARGEST_BLOCK = 100_000
"""Terms computed at once: about what a processor's cache holds."""


@dataclass(frozen=True, eq=False)
class Staircase:
    """The boundary of {b <= bmax(min(c, len(bmax) - 1))} as a path of lattice steps, with what
    every law's sum shares.

    Given c, b is binomial with N = n - c trials, and F(c) = P(b <= bmax(c) | c) grows along the
    path by positive terms only,

        F(c+1) = F(c) + q pmf(bmax(c); N-1) + sum of pmf(j; N-1) over bmax(c) < j <= bmax(c+1),

    so that one incomplete beta function at the start of the window and a sum of positive terms give
    every F without cancellation.
    """

    n: int
    bmax: Integers
    first_step: Integers
    step_column: Integers
    step_coefficient: Floats
    step_successes: Floats
    step_failures: Floats
    column_coefficient: Floats

    @classmethod
    def under(cls, bmax: Integers, n: int) -> Staircase:
        """The staircase of a nondecreasing `bmax` that starts at 0 or above."""
        height = bmax[np.minimum(np.arange(n + 1), bmax.size - 1)]
        columns = np.arange(n)
        lengths = np.maximum(np.minimum(height[1:], n - 1 - columns) - height[:-1] + 1, 0)
        first_step = np.concatenate([[0], np.cumsum(lengths)])
        column = np.repeat(columns, lengths)
        offset = np.arange(column.size) - first_step[column]
        b, rest = height[column] + offset, n - 1 - column - height[column] - offset
        logs = gammaln(np.arange(n + 1) + 1.0)
        return cls(
            n=n,
            bmax=height,
            first_step=first_step,
            step_column=column + 1,
            step_coefficient=logs[n - 1 - column] - logs[b] - logs[rest],
            step_successes=(b + (offset == 0)).astype(np.float64),
            step_failures=rest.astype(np.float64),
            column_coefficient=logs[n] - logs - logs[::-1],
        )

    def chance(self, minus: Floats, neither: Floats, *, level: float) -> Floats:
        """Upper bounds on P(b <= bmax(c)), one for each law, tight to within 2e-6 of `level`.

        A law is given by P(-) and P(neither), not by P(+): what is left over may be tiny, and a
        difference would lose its digits.
        """
        # More "-" and less "+" only raise the chance: rounding upwards keeps the logarithms finite
        # and the bound valid.
        minus = np.maximum(minus, 1e-300)
        failure = np.clip(neither / (1.0 - minus) * (1.0 + 1e-15), 1e-300, np.nextafter(1.0, 0.0))
        chances = np.empty(minus.size)
        for laws, start, stop in self._blocks(minus, level):
            chances[laws] = self._window_sum(minus[laws, None], failure[laws, None], start, stop)
        return chances + NEGLECTED_SHARE * level

    def _blocks(self, minus: Floats, level: float) -> Iterator[tuple[slice, int, int]]:
        """Neighbouring laws that share a window of c."""
        spread = window_reach(self.n, minus, level)
        starts, stops = (
            np.maximum(self.n * minus - spread, 0.0),
            np.minimum(self.n * minus + spread, self.n),
        )
        first = 0
        while first < minus.size:
            widest = 1.25 * (stops[first] - starts[first]) + 8.0
            count = max(1, int(LARGEST_BLOCK / (2.0 * widest)))
            fits = np.maximum.accumulate(stops[first : first + count]) - np.minimum.accumulate(
                starts[first : first + count]
            )
            laws = slice(first, first + max(1, int(np.argmin(np.append(fits <= widest, False)))))
            yield laws, floor(starts[laws].min()), ceil(stops[laws].max())
            first = laws.stop

    def _window_sum(self, minus: Floats, failure: Floats, start: int, stop: int) -> Floats:
        """The sum over start <= c <= stop; each term of the path counts for every c that lies
        beyond it.
        """
        c = np.arange(start, stop + 1)
        weights = np.exp(
            self.column_coefficient[start : stop + 1]
            + c * np.log(minus)
            + (self.n - c) * np.log1p(-minus)
        )
        beyond = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        steps = slice(self.first_step[start], self.first_step[stop])
        exponents = self.step_successes[steps] * np.log1p(-failure) + self.step_failures[
            steps
        ] * np.log(failure)
        terms = np.exp(exponents + self.step_coefficient[steps])
        trials = self.n - start
        base: Floats = binomial_sf(trials - self.bmax[start], trials, failure[:, 0])
        total: Floats = base * beyond[:, 0] + np.einsum(
            "ij,ij->i", terms, beyond[:, self.step_column[steps] - start]
        )
        return total


def window_reach(n: int | Floats, minus: Floats, level: float) -> Floats:
    """How far from its mean, to both sides, c is summed under laws with P(-) = `minus`: outside n p
    +- (s sd + s^2/2) lies at most 2 exp(-s^2/2) (Bernstein), which is the neglected share of
    `level`.
    """
    reach = sqrt(2.0 * log(2.0 / (NEGLECTED_SHARE * level)))
    spread: Floats = reach * np.sqrt(n * minus * (1.0 - minus)) + reach**2 / 2.0
    return spread
