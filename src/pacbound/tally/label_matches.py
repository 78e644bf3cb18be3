"""Whether labels belong to the rows that they stand beside: do they have anything to do with what
the slow model predicts?

A cascade loses nothing on rows where no model is right. With the labels of other rows (a column
that was sorted apart, or moved by a row) both models are right equally often, and every threshold
passes. Where labels are there also for rows on which all models agree, that can be seen: the slow
model and the labels match no more often than a random order of the labels would make them.

Which rows are looked at: all, if all have a label; else those with a label on which the models
agree. Rows on which they differ may have been chosen to be labelled, and a slow model may well be
wrong on half of these. A tally keeps the counts, so that parts can be judged together. It knows
classes by 16 digits of their SHA-256.

How surprising so many matches are, if the columns had nothing to do with each other, is judged with
both margins fixed: each column keeps its values, and one is put into a random order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pacbound.documents import Json
from pacbound.errors import InvalidValueError

Triple = tuple[int, int, int]
Verdict = Literal["related", "unrelated", "too few to tell"]

# The chance that labels in a random order pass for labels of these rows.
LEVEL: Final = 1e-6

_DIGITS: Final = 16


@dataclass(frozen=True)
class LabelMatches:
    """Over rows with a label, by the class: how often the slow model predicts it, how often it is
    the label, and how often both at once.

    `agreeing` counts the rows on which all models agree, and `differing` the others. `insisted`
    says that the user counts these labels whatever they look like.
    """

    agreeing: Mapping[str, Triple] = field(default_factory=dict)
    differing: Mapping[str, Triple] = field(default_factory=dict)
    insisted: bool = False

    @classmethod
    def of(
        cls,
        agreeing: Mapping[int | str, Triple],
        differing: Mapping[int | str, Triple],
        *,
        insisted: bool = False,
    ) -> Self:
        """The counts by class, which are known by a hash from now on."""
        alike, unlike = (
            {_name(found): triple for found, triple in side.items()}
            for side in (agreeing, differing)
        )
        return cls(alike, unlike, insisted)

    def __add__(self, other: LabelMatches) -> LabelMatches:
        return LabelMatches(
            _added(self.agreeing, other.agreeing),
            _added(self.differing, other.differing),
            self.insisted or other.insisted,
        )

    @property
    def labelled(self) -> int:
        """How many rows have a label."""
        return sum(
            triple[1] for side in (self.agreeing, self.differing) for triple in side.values()
        )

    def verdict(self, rows: int) -> Verdict | None:
        """What the labels of `rows` rows, with and without one, look like; None if none of those on
        which the models agree has one.
        """
        if not self.agreeing:
            return None
        looked_at = self._looked_at(rows)
        one, other, both = np.array(list(looked_at.values()), dtype=np.int64).T
        if log_chance_of_matches(one, other, both) <= log(LEVEL):
            return "related"
        best = log_chance_of_matches(one, other, most_matches(one, other))
        return "unrelated" if best <= log(LEVEL) else "too few to tell"

    def require_related(
        self,
        rows: int,
        labels: str = "label",
        slow: str | None = None,
        reference: str = "slow model",
    ) -> None:
        """Raise if labels look like those of other rows; the columns are called `labels` and
        `slow`, and this model is the `reference`.
        """
        if self.insisted or self.verdict(rows) != "unrelated":
            return
        looked_at = self._looked_at(rows)
        seen, matching = (sum(triple[place] for triple in looked_at.values()) for place in (1, 2))
        by_chance = sum(a * b for a, b, _ in looked_at.values()) / seen
        model = f"the {reference}" if slow is None else f"the {reference} ({slow})"
        which = "" if self.labelled == rows else " on which all models agree"
        raise InvalidValueError(
            f"{labels} and {model} match in {matching:,} of {seen:,} rows with a label{which}; in "
            f"a random order they would in about {by_chance:,.0f}. So these are probably the "
            "labels of other rows, or name other classes, and hide what is lost. Check that labels "
            f"and predictions were joined by an id and that the {reference} is named where it "
            "belongs. If they are right, pass unrelated_labels=True (--unrelated-labels)."
        )

    def _looked_at(self, rows: int) -> Mapping[str, Triple]:
        complete = self.labelled == rows
        return _added(self.agreeing, self.differing) if complete else self.agreeing

    def to_dict(self) -> dict[str, Json]:
        """The counts as a tally's document holds them."""
        return {
            "agreeing": [[name, *self.agreeing[name]] for name in sorted(self.agreeing)],
            "differing": [[name, *self.differing[name]] for name in sorted(self.differing)],
            "insisted": self.insisted,
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """The counts that a tally's document holds; what cannot be such counts raises `TypeError`,
        `KeyError` or `ValueError`.
        """
        if set(document) != {"agreeing", "differing", "insisted"}:
            raise ValueError("label_matches has other keys than agreeing, differing and insisted")
        if type(document["insisted"]) is not bool:
            raise TypeError("label_matches.insisted is not true or false")
        agreeing, differing = (_read(document[side], side) for side in ("agreeing", "differing"))
        return cls(agreeing, differing, document["insisted"])


def _read(rows: Any, side: str) -> dict[str, Triple]:
    table: dict[str, Triple] = {}
    for name, *counts in rows:
        if type(name) is not str or len(name) != _DIGITS or name in table:
            raise ValueError(f"label_matches.{side} has a class that is not named, or twice")
        if len(counts) != 3 or any(type(count) is not int or count < 0 for count in counts):
            raise TypeError(f"label_matches.{side} has other than three counts of a class")
        one, other, both = counts
        if both > min(one, other) or not one + other:
            raise ValueError(f"label_matches.{side} has more matches than rows of a class")
        table[name] = one, other, both
    if sum(triple[0] - triple[1] for triple in table.values()):
        raise ValueError(f"label_matches.{side} has more predictions than labels, or fewer")
    return table


def _added(one: Mapping[str, Triple], other: Mapping[str, Triple]) -> dict[str, Triple]:
    found = dict(one)
    for name, (a, b, both) in other.items():
        x, y, z = found.get(name, (0, 0, 0))
        found[name] = a + x, b + y, both + z
    return found


def _name(found: int | str) -> str:
    text = f"{type(found).__name__} {found}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Of how many moments the best is taken.
_ORDERS: Final = 400


def log_chance_of_matches(one: ArrayLike, other: ArrayLike, both: ArrayLike) -> float:
    """The logarithm of a bound on the chance of so many matches between unrelated columns.

    `one[c]` and `other[c]` say how often class c stands in each of two columns of equal length N,
    and `both[c]` in how many rows it stands in both. If one column is put into a uniformly random
    order, the chance that the value returned is at most log(a) is at most a, for every a.

    Two bounds are taken, each at half the level. Let a, b and m stand for `one`, `other` and
    `both`.

    *Class by class.* The matches X of one class are hypergeometric: a of the N rows, drawn by the b
    rows of the other column. The ratio of the chances of j + 1 and j matches,
    (a - j)(b - j) / ((j + 1)(N - a - b + j + 1)), falls as j rises. So with r, that ratio at m,
    below 1, P(X >= m) <= P(X = m) (1 + r + r^2 + ...) = P(X = m) / (1 - r). The least of these over
    the classes that are in both columns holds at the level times their number (union bound).

    *All classes together.* Let X be all matches, and S the sum of a b: the pairs of places in the
    two columns that hold the same class. For any k, the mean of C(X, k), the number of sets of k
    matches, is the sum over sets of k such pairs, no two of which share a place, of the chance that
    the order makes all of them meet, which is (N - k)! / N!. There are at most S^k / k! such sets.
    So by Markov's inequality P(X >= m) <= S^k (N - k)! / (N! k! C(m, k)), and the least over k is a
    bound, too.

    Parameters
    ----------
    one, other, both
        Counts for each class, with both <= one and both <= other; `one` and `other` have the same
        sum.

    Returns
    -------
    float
        At most 0; 0 says nothing.

    Examples
    --------
    Ten rows of each of two classes, all of which match, would do so by chance in one of C(20, 10)
    orders; four bounds of which the least is taken make that four in 184,756:

    >>> round(float(np.exp(log_chance_of_matches([10, 10], [10, 10], [10, 10]))) * 184_756, 6)
    4.0
    """
    a, b, m = (np.asarray(column, dtype=np.float64) for column in (one, other, both))
    common = (a > 0) & (b > 0)
    if not common.any():
        return 0.0
    rows = float(a.sum())
    a, b, m = a[common], b[common], m[common]
    by_class = log(len(a)) + float(_of_each_class(a, b, m, rows).min())
    return min(0.0, log(2) + min(by_class, _of_all(a, b, float(m.sum()), rows)))


def most_matches(one: ArrayLike, other: ArrayLike) -> Integers:
    """The matches of each class, if there are as many as the margins allow."""
    return np.minimum(np.asarray(one, np.int64), np.asarray(other, np.int64))


def _of_each_class(a: Floats, b: Floats, m: Floats, rows: float) -> Floats:
    rest = rows - a - b + m
    ratio = (a - m) * (b - m) / ((m + 1) * (rest + 1))
    chance = (
        _log_choose(a, m) + _log_choose(rows - a, b - m) - _log_choose(np.full_like(a, rows), b)
    )
    tail = np.zeros_like(a)
    falls = ratio < 1
    tail[falls] = chance[falls] - np.log1p(-ratio[falls])
    return np.minimum(tail, 0.0)


def _of_all(a: Floats, b: Floats, matches: float, rows: float) -> float:
    if matches < 1:
        return 0.0
    k = np.unique(np.linspace(1, matches, _ORDERS).round())
    pairs = float(a @ b)
    sets = k * log(pairs) - gammaln(k + 1)
    met = gammaln(rows - k + 1) - gammaln(rows + 1)
    found = sets + met - _log_choose(np.full_like(k, matches), k)
    return float(found.min(initial=inf))


def _log_choose(n: Floats, k: Floats) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
