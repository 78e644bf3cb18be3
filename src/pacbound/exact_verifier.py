"""Checks pacbound certificates with Python's standard library alone.

    python verify_certificate.py [--json] [--patient] CERTIFICATE...

This is one file, the same as `tools/verify_certificate.py`, which can be copied anywhere. It takes
nothing from the package that wrote the certificate; the package takes from it what a document may
look like (`require_shape`), and recomputes by arithmetic of its own. It follows the pages
`docs/proofs.md` and `docs/certificates.md`, and can be read from top to bottom:

1. Reading     strict JSON; what cannot be read ends with exit code 2
2. Chances     binomial and hypergeometric tails in 50 digits, and Clopper-Pearson bounds from them
3. Tests       what passes: a binomial test, no loss, and the exact region, or for many rows the
               pair of bounds
4. Kinds       what the values of each kind of certificate must be
5. The whole   digests, bundles, and what is printed

A tail is a sum of positive terms. Each operation rounds to 50 digits and what is left out is added
as a geometric series, so that a tail errs by less than 1e-30 of itself. A test that a certificate
counts as passed must pass for certain: the tail is at most the level. One that it counts as failed
may fail by a little: the package rounds its bounds outwards, and the page says how far.

Exit code 0: every certificate is valid. 1: one is forged or wrong. 2: one cannot be read, or takes
more computing than is tried without --patient. If the output cannot be written, 1 and 2 stay, and
0 becomes 141 (a closed pipe) or 2.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache, wraps
from itertools import accumulate, pairwise, starmap, takewhile
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeVar, cast

# ------------------------------------------------------------------------------------- 1. Reading

LARGEST_FILE = 32 * 2**20
DEEPEST = 32
# Counts above this are not exact in double precision.
MOST = 2**53


# Whether what follows from the counts is tested. Where only the shape of a claim is looked at,
# every test is as if it were too close to tell: what the claim says stands.
_IS_TESTED: ContextVar[bool] = ContextVar("_IS_TESTED", default=True)


Test = TypeVar("Test", bound=Callable[..., Any])


def by_arithmetic(untested: Any = None) -> Callable[[Test], Test]:
    """Marks a test, which answers `untested` where only the shape is looked at."""

    def mark(test: Test) -> Test:
        def run(*given: Any, **named: Any) -> Any:
            return test(*given, **named) if _IS_TESTED.get() else untested

        return cast("Test", wraps(test)(run))

    return mark


class UnreadableError(Exception):
    """The file is not a certificate, or not one that can be checked here."""


class UnknownError(UnreadableError):
    """It is of a kind or a procedure that is not known here."""


class WrongError(Exception):
    """A value is not what the counts imply."""


def require(ok: bool, place: str, message: str) -> None:  # noqa: FBT001
    """Raise unless `ok`: the value at `place` is wrong."""
    if not ok:
        raise WrongError(f"{place}: {message}")


def parse(data: bytes) -> dict[str, Any]:
    """The object in a file of strict JSON."""
    if len(data) > LARGEST_FILE:
        raise UnreadableError("larger than 32 MB")
    try:
        document = strict(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"not strict JSON: {error}") from None
    if type(document) is not dict:
        raise UnreadableError("not a JSON object")
    return document


def strict(text: str) -> Any:
    """JSON with no key twice, no NaN, no number out of range, no half characters, no deep
    nesting.
    """
    document = json.loads(
        text,
        object_pairs_hook=_unique,
        parse_constant=_refused,
        parse_int=_integer,
        parse_float=_real,
    )
    inside: list[Any] = [[document]]
    for _ in range(DEEPEST + 1):
        inside = [
            value
            for part in inside
            for value in (part.values() if type(part) is dict else part)
            if type(value) in (dict, list)
        ]
    if inside:
        raise RecursionError(f"nested more than {DEEPEST} deep")
    # Half a character is no text, and cannot be written.
    json.dumps(document, ensure_ascii=False).encode("utf-8")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:60]!r} stands there twice")
        found[key] = value
    return found


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not strict JSON")


def _integer(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"the number {digits[:20]}… is out of range")
    if digits == "-0":
        raise ValueError("-0 is not written here: 0 has no sign")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is out of range")
    if number == 0 and digits.startswith("-"):
        raise ValueError("-0 is not written here: 0 has no sign")
    return number


class Part:
    """An object of the document; whatever is missing, unknown or of another type is refused."""

    def __init__(self, value: Any, place: str) -> None:
        if type(value) is not dict:
            raise UnreadableError(f"{place} is not an object")
        self.value: dict[str, Any] = value
        self.place = place

    def at(self, key: str) -> str:
        return f"{self.place}.{key}"

    def only(self, keys: str, optional: str = "") -> None:
        """Raise unless the keys are these."""
        odd = (self.value.keys() ^ set(keys.split())) - set(optional.split())
        if odd:
            raise UnreadableError(f"{self.place} has missing or unknown keys: {sorted(odd)}")

    def get(self, key: str, *kinds: type) -> Any:
        value = self.value.get(key)
        # bool is an int to isinstance, and 1 is no float.
        if key not in self.value or type(value) not in kinds:
            raise UnreadableError(f"{self.at(key)} is missing or of the wrong type")
        return value

    def count(self, key: str, least: int = 0) -> int:
        value = self.get(key, int)
        if not least <= value <= MOST:
            raise UnreadableError(f"{self.at(key)} is {value}: expected {least} to 2**53")
        return int(value)

    def rate(self, key: str, *, positive: bool = True) -> float:
        """A number from 0 to 1, without the ends or with 0."""
        value = self.get(key, float)
        if not (0 < value < 1 or (value == 0 and not positive)):
            raise UnreadableError(f"{self.at(key)} is {value}, out of its range")
        return float(value)

    def limit(self, key: str) -> float:
        """A number, "+inf" or "-inf"."""
        return _limit(self.get(key, float, str), self.at(key))

    def limits(self, key: str) -> list[float]:
        return [_limit(value, self.at(key)) for value in self.get(key, list)]

    def integers(self, key: str) -> list[int]:
        return _integers(self.get(key, list), self.at(key))

    def table(self, key: str) -> list[list[int]]:
        return [_integers(row, self.at(key)) for row in self.get(key, list)]

    def parts(self, key: str) -> list[Part]:
        values = self.get(key, list)
        return [Part(value, f"{self.at(key)}[{i}]") for i, value in enumerate(values)]

    def part(self, key: str) -> Part:
        return Part(self.get(key, dict), self.at(key))

    def equals(self, key: str, expected: Any) -> None:
        """Raise unless the value is the one that was recomputed, to the last digit; where nothing
        is, unless it has the type of one.
        """
        if not _IS_TESTED.get():
            kinds = (float, str) if isinstance(expected, (float, str)) else (type(expected),)
            self.get(key, *kinds)
            return
        found = self.value.get(key)
        same = key in self.value and type(found) is type(expected) and found == expected
        require(same, self.at(key), f"stored {found!r}, recomputed {expected!r}")

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        values = self.get(key, list)
        if any(type(value) is not str for value in values):
            raise UnreadableError(f"{self.at(key)} is not a list of texts")
        return list(values)

    def texts_by_name(self, key: str) -> dict[str, str]:
        """An object whose values are texts."""
        part = self.part(key)
        return {name: part.get(name, str) for name in part.value}


def _limit(value: Any, place: str) -> float:
    if type(value) is float or value in ("+inf", "-inf"):
        return float(value)
    raise UnreadableError(f'{place} holds {value!r}: expected a number, "+inf" or "-inf"')


def _integers(values: Any, place: str) -> list[int]:
    if type(values) is not list or any(type(v) is not int or abs(v) > MOST for v in values):
        raise UnreadableError(f"{place} is not a list of integers up to 2**53")
    return list(values)


def written(value: float) -> Any:
    """An infinite number as JSON holds it."""
    return {math.inf: "+inf", -math.inf: "-inf"}.get(value, value)


# ------------------------------------------------------------------------------------- 2. Chances

CONTEXT = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)
# More than the share of itself by which any chance below can be off.
SURE = Decimal("1e-30")
ONE = Decimal(1)
# Terms of sums that are tried for one certificate: about two minutes.
MOST_WORK = 100_000_000


class Effort:
    """How many terms may still be summed; a small file can ask for hours."""

    left = float(MOST_WORK)

    @classmethod
    def spend(cls, terms: int) -> None:
        cls.left -= terms
        if cls.left < 0:
            raise UnreadableError("it takes more computing than is tried without --patient")


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
STIRLING = "1/12 -1/360 1/1260 -1/1680 1/1188 -691/360360 1/156 -3617/122400"


@lru_cache(maxsize=1 << 16)
def log_factorial(n: int) -> Decimal:
    """The logarithm of n!: that of the factorial itself, or Stirling's series, which errs by less
    than its next term, below 1e-51 from n = 1000 on.
    """
    if n < 1000:
        return Decimal(math.factorial(n)).ln()
    series = sum(
        Decimal(term.numerator) / term.denominator / Decimal(n) ** (2 * place + 1)
        for place, term in enumerate(map(Fraction, STIRLING.split()))
    )
    return (n + Decimal("0.5")) * Decimal(n).ln() - n + (2 * PI).ln() / 2 + series


@lru_cache(maxsize=1 << 16)
def choose(n: int, k: int) -> Decimal:
    """How many ways there are to choose k of n."""
    if n < 1000:
        return +Decimal(math.comb(n, k))
    return (log_factorial(n) - log_factorial(k) - log_factorial(n - k)).exp()


def series(term: Decimal, ratios: Iterator[Decimal], limit: Decimal | None) -> Decimal:
    """The sum of a first `term` and all that follow by falling `ratios` below one.

    With a `limit` it stops once it is known on which side of it the sum is, and returns a number
    on that side.
    """
    total = term
    for place, ratio in enumerate(ratios):
        term *= ratio
        total += term
        if place % 4 == 0:
            if limit is not None and total > limit:
                break
            rest = term * ratio / (1 - ratio)
            if rest < total * Decimal("1e-40") or (limit is not None and total + rest <= limit):
                return total + rest
        if place % 256 == 0:
            Effort.spend(256)
    return total


def few(
    k: int, n: int, p: Decimal, limit: Decimal | None = None, q: Decimal | None = None
) -> Decimal:
    """P(S <= k), S binomial with n trials of rate p, and q = 1 - p."""
    q = 1 - p if q is None else q
    if k < 0 or (q <= 0 and k < n):
        return Decimal(0)
    if k >= n or p <= 0:
        return ONE
    if k > n * p:
        return 1 - few(n - k - 1, n, q, q=p)
    first, odds = choose(n, k) * p**k * q ** (n - k), q / p
    return series(first, (odds * i / (n - i + 1) for i in range(k, 0, -1)), limit)


def few_drawn(k: int, population: int, marked: int, drawn: int) -> Decimal:
    """P(X <= k), X of the marked among the drawn, without replacement."""
    least, most = max(0, drawn + marked - population), min(drawn, marked)
    if k < least or k >= most:
        return Decimal(int(k >= most))
    if (k + 1) * (population + 2) > (drawn + 1) * (marked + 1):
        # So many marked are so few of the others.
        return 1 - few_drawn(drawn - k - 1, population, population - marked, drawn)
    rest = population - marked - drawn
    ratios = (
        Decimal(i * (rest + i)) / ((marked - i + 1) * (drawn - i + 1)) for i in range(k, least, -1)
    )
    return series(just_drawn(k, population, marked, drawn), ratios, None)


def just_drawn(k: int, population: int, marked: int, drawn: int) -> Decimal:
    """P(X = k)."""
    if not max(0, drawn + marked - population) <= k <= min(drawn, marked):
        return Decimal(0)
    ways = choose(marked, k) * choose(population - marked, drawn - k)
    return ways / choose(population, drawn)


@lru_cache(maxsize=1 << 14)
def upper_bound(k: int, n: int, level: Decimal) -> Decimal:
    """The rate at which so few as k of n have the chance `level` (Clopper-Pearson), or a little
    more: less than 1e-12 of it, and of what it leaves to one; one if that is less than 1e-40.

    The logarithm of the chance falls, and is concave in the rate. So its tangents lie above it, and
    wherever Newton's steps begin, all after the first end above the bound.
    """
    if k >= n:  # no trials, or nothing but successes
        return ONE
    goal = level.ln()
    rate = Decimal(k + 1) / (n + 1)
    spread = (-2 * goal).sqrt() * (rate * (1 - rate) / n).sqrt()
    rate = min(rate + spread, (1 + rate) / 2)
    for _ in range(300):
        if 1 - rate < Decimal("1e-40"):
            return ONE
        chance = few(k, n, rate)
        slope = (n - k) * choose(n, k) * rate**k * (1 - rate) ** (n - k - 1)
        step = (chance.ln() - goal) * chance / slope
        new = rate + step
        rate = new if 0 < new < 1 else (rate + (step > 0)) / 2
        if rate == new and abs(step) < Decimal("1e-9") * min(rate, 1 - rate):
            return rate
    raise UnreadableError("a bound was not found")


def lower_bound(k: int, n: int, level: Decimal) -> Decimal:
    """The mirror image, from below."""
    return 1 - upper_bound(n - k, n, level)


# --------------------------------------------------------------------------------------- 3. Tests

# Passes for certain, fails for certain, or so close that the package may have said either.
Verdict = bool | None


# The share of its level by which a bound may be wider than the exact one.
WIDE = Decimal("2e-3")
MOST_TRIALS = 10**12
# With more trials, or at lower levels, bounds are Chernoff's.
LEAST_LEVEL = Decimal("1e-200")


def is_chernoff(trials: int, level: Decimal) -> bool:
    """Whether the bound is the one of Chernoff, whose tail is exp(-n D) in place of the exact one.
    Levels are rounded down, so that one that is just 1e-200 may be either.
    """
    return trials > MOST_TRIALS or level < LEAST_LEVEL * (1 + Decimal("1e-12"))


def usable(k: int, n: int, level: Decimal) -> Decimal:
    """The level that a bound uses: at most one half for more than 10^10 trials and 10^9 of both
    outcomes, where the bound is that of the normal law.
    """
    return min(level, Decimal("0.5")) if n > 10**10 and min(k, n - k) > 10**9 else level


def divergence(k: int, n: int, rate: Decimal, rest: Decimal) -> Decimal:
    """N D, D being how far a coin that shows k of n diverges from one of this rate; `rest` is
    1 - rate. Infinite if the rate cannot show k of n.
    """
    if (rate <= 0 and k > 0) or (rest <= 0 and k < n):
        return Decimal("inf")
    hits = k * (Decimal(k) / (n * rate)).ln() if k else Decimal(0)
    return hits + ((n - k) * (Decimal(n - k) / (n * rest)).ln() if k < n else Decimal(0))


def slack(n: int) -> Decimal:
    """The share of a level by which the package may miss it, where it does not use Chernoff's
    bound.
    """
    if n > 10**10:
        return WIDE
    return Decimal("1e-6") + n * Decimal("1e-13")


def decided(*, passes: bool, nearly: bool) -> Verdict:
    """A verdict where a test passes by the margin of the package's rounding, or nearly so."""
    return True if passes else None if nearly else False


def verdict(chance: Callable[[Decimal], Decimal], level: Decimal, share: Decimal) -> Verdict:
    """Whether a chance is at most `level`; `chance` is given what it is compared with, and the
    package may miss the level by so large a `share` of it.
    """
    near = level * (1 - share)
    if chance(near) <= near:
        return True
    return False if chance(level) > level * (1 - SURE) else None


@by_arithmetic()
def binomial_test(k: int, n: int, rate: Decimal, level: Decimal) -> Verdict:
    """Whether so few as k of n show that the true rate is below `rate`."""
    if n == 0:
        return False
    if is_chernoff(n, level):
        if k >= n * rate:
            return False
        apart, enough = divergence(k, n, rate, 1 - rate), -level.ln()
        return decided(passes=apart >= enough * (1 + Decimal("3e-6")), nearly=apart >= enough)
    level = usable(k, n, level)
    return verdict(lambda limit: few(k, n, rate, limit), level, slack(n))


@by_arithmetic()
def require_largest(stored: int, most: int, test: Callable[[int], Verdict], place: str) -> None:
    """Raise unless `stored` is the largest count that passes, -1 if none does."""
    require(-1 <= stored <= most, place, f"{stored} is not between -1 and {most}")
    require(stored == -1 or test(stored) is not False, place, f"{stored} does not pass")
    require(stored == most or test(stored + 1) is not True, place, f"{stored + 1} passes, too")


def largest(most: int, passes: Callable[[int], bool]) -> int:
    """The largest count up to `most` that passes, if all below it do; -1 if none does."""
    low, high = -1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if passes(middle) else (low, middle - 1)
    return low


@dataclass(frozen=True)
class Counts:
    """What the tests look at, at one step of a walk, for each exit."""

    exits: tuple[int, ...]
    losses: tuple[int, ...]
    gains: tuple[int, ...]
    grades: tuple[int, ...] = ()

    @property
    def differ(self) -> tuple[int, ...]:
        return tuple(lost + gained for lost, gained in zip(self.losses, self.gains, strict=True))

    @property
    def judged(self) -> tuple[tuple[int, ...], ...]:
        return self.losses, self.gains, self.grades


@dataclass(frozen=True)
class StepTest:
    """The test of a step: whether the losses of n rows exceed the gains by less than xi. One that
    is no step of a walk is `seeded` by McNemar's test.
    """

    n: int
    xi: float
    level: Decimal
    seeded: bool = False

    def may_pass(self, counts: Counts) -> bool:
        """Whether it is right to count the step as passed."""
        return self._verdict(counts, claimed=True) is not False

    def may_fail(self, counts: Counts) -> bool:
        """Whether it is right to count the step as failed."""
        return self._verdict(counts, claimed=False) is not True

    def require(self, passed: Sequence[Counts], failed: Sequence[Counts], place: str) -> None:
        """Raise unless all of the first pass and none of the second does."""
        if self.by_region and passed and not passed[0].grades:
            # All are of one region: it is enough to ask for the one that is nearest to its edge.
            passed = [min(passed, key=self._ratio)]
        require(all(map(self.may_pass, passed)), place, "a step does not pass that is claimed to")
        require(all(map(self.may_fail, failed)), place, "the step that ends a walk passes")

    @property
    def by_region(self) -> bool:
        """Whether the exact region decides: McNemar's test does without loss, and the pair of
        bounds for many rows and for tiny levels.
        """
        return self.xi > 0 and self.n <= LARGEST_EXACT and self.level >= Decimal("1e-200")

    def _ratio(self, counts: Counts) -> float:
        return likelihood_ratio(sum(counts.losses), sum(counts.gains), self.n, self.xi)

    @by_arithmetic()
    def _verdict(self, counts: Counts, *, claimed: bool) -> Verdict:
        b, c = sum(counts.losses), sum(counts.gains)
        require(float(self.level / 6) > 0, "delta", "is too small to be shared")
        if self.n == 0:
            return False
        if counts.grades:
            return sums_test(counts.grades, self.n, decimal(self.xi), self.level)
        if self.xi == 0:
            # No loss: McNemar's test.
            return binomial_test(b, b + c, Decimal("0.5"), self.level)
        if self.by_region:
            n, xi, level, seeded = self.n, self.xi, float(self.level), self.seeded
            if seeded and is_filled(n, xi, level):
                return b <= filled(n, xi, level)[c]
            if seeded and b <= mcnemar(n, level)[c]:
                return True
            return exact_test(b, c, n, xi, level, claimed=claimed, seeded=seeded)
        rate = lower_bound(c, self.n, self.level / 5) + Decimal(self.xi)
        return binomial_test(b, self.n, rate, self.level * 4 / 5)


def by_region(tests: Sequence[StepTest]) -> str:
    """What a report adds where the exact region decides."""
    told = " (the exact region in double precision, from above)"
    return told * any(test.by_region for test in tests)


# The exact region. Of all laws with P(loss) - P(gain) >= xi, which is the most likely to show so
# few losses and so many gains? Sums are in double precision, from above: logarithms of factorials
# err by less than 1e-8 for n up to 200,000, and a share of 1e-7 of each sum is added.

LARGEST_EXACT = 199_999
ROUNDING = 1e-7
NEGLECTED = 1e-7
TINY = 1e-250
MOST_CELLS_SPLIT = 4000


