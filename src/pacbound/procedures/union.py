"""Several claims at once: each has a share of delta, and all hold together.

If claim i is wrong with probability at most delta_i, then some claim is wrong with probability at
most the sum of all delta_i, however much the claims depend on each other: they may speak of the
same rows. The shares must be fixed before the rows are looked at. Sums are those of the decimal
numbers as they are written, so that three times 0.1 is 0.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import nextafter

NAME = "bundle/union-bound/1"


def total(deltas: Iterable[float]) -> Fraction:
    """The sum of failure probabilities as they are written."""
    return sum((written(delta) for delta in deltas), Fraction(0))


def written(delta: float) -> Fraction:
    """The decimal number that a float is written as."""
    return Fraction(Decimal(repr(float(delta))))


def shares(delta: float, weights: Sequence[float]) -> tuple[float, ...]:
    """`delta` shared out in proportion to `weights`, each share rounded down."""
    whole = sum(map(Fraction, weights))
    found = []
    for weight in weights:
        exact = written(delta) * Fraction(weight) / whole
        share = float(exact)
        while written(share) > exact:
            share = nextafter(share, 0.0)
        found.append(share)
    return tuple(found)