def likelihood_ratio(b: int, c: int, n: int, xi: float) -> float:
    """The log of the largest likelihood over the largest of a law that loses xi."""
    if b - c >= n * xi:
        return 0.0
    slope = 2.0 * xi * (n - b) - (b + c) * (1.0 - xi)
    root = math.sqrt(slope**2 + 8.0 * n * c * xi * (1.0 - xi))
    if slope >= 0:
        v = 2.0 * c * xi * (1.0 - xi) / (slope + root) if slope + root > 0 else 0.0
    else:
        v = (root - slope) / (4.0 * n)

    # What counts exceed adds up to nothing, and without it no large terms cancel.
    def part(count: int, rate: float) -> float:
        expected = max(n * rate, 1e-300)
        excess = count - expected
        return (count * math.log1p(excess / expected) if count else 0.0) - excess

    return part(b, v + xi) + part(c, v) + part(n - b - c, 1.0 - xi - 2.0 * v)


@lru_cache(maxsize=16)
def mcnemar(n: int, level: float) -> list[int]:
    """The most losses beside each number of gains with which McNemar's test passes, n where every
    number does; a tail that is `level` to ten digits does not.
    """
    enough = Decimal(level) * (1 - Decimal("1e-10"))
    c = next(c for c in range(10**4) if Decimal(2) ** -c <= enough)
    most, b, below, term = [-1] * min(c, n + 1), 0, Decimal(2) ** -c, Decimal(2) ** -c
    while c <= n:
        # Of b + c coins at most b are losses, or just b: these are their chances.
        Effort.spend(1)
        total = b + c + 1
        more = term * c / (2 * (b + 1))
        if total <= n and below + more <= enough:
            b, below, term = b + 1, below + more, term * total / (2 * (b + 1))
        else:
            most.append(b if b + c < n else n)
            c, below, term = c + 1, below - term / 2, term * total / (2 * (c + 1))
            if b + c > n:
                return most + [n] * (n + 1 - c)
    return most


def is_filled(n: int, xi: float, level: float) -> bool:
    """Whether so few rows, and so small a loss, that the region is filled."""
    size = n * math.log(2.0 / level)
    return level <= 0.25 and size <= 10_000.0 and size * n * xi <= 150_000.0


@lru_cache(maxsize=16)
def filled(n: int, xi: float, level: float) -> list[int]:
    """The filled region: McNemar's, and of the other counts by falling likelihood ratio each that
    leaves it a staircase and no corner of the laws above the level.
    """
    most = [*mcnemar(n, level), n]
    sums, root = Sums(n, most[:-1]), math.sqrt(xi)
    cells = math.ceil(32.0 * (1.0 - root) * math.sqrt(2.0 * n * math.log(2.0 / level)))
    laws, places, chances = [], [], []
    for i in range(cells):
        one, two = (1.0 - root) * i / cells, (1.0 - root) * (i + 1) / cells
        lose = root * one + one * one / 2.0 + xi
        gain = min(root * two + two * two / 2.0, (1.0 - xi) / 2.0)
        neither = max(1.0 - lose - gain, 1e-300)
        laws.append((math.log(lose), math.log(gain), math.log(neither)))
        places.append(math.sqrt(lose + gain))
        chances.append(sums.total(gain, neither, 1e-13 * level))
    others = [
        (-round(likelihood_ratio(b, c, n, xi) * 2.0**40), -c, b)
        for c in range(n + 1)
        for b in range(most[c] + 1, min(math.ceil(c + n * xi), n - c + 1))
    ]
    reach = math.sqrt(math.log(2e13 / level) / (2.0 * n))
    for _, less, b in sorted(others):
        c = -less
        if most[c] != b - 1 or (b + c < n and most[c + 1] < b):
            continue
        middle, rest, joined = math.sqrt((b + c) / n), n - b - c, []
        ways = sums.logs[n] - sums.logs[b] - sums.logs[c] - sums.logs[rest]
        first = bisect_left(places, middle - reach)
        for i in range(first, bisect_left(places, middle + reach)):
            lose, gain, neither = laws[i]
            chance = chances[i] + math.exp(ways + b * lose + c * gain + rest * neither)
            if chance > level * (1.0 - 1e-6):
                break
            joined.append(chance)
        else:
            chances[first : first + len(joined)] = joined
            most[c] = b
        Effort.spend(len(joined) + 1)
    return [n if b >= n - c else b for c, b in enumerate(most[:-1])]


@lru_cache(maxsize=1024)
def exact_test(
    b: int, c: int, n: int, xi: float, level: float, *, claimed: bool, seeded: bool = False
) -> bool:
    """Whether the region that b losses and c gains are on the edge of has at most the chance
    `level` under every law that loses xi; or, if it is not `claimed`, clearly less.
    """
    # Where no loss and no gain would not do, nothing does.
    edge = min(likelihood_ratio(b, c, n, xi), likelihood_ratio(0, 0, n, xi))
    if b > math.ceil(c + n * xi) or n * math.log1p(-xi) > math.log(level):
        return False
    region = Region(n, xi, level, edge, seeded=seeded)
    if claimed:
        return region.within()
    return region.highest() <= region.refused_below() * level


class Sums:
    """Chances of a staircase {(b, c): b <= most[c]} of n rows, in double precision; it goes on as
    it ends.
    """

    def __init__(self, n: int, most: Sequence[int]) -> None:
        self.n, self.most = n, most
        self.logs = [math.lgamma(i + 1.0) for i in range(n + 1)]

    def total(self, gain: float, neither: float, neglected: float) -> float:
        """Of the law with these P(gain) and P(neither); at most `neglected` is left out."""
        fail = min(max(neither / (1.0 - gain), 1e-300), 1.0 - 2.0**-53)
        lose, n, last = 1.0 - fail, self.n, len(self.most) - 1
        spread = math.sqrt(2.0 * math.log(2.0 / neglected))
        reach = spread * math.sqrt(n * gain * (1.0 - gain)) + spread**2 / 2.0
        start, stop = max(0, math.floor(n * gain - reach)), min(n, math.ceil(n * gain + reach))
        Effort.spend(stop - start)
        b = self.most[min(start, last)]
        below, term = self.few(b, n - start, lose, fail), 0.0
        weight = self._just(start, n, gain, 1.0 - gain)
        total = below * weight
        for c in range(start + 1, stop + 1):
            weight *= (n - c + 1) * gain / (c * (1.0 - gain))
            if weight < TINY:
                weight = self._just(c, n, gain, 1.0 - gain)
            # Given one gain more there is one trial less, and P(b <= most) grows by the terms of
            # the binomial law with that many trials.
            size, higher = n - c, self.most[min(c, last)]
            if higher >= size:
                below = 1.0
            elif b < 0:
                below = self.few(higher, size, lose, fail)
            else:
                term *= (size + 1 - b) / ((size + 1) * fail)
                if term < TINY:
                    term = self._just(b, size, lose, fail)
                below += lose * term
                for j in range(b + 1, higher + 1):
                    term *= (size - j + 1) * lose / (j * fail)
                    if term < TINY:
                        term = self._just(j, size, lose, fail)
                    below += term
            b = higher
            total += below * weight
        return total

    def _just(self, k: int, n: int, p: float, q: float) -> float:
        """P(S = k) in double precision."""
        ways = self.logs[n] - self.logs[k] - self.logs[n - k]
        return math.exp(ways + k * math.log(p) + (n - k) * math.log(q))

    def few(self, k: int, n: int, p: float, q: float) -> float:
        """P(S <= k) in double precision."""
        if k < 0 or k >= n:
            return float(k >= n)
        if k > n * p:
            return 1.0 - self.few(n - k - 1, n, q, p)
        term = total = self._just(k, n, p, q)
        for i in range(k, 0, -1):
            term *= q / p * i / (n - i + 1)
            total += term
            if term < total * 1e-17:
                break
        return total


class Region:
    """{(b, c): b <= most[c]}, the counts whose likelihood ratio is at least that of the edge, and
    if it is `seeded` those of McNemar's test.
    """

    def __init__(
        self, n: int, xi: float, level: float, edge: float, *, seeded: bool = False
    ) -> None:
        self.n, self.xi, self.level = n, xi, level
        columns = (
            n
            if n <= (50_000 if seeded else 3000)
            else min(n, math.ceil(max(0.08 * n, 8.0 * xi * n)))
        )
        Effort.spend(columns)
        self.most = [*mcnemar(n, level)] if seeded else [-1] * (columns + 1)
        b = -1
        for c in range(columns + 1):
            highest = min(n - c, math.ceil(c + n * xi))
            while b < highest and likelihood_ratio(b + 1, c, n, xi) >= edge * (1 - 1e-12):
                b += 1
            if b >= n - c:
                b = n
            self.most[c] = max(self.most[c], b)
        self.most[columns:] = [max(b, one) for one in self.most[columns:]]
        self.sums = Sums(n, self.most)
        # Laws are placed so that one standard deviation of b - c is equally long everywhere.
        self.unit = 1.0 / (min(max(1.0, math.sqrt(-2.0 * math.log(level))), 5.0) * math.sqrt(n))

    def within(self) -> bool:
        """Whether every law that loses xi gives it at most the level. More losses and fewer gains
        lower its chance, so P(loss) = v + xi, P(gain) = v is the worst; and from v to w it is at
        most that of (v + xi, w).
        """
        place, last, width = self._ends()
        steps = math.ceil((last - place) / width + 1e-9) + 1
        todo = [(place + i * width, width) for i in range(steps)]
        while todo:
            place, width = todo.pop()
            if self.chance(self._gain(place), self._gain(place + width)) <= self.level:
                continue
            if width < self.unit / 2**14 or self.chance(self._gain(place)) > self.level:
                return False
            todo += [(place + i * width / 4, width / 4) for i in range(4)]
        return True

    def refused_below(self) -> float:
        """A step may be refused whose chance is above this share of the level. The package splits
        the laws into cells, and bounds each by its corner, which exceeds it by about e^width. It
        splits cells that matter as long as they are not too many; up to 1,000 rows they never were.
        """
        if self.n <= 1000:
            return 0.998
        quantile = min(max(1.0, -NormalDist().inv_cdf(self.level)), 5.0)
        length = quantile * math.sqrt(self.n) * (1.0 - math.sqrt(self.xi))
        width = 2.0**-5
        while width > 2.0**-13 and length / width <= MOST_CELLS_SPLIT:
            width /= 4.0
        return 0.998 - 2.0 * width

    def highest(self) -> float:
        """The largest chance under some of the laws that lose xi: the best of many, and what lies
        around it, searched by thirds.
        """
        place, last, width = self._ends()
        places = [place + i * width for i in range(math.ceil((last - place) / width) + 1)]
        chances = [self.chance(self._gain(place)) for place in places]
        best = max(chances)
        low = high = places[chances.index(best)]
        low, high = max(low - width, place), high + width
        while high - low > width / 64:
            one, two = low + (high - low) / 3, high - (high - low) / 3
            left, right = self.chance(self._gain(one)), self.chance(self._gain(two))
            best = max(best, left, right)
            low, high = (low, two) if left >= right else (one, high)
        return best

    def _ends(self) -> tuple[float, float, float]:
        """The first and the last place of the laws that matter, and the width of a cell."""
        last = math.sqrt(2.0 * self._last_gain() + self.xi)
        return math.sqrt(self.xi), last, self.unit / 2

    def _gain(self, place: float) -> float:
        return min(max((place**2 - self.xi) / 2.0, 0.0), (1.0 - self.xi) / 2.0)

    def _last_gain(self) -> float:
        """Beyond it so few losses as there are in the region have less than half the level."""
        low, high = 0.0, (1.0 - self.xi) / 2.0
        for _ in range(20):
            middle = (low + high) / 2
            rate = middle + self.xi
            if self.sums.few(self.most[-1], self.n, rate, 1.0 - rate) < self.level / 2:
                high = middle
            else:
                low = middle
        return high

    def chance(self, least: float, largest: float | None = None) -> float:
        """Of the law with P(loss) = `least` + xi and P(gain) = `largest`, from above."""
        gain = max(least if largest is None else largest, 1e-300)
        neither = max(1.0 - self.xi - least - gain, 0.0)
        total = self.sums.total(gain, neither, NEGLECTED * self.level)
        return total * (1.0 + ROUNDING) + NEGLECTED * self.level


# Graded differences on few levels. Each is tossed to -1, 0 or 1 by a coin that keeps its mean; what
# counts is the chance over all coins that losses and gains lie in the region of half the level.

COARSE = 10


@dataclass(frozen=True)
class Tossed:
    """How many rows become losses, and how many gains: from which number on, and each chance."""

    losses: tuple[int, list[float]]
    gains: tuple[int, list[float]]

    @classmethod
    def of(cls, counts: Sequence[int]) -> Tossed:
        """Of so many rows on each level from -1 to 1."""
        steps = len(counts) // 2
        return cls(_sum_of_coins(counts[steps + 1 :]), _sum_of_coins(counts[:steps][::-1]))

    def within(self, most: Sequence[int]) -> float:
        """The chance of so few losses beside so many gains; `most` goes on as it ends."""
        least, chances = self.losses
        below = [0.0, *accumulate(chances)]
        first, gains = self.gains
        total = 0.0
        for place, chance in enumerate(gains):
            height = most[min(first + place, len(most) - 1)] - least + 1
            total += chance * below[max(0, min(height, len(chances)))]
        return total


def _sum_of_coins(counts: Sequence[int]) -> tuple[int, list[float]]:
    first, law = 0, [1.0]
    for place, n in enumerate(counts, 1):
        rate = place / len(counts)
        if rate == 1.0:
            first += n
        elif n:
            reach = 9.0 * math.sqrt(n * rate * (1.0 - rate)) + 40.0
            low, high = max(0, int(n * rate - reach)), min(n, int(n * rate + reach))
            logs, rest = math.log(rate), math.log1p(-rate)
            part = [
                math.exp(
                    math.lgamma(n + 1.0)
                    - math.lgamma(k + 1.0)
                    - math.lgamma(n - k + 1.0)
                    + k * logs
                    + (n - k) * rest
                )
                for k in range(low, high + 1)
            ]
            Effort.spend(len(law) * len(part))
            scale = 1.0 / max(sum(part), 1.0)
            joined = [0.0] * (len(law) + len(part) - 1)
            for i, one in enumerate(law):
                for j, other in enumerate(part):
                    joined[i + j] += one * other * scale
            first, law = first + low, joined
            mean = sum(i * one for i, one in enumerate(law))
            spread = sum((i - mean) ** 2 * one for i, one in enumerate(law))
            reach = 9.0 * math.sqrt(spread) + 40.0
            low, high = max(0, int(mean - reach)), int(mean + reach) + 1
            first, law = first + low, law[low:high]
    return first, law


@by_arithmetic()
def tossed_test(
    counts: Sequence[int], xi: float, level: float, share: float, *, claimed: bool
) -> Verdict:
    """Whether the chance over all coins to be in the region of a level is at least `share`: the
    least region of which that is so has at most this level; or, if it is not `claimed`, clearly
    less.
    """
    n, tossed = sum(counts), Tossed.of(counts)
    if n == 0:
        return False
    whole = filled(n, xi, level) if xi and is_filled(n, xi, level) else mcnemar(n, level)
    chance = tossed.within(whole)
    if xi == 0 or is_filled(n, xi, level) or chance > share + 2e-9:
        return decided(passes=chance > share + 2e-9, nearly=chance > share)

    def enough(edge: float) -> bool:
        return tossed.within(Region(n, xi, level, edge, seeded=True).most) >= share

    low, high = 0.0, likelihood_ratio(0, 0, n, xi)
    if n * math.log1p(-xi) > math.log(level) or not enough(low):
        return None if chance > share else False
    if enough(high):
        low = high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    region = Region(n, xi, level, low, seeded=True)
    if claimed:
        return region.within()
    return region.highest() <= region.refused_below() * level


# Graded losses. A row that loses v multiplies each bet by 1 + stake (mean - v), and the average of
# the products over all rows, the evidence, has a mean of at most 1 while the mean loss is not below
# `mean`. So it reaches 1/delta with at most the chance delta.

SPREADS = (1.5, 6.0, 24.0, 96.0)
SHARES = "4/10 3/10 2/10 1/10"


@dataclass(frozen=True)
class Bets:
    """Stakes of 20 bits each, and the share of each in the evidence."""

    stakes: tuple[Decimal, ...]
    shares: tuple[Fraction, ...]

    @classmethod
    def of(cls, squares: Iterable[Decimal], shares: Sequence[Fraction], most: Decimal) -> Bets:
        """Stakes by their squares, of at most `most`, rounded down."""
        stakes = []
        for square in squares:
            mantissa, exponent = math.frexp(float(min(square.sqrt(), most)))
            stakes.append(decimal(math.ldexp(math.floor(mantissa * 2**20), exponent - 20)))
        return cls(tuple(stakes), tuple(shares))

    @classmethod
    def on_mean(cls, rows: int, mean: Decimal, delta: Decimal) -> Bets:
        """On one mean: four variances."""
        unit = -2 * delta.ln() / max(rows, 1) / (mean * (1 - mean))
        most = Decimal("0.98") / (1 - mean)
        return cls.of((unit * decimal(s) for s in SPREADS), _fractions(SHARES), most)

    @classmethod
    def on_thresholds(cls, rows: int, xi: Decimal, delta: Decimal) -> Bets:
        """On every threshold: four variances for each of four shares of the rows above it."""
        unit = -2 * delta.ln() / max(rows, 1) / (xi * (1 - xi))
        squares = (unit * parts * decimal(s) for parts in (8, 4, 2, 1) for s in SPREADS)
        shares = [share / 4 for share in _fractions(SHARES) * 4]
        return cls.of(squares, shares, Decimal("0.98") / (1 - xi))

    @classmethod
    def on_exits(cls, rows: int, xi: Decimal, delta: Decimal) -> Bets:
        """On every threshold of a cascade, where all rows count: two variances."""
        unit = -2 * delta.ln() / max(rows, 1) / (xi or Decimal("0.0625"))
        squares = (unit / Decimal(times) for times in ("1.5", "0.5"))
        return cls.of(squares, [Fraction(1, 2)] * 2, Decimal("0.98") / (1 - xi))

    @classmethod
    def on_every_mean(cls, rows: int, delta: Decimal) -> Bets:
        """For bounds: the first stake is for a variance of 1/8, the next ones double, and shares
        halve; the last has what is left.
        """
        most, squares = Decimal("0.98"), [-16 * delta.ln() / max(rows, 1)]
        while squares[-1] < most**2:
            squares.append(4 * squares[-1])
        shares = [Fraction(1, 2**place) for place in range(1, len(squares))]
        return cls.of(squares, [*shares, 1 - sum(shares, Fraction(0))], most)

    def verdict(
        self, counts: Sequence[int], losses: Sequence[Fraction], mean: Decimal, delta: Decimal
    ) -> Verdict:
        """Whether so many rows of each loss show that their mean is below `mean`."""
        return next(self.verdicts([dict(enumerate(counts))], losses, mean, delta))

    def verdicts(
        self,
        steps: Iterable[dict[int, int]],
        losses: Sequence[Fraction],
        mean: Decimal,
        delta: Decimal,
    ) -> Iterator[Verdict]:
        """The same at each of several thresholds: each step adds so many rows of each level."""
        values = [Decimal(loss.numerator) / loss.denominator for loss in losses]
        factors = [[1 + stake * (mean - value) for value in values] for stake in self.stakes]
        rows, products, sizes = 0, [ONE] * len(factors), [0.0] * len(factors)
        for counts in steps:
            Effort.spend(len(factors) * len(counts))
            rows += sum(counts.values())
            for bet, own in enumerate(factors):
                for level, seen in counts.items():
                    products[bet] *= own[level] ** seen
                    sizes[bet] += seen * abs(math.log(own[level]))
            evidence = sum(
                (
                    p * s.numerator / s.denominator
                    for p, s in zip(products, self.shares, strict=True)
                ),
                Decimal(0),
            )
            yield _is_enough(evidence * delta, max(sizes), rows)


def _is_enough(evidence: Decimal, size: float, rows: int) -> Verdict:
    """Whether evidence reaches what it must, as a multiple of it; None if rounding may decide."""
    if evidence < 1 - SURE:
        return False
    rounding = Decimal(size * 2.0**-43 + rows * 2.0**-49)
    return True if evidence > (rounding + Decimal("1.1e-9")).exp() else None


def _fractions(texts: str) -> list[Fraction]:
    return [Fraction(text) for text in texts.split()]


def levels(number: int) -> list[Fraction]:
    """So many losses from 0 to 1, equally far apart."""
    return [Fraction(place, number - 1) for place in range(number)]


@by_arithmetic()
def mean_test(counts: Sequence[int], mean: Decimal, delta: Decimal) -> Verdict:
    """Whether counts per level show that the mean loss is below `mean`."""
    bets = Bets.on_mean(sum(counts), mean, delta)
    return bets.verdict(counts, levels(len(counts)), mean, delta)


def thresholds_test(
    steps: Sequence[dict[int, int]], grades: int, rows: int, xi: Decimal, delta: Decimal
) -> list[Verdict]:
    """Whether each threshold is claimed, from the highest down, by the rows that each adds, on so
    many levels of `grades`, the worst first.
    """
    bets = Bets.on_thresholds(rows, xi, delta)
    return list(bets.verdicts(steps, levels(grades)[::-1], xi, delta))


# Cascades of graded answers: the sums of losses, of gains, of the squares of both, of the cubes of
# losses and of those of gains, in 240ths.
FINE_LOSS = 240


def sums_test(sums: Sequence[int], rows: int, xi: Decimal, delta: Decimal) -> Verdict:
    """Whether what so many rows lose shows that the mean loss is below xi. A factor 1 - uD of a row
    has a logarithm of at least -uD - (uD)^2 / 2 less a multiple of |D|^3 that makes both equal at
    D = 1, and at D = -1.
    """
    bets = Bets.on_exits(rows, xi, delta)
    lost, gained, squares, *cubes = (
        Decimal(each) / FINE_LOSS**power for each, power in zip(sums, (1, 1, 2, 3, 3), strict=True)
    )
    Effort.spend(len(bets.stakes))
    evidence, sizes = Decimal(0), []
    for stake, share in zip(bets.stakes, bets.shares, strict=True):
        whole, u, rest = _parts_of_bet(stake, xi)
        parts = [rows * whole, -u * lost, u * gained, -u * u / 2 * squares]
        parts += [one * cube for one, cube in zip(rest, cubes, strict=True)]
        evidence += sum(parts, Decimal(0)).exp() * share.numerator / share.denominator
        sizes.append(float(sum(map(abs, parts), Decimal(0))))
    return _is_enough(evidence * delta, max(sizes), rows)


@lru_cache(maxsize=256)
def _parts_of_bet(stake: Decimal, xi: Decimal) -> tuple[Decimal, Decimal, tuple[Decimal, Decimal]]:
    u = stake / (1 + stake * xi)
    rest = (1 - u).ln() + u + u * u / 2, (1 + u).ln() - u + u * u / 2
    return (1 + stake * xi).ln(), u, rest


# Bounds on means are multiples of this.
MEAN_STEP = Decimal(2) ** -30


@by_arithmetic()
def require_mean_lower(counts: Sequence[int], bound: Decimal, delta: Decimal, place: str) -> None:
    """Raise unless this is the lower bound on a mean grade that counts per level show: there
    the evidence is enough, and a step further in it is not.
    """
    bets, rows = Bets.on_every_mean(sum(counts), delta), sum(counts)
    losses = levels(len(counts))[::-1]
    fits = 0 <= bound < 1 and bound % MEAN_STEP == 0 and (rows > 0 or bound == 0)
    require(fits, place, "is not a bound on a mean")
    sound = bound == 0 or bets.verdict(counts, losses, 1 - bound, delta) is not False
    require(sound, place, "claims more than the counts show")
    further = bound + MEAN_STEP
    tight = further >= 1 or bets.verdict(counts, losses, 1 - further, delta) is not True
    require(tight or not rows, place, "claims less than the counts show")


# --------------------------------------------------------------------------------------- 4. Kinds

TOP = 65536
JOINT_TOP = 1024


def decimal(value: float) -> Decimal:
    """The double itself, not the decimal number that it was written as."""
    return Decimal(value)


def as_written(value: float) -> Fraction:
    """The decimal number that a double is written as."""
    return Fraction(repr(value))


def sidak(delta: Decimal, tests: int) -> Decimal:
    """The level of each of so many independent tests: 1 - (1 - delta)^(1/tests)."""
    if delta > Decimal("1e-15"):
        return 1 - ((1 - delta).ln() / tests).exp()
    # 1 - delta would lose digits that these series keep.
    log = (delta + delta**2 / 2 + delta**3 / 3) / tests
    return log - log**2 / 2 + log**3 / 6


def require_rising(values: Sequence[int], least: int, most: int, place: str) -> None:
    inside = not values or (least <= values[0] and values[-1] <= most)
    rises = inside and all(one < two for one, two in pairwise(values))
    require(rises, place, f"does not rise from {least} to at most {most}")


def _level(claim: Part) -> Decimal:
    """The chance that a claim is wrong."""
    if claim.rate("delta") > 0.5:
        raise UnreadableError(f"{claim.at('delta')} is above one half")
    return decimal(claim.rate("delta"))


def _tables(claim: Part) -> list[Part]:
    """The tables of all rows, or of each group."""
    tables = claim.parts("tables")
    if not tables:
        raise UnreadableError(f"{claim.at('tables')} is empty")
    return tables


def _choice(claim: Part, key: str, known: Sequence[str]) -> str:
    word = str(claim.get(key, str))
    if word not in known:
        raise UnreadableError(f"{claim.at(key)} is {word!r}, which is not known")
    return word


@dataclass(frozen=True)
class Held:
    """The rows of a table: the cells of the score that hold some, how many of each outcome are in
    them, and how many in all.
    """

    cells: list[int]
    columns: dict[str, list[int]]
    sums: list[int]
    grades: list[dict[int, int]] = field(default_factory=list)
    levels: int = 0

    @classmethod
    def of_grades(cls, claim: Part, counts: Part, most: int, fine: int) -> Held:
        """Rows by the level of their grade, the worst first: as many levels as there are declared
        grades, or one more than `fine`.
        """
        declared = len(claim.part("graded").limits("scale"))
        return cls._on_levels(counts, most, declared if declared > 2 else fine + 1)

    @classmethod
    def _on_levels(cls, counts: Part, most: int, number: int) -> Held:
        counts.only("levels cells grades rows")
        cells, grades, rows = (counts.integers(key) for key in ("cells", "grades", "rows"))
        fits = number == counts.count("levels", 2)
        fits = fits and len(cells) == len(grades) == len(rows) and min(rows, default=1) > 0
        fits = fits and sum(rows) <= MOST and all(0 <= grade < number for grade in grades)
        require(fits, counts.at("grades"), "do not fit the levels of the grades")
        places = [cell * number + grade for cell, grade in zip(cells, grades, strict=True)]
        require_rising(places, 0, most * number + number - 1, counts.at("cells"))
        held: dict[int, dict[int, int]] = {}
        for cell, grade, seen in zip(cells, grades, rows, strict=True):
            held.setdefault(cell, {})[grade] = seen
        sums = [sum(row.values()) for row in held.values()]
        return cls(list(held), {}, sums, list(held.values()), number)

    @classmethod
    def of_differences(cls, claim: Part, counts: Part) -> Held:
        """Rows of each candidate by the difference of two grades, known or not."""
        scale = len(claim.part("graded").limits("scale"))
        steps = scale - 1 if scale > 2 else 256
        halves = {steps, steps // 2} if scale > 2 and steps % 2 == 0 else {steps}
        number = counts.count("levels", 2)
        fits = number in {3 * each + 3 for each in halves}
        require(fits, counts.at("levels"), "do not fit the grades")
        return cls._on_levels(counts, MOST_CANDIDATES - 1, number)

    @classmethod
    def of(cls, counts: Part, outcomes: str, least: int, most: int) -> Held:
        counts.only(f"cells {outcomes}")
        cells = counts.integers("cells")
        columns = {name: counts.integers(name) for name in outcomes.split()}
        require_rising(cells, least, most, counts.at("cells"))
        sums = [sum(numbers) for numbers in zip(*columns.values(), strict=False)]
        fits = all(
            len(column) == len(cells) and min(column, default=0) >= 0 for column in columns.values()
        )
        fits = fits and all(sums) and sum(sums) <= MOST
        require(fits, counts.at("cells"), "do not fit the counts")
        return cls(cells, columns, sums)


def check_calibration(claim: Part, report: Report) -> None:
    graded = "graded-bets" in claim.get("procedure", str)
    claim.only(
        "kind procedure assumes certified n delta correction side scope bins drawn tables"
        + " graded" * graded
    )
    delta = _level(claim)
    scope = _choice(claim, "scope", (*SCOPES, "per-class", "all-labels"))
    correction = _choice(claim, "correction", ("sidak", "bonferroni"))
    side = _choice(claim, "side", ("both", "lower", "upper"))
    tables, bins = _tables(claim), _bins(claim.part("bins"))
    for table in tables:
        table.only("group counts lower upper")
    held = [
        Held.of_grades(claim, table.part("counts"), bins - 1, 256)
        if graded
        else Held.of(table.part("counts"), "wrong right", 0, bins - 1)
        for table in tables
    ]
    require(bins * len(tables) <= MOST_CELLS, claim.at("tables"), "have too many bins")
    _require_names(claim, tables, alone=scope == "top")
    if scope in ("per-class", "all-labels"):
        classes = [table.value["group"] for table in tables] == [str(i) for i in range(len(tables))]
        require(classes, claim.at("tables"), "are not one for each class, 0, 1, ...")
    # Rows of several bins or tables may be of one cluster.
    added = correction == "bonferroni" or _unit(claim) == "cluster"
    require(added, claim.at("correction"), "rows that depend share delta by addition")
    # Tables over the same rows share delta equally; disjoint ones are one table.
    overlapping = scope in ("overlapping-groups", "all-labels")
    budget = delta / len(tables) if overlapping else delta
    seen = sum(len(rows.cells) for rows in held)
    for table, rows in zip(tables, held, strict=True):
        cells, tests = (bins, len(rows.cells)) if overlapping else (bins * len(tables), seen)
        level = budget / cells if correction == "bonferroni" else sidak(budget, max(1, tests))
        largest = max(rows.sums, default=0)
        _require_apart(claim, largest if "bin" in _unit(claim) else sum(rows.sums), table)
        if graded:
            dense = [[row.get(k, 0) for k in range(rows.levels)] for row in rows.grades]
            _require_means(table, dense, level, side, fine=not _declared(claim))
        else:
            _require_bounds(table, rows.sums, rows.columns["right"], level, side)
    _require_rows(claim, [sum(rows.sums) for rows in held], scope)
    claim.equals("certified", expected=True)
    report.checked += ["every bound, at the level that its bin has", "n and the number of bins"]
    report.trusted += ["the counts of each bin, and that the bins were fixed beforehand"]


def _declared(claim: Part) -> bool:
    """Whether the scale lists all grades."""
    return len(claim.part("graded").limits("scale")) > 2


def _require_means(
    table: Part, grades: Sequence[Sequence[int]], level: Decimal, side: str, *, fine: bool
) -> None:
    """The bounds on the mean grade of each bin; a grade between two levels counts as the next one
    for the upper bound.
    """
    lower, upper = table.limits("lower"), table.limits("upper")
    fits = len(lower) == len(upper) == len(grades)
    require(fits, table.at("lower"), "as many bounds as bins are expected")
    level = level / 2 if side == "both" else level
    for i, counts in enumerate(grades):
        low, high = table.at(f"lower[{i}]"), table.at(f"upper[{i}]")
        require(0 <= lower[i] <= upper[i] <= 1, low, "are not 0 to 1")
        if side == "upper":
            require(lower[i] == 0.0, low, "is not 0")
        else:
            require_mean_lower(counts, decimal(lower[i]), level, low)
        if side == "lower":
            require(upper[i] == 1.0, high, "is not 1")
        else:
            raised = [0, *counts[:-2], counts[-2] + counts[-1]] if fine else counts
            require_mean_lower(raised[::-1], 1 - decimal(upper[i]), level, high)


MOST_BINS = 2**20
# The most bins of a table, and of all tables, empty ones included.
MOST_CELLS = 2**23


def _bins(part: Part) -> int:
    """The number of bins."""
    rule = part.get("rule", str)
    if rule == "equal-width":
        part.only("rule n_bins")
        require(part.count("n_bins", 1) <= MOST_BINS, part.at("n_bins"), "are too many")
        return part.count("n_bins")
    if rule not in ("edges", "edges-as-cells"):
        raise UnreadableError(f"{part.at('rule')} is not known")
    part.only("rule edges")
    edges = part.limits("edges")
    rises = all(one < two for one, two in pairwise(edges)) and bool(edges)
    inside = rises and edges[0] >= 0 and edges[-1] <= 1 and len(edges) <= MOST_BINS
    # Given bins hold every score; edges that are cells leave room on both sides.
    whole = inside and (rule != "edges" or (edges[0], edges[-1]) == (0, 1))
    require(whole, part.at("edges"), "do not rise from 0 to 1")
    return len(edges) - 1 if rule == "edges" else 2 * len(edges) + 1


def _require_names(claim: Part, tables: Sequence[Part], *, alone: bool) -> None:
    names = [table.get("group", str, type(None)) for table in tables]
    named = bool(names) and None not in names and are_in_order(names)
    require(names == [None] if alone else named, claim.at("tables"), "do not fit the scope")


def are_in_order(names: Sequence[str]) -> bool:
    """Whether names stand in their order, each once: numbers by their value, then text."""

    def place(name: str) -> tuple[int, int, str, str]:
        if not name.isdecimal():
            return 1, 0, "", name
        digits = "".join(str(int(digit)) for digit in name).lstrip("0")
        return 0, len(digits), digits, name

    return list(names) == sorted(set(names), key=place)


def _require_bounds(
    table: Part, trials: Sequence[int], successes: Sequence[int], level: Decimal, side: str
) -> None:
    lower, upper = table.limits("lower"), table.limits("upper")
    fits = len(lower) == len(upper) == len(trials)
    require(fits, table.at("lower"), "as many bounds as bins are expected")
    level = level / 2 if side == "both" else level
    for i, (k, n) in enumerate(zip(successes, trials, strict=True)):
        require(0 <= lower[i] <= upper[i] <= 1, table.at(f"lower[{i}]"), "are not 0 to 1")
        if side == "upper":
            require(lower[i] == 0.0, table.at(f"lower[{i}]"), "is not 0")
        else:
            # A lower bound on successes is an upper bound on failures.
            ends = [(1 - end, end) for end in _and_inwards(lower[i], 1.0)]
            _require_bound(n - k, n, ends, level, table.at(f"lower[{i}]"))
        if side == "lower":
            require(upper[i] == 1.0, table.at(f"upper[{i}]"), "is not 1")
        else:
            ends = [(end, 1 - end) for end in _and_inwards(upper[i], 0.0)]
            _require_bound(k, n, ends, level, table.at(f"upper[{i}]"))


def _and_inwards(bound: float, end: float) -> tuple[Decimal, Decimal]:
    """A bound, and what is two floats further in: bounds are rounded outwards by no more."""
    return decimal(bound), decimal(math.nextafter(math.nextafter(bound, end), end))


@by_arithmetic()
def _require_bound(
    k: int, n: int, ends: Sequence[tuple[Decimal, Decimal]], level: Decimal, place: str
) -> None:
    """At the first rate so few have at most the chance `level`, and at the second, which is two
    floats further in, at least (1 - WIDE) of it, or it is what was seen. Each rate comes with what
    it leaves to one, which keeps its digits.
    """
    (rate, rest), (inner, inner_rest) = ends
    if k == n:
        require(rate == 1, place, "is not the end of the range, though nothing speaks against it")
        return
    sound = tight = False
    if n <= MOST_TRIALS and level >= LEAST_LEVEL:
        shown = usable(k, n, level)
        near = shown * (1 - WIDE)
        sound = few(k, n, rate, shown, rest) <= shown * (1 - SURE)
        # Beyond a level of one half bounds may lie below what was seen, and need not.
        tight = sound and (
            inner * n <= k * (1 + Decimal("1e-14")) or few(k, n, inner, near, inner_rest) > near
        )
    if not tight and is_chernoff(n, level):
        enough, near = -level.ln(), -(1 - WIDE).ln()
        sound = rate * n > k and divergence(k, n, rate, rest) >= enough
        inside = inner * n <= k or divergence(k, n, inner, inner_rest) <= enough + near
        tight = sound and inside
    require(sound, place, "claims more than the counts show")
    require(tight, place, "claims less than the counts show")


def _require_rows(claim: Part, held: Sequence[int], scope: str) -> None:
    n = claim.count("n", 1)
    if scope == "overlapping-groups":
        fits = n >= max(held)
    elif scope == "all-labels":
        fits = all(rows in (0, n) for rows in held) and (n in held)
    else:
        fits = n == sum(held)
    require(fits, claim.at("n"), f"{n} rows do not fit the tables, which hold {list(held)[:9]}")


def check_walk(claim: Part, report: Report) -> None:
    """The thresholds of each table that hold are those that its walk passes, and no others."""
    kind = THRESHOLDS[claim.get("procedure", str)]
    declared, by_bets = "first_threshold" in kind.asks, kind.by == "bets"
    claim.only(
        f"kind procedure assumes certified n delta scope drawn tables {kind.asks}"
        + " graded" * by_bets
    )
    first = claim.limit("first_threshold") * TOP if declared else None
    on_grid = first is None or first in range(TOP + 1)
    require(on_grid, claim.at("first_threshold"), "is not on the grid")
    tables, rate, rows = _tables(claim), _allowed_rate(claim), 0
    delta = _rounded_down(Fraction(_level(claim)) / len(tables))
    for table in tables:
        table.only("group counts threshold claimed")
        stored = [tuple(ends) for ends in table.table("claimed")]
        fits = all(len(ends) == 2 for ends in stored)
        require(fits, table.at("claimed"), "are not ranges")
        if by_bets:
            held = Held.of_grades(claim, table.part("counts"), TOP, 256)
            require(bool(held.cells), table.at("counts"), "are of no rows")
            answered, found = sum(held.sums), _claimed_by_bets(held, rate, delta, stored)
        else:
            runs = _runs_of(table, kind, first)
            answered = runs.answered[-1]
            found = [
                _claimed(runs, rate, delta, declared=declared, lenient=lenient)
                for lenient in (False, True)
            ]
        _require_apart(claim, answered, table)
        fits = stored in found or None in found
        require(fits, table.at("claimed"), f"stored {stored}, recomputed {found[0]}")
        table.equals("threshold", written(stored[-1][0] / TOP if stored else math.inf))
        rows += answered
    _require_names(claim, tables, alone=_choice(claim, "scope", ("top", "groups")) == "top")
    require(claim.count("n", 1) == rows, claim.at("n"), f"the tables have {rows} rows")
    claim.equals("certified", any(table.value["claimed"] for table in tables))
    report.checked += ["every threshold that is claimed, and that no other is", "n"]
    report.trusted += ["the counts of each cell"]


@by_arithmetic(untested=[None])
def _claimed_by_bets(
    held: Held, xi: Decimal, delta: Decimal, stored: Sequence[tuple[int, ...]]
) -> list[list[tuple[int, ...]]]:
    """The thresholds whose evidence is enough, as ranges from the highest down; where it is close
    to enough, as the certificate has it.
    """
    if xi == 0:
        return [[]]
    tops = held.cells[::-1]
    found = thresholds_test(held.grades[::-1], held.levels, sum(held.sums), xi, delta)
    said = [any(low <= top <= high for low, high in stored) for top in tops]
    lowest = [*(top + 1 for top in tops[1:]), 0]
    holds = [claim if one is None else one for one, claim in zip(found, said, strict=True)]
    return [_joined((lowest[i], top) for i, top in enumerate(tops) if holds[i])]


def _allowed_rate(claim: Part) -> Decimal:
    """xi, or the largest double up to 1 - target."""
    if "xi" in claim.value:
        return decimal(claim.rate("xi", positive=False))
    return _rounded_down(1 - Fraction(claim.rate("target")))


def _rounded_down(exact: Fraction) -> Decimal:
    """The largest double up to it."""
    near = float(exact)
    return decimal(near if Fraction(near) <= exact else math.nextafter(near, 0.0))


@dataclass(frozen=True)
class Runs:
    """Rows in cells of the score, and the thresholds from the highest down. All from a top to above
    the next answer the same rows.
    """

    tops: list[int]
    answered: list[int]
    errors: list[int]


def _runs_of(table: Part, kind: Trials, first: float | None) -> Runs:
    held = Held.of(table.part("counts"), kind.outcomes, 0, TOP)
    require(bool(held.cells), table.at("counts"), "are of no rows")
    here: dict[int, list[int]] = {} if first is None else {int(first): [0, 0]}
    for cell, rows, events in zip(held.cells, held.sums, held.columns[kind.events], strict=True):
        both = here.setdefault(cell if first is None else min(cell, int(first)), [0, 0])
        both[0] += rows
        both[1] += events
    tops = sorted(here, reverse=True)
    answered, errors = (list(accumulate(here[top][i] for top in tops)) for i in (0, 1))
    return Runs(tops, answered, errors)


@by_arithmetic()
def _claimed(
    runs: Runs, xi: Decimal, delta: Decimal, *, declared: bool, lenient: bool
) -> list[tuple[int, ...]]:
    """The thresholds that hold, as ranges from the highest down: what the walks pass, each from
    where so many rows are answered down to its first failure.
    """

    @cache
    def passes(i: int, level: Decimal) -> bool:
        errors, rows = runs.errors[i], runs.answered[i]
        if errors > xi * rows * (1 + Decimal("1e-12")):
            return False
        if _far_below(errors, rows, float(xi), float(-level.ln())):
            return True
        found = binomial_test(errors, rows, xi, level)
        return lenient if found is None else found

    if xi == 0:
        return []
    if declared:
        walks = [(_start_count(1, xi, delta), delta)]
    else:
        walks = _walks(runs.answered[-1], xi, delta)
    held: set[int] = set()
    for count, level in walks:
        after = ((i, level) for i, rows in enumerate(runs.answered) if rows >= count)
        held.update(i for i, _ in takewhile(lambda step: passes(*step), after))
    lowest = [*(top + 1 for top in runs.tops[1:]), 0]
    return _joined((lowest[i], runs.tops[i]) for i in sorted(held))


def _far_below(k: int, n: int, rate: float, enough: float) -> bool:
    """Whether Chernoff's bound on P(Bin(n, rate) <= k) settles in double precision what takes long
    to add up, by a margin that rounding cannot reach.
    """
    if not 0 < k < n * rate or n > 10**9:
        return False
    low, high = k * math.log(k / (n * rate)), (n - k) * math.log((n - k) / (n * (1 - rate)))
    return low + high > 1.01 * enough + 1


def _walks(n: int, xi: Decimal, delta: Decimal) -> list[tuple[int, Decimal]]:
    """From how many answered rows on each walk goes, and at which level."""
    most = delta * 4 / 5
    first = _start_count(n, xi, most)
    if 2 * first > n:
        return [(_start_count(n, xi, delta), delta)]
    later = [count for s in range(1, 64) if (count := first << s) <= n]
    rest = delta / 5 / len(later)
    return [(first, most), *((count, rest) for count in later)]


def _start_count(n: int, xi: Decimal, level: Decimal) -> int:
    """The least number m of rows with P(Bin(m, xi) <= j) <= level, for the largest j with which it
    is at most n / 4 and 4 ln(level) / ln(1 - xi); for j = 0 if there is none.
    """
    hair = Decimal("1e-40")
    # Where 1 - xi has no digit left for xi, the logarithm is -xi.
    unit = level.ln() / ((1 - xi).ln() or -xi)

    def errors_within(rows: int) -> int:
        term = total = (rows * (1 - xi).ln()).exp()
        errors = 0
        while total <= level * (1 + hair) and errors <= rows:
            term *= (rows - errors) * xi / ((errors + 1) * (1 - xi))
            total += term
            errors += 1
        return errors - 1

    most = int(min(Decimal(n) / 4, 4 * unit))
    errors = errors_within(most)
    if errors < 0:
        return math.ceil(unit * (1 - hair))
    low = errors
    while most - low > 1:
        middle = (low + most) // 2
        low, most = (low, middle) if errors_within(middle) >= errors else (middle, most)
    return most


def _joined(ranges: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for low, high in ranges:
        if found and found[-1][0] == high + 1:
            found[-1] = (low, found[-1][1])
        else:
            found.append((low, high))
    return found


def _require_planned(
    claim: Part, allowed: int, trials: int, rate: Decimal, delta: Decimal, place: str
) -> None:
    """How many events may be among the trials of this look, by the plan of all looks."""
    planned = claim.integers("looks")
    require_rising(planned, 1, MOST, claim.at("looks"))
    if not planned:
        raise UnreadableError(f"{claim.at('looks')} is empty")
    require(trials in planned, claim.at("looks"), f"no look was planned at {trials}")
    require(-1 <= allowed < trials, place, "is out of its range")
    _require_spent(claim, allowed, trials, rate, delta, place)


@by_arithmetic()
def _require_spent(  # noqa: PLR0913, RUF100
    claim: Part, allowed: int, trials: int, rate: Decimal, delta: Decimal, place: str
) -> None:
    """Raise unless so many events, and no more, may be among the trials of this look."""
    planned = claim.integers("looks")
    _require_workable(claim, planned, float(rate), float(delta))
    # All looks have one nominal level, and it is this look's tail at the largest count that passes.
    if allowed >= 0:
        level = few(allowed, trials, rate)
        require(_spent(planned, rate, level, delta) <= delta, place, "the looks spend too much")
    level = few(allowed + 1, trials, rate)
    near = delta * (1 - Decimal("1e-5"))
    more = level > delta or _spent(planned, rate, level, delta) > near
    require(more, place, f"{allowed + 1} may go wrong, too")


# Multiplications of a plan, as the package makes them, beyond which it plans no looks.
MOST_PLAN_WORK = 1e10


def _require_workable(claim: Part, looks: Sequence[int], rate: float, delta: float) -> None:
    """Raise where the package plans no looks: too many, or none of which can pass."""
    place = claim.at("looks")
    require(delta >= 1e-200 and rate > 0, place, "are of no use here")
    reach = math.sqrt(2.0 * math.log(2.0 / (1e-6 * delta / len(looks))))
    work = covered = 0.0
    for before, look in pairwise([0, *looks]):
        added = look - before
        width = 2.0 * (reach * math.sqrt(added * rate * (1.0 - rate)) + reach**2 / 2.0) + 1.0
        width = min(width, added + 1.0)
        covered += width
        work += width * min(covered, looks[-1] * rate + 1.0) + 2e4
    work *= math.log2(2.0 + len(looks) * math.sqrt(looks[-1] * rate))
    require(work <= MOST_PLAN_WORK, place, "take too long to compute")
    last = looks[-1] * math.log1p(-rate) if rate < 1 else -math.inf
    require(last <= math.log(delta) * (1 - 1e-12), place, "cannot pass, not even the last")


def _spent(looks: Sequence[int], rate: Decimal, level: Decimal, delta: Decimal) -> Decimal:
    """The chance that some look passes at this nominal level, if the true rate is `rate`."""
    near = level * (1 + SURE)

    def passing(n: int) -> int:
        return largest(n, lambda k: few(k, n, rate, near) <= near)

    most = [passing(n) for n in looks]
    tiny = delta * Decimal("1e-25")
    states, passed, before = {0: ONE}, Decimal(0), 0
    for n, c in zip(looks, most, strict=True):
        law = _law(n - before, rate, most[-1], tiny)
        after: dict[int, Decimal] = {}
        Effort.spend(len(states) * len(law))
        for errors, chance in states.items():
            for more, other in law:
                if errors + more > most[-1]:
                    break
                after[errors + more] = after.get(errors + more, 0) + chance * other
        passed += sum(chance for errors, chance in after.items() if errors <= c)
        states, before = {errors: p for errors, p in after.items() if errors > c}, n
    # What the laws leave out, all of which might have passed.
    return passed + tiny * sum(looks)


def _law(n: int, rate: Decimal, most: int, tiny: Decimal) -> list[tuple[int, Decimal]]:
    """The binomial law up to `most`, without what is below `tiny`: from its highest value down on
    both sides.
    """
    if rate >= 1:
        # The share that must be found has no digit left: all trials go wrong.
        return [(n, ONE)] if n <= most else []
    odds = rate / (1 - rate)
    peak = min(int(n * rate), n)
    top = choose(n, peak) * rate**peak * (1 - rate) ** (n - peak)
    found: list[tuple[int, Decimal]] = []
    term, k = top, peak
    while k >= 0 and term >= tiny:
        found.append((k, term))
        term *= k / (odds * (n - k + 1))
        k -= 1
    found.reverse()
    term, k = top, peak
    while k < min(n, most) and term >= tiny:
        term *= odds * (n - k) / (k + 1)
        k += 1
        found.append((k, term))
    Effort.spend(len(found))
    return [(k, term) for k, term in found if k <= most and term >= tiny]


@dataclass(frozen=True)
class Trials:
    """Which rows of a claim are trials ("all", those of an outcome, or those that have "reached"
    the threshold), which of them are events, and whether "below" the threshold or "from" it on.
    `asks` are what is asked for beside delta and groups; `fixed` what of it the procedure itself
    says; `lost` says that lost rollouts are trials, and events at every threshold; `turns`, that
    tables hold where trials become events and where they cease to be.
    """

    asks: str
    outcomes: str
    lowest: int
    of: str
    events: str
    side: str
    fixed: str = ""
    by: str = "binomial"
    lost: bool = False
    turns: bool = False
    top: int = TOP
    groups: str = "group_thresholds small_groups"


_RECALL = Trials("target", "negative positive", 0, "positive", "positive", "below")
_SHIELD = Trials("xi rate horizon", "safe unsafe", -1, "all", "unsafe", "below", "rate=all")
# Without a score all rows are in the one cell below the grid: the claim holds, or is refused.
_RATE = Trials("target", "passed failed", -1, "all", "failed", "below", top=-1, groups="")
_REACHED = Trials("xi", "wrong right", 0, "reached", "wrong", "from", groups="")
# The procedures of claims about rates: what is asked for beside delta, and what is counted.
THRESHOLDS: dict[str, Trials] = {
    "sets/binomial/1": Trials("xi dtype", "labelled", -1, "all", "labelled", "below", top=2**30),
    "recall/binomial/1": _RECALL,
    "recall/planned-looks/1": replace(_RECALL, asks="target looks", by="looks"),
    "false-alarms/binomial/1": replace(
        _RECALL, asks="xi", of="negative", events="negative", side="from"
    ),
    "false-alarms/rollouts/1": Trials("xi", "safe unsafe", -1, "safe", "safe", "from", lost=True),
    "shield/binomial/1": _SHIELD,
    "shield/planned-looks/1": replace(_SHIELD, asks=f"{_SHIELD.asks} looks", by="looks"),
    "shield/among-unsafe/1": replace(_SHIELD, of="unsafe", fixed="rate=among-unsafe"),
    "forks/walk-up/1": replace(_SHIELD, asks="xi horizon start", fixed="", turns=True),
    "pass-rate/binomial/1": _RATE,
    "pass-rate/under-shield/1": replace(_RATE, asks="target threshold"),
    "abstention/rank-starts/1": _REACHED,
    "abstention/declared-start/1": replace(_REACHED, asks="xi first_threshold"),
    "abstention/graded-bets/1": replace(_REACHED, by="bets"),
    "precision/rank-starts/1": replace(
        _REACHED, asks="target", outcomes="negative positive", events="negative"
    ),
}
DTYPES = ("float16", "float32", "float64")
SCOPES = ("top", "groups", "overlapping-groups")


def _require_asked(claim: Part, kind: Trials) -> None:
    """Raise if what else was asked for cannot be, or does not fit the procedure."""
    if "threshold" in kind.asks:
        driven = claim.limit("threshold")
        require(0 <= driven <= 1 or math.isinf(driven), claim.at("threshold"), "is no threshold")
    if "dtype" in kind.asks:
        _choice(claim, "dtype", DTYPES)
    if "horizon" in kind.asks and claim.get("horizon", int, type(None)) is not None:
        claim.count("horizon", 1)
    for key, value in (pair.split("=") for pair in kind.fixed.split()):
        if _choice(claim, key, ("all", "among-unsafe")) != value:
            raise UnreadableError(f"{claim.at(key)} does not fit the procedure")


def check_threshold(claim: Part, report: Report) -> None:
    """Each table's threshold is the farthest at which few enough trials are events."""
    kind = THRESHOLDS[claim.get("procedure", str)]
    claim.only(
        f"kind procedure assumes certified n delta scope drawn tables {kind.groups} {kind.asks}"
    )
    n, delta, rate = claim.count("n", 1), _level(claim), _allowed_rate(claim)
    shared_by = ("group_thresholds", ("common", "own")), ("small_groups", ("refuse", "leave-out"))
    own, leave_out = (
        bool(kind.groups) and _choice(claim, key, choices) == choices[1]
        for key, choices in shared_by
    )
    scope = _choice(claim, "scope", SCOPES)
    _require_asked(claim, kind)
    tables = claim.parts("tables")
    alone = scope == "top"
    _require_names(claim, tables, alone=alone)
    if kind.by == "looks":
        fixed = alone and claim.value.get("drawn") is None
        require(fixed, claim.at("looks"), "cannot be combined with groups or draws")
    undrawn = not kind.turns or claim.value.get("drawn") is None
    require(undrawn, claim.at("drawn"), "rows of forks are not drawn")
    if leave_out and alone:
        raise UnreadableError(f"{claim.at('small_groups')} does not fit the claim")
    level = delta
    # Given how many are left out, the scores of groups that depend on them follow another law.
    shared = own or (leave_out and _depend(claim))
    if shared and not alone and len(tables) > 1:
        level = _own_level(claim, delta, len(tables))
    sizes, limits = list[int](), list[float]()
    certified, by_number = list[bool](), list[bool]()
    for table in tables:
        table.only("group counts threshold allowed" + " turns" * kind.turns)
        counts, allowed = _histogram(claim, table, kind), table.get("allowed", int)
        _require_allowed(claim, counts, allowed, rate, level, table.at("allowed"))
        limits.append(counts.limit(allowed))
        sizes.append(counts.rows)
        _require_apart(claim, counts.rows, table)
        certified.append(limits[-1] != counts.refused)
        # Not even zero events would pass: a matter of the number of trials alone.
        by_number.append(leave_out and allowed < 0)
    _require_thresholds(tables, limits, by_number, None if own else kind.side)
    whole = max(sizes) <= n if scope == "overlapping-groups" else sum(sizes) == n
    require(whole, claim.at("n"), f"the tables have {sum(sizes)} rows")
    fails = [not (passes or small) for passes, small in zip(certified, by_number, strict=True)]
    held = any(certified) and (not any(fails) or (own and not alone))
    claim.equals("certified", held)
    report.checked += ["how many may go wrong, the thresholds, n"]
    if any(by_number):
        report.checked += ["that groups were left out by their number of trials alone"]
    report.trusted += ["the counts of each cell"]


def _require_thresholds(
    tables: list[Part], limits: list[float], left_out: list[bool], side: str | None
) -> None:
    """Each group has its own threshold, or, where a `side` is named, all that were not left out
    have the most cautious one of theirs.
    """
    pairs = list(zip(limits, left_out, strict=True))
    kept = [limit for limit, small in pairs if not small] or limits
    common = min(kept) if side == "below" else max(kept)
    for table, (limit, small) in zip(tables, pairs, strict=True):
        table.equals("threshold", written(limit if side is None or small else common))


@dataclass(frozen=True)
class Histogram:
    """The rows of a table: occupied cells with the events in each, how many trials there are, and
    how many of them are events at every threshold because they were lost.
    """

    kind: Trials
    cells: list[int]
    events: list[int]
    rows: int
    trials: int
    lost: int

    @classmethod
    def of(cls, counts: Part, kind: Trials) -> Histogram:
        held = Held.of(counts, kind.outcomes, kind.lowest, kind.top)
        cells, columns, sums = held.cells, held.columns, held.sums
        gone = "safe" in columns and bool(cells) and cells[0] < 0 and not kind.turns
        require(not gone or not columns["safe"][0], counts.at("safe"), "a lost rollout is not safe")
        begin = 1 if kind.lost and gone else 0
        lost = sum(sums[:begin])
        trials = sum(sums) if kind.of == "all" else sum(columns[kind.of]) + lost
        return cls(kind, cells[begin:], columns[kind.events][begin:], sum(sums), trials, lost)

    def turning(self, counts: Part, turns: Part, start: int) -> Histogram:
        """The same rollouts with the events at the start in the cell below the grid, and how many
        more or fewer there are above each later cell. Above a cell can turn only what has reached
        it: rollouts whose highest cell is lower stay what they are.
        """
        held = Held.of(turns, "safe unsafe", -1, TOP)
        place = turns.at("cells")
        safe, unsafe = (sum(held.columns[name][:1]) for name in ("safe", "unsafe"))
        begun = held.cells[:1] == [-1] * bool(self.rows) and safe + unsafe == self.rows
        require(begun, place, "begin others")
        cells, events = [-1], [unsafe]
        highest = zip(self.cells, counts.integers("safe"), self.events, strict=True)
        ended, stay_safe, stay_unsafe = list(highest)[::-1], 0, 0
        for cell, saved, lost in list(
            zip(held.cells, held.columns["safe"], held.columns["unsafe"], strict=True)
        )[1:]:
            while ended and ended[-1][0] < cell:
                _, kept_safe, kept_unsafe = ended.pop()
                stay_safe, stay_unsafe = stay_safe + kept_safe, stay_unsafe + kept_unsafe
            fits = saved <= unsafe - stay_unsafe and lost <= safe - stay_safe
            require(fits, place, "turn more than there are")
            safe, unsafe = safe + saved - lost, unsafe + lost - saved
            if cell < start:
                events[0] += lost - saved
            else:
                cells.append(cell)
                events.append(lost - saved)
        require(unsafe == sum(self.events), place, "end with other unsafe rollouts")
        return replace(self, cells=cells, events=events, trials=self.rows)

    @property
    def refused(self) -> float:
        """The threshold of a refusal."""
        return -math.inf if self.kind.side == "below" else math.inf

    def limit(self, allowed: int) -> float:
        """The farthest threshold with at most so many events."""
        below = self.kind.side == "below"
        if allowed < self.lost:
            return self.refused
        many = self.lost
        for cell, events in list(zip(self.cells, self.events, strict=True))[:: 1 if below else -1]:
            many += events
            if many > allowed:
                if cell == (-1 if below else self.kind.top):
                    return self.refused
                return (cell if below else cell + 1) / self.kind.top
        return math.inf if below else 0.0


def _histogram(claim: Part, table: Part, kind: Trials) -> Histogram:
    part = table.part("counts")
    counts = Histogram.of(part, kind)
    return counts.turning(part, table.part("turns"), _start(claim)) if kind.turns else counts


def _start(claim: Part) -> int:
    """The cell at which a walk starts."""
    number = claim.limit("start") * TOP
    if not (0 <= number <= TOP and number == int(number)):
        raise UnreadableError(f"{claim.at('start')} is not on the grid")
    return int(number)


def _require_allowed(  # noqa: PLR0913, RUF100
    claim: Part, counts: Histogram, allowed: int, rate: Decimal, level: Decimal, place: str
) -> None:
    """The largest number of events among the trials that shows a rate of at most `rate`."""
    trials = counts.trials
    if counts.kind.by == "looks":
        _require_planned(claim, allowed, trials, rate, level, place)
    else:
        require_largest(allowed, trials, lambda k: binomial_test(k, trials, rate, level), place)


def check_batch(claim: Part, report: Report) -> None:
    claim.only(
        "kind procedure assumes certified n delta xi tolerated scored key looks stop"
        " sampled_before whole_ties exits asked unanswered descriptive"
    )
    n, scored, looks = claim.count("n", 1), claim.count("scored"), claim.parts("looks")
    delta = _level(claim)
    tolerated = math.floor(as_written(claim.rate("xi", positive=False)) * n)
    claim.equals("tolerated", tolerated)
    claim.equals("certified", expected=True)
    key = claim.get("key", str)
    require(len(key) == 32 and not set(key) - set("0123456789abcdef"), claim.at("key"), "no key")
    for look in looks:
        look.only("sampled allowed disagreements")
    sizes = [look.count("sampled", 1) for look in looks]
    require_rising(sizes, 1, scored, claim.at("looks"))
    one = claim.get("procedure", str) == "batch/credit/1"
    require(len(looks) <= 1 if one else len(looks) == 2, claim.at("looks"), "are of another number")
    useful = not looks or 0 < tolerated < scored
    require(scored <= n and useful, claim.at("looks"), "are of no use here")
    _require_credit(claim, looks, sizes, tolerated, delta)
    sampled, stop = _batch_stop(claim, looks, scored)
    claim.equals("stop", stop)
    before = _beginning(claim, scored, sampled)
    most = max(stop - before, min(tolerated, scored - sampled))
    exits = most
    if claim.get("whole_ties", dict, type(None)) is not None:
        ties = claim.part("whole_ties")
        ties.only("stop sampled_before threshold")
        exits = ties.count("stop") - _beginning(ties, scored, sampled)
        require(exits <= most, ties.at("stop"), "keeps more records than the looks allow")
        limit, none = ties.limit("threshold"), ties.value["stop"] == 0
        fits = limit == math.inf if none else 0 <= limit <= 1
        whole = limit > 0 or ties.value["stop"] == scored
        require(fits and whole, ties.at("threshold"), "is no score of these records")
    claim.equals("exits", exits)
    claim.equals("asked", n - exits)
    require(claim.count("unanswered") <= n - exits, claim.at("unanswered"), "more than were asked")
    described = claim.part("descriptive")
    described.only("asked_share sampled_differing")
    described.equals("asked_share", (n - exits) / n)
    _require_differing(described.count("sampled_differing"), looks, sampled, described)
    report.checked += ["the credit of each look", "where it stops, what was kept and asked"]
    report.trusted += ["which records were sampled, and what the slow model answered"]


SECOND_SHARE = Decimal("0.15") / Decimal("0.85")


@by_arithmetic()
def _require_credit(
    claim: Part, looks: Sequence[Part], sizes: Sequence[int], tolerated: int, delta: Decimal
) -> None:
    """How many sampled disagreements each look allows."""
    counts, scored = [look.get("allowed", int) for look in looks], claim.count("scored")
    if len(looks) == 1:
        (size,), (count,) = sizes, counts

        def test(k: int) -> Verdict:
            return verdict(lambda _: _one_look_errs(scored, tolerated, size, k), delta, slack(size))

        require_largest(count, size, test, looks[0].at("allowed"))
    elif looks:
        found = _two_looks(scored, tolerated, delta, sizes)
        require(counts == found, looks[0].place, f"the looks allow {found}, not {counts}")


def _one_look_errs(scored: int, tolerated: int, size: int, count: int) -> Decimal:
    """P(a sample has at most `count` of the first m + 1 + `count` disagreements)."""
    marked = tolerated + 1 + count
    return few_drawn(count, scored, marked, size) if count >= 0 and marked <= scored else Decimal(0)


def _two_looks(scored: int, tolerated: int, delta: Decimal, sizes: Sequence[int]) -> list[int]:
    """c_1 and c_2 are the largest counts at the levels a and a 3/17 that together err with at most
    the chance delta, for the largest a, which is bisected to 1e-6 of delta.
    """

    def at(nominal: Decimal) -> list[int]:
        def allowed(size: int, level: Decimal) -> int:
            return largest(size, lambda k: _one_look_errs(scored, tolerated, size, k) <= level)

        first, second = allowed(sizes[0], nominal), allowed(sizes[1], nominal * SECOND_SHARE)
        return [min(first, second), second]

    def holds(counts: Sequence[int]) -> bool:
        return _two_looks_err(scored, tolerated, sizes, counts) <= delta * (1 - Decimal("1e-9"))

    low, high = delta / (1 + SECOND_SHARE), delta
    best, most = at(low), at(high)
    if holds(most):
        return most
    while best != most and high - low > Decimal("1e-6") * delta:
        middle = (low + high) / 2
        counts = at(middle)
        if counts == best or (counts != most and holds(counts)):
            low, best = middle, counts
        else:
            high, most = middle, counts
    return best


def _two_looks_err(
    scored: int, tolerated: int, sizes: Sequence[int], counts: Sequence[int]
) -> Decimal:
    """P(one of two looks has at most c of the first m + 1 + c disagreements in its sample).

    Let y be how many of the first J_1 are in the larger sample. Given y, how many of them are in
    the smaller, and how many of the next J_2 - J_1 are in the larger, are independent.
    """
    (small, large), (first, second) = sizes, counts
    marked = [tolerated + 1 + count for count in counts]
    if first < 0 or marked[0] > scored:
        return _one_look_errs(scored, tolerated, large, second)
    if marked[1] > scored:
        return _one_look_errs(scored, tolerated, small, first)
    total = few_drawn(first, scored, marked[0], small)
    for y in range(second + 1):
        both = just_drawn(y, scored, marked[0], large) * (1 - few_drawn(first, large, y, small))
        if both:
            later = few_drawn(second - y, scored - marked[0], marked[1] - marked[0], large - y)
            total += both * later
    return total


def _batch_stop(claim: Part, looks: Sequence[Part], scored: int) -> tuple[int, int]:
    """How many records were sampled, and how many the longest look passed before it stopped."""
    stops, sampled, before = [0], 0, set[int]()
    for place, look in enumerate(looks):
        if look.get("disagreements", list, type(None)) is None:
            require(place > 0, look.at("disagreements"), "no look was taken")
            continue
        ranks, allowed = look.integers("disagreements"), look.get("allowed", int)
        require_rising(ranks, 0, scored - 1, look.at("disagreements"))
        require(len(ranks) <= allowed + 1, look.at("disagreements"), "goes on after its end")
        full = len(ranks) == allowed + 1
        missing = before - set(ranks)
        seen = missing and (not full or not ranks or min(missing) <= ranks[-1])
        require(not seen, look.at("disagreements"), "not all that the look before it found")
        before, sampled = set(ranks), look.count("sampled")
        stops.append(0 if allowed < 0 else ranks[-1] if full else scored)
    listed = sum(rank < max(stops) for rank in before)
    fits = claim.count("sampled_before") >= listed
    require(fits, claim.at("sampled_before"), f"{listed} sampled disagreements stand there")
    return sampled, max(stops)


def _beginning(part: Part, scored: int, sampled: int) -> int:
    """How many of the first `stop` records were sampled."""
    stop, before = part.count("stop"), part.count("sampled_before")
    fits = stop <= scored and max(0, stop - scored + sampled) <= before <= min(stop, sampled)
    require(fits, part.at("sampled_before"), f"{before} of {stop} cannot be")
    return before


def _require_differing(differing: int, looks: Sequence[Part], sampled: int, part: Part) -> None:
    taken = [look for look in looks if look.value["disagreements"] is not None]
    listed = len(taken[-1].value["disagreements"]) if taken else 0
    whole = not taken or listed <= taken[-1].value["allowed"]
    fits = differing == listed if whole else listed <= differing <= sampled
    require(fits, part.at("sampled_differing"), f"{differing} does not fit the {listed} listed")


# Cascades. A walk is a list of steps along a path; a path is a list of thresholds in cells.

Cells = tuple[int, ...]
Costs = Sequence[float]

NO_LOSS_SHARES = """
    1 0.9995 0.999 0.9975 0.995 0.99 0.985 0.98 0.97 0.96 0.95 0.925 0.9 0.85 0.8 0.7 0.6 0.5 0.3 0
"""
NO_LOSS_GRID = [math.ceil(Fraction(share) * TOP) for share in NO_LOSS_SHARES.split()]
TILTS = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
NO_LOSS_STEPS = range(24, 1025, 50)


class Route:
    """A list of thresholds in cells, each once, and the place of each in it; or one that a fold
    `declared`, which need not fall.
    """

    def __init__(self, steps: Iterable[Cells], *, declared: bool = False) -> None:
        self.all, self.declared = list(steps), declared
        self.steps = list(dict.fromkeys(self.all))
        self.place = {cells: i for i, cells in enumerate(self.steps)}


@lru_cache(maxsize=8)
def declared_paths(exits: int) -> list[Route]:
    """One from the top to 0 for a single exit. Else seven: ceil(1024 / (1 + e^-(t + kappa))) for
    1024 values of t from 8 down to -8, then zeros.
    """
    if exits == 1:
        return [Route((cell,) for cell in range(TOP, -1, -1))]
    falling = [8.0 - 16.0 * i / 1023 for i in range(1024)]
    paths = []
    for tilt in TILTS:
        kappa = [tilt * m / (exits - 1) for m in range(exits)]
        path = [tuple(math.ceil(1024 / (1 + math.exp(-t - k))) for k in kappa) for t in falling]
        paths.append(Route([*path, (0,) * exits]))
    return paths


@dataclass(frozen=True)
class Walk:
    """The steps that a certificate keeps of a walk, with the counts of each exit."""

    steps: list[Cells]
    counts: list[Counts]
    unlabelled: list[Cells]
    place: str

    def along(self, path: Route) -> list[int]:
        """The places of the steps on a path."""
        on_path = all(step in path.place for step in self.steps)
        require(on_path, f"{self.place}.cells", "leaves the declared path")
        found = [path.place[step] for step in self.steps]
        fits = found == sorted(set(found)) and found[0] == 0
        require(fits, f"{self.place}.cells", "does not go down its path from the beginning")
        return found


def read_walk(part: Part, n: int, *, falling: bool) -> Walk:
    some = "unlabelled_added" in part.value
    names = "exits only_slow only_fast" + " unlabelled" * some
    keys = "cells " + " ".join(f"{name}_added" for name in names.split())
    part.only(keys + " grades_added" * ("grades_added" in part.value))
    cells = part.table("cells")
    tables = {name: part.table(f"{name}_added") for name in names.split()}
    lengths = {len(row) for table in (cells, *tables.values()) for row in table}
    shaped = len({len(cells), *map(len, tables.values())}) == 1 and len(lengths) == 1
    require(shaped and 0 not in lengths and 1 <= len(cells) <= 5, part.place, "no tables of a walk")
    counts = {name: [list(accumulate(row)) for row in table] for name, table in tables.items()}
    values = [value for table in counts.values() for row in table for value in row]
    require(all(0 <= value <= n for value in values), part.place, f"counts are not 0 to {n}")
    columns = {name: list(zip(*table, strict=True)) for name, table in counts.items()}
    require(not some or any(map(any, counts["unlabelled"])), part.place, "none is unlabelled")
    steps = list(zip(*cells, strict=True))
    missing = columns.get("unlabelled", [(0,) * len(cells)] * len(steps))
    found = []
    for i in range(len(steps)):
        exits, slow, fast = (columns[name][i] for name in ("exits", "only_slow", "only_fast"))
        losses = tuple(a + b for a, b in zip(slow, missing[i], strict=True))
        told = tuple(a + b for a, b in zip(losses, fast, strict=True))
        nested = all(a <= b for a, b in zip(told, exits, strict=True))
        all_rows = sum(exits) <= n and (0 not in steps[i] or sum(exits) == n)
        require(nested and all_rows, part.place, f"the counts of step {i} cannot be")
        found.append(Counts(exits, losses, fast))
    if "grades_added" in part.value:
        found = _with_grades(part, found)
    walk = Walk(steps, found, missing, part.place)
    if falling:
        _require_falling(walk, counts, columns["exits"])
    return walk


def _with_grades(part: Part, counts: Sequence[Counts]) -> list[Counts]:
    """The counts of each step with what is lost there, if as many rows can lose and gain it."""
    table, place = part.table("grades_added"), part.at("grades_added")
    shaped = len(table) == 5 and {len(row) for row in table} == {len(counts)}
    require(shaped, place, "no table of losses")
    found = []
    for one, grades in zip(counts, zip(*map(accumulate, table), strict=True), strict=True):
        loss, gain, squares, *cubes = grades
        pairs = [(sum(one.losses), loss, 1), (sum(one.gains), gain, 1), (loss + gain, squares, 1)]
        pairs += [(loss, cubes[0], 2), (gain, cubes[1], 2)]
        fits = all(0 <= a <= b <= a * FINE_LOSS**power for a, b, power in pairs)
        require(fits and max(grades) <= MOST, place, "cannot be")
        found.append(replace(one, grades=grades))
    return found


def _require_falling(
    walk: Walk, counts: dict[str, list[list[int]]], exits: Sequence[Cells]
) -> None:
    """Rows come to the first exit and never leave it; those at later ones leave for earlier."""
    lower = all(a >= b for one, two in pairwise(walk.steps) for a, b in zip(one, two, strict=True))
    left = [list(accumulate(column)) for column in exits]
    first = [row[0] for row in counts.values()] + [[c.differ[0] for c in walk.counts]]
    grow = all(row == sorted(row) for row in (*first, *map(list, zip(*left, strict=True))))
    require(lower and grow, walk.place, "thresholds or counts do not go one way")


@dataclass(frozen=True)
class Group:
    """The walks of a group of rows, or of all."""

    part: Part
    n: int
    walks: list[Walk]
    partial: bool

    @classmethod
    def of(cls, part: Part, *, falling: bool) -> Group:
        part.only("group n thresholds chosen labels walks best_possible")
        n, parts = part.count("n"), part.parts("walks")
        walks = [read_walk(walk, n, falling=falling) for walk in parts]
        alike = len({len(walk.steps[0]) for walk in walks}) == 1
        require(alike, part.at("walks"), "do not have the same exits")
        require(part.count("chosen") < len(walks), part.at("chosen"), "is no walk")
        partial = part.get("labels", dict, type(None)) is not None
        best = part.get("best_possible", dict, type(None)) is not None
        without = any(any(step) for walk in walks for step in walk.unlabelled)
        require(partial == best and (partial or not without), part.at("labels"), "do not fit")
        return cls(part, n, walks, partial)

    @property
    def exits(self) -> int:
        return len(self.walks[0].steps[0])

    @property
    def top(self) -> int:
        """The cell of the score 1."""
        return TOP if self.exits == 1 else JOINT_TOP

    @property
    def end(self) -> Ends:
        """Where the claim says that it ends."""
        limits, chosen = self.part.limits("thresholds"), self.part.count("chosen")
        cells = tuple(self.top + 1 if limit == math.inf else limit * self.top for limit in limits)
        fits = all(0 <= cell <= self.top + 1 and cell == int(cell) for cell in cells)
        fits = fits and len(cells) == self.exits
        require(fits, self.part.at("thresholds"), "are not on the grid")
        return None if min(limits) == math.inf else tuple(map(int, cells)), chosen

    def at(self, cells: Cells | None, chosen: int) -> tuple[Counts, Cells]:
        """The counts at the thresholds, and those without a label; nothing if there are none."""
        walk, none = self.walks[chosen], (0,) * self.exits
        if cells is None or cells not in walk.steps:
            return Counts(none, none, none), none
        place = len(walk.steps) - 1 - walk.steps[::-1].index(cells)
        return walk.counts[place], walk.unlabelled[place]


# The thresholds where a cascade ends, None if it is refused, and on which walk.
Ends = tuple[Cells | None, int]


def walk_down(
    groups: Sequence[Group], tests: Sequence[StepTest], paths: Sequence[Route], place: str
) -> list[int]:
    """Where each walk ends that all groups take together, -1 if the first step fails: at the last
    place of its path before some group fails. Each keeps the steps up to there at which its counts
    change, and the step that fails; along a sequence that a fold declared, all of them.
    """
    ends = []
    for index, path in enumerate(paths):
        own = [group.walks[index] for group in groups]
        places = [walk.along(path) for walk in own]
        last, length = max(found[-1] for found in places), len(path.steps)
        there = [
            (test, walk.counts[-1])
            for test, walk, found in zip(tests, own, places, strict=True)
            if found[-1] == last
        ]
        if len(groups) == 1 and last < length - 1:
            tests[0].require([], [there[0][1]], own[0].place)
            ends.append(last - 1)
        else:
            fails = [not test.may_pass(step) for test, step in there]
            near = last < length - 1 and any(test.may_fail(step) for test, step in there)
            whole = last == length - 1
            require(any(fails) or near or whole, place, "a walk stops though all groups pass")
            ends.append(last - 1 if any(fails) or near else last)
        for test, walk, found in zip(tests, own, places, strict=True):
            _require_prefix(test, walk, found, ends[-1], every=path.declared)
    return ends


def _require_prefix(
    test: StepTest, walk: Walk, places: Sequence[int], end: int, *, every: bool
) -> None:
    """All steps up to the end pass, the end is there, and so is nothing that does not change."""
    passed = [step for step, place in zip(walk.counts, places, strict=True) if place <= end]
    test.require(passed, [], walk.place)
    require(max(end, 0) in places, walk.place, "the step at which it ends is missing")
    if every:
        require(places == list(range(len(places))), walk.place, "leaves a declared step out")
        return
    for i in range(1, len(places)):
        same = walk.counts[i].judged == walk.counts[i - 1].judged
        require(not same or places[i] == end, walk.place, "keeps a step that changes nothing")


def pooled(exits: Iterable[Sequence[int]]) -> list[int]:
    """How many rows of all groups together leave at each exit."""
    return [sum(column) for column in zip(*exits, strict=True)]


def total_cost(exits: Sequence[int], n: int, costs: Costs) -> float:
    """What n rows cost, exactly, and then rounded once."""
    rows = [*exits, n - sum(exits)]
    return float(sum(many * Fraction(cost) for many, cost in zip(rows, costs, strict=True)))


def decide(
    groups: Sequence[Group],
    tests: Sequence[StepTest],
    paths: Sequence[Route],
    costs: Costs,
    counted: Sequence[Group],
) -> Ends:
    """Where groups that have their thresholds in common end."""
    place, n = groups[0].part.at("walks"), sum(g.n for g in counted)
    number = {len(group.walks) for group in groups}
    require(number == {len(paths)}, place, f"not one for each of {len(paths)} paths")
    if not _IS_TESTED.get():
        return groups[0].end
    if tests[0].xi == 0 and not paths[0].declared:
        return _without_loss(groups, tests, costs, counted)
    ends = walk_down(groups, tests, paths, place)
    found = [(i, paths[i].steps[end]) for i, end in enumerate(ends) if end >= 0]

    def cost(option: tuple[int, Cells]) -> float:
        rows = (group.at(option[1], option[0])[0].exits for group in counted)
        return total_cost(pooled(rows), n, costs)

    if found:
        chosen, cells = min(found, key=cost)
        return cells, chosen
    if len(groups) > 1:
        # A refusal is said to be on the first of the walks on which the fewest groups fail at once.
        fails = [
            sum(not t.may_pass(g.walks[i].counts[0]) for g, t in zip(groups, tests, strict=True))
            for i in range(len(paths))
        ]
        return None, fails.index(min(fails))
    starts = [walk.counts[0] for walk in groups[0].walks]
    loss = [sum(step.losses) - sum(step.gains) for step in starts]
    return None, loss.index(min(loss))


def _without_loss(
    groups: Sequence[Group], tests: Sequence[StepTest], costs: Costs, counted: Sequence[Group]
) -> Ends:
    """For xi = 0: of the declared thresholds the cheapest at which all groups pass."""
    exits, n, options = groups[0].exits, sum(group.n for group in counted), []
    for index, path in enumerate(declared_paths(exits)):
        steps: list[Cells] = [(cell,) for cell in NO_LOSS_GRID]
        if exits > 1:
            steps = [path.all[i] for i in NO_LOSS_STEPS]
        own = [group.walks[index] for group in groups]
        same = all(walk.steps == steps for walk in own)
        require(same, own[0].place, "does not have the steps that are declared for xi = 0")
        for i, cells in enumerate(steps):
            if all(t.may_pass(w.counts[i]) for t, w in zip(tests, own, strict=True)):
                rows = (group.walks[index].counts[i].exits for group in counted)
                cost = total_cost(pooled(rows), n, costs)
                options.append(((cost if exits > 1 else 0.0, index, i if exits > 1 else -i), cells))
    if not options:
        return None, 0
    (_, index, _), cells = min(options)
    return cells, index


def require_end(group: Group, end: Ends, *, graded: bool) -> None:
    """Raise unless the group's thresholds are these."""
    (cells, chosen), part = end, group.part
    never = (group.top + 1,) * group.exits
    expected = [math.inf if cell > group.top else cell / group.top for cell in cells or never]
    stored = part.limits("thresholds")
    require(stored == expected, part.at("thresholds"), f"stored {stored}, recomputed {expected}")
    part.equals("chosen", chosen)
    if group.partial:
        _require_labels(group, sum(group.at(cells, chosen)[1]), graded=graded)


def _require_labels(group: Group, missing: int, *, graded: bool) -> None:
    """What more labels could lead to is bounded, not recomputed: no row below a failure is kept. A
    graded row may be known at one exit and not at another.
    """
    labels = group.part.part("labels")
    labels.only("labelled unlabelled")
    labelled, unlabelled = labels.count("labelled"), labels.count("unlabelled")
    fits = labelled + unlabelled <= group.n and missing <= unlabelled
    for walk in group.walks:
        for counts, without in zip(walk.counts, walk.unlabelled, strict=True):
            fits = fits and sum(without) <= unlabelled
            known = sum(counts.differ) - sum(without)
            fits = fits and known <= (group.n if graded else labelled)
    require(fits, labels.place, "do not fit the walks")
    best = group.part.part("best_possible")
    best.only("thresholds chosen exits")
    exits = best.integers("exits")
    fits = len(exits) == group.exits and min(exits) >= 0 and sum(exits) <= group.n
    limits = best.limits("thresholds")
    never = all(limit == math.inf for limit in limits)
    on_grid = all(0 <= limit <= 1 and (limit * group.top).is_integer() for limit in limits)
    fits = fits and len(limits) == group.exits and (on_grid or (never and not any(exits)))
    fits = fits and best.count("chosen") < len(group.walks)
    fits = fits and (0.0 not in limits or sum(exits) == group.n)
    require(fits, best.place, "cannot be")


def _require_no_worse(groups: Sequence[Group], ends: Sequence[Ends], costs: Costs) -> None:
    """What more labels could lead to costs no more than the claim itself, and is the same where it
    is said to be.
    """
    first = groups[0]
    if not first.partial or ends[0][0] is None:
        return
    best = [group.part.part("best_possible") for group in groups]
    here = pooled(group.at(*end)[0].exits for group, end in zip(groups, ends, strict=True))
    there = pooled(part.integers("exits") for part in best)
    n = sum(group.n for group in groups)
    limits = best[0].limits("thresholds")
    settled = limits == first.part.limits("thresholds") and best[0].count("chosen") == ends[0][1]
    fits = math.inf not in limits and total_cost(there, n, costs) <= total_cost(here, n, costs)
    fits = fits and (not settled or here == there)
    require(fits, best[0].place, "is worse than the claim, or not the same where it should be")


def _require_parts(groups: Sequence[Group], counted: Sequence[Group], end: Ends) -> None:
    """Where groups overlap the rows of each are among all rows."""
    if len(counted) == len(groups):
        return

    def rows(group: Group) -> list[int]:
        at, missing = group.at(*end)
        slow = (lost - without for lost, without in zip(at.losses, missing, strict=True))
        return [*at.exits, *at.gains, *missing, *at.losses, *slow]

    for group in groups:
        fits = all(a <= b for a, b in zip(rows(group), rows(counted[0]), strict=True))
        require(fits, group.part.place, "has rows that are not among all")


def _costs(claim: Part, exits: int) -> list[float]:
    """What a row costs that leaves at each exit: as asked for, or 1, 2, 3, ..."""
    if claim.get("costs", list, type(None)) is None:
        return [float(i + 1) for i in range(exits + 1)]
    costs = claim.limits("costs")
    rise = len(costs) == exits + 1 and all(a < b for a, b in pairwise([0.0, *costs]))
    require(rise and costs[-1] <= 1e290, claim.at("costs"), "do not rise, one for each model")
    return costs


def _differs(claim: Part, groups: Sequence[Group], ends: Sequence[Ends]) -> bool:
    """Whether the claim is that few answers differ from the slow model's. It takes no labels:
    every answer that differs counts, and more labels lead nowhere else.
    """
    if _choice(claim, "claim", ("loss", "differ")) == "loss":
        return False
    for group, end in zip(groups, ends, strict=True):
        labelled = not group.partial or group.part.part("labels").count("labelled") > 0
        require(not labelled, claim.at("claim"), "'differ' takes no labels, and there are some")
        best = group.part.part("best_possible")
        there = best.limits("thresholds"), best.count("chosen"), tuple(best.integers("exits"))
        here = group.part.limits("thresholds"), group.part.count("chosen"), group.at(*end)[0].exits
        require(there == here, best.place, "is not the end itself, which no label can change")
    return True


MOST_GROUPS = 1000


def check_cascade(claim: Part, report: Report) -> None:
    """The thresholds of all rows, or of each group, follow from the counts along their walks."""
    procedure = claim.get("procedure", str)
    shared, fold = SHARED.get(procedure), procedure == "cascade/declared/1"
    keys = "kind procedure assumes certified n xi delta claim costs scope drawn tables"
    claim.only(keys + " declared" * fold, "graded left_out")
    graded = "graded" in claim.value
    fits = not graded or claim.get("claim", str) == "loss"
    require(fits, claim.at("graded"), "no such claim is made of graded rows")
    n, xi, level = claim.count("n", 1), claim.rate("xi", positive=False), _level(claim)
    groups = [Group.of(part, falling=not fold) for part in _tables(claim)]
    counted = _counted_groups(claim, groups, shared)
    exits, place = groups[0].exits, claim.at("tables")
    lost = {len(walk.counts[0].grades) for group in groups for walk in group.walks}
    fits = len(lost) == 1 and (graded or lost == {0})
    require(fits, place, "do not count what is lost in one way")
    require(all(group.exits == exits for group in groups), place, "do not have the same exits")
    held = sum(g.n for g in counted) + _left_out(claim, groups, shared, report)
    require(held == n, claim.at("n"), "is not that of the tables")
    costs = _costs(claim, exits)
    paths = [_declared_sequence(claim, groups[0])] if fold else declared_paths(exits)
    level = _own_level(claim, level, len(groups)) if shared == "own" else level
    level = level if fold else _walk_level(level, exits, xi)
    tests = [StepTest(group.n, xi, level) for group in groups]
    if shared == "own":
        pairs = zip(groups, tests, strict=True)
        ends = [decide([group], [test], paths, costs, [group]) for group, test in pairs]
    else:
        ends = [decide(groups, tests, paths, costs, counted)] * len(groups)
    for group, end in zip(groups, ends, strict=True):
        require_end(group, end, graded=graded)
        if shared == "own":
            _require_no_worse([group], [end], costs)
    if shared != "own":
        _require_no_worse(counted, ends[: len(counted)], costs)
        _require_parts(groups, counted, ends[0])
    claim.equals("certified", any(end[0] is not None for end in ends))
    differ = _differs(claim, groups, ends)
    partial = [group.partial for group in groups]
    fits = all(partial) or not any(partial)
    if any(partial) and not differ:
        fits = fits and any(group.part.part("labels").count("unlabelled") for group in groups)
    fits = fits and not (fold and any(partial))
    require(fits, place, "labels of all groups, with one that is missing, or of none")
    _say_cascade(report, tests, partial=any(partial) and not differ, fold=fold, differ=differ)


def _left_out(claim: Part, groups: Sequence[Group], shared: str | None, report: Report) -> int:
    """The rows of groups that were left out: too few by their number, and no others are."""
    if "left_out" not in claim.value:
        return 0
    part, xi = claim.part("left_out"), decimal(claim.rate("xi", positive=False))
    level = _walk_level(_level(claim), groups[0].exits, float(xi))
    fits = shared == "common" and claim.get("scope", str) == "groups" and xi > 0
    fits = fits and not _depend(claim)
    names = {group.part.get("group", str, type(None)) for group in groups}
    require(fits and bool(part.value), part.place, "does not fit the claim")
    require(not names & set(part.value), part.place, "names a group that has a table")
    sizes = [part.count(name) for name in part.value]
    for rows in sizes:
        require(binomial_test(0, rows, xi, level) is not True, part.place, "a group could pass")
    for group in groups:
        enough = binomial_test(0, group.n, xi, level) is not False
        require(enough, group.part.place, "is as small as those that were left out")
    report.checked += ["that groups were left out by their number of rows alone"]
    return sum(sizes)


def _counted_groups(claim: Part, groups: Sequence[Group], shared: str | None) -> list[Group]:
    """The groups that hold every row once, if the names of all fit the scope."""
    scope, place = _choice(claim, "scope", SCOPES), claim.at("tables")
    names = [group.part.get("group", str, type(None)) for group in groups]
    for group in groups:
        _require_apart(claim, group.n, group.part)
    require((scope == "top") == (shared is None), claim.at("scope"), "is not that of the procedure")
    if scope == "top":
        require(names == [None], place, "are not one table without a group")
        return list(groups)
    fits = None not in names and are_in_order(names) and len(names) <= MOST_GROUPS
    require(fits, place, "are not named in order, each once")
    if scope == "groups":
        return list(groups)
    require(shared == "common" and "all rows" in names, claim.at("scope"), "no group of all")
    whole = groups[names.index("all rows")]
    require(all(group.n <= whole.n for group in groups), place, "more than all")
    return [whole]


def _walk_level(delta: Decimal, exits: int, xi: float) -> Decimal:
    """The level of each step: walks, and without loss the steps, share delta equally."""
    walks = 1 if exits == 1 else len(TILTS)
    steps = 1 if xi > 0 else len(NO_LOSS_GRID) if exits == 1 else len(NO_LOSS_STEPS)
    return delta / walks / steps


def _say_cascade(
    report: Report, tests: Sequence[StepTest], *, partial: bool, fold: bool, differ: bool
) -> None:
    report.checked += [
        f"that every step of every walk passes, and the one after it does not{by_region(tests)}",
        "thresholds, and the choice among walks",
    ]
    report.trusted += ["the counts along the walks, and that nothing changes between their steps"]
    report.trusted += ["what more labels could lead to, within bounds"] * partial
    report.trusted += ["that the sequence was declared by other rows"] * fold
    report.checked += ["that no row has a label, and every answer that differs counts"] * differ
    report.trusted += [
        "that 'differ' was declared beforehand, and not chosen from several claims about these rows"
    ] * differ


def _declared_sequence(claim: Part, group: Group) -> Route:
    """The sequence that a fold declared, if the walk can be one sample's along it."""
    part, walk = claim.part("declared"), group.walks[0]
    part.only("models costs share seed rows cells")
    table, models = part.table("cells"), part.integers("models")
    never = group.top + 1
    shaped = len(table) == group.exits and len({len(row) for row in table}) == 1
    require(shaped, part.at("cells"), "no sequence")
    steps = list(zip(*table, strict=True))
    fits = len(set(steps)) == len(steps) <= 1024 and (never,) * group.exits not in steps
    fits = fits and all(0 <= cell <= never for step in steps for cell in step)
    require(fits, part.at("cells"), "is not a sequence of different thresholds")
    fits = len(models) == len(set(models)) == group.exits + 1 and min(models) >= 0
    require(fits, part.at("models"), "are not one different place for each model")
    part.rate("share")
    _require_seed(part)
    part.count("rows", 1)
    _require_one_sample(walk)
    total = list(accumulate(part.limits("costs")))
    require(claim.limits("costs") == total, claim.at("costs"), "are not those of the fold")
    unused = all(
        not rows or cell < never
        for step, counts in zip(walk.steps, walk.counts, strict=True)
        for cell, rows in zip(step, counts.exits, strict=True)
    )
    require(unused, walk.place, "rows leave at an exit that is never taken")
    return Route(steps, declared=True)


@by_arithmetic()
def _require_one_sample(walk: Walk) -> None:
    """Where the thresholds before exit m are no lower and its own is no higher, all its counts are
    at least as large; where those up to m are no higher, no fewer rows have left by then.
    """
    left = [list(accumulate(counts.exits)) for counts in walk.counts]
    Effort.spend(len(walk.steps) ** 2)
    for m in range(len(walk.steps[0])):
        counted = [
            (c.exits[m], c.exits[m] - c.differ[m], c.differ[m], c.losses[m], c.gains[m])
            for c in walk.counts
        ]
        for s, one in enumerate(walk.steps):
            for t, two in enumerate(walk.steps):
                higher = all(a >= b for a, b in zip(one[:m], two[:m], strict=True))
                lower = all(a <= b for a, b in zip(one[: m + 1], two[: m + 1], strict=True))
                more = all(a >= b for a, b in zip(counted[s], counted[t], strict=True))
                fits = more or not (higher and one[m] <= two[m])
                fits = fits and (not lower or left[s][m] >= left[t][m])
                require(fits, walk.place, f"the counts of exit {m} are not those of one sample")


# Of a candidate to replace an old model: lost are the rows on which only the old one is right, or
# what is missing could show that; gained those on which only the new one is.
COMPARED = "equal only_new only_old neither unlabelled may_lose may_gain"
LOST = ("only_old", "unlabelled", "may_lose")
MOST_CANDIDATES = 4


def check_replacement(claim: Part, report: Report) -> None:
    """In each group the candidates pass that lose less than xi."""
    claim.only(
        "kind procedure assumes certified n xi delta group_verdicts small_groups looks scope drawn "
        "tables" + " graded" * ("replacement/graded" in claim.get("procedure", str))
    )
    graded = "graded" in claim.value
    n, xi, level = claim.count("n", 1), claim.rate("xi", positive=False), _level(claim)
    own = _choice(claim, "group_verdicts", ("common", "own")) == "own"
    leave_out = _choice(claim, "small_groups", ("refuse", "leave-out")) == "leave-out"
    scope, tables, place = _choice(claim, "scope", SCOPES), _tables(claim), claim.at("tables")
    _require_names(claim, tables, alone=scope == "top")
    require(len(tables) <= MOST_GROUPS, place, "are too many")
    held = [
        Held.of_differences(claim, part.part("counts"))
        if graded
        else Held.of(part.part("counts"), COMPARED, 0, MOST_CANDIDATES - 1)
        for part in tables
    ]
    models = max(len(one.cells) for one in held)
    whole = all(one.cells in ([], list(range(models))) for one in held)
    require(whole and all(len({*one.sums}) < 2 for one in held), place, "are not of the same rows")
    sizes = [one.sums[0] if one.sums else 0 for one in held]
    if scope == "overlapping-groups":
        names = [part.get("group", str) for part in tables]
        fits = "all rows" in names and sizes[names.index("all rows")] == n == max(sizes)
    else:
        fits = sum(sizes) == n and all(sizes)
    require(fits, claim.at("n"), f"the tables have {sum(sizes)} rows")
    level /= models * _equal_looks(claim, n)
    if leave_out and (own or scope == "top" or xi == 0):
        raise UnreadableError(f"{claim.at('small_groups')} does not fit the claim")
    if (own or (leave_out and _depend(claim))) and len(tables) > 1:
        level = _own_level(claim, level, len(tables))
    for part, size in zip(tables, sizes, strict=True):
        _require_apart(claim, size, part)
    left = _left_out_of(claim, tables, sizes, level, report)
    passed, tests = [], [StepTest(size, xi, level, seeded=True) for size in sizes]
    for part, one, test, gone in zip(tables, held, tests, left, strict=True):
        part.only("group counts passed left_out")
        stored = part.integers("passed")
        require_rising(stored, 0, models - 1, part.at("passed"))
        if gone:
            require(not stored, part.at("passed"), "the group was left out")
            continue
        for m in range(len(one.cells)):
            if graded:
                right = _grades_fit(one, m, xi, level, passed=m in stored)
                require(right, part.at("passed"), f"candidate {m} does not follow from its grades")
                continue
            lost = sum(one.columns[name][m] for name in LOST)
            gained = one.columns["only_new"][m]
            seen = Counts((test.n,), (lost,), (gained,))
            right = test.may_pass(seen) if m in stored else test.may_fail(seen)
            require(right, part.at("passed"), f"candidate {m} does not follow from its counts")
        require(bool(one.cells) or not stored, part.at("passed"), "nothing was compared")
        passed.append(set(stored))
    passing = set.union(*passed) if own else set.intersection(*passed)
    claim.equals("certified", len(passing) == models)
    asked = [test for test, gone in zip(tests, left, strict=True) if not gone]
    report.checked += [f"which candidates pass{by_region(asked)}"]
    report.trusted += ["the counts of each candidate"]


def _left_out_of(
    claim: Part, tables: Sequence[Part], sizes: Sequence[int], level: Decimal, report: Report
) -> list[bool]:
    """Which groups were left out, for the number of their rows."""
    left = [part.get("left_out", bool) for part in tables]
    leave_out = claim.value["small_groups"] == "leave-out"
    require(leave_out or not any(left), claim.at("tables"), "no group was to be left out")
    require(not all(left), claim.at("tables"), "no group is left")
    if leave_out:
        _require_small(claim, left, sizes, level, report)
    return left


@by_arithmetic(untested=True)
def _grades_fit(held: Held, candidate: int, xi: float, level: Decimal, *, passed: bool) -> bool:
    """Whether it is right to count a candidate as passed, or not, by its graded differences: by
    losses and gains on one step, in the chance over all coins on few, and else by bets.
    """
    cells, steps = held.grades[candidate], held.levels // 3 - 1
    counts = [cells.get(k, 0) for k in range(2 * steps + 1)]
    # A missing quality counts as the worst that it can be.
    for place in range(steps + 1):
        counts[steps + place] += cells.get(2 * steps + 1 + place, 0)
    counts[-1] += cells.get(3 * steps + 2, 0)
    n = sum(counts)
    if steps == 1:
        test, seen = StepTest(n, xi, level), Counts((n,), (counts[2],), (counts[0],))
        return test.may_pass(seen) if passed else test.may_fail(seen)
    mean = (1 + Decimal(xi)) / 2
    if steps <= COARSE and n <= LARGEST_EXACT:
        verdicts = [tossed_test(counts, xi, float(level / 2), 0.5, claimed=passed)]
    elif n > 20_000 or n == 0:
        verdicts = [mean_test(counts, mean, level) if n else False]
    else:
        verdicts = [mean_test(counts, mean, level * 3 / 10)]
        if verdicts[0] is not passed:
            part = float(level * 49 / 100)
            verdicts.append(tossed_test(counts, xi, part, 0.7, claimed=passed))
    return any(one is not False for one in verdicts) if passed else True not in verdicts


def _require_small(
    claim: Part, left: Sequence[bool], sizes: Sequence[int], level: Decimal, report: Report
) -> None:
    """Groups are left out by their number of rows alone, and none where all are too small."""
    xi = decimal(claim.rate("xi", positive=False))
    enough = [binomial_test(0, size, xi, level) for size in sizes]
    fits = all(verdict is not gone for verdict, gone in zip(enough, left, strict=True))
    fits = fits or not (any(left) or True in enough)
    require(fits, claim.at("tables"), "not the groups that are too small are left out")
    report.checked += ["that groups were left out by their number of rows alone"]


def _equal_looks(claim: Part, n: int) -> int:
    """How many looks share delta, if one of them is at n rows."""
    if claim.get("looks", list, type(None)) is None:
        return 1
    looks = claim.integers("looks")
    require_rising(looks, 1, MOST, claim.at("looks"))
    fits = n in looks and claim.value.get("drawn") is None
    require(fits, claim.at("looks"), "do not go with these rows")
    return len(looks)


# ----------------------------------------------------------------------------------- 5. The whole

PROCEDURES: dict[str, str] = {
    **{name: name.split("/")[0] for name in THRESHOLDS},
    "calibration/clopper-pearson/1": "calibration",
    "calibration/graded-bets/1": "calibration",
    "batch/credit/1": "batch",
    "batch/credit-two-looks/1": "batch",
    "bundle/union-bound/1": "bundle",
    "replacement/paired/1": "replacement",
    "replacement/graded/1": "replacement",
    "cascade/paths/1": "cascade",
    "cascade/paths-in-groups/common/1": "cascade",
    "cascade/paths-in-groups/own/1": "cascade",
    "cascade/declared/1": "cascade",
}
# How groups of a cascade have their thresholds.
SHARED = {"cascade/paths-in-groups/common/1": "common", "cascade/paths-in-groups/own/1": "own"}
# The kinds of claims about rates.
RATES = dict.fromkeys(name.split("/")[0] for name in THRESHOLDS)
CHECKS: dict[str, Callable[[Part, Report], None]] = {
    **dict.fromkeys(RATES, check_threshold),
    "calibration": check_calibration,
    "abstention": check_walk,
    "precision": check_walk,
    "batch": check_batch,
    "cascade": check_cascade,
    "replacement": check_replacement,
}
COUNTED = {
    **dict.fromkeys(
        RATES,
        "kind procedure n xi target delta first_threshold start rate looks horizon threshold "
        "group_thresholds small_groups dtype scope tables",
    ),
    "calibration": "kind procedure n delta correction side scope bins tables",
    "batch": "kind procedure n xi delta scored key stop sampled_before whole_ties unanswered looks",
    "cascade": "kind procedure n xi delta claim costs scope declared left_out tables",
    "replacement": "kind procedure n xi delta group_verdicts small_groups looks scope tables",
}
# What the counts digest covers: of a claim, and of the objects of a list in it.
COUNTED_WITHIN = {
    ("calibration", "tables"): "group counts",
    ("batch", "looks"): "sampled disagreements",
    **{(kind, "tables"): "group counts turns" for kind in RATES},
    ("cascade", "tables"): "group n labels walks",
    ("replacement", "tables"): "group counts",
}


@dataclass
class Report:
    """What was found about a certificate."""

    wrong: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON: keys sorted, no spaces, ASCII, shortest exact floats."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def counts_digest(claim: Part) -> str:
    """The digest of what was counted and asked for."""
    kind = claim.get("kind", str)
    if kind == "bundle":
        members = claim.part("claims")
        asked = {key: claim.value.get(key) for key in ("kind", "procedure", "delta")}
        inner = {}
        for name in members.value:
            _require_known(members.part(name), within=kind)
            inner[name] = counts_digest(members.part(name))
        return digest({**asked, "claims": inner})
    counted: dict[str, Any] = {}
    for key in [*COUNTED[kind].split(), "drawn", "graded"]:
        if key not in claim.value:
            continue
        within = COUNTED_WITHIN.get((kind, key))
        counted[key] = claim.value[key]
        if within is not None:
            counted[key] = [
                {name: part.value[name] for name in within.split() if name in part.value}
                for part in claim.parts(key)
            ]
    return digest(counted)


def check_document(document: dict[str, Any], *, patient: bool = False) -> Report:
    """What is wrong with a certificate, what was checked, and what was not."""
    Effort.left = math.inf if patient else MOST_WORK
    whole, report = Part(document, "certificate"), Report()
    whole.only("format schema claim claim_digest counts_digest provenance provenance_digest")
    schema = document["schema"]
    if document["format"] != "pacbound-certificate" or type(schema) is not int or schema != 1:
        raise UnreadableError("not a pacbound certificate of schema 1")
    claim, provenance = whole.part("claim"), whole.part("provenance")
    _require_known(claim)
    _require_provenance(provenance)
    found = {
        "claim": digest(claim.value),
        "counts": counts_digest(claim),
        "provenance": digest(provenance.value),
    }
    report.wrong += [
        f"{part}_digest: the digest does not fit the {part}"
        for part, value in found.items()
        if whole.get(f"{part}_digest", str) != value
    ]
    report.checked.append(f"the digests of {', '.join(sorted(found))}")
    with localcontext(CONTEXT):
        _check_claim(claim, report)
    report.trusted += [
        "that the assumptions hold",
        "where the data come from",
        "what the certificate is about, when it was made, and that this is in use",
    ]
    return report


def require_shape(document: dict[str, Any]) -> None:
    """Raise unless the claim and the provenance of a certificate have a shape that can be checked:
    all values are there and can be of one sample. Nothing is computed from them.
    """
    claim, report = Part(document["claim"], "claim"), Report()
    _require_known(claim)
    _require_provenance(Part(document["provenance"], "provenance"))
    token = _IS_TESTED.set(False)
    try:
        with localcontext(CONTEXT):
            _check_claim(claim, report)
    finally:
        _IS_TESTED.reset(token)
    if report.wrong:
        raise WrongError(report.wrong[0])


LONGEST_ABOUT = 1000
LONGEST_SAMPLE = 200
NOTES = ("too few to tell", "unrelated")
ANSWER = re.compile(r"[0-9]{1,15}/[1-9][0-9]{0,14} .{0,200}", re.DOTALL)
# What each key of the provenance may hold.
PROVENANCE: dict[str, Callable[[Part], bool]] = {
    "package": lambda part: part.get("package", str) == "pacbound",
    "version": lambda part: type(part.get("version", str)) is str,
    "created": lambda part: type(part.get("created", str)) is str,
    "columns": lambda part: all(starmap(_is_column, part.texts_by_name("columns").items())),
    "sources": lambda part: part.texts("sources") is not None,
    "about": lambda part: (
        0 < max(map(len, part.texts_by_name("about").values()), default=0) <= LONGEST_ABOUT
    ),
    "notes": lambda part: (
        _all(part, "notes", lambda _: True)
        and all(starmap(_is_note, part.texts_by_name("notes").items()))
    ),
    "sample": lambda part: _is_name(part.get("sample", str)),
    "samples": lambda part: _all(part, "samples", _is_name),
    "drawn_by": lambda part: _all(part, "drawn_by", _is_digest),
}
OPTIONAL_PROVENANCE = "about notes sample samples drawn_by"


def _all(part: Part, key: str, fits: Callable[[str], bool]) -> bool:
    """Whether there is at least one text under a key, and each of them fits."""
    texts = part.texts_by_name(key).values()
    return bool(texts) and all(map(fits, texts))


def _is_column(name: str, text: str) -> bool:
    """The name of a column, or what a score of 1 is written as in them."""
    if name != "scale" and not name.endswith(".scale"):
        return True
    with suppress(ValueError):
        return 0 < float(text) < math.inf and repr(float(text)) == text
    return False


def _is_note(name: str, text: str) -> bool:
    """What was noticed of labels, or the answer that is most often wrong: "31/80 effusion"."""
    what = name.rpartition(".")[2]
    return (what == "labels" and text in NOTES) or (
        what == "worst_answer" and ANSWER.fullmatch(text) is not None
    )


def _is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_SAMPLE and text == text.strip() and text.isprintable()


def _is_digest(text: str) -> bool:
    hexadecimal = text.removeprefix("sha256:")
    return (
        len(text) == 71 and len(hexadecimal) == 64 and set(hexadecimal) <= set("0123456789abcdef")
    )


def _require_provenance(part: Part) -> None:
    """Raise unless the provenance has its form; what it says is taken on trust."""
    part.only(" ".join(PROVENANCE), OPTIONAL_PROVENANCE)
    for key, fits in PROVENANCE.items():
        if key in part.value and not fits(part):
            raise UnreadableError(f"{part.at(key)} is not what a provenance holds")


_ROWS_ASSUMED = "independent-rows untouched-rows asked-beforehand"
_WALK_ASSUMED = f"{_ROWS_ASSUMED} rows-unseen every-row-counts compared-in-float64"
_ROWS_IDS = "independent-rows untouched-rows every-row-counts"
_ROLLOUT_IDS = "independent-rollouts asked-beforehand every-rollout-counts"
_BACKUP_IDS = "one-simulated-backup shield-latches"
_SHIELD_IDS = f"rollouts-unseen {_ROLLOUT_IDS} score-up-to-unrecoverable {_BACKUP_IDS}"
_STOPPED_IDS = f"{_ROWS_IDS} asked-beforehand stopped-by-outcome compared-in-float64"
SAMPLE_IDS = f"{_ROWS_ASSUMED} rows-unseen every-row-counts "
PARTIAL_IDS = "labels-may-be-missing labels-as-they-are"
COMPLETE_IDS = "labels-where-models-differ"
LOSS_IDS = f"{SAMPLE_IDS}{PARTIAL_IDS} net-loss"
EXITS_IDS = "exits-at-threshold"
OWN_IDS = "exits-at-own-threshold"


ASSUMED_IDS = {
    **dict.fromkeys(
        ("batch/credit/1", "batch/credit-two-looks/1"),
        "records-before-the-sample one-permutation answers-whatever-is-asked sample-before-asking",
    ),
    "bundle/union-bound/1": "all-of-each-claim claims-and-shares-beforehand",
    **dict.fromkeys(
        ("calibration/clopper-pearson/1", "calibration/graded-bets/1"),
        f"{_ROWS_ASSUMED} rows-by-bin every-row-counts bins-beforehand",
    ),
    "abstention/rank-starts/1": _WALK_ASSUMED,
    "abstention/declared-start/1": _WALK_ASSUMED,
    "abstention/graded-bets/1": _WALK_ASSUMED,
    "precision/rank-starts/1": _WALK_ASSUMED,
    "sets/binomial/1": SAMPLE_IDS + "same-type-in-use",
    **dict.fromkeys(
        ("replacement/paired/1", "replacement/graded/1"),
        SAMPLE_IDS + "unknown-counts-against-new labels-as-they-are net-loss-of-new",
    ),
    "pass-rate/binomial/1": SAMPLE_IDS + "missing-did-not-pass",
    "pass-rate/under-shield/1": (
        "independent-rows rollouts-under-shield asked-beforehand driven-beforehand "
        "every-driven-rollout-counts only-this-threshold shield-latches"
    ),
    "recall/binomial/1": _STOPPED_IDS,
    "recall/planned-looks/1": _STOPPED_IDS.replace("stopped-by-outcome", "looks-beforehand"),
    "false-alarms/binomial/1": _STOPPED_IDS,
    "false-alarms/rollouts/1": (
        "rollouts-unseen independent-rollouts asked-beforehand lost-rollouts-alarm "
        "score-of-whole-rollout one-simulated-backup compared-in-float64"
    ),
    "shield/binomial/1": _SHIELD_IDS,
    "shield/among-unsafe/1": _SHIELD_IDS,
    "shield/planned-looks/1": _SHIELD_IDS.replace("rollouts-unseen", "looks-at-rollouts"),
    "forks/walk-up/1": (
        "rollouts-unseen independent-rollouts asked-beforehand every-fork-counts "
        "forks-have-own-noise fork-is-shielded-rollout shield-latches"
    ),
    "cascade/paths/1": f"{LOSS_IDS} {EXITS_IDS}",
    "cascade/paths-in-groups/common/1": f"{LOSS_IDS}-in-groups other-groups-open {EXITS_IDS}",
    "cascade/paths-in-groups/own/1": f"{LOSS_IDS}-in-groups {OWN_IDS}",
    "cascade/declared/1": (f"{SAMPLE_IDS}{COMPLETE_IDS} net-loss {EXITS_IDS} declared-by-a-fold"),
}
# What each procedure assumes, by the names that the page of procedures explains.
DRAWN_IDS = {
    "weights": "exact-weights same-labels-given-inputs one-seed",
    "clusters": "claim-per-cluster one-seed",
    "clusters-and-group": "claim-per-cluster-and-group one-seed",
    "clusters-and-bin": "claim-per-cluster-and-bin one-seed",
    "clusters-among-and-group": "claim-per-trial-of-cluster-and-group one-seed",
    "clusters-bounded": "claim-per-row-of-clusters one-seed",
    "clusters-among": "claim-per-cluster-with-trials one-seed",
    "clusters-among-bounded": "claim-per-trial-of-clusters one-seed",
}
# What a rule that fixes the number of rows may see: more where each row is in one group, nothing of
# bins where a row is tried in several tables or they begin at scores of these rows.
WITH_GROUPS = {
    "rows-unseen": "rows-by-group",
    "rows-by-bin": "rows-by-bin-and-group",
    "stopped-by-outcome": "stopped-by-outcome-and-group",
}
NUMBERED_IDS = {*WITH_GROUPS, *WITH_GROUPS.values(), "rollouts-unseen"}


_ABOUT_ROWS = ("independent-rows", "independent-rollouts")


def _sentences(text: str) -> dict[str, str]:
    """The sentence of each name."""
    return dict(line.split(": ", 1) for line in text.replace("\n ", "").splitlines())


# What the names stand for. Conditions restrict what somebody may do: delta holds for whoever does
# all that they allow. Meanings say no more than what a claim is about.
CONDITIONS = _sentences("""\
independent-rows: The rows are independent draws from the data the model will meet in use.
independent-rows-weighted: The rows are independent draws from one distribution, and the weights
  turn it into that of the data the model will meet in use.
untouched-rows: No row was used for training, tuning or choosing the model.
asked-beforehand: xi (or target), delta and all else that was asked were fixed without a look at
  these rows.
rows-unseen: The number of rows was fixed beforehand, or by a rule that saw nothing of the rows.
rows-by-group: The number of rows was fixed beforehand, or by a rule that saw nothing of a row but
  its group.
rows-by-bin: The number of rows was fixed beforehand, or by a rule that saw nothing of a row but its
  bin.
rows-by-bin-and-group: The number of rows was fixed beforehand, or by a rule that saw nothing of a
  row but its bin and its group (where each predicted class has intervals, its predicted class).
stopped-by-outcome: When to stop was fixed beforehand, or by a rule that saw nothing of a row but
  whether it is positive.
stopped-by-outcome-and-group: When to stop was fixed beforehand, or by a rule that saw nothing of a
  row but whether it is positive, and its group.
clusters-unseen: The number of clusters was fixed beforehand, or by a rule that saw nothing of them.
bins-beforehand: The bins were fixed without these rows, or begin and end at scores of these rows
  whose ranks were fixed beforehand, each of these scores a cell of its own.
every-row-counts: Every drawn row is counted.
labels-where-models-differ: Labels are missing only where all predictions agree.
labels-as-they-are: A label does not depend on whether, when or why it was asked for, and none was
  changed after it was seen.
differ-beforehand: That the claim is about answers that differ was fixed without a look at these
  rows. If another claim about the same rows may be published in its place, their deltas add up.
declared-by-a-fold: The models, their order and the sequence of thresholds were chosen without these
  rows: on a fold that was drawn by a seed, before any row was looked at.
groups-beforehand: The groups were fixed without these rows: not by their scores, answers or labels,
  nor by how many rows a group has. A small group was left out only by its number of rows or trials,
  as declared.
same-type-in-use: In use the model computes probabilities in the type that was counted; they are
  compared with the threshold as float64.
stopped-by-clusters: When to stop was fixed beforehand, or decided between clusters by a rule that
  saw nothing of a completed cluster but whether it has a row of the kind that is drawn: not how
  many, nor in which group.
looks-beforehand: The looks were fixed before anything of these rows was seen; each counts all rows
  up to it, in the order in which they were drawn.
compared-in-float64: In use scores are compared with the threshold as float64.
independent-rollouts: The rollouts are of the policy without its shield, independent draws from what
  will be met in use; their seeds were neither used to train, tune or choose anything, nor chosen by
  what they show.
rollouts-without-shield: The rollouts are of the policy without its shield; their seeds were neither
  used to train, tune or choose anything, nor chosen by what they show.
independent-rollouts-weighted: The rollouts are of the policy without its shield, independent draws
  from one distribution, and the weights turn it into that of what will be met in use; their seeds
  were neither used to train, tune or choose anything, nor chosen by what they show.
rollouts-unseen: The number of rollouts was fixed beforehand, or by a rule that saw nothing of them.
looks-at-rollouts: The looks were fixed before the first rollout; each counts all rollouts up to it,
  in the order in which they were started.
every-rollout-counts: Every rollout that was started is counted. One that was lost, or whose backup
  fails at the start, counts as unsafe and missed: with the score -inf.
lost-rollouts-alarm: Every rollout that was started is counted. One that was lost, or whose backup
  fails at the start, also counts as a safe one that raises an alarm, so that it speaks against this
  claim, too.
one-simulated-backup: Whether a state is un-recoverable is judged by one simulation of the backup
  per step, and the simulator behaves as the world does.
every-fork-counts: Every rollout that was started is counted; a fork that was lost or did not end is
  unsafe on its interval, a lost rollout above the highest danger that it had reached.
forks-have-own-noise: Each fork is one simulation of the backup, with noise that is independent of
  all that led there: never begun again from the seed of the rollout.
fork-is-shielded-rollout: A rollout forks wherever the running maximum of its danger rises, with the
  observation that was read there, and the simulator behaves as the world does.
rollouts-under-shield: The rollouts are of the policy with its shield on, at the threshold that is
  named. Where a threshold was chosen after an earlier drive, its rollouts are new.
every-driven-rollout-counts: Every rollout that was started is counted; one that was lost did not
  pass.
driven-beforehand: The threshold and the number of rollouts were fixed before the first rollout.
  Where several thresholds were driven, each was higher than the one before, the first that was
  refused was the last, and none was driven again.
independent-clusters: The clusters are independent draws from those that will be met in use; all
  rows of a cluster are in one count.
claim-per-row-of-clusters: One row was drawn from each cluster and kept with probability size /
  bound, so the claim is about a random row. The bound holds for every cluster, and was fixed
  beforehand.
claim-per-trial-of-clusters: One row of the kind that the claim counts (of a recall, one positive)
  was drawn from each cluster that has any, and kept with probability number of such rows / bound,
  so the claim is about a random row of this kind. The bound holds for every cluster, and was fixed
  beforehand.
one-seed: Which rows were drawn follows from a seed that the operating system drew once (or that was
  passed, drawn at random before and without sight of the rows); no other draw was tried. Rows stood
  in the same order at every look, or have ids.
exact-weights: The weights are exactly proportional to the density of the target over that of the
  rows, depend on inputs only, and nowhere exceed the bound, which was fixed beforehand. Estimated
  weights carry no guarantee.
same-labels-given-inputs: Labels given inputs are distributed alike in both.
graded-on-levels: Answers were graded. What is said here of accuracy or of wrong answers holds for
  the mean quality, as graded, as a share of the scale; what is said of labels holds for grades. A
  grade between two levels counts as the one that the claim has less of. How rows are graded does
  not depend on what is certified.
records-before-the-sample: The records, their scores and the fast model's answers were fixed before
  the sample was drawn; nothing is assumed about where they come from.
one-permutation: The sample is the beginning of one random permutation, drawn once: no second one
  was drawn after the slow model's answers to the first were seen.
answers-whatever-is-asked: The slow model's answer to a record does not depend on which records it
  is asked about.
sample-before-asking: xi, delta and the size of the sample were fixed before the slow model was
  asked.
all-of-each-claim: What each claim assumes holds, for each of them: a rule that fixed the number of
  rows saw no more of them than every claim allows.
claims-and-shares-beforehand: Which claims are made, and their shares of delta, were fixed before
  the data were looked at.
""")
MEANINGS = _sentences("""\
labels-may-be-missing: Labels may be missing in any row and for any reason; each that is missing
  where the answer differs from the slow model's counts as a loss.
unknown-counts-against-new: Labels and answers may be missing in any row and for any reason; what is
  not known counts against the new model.
net-loss-of-new: What is certified is xi, for each candidate that passes: the accuracy lost against
  the old model, gains offsetting losses, over all data of use, or in each group that is named.
net-loss: What is certified is xi: the accuracy lost against the slow model over all data of use,
  gains offsetting losses.
answers-that-differ: What is certified is xi: the share of all answers that differ from the slow
  model's, over all data of use. Labels have no part in it.
net-loss-in-groups: What is certified is xi, for each group that is named: the accuracy lost against
  the slow model among its rows, gains offsetting losses.
answers-that-differ-in-groups: What is certified is xi, for each group that is named: the share of
  the answers to its rows that differ from the slow model's. Labels have no part in it.
other-groups-open: Nothing is said about rows that are in no group that is named.
exits-at-threshold: A row exits early if its score, in float64, is at or above the threshold.
exits-at-own-threshold: A row exits early if its score, in float64, is at or above the threshold of
  its group; a row of a group that is not named never does.
score-up-to-unrecoverable: A rollout is unsafe if it has a first un-recoverable state; its score is
  the running maximum of the danger up to there.
score-of-whole-rollout: A rollout is safe if it has no un-recoverable state; its score is the
  maximum of the danger over the whole rollout, and 1 if a reading of the danger failed.
shield-latches: The shield fires once the danger is at or above the threshold, and stays fired until
  reset.
missing-did-not-pass: A row without an outcome did not pass.
only-this-threshold: What is certified is the rate under a shield at this one threshold: at no
  other, not even a lower one.
claim-per-cluster: One row was drawn from each cluster, so the claim is about a random row of a
  random cluster: a large cluster weighs no more than a small one.
claim-per-cluster-and-group: One row was drawn from each cluster for each group in which it has any,
  so in each group the claim is about a random row of the group from a random cluster that has one
  there: every cluster counts once in every group.
claim-per-cluster-and-bin: One row was drawn from each cluster for each bin (of each group) in which
  it has any, so in each bin the claim is about a random row of the bin from a random cluster that
  has one there: every cluster counts once in every bin.
claim-per-cluster-answered-or-not: Each row weighs one over the number of rows of its cluster (in
  its group, where there are groups), answered (flagged) or not; for the share among all answers
  (flagged rows) declare cluster_bound.
claim-per-cluster-with-trials: One row of the kind that the claim counts (of a recall, one positive)
  was drawn from each cluster that has any, so the claim is about a random row of this kind of a
  random cluster that has one: a cluster with many weighs no more than one with few.
claim-per-trial-of-cluster-and-group: One row of the kind that the claim counts was drawn from each
  cluster for each group in which it has any, so in each group the claim is about a random such row
  of a random cluster that has one there.
""")


def _require_ids(claim: Part) -> None:
    """The names of what is assumed are those of the procedure, of groups, and of the draw."""
    known = ASSUMED_IDS.get(claim.get("procedure", str))
    if known is None:
        raise UnreadableError(f"{claim.at('assumes')}: the procedure has no such names")
    if claim.value.get("claim") == "differ":
        known = known.replace(PARTIAL_IDS, "differ-beforehand")
        known = known.replace("net-loss", "answers-that-differ")
    elif known == ASSUMED_IDS["cascade/paths/1"] and not _tables(claim)[0].value.get("labels"):
        known = known.replace(PARTIAL_IDS, COMPLETE_IDS)
    ids = known.split()
    if "left_out" in claim.value:
        # Rows exit by the thresholds of their group, as by own ones.
        ids = [name for name in ids if name != "other-groups-open"]
        ids = [OWN_IDS if name == EXITS_IDS else name for name in ids]
    ids = _ids_of_groups(ids, claim)
    if claim.value.get("drawn") is not None:
        ids = _ids_of_drawn(ids, claim)
    if "graded" in claim.value:
        ids.append("graded-on-levels")
    said = claim.texts("assumes")
    fits = said == ids if _IS_TESTED.get() else {*CONDITIONS, *MEANINGS}.issuperset(said)
    require(fits, claim.at("assumes"), f"expected {' '.join(ids)}")


def _ids_of_groups(ids: list[str], claim: Part) -> list[str]:
    """What a rule may see of bins and groups, and that groups were fixed."""
    scope = claim.value.get("scope", "top")
    bins = claim.part("bins").value if "bins" in claim.value else {}
    disjoint = scope in ("groups", "per-class")
    if bins.get("rule") == "edges-as-cells" or not (disjoint or scope == "top"):
        ids = ["rows-unseen" if name == "rows-by-bin" else name for name in ids]
    if disjoint:
        ids = [WITH_GROUPS.get(name, name) for name in ids]
    return ids + ["groups-beforehand"] * (scope != "top")


def _ids_of_drawn(ids: list[str], claim: Part) -> list[str]:
    """What is assumed of clusters or weights in the place of rows."""
    part = claim.part("drawn")
    by = part.get("by", str)
    clusters, among = by == "clusters", part.part("among").value if "among" in part.value else {}
    bounded = clusters and part.value.get("bound") is not None
    unit = {"group": "-and-group", "bin": "-and-bin"}.get(_unit(claim).rpartition("-")[2], "")
    added = DRAWN_IDS.get(by + "-among" * bool(among) + unit + "-bounded" * bounded)
    if added is None:
        raise UnreadableError(f"{part.at('by')} is not known")
    if clusters and not bounded and claim.get("kind", str) in ("abstention", "precision"):
        added = added.replace(" one-seed", " claim-per-cluster-answered-or-not one-seed")
    if clusters:
        stops = ("stopped-by-outcome", "stopped-by-outcome-and-group")
        if len(among) == 1:
            ids = ["stopped-by-clusters" if name in stops else name for name in ids]
        ids = ["clusters-unseen" if name in NUMBERED_IDS else name for name in ids]
        ids = ["independent-clusters", *(name for name in ids if name != "independent-rows")]
        without = "rollouts-without-shield"
        ids = [without if name == "independent-rollouts" else name for name in ids]
    elif by == "weights":
        ids = [f"{name}-weighted" if name in _ABOUT_ROWS else name for name in ids]
    return ids + added.split()


def _require_known(claim: Part, within: str | None = None) -> None:
    """Raise unless the kind and the procedure are known, alone or `within` a claim of a kind."""
    kind, procedure = claim.get("kind", str), claim.get("procedure", str)
    if within is not None and kind == "bundle":
        raise UnreadableError(f"{claim.place} is a bundle in a bundle")
    if PROCEDURES.get(procedure) != kind:
        raise UnknownError(f"{claim.at('procedure')}: {procedure!r} ({kind!r}) is not known")


def _check_claim(claim: Part, report: Report) -> None:
    try:
        _require_ids(claim)
        claim.get("certified", bool)
        if claim.value["kind"] == "bundle":
            _check_bundle(claim, report)
            return
        if claim.value.get("drawn") is not None:
            _require_drawn(claim.part("drawn"), claim.count("n"))
            report.trusted.append("how rows were drawn, by one seed that was drawn at random")
            _require_unit(claim)
        if "graded" in claim.value:
            _require_graded(claim.part("graded"))
            report.trusted.append("how outcomes were graded")
        CHECKS[claim.value["kind"]](claim, report)
        if claim.value.get("drawn") is not None:
            _require_drawn_among(claim)
    except WrongError as error:
        report.wrong.append(str(error))


def _require_drawn(drawn: Part, n: int) -> None:
    """Whether n rows can have been drawn like this."""
    drawn.only("by seed bound rows", "clusters among each spanning")
    by, rows = drawn.get("by", str), drawn.count("rows")
    units = drawn.count("clusters") if by == "clusters" else rows
    seed = drawn.get("seed", int, str, type(None))
    if seed is not None:
        _require_seed(drawn)
    if drawn.get("bound", int, float, type(None)) is None:
        bound = None
    else:
        bound = drawn.count("bound", 1) if by == "clusters" else drawn.get("bound", float)
    if by == "weights":
        fits = seed is not None and bound is not None and bound > 0 and n <= rows
    else:
        most, trials = _most_drawn(drawn, units, rows)
        kept, apart = n - (rows - trials), drawn.value.get("each") != "cluster"
        most = trials if apart else most
        fits = by == "clusters" and seed is not None and units <= rows and trials <= rows
        fits = fits and 0 <= kept <= most
        if bound is not None:
            fits = fits and bound >= 1 and trials <= most * bound
        elif "among" in drawn.value:
            fits = fits and (kept > 0 or trials == 0) and kept <= trials
        elif apart:
            several = drawn.count("spanning") if "spanning" in drawn.value else 0
            fits = fits and units + several <= kept
        else:
            fits = fits and kept == units
    require(fits and ("clusters" in drawn.value) == (by == "clusters"), drawn.place, "cannot be")


def _require_seed(part: Part) -> None:
    """A seed is any whole number, written as text beyond 2**53."""
    seed = part.get("seed", int, str)
    digits = seed.removeprefix("-") if type(seed) is str else ""
    long = digits.isascii() and digits.isdecimal() and digits[0] != "0" and len(digits) <= 1000
    fits = long and int(digits) > MOST if type(seed) is str else abs(seed) <= MOST
    require(fits, part.at("seed"), "is not the seed of a draw")


UNITS = ("cluster", "cluster-and-group", "cluster-and-bin", "cluster-group-and-bin")


def _unit(claim: Part) -> str:
    """What one row was drawn from: "cluster" where nothing was drawn for groups or bins."""
    drawn = claim.value.get("drawn")
    clusters = isinstance(drawn, dict) and drawn.get("by") == "clusters"
    return _choice(claim.part("drawn"), "each", UNITS) if clusters else "cluster"


def _depend(claim: Part) -> bool:
    """Whether rows of several groups may be the same, or of one cluster."""
    return claim.get("scope", str) == "overlapping-groups" or _unit(claim) != "cluster"


def _own_level(claim: Part, delta: Decimal, groups: int) -> Decimal:
    """The level of each group's own decision."""
    return delta / groups if _depend(claim) else sidak(delta, groups)


def _require_apart(claim: Part, rows: int, place: Part) -> None:
    """Of a cluster at most one row is in each group or bin that it was drawn for."""
    apart = _unit(claim) != "cluster" and "among" not in claim.part("drawn").value
    fits = not apart or rows <= claim.part("drawn").count("clusters")
    require(fits, place.place, "has more rows than there are clusters")


def _require_unit(claim: Part) -> None:
    """One row of a cluster was drawn for each group, and each bin, that the claim has."""
    drawn, scope = claim.part("drawn"), claim.value.get("scope", "top")
    clusters, bound = drawn.value["by"] == "clusters", drawn.value["bound"]
    grouped = scope in ("groups", "per-class") and bound is None
    binned = "bins" in claim.value and bound is None and _bins(claim.part("bins")) > 1
    unit = UNITS[grouped + 2 * binned] if clusters else None
    fits = drawn.value.get("each") == unit
    told = clusters and (scope == "groups" or grouped)
    fits = fits and ("spanning" in drawn.value) == told
    require(fits, drawn.at("each"), "is not what the claim has groups or bins for")
    if told:
        require(
            drawn.count("spanning") <= drawn.count("clusters"), drawn.at("spanning"), "too many"
        )


def _require_graded(graded: Part) -> None:
    """Whether outcomes can have been graded like this."""
    graded.only("by scale")
    by, scale = graded.get("by", str, type(None)), graded.limits("scale")
    named = by is None or (0 < len(by) <= 200 and by == by.strip() and by.isprintable())
    fits = named and 2 <= len(scale) <= 1001 and -math.inf < scale[0] < scale[-1] < math.inf
    require(fits, graded.place, "cannot be")
    step = (scale[-1] - scale[0]) / (len(scale) - 1)
    equal = all(abs(two - one - step) <= 1e-6 * step for one, two in pairwise(scale))
    require(equal, graded.at("scale"), "does not rise in equal steps")


def _most_drawn(drawn: Part, units: int, rows: int) -> tuple[int, int]:
    """The most rows that the clusters can give, and how many rows they were drawn from: all, or
    those of the outcomes that were drawn among.
    """
    if "among" not in drawn.value:
        return units, rows
    among = drawn.part("among")
    require(bool(among.value), among.place, "names no outcome")
    return units * len(among.value), sum(among.count(name) for name in among.value)


def _require_drawn_among(claim: Part) -> None:
    """Clusters were drawn among the trials of the claim, of each outcome at most one row of each
    cluster; and all rows of other outcomes were counted.
    """
    drawn, procedure = claim.part("drawn"), claim.get("procedure", str)
    if "among" not in drawn.value:
        return
    of, trials = drawn.part("among"), TRIALS_AMONG.get(procedure, "").split()
    require(bool(trials) and set(trials) <= of.value.keys(), of.place, "not what the claim counts")
    if claim.value.get("scope") == "overlapping-groups":
        return
    parts = [claim.part("counts")] if "counts" in claim.value else []
    parts += [table.part("counts") for table in (() if parts else claim.parts("tables"))]
    names = [name for name in parts[0].value if name != "cells"] if parts else []
    known, most = dict.fromkeys(names, 0), drawn.count("clusters")
    for counts in parts:
        gone = sum(cell == -1 for cell in counts.value["cells"][:1])
        for name in names:
            held = sum(counts.value[name][0 if name in of.value else gone :])
            require(name not in of.value or held <= most, counts.place, "more than the clusters")
            known[name] += held
    others = sum(rows for name, rows in known.items() if name not in of.value)
    fits = others == drawn.count("rows") - sum(of.value.values()) and of.value.keys() <= set(names)
    for name, rows in of.value.items():
        fits = fits and known[name] <= rows
        fits = fits and (known[name] <= most or _unit(claim) != "cluster")
    require(fits, of.place, "cannot be")


# The outcomes whose rows are the trials of a procedure, where not every row is one.
TRIALS_AMONG = {
    **{name: kind.of for name, kind in THRESHOLDS.items() if kind.of not in ("all", "reached")},
}


def _check_bundle(claim: Part, report: Report) -> None:
    """The sum of the deltas, as they are written, is at most that of the bundle."""
    claim.only("kind procedure assumes certified delta claims")
    _level(claim)
    members = claim.part("claims")
    spent, certified = Fraction(0), True
    for name in members.value:
        member = members.part(name)
        _require_known(member, within=claim.value["kind"])
        _check_claim(member, report)
        spent += as_written(member.rate("delta"))
        certified = certified and member.get("certified", bool)
    try:
        covered = bool(members.value) and spent <= as_written(claim.rate("delta"))
        require(covered, claim.at("delta"), f"the claims spend {float(spent):g}")
        claim.equals("certified", certified)
    except WrongError as error:
        report.wrong.append(str(error))
    report.checked.append("that the claims together spend at most delta")


def check_file(path: str, *, patient: bool = False) -> tuple[int, dict[str, Any]]:
    """The exit code of a file, and what there is to say about it."""
    try:
        with Path(path).open("rb") as file:
            document = parse(file.read(LARGEST_FILE + 1))
        report = check_document(document, patient=patient)
    except (UnreadableError, OSError) as error:
        message = error.strerror if isinstance(error, OSError) else str(error)
        return 2, {"certificate": path, "ok": False, "error": message or str(error)}
    said = {key: list(dict.fromkeys(lines)) for key, lines in vars(report).items()}
    claim, ok = document["claim"], not report.wrong
    known = {key: claim[key] for key in ("kind", "procedure")}
    # Whoever reads only this must not act on a claim that is not valid.
    known["certified"] = ok and claim["certified"]
    told = {"claimed": told_claim(claim), **told_names(claim)} if ok else {}
    if ok:
        columns = document["provenance"]["columns"].items()
        scales = [f"{key} = {text}" for key, text in columns if f".{key}".endswith(".scale")]
        told["means"] = [*told["means"], *(f"a score of 1 is written as {one}" for one in scales)]

    return int(not ok), {"certificate": path, "ok": ok, **known, **told, **said}


def told_claim(claim: dict[str, Any]) -> dict[str, Any]:
    """What is claimed: what was asked for and decided, and by which seeds, without the counts."""
    if claim["kind"] == "bundle":
        members = {name: told_claim(one) for name, one in claim["claims"].items()}
        return {"kind": "bundle", "delta": claim["delta"], "claims": members}
    alone = claim.get("scope", "top") == "top"
    left = {"procedure", *(["scope", *ABOUT_GROUPS] if alone else [])}
    keys = ["kind", "certified", *COUNTED[claim["kind"]].split(), *DECIDED]
    plain = {
        key: claim[key]
        for key in dict.fromkeys(keys)
        if key not in left and _is_short(claim.get(key))
    }
    # Without a score the threshold of a table says no more than that its group passed.
    told = [key for key in DECIDED if claim["kind"] != "pass-rate" or key != "threshold"]
    by_group = [
        {key: table[key] for key in ("group", *told) if _is_short(table.get(key))}
        for table in claim.get("tables", ())
    ]
    if len(by_group) == 1 and "group" not in by_group[0]:
        plain |= by_group.pop()
    drawn, graded = claim.get("drawn"), claim.get("graded")
    return {
        **plain,
        **({"groups": by_group} if by_group else {}),
        **({"draw": {key: drawn.get(key) for key in DRAWN}} if drawn else {}),
        **({"graded": {"by": graded["by"]}} if graded else {}),
    }


DRAWN = ("by", "each", "seed", "bound")
ABOUT_GROUPS = ("group_thresholds", "group_verdicts", "small_groups")
# What follows from counts, and is told, of a claim and of its tables.
DECIDED = (
    *("threshold", "thresholds", "tolerated", "allowed", "passed"),
    *("lower", "upper", "left_out"),
)


def _is_short(value: Any) -> bool:
    """Whether a value is a number, a text, or a list of these."""
    one = isinstance(value, (bool, int, float, str))
    return one or (isinstance(value, list) and all(isinstance(x, (int, float, str)) for x in value))


def told_names(claim: dict[str, Any]) -> dict[str, list[str]]:
    """What is assumed and what the words mean, in sentences; those of a bundle's claims, too."""
    claims = [claim, *claim.get("claims", {}).values()]
    names = list(dict.fromkeys(name for one in claims for name in one["assumes"]))
    return {
        key: [sentences[name] for name in names if name in sentences]
        for key, sentences in {"assumed": CONDITIONS, "means": MEANINGS}.items()
    }


def main(arguments: Sequence[str]) -> int:
    """Check the files that are named, and print what was found."""
    options = {word for word in arguments if word.startswith("--")}
    paths = [word for word in arguments if word not in options]
    if not paths or options - {"--json", "--patient"}:
        delivered = hand_over(__doc__ or "")
        return delivered if options == {"--help"} else 2
    codes, delivered = set(), 0
    for path in paths:
        code, found = check_file(path, patient="--patient" in options)
        codes.add(code)
        lines = [json.dumps(found)] if "--json" in options else described(found)
        delivered = delivered or hand_over("\n".join(lines))
    return next((code for code in (1, 2) if code in codes), delivered)


def hand_over(text: str) -> int:
    """Print a text; what becomes of success: 0, or 141 or 2 if nobody gets to read it."""
    output = sys.stdout
    try:
        if output is None:
            raise OSError("standard output is closed")
        encoding = output.encoding or "utf-8"
        output.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        output.flush()
    except OSError as error:
        if output is not None:
            # What is still in the buffer goes nowhere: Python would try again at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        if isinstance(error, BrokenPipeError):
            return 141
        if sys.stderr is not None:
            with suppress(OSError):
                sys.stderr.write(f"the output cannot be written: {error.strerror or error}\n")
        return 2
    return 0


def described(found: dict[str, Any]) -> list[str]:
    """What was found about a file, in lines for people."""
    if "error" in found:
        return [printable(f"{found['certificate']}: cannot be checked: {found['error']}")]
    state = "valid, certified" if found["certified"] else "valid, not certified"
    lines = [
        f"{found['certificate']}: {state if found['ok'] else 'NOT VALID'} ({found['procedure']})",
        *(f"  wrong: {line}" for line in found["wrong"]),
        *(f"  {line}" for line in _told_lines("claim", found.get("claimed", {}))),
        *(f"  assumed: {line}" for line in found.get("assumed", ())),
        *(f"  means: {line}" for line in found.get("means", ())),
        f"  checked: {'; '.join(found['checked'])}",
        f"  taken on trust: {'; '.join(found['trusted'])}",
    ]
    return [printable(line) for line in lines]


def _told_lines(name: str, told: dict[str, Any]) -> Iterator[str]:
    """What is claimed, a line for each claim and each group."""
    inner = {key: value for key, value in told.items() if isinstance(value, dict)}
    groups = told.get("groups", ())
    parts = [f"{key} {_shown(told[key])}" for key in told if key not in ("groups", *inner)]
    for key in ("draw", "graded"):
        by = inner.pop(key, {}).items()
        parts += [f"{key} {part} {_shown(value)}" for part, value in by if value is not None]
    if parts:
        yield f"{name}: {', '.join(parts)}"
    for table in groups:
        rest = {key: value for key, value in table.items() if key != "group"}
        yield from _told_lines(f"{name}, group {table['group']}", rest)
    for member, one in inner.get("claims", {}).items():
        yield from _told_lines(f"{name}, {member}", one)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        some = [_shown(one) for one in value[:20]]
        return f"[{' '.join([*some, '…'] if len(value) > 20 else some)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def printable(text: str) -> str:
    """The text with escapes in place of what cannot be seen: no name of a file, and nothing in one,
    can begin a line, move the cursor or turn letters around.
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
